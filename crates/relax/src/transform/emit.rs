//! Adding bindings while lowering, when types no longer need inference.

use relaxide_ffi::Ref;
use relaxide_ir::pass::{PassError, PassResult};
use relaxide_ir::{Attrs, BaseFunc, IRModule, Span, Type, Var};

use crate::op::Op;
use crate::*;

/// Binds a value to a fresh variable.
pub fn emit(out: &mut Vec<Binding>, name: &str, ty: Type, value: Expr) -> Expr {
    let var = Var::new(name, ty);
    out.push(Ref::new(VarBinding { var: var.clone().into(), value }).into());
    var.into()
}

/// Evaluates a value for its effect.
pub fn emit_effect(out: &mut Vec<Binding>, value: Expr) {
    emit(out, "_", Type::void(), value);
}

/// A call whose type is known.
pub fn call(callee: impl Into<Expr>, args: Vec<Expr>, ty: Type) -> Expr {
    call_at(callee.into(), args, ty, None)
}

/// A call whose type is known, and where it comes from. What the module has says its own type; of anything else the call says it.
pub fn call_at(op: Expr, args: Vec<Expr>, ty: Type, span: Option<Ref<Span>>) -> Expr {
    let ty_args = if matches!(op, Expr::Global(_)) { Vec::new() } else { vec![ty.clone()] };
    Ref::new(Call { op, args, attrs: Attrs::new(), ty_args, ty, span }).into()
}

/// A call of an operator whose type is known.
pub fn call_op(name: &str, args: Vec<Expr>, ty: Type) -> Expr {
    Ref::new(Call { op: Op::get(name).into(), args, attrs: Attrs::new(), ty_args: Vec::new(), ty, span: None }).into()
}

/// A call of a function outside the module that writes tensors of a type which it is given memory for.
pub fn call_dps_packed(func: impl Into<Expr>, args: Vec<Expr>, ty: Type, span: Option<Ref<Span>>) -> Expr {
    let args = vec![func.into(), Expr::tuple(args)];
    let op = Op::get("call_dps_packed").into();
    Ref::new(Call { op, args, attrs: Attrs::new(), ty_args: vec![ty.clone()], ty, span }).into()
}

/// A call of a function outside the module.
pub fn call_packed(symbol: &str, args: Vec<Expr>, ty: Type) -> Expr {
    call(Expr::external(symbol), args, ty)
}

/// Rebuilds every Relax function of a module.
pub fn map_functions(
    mut module: IRModule,
    mut f: impl FnMut(&str, &Ref<Function>) -> Result<Ref<Function>, PassError>,
) -> PassResult {
    for (name, func) in &mut module.functions {
        if let Some(function) = func.downcast::<Function>() {
            *func = BaseFunc::from(f(name, &function)?);
        }
    }
    Ok(module)
}
