//! Functions of a device: threads in the place of bound loops, and faults in the place of errors.
//!
//! A thread that finds something wrong writes which check it was, and its numbers, where the host looks behind the call, and ends.

use relaxide_ffi::DataType;
use relaxide_runtime::device::Axis;
use relaxide_tir::For;
use relaxide_tir::lower::{Fault, Launch, decompose_packed};

use super::{
    kernel::{Body, Kernel},
    module::ModuleText,
    value::{ScalarKind, Ty, Val},
};
use crate::error::CodegenError;
use crate::on_device::{OnDevice, passed_as};
use crate::target::NativeTarget;

/// The function that says which check failed, and its numbers: the first that does.
const FAULT: &str = "relaxide.fault";

const FAULT_TEMPLATE: &str =
    "define internal void @{name}(ptr %faults, i64 %number, i64 %index, i64 %extent) cold noinline nounwind {
  %pair = cmpxchg ptr %faults, i64 0, i64 %number monotonic monotonic
  %first = extractvalue { i64, i1 } %pair, 1
  br i1 %first, label %say, label %done
say:
  %second = getelementptr i64, ptr %faults, i64 1
  store i64 %index, ptr %second, align 8
  %third = getelementptr i64, ptr %faults, i64 2
  store i64 %extent, ptr %third, align 8
  br label %done
done:
  ret void
}";

/// The parameter in which a function finds the memory for faults.
const FAULTS: &str = "%faults";

impl Body<'_, '_> {
    /// A loop whose iterations are threads of a device, or blocks of them.
    pub fn thread_axis(&mut self, n: &For) -> Result<(), CodegenError> {
        let (register, axis) = match Axis::of(&n.thread_tag) {
            Some(Axis::Block(axis)) => ("ctaid", axis),
            Some(Axis::Thread(axis)) => ("tid", axis),
            None => return Err(self.kernel.unsupported(format!("a loop bound to `{}`", n.thread_tag))),
        };
        let name = format!("llvm.nvvm.read.ptx.sreg.{register}.{}", ["x", "y", "z"][axis]);
        let ty = self.kernel.ty(n.var.dtype())?;
        let number = self.f.call(&name, Ty::I32, &[]);
        let number = self.f.convert(&number, ty);
        self.vars.insert(n.var.clone(), number);
        self.stmt(&n.body)
    }

    /// Says in the device's memory that a check failed, and ends the thread.
    pub fn fault(&mut self, fault: &Fault, [index, extent]: [&Val; 2]) {
        let number = self.kernel.device.as_ref().map_or(0, |device| device.number_of(fault));
        self.f.module.define(FAULT, || FAULT_TEMPLATE.replace("{name}", FAULT));
        self.f.effect(format_args!("call void @{FAULT}(ptr {FAULTS}, i64 {number}, {index}, {extent})"));
        self.leave(-1);
    }
}

impl Body<'_, '_> {
    /// A value that LLVM does not move: it goes through an empty piece of assembly, whose place is fixed. Vectors and numbers of unusual
    /// widths stay as they are.
    pub(super) fn kept_in_place(&mut self, value: &Val) -> Val {
        let ty = value.ty;
        let (register, constraint) = match ty.kind {
            _ if ty.is_vector() => return value.clone(),
            ScalarKind::F32 | ScalarKind::Int { bits: 32, .. } => (Ty::I32, "=r,0"),
            ScalarKind::F64 | ScalarKind::Int { bits: 64, .. } => (Ty::I64, "=l,0"),
            _ => return value.clone(),
        };
        let bits = self.f.bitcast(value, register);
        let kept = self.f.emit(register, format_args!("call {register} asm sideeffect \"\", \"{constraint}\"({bits})"));
        self.f.bitcast(&kept, ty)
    }
}

/// Writes a function under a name, and gives the types of its parameters.
pub(crate) fn write_device_function(
    launch: &Launch,
    name: &str,
    native: &NativeTarget,
    module: &mut ModuleText,
) -> Result<Vec<DataType>, CodegenError> {
    // Two threads may not store into one byte.
    let func = &decompose_packed(&launch.func);
    let device = OnDevice { faults: launch.faults.clone() };
    let kernel = Kernel::new(launch.kernel.clone(), func, native, module).on_device(device);
    let mut body = Body::new(&kernel, module);
    // What the loops of one thread meet is its own.
    body.in_parallel = true;
    let (mut params, mut types) = (Vec::new(), Vec::new());
    for (index, (param, buffer)) in func.params.iter().zip(&func.buffers).enumerate() {
        if launch.fault.is_some() && launch.fault == *buffer {
            params.push(format!("ptr {FAULTS}"));
            types.push(DataType::handle());
            continue;
        }
        if let Some(buffer) = buffer {
            params.push(format!("ptr noalias %p{index}"));
            types.push(DataType::handle());
            body.vars.insert(buffer.data.clone(), Val::new(Ty::PTR, format!("%p{index}")));
            continue;
        }
        let dtype = param.dtype();
        let passed = passed_as(dtype).ok_or_else(|| kernel.unsupported(format!("a parameter of type {dtype}")))?;
        let passed_ty = kernel.ty(passed)?;
        params.push(format!("{passed_ty} %p{index}"));
        types.push(passed);
        let value = Val::new(passed_ty, format!("%p{index}"));
        let value = if passed == dtype { value } else { body.f.convert(&value, kernel.ty(dtype)?) };
        body.vars.insert(param.clone(), value);
    }
    body.stmt(&func.body)?;
    body.leave(0);
    // Registers are shared out among as many threads. Told that one block is enough, the driver's compiler keeps values in registers that it
    // would put into memory to make room for more blocks.
    let bounds = |threads| format!(" \"nvvm.maxntid\"=\"{threads}\" \"nvvm.minctasm\"=\"1\"");
    let block = launch.threads.map(bounds).unwrap_or_default();
    let text = body.f.finish(&format!("define ptx_kernel void @{name}({}) #0{block}", params.join(", ")));
    module.function(&text);
    if let Some(function) = module.needed_of_host() {
        return Err(kernel.unsupported(format!("`{function}`, a function of the host,")));
    }
    Ok(types)
}
