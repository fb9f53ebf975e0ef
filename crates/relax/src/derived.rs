//! Types of calls of functions outside of the module, where they follow from the arguments of each call.
//!
//! `R.Callable(derive_func="rule")` names a registered function that takes a call and gives its type. Two rules are known
//! everywhere, by the names that TVM registers them by:
//!
//! | rule | the type of a call |
//! | --- | --- |
//! | `tvm.relax.type.infer_by_ty_args` | what the call's type arguments say |
//! | `tvm.relax.type.infer_view_ty` | that of `memory.view` of the same arguments |
//!
//! Any other is asked of the table of functions when a call is made, with no block builder.

use relaxide_ffi::{Any, get_global};
use relaxide_ir::Type;

use crate::op::{self, CallCx, OpError};
use crate::{Call, Expr};

/// The rule of views.
pub const VIEW: &str = "tvm.relax.type.infer_view_ty";

/// The rule of calls that say their type themselves.
pub const TYPE_ARGUMENTS: &str = "tvm.relax.type.infer_by_ty_args";

/// The type of a call by a rule.
pub fn type_of(rule: &str, call: &Call) -> Result<Type, OpError> {
    match rule {
        VIEW => {
            let view = op::lookup("memory.view").ok_or_else(|| OpError::Unknown("memory.view".into()))?;
            (view.infer)(&CallCx::of(view, call))
        }
        TYPE_ARGUMENTS => Ok(match call.ty_args.as_slice() {
            [] => Type::any(),
            [ty] => ty.clone(),
            types => Type::tuple(types.to_vec()),
        }),
        rule => registered(rule, call),
    }
}

fn registered(rule: &str, call: &Call) -> Result<Type, OpError> {
    let callee = match &call.op {
        Expr::Extern(f) => f.global_symbol.as_str(),
        _ => "R.Callable",
    };
    let Some(function) = get_global(rule) else {
        let message =
            format!("the type of its calls is told by `{rule}`, which is not registered; register it before the call");
        return Err(OpError::invalid(callee, message));
    };
    let untyped: Any = call.with_args(call.args.clone(), Type::missing()).into();
    let ty = function.call(&[untyped.as_view(), Any::default().as_view()]);
    let ty = ty.map_err(|error| OpError::invalid(callee, format!("`{rule}`: {error}")))?;
    ty.to::<Type>().map_err(|_| OpError::invalid(callee, format!("`{rule}` gave something that is no type")))
}
