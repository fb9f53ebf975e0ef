//! Types.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::free_vars;
use relaxide_ir::{FuncType, PrimExpr, TensorType, Type, Var};

use super::Printer;
use crate::number::quoted;

impl Printer<'_> {
    pub(super) fn ty(&mut self, ty: &Type) -> String {
        match ty {
            Type::Prim(t) => {
                self.uses_tir = true;
                format!("T.{}", t.dtype)
            }
            Type::Pointer(t) => {
                self.uses_tir = true;
                match &t.element {
                    Type::Prim(e) if e.dtype.is_void() && t.scope == "global" => "T.handle".into(),
                    Type::Prim(e) if e.dtype.is_void() => format!("T.handle(storage_scope={})", quoted(&t.scope)),
                    Type::Prim(e) => format!("T.handle({}, {})", quoted(&e.dtype.to_string()), quoted(&t.scope)),
                    _ => "T.handle".into(),
                }
            }
            Type::Tensor(t) => self.tensor_type(t),
            Type::Shape(t) => match &t.values {
                Some(values) => format!("R.Shape([{}])", self.dims(values)),
                None if t.ndim >= 0 => format!("R.Shape(ndim={})", t.ndim),
                None => "R.Shape(ndim=-1)".into(),
            },
            Type::Tuple(t) if t.fields.is_empty() => "R.Tuple".into(),
            Type::Tuple(t) => {
                let fields: Vec<_> = t.fields.iter().map(|f| self.ty(f)).collect();
                format!("R.Tuple({})", fields.join(", "))
            }
            Type::Func(t) => self.func_type(t),
            Type::String(_) => "I.StringType()".into(),
            Type::Any(_) | Type::Missing(_) => "R.Any".into(),
        }
    }

    fn tensor_type(&mut self, ty: &TensorType) -> String {
        let mut parts = Vec::new();
        if let Some(shape) = &ty.shape {
            parts.push(self.shape_tuple(shape));
        }
        if ty.dtype != DataType::void() {
            parts.push(format!("dtype={}", quoted(&ty.dtype.to_string())));
        }
        if let Some(device) = &ty.vdevice {
            parts.push(format!("vdevice={}", quoted(&self.vdevice_text(device))));
        }
        if ty.shape.is_none() && ty.ndim >= 0 {
            parts.push(format!("ndim={}", ty.ndim));
        }
        if parts.is_empty() { "R.Tensor".into() } else { format!("R.Tensor({})", parts.join(", ")) }
    }

    fn func_type(&mut self, ty: &FuncType) -> String {
        let pure = if ty.pure { "True" } else { "False" };
        if let Some(rule) = &ty.derive {
            return format!("R.Callable(derive_func={}, purity={pure})", quoted(rule));
        }
        match &ty.params {
            Some(params) => {
                let params: Vec<_> = params.iter().map(|p| self.ty(p)).collect();
                format!("R.Callable({}, {}, {pure})", tuple_text(&params), self.ty(&ty.ret))
            }
            None => match (&ty.ret, ty.pure) {
                (Type::Any(_), false) => "R.Callable".into(),
                (ret, _) => format!("R.Callable(None, {}, {pure})", self.ty(ret)),
            },
        }
    }

    /// Dimensions with commas between them.
    pub(super) fn dims(&mut self, dims: &[PrimExpr]) -> String {
        dims.iter().map(|d| self.dim(d)).collect::<Vec<_>>().join(", ")
    }

    /// Dimensions as a Python tuple.
    pub(super) fn shape_tuple(&mut self, dims: &[PrimExpr]) -> String {
        let dims: Vec<_> = dims.iter().map(|d| self.dim(d)).collect();
        tuple_text(&dims)
    }

    /// One dimension. In front of the definition of its variables it is text, which is read when all are known.
    fn dim(&mut self, e: &PrimExpr) -> String {
        if let PrimExpr::Var(var) = e {
            let early = self.forward.remove(var) || (!self.is_named(var) && var.dtype() != DataType::int(64));
            let name = self.var(var);
            return if early { quoted(&name) } else { name };
        }
        let early = free_vars(e).iter().any(|v| self.forward.contains(v) || !self.is_named(v));
        let text = self.prim(e);
        if early { quoted(&text) } else { text }
    }

    fn is_named(&self, var: &Ref<Var>) -> bool {
        self.names.get(&var.clone().into()).is_some()
    }

    /// The name of a scalar variable. One without a definition becomes a symbolic dimension: a `TypeVar` of the module where
    /// it has their type, else a declaration of the function.
    pub(super) fn var(&mut self, var: &Ref<Var>) -> String {
        if let Some(name) = self.names.get(&var.clone().into()) {
            return name.to_string();
        }
        let name = self.names.define(var.clone().into(), &var.name);
        if var.dtype() == DataType::int(64) {
            self.type_vars.insert(name.clone());
        } else {
            let value = self.unbound(var);
            self.declarations.push((name.clone(), value));
        }
        name
    }

    /// What declares a variable that nothing gives a value.
    pub(super) fn unbound(&mut self, var: &Var) -> String {
        match &var.ty {
            Type::Pointer(p) if matches!(p.element, Type::Prim(_)) => self.ty(&var.ty),
            _ => format!("T.{}()", var.dtype()),
        }
    }

    /// The declarations that the signature called for, as the first lines of the body.
    pub(super) fn declare_symbols(&mut self) {
        for (name, value) in std::mem::take(&mut self.declarations) {
            self.uses_tir = true;
            self.line(format!("{name} = {value}"));
        }
    }
}

/// Texts as a Python tuple.
pub(super) fn tuple_text(items: &[String]) -> String {
    match items {
        [one] => format!("({one},)"),
        _ => format!("({})", items.join(", ")),
    }
}
