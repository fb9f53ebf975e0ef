//! `read_at`: what is read of a buffer in one iteration of a loop is copied first, and read from the copy.
//!
//! ```text
//! for i_0 in range(8):                              for i_0 in range(8):
//!     for i_1, j, k in T.grid(8, 40, 48):               for ax0, ax1 in T.grid(8, 48):
//!         C[…] = C[…] + A[i_0 * 8 + i_1, k]    ->           A_shared[i_0 * 8 + ax0, ax1] = A[i_0 * 8 + ax0, ax1]
//!                                                       for i_1, j, k in T.grid(8, 40, 48):
//!                                                           C[…] = C[…] + A_shared[i_0 * 8 + i_1, k]
//! ```
//!
//! All blocks under the loop read the copy. What writes the buffer there stands in front of them, and the copy between. See
//! [`super::copy_at`] for the block that copies.

use relaxide_ffi::Ref;

use super::copy_at::AtLoop;
use super::structure::nth_buffer;
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::scope::Scope;
use crate::s_tir::state::NodeId;
use crate::s_tir::step::{Call, loop_operand, operand};
use crate::s_tir::{LoopRV, SBlockRV, Schedule, ScheduleError, StepError, Value};

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "ReadAt",
    method: "read_at",
    is_pure: false,
    params: &[
        Param::Input("loop"),
        Param::Input("block"),
        Param::Attr("read_buffer_index"),
        Param::Attr("storage_scope"),
    ],
    results: Results::One,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let (at, block) = (sch.loop_ref(&call.loop_(0)?)?, sch.block_ref(&call.block(1)?)?);
    let (here, storage) = (AtLoop::new(&at, &block)?, call.str(1)?.to_string());
    let scope = Scope::new(&at.tree, at.scope()?);
    let own = block.realize()?;
    let buffer = nth_buffer(&own.block, call.int(0)?, &own.block.reads, "reads")?.buffer.clone();
    let blocks = here.blocks();
    let readers: Vec<(usize, NodeId)> = blocks.iter().copied().filter(|(_, id)| scope.reads(*id, &buffer)).collect();
    let writers = blocks.iter().filter(|(_, id)| scope.writes(*id, &buffer)).map(|(at, _)| *at);
    let first = readers.iter().map(|(at, _)| *at).min().unwrap_or(0);
    if writers.max().is_some_and(|last| last >= first) {
        let reason = format!(
            "buffer `{}` is written under loop `{}` where or after it is read",
            buffer.name, here.loop_.var.name
        );
        return Err(ScheduleError::at_loop(&here.loop_, reason).with_help("choose a loop further in, or cache_read"));
    }
    let ids: Vec<NodeId> = readers.iter().map(|(_, id)| *id).collect();
    here.insert(sch, &buffer, &ids, false, &storage, first)
}

impl Schedule {
    /// Copies what is read of a buffer in one iteration of a loop, and lets blocks read the copy. The block that copies.
    pub fn read_at(
        &mut self,
        loop_: &Ref<LoopRV>,
        block: &Ref<SBlockRV>,
        read_buffer_index: i64,
        storage_scope: &str,
    ) -> Result<Ref<SBlockRV>, StepError> {
        let attrs = vec![read_buffer_index.into(), storage_scope.into()];
        self.step_block(&KIND, vec![loop_operand(loop_), operand(block)], attrs)
    }
}
