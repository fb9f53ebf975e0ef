//! Reading an executable, from bytes that nobody vouches for.
//!
//! Sections in order: magic and version, devices (from 0.9), names of functions, constants, names of kernels, code; a signature
//! may follow. Every length is proved before it is believed, every instruction's check is compared.

use relaxide_ffi::Tensor;
use relaxide_vm::executable::TRAILER_MAGIC;
use relaxide_vm::executable::stream::{Problem, ReadError, Reader, Section, read_tensor};

use crate::executable::{Constant, Executable, Form, OpAttrs, VirtualDevice, VmFunction};
use crate::instruction::{Instruction, check_word};

/// The first eight bytes, which the older form of Relax's executables has too; the version tells them apart.
pub(crate) const MAGIC: u64 = 0xD225_DE2F_4214_151D;

/// Reads an executable of 0.6 to 0.19.
pub fn read(bytes: &[u8]) -> Result<Executable, ReadError> {
    let mut reader = Reader::new(bytes, Section::Header);
    let magic = reader.u64()?;
    if magic != MAGIC {
        return Err(reader.error_at(0, Problem::Magic(magic)));
    }
    let at = reader.position();
    let version = reader.string()?;
    let unknown = || {
        let message = format!("the version is {version:?}; versions 0.6 to 0.19 of the Relay VM's form are read");
        reader.error_at(at, Problem::Other(message))
    };
    if version == "0.14" {
        return Err(reader.error_at(at, Problem::Other("this is an executable of the Relax VM, not of Relay's".into())));
    }
    let form = Form::of_version(&version).ok_or_else(unknown)?;
    if form == Form::V0_6 {
        // Builds of 0.6 differ in whether devices of constants and parameters are written; one of the two fits.
        let start = reader.position();
        return read_sections(bytes, start, form, &version, false)
            .or_else(|first| read_sections(bytes, start, form, &version, true).map_err(|_| first));
    }
    read_sections(bytes, reader.position(), form, &version, true)
}

fn read_sections(
    bytes: &[u8],
    start: usize,
    form: Form,
    version: &str,
    devices: bool,
) -> Result<Executable, ReadError> {
    let mut reader = Reader::new(bytes, Section::Header);
    reader.take(start as u64)?;
    let mut executable = Executable { form, version: version.to_string(), ..Executable::default() };
    reader.enter(Section::VirtualDevices);
    if form >= Form::V0_9 {
        read_devices(&mut reader, &mut executable)?;
    }
    reader.enter(Section::Globals);
    executable.globals = strings(&mut reader)?;
    reader.enter(Section::Constants);
    read_constants(&mut reader, &mut executable, devices)?;
    reader.enter(Section::Primitives);
    executable.primitives = strings(&mut reader)?;
    if form >= Form::V0_8 {
        executable.op_attrs = read_attrs(&mut reader)?;
    }
    reader.enter(Section::Code);
    let count = reader.count(8)?;
    for _ in 0..count {
        let function = read_function(&mut reader, form, devices)?;
        executable.functions.push(function);
    }
    if form < Form::V0_9 && devices {
        devices_of_kinds(&mut executable);
    }
    match reader.rest() {
        rest if rest.is_empty() || rest.starts_with(TRAILER_MAGIC) => {
            executable.trailer = rest.to_vec();
            Ok(executable)
        }
        rest => {
            let (at, left) = (reader.position(), rest.len());
            Err(reader.error_at(at, Problem::Other(format!("{left} bytes follow the code"))))
        }
    }
}

fn strings(reader: &mut Reader<'_>) -> Result<Vec<String>, ReadError> {
    let count = reader.count(8)?;
    (0..count).map(|_| reader.string()).collect()
}

fn read_devices(reader: &mut Reader<'_>, executable: &mut Executable) -> Result<(), ReadError> {
    let count = reader.count(4 + 4 + 8)?;
    let device = |reader: &mut Reader<'_>| {
        let (device_type, device_id) = (reader.i32()?, reader.i32()?);
        Ok(VirtualDevice { device_type, device_id, scope: reader.string()? })
    };
    executable.virtual_devices = (0..count).map(|_| device(reader)).collect::<Result<_, _>>()?;
    let at = reader.position();
    executable.host_device = reader.i32()?;
    let exists = usize::try_from(executable.host_device).is_ok_and(|i| i < executable.virtual_devices.len());
    if !exists {
        let problem = format!("the host is device {} of {count}", executable.host_device);
        return Err(reader.error_at(at, Problem::Other(problem)));
    }
    Ok(())
}

