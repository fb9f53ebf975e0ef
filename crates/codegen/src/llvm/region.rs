//! Regions of a function's text: loops and branches that are still being written, and what is computed in front of them.
//!
//! Integers that only serve indices come to nothing but instructions for LLVM to read, to find equal and to move out of loops.
//! Here a computation without effects ([`FunctionText::pure`]) is written once for each place where its value is in reach, and
//! in front of the loops that it does not depend on:
//!
//! ```text
//! for i:                     for i:
//!     for k:                     %1 = mul i, 768        # the outer region's text grows while the inner one is written
//!         a[i * 768 + k]         for k:  %2 = add %1, k
//!         b[i * 768 + k]
//! ```
//!
//! Branches are not left: what only one side needs is not computed in front of both, unless a loop inside of it is left too.

use std::collections::HashMap;

use super::function::FunctionText;
use super::value::{Ty, Val};

/// Why a region was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegionKind {
    /// The function itself.
    Function,
    /// A loop, from the branch to its header on. Says whether its own statements compute with vectors.
    Loop { vectors: bool },
    /// Both sides of a branch.
    Branch,
}

/// The text of a region, as far as it was written before the next inner region began.
#[derive(Debug)]
pub(crate) struct Region {
    kind: RegionKind,
    pub text: String,
    /// Values of computations that are in reach until the region ends, by their instruction.
    known: HashMap<String, Val>,
    /// Whether a loop inside of it has been written.
    pub has_loop: bool,
}

impl Region {
    pub fn new(kind: RegionKind) -> Region {
        Region { kind, text: String::new(), known: HashMap::new(), has_loop: false }
    }
}

impl FunctionText<'_> {
    /// Begins a region; the branch into it is its first instruction.
    pub fn open(&mut self, kind: RegionKind) {
        self.regions.push(Region::new(kind));
    }

    /// Ends the innermost region, behind its last branch.
    pub fn close(&mut self) {
        let Some(inner) = self.regions.pop() else { return };
        let outer = self.region();
        outer.has_loop |= inner.has_loop || matches!(inner.kind, RegionKind::Loop { .. });
        outer.text.push_str(&inner.text);
    }

    /// The region that is being written.
    pub fn region(&mut self) -> &mut Region {
        if self.regions.is_empty() {
            self.regions.push(Region::new(RegionKind::Function));
        }
        let last = self.regions.len() - 1;
        &mut self.regions[last]
    }

    /// How deep the innermost region is.
    pub fn depth(&self) -> u16 {
        self.regions.len().saturating_sub(1) as u16
    }

    /// The innermost loop around: its depth, whether it computes with vectors, and whether it is known to have a loop inside.
    pub fn innermost_loop(&self) -> Option<(u16, bool, bool)> {
        let loops = self.regions.iter().enumerate().rev();
        let mut has_loop = false;
        for (depth, region) in loops {
            has_loop |= region.has_loop;
            if let RegionKind::Loop { vectors } = region.kind {
                return Some((depth as u16, vectors, has_loop));
            }
        }
        None
    }

    /// What follows is reached in other ways than what was computed in this region so far.
    pub fn forget_known(&mut self) {
        self.region().known.clear();
    }

    /// A computation without effects that can be made anywhere where its operands are there: the value of an equal one that
    /// is in reach, or a new one in front of all loops that `operands` do not depend on.
    pub fn pure(&mut self, ty: Ty, operands: &[&Val], instruction: String) -> Val {
        self.place_pure(ty, operands, instruction, true)
    }

    /// The same for what may stop the process where it is not wanted: it stays where it is asked for.
    pub fn pure_here(&mut self, ty: Ty, instruction: String) -> Val {
        self.place_pure(ty, &[], instruction, false)
    }

    fn place_pure(&mut self, ty: Ty, operands: &[&Val], instruction: String, moves: bool) -> Val {
        if let Some(known) = self.regions.iter().rev().find_map(|region| region.known.get(&instruction)) {
            // One instruction makes signed and unsigned numbers.
            return Val { ty, ..known.clone() };
        }
        let innermost = self.depth();
        let operands = operands.iter().map(|operand| operand.depth.min(innermost)).max();
        let place = if moves { self.in_front_of_loops(operands.unwrap_or(innermost)) } else { innermost };
        let value = self.emit_at(place, ty, &instruction);
        if let Some(region) = self.regions.get_mut(usize::from(place)) {
            region.known.insert(instruction, value.clone());
        }
        value
    }

    /// The depth in front of the outermost loop that is deeper than `operands`; without such a loop, the innermost depth.
    fn in_front_of_loops(&self, operands: u16) -> u16 {
        let inner = self.regions.iter().enumerate().skip(usize::from(operands) + 1);
        let mut loops = inner.filter(|(_, region)| matches!(region.kind, RegionKind::Loop { .. }));
        loops.next().map_or(self.depth(), |(depth, _)| depth as u16 - 1)
    }
}
