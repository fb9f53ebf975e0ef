//! Writing an executable in the form that it names.

use relaxide_ffi::{Error, ErrorKind};
use relaxide_vm::executable::stream::{Writer, write_tensor_before_bool};

use crate::executable::{Constant, Executable, Form, VmFunction};
use crate::instruction::{Instruction, check_word};
use crate::read::MAGIC;

fn refuse(message: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::ValueError, format!("the executable cannot be written: {message}"))
}

/// The bytes of an executable. What [`read`](crate::read) took in comes out byte for byte, but for the word that 0.14 and
/// later leave undefined.
pub fn write(executable: &Executable) -> Result<Vec<u8>, Error> {
    let form = executable.form;
    let mut out = Writer::default();
    out.u64(MAGIC);
    out.string(&executable.version);
    if form >= Form::V0_9 {
        out.count(executable.virtual_devices.len());
        for device in &executable.virtual_devices {
            out.i32(device.device_type);
            out.i32(device.device_id);
            out.string(&device.scope);
        }
        out.i32(executable.host_device);
    }
    strings(&mut out, &executable.globals);
    write_constants(&mut out, executable)?;
    strings(&mut out, &executable.primitives);
    if form >= Form::V0_8 {
        out.count(executable.op_attrs.len());
        for (index, attrs) in &executable.op_attrs {
            out.u64(*index);
            out.count(attrs.len());
            for (name, value) in attrs {
                out.string(name);
                out.string(value);
            }
        }
    }
    out.count(executable.functions.len());
    executable.functions.iter().try_for_each(|function| write_function(&mut out, executable, function))?;
    out.bytes(&executable.trailer);
    Ok(out.0.into_bytes())
}

fn strings(out: &mut Writer, texts: &[String]) {
    out.count(texts.len());
    texts.iter().for_each(|text| out.string(text));
}

fn write_constants(out: &mut Writer, executable: &Executable) -> Result<(), Error> {
    out.count(executable.constants.len());
    for (index, constant) in executable.constants.iter().enumerate() {
        match constant {
            Constant::Immediate(tensor) => {
                if executable.form >= Form::V0_9 {
                    out.i32(0);
                }
                write_tensor_before_bool(out, index, tensor).map_err(refuse)?;
            }
            Constant::LateBound(name) if executable.form >= Form::V0_9 => {
                out.i32(1);
                out.string(name);
            }
            Constant::LateBound(name) => {
                return Err(refuse(format!("the form of {} has no constants bound later: {name}", executable.form)));
            }
        }
    }
    let devices = executable.constant_devices.iter().map(|d| device(executable, *d)).collect::<Result<Vec<_>, _>>()?;
    out.i64_list(&devices);
    Ok(())
}

/// A device as the form names it: by index, or before 0.9 by kind.
fn device(executable: &Executable, index: i64) -> Result<i64, Error> {
    if executable.form >= Form::V0_9 {
        return Ok(index);
    }
    let found = usize::try_from(index).ok().and_then(|i| executable.virtual_devices.get(i));
    found.map(|d| i64::from(d.device_type)).ok_or_else(|| refuse(format!("there is no device {index}")))
}

fn write_function(out: &mut Writer, executable: &Executable, function: &VmFunction) -> Result<(), Error> {
    let numbers = [function.register_file_size.to_string(), function.instructions.len().to_string()];
    let [registers, count] = numbers;
    strings(out, &[function.name.clone(), registers, count]);
    strings(out, &function.params);
    let devices = function.param_devices.iter().map(|d| device(executable, *d)).collect::<Result<Vec<_>, _>>()?;
    out.i64_list(&devices);
    for instruction in &function.instructions {
        let instruction = match (instruction, executable.form >= Form::V0_9) {
            (Instruction::AllocStorage { size, alignment, dtype, device: d, dst }, false) => {
                let (size, device) = (size.clone(), device(executable, *d)?);
                Instruction::AllocStorage { size, alignment: *alignment, dtype: *dtype, device, dst: *dst }
            }
            (Instruction::DeviceCopy { src, src_device, dst_device, dst }, false) => Instruction::DeviceCopy {
                src: *src,
                src_device: device(executable, *src_device)?,
                dst_device: device(executable, *dst_device)?,
                dst: *dst,
            },
            (other, _) => other.clone(),
        };
        let opcode = instruction.opcode();
        let fields = instruction.encode(executable.form).map_err(|why| refuse(why.to_string()))?;
        let words = [vec![check_word(opcode, &fields), opcode], fields].concat();
        out.i64_list(&words);
    }
    Ok(())
}
