//! `cache_read`: blocks read a copy of a buffer, in another scope.
//!
//! ```text
//! for i, j in T.grid(64, 64):                 for ax0, ax1 in T.grid(64, 64):
//!     B[i, j] = A[i, j] * 2          ->           A_local[ax0, ax1] = A[ax0, ax1]
//!                                             for i, j in T.grid(64, 64):
//!                                                 B[i, j] = A_local[i, j] * 2
//! ```
//!
//! All blocks of the scope that read the buffer read the copy, or those that are named. The copy is made in front of
//! the first of them behind the block that writes the buffer, or first of all, where none does or all readers stand in front of it; `compute_at` brings it to where
//! it is read.

use relaxide_ffi::Ref;
use relaxide_ir::Buffer;
use relaxide_ir::attrs::AttrValue;

use super::caching::{
    CopiedRegion, Element, Redirect, Spot, all_in_front, axes_over, behind, buffer_like, copy_nest, guarded,
    in_front_of_users, insert_stage, only_writer,
};
use super::structure::{free_name, nth_buffer};
use crate::analysis::interval::Interval;
use crate::analysis::regions::pointers_of;
use crate::functor::StmtMutator;
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::scope::Scope;
use crate::s_tir::state::{NodeId, Tree};
use crate::s_tir::step::{Call, operand};
use crate::s_tir::{SBlockRV, Schedule, ScheduleError, StepError, Value};
use crate::stmt::*;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "CacheRead",
    method: "cache_read",
    is_pure: false,
    params: &[
        Param::Input("block"),
        Param::Attr("read_buffer_index"),
        Param::Attr("storage_scope"),
        Param::Consumers("consumer_blocks"),
    ],
    results: Results::One,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let place = sch.block_ref(&call.block(0)?)?;
    let (realize, storage) = (place.realize()?, call.str(1)?.to_string());
    let buffer = nth_buffer(&realize.block, call.int(0)?, &realize.block.reads, "reads")?.buffer.clone();
    let (tree, root) = (&place.tree, place.scope()?);
    let scope = Scope::new(tree, root);
    let writer = only_writer(&scope, tree, &buffer)?;
    let named = named_blocks(sch, call, &scope, tree)?;
    let reads = |id: &NodeId| scope.reads(*id, &buffer) && Some(*id) != writer;
    let users: Vec<NodeId> =
        scope.children.iter().copied().filter(|id| reads(id) && (named.is_empty() || named.contains(id))).collect();
    if users.is_empty() {
        let reason = format!("no other block than the one that writes it reads buffer `{}`", buffer.name);
        return Err(ScheduleError::at_block(&realize.block, reason));
    }
    let writer = writer.filter(|writer| !all_in_front(tree, root, *writer, &users));
    let name = free_name(&*sch.func(&place.func)?, tree, format!("{}_{storage}", buffer.name));
    // Who is handed the memory knows where its elements lie: the copy has all of them.
    let by_pointer = users.iter().any(|id| pointers_of(&tree.node(*id).stmt).contains(&buffer.data));
    let (spot, part) = match writer {
        Some(writer) => {
            let spot = in_front_of_users(tree, behind(tree, root, writer, &users, &realize.block)?, &users);
            match by_pointer {
                true => (spot, CopiedRegion::whole(&buffer)),
                false => (spot, CopiedRegion::written(tree, root, spot, writer, &buffer)),
            }
        }
        None if by_pointer => (Spot { parent: root, index: 0 }, CopiedRegion::whole(&buffer)),
        None => (Spot { parent: root, index: 0 }, read_by_scope(tree, root, &buffer)),
    };
    let copy = buffer_like(&buffer, name.clone(), &part.shape, &storage);
    let axes = axes_over(&part.shape);
    let indices: Vec<_> = axes.iter().map(|axis| (&axis.var).into()).collect();
    let originals = part.of_buffer(&indices);
    let (nest, block) =
        copy_nest(&name, axes, &part.boxes, Element::new(&buffer, &originals), Element::new(&copy, &indices));
    let nest = match writer {
        Some(writer) => guarded(nest, tree, writer, spot),
        None => nest,
    };
    let mut redirect = Redirect { from: &buffer, to: &copy, stores: false, first: &part.first };
    let changes: Vec<(Stmt, Stmt)> =
        users.iter().map(|id| (tree.node(*id).stmt.clone(), redirect.mutate_stmt(&tree.node(*id).stmt))).collect();
    insert_stage(sch, &place, root, &changes, spot, nest, &copy)?;
    Ok(vec![Value::Block(place.func.clone(), block)])
}

/// What a scope's block says that it reads of a buffer that comes from outside; all of it where it says nothing.
fn read_by_scope(tree: &Tree, root: NodeId, buffer: &Ref<Buffer>) -> CopiedRegion {
    let declared = tree.as_block(root).and_then(|n| n.block.reads.iter().find(|r| r.buffer == *buffer));
    match declared {
        Some(read) => {
            let dims: Vec<Interval> = read.region.iter().map(|r| Interval::of_range(&r.min, &r.extent)).collect();
            CopiedRegion::box_of(buffer, &dims)
        }
        None => CopiedRegion::whole(buffer),
    }
}

/// The blocks that are named as consumers, if any are.
pub(super) fn named_blocks(
    sch: &Schedule,
    call: &Call<'_>,
    scope: &Scope<'_>,
    tree: &Tree,
) -> Result<Vec<NodeId>, ScheduleError> {
    if call.inputs.len() < 2 {
        return Ok(Vec::new());
    }
    let mut named = Vec::new();
    for rv in call.blocks(1)? {
        let block = sch.block(&rv)?;
        match tree.find_block(&block).filter(|id| scope.children.contains(id)) {
            Some(id) => named.push(id),
            None => {
                let reason = format!("block `{}` is not in the same scope", block.name);
                return Err(ScheduleError::at_block(&block, reason));
            }
        }
    }
    Ok(named)
}

/// A block and consumers as operands.
pub(super) fn with_consumers(block: &Ref<SBlockRV>, consumers: &[Ref<SBlockRV>]) -> Vec<AttrValue> {
    vec![operand(block), AttrValue::List(consumers.iter().map(operand).collect())]
}

impl Schedule {
    /// Makes a copy of what a block reads, for all blocks that read it or for those that are named. The block that copies.
    pub fn cache_read(
        &mut self,
        block: &Ref<SBlockRV>,
        read_buffer_index: i64,
        storage_scope: &str,
        consumer_blocks: &[Ref<SBlockRV>],
    ) -> Result<Ref<SBlockRV>, StepError> {
        let attrs = vec![read_buffer_index.into(), storage_scope.into()];
        self.step_block(&KIND, with_consumers(block, consumer_blocks), attrs)
    }
}
