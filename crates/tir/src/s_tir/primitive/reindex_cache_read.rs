//! `reindex_cache_read`: a block reads a copy of a buffer, at indices that a map of its axes gives.
//!
//! ```text
//! for i, j in T.grid(128, 128):                              for i, j in T.grid(128, 128):
//!     B[vi, vj] = A[vi, vj] * 2   -- lambda i, j: (j, i) ->      A_local[vj, vi] = A[vi, vj]
//!                                                            for i, j in T.grid(128, 128):
//!                                                                B[vi, vj] = A_local[vj, vi] * 2
//! ```
//!
//! The copy is made in front of the block, under the innermost loop around it and what writes the buffer; first of all where
//! nothing does. See [`super::reindexed_copy`] for which maps are legal.

use relaxide_ffi::Ref;

use super::caching::{Spot, only_writer};
use super::reindexed_copy::ReindexedCopy;
use super::structure::{around_all, body_list, free_name, holds, nth_buffer};
use super::transform_layout::map_operand;
use crate::IndexMap;
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::scope::Scope;
use crate::s_tir::step::{Call, operand};
use crate::s_tir::{SBlockRV, Schedule, ScheduleError, StepError, Value};
use crate::stmt::Stmt;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "ReindexCacheRead",
    method: "reindex_cache_read",
    is_pure: false,
    params: &[
        Param::Input("block"),
        Param::Attr("read_buffer_index"),
        Param::Attr("storage_scope"),
        Param::Input("index_map"),
    ],
    results: Results::One,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let place = sch.block_ref(&call.block(0)?)?;
    let map: Ref<IndexMap> = call.input_object(1)?;
    let (realize, storage) = (place.realize()?, call.str(1)?.to_string());
    let (tree, root, block) = (&place.tree, place.scope()?, &realize.block);
    let region = nth_buffer(block, call.int(0)?, &block.reads, "reads")?;
    if !tree.node(place.node).children.is_empty() {
        let reason = format!("block `{}` holds loops or blocks, which its accesses may depend on", block.name);
        return Err(
            ScheduleError::at_block(block, reason).with_help("make the copy before a block is made of iterations")
        );
    }
    let writer = only_writer(&Scope::new(tree, root), tree, &region.buffer)?;
    if block.writes.iter().any(|w| w.buffer == region.buffer) {
        let reason = format!("block `{}` writes buffer `{}` as well", block.name, region.buffer.name);
        return Err(ScheduleError::at_block(block, reason).with_help("cache_inplace makes a copy that is written back"));
    }
    let name = free_name(&*sch.func(&place.func)?, tree, format!("{}_{storage}", region.buffer.name));
    let copy = ReindexedCopy::new(&realize, &region, &map, name, &storage)?;
    let spot = match writer.and_then(|writer| around_all(tree, &[writer, place.node])) {
        Some(parent) => {
            let list = body_list(&tree.node(parent).stmt);
            let at = |stmt: &Stmt| list.iter().position(|s| holds(s, stmt));
            let index = at(place.stmt()).unwrap_or(0);
            if writer.and_then(|writer| at(&tree.node(writer).stmt)).is_none_or(|writer| writer >= index) {
                let reason =
                    format!("what writes buffer `{}` does not stand in front of the block", region.buffer.name);
                return Err(ScheduleError::at_block(block, reason));
            }
            Spot { parent, index }
        }
        None => Spot { parent: root, index: 0 },
    };
    copy.insert(sch, &place, spot, true)
}

impl Schedule {
    /// Makes a copy of what a block reads, at the indices that a map of its axes gives. The block that copies.
    pub fn reindex_cache_read(
        &mut self,
        block: &Ref<SBlockRV>,
        read_buffer_index: i64,
        storage_scope: &str,
        map: &Ref<IndexMap>,
    ) -> Result<Ref<SBlockRV>, StepError> {
        let attrs = vec![read_buffer_index.into(), storage_scope.into()];
        self.step_block(&KIND, vec![operand(block), map_operand(map)], attrs)
    }
}
