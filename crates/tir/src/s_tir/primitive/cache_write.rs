//! `cache_write`: a block writes to a buffer in another scope, and what it has written is copied behind it.
//!
//! ```text
//! for i, j in T.grid(64, 64):                 for i, j in T.grid(64, 64):
//!     B[i, j] = A[i, j] * 2          ->           B_local[i, j] = A[i, j] * 2
//!                                             for ax0, ax1 in T.grid(64, 64):
//!                                                 B[ax0, ax1] = B_local[ax0, ax1]
//! ```
//!
//! Blocks that read the buffer go on reading the original, but for those that are named. The block must be the only one that
//! writes the buffer. The copy stands in front of the first block that reads it. `reverse_compute_at` brings the copy to where a part is finished.

use relaxide_ffi::Ref;

use super::cache_read::{named_blocks, with_consumers};
use super::caching::{
    CopiedRegion, Element, Redirect, axes_over, behind, buffer_like, copy_nest, guarded, in_front_of_users,
    insert_stage, only_writer,
};
use super::structure::{free_name, nth_buffer};
use crate::analysis::regions::pointers_of;
use crate::functor::StmtMutator;
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::scope::Scope;
use crate::s_tir::state::NodeId;
use crate::s_tir::step::Call;
use crate::s_tir::{SBlockRV, Schedule, ScheduleError, StepError, Value};
use crate::stmt::*;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "CacheWrite",
    method: "cache_write",
    is_pure: false,
    params: &[
        Param::Input("block"),
        Param::Attr("write_buffer_index"),
        Param::Attr("storage_scope"),
        Param::Consumers("consumer_blocks"),
    ],
    results: Results::One,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let place = sch.block_ref(&call.block(0)?)?;
    let (realize, storage) = (place.realize()?, call.str(1)?.to_string());
    let buffer = nth_buffer(&realize.block, call.int(0)?, &realize.block.writes, "writes")?.buffer.clone();
    let (tree, root) = (&place.tree, place.scope()?);
    let scope = Scope::new(tree, root);
    only_writer(&scope, tree, &buffer)?;
    let named = named_blocks(sch, call, &scope, tree)?;
    let users: Vec<NodeId> =
        scope.children.iter().copied().filter(|id| *id != place.node && scope.reads(*id, &buffer)).collect();
    // Blocks that read the copy do not wait for the buffer.
    let waiting: Vec<NodeId> = users.iter().copied().filter(|id| !named.contains(id)).collect();
    let name = free_name(&*sch.func(&place.func)?, tree, format!("{}_{storage}", buffer.name));
    let spot = in_front_of_users(tree, behind(tree, root, place.node, &waiting, &realize.block)?, &waiting);
    // Who is handed the memory knows where its elements lie: the copy has all of them.
    let by_pointer =
        [place.node].iter().chain(&named).any(|id| pointers_of(&tree.node(*id).stmt).contains(&buffer.data));
    let part = match by_pointer {
        true => CopiedRegion::whole(&buffer),
        false => CopiedRegion::written(tree, root, spot, place.node, &buffer),
    };
    let copy = buffer_like(&buffer, name.clone(), &part.shape, &storage);
    let axes = axes_over(&part.shape);
    let indices: Vec<_> = axes.iter().map(|axis| (&axis.var).into()).collect();
    let originals = part.of_buffer(&indices);
    let (nest, block) =
        copy_nest(&name, axes, &part.boxes, Element::new(&copy, &indices), Element::new(&buffer, &originals));
    let nest = guarded(nest, tree, place.node, spot);
    let mut changes: Vec<(Stmt, Stmt)> = Vec::new();
    for id in [place.node].into_iter().chain(named) {
        let old = &tree.node(id).stmt;
        let mut redirect = Redirect { from: &buffer, to: &copy, stores: id == place.node, first: &part.first };
        changes.push((old.clone(), redirect.mutate_stmt(old)));
    }
    insert_stage(sch, &place, root, &changes, spot, nest, &copy)?;
    Ok(vec![Value::Block(place.func.clone(), block)])
}

impl Schedule {
    /// Lets a block write to a buffer of its own, which is copied behind it. The block that copies.
    pub fn cache_write(
        &mut self,
        block: &Ref<SBlockRV>,
        write_buffer_index: i64,
        storage_scope: &str,
        consumer_blocks: &[Ref<SBlockRV>],
    ) -> Result<Ref<SBlockRV>, StepError> {
        let attrs = vec![write_buffer_index.into(), storage_scope.into()];
        self.step_block(&KIND, with_consumers(block, consumer_blocks), attrs)
    }
}
