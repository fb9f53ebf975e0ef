//! Values of handles: addresses of memory that a buffer has.
//!
//! A handle has no number here, so nothing can be computed with it but other addresses; it ends at a buffer that is declared
//! over it, or at a function that is handed the tensor behind it.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::prim::{PrimCall, PrimExpr};

use super::memory::Pointer;
use super::{Interp, InterpError, Result};
use crate::intrin::Intrinsic;

impl Interp {
    /// Lets a variable stand for the address that an expression is.
    pub(super) fn bind_pointer(&mut self, var: &Ref<Var>, value: &PrimExpr) -> Result<()> {
        let at = self.pointer_of(value)?;
        self.memory.point(var, at);
        // Buffers that were seen over the old address are others now.
        self.views.retain(|buffer, _| buffer.data != *var);
        Ok(())
    }

    fn pointer_of(&mut self, e: &PrimExpr) -> Result<Pointer> {
        let unknown = || InterpError::Unsupported(format!("value of the handle `{e}`"));
        match e {
            PrimExpr::Var(var) => self.memory.pointer(var).ok_or_else(unknown),
            PrimExpr::Call(call) => match (Intrinsic::of_call(&call.op), call.args.as_slice()) {
                (Some(Intrinsic::AddressOf), [PrimExpr::Load(load)]) => {
                    let view = self.view_of(&load.buffer)?;
                    let indices = self.indices_at(&view, &load.indices, 0)?;
                    view.address(&indices).ok_or_else(unknown)
                }
                (Some(Intrinsic::AccessPtr), [_, data, offset, ..]) => self.access_pointer(call, data, offset),
                (Some(Intrinsic::HandleAddByteOffset), [handle, bytes]) => {
                    let (at, bytes) = (self.pointer_of(handle)?, self.eval_int(bytes)?);
                    at.behind(bytes).ok_or_else(unknown)
                }
                (Some(Intrinsic::Reinterpret), [handle]) if handle.dtype().is_handle() => self.pointer_of(handle),
                _ => Err(unknown()),
            },
            _ => Err(unknown()),
        }
    }

    /// An offset of elements whose type the first argument names.
    fn access_pointer(&mut self, call: &PrimCall, data: &PrimExpr, offset: &PrimExpr) -> Result<Pointer> {
        let at = self.pointer_of(data)?;
        let (element, offset) = (call.args[0].dtype(), self.eval_int(offset)?);
        let bytes = offset.checked_mul(element.bytes() as i64).and_then(|bytes| at.behind(bytes));
        bytes.ok_or_else(|| InterpError::Malformed(format!("an offset of {offset} elements behind a handle")))
    }
}
