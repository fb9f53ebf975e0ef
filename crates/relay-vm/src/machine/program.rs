//! Code in the form that runs: decoded once, jumps made absolute, tail calls found.
//!
//! A call whose result the function returns, perhaps behind moves, jumps and forgotten registers, takes the frame of its
//! caller. What `GetTag` and `LoadConsti` make stays a plain integer where only `If` looks at it, and becomes a tensor, as
//! the document has it, where anything else does.

use relaxide_ffi::{Any, DataType};

use super::compact::{Numbers, compact};
use super::slots::Slots;
use crate::executable::{Constant, Executable, VmFunction};
use crate::instruction::{Alignment, Instruction, Size};

/// The mark of a register in a list that is not read again: its value is moved, not shared.
const LAST: u32 = 1 << 31;

/// The value of a register of a list of [`Decoded::AllocAdt`], [`Decoded::AllocClosure`] and calls.
#[inline]
pub(super) fn passed(registers: &mut [Any], listed: u32) -> Any {
    let register = &mut registers[(listed & !LAST) as usize];
    if listed & LAST == 0 { register.clone() } else { std::mem::take(register) }
}

/// Where a tensor begins in its storage.
#[derive(Clone, Copy, Debug)]
pub(super) enum Offset {
    Known(i64),
    Register(u32),
}

/// A range of a function's lists of registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Args {
    start: u32,
    count: u32,
}

/// What the machine does itself where a program calls a kernel of this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intrinsic {
    Create,
    Read,
    Write,
}

/// Names of kernels that are the machine's own: references, which the document's machine does not have.
pub(super) const INTRINSICS: &[(&str, Intrinsic, usize)] = &[
    ("relay.vm.ref_create", Intrinsic::Create, 2),
    ("relay.vm.ref_read", Intrinsic::Read, 2),
    ("relay.vm.ref_write", Intrinsic::Write, 3),
];

/// One operation: an instruction, or several in one (`Case`: whether a value has a tag; `IfIs`: whether an integer is this one).
#[derive(Clone, Debug)]
pub(super) enum Decoded {
    Move { from: u32, dst: u32 },
    Ret { result: u32 },
    Call { func: u32, dst: u32, args: Args },
    TailCall { func: u32, args: Args },
    CallClosure { closure: u32, dst: u32, args: Args },
    TailClosure { closure: u32, args: Args },
    Packed { index: u32, outputs: u32, args: Args },
    Intrinsic { kind: Intrinsic, args: Args },
    AllocTensor { storage: u32, offset: Offset, shape: Box<[i64]>, dtype: DataType, dst: u32 },
    AllocTensorReg { storage: u32, offset: Offset, shape: u32, dtype: DataType, dst: u32 },
    AllocAdt { tag: i32, dst: u32, args: Args },
    AllocClosure { func: u32, dst: u32, args: Args },
    GetField { object: u32, index: usize, dst: u32 },
    If { test: u32, target: u32, then: u32, other: u32 },
    Case { object: u32, tag: i32, then: u32, other: u32 },
    IfIs { test: u32, value: i32, then: u32, other: u32 },
    LoadConst { index: u32, device: u32, dst: u32 },
    Goto { target: u32 },
    GetTag { object: u32, dst: u32, plain: bool },
    LoadInt { value: i64, dst: u32, plain: bool },
    Fatal,
    AllocStorage { bytes: Bytes, alignment: Option<u32>, device: u32, dst: u32 },
    ShapeOf { tensor: u32, dst: u32 },
    Reshape { tensor: u32, shape: u32, dst: u32 },
    DeviceCopy { src: u32, from: u32, to: u32, dst: u32 },
    Kill { dst: u32 },
}

/// How large a storage is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bytes {
    Known(usize),
    Register(u32),
    /// More than there is an address for: making it fails.
    TooLarge,
}

/// A function.
#[derive(Debug)]
pub(super) struct Code {
    pub ops: Vec<Decoded>,
    /// The instruction that each operation came of.
    pub origin: Vec<u32>,
    lists: Vec<u32>,
    pub registers: u32,
}

impl Code {
    #[inline]
    pub fn list(&self, args: Args) -> &[u32] {
        self.lists.get(args.start as usize..(args.start + args.count) as usize).unwrap_or_default()
    }
}

