//! Checks of a value against a type: the kind of value at once, its dimensions as far as they are known.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{PrimExpr, free_vars};
use relaxide_ir::{TensorType, Type};

use super::code;
use super::heap::ShapeHeap;
use crate::transform::emit::*;
use crate::*;

/// A value whose dimensions are still to be matched.
pub struct Pending {
    value: Expr,
    dims: Vec<PrimExpr>,
    scalar: bool,
    context: String,
}

/// Emits checks of the kind of a value; its dimensions are added to `pending`.
pub fn check(value: &Expr, ty: &Type, context: &str, out: &mut Vec<Binding>, pending: &mut Vec<Pending>) {
    let info = |name: &str, args: Vec<Expr>, out: &mut Vec<Binding>| {
        let args = std::iter::once(value.clone()).chain(args).chain([Expr::string(context)]).collect();
        emit_effect(out, call_packed(&format!("vm.builtin.check_{name}_info"), args, Type::void()));
    };
    match ty {
        Type::Tensor(t) => {
            let args = tensor_args(t, out);
            info("tensor", args, out);
            if let Some(dims) = &t.shape {
                pending.push(Pending {
                    value: value.clone(),
                    dims: dims.clone(),
                    scalar: false,
                    context: context.into(),
                });
            }
        }
        Type::Shape(s) => {
            info("shape", vec![Expr::prim(s.ndim)], out);
            if let Some(dims) = &s.values {
                pending.push(Pending {
                    value: value.clone(),
                    dims: dims.clone(),
                    scalar: false,
                    context: context.into(),
                });
            }
        }
        Type::Prim(p) => {
            info("prim_value", vec![Expr::dtype(p.dtype)], out);
            if let (Expr::Var(var), true) = (value, p.dtype.is_int()) {
                let dims = vec![PrimExpr::Var(var.clone())];
                pending.push(Pending { value: value.clone(), dims, scalar: true, context: context.into() });
            }
        }
        Type::Tuple(t) => {
            info("tuple", vec![Expr::prim(t.fields.len() as i64)], out);
            for (i, field) in t.fields.iter().enumerate() {
                if matches!(field, Type::Any(_) | Type::Missing(_)) {
                    continue;
                }
                let item = item(value, i, field, out);
                check(&item, field, context, out, pending);
            }
        }
        Type::Func(_) => info("func", Vec::new(), out),
        Type::String(_) => info("string", Vec::new(), out),
        Type::Any(_) | Type::Missing(_) | Type::Pointer(_) => {}
    }
}

/// As [`check`], for a value of which a type is known already: only what that type leaves open is checked.
pub fn check_cast(
    value: &Expr,
    known: &Type,
    ty: &Type,
    context: &str,
    out: &mut Vec<Binding>,
    pending: &mut Vec<Pending>,
) {
    let kind_is_known = match (known, ty) {
        (Type::Tensor(a), Type::Tensor(b)) => {
            (b.ndim < 0 || a.ndim == b.ndim) && (b.dtype == DataType::void() || a.dtype == b.dtype)
        }
        (Type::Shape(a), Type::Shape(b)) => b.ndim < 0 || a.ndim == b.ndim,
        _ => false,
    };
    let start = out.len();
    check(value, ty, context, out, pending);
    if kind_is_known {
        out.truncate(start);
    }
}

/// A field of a tuple; one of which no type says that it is a tuple is asked while the program runs.
fn item(tuple: &Expr, index: usize, ty: &Type, out: &mut Vec<Binding>) -> Expr {
    if matches!(tuple.ty(), Type::Tuple(_)) {
        return emit(out, "gv", ty.clone(), Expr::field(tuple.clone(), index));
    }
    let args = vec![tuple.clone(), Expr::prim(index as i64)];
    emit(out, "gv", Type::any(), call_packed("vm.builtin.tuple_getitem", args, Type::any()))
}

/// Rank and dtype; the null value stands for a dtype that nothing is said of.
fn tensor_args(t: &TensorType, out: &mut Vec<Binding>) -> Vec<Expr> {
    let dtype = if t.dtype == DataType::void() {
        emit(out, "gv", Type::any(), call_op("null_value", Vec::new(), Type::any()))
    } else {
        Expr::dtype(t.dtype)
    };
    vec![Expr::prim(t.ndim), dtype]
}

impl Pending {
    /// Emits the match of the dimensions. What cannot be checked before further expressions are computed comes back.
    pub fn emit_match(self, heap: &mut ShapeHeap, tensor: &Expr, out: &mut Vec<Binding>) -> Option<Pending> {
        let mut codes = Vec::with_capacity(self.dims.len() * 2);
        let mut waits = false;
        let mut defined = Vec::new();
        for dim in &self.dims {
            let (code, operand) = match (dim.as_int(), heap.slot(dim)) {
                (Some(value), _) => (code::ASSERT_IMMEDIATE, value),
                (None, Some(slot)) if heap.is_known(slot) => (code::ASSERT_LOAD, slot as i64),
                (None, Some(slot)) if dim.as_var().is_some() => {
                    heap.mark_known(slot);
                    defined.push(slot);
                    (code::STORE, slot as i64)
                }
                _ => {
                    waits = true;
                    (code::SKIP, 0)
                }
            };
            codes.extend([Expr::prim(code), Expr::prim(operand)]);
        }
        if waits && defined.is_empty() && !self.checks_anything(heap) {
            return Some(self);
        }
        let context = Expr::string(self.context.as_str());
        let args: Vec<Expr> = if self.scalar {
            [self.value.clone(), tensor.clone()].into_iter().chain(codes).chain([context]).collect()
        } else {
            let count = Expr::prim(self.dims.len() as i64);
            [self.value.clone(), tensor.clone(), count].into_iter().chain(codes).chain([context]).collect()
        };
        let name = if self.scalar { "vm.builtin.match_prim_value" } else { "vm.builtin.match_shape" };
        emit_effect(out, call_packed(name, args, Type::void()));
        waits.then_some(self)
    }

    /// Whether it is a scalar without a slot.
    pub fn is_unused(&self, heap: &ShapeHeap) -> bool {
        self.scalar && self.dims.iter().all(|dim| heap.slot(dim).is_none())
    }

    /// Whether some dimension can be checked now.
    fn checks_anything(&self, heap: &ShapeHeap) -> bool {
        let known = |dim: &PrimExpr| heap.slot(dim).is_some_and(|slot| heap.is_known(slot));
        self.dims.iter().any(|dim| free_vars(dim).is_empty() || known(dim))
    }
}
