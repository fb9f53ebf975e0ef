//! [`PackedCall`]: the intrinsics that call functions in the packed convention, as every back end reads them.

use relaxide_ir::PrimExpr;
use relaxide_ir::prim::PrimCall;
use relaxide_tir::intrin::Intrinsic;

/// Which function is called.
#[derive(Clone, Copy)]
pub(crate) enum Callee<'a> {
    /// One that is registered, or in the library's imports.
    Registered(&'a str),
    /// A kernel of the same library.
    Kernel(&'a str),
}

/// What such an intrinsic does.
pub(crate) enum PackedCall<'a> {
    /// Calls a function; what comes back is a number, or nobody asks.
    Value(Callee<'a>, &'a [PrimExpr]),
    /// Calls a function and puts what comes back into a list, at an index.
    IntoList(&'a PrimExpr, &'a PrimExpr, Callee<'a>, &'a [PrimExpr]),
    /// Empties a place of a list.
    Reset(&'a PrimExpr, &'a PrimExpr),
}

impl<'a> PackedCall<'a> {
    /// Reads an intrinsic and its arguments; `None` if it is another one.
    pub fn of(intrinsic: Intrinsic, args: &'a [PrimExpr]) -> Option<PackedCall<'a>> {
        Some(match (intrinsic, args) {
            (Intrinsic::CallPacked, [PrimExpr::Str(function), args @ ..]) => {
                PackedCall::Value(Callee::Registered(&function.value), args)
            }
            (Intrinsic::CallCpacked | Intrinsic::CallKernel, [PrimExpr::Str(kernel), args @ ..]) => {
                PackedCall::Value(Callee::Kernel(&kernel.value), args)
            }
            (Intrinsic::AnylistSetitemCallPacked, [list, index, PrimExpr::Str(function), args @ ..]) => {
                PackedCall::IntoList(list, index, Callee::Registered(&function.value), args)
            }
            (Intrinsic::AnylistSetitemCallCpacked, [list, index, PrimExpr::Str(kernel), args @ ..]) => {
                PackedCall::IntoList(list, index, Callee::Kernel(&kernel.value), args)
            }
            (Intrinsic::AnylistResetitem, [list, index]) => PackedCall::Reset(list, index),
            _ => return None,
        })
    }
}

/// List and index of a call that reads a place of a list; `None` if it is another expression.
pub(crate) fn list_item(arg: &PrimExpr) -> Option<[&PrimExpr; 2]> {
    let call = call_of(arg, Intrinsic::AnylistGetitem)?;
    let [list, index] = call.args.as_slice() else { return None };
    Some([list, index])
}

/// Whether an argument is the address zero, which stands for no value.
pub(crate) fn is_null(arg: &PrimExpr) -> bool {
    call_of(arg, Intrinsic::Reinterpret)
        .is_some_and(|call| call.dtype.is_handle() && call.args.iter().all(|address| address.as_int() == Some(0)))
}

fn call_of(arg: &PrimExpr, intrinsic: Intrinsic) -> Option<&PrimCall> {
    let PrimExpr::Call(call) = arg else { return None };
    (Intrinsic::of_call(&call.op) == Some(intrinsic)).then_some(call)
}