/// The element type in memory: what is an unsigned integer of one bit on disk is a bool.
fn in_memory(dtype: DataType) -> DataType {
    if dtype.code == DataType::UINT && dtype.bits == 1 { DataType::bool().with_lanes(dtype.lanes) } else { dtype }
}

/// Decodes the functions of a verified executable.
pub(super) fn decode(executable: &Executable) -> Vec<Code> {
    executable.functions.iter().map(|function| decode_function(executable, function)).collect()
}

fn decode_function(executable: &Executable, function: &VmFunction) -> Code {
    let facts = Facts {
        plain: plain_registers(function),
        numbers: numbers(executable, function),
        slots: Slots::new(executable, function),
    };
    let mut code = Code {
        ops: Vec::with_capacity(function.instructions.len()),
        origin: Vec::new(),
        lists: Vec::new(),
        registers: facts.slots.count,
    };
    for (pc, instruction) in function.instructions.iter().enumerate() {
        let op = decode_one(executable, function, &facts, &mut code.lists, pc, instruction);
        code.ops.push(op);
    }
    for listed in &mut code.lists {
        *listed = facts.slots.of(i64::from(*listed & !LAST)) | *listed & LAST;
    }
    let (read, holds_number) = (reads_of(function), number_registers(function, &facts.plain));
    let written = |pc: usize| function.instructions[pc].writes().map(|register| register as usize);
    let numbers = Numbers {
        only_here: &|pc| written(pc).is_some_and(|register| read[register] == 1),
        // Nobody sees that such a number stays, since nothing is read that was forgotten.
        forgets_number: &|pc| facts.slots.is_checked && written(pc).is_some_and(|register| holds_number[register]),
    };
    (code.ops, code.origin) = compact(code.ops, &numbers);
    code
}

/// How often each register is read.
fn reads_of(function: &VmFunction) -> Vec<usize> {
    let mut count = vec![0; function.register_file_size as usize];
    for register in function.instructions.iter().flat_map(Instruction::reads) {
        count[register as usize] += 1;
    }
    count
}

/// The registers that hold plain integers and nothing else.
fn number_registers(function: &VmFunction, plain: &[bool]) -> Vec<bool> {
    let mut holds = plain.to_vec();
    holds.iter_mut().take(function.params.len()).for_each(|flag| *flag = false);
    for instruction in &function.instructions {
        let writes_number = matches!(
            instruction,
            Instruction::GetTag { .. } | Instruction::LoadConsti { .. } | Instruction::KillRegister { .. }
        );
        if let Some(register) = instruction.writes().filter(|_| !writes_number) {
            holds[register as usize] = false;
        }
    }
    holds
}

/// The registers that only `If` reads, so that they may hold plain integers.
fn plain_registers(function: &VmFunction) -> Vec<bool> {
    let mut plain = vec![true; function.register_file_size as usize];
    for instruction in &function.instructions {
        if matches!(instruction, Instruction::If { .. }) {
            continue;
        }
        for register in instruction.reads() {
            if let Some(flag) = plain.get_mut(register as usize) {
                *flag = false;
            }
        }
    }
    plain
}

/// What is known of a function's registers.
struct Facts {
    slots: Slots,
    plain: Vec<bool>,
    /// The number that a register holds wherever it holds anything, and whether only memory is taken by it.
    numbers: Vec<Option<(i64, bool)>>,
}

/// The registers that hold a constant number: they are written once, by a load of it.
fn numbers(executable: &Executable, function: &VmFunction) -> Vec<Option<(i64, bool)>> {
    let count = function.register_file_size as usize;
    let mut writes = vec![0usize; count];
    writes.iter_mut().take(function.params.len()).for_each(|n| *n = 1);
    let mut found: Vec<Option<(i64, bool)>> = vec![None; count];
    for instruction in &function.instructions {
        let written = match instruction {
            Instruction::KillRegister { .. } => None,
            // What the machine does itself writes the last of its arguments.
            Instruction::InvokePacked { args, .. } => args.last().copied(),
            other => other.writes(),
        };
        let Some(register) = written.and_then(|r| usize::try_from(r).ok()).filter(|r| *r < count) else { continue };
        writes[register] += 1;
        if let Instruction::LoadConst { index, .. } = instruction
            && let Some(Constant::Immediate(tensor)) =
                usize::try_from(*index).ok().and_then(|i| executable.constants.get(i))
            && tensor.dtype() == DataType::int(64)
            && tensor.numel() == 1
        {
            found[register] = tensor.to_vec::<i64>().ok().and_then(|v| v.first().copied()).map(|value| (value, true));
        }
    }
    for instruction in &function.instructions {
        let memory = match instruction {
            Instruction::AllocTensor { offset, .. } | Instruction::AllocTensorReg { offset, .. } => *offset,
            Instruction::AllocStorage { size: Size::Register(register), .. } => Some(*register),
            _ => None,
        };
        let mut own = memory;
        for register in instruction.reads() {
            if own == Some(register) {
                own = None;
            } else if let Some(Some((_, only))) = usize::try_from(register).ok().and_then(|r| found.get_mut(r)) {
                *only = false;
            }
        }
    }
    found.iter().zip(writes).map(|(number, writes)| number.filter(|_| writes == 1)).collect()
}

