//! Where things stand relative to each other: a block under a loop, a buffer among those that a block reads or writes, a
//! statement in the sequence of its loop.

use std::collections::HashMap;

use relaxide_ffi::Ref;

use crate::PrimFunc;
use crate::functor::undefined_vars;
use crate::s_tir::state::{NodeId, StmtRef, Tree, copy_block, with_block, with_loop_body};
use crate::s_tir::{LoopRV, SBlockRV, Schedule, ScheduleError};
use crate::stmt::*;

/// A block and a loop of its scope that is around it.
pub(super) struct Inner {
    /// Where the block stands.
    pub place: StmtRef,
    /// The block.
    pub realize: Ref<SBlockRealize>,
    /// Which of the loops it is.
    pub at: usize,
    /// The loops around the block, outermost first.
    pub loops: Vec<Ref<For>>,
}

/// A block, and a loop that is around it.
pub(super) fn inner_place(sch: &Schedule, block: &Ref<SBlockRV>, loop_: &Ref<LoopRV>) -> Result<Inner, ScheduleError> {
    let (place, outer) = (sch.block_ref(block)?, sch.loop_ref(loop_)?);
    let (realize, given) = (place.realize()?, outer.for_loop()?);
    let loops = loops_around(&place.tree, place.node);
    match loops.iter().position(|l| l.var == given.var) {
        Some(at) => Ok(Inner { place, realize, at, loops }),
        None => {
            let names: Vec<&str> = loops.iter().map(|l| l.var.name.as_str()).collect();
            let reason = format!("loop `{}` is not around block `{}`", given.var.name, realize.block.name);
            Err(ScheduleError::at_loop(&given, reason).with_help(format!("there are {}", names.join(", "))))
        }
    }
}

/// The loops around a node up to the block around it, outermost first.
pub(super) fn loops_around(tree: &Tree, node: NodeId) -> Vec<Ref<For>> {
    tree.loops_above(node).into_iter().filter_map(|id| tree.as_loop(id).cloned()).collect()
}

/// The buffer that is the `index`th of those that a block reads, or writes.
pub(super) fn nth_buffer(
    block: &SBlock,
    index: i64,
    regions: &[Ref<BufferRegion>],
    what: &str,
) -> Result<Ref<BufferRegion>, ScheduleError> {
    let found = usize::try_from(index).ok().and_then(|i| regions.get(i)).cloned();
    found.ok_or_else(|| {
        let names: Vec<&str> = regions.iter().map(|r| r.buffer.name.as_str()).collect();
        let reason =
            format!("block `{}` {what} {} buffers, and index {index} is none of them", block.name, names.len());
        ScheduleError::at_block(block, reason).with_help(format!("in order, it {what} {}", names.join(", ")))
    })
}

/// The innermost loop or block that is around all nodes, and none of them.
pub(super) fn around_all(tree: &Tree, nodes: &[NodeId]) -> Option<NodeId> {
    let mut at = tree.node(*nodes.first()?).parent?;
    while !nodes.iter().all(|node| at != *node && tree.contains(at, *node)) {
        at = tree.node(at).parent?;
    }
    Some(at)
}

/// The topmost statement that holds nothing but a block: the loops that would be empty without it.
pub(super) fn own_nest(tree: &Tree, node: NodeId) -> Stmt {
    let mut at = node;
    while let Some(parent) = tree.node(at).parent
        && let Some(outer) = tree.as_loop(parent)
        && outer.body == tree.node(at).stmt
    {
        at = parent;
    }
    tree.node(at).stmt.clone()
}

/// A loop whose counter a block uses inside, not only in the values of its axes.
pub(super) fn loop_inside<'l>(block: &SBlock, loops: &'l [Ref<For>]) -> Option<&'l Ref<For>> {
    let mut used = undefined_vars(&block.body);
    used.extend(block.init.iter().flat_map(undefined_vars));
    loops.iter().find(|l| used.contains(&l.var))
}

/// The statements of a loop's or block's body, one if it is no sequence.
pub(super) fn body_list(stmt: &Stmt) -> Vec<Stmt> {
    let body = match stmt {
        Stmt::For(n) => &n.body,
        Stmt::Block(n) => &n.block.body,
        other => other,
    };
    match body {
        Stmt::Seq(n) => n.seq.clone(),
        one => vec![one.clone()],
    }
}

/// The same loop or block around other statements.
pub(super) fn with_body_list(stmt: &Stmt, list: Vec<Stmt>) -> Stmt {
    match stmt {
        Stmt::For(n) => with_loop_body(n, Stmt::seq(list)).into(),
        Stmt::Block(n) => {
            let block = Ref::new(SBlock { body: Stmt::seq(list), ..copy_block(&n.block) });
            with_block(n, block).into()
        }
        _ => Stmt::seq(list),
    }
}

/// Whether a statement is another or holds it.
pub(super) fn holds(stmt: &Stmt, inner: &Stmt) -> bool {
    if stmt == inner {
        return true;
    }
    match stmt {
        Stmt::For(n) => holds(&n.body, inner),
        Stmt::Block(n) => n.block.init.as_ref().is_some_and(|s| holds(s, inner)) || holds(&n.block.body, inner),
        Stmt::While(n) => holds(&n.body, inner),
        Stmt::Seq(n) => n.seq.iter().any(|s| holds(s, inner)),
        Stmt::If(n) => holds(&n.then_case, inner) || n.else_case.as_ref().is_some_and(|s| holds(s, inner)),
        Stmt::Attr(n) => holds(&n.body, inner),
        _ => false,
    }
}

/// A name that no buffer of a function has.
pub(super) fn free_name(func: &PrimFunc, tree: &Tree, wanted: String) -> String {
    let mut used: HashMap<&str, ()> = func.buffers.iter().flatten().map(|b| (b.name.as_str(), ())).collect();
    for (_, n) in tree.blocks() {
        used.extend(n.block.alloc_buffers.iter().map(|b| (b.name.as_str(), ())));
    }
    if !used.contains_key(wanted.as_str()) {
        return wanted;
    }
    let mut numbered = (1..).map(|i| format!("{wanted}_{i}"));
    numbered.find(|name| !used.contains_key(name.as_str())).unwrap_or(wanted)
}
