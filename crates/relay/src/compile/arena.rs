//! Storages of a stretch of code become one, in which those lie over each other that are not needed at the same time.
//!
//! ```text
//! alloc_storage r3 128 bytes                 alloc_storage r9 128 bytes
//! alloc_tensor r4 r3 offset 0                alloc_tensor r4 r9 offset 0
//! invoke_packed exp r0 r4                    invoke_packed exp r0 r4
//! alloc_storage r5 64 bytes             →    alloc_tensor r6 r9 offset 0
//! alloc_tensor r6 r5 offset 0                …
//! ```
//!
//! What is returned, moved, captured, put into data or given to a function of the program, and what another stretch reads,
//! keeps a storage of its own, as does what has no known size. So does the only one of a stretch that would take part.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::DataType;
use relaxide_relay_vm::{Alignment, Constant, Executable, Instruction, Size};

use super::CompileError;
use super::constants::{self, Constants};
use super::lines::Line;
use crate::rooms::{ALIGNMENT, Room, place};
use crate::scalar;

/// A storage of the stretch.
struct Storage {
    room: Room,
    device: i64,
    keeps: bool,
}

/// The lines with storages joined. `registers` counts those of the function; `is_own` tells the kernels of the machine itself.
pub(super) fn joined(
    lines: Vec<Line>,
    registers: &mut i64,
    constants: &mut Constants<'_>,
    is_own: &dyn Fn(i64) -> bool,
) -> Result<Vec<Line>, CompileError> {
    let stretches = stretches(&lines);
    let outside = read_elsewhere(&lines, &stretches);
    let mut moved: HashMap<i64, (i64, i64)> = HashMap::new();
    let mut arenas: HashMap<usize, Vec<Instruction>> = HashMap::new();
    for stretch in &stretches {
        let mut storages = storages(&lines[stretch.clone()], constants.executable, is_own);
        storages.retain(|register, storage| !storage.keeps && !outside.contains(register));
        let tensors = tensors_in(&lines[stretch.clone()]);
        storages.retain(|register, _| tensors.iter().all(|(dst, of)| of != register || !outside.contains(dst)));
        let mut devices: Vec<i64> = storages.values().map(|s| s.device).collect();
        devices.sort_unstable();
        devices.dedup();
        for device in devices {
            let mut members: Vec<(i64, &mut Storage)> =
                storages.iter_mut().filter(|(_, s)| s.device == device).map(|(r, s)| (*r, s)).collect();
            if members.len() < 2 {
                continue;
            }
            members.sort_by_key(|(register, _)| *register);
            let first = members.iter().map(|(_, s)| s.room.from).min().unwrap_or(0);
            let bytes = place(&mut members.iter_mut().map(|(_, s)| &mut s.room).collect::<Vec<_>>());
            let dst = *registers;
            *registers += 1;
            let (size, alignment) = (Size::Shape(vec![bytes]), Alignment::Bytes(ALIGNMENT));
            let arena = Instruction::AllocStorage { size, alignment, dtype: DataType::uint(8), device, dst };
            arenas.entry(stretch.start + first).or_default().push(arena);
            moved.extend(members.iter().map(|(register, s)| (*register, (dst, s.room.offset))));
        }
    }
    rewritten(lines, &moved, arenas, registers, constants)
}

/// Runs of lines without a jump or a place to jump to inside. A jump ends one, and so does a call of a function of the program:
/// what is needed behind it lives through all that the function does, and should not hold more than itself.
fn stretches(lines: &[Line]) -> Vec<std::ops::Range<usize>> {
    let (mut out, mut start) = (Vec::new(), 0);
    for (i, line) in lines.iter().enumerate() {
        match line {
            Line::Plain(Instruction::Invoke { .. } | Instruction::InvokeClosure { .. }) => out.push(start..i + 1),
            Line::Plain(_) => continue,
            Line::Here(_) => out.push(start..i),
            Line::Choice { .. } | Line::Goto(_) => out.push(start..i + 1),
        }
        start = i + 1;
    }
    out.push(start..lines.len());
    out
}

fn reads(line: &Line) -> Vec<i64> {
    match line {
        Line::Plain(instruction) => instruction.reads(),
        Line::Choice { test, target, .. } => vec![*test, *target],
        Line::Goto(_) | Line::Here(_) => Vec::new(),
    }
}

/// The registers that a stretch reads which are written in another.
fn read_elsewhere(lines: &[Line], stretches: &[std::ops::Range<usize>]) -> HashSet<i64> {
    let mut out = HashSet::new();
    for stretch in stretches {
        let mut written = HashSet::new();
        for line in &lines[stretch.clone()] {
            out.extend(reads(line).into_iter().filter(|register| !written.contains(register)));
            if let Line::Plain(instruction) = line {
                written.extend(instruction.writes());
            }
        }
    }
    out
}

