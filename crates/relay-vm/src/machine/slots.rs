//! Which registers share a place in the frame.
//!
//! Compilers number values and not places: `deep` of `docs/performance/vm.md` has eleven registers, of which five hold something
//! at one time. A frame that is half as large is made faster, and a recursion of a million levels takes half the memory.
//!
//! A register needs its place from where the code names it first to where it names it last. This is so only if no jump goes
//! back, and nobody may see that another register had the place before: so code with jumps back, or which reads a register that
//! was not written or was killed on some way there, keeps a place for each register, and its errors.

use super::program::INTRINSICS;
use crate::executable::{Executable, VmFunction};
use crate::instruction::Instruction;

/// Functions with more registers than this are kept as they are: what is written on each way takes a bit for each register.
const MAX_REGISTERS: usize = 4096;

/// The places of a function's registers.
pub(super) struct Slots {
    place: Vec<u32>,
    /// How many places a frame has.
    pub count: u32,
    /// Whether every register that is read was written on every way there and not killed since.
    pub is_checked: bool,
}

impl Slots {
    /// The place of a register, which the verifier has checked.
    pub fn of(&self, register: i64) -> u32 {
        self.place.get(register as usize).copied().unwrap_or(register as u32)
    }

    pub fn new(executable: &Executable, function: &VmFunction) -> Slots {
        let registers = function.register_file_size as usize;
        if registers > MAX_REGISTERS || !is_written_before_read(executable, function) {
            let place = (0..registers as u32).collect();
            return Slots { place, count: registers as u32, is_checked: false };
        }
        share(function, registers)
    }
}

/// The register that a kernel's call writes, if it is one of the machine's own.
fn written_by_own(executable: &Executable, instruction: &Instruction) -> Option<i64> {
    let Instruction::InvokePacked { index, args, .. } = instruction else { return None };
    let name = executable.primitives.get(*index as usize)?;
    let own = INTRINSICS.iter().any(|(own, _, arity)| own == name && *arity == args.len());
    args.last().copied().filter(|_| own)
}

/// A set of registers.
#[derive(Clone)]
struct Set(Vec<u64>);

impl Set {
    fn put(&mut self, register: i64, is_in: bool) {
        if let Some(word) = self.0.get_mut(register as usize / 64) {
            let bit = 1 << (register as usize % 64);
            *word = if is_in { *word | bit } else { *word & !bit };
        }
    }

    fn has(&self, register: i64) -> bool {
        self.0.get(register as usize / 64).is_some_and(|word| word >> (register as usize % 64) & 1 == 1)
    }

    fn keep_common(&mut self, other: &Set) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= b);
    }
}

/// Whether no jump goes back, and every register that is read was written on every way there and not killed since.
fn is_written_before_read(executable: &Executable, function: &VmFunction) -> bool {
    let code = &function.instructions;
    let mut arriving: Vec<Option<Set>> = vec![None; code.len()];
    let mut start = Set(vec![0; (function.register_file_size as usize).div_ceil(64)]);
    (0..function.params.len()).for_each(|param| start.put(param as i64, true));
    let mut here = Some(start);
    for (pc, instruction) in code.iter().enumerate() {
        let mut written = match (here.take(), arriving[pc].take()) {
            (Some(mut a), Some(b)) => {
                a.keep_common(&b);
                a
            }
            (Some(only), None) | (None, Some(only)) => only,
            // Nothing comes here.
            (None, None) => continue,
        };
        let own = written_by_own(executable, instruction);
        let mut read = instruction.reads();
        if own.is_some() {
            read.pop();
        }
        if read.iter().any(|register| !written.has(*register)) {
            return false;
        }
        if let Some(register) = own.or(instruction.writes()) {
            written.put(register, !matches!(instruction, Instruction::KillRegister { .. }));
        }
        let mut arrive = |offset: i64, written: &Set| {
            let there =
                usize::try_from(offset).ok().filter(|offset| *offset > 0).and_then(|n| arriving.get_mut(pc + n));
            match there {
                Some(Some(others)) => others.keep_common(written),
                Some(nobody) => *nobody = Some(written.clone()),
                None => return false,
            }
            true
        };
        match instruction {
            Instruction::If { then, other, .. } => {
                if !arrive(*then, &written) || !arrive(*other, &written) {
                    return false;
                }
            }
            Instruction::Goto { offset } => {
                if !arrive(*offset, &written) {
                    return false;
                }
            }
            Instruction::Ret { .. } | Instruction::Fatal => {}
            _ => here = Some(written),
        }
    }
    true
}

