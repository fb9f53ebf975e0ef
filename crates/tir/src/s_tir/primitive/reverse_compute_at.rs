//! `reverse_compute_at`: a block is computed where its operands are made, under a loop around all that write them.
//!
//! ```text
//! for i, j in T.grid(64, 64):                  for i in range(64):
//!     B[i, j] = A[i, j] * 2                        for j in range(64):
//! for i, j in T.grid(64, 64):           ->             B[i, j] = A[i, j] * 2
//!     C[i, j] = B[i, j] + 1                        for ax0 in range(64):
//!                                                      C[i, ax0] = B[i, ax0] + 1
//! ```
//!
//! The block must be complete or a reduction, and what it reads must be finished in each iteration of the loop: a reduction
//! whose loop is around that place still adds to it. See [`super::moving`] for which elements are computed.

use relaxide_ffi::Ref;

use super::moving::{Way, move_block};
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::step::{Call, loop_operand, operand};
use crate::s_tir::{LoopRV, SBlockRV, Schedule, ScheduleError, StepError, UnitLoops, Value};

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "ReverseComputeAt",
    method: "reverse_compute_at",
    is_pure: false,
    params: &[Param::Input("block"), Param::Input("loop"), Param::Attr("preserve_unit_loops"), Param::Attr("index")],
    results: Results::None,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    move_block(sch, Way::ToProducers, &call.block(0)?, &call.loop_(1)?, call.flag(0)?, call.int(1)?)?;
    Ok(Vec::new())
}

impl Schedule {
    /// Moves a block under a loop around all of its producers. `index` is
    /// the place among the loop's statements, -1 the last and -2 the first that is right.
    pub fn reverse_compute_at(
        &mut self,
        block: &Ref<SBlockRV>,
        loop_: &Ref<LoopRV>,
        unit_loops: UnitLoops,
        index: i64,
    ) -> Result<(), StepError> {
        let attrs = vec![(unit_loops == UnitLoops::Kept).into(), index.into()];
        self.step_only(&KIND, vec![operand(block), loop_operand(loop_)], attrs)
    }
}