/// Which storage each tensor of a stretch lies in.
fn tensors_in(lines: &[Line]) -> Vec<(i64, i64)> {
    let mut out: Vec<(i64, i64)> = Vec::new();
    for line in lines {
        match line {
            Line::Plain(Instruction::AllocTensor { storage, dst, .. }) => out.push((*dst, *storage)),
            Line::Plain(Instruction::ReshapeTensor { tensor, dst, .. }) => {
                if let Some((_, storage)) = out.iter().rfind(|(register, _)| register == tensor).copied() {
                    out.push((*dst, storage));
                }
            }
            _ => {}
        }
    }
    out
}

/// The storages of known size that a stretch takes, with where they are used.
fn storages(lines: &[Line], executable: &Executable, is_own: &dyn Fn(i64) -> bool) -> HashMap<i64, Storage> {
    let mut out: HashMap<i64, Storage> = HashMap::new();
    let mut holds: HashMap<i64, i64> = HashMap::new();
    let mut numbers: HashMap<i64, i64> = HashMap::new();
    for (at, line) in lines.iter().enumerate() {
        let harmless = match line {
            Line::Plain(Instruction::InvokePacked { index, .. }) => !is_own(*index),
            Line::Plain(Instruction::AllocTensor { offset, .. }) => offset.is_none_or(|r| numbers.get(&r) == Some(&0)),
            Line::Plain(Instruction::ReshapeTensor { .. } | Instruction::ShapeOf { .. }) | Line::Choice { .. } => true,
            _ => false,
        };
        for register in reads(line) {
            if let Some(storage) = holds.get(&register).and_then(|storage| out.get_mut(storage)) {
                storage.room.until = at;
                storage.keeps |= !harmless;
            }
        }
        let Line::Plain(instruction) = line else { continue };
        match instruction {
            Instruction::LoadConst { index, dst, .. } => {
                if let Some(value) = number(executable, *index) {
                    numbers.insert(*dst, value);
                }
            }
            Instruction::AllocStorage { size, dtype, device, dst, .. } => {
                let bytes = match size {
                    Size::Register(register) => numbers.get(register).copied(),
                    Size::Shape(shape) => bytes_of(shape, *dtype),
                };
                if let Some(bytes) = bytes.filter(|bytes| *bytes >= 0) {
                    out.insert(*dst, Storage { room: Room::new(bytes, at), device: *device, keeps: false });
                    holds.insert(*dst, *dst);
                }
            }
            Instruction::AllocTensor { storage: from, dst, .. }
            | Instruction::ReshapeTensor { tensor: from, dst, .. } => {
                if let Some(storage) = holds.get(from).copied() {
                    holds.insert(*dst, storage);
                }
            }
            _ => {}
        }
    }
    out
}

fn bytes_of(shape: &[i64], dtype: DataType) -> Option<i64> {
    let count = shape.iter().try_fold(1i64, |n, dim| n.checked_mul(*dim))?;
    i64::try_from(dtype.bytes_of(usize::try_from(count).ok()?)?).ok()
}

/// The number that a constant is.
fn number(executable: &Executable, index: i64) -> Option<i64> {
    match executable.constants.get(usize::try_from(index).ok()?)? {
        Constant::Immediate(tensor) if tensor.numel() == 1 => scalar::ints(tensor)?.first().copied(),
        _ => None,
    }
}

fn rewritten(
    lines: Vec<Line>,
    moved: &HashMap<i64, (i64, i64)>,
    mut arenas: HashMap<usize, Vec<Instruction>>,
    registers: &mut i64,
    constants: &mut Constants<'_>,
) -> Result<Vec<Line>, CompileError> {
    let mut out = Vec::with_capacity(lines.len());
    for (at, line) in lines.into_iter().enumerate() {
        out.extend(arenas.remove(&at).unwrap_or_default().into_iter().map(Line::Plain));
        match line {
            Line::Plain(Instruction::AllocStorage { dst, .. }) if moved.contains_key(&dst) => {}
            Line::Plain(Instruction::AllocTensor { storage, shape, dtype, dst, .. })
                if moved.contains_key(&storage) =>
            {
                let (arena, offset) = moved[&storage];
                let index = constants.index_of(&constants::scalar(offset)?, 0);
                let register = *registers;
                *registers += 1;
                out.push(Line::Plain(Instruction::LoadConst { index, device: 0, dst: register }));
                let offset = Some(register);
                out.push(Line::Plain(Instruction::AllocTensor { storage: arena, offset, shape, dtype, dst }));
            }
            other => out.push(other),
        }
    }
    // What only told sizes and offsets is not loaded any more.
    let used: HashSet<i64> = out.iter().flat_map(reads).collect();
    out.retain(|line| !matches!(line, Line::Plain(Instruction::LoadConst { dst, .. }) if !used.contains(dst)));
    Ok(out)
}