/// Marks the registers of a list that the function does not read again: all where its frame ends, else those that are killed
/// behind the instruction. One that stands twice is marked where it stands last.
fn mark_last(function: &VmFunction, pc: usize, frame_ends: bool, list: &mut [u32]) {
    let killed: Vec<u32> = function.instructions[pc + 1..]
        .iter()
        .map_while(|i| if let Instruction::KillRegister { dst } = i { Some(*dst as u32) } else { None })
        .collect();
    for i in 0..list.len() {
        let register = list[i];
        let again = list[i + 1..].contains(&register);
        if !again && (frame_ends || killed.contains(&register)) {
            list[i] |= LAST;
        }
    }
}

fn decode_one(
    executable: &Executable,
    function: &VmFunction,
    facts: &Facts,
    lists: &mut Vec<u32>,
    pc: usize,
    instruction: &Instruction,
) -> Decoded {
    let mut list = |registers: &[i64]| {
        let start = lists.len() as u32;
        lists.extend(registers.iter().map(|r| *r as u32));
        Args { start, count: registers.len() as u32 }
    };
    let at = |register: i64| facts.slots.of(register);
    let target = |offset: i64| (pc as i64 + offset) as u32;
    let is_plain = |dst: i64| facts.plain.get(dst as usize).copied().unwrap_or(false);
    let number = |register: i64| facts.numbers.get(register as usize).copied().flatten();
    let offset_of = |register: Option<i64>| match register {
        None => Offset::Known(0),
        Some(register) => number(register).map_or(Offset::Register(at(register)), |(value, _)| Offset::Known(value)),
    };
    match instruction {
        Instruction::Move { from, dst } => Decoded::Move { from: at(*from), dst: at(*dst) },
        Instruction::Ret { result } => Decoded::Ret { result: at(*result) },
        Instruction::Invoke { func, dst, args } => {
            let tail = is_tail(function, pc, *dst);
            let (func, args) = (*func as u32, list(args));
            mark_last(function, pc, tail, &mut lists[args.start as usize..]);
            if tail { Decoded::TailCall { func, args } } else { Decoded::Call { func, dst: at(*dst), args } }
        }
        Instruction::InvokeClosure { closure, dst, args } => {
            let tail = is_tail(function, pc, *dst);
            let (closure, args) = (at(*closure), list(args));
            mark_last(function, pc, tail, &mut lists[args.start as usize..]);
            match tail {
                true => Decoded::TailClosure { closure, args },
                false => Decoded::CallClosure { closure, dst: at(*dst), args },
            }
        }
        Instruction::InvokePacked { index, outputs, args } => {
            let name = executable.primitives.get(*index as usize).map_or("", String::as_str);
            let own = INTRINSICS.iter().find(|(own, _, arity)| *own == name && *arity == args.len());
            match own {
                Some((_, kind, _)) => Decoded::Intrinsic { kind: *kind, args: list(args) },
                None => Decoded::Packed { index: *index as u32, outputs: *outputs as u32, args: list(args) },
            }
        }
        Instruction::AllocTensor { storage, offset, shape, dtype, dst } => Decoded::AllocTensor {
            storage: at(*storage),
            offset: offset_of(*offset),
            shape: shape.clone().into_boxed_slice(),
            dtype: in_memory(*dtype),
            dst: at(*dst),
        },
        Instruction::AllocTensorReg { storage, offset, shape, dtype, dst } => Decoded::AllocTensorReg {
            storage: at(*storage),
            offset: offset_of(*offset),
            shape: at(*shape),
            dtype: in_memory(*dtype),
            dst: at(*dst),
        },
        Instruction::AllocAdt { tag, dst, fields } => {
            let args = list(fields);
            mark_last(function, pc, false, &mut lists[args.start as usize..]);
            Decoded::AllocAdt { tag: *tag as i32, dst: at(*dst), args }
        }
        Instruction::AllocClosure { func, dst, free } => {
            let args = list(free);
            mark_last(function, pc, false, &mut lists[args.start as usize..]);
            Decoded::AllocClosure { func: *func as u32, dst: at(*dst), args }
        }
        Instruction::GetField { object, index, dst } => {
            Decoded::GetField { object: at(*object), index: *index as usize, dst: at(*dst) }
        }
        Instruction::If { test, target: with, then, other } => {
            Decoded::If { test: at(*test), target: at(*with), then: target(*then), other: target(*other) }
        }
        // Who takes memory by the number knows it already.
        Instruction::LoadConst { dst, .. } if number(*dst).is_some_and(|(_, only)| only) => {
            Decoded::Goto { target: pc as u32 + 1 }
        }
        Instruction::LoadConst { index, dst, .. } => {
            // The device is that of the constant, which the instruction repeats from 0.14 on.
            let device = executable.constant_devices.get(*index as usize).copied().unwrap_or(0);
            Decoded::LoadConst { index: *index as u32, device: device as u32, dst: at(*dst) }
        }
        Instruction::Goto { offset } => Decoded::Goto { target: target(*offset) },
        Instruction::GetTag { object, dst } => {
            Decoded::GetTag { object: at(*object), dst: at(*dst), plain: is_plain(*dst) }
        }
        Instruction::LoadConsti { value, dst } => {
            Decoded::LoadInt { value: *value, dst: at(*dst), plain: is_plain(*dst) }
        }
        Instruction::Fatal => Decoded::Fatal,
        Instruction::AllocStorage { size, alignment, dtype, device, dst } => Decoded::AllocStorage {
            bytes: match size {
                Size::Register(register) => match number(*register) {
                    Some((bytes, _)) => usize::try_from(bytes).map_or(Bytes::TooLarge, Bytes::Known),
                    None => Bytes::Register(at(*register)),
                },
                Size::Shape(shape) => bytes_of(shape, *dtype),
            },
            alignment: if let Alignment::Register(r) = alignment { Some(at(*r)) } else { None },
            device: *device as u32,
            dst: at(*dst),
        },
        Instruction::ShapeOf { tensor, dst } => Decoded::ShapeOf { tensor: at(*tensor), dst: at(*dst) },
        Instruction::ReshapeTensor { tensor, shape, dst } => {
            Decoded::Reshape { tensor: at(*tensor), shape: at(*shape), dst: at(*dst) }
        }
        Instruction::DeviceCopy { src, src_device, dst_device, dst } => {
            Decoded::DeviceCopy { src: at(*src), from: *src_device as u32, to: *dst_device as u32, dst: at(*dst) }
        }
        Instruction::KillRegister { dst } => Decoded::Kill { dst: at(*dst) },
    }
}

fn bytes_of(shape: &[i64], dtype: DataType) -> Bytes {
    let elements = shape.iter().try_fold(1usize, |n, dim| n.checked_mul(usize::try_from(*dim).ok()?));
    elements.and_then(|n| in_memory(dtype).bytes_of(n)).map_or(Bytes::TooLarge, Bytes::Known)
}

/// Whether what a call returns into a register is what the function returns.
fn is_tail(function: &VmFunction, pc: usize, dst: i64) -> bool {
    let (mut pc, mut held) = (pc as i64 + 1, dst);
    for _ in 0..function.instructions.len() {
        let next = usize::try_from(pc).ok().and_then(|pc| function.instructions.get(pc));
        match next {
            Some(Instruction::Ret { result }) => return *result == held,
            Some(Instruction::Move { from, dst }) if *from == held => held = *dst,
            Some(Instruction::KillRegister { dst }) if *dst != held => {}
            Some(Instruction::Goto { offset }) => pc += *offset - 1,
            _ => return false,
        }
        pc += 1;
    }
    false
}
