//! Memory that a kernel takes: its stack, or the runtime's workspace.

use relaxide_ir::{BinaryOp, Buffer, Ref};

use super::{
    kernel::Body,
    value::{Overflow, Ty, Val},
};
use crate::error::CodegenError;
use crate::on_device::{bytes_of, is_shared};

/// The alignment of buffers that kernels allocate: a cache line, and the widest vector.
const ALIGNMENT: u64 = 64;

/// The alignment of memory that threads share: the widest vector that a thread loads.
const SHARED_ALIGNMENT: u64 = 16;

/// A barrier of all threads of a block; later versions of LLVM read it as their own function for that.
const BARRIER: &str = "llvm.nvvm.barrier0";

/// The device type of memory that the processor reaches.
const CPU: i64 = 1;

impl Body<'_, '_> {
    /// Allocates a buffer, on the stack or, where it is large, from the workspace until the end of its sequence.
    pub fn allocate(&mut self, buffer: &Ref<Buffer>) -> Result<(), CodegenError> {
        if is_shared(buffer) && self.kernel.device.is_some() {
            return self.share_memory(buffer);
        }
        let element = self.kernel.ty(buffer.dtype)?;
        let on_host = self.kernel.device_type == CPU;
        if let Some(total) = self.stack.take(buffer).filter(|_| on_host) {
            let slots = (total as u64 / element.kind.bytes()).max(1);
            let pointer = self.f.stack_slot(element.element().in_memory(), slots, ALIGNMENT);
            self.vars.insert(buffer.data.clone(), pointer);
            return Ok(());
        }
        if self.kernel.device.is_some() {
            let what = format!("scratch memory `{}` of one thread that is large or of unknown size", buffer.name);
            return Err(self.kernel.unsupported(what));
        }
        let count = self.num_elements(buffer)?;
        let size = if buffer.dtype.is_packed() {
            self.bytes_of(buffer.dtype, &count)
        } else {
            let bytes = i64::from(element.lanes) * element.kind.bytes() as i64;
            self.f.binary(BinaryOp::Mul, &count, &Val::int(Ty::I64, bytes), Overflow::Never)
        };
        let pointer = self.allocate_workspace(&size, buffer);
        self.vars.insert(buffer.data.clone(), pointer);
        Ok(())
    }

    /// Memory of all threads of a block: a global of the module, in an address space of its own.
    fn share_memory(&mut self, buffer: &Ref<Buffer>) -> Result<(), CodegenError> {
        let refused = |what: &str| format!("memory `{}` of the scope `shared` {what}", buffer.name);
        let Some(bytes) = bytes_of(buffer) else {
            return Err(self.kernel.unsupported(refused("and of unknown size")));
        };
        let number = self.f.module.fresh_number();
        let name = format!("shared.{number}");
        self.f.module.define(&name, || {
            format!("@{name} = internal addrspace(3) global [{} x i8] undef, align {SHARED_ALIGNMENT}", bytes.max(1))
        });
        let pointer = self.f.emit(Ty::PTR, format_args!("addrspacecast ptr addrspace(3) @{name} to ptr"));
        self.vars.insert(buffer.data.clone(), pointer);
        Ok(())
    }

    /// The threads of a block wait for each other, and see what all of them have written.
    pub fn barrier(&mut self, scope: &str) -> Result<Val, CodegenError> {
        if self.kernel.device.is_none() || !relaxide_tir::lower::is_shared_scope(scope) {
            return Err(self.kernel.unsupported(format!("a barrier of the scope `{scope}`")));
        }
        self.f.effect_call(BARRIER, &[], &[]);
        self.forget_values();
        Ok(Val::int(Ty::I32, 0))
    }

    fn allocate_workspace(&mut self, size: &Val, buffer: &Buffer) -> Val {
        let allocate = self.runtime_function("TVMBackendAllocWorkspace");
        let (code, bits) = (i32::from(buffer.dtype.code), i32::from(buffer.dtype.bits));
        let device = self.workspace_device();
        let pointer =
            self.f.emit(Ty::PTR, format_args!("call ptr {}({device}, {size}, i32 {code}, i32 {bits})", allocate.text));
        let missing = self.f.icmp("eq", &pointer, &Val::zero(Ty::PTR));
        let (fail, go_on) = (self.f.label(), self.f.label());
        self.f.branch_if(&missing, fail, go_on);
        self.f.start(fail);
        let message =
            format!("{}: no workspace memory for buffer `{}`", self.f.module.plain(&self.kernel.name), buffer.name);
        self.fail("MemoryError", &message);
        self.f.start(go_on);
        self.workspaces.push(pointer.clone());
        pointer
    }

    pub fn free_workspace(&mut self, pointer: &Val) {
        let free = self.runtime_function("TVMBackendFreeWorkspace");
        let device = self.workspace_device();
        self.f.emit(Ty::I32, format_args!("call i32 {}({device}, {pointer})", free.text));
    }

    /// The device of scratch memory: the processor, or the one of a kind that the thread works with.
    fn workspace_device(&self) -> String {
        let kind = self.kernel.device_type;
        format!("i32 {kind}, i32 {}", if kind == CPU { 0 } else { -1 })
    }

    /// A function of the runtime, from the slot that the loader filled; null without a loader.
    pub fn runtime_function(&mut self, name: &str) -> Val {
        let slot = self.f.module.runtime_slot(name);
        self.f.emit(Ty::PTR, format_args!("load ptr, ptr {slot}, align 8"))
    }
}
