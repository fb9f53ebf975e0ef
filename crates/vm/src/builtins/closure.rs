//! Functions as values.

use relaxide_ffi::{Any, AnyView, Error, ErrorKind, Function, Ref, Shape};

use super::{Args, Builtin};
use crate::closure::Closure;
use crate::host::{self, Host};

/// Calls a kernel with integers behind its tensors. Profiles know this one and count the kernel.
pub(crate) const CALL_TIR_DYN: &str = "vm.builtin.call_tir_dyn";

/// The interpreter knows this one, so that deep recursion through closures does not need the native stack.
pub(crate) const INVOKE_CLOSURE: &str = "vm.builtin.invoke_closure";

pub(super) const TABLE: &[Builtin] = &[
    Builtin::plain("vm.builtin.make_closure", make_closure),
    Builtin::with_host(INVOKE_CLOSURE, invoke_closure),
    Builtin::plain(CALL_TIR_DYN, call_tir_dyn),
];

/// `(closure, captured…)`: a closure with the captured values behind its arguments.
fn make_closure(args: &Args<'_, '_>) -> Result<Any, Error> {
    let closure: Ref<Closure> = args.get(0, "closure")?;
    Ok(closure.bind_last(args.rest(1)).into())
}

/// `(vm, closure, argument…)`.
fn invoke_closure(host: &dyn Host, args: &Args<'_, '_>) -> Result<Any, Error> {
    host::call_value(host, args.view(1, "closure")?, args.rest(2))
}

/// `(function, argument…, shape)`: calls the function with the arguments and then the integers of the shape.
fn call_tir_dyn(args: &Args<'_, '_>) -> Result<Any, Error> {
    let function: Function = args.get(0, "function")?;
    let last = args.len().checked_sub(1).filter(|last| *last > 0);
    let last = last.ok_or_else(|| args.error(ErrorKind::TypeError, format_args!("the shape is missing")))?;
    let shape: Shape = args.get(last, "shape")?;
    let plain = args.rest(1).get(..last - 1).unwrap_or_default();
    let all: Vec<AnyView<'_>> = plain.iter().copied().chain(shape.iter().map(|dim| AnyView::from(*dim))).collect();
    function.call(&all)
}