/// Gives each register the lowest place that is free from where it is named first to where it is named last.
fn share(function: &VmFunction, registers: usize) -> Slots {
    let params = function.params.len();
    let mut spans: Vec<Option<(usize, usize)>> = vec![None; registers];
    // Arguments are there before the first instruction.
    spans.iter_mut().take(params).for_each(|span| *span = Some((0, 0)));
    for (pc, instruction) in function.instructions.iter().enumerate() {
        for register in instruction.reads().into_iter().chain(instruction.writes()) {
            if let Some(span) = spans.get_mut(register as usize) {
                *span = Some(span.map_or((pc, pc), |(first, _)| (first, pc)));
            }
        }
    }
    let mut order: Vec<usize> = (0..registers).filter(|r| spans[*r].is_some()).collect();
    order.sort_by_key(|register| (spans[*register].map(|span| span.0), *register));
    let mut place = vec![0; registers];
    let mut free: std::collections::BinaryHeap<std::cmp::Reverse<u32>> = Default::default();
    let mut held: std::collections::BinaryHeap<std::cmp::Reverse<(usize, u32)>> = Default::default();
    let mut count = 0;
    for register in order {
        let Some((first, last)) = spans[register] else { continue };
        // Parameters are the first in the order, so they get the first places, one each.
        while register >= params && held.peek().is_some_and(|std::cmp::Reverse((end, _))| *end < first) {
            free.extend(held.pop().map(|std::cmp::Reverse((_, slot))| std::cmp::Reverse(slot)));
        }
        let slot = free.pop().map_or_else(
            || {
                count += 1;
                count - 1
            },
            |std::cmp::Reverse(slot)| slot,
        );
        held.push(std::cmp::Reverse((last, slot)));
        place[register] = slot;
    }
    Slots { place, count, is_checked: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(params: usize, registers: i64, instructions: Vec<Instruction>) -> VmFunction {
        let params: Vec<String> = (0..params).map(|i| format!("p{i}")).collect();
        let param_devices = vec![0; params.len()];
        VmFunction { name: "f".into(), params, register_file_size: registers, instructions, param_devices }
    }

    fn places(function: &VmFunction) -> (Vec<u32>, u32) {
        let slots = Slots::new(&Executable::default(), function);
        (slots.place, slots.count)
    }

    #[test]
    fn registers_that_are_never_needed_together_share_a_place() {
        let code = vec![
            Instruction::GetField { object: 0, index: 0, dst: 2 },
            Instruction::GetField { object: 2, index: 0, dst: 3 },
            Instruction::GetField { object: 3, index: 0, dst: 4 },
            Instruction::Ret { result: 4 },
        ];
        assert_eq!(places(&function(2, 5, code)), (vec![0, 1, 2, 0, 1], 3));
    }

    #[test]
    fn code_with_jumps_back_keeps_a_place_for_each() {
        let code = vec![
            Instruction::Move { from: 0, dst: 1 },
            Instruction::Move { from: 1, dst: 2 },
            Instruction::Goto { offset: -1 },
        ];
        assert_eq!(places(&function(1, 3, code)), (vec![0, 1, 2], 3));
    }

    #[test]
    fn what_is_written_on_one_way_only_keeps_a_place_for_each() {
        let branch = |written: i64| {
            vec![
                Instruction::LoadConsti { value: 0, dst: 1 },
                Instruction::If { test: 1, target: 1, then: 1, other: 2 },
                Instruction::Move { from: 0, dst: written },
                Instruction::Move { from: 0, dst: 3 },
                Instruction::Ret { result: 3 },
            ]
        };
        assert_eq!(places(&function(1, 4, branch(2))).1, 2);
        let mut read = branch(2);
        read[3] = Instruction::Move { from: 2, dst: 3 };
        assert_eq!(places(&function(1, 4, read)), (vec![0, 1, 2, 3], 4));
        let killed = vec![Instruction::KillRegister { dst: 0 }, Instruction::Ret { result: 0 }];
        assert_eq!(places(&function(1, 2, killed)), (vec![0, 1], 2));
    }
}
