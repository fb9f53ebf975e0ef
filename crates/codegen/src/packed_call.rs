//! [`PackedCall`]: the intrinsics that call functions in the packed convention, as every back end reads them.

use relaxide_ir::PrimExpr;

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
    /// Reads an intrinsic by its name without prefix and its arguments; `None` if it is another one.
    pub fn of(name: &str, args: &'a [PrimExpr]) -> Option<PackedCall<'a>> {
        Some(match (name, args) {
            ("call_packed" | "tvm_call_packed", [PrimExpr::Str(function), args @ ..]) => {
                PackedCall::Value(Callee::Registered(&function.value), args)
            }
            ("call_cpacked" | "tvm_call_cpacked" | "call_kernel", [PrimExpr::Str(kernel), args @ ..]) => {
                PackedCall::Value(Callee::Kernel(&kernel.value), args)
            }
            ("anylist_setitem_call_packed", [list, index, PrimExpr::Str(function), args @ ..]) => {
                PackedCall::IntoList(list, index, Callee::Registered(&function.value), args)
            }
            ("anylist_setitem_call_cpacked", [list, index, PrimExpr::Str(kernel), args @ ..]) => {
                PackedCall::IntoList(list, index, Callee::Kernel(&kernel.value), args)
            }
            ("anylist_resetitem", [list, index]) => PackedCall::Reset(list, index),
            _ => return None,
        })
    }
}
