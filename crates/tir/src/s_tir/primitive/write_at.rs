//! `write_at`: what is written of a buffer in one iteration of a loop goes to a copy, which is written back behind.
//!
//! ```text
//! for i_0 in range(8):                              for i_0 in range(8):
//!     for i_1, j, k in T.grid(8, 40, 48):               for i_1, j, k in T.grid(8, 40, 48):
//!         C[i_0 * 8 + i_1, j] += …             ->           C_shared[i_0 * 8 + i_1, j] += …
//!                                                       for ax0, ax1 in T.grid(8, 40):
//!                                                           C[i_0 * 8 + ax0, ax1] = C_shared[i_0 * 8 + ax0, ax1]
//! ```
//!
//! All blocks under the loop that write the buffer write to the copy; blocks behind them read the original. The box that is
//! written back must be written whole: at single axes, without conditions, and by blocks that do not read it first. See
//! [`super::copy_at`] for the block that copies.

use relaxide_ffi::Ref;
use relaxide_ir::Buffer;
use relaxide_ir::prim::free_vars;

use super::copy_at::AtLoop;
use super::structure::{loops_around, nth_buffer};
use crate::analysis::affine::bindings_of;
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::scope::Scope;
use crate::s_tir::state::NodeId;
use crate::s_tir::step::{Call, loop_operand, operand};
use crate::s_tir::{LoopRV, SBlockRV, Schedule, ScheduleError, StepError, Value};

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "WriteAt",
    method: "write_at",
    is_pure: false,
    params: &[
        Param::Input("loop"),
        Param::Input("block"),
        Param::Attr("write_buffer_index"),
        Param::Attr("storage_scope"),
    ],
    results: Results::One,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let (at, block) = (sch.loop_ref(&call.loop_(0)?)?, sch.block_ref(&call.block(1)?)?);
    let (here, storage) = (AtLoop::new(&at, &block)?, call.str(1)?.to_string());
    let (tree, root) = (&at.tree, at.scope()?);
    let scope = Scope::new(tree, root);
    let own = block.realize()?;
    let buffer = nth_buffer(&own.block, call.int(0)?, &own.block.writes, "writes")?.buffer.clone();
    let blocks = here.blocks();
    let writers: Vec<(usize, NodeId)> = blocks.iter().copied().filter(|(_, id)| scope.writes(*id, &buffer)).collect();
    let last = writers.iter().map(|(at, _)| *at).max().unwrap_or(0);
    let readers: Vec<NodeId> =
        blocks.iter().filter(|(at, id)| *at <= last && scope.reads(*id, &buffer)).map(|(_, id)| *id).collect();
    if let Some(n) = readers.first().and_then(|id| tree.as_block(*id)) {
        let reason = format!(
            "block `{}` reads buffer `{}` before it is written back, elements of other iterations perhaps",
            n.block.name, buffer.name
        );
        return Err(ScheduleError::at_block(&n.block, reason)
            .with_help("write_at before a reduction is decomposed, or cache_inplace"));
    }
    let ids: Vec<NodeId> = writers.iter().map(|(_, id)| *id).collect();
    for id in &ids {
        check_whole(&here, *id, &buffer)?;
    }
    if ids.len() > 1 {
        let reason = format!("several blocks under loop `{}` write buffer `{}`", here.loop_.var.name, buffer.name);
        return Err(ScheduleError::at_loop(&here.loop_, reason).with_help("choose a loop around one of them"));
    }
    here.insert(sch, &buffer, &ids, true, &storage, last + 1)
}

/// A block writes every element of the box that it writes in one iteration of the loop.
fn check_whole(here: &AtLoop<'_>, id: NodeId, buffer: &Ref<Buffer>) -> Result<(), ScheduleError> {
    let tree = &here.place.tree;
    let n = tree.as_block(id).ok_or(ScheduleError::Expired { what: "block" })?;
    let refuse = |why: &str| {
        let reason =
            format!("block `{}` may leave gaps in what it writes of buffer `{}`: {why}", n.block.name, buffer.name);
        ScheduleError::at_block(&n.block, reason).with_help("cache_write makes a copy of all that is written")
    };
    if !n.predicate.is_int(1) {
        return Err(refuse("it is executed under a condition"));
    }
    if !tree.child_blocks(id).is_empty() {
        return Err(refuse("it holds blocks"));
    }
    let loops = loops_around(tree, id);
    let at = loops.iter().position(|l| l.var == here.loop_.var).map_or(0, |at| at + 1);
    let bindings = bindings_of(n, &loops).map_err(|_| refuse("its axes are no sums of parts of loops"))?;
    let inner = loops.get(at..).unwrap_or_default();
    for region in n.block.writes.iter().filter(|w| w.buffer == *buffer) {
        let mut seen = Vec::new();
        for range in &region.region {
            let axis = n.block.iter_vars.iter().position(|i| range.min.as_var() == Some(&i.var));
            let is_point = range.extent.is_int(1);
            match axis.and_then(|axis| Some((axis, bindings.get(axis)?))).filter(|_| is_point) {
                Some((axis, _)) if seen.contains(&axis) => return Err(refuse("one axis indexes several dimensions")),
                Some((axis, binding)) => {
                    seen.push(axis);
                    let runs = |digit: &crate::analysis::affine::Digit| inner.iter().any(|l| digit.uses(&l.var));
                    let mixed = |digit: &crate::analysis::affine::Digit| {
                        runs(digit) && free_vars(&digit.source).iter().any(|v| !inner.iter().any(|l| l.var == *v))
                    };
                    if binding.terms.iter().any(|t| mixed(&t.digit)) || binding.inner(runs).is_none() {
                        return Err(refuse(
                            "the loops inside do not run through a part of an axis that hangs together",
                        ));
                    }
                }
                None if range.min.as_int().is_some() && is_point => {}
                None => return Err(refuse("it does not write at single axes")),
            }
        }
    }
    Ok(())
}

impl Schedule {
    /// Lets what is written of a buffer in one iteration of a loop go to a copy, which is written back. The block that copies.
    pub fn write_at(
        &mut self,
        loop_: &Ref<LoopRV>,
        block: &Ref<SBlockRV>,
        write_buffer_index: i64,
        storage_scope: &str,
    ) -> Result<Ref<SBlockRV>, StepError> {
        let attrs = vec![write_buffer_index.into(), storage_scope.into()];
        self.step_block(&KIND, vec![loop_operand(loop_), operand(block)], attrs)
    }
}