fn read_constants(reader: &mut Reader<'_>, executable: &mut Executable, devices: bool) -> Result<(), ReadError> {
    let count = reader.count(12)?;
    for _ in 0..count {
        let constant = if executable.form >= Form::V0_9 { tagged_constant(reader)? } else { immediate(reader)? };
        executable.constants.push(constant);
    }
    executable.constant_devices = if devices { reader.i64_list()? } else { vec![0; executable.constants.len()] };
    if executable.constant_devices.len() != executable.constants.len() {
        let (devices, constants) = (executable.constant_devices.len(), executable.constants.len());
        let at = reader.position();
        return Err(reader.error_at(at, Problem::Other(format!("{constants} constants and {devices} devices of them"))));
    }
    Ok(())
}

fn immediate(reader: &mut Reader<'_>) -> Result<Constant, ReadError> {
    read_tensor(reader).map(|tensor: Tensor| Constant::Immediate(tensor))
}

fn tagged_constant(reader: &mut Reader<'_>) -> Result<Constant, ReadError> {
    let at = reader.position();
    match reader.i32()? {
        0 => immediate(reader),
        1 => reader.string().map(Constant::LateBound),
        tag => Err(reader.error_at(at, Problem::ConstantTag(tag))),
    }
}

fn read_attrs(reader: &mut Reader<'_>) -> Result<Vec<(u64, OpAttrs)>, ReadError> {
    let count = reader.count(16)?;
    let mut all = Vec::new();
    for _ in 0..count {
        let index = reader.u64()?;
        let pairs = reader.count(16)?;
        let pair = |reader: &mut Reader<'_>| Ok((reader.string()?, reader.string()?));
        all.push((index, (0..pairs).map(|_| pair(reader)).collect::<Result<_, _>>()?));
    }
    Ok(all)
}

fn read_function(reader: &mut Reader<'_>, form: Form, devices: bool) -> Result<VmFunction, ReadError> {
    let at = reader.position();
    let head = strings(reader)?;
    let [name, registers, count] = head.as_slice() else {
        let problem = format!("a function's head has {} texts, not name, registers and instructions", head.len());
        return Err(reader.error_at(at, Problem::Other(problem)));
    };
    let number = |text: &String| text.parse::<i64>().ok().filter(|n| *n >= 0);
    let bad = || reader.error_at(at, Problem::Other(format!("the head of function {name} holds no numbers")));
    let (registers, count) = (number(registers).ok_or_else(bad)?, number(count).ok_or_else(bad)?);
    let params = strings(reader)?;
    let param_devices = if devices { reader.i64_list()? } else { vec![0; params.len()] };
    // The smallest instruction has a length, a check and an opcode.
    reader.fits(at, count as u64, 8 * 3)?;
    let instructions = (0..count).map(|_| read_instruction(reader, form)).collect::<Result<_, _>>()?;
    Ok(VmFunction { name: name.clone(), params, register_file_size: registers, instructions, param_devices })
}

fn read_instruction(reader: &mut Reader<'_>, form: Form) -> Result<Instruction, ReadError> {
    let at = reader.position();
    let words = reader.i64_list()?;
    let [check, opcode, fields @ ..] = words.as_slice() else {
        return Err(reader.error_at(at, Problem::Other("an instruction without opcode".into())));
    };
    if check_word(*opcode, fields) != *check {
        return Err(reader.error_at(at, Problem::Other(format!("Found mismatch in hash for opcode: {opcode}"))));
    }
    Instruction::decode(form, *opcode, fields).ok_or_else(|| {
        let problem = format!("the fields {fields:?} do not fit opcode {opcode} in the form of {form}");
        reader.error_at(at, Problem::Other(problem))
    })
}

/// Before 0.9 devices are named by their kind: each kind becomes a device of the program.
fn devices_of_kinds(executable: &mut Executable) {
    let mut kinds: Vec<i64> = vec![1];
    let mut place = |kind: &mut i64| {
        let at = kinds.iter().position(|k| k == kind).unwrap_or_else(|| {
            kinds.push(*kind);
            kinds.len() - 1
        });
        *kind = at as i64;
    };
    executable.constant_devices.iter_mut().for_each(&mut place);
    for function in &mut executable.functions {
        function.param_devices.iter_mut().for_each(&mut place);
        for instruction in &mut function.instructions {
            match instruction {
                Instruction::AllocStorage { device, .. } => place(device),
                Instruction::DeviceCopy { src_device, dst_device, .. } => {
                    place(src_device);
                    place(dst_device);
                }
                _ => {}
            }
        }
    }
    let device = |kind: &i64| VirtualDevice { device_type: *kind as i32, device_id: 0, scope: String::new() };
    executable.virtual_devices = kinds.iter().map(device).collect();
}
