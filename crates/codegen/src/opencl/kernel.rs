//! One function of a device as text.

use relaxide_ffi::DataType;
use relaxide_runtime::device::payload::Info;
use relaxide_tir::lower::{Launch, decompose_packed};

use super::prelude::{prelude, taken};
use crate::c::{
    Body, Code, FAULTS, Kernel, Known, Source, comment, declare, identifier, separate_rounding, value_type,
};
use crate::error::CodegenError;
use crate::on_device::{OnDevice, bytes_of, passed_as, shared_memory};
use crate::signature::signature;

/// The text of a function, and what its callers must know.
pub(super) fn write(launch: &Launch) -> Result<(Info, String), CodegenError> {
    // OpenCL has no elements of less than a byte.
    let func = &decompose_packed(&launch.func);
    let name = identifier(&launch.name);
    let mut source = Source::default();
    let device = OnDevice { faults: launch.faults.clone() };
    let kernel = Kernel::new(&launch.kernel, func, name.clone()).on_device(device);
    if kernel.separate_rounding {
        separate_rounding(&mut source);
    }
    let mut body = Body::new(&kernel, &mut source);
    // What the loops of one thread meet is its own.
    body.in_parallel = true;
    taken().for_each(|word| drop(body.fresh(word)));
    let (mut params, mut types, mut opening) = (Vec::new(), Vec::new(), String::new());
    for (param, buffer) in func.params.iter().zip(&func.buffers) {
        if launch.fault.is_some() && launch.fault == *buffer {
            params.push(format!("__global int64_t *restrict {FAULTS}"));
            types.push(DataType::handle());
            continue;
        }
        match buffer {
            Some(buffer) => {
                let name = body.fresh(&buffer.name);
                let pointer = kernel.pointers.pointer(&buffer.data);
                params.push(format!("__global {}", declare(&format!("{pointer}restrict"), &name)));
                types.push(DataType::handle());
                body.vars.insert(buffer.data.clone(), Known::scalar(name, pointer));
            }
            None => {
                let dtype = param.dtype();
                let ty = value_type(kernel.ty(dtype)?.kind);
                let name = body.fresh(&param.name);
                let passed =
                    passed_as(dtype).ok_or_else(|| kernel.unsupported(format!("a parameter of type {dtype}")))?;
                let passed_type = value_type(kernel.ty(passed)?.kind);
                if passed == dtype {
                    params.push(format!("{passed_type} {name}"));
                } else {
                    params.push(format!("{passed_type} {name}_passed"));
                    opening.push_str(&format!("    const {ty} {name} = ({ty}){name}_passed;\n"));
                }
                types.push(passed);
                body.vars.insert(param.clone(), Known { code: Code::atom(&name), ..Known::scalar(&name, ty) });
            }
        }
    }
    // OpenCL has it declared at the beginning of a function only.
    for buffer in shared_memory(&func.body) {
        let name = body.fresh(&buffer.name);
        let (element, bytes) = (kernel.ty(buffer.dtype)?, bytes_of(&buffer));
        let typed = kernel.pointers.element(&buffer.data).filter(|_| element.lanes == 1);
        let (Some(typed), Some(bytes)) = (typed, bytes) else {
            let what =
                format!("memory `{}` that threads share and that has several types or an unknown size", buffer.name);
            return Err(kernel.unsupported(what));
        };
        let count = (bytes / element.kind.bytes() as i64).max(1);
        opening.push_str(&format!("    __local {typed} {name}[{count}];\n"));
        body.vars.insert(buffer.data.clone(), Known::scalar(name, format!("__local {typed} *")));
    }
    body.stmt(&func.body)?;
    let text = body.finish(&format!("__kernel void {name}({})", params.join(", ")), &opening);
    let title = comment(&signature(&launch.name, func));
    source.function(&format!("/* {title} */\n{text}"));
    let (helpers, functions) = source.parts();
    let helpers: String = helpers.map(|helper| format!("\n{helper}")).collect();
    let code = format!("{}{helpers}{functions}", prelude());
    Ok((Info { name, types, tags: launch.tags.clone() }, code))
}
