//! `reindex_cache_write`: a block writes to a buffer of its own, at indices that a map of its axes gives, which is copied
//! behind it.
//!
//! ```text
//! for i, j in T.grid(128, 128):                              for i, j in T.grid(128, 128):
//!     B[vi, vj] = A[vi, vj] * 2   -- lambda i, j: (j, i) ->      B_local[vj, vi] = A[vi, vj] * 2
//!                                                            for i, j in T.grid(128, 128):
//!                                                                B[vi, vj] = B_local[vj, vi]
//! ```
//!
//! Those that read the buffer go on reading the original. The block alone writes it, where its spatial axes say, and runs
//! through all of their values. See [`super::reindexed_copy`] for which maps are legal.

use relaxide_ffi::Ref;
use relaxide_ir::prim::free_vars;

use super::caching::{behind, check_runs_through, only_writer};
use super::reindexed_copy::ReindexedCopy;
use super::structure::{free_name, nth_buffer};
use super::transform_layout::map_operand;
use crate::IndexMap;
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::scope::Scope;
use crate::s_tir::state::NodeId;
use crate::s_tir::step::{Call, operand};
use crate::s_tir::{SBlockRV, Schedule, ScheduleError, StepError, Value};
use crate::stmt::IterKind;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "ReindexCacheWrite",
    method: "reindex_cache_write",
    is_pure: false,
    params: &[
        Param::Input("block"),
        Param::Attr("write_buffer_index"),
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
    let refuse = |reason: String| ScheduleError::at_block(block, reason);
    let region = nth_buffer(block, call.int(0)?, &block.writes, "writes")?;
    if !tree.node(place.node).children.is_empty() {
        let reason = format!("block `{}` holds loops or blocks, which its accesses may depend on", block.name);
        return Err(refuse(reason).with_help("make the copy before a block is made of iterations"));
    }
    let scope = Scope::new(tree, root);
    only_writer(&scope, tree, &region.buffer)?;
    if let (Some(a), Some(b)) = (scope.why_not_complete(place.node), scope.why_not_reduction(place.node)) {
        return Err(refuse(format!(
            "block `{}` is neither a complete block ({a}) nor a reduction block ({b})",
            block.name
        )));
    }
    check_runs_through(tree, &realize, place.node)?;
    let used: Vec<_> = region.region.iter().flat_map(|r| free_vars(&r.min)).collect();
    if block.iter_vars.iter().any(|i| used.contains(&i.var) == (i.kind == IterKind::Reduce) && !i.extent.is_int(1)) {
        let reason = format!(
            "where block `{}` writes in `{}` does not depend on just its spatial axes",
            block.name, region.buffer.name
        );
        return Err(refuse(reason));
    }
    let users: Vec<NodeId> =
        scope.children.iter().copied().filter(|id| *id != place.node && scope.reads(*id, &region.buffer)).collect();
    let name = free_name(&*sch.func(&place.func)?, tree, format!("{}_{storage}", region.buffer.name));
    let copy = ReindexedCopy::new(&realize, &region, &map, name, &storage)?;
    let spot = behind(tree, root, place.node, &users, block)?;
    copy.insert(sch, &place, spot, false)
}

impl Schedule {
    /// Lets a block write to a buffer of its own, at the indices that a map of its axes gives. The block that copies it.
    pub fn reindex_cache_write(
        &mut self,
        block: &Ref<SBlockRV>,
        write_buffer_index: i64,
        storage_scope: &str,
        map: &Ref<IndexMap>,
    ) -> Result<Ref<SBlockRV>, StepError> {
        let attrs = vec![write_buffer_index.into(), storage_scope.into()];
        self.step_block(&KIND, vec![operand(block), map_operand(map)], attrs)
    }
}
