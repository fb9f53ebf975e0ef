//! Calls: operators, functions of the module, external functions, and the few operators with a form of their own.

use relaxide_ir::{AttrValue, DataType, Type};
use relaxide_relax::{Call, Constant, Expr, ExternFunc, op};

use super::Printer;
use super::attrs::python_float;
use super::ty::tuple_text;
use crate::number::quoted;
use crate::tensor;

/// Operators that say their result as `out_ty`.
const OUT_TYPED: &[&str] = &["call_tir", "call_tir_inplace", "call_tir_with_grad", "call_dps_packed", "call_py_func"];
/// Operators that call kernels.
const KERNEL_CALLS: &[&str] = &["call_tir", "call_tir_inplace", "call_tir_with_grad"];
/// Operators whose first argument names an external function.
const NAMED_CALLEE: &[&str] = &["call_dps_packed", "call_pure_packed", "call_inplace_packed", "call_builtin_with_ctx"];

impl Printer<'_> {
    pub(super) fn call(&mut self, call: &Call) -> String {
        match &call.op {
            Expr::Op(op) => self.op_call(&op.name, call),
            Expr::Extern(f) if !f.has_own_type() || !call.ty_args.is_empty() || !call.attrs.0.is_empty() => {
                let mut parts = vec![quoted(&f.global_symbol)];
                parts.extend(call.args.iter().map(|a| self.expr(a)));
                parts.extend(self.attr_parts(call));
                if !call.ty_args.is_empty() {
                    parts.push(format!("ty_args={}", self.types(&call.ty_args)));
                }
                format!("R.call_packed({})", parts.join(", "))
            }
            callee => {
                let args: Vec<_> = call.args.iter().map(|a| self.expr(a)).collect();
                format!("{}({})", self.expr(callee), args.join(", "))
            }
        }
    }

    /// A function outside of the module.
    pub(super) fn external(&mut self, f: &ExternFunc) -> String {
        let ty = if f.has_own_type() { format!(", {}", self.ty(&f.ty)) } else { String::new() };
        format!("R.ExternFunc({}{ty})", quoted(&f.global_symbol))
    }

    fn op_call(&mut self, name: &str, call: &Call) -> String {
        let mut parts: Vec<String> = Vec::new();
        for (i, arg) in call.args.iter().enumerate() {
            parts.push(match arg {
                Expr::Extern(f) if i == 0 && NAMED_CALLEE.contains(&name) => quoted(&f.global_symbol),
                Expr::Tuple(tensors) if i == 1 && KERNEL_CALLS.contains(&name) && tensors.fields.is_empty() => {
                    "()".into()
                }
                // Scalars that the kernel takes behind its outputs: those in front of them are among the arguments.
                Expr::Shape(_) if i == 2 && KERNEL_CALLS.contains(&name) => format!("tir_vars={}", self.expr(arg)),
                _ => self.expr(arg),
            });
        }
        if let Some(surface) = op::surface(name) {
            parts = surface.in_order(parts);
        }
        if name == "hint_on_device"
            && let (Some(kind), Some(index)) = (call.attrs.int("device_type"), call.attrs.int("index"))
        {
            parts.push(format!("R.device(device_type={kind}, index={index})"));
            parts.push(quoted(call.attrs.str("memory_scope").unwrap_or("global")));
        } else if OUT_TYPED.contains(&name) {
            let out = match call.ty_args.as_slice() {
                // A list of one is what it holds, so a tuple of one is written as the type that it is.
                [Type::Tuple(t)] if t.fields.len() != 1 => {
                    let fields: Vec<_> = t.fields.iter().map(|f| self.ty(f)).collect();
                    format!("[{}]", fields.join(", "))
                }
                [one] => self.ty(one),
                many => {
                    let many: Vec<_> = many.iter().map(|t| self.ty(t)).collect();
                    format!("[{}]", many.join(", "))
                }
            };
            parts.push(format!("out_ty={out}"));
            parts.extend(self.attr_parts(call));
        } else {
            parts.extend(self.attr_parts(call));
            if !call.ty_args.is_empty() || name == "call_builtin_with_ctx" {
                parts.push(format!("ty_args={}", self.types(&call.ty_args)));
            }
        }
        format!("R.{name}({})", parts.join(", "))
    }

    fn attr_parts(&mut self, call: &Call) -> Vec<String> {
        let attrs = call.attrs.0.iter();
        attrs
            .map(|(name, value)| match value {
                // The format of a message is a value in the text, as the values are that it shows.
                AttrValue::Str(text) if name == "format" => format!("{name}=R.str({})", quoted(text)),
                value => format!("{name}={}", self.attr(value)),
            })
            .collect()
    }

    fn types(&mut self, types: &[Type]) -> String {
        let types: Vec<_> = types.iter().map(|t| self.ty(t)).collect();
        tuple_text(&types)
    }

    /// Scalars are written out; larger tensors stand in the metadata section.
    pub(super) fn constant(&mut self, constant: &relaxide_ffi::Ref<Constant>) -> String {
        let value = &constant.value;
        if value.shape().is_empty()
            && let Some(scalar) = tensor::scalar(value)
        {
            let text = match scalar {
                tensor::Scalar::Bool(true) => "True".to_string(),
                tensor::Scalar::Bool(false) => "False".to_string(),
                tensor::Scalar::Int(v) => v.to_string(),
                tensor::Scalar::Float(v) => python_float(v),
            };
            let dtype: DataType = value.dtype();
            return format!("R.const({text}, {})", quoted(&dtype.to_string()));
        }
        self.metadata.constant(constant)
    }
}
