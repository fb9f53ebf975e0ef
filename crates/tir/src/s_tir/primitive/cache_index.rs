//! `cache_index`: what a block computes of its axes alone is computed once, in front, and looked up.
//!
//! ```text
//! for i, j in T.grid(80, 80):                     for i, j in T.grid(80, 80): index_var_0[i, j] = i // 4 + j // 4
//!     B[i, j] = A[i // 4 + j // 4, j // 2]   ->   for j in range(80): index_var_1[j] = j // 2
//!                                                 for i, j in T.grid(80, 80):
//!                                                     B[i, j] = A[index_var_0[i, j], index_var_1[j]]
//! ```
//!
//! Looked up are the largest computations that occur `cse_thresh` times or more, of those that hold no access to memory and no
//! call and are made of axes alone. Each gets a buffer with one dimension for each of its axes. A block without any is left
//! as it is.

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::arith::same;
use relaxide_ir::prim::{
    BinaryOp, PrimExpr, PrimMutator, PrimVisitor, VarMap, count_parts, free_vars, load, substitute,
};
use relaxide_ir::{Buffer, Var};

use super::caching::{Element, axes_over, copy_nest, element};
use super::structure::{body_list, free_name, holds, with_body_list};
use crate::analysis::interval::Interval;
use crate::functor::{StmtMutator, StmtVisitor};
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::state::{copy_block, replace, with_block};
use crate::s_tir::step::{Call, operand};
use crate::s_tir::{SBlockRV, Schedule, ScheduleError, StepError, Value};
use crate::stmt::*;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "CacheIndex",
    method: "cache_index",
    is_pure: false,
    params: &[Param::Input("block"), Param::Attr("storage_scope"), Param::Attr("cse_thresh")],
    results: Results::List,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let place = sch.block_ref(&call.block(0)?)?;
    let (realize, root) = (place.realize()?, place.scope()?);
    let (storage, threshold) = (call.str(0)?.to_string(), call.int(1)?);
    let block = &realize.block;
    if let Some(iter) = block.iter_vars.iter().find(|i| !i.min.is_int(0)) {
        let reason = format!("axis `{}` of block `{}` does not begin at zero", iter.var.name, block.name);
        return Err(ScheduleError::at_block(block, reason));
    }
    if !place.tree.child_blocks(place.node).is_empty() {
        let reason = format!("block `{}` holds blocks, which say on their own what they read", block.name);
        return Err(ScheduleError::at_block(block, reason).with_help("cache the indices of the blocks inside"));
    }
    let cached = worth_caching(block, usize::try_from(threshold).unwrap_or(0).max(1));
    if cached.is_empty() {
        return Ok(Vec::new());
    }
    let func = sch.func(&place.func)?;
    let (mut stages, mut buffers, mut lookups, mut made) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (number, value) in cached.into_iter().enumerate() {
        let stage =
            stage(block, &value, number, free_name(&func, &place.tree, format!("index_var_{number}")), &storage);
        stages.push(stage.nest);
        lookups.push((value, stage.lookup));
        buffers.push(stage.buffer);
        made.push(Value::Block(place.func.clone(), stage.block));
    }
    let changed = with_lookups(&realize, &lookups);
    let root_stmt = &place.tree.node(root).stmt;
    let list = body_list(root_stmt);
    let at = list.iter().position(|stmt| holds(stmt, place.stmt())).unwrap_or(0);
    let changes = [(place.stmt().clone(), changed)];
    let mut list: Vec<Stmt> = list.iter().map(|stmt| replace(stmt, &changes)).collect();
    list.splice(at..at, stages);
    let mut rebuilt = with_body_list(root_stmt, list);
    if let Stmt::Block(n) = &rebuilt {
        let alloc_buffers = n.block.alloc_buffers.iter().cloned().chain(buffers).collect();
        rebuilt = with_block(n, Ref::new(SBlock { alloc_buffers, ..copy_block(&n.block) })).into();
    }
    let body = replace(&func.body, &[(root_stmt.clone(), rebuilt)]);
    sch.commit(&place.func, body, &[])?;
    Ok(made)
}

/// One computation in a buffer of its own.
struct Stage {
    nest: Stmt,
    block: Ref<SBlock>,
    buffer: Ref<Buffer>,
    /// What stands for the computation, over the axes of the block.
    lookup: PrimExpr,
}

fn stage(block: &SBlock, value: &PrimExpr, number: usize, name: String, storage: &str) -> Stage {
    let used: Vec<Ref<Var>> = free_vars(value);
    let kept: Vec<&Ref<IterVar>> = used.iter().filter_map(|v| block.iter_vars.iter().find(|i| i.var == *v)).collect();
    let shape: Vec<PrimExpr> = kept.iter().map(|i| i.extent.clone()).collect();
    let plain = Buffer::new(name, value.dtype(), shape.clone());
    let buffer = super::caching::buffer_like(&plain, plain.name.clone(), &shape, storage);
    let axes = axes_over(&shape);
    let at: Vec<PrimExpr> = axes.iter().map(|axis| (&axis.var).into()).collect();
    let own: VarMap = kept.iter().map(|i| i.var.clone()).zip(at.iter().cloned()).collect();
    let boxes: Vec<Interval> = axes.iter().map(|a| Interval::of_range(&a.min, &a.extent)).collect();
    let (nest, copying) =
        copy_nest(&format!("index_{number}"), axes, &boxes, Element::new(&buffer, &at), Element::new(&buffer, &at));
    let body = Stmt::store(&buffer, at.iter().cloned(), substitute(value, &own));
    let computing = Ref::new(SBlock { reads: Vec::new(), body, ..copy_block(&copying) });
    let around = crate::s_tir::Tree::of(&nest);
    let changes: Vec<(Stmt, Stmt)> =
        around.blocks().map(|(_, n)| (n.clone().into(), with_block(n, computing.clone()).into())).collect();
    let lookup = load(&buffer, kept.iter().map(|i| PrimExpr::from(&i.var)));
    Stage { nest: replace(&nest, &changes), block: computing, buffer, lookup }
}

/// The block with computations looked up, the largest first; it says that it reads where they lie.
fn with_lookups(realize: &Ref<SBlockRealize>, lookups: &[(PrimExpr, PrimExpr)]) -> Stmt {
    struct Lookups<'a>(&'a [(PrimExpr, PrimExpr)]);
    impl PrimMutator for Lookups<'_> {
        fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
            match self.0.iter().find(|(value, _)| same(value, e)) {
                Some((_, lookup)) => lookup.clone(),
                None => self.remake_prim(e),
            }
        }
    }
    impl StmtMutator for Lookups<'_> {}
    let block = &realize.block;
    let mut walk = Lookups(lookups);
    let (init, body) = (block.init.as_ref().map(|s| walk.mutate_stmt(s)), walk.mutate_stmt(&block.body));
    let looked_up = lookups.iter().filter_map(|(_, e)| match e {
        PrimExpr::Load(n) => Some(element(&n.buffer, &n.indices)),
        _ => None,
    });
    let reads = block.reads.iter().cloned().chain(looked_up).collect();
    with_block(realize, Ref::new(SBlock { reads, init, body, ..copy_block(block) })).into()
}

/// The computations that are looked up, the largest first, and of equal ones the first.
fn worth_caching(block: &SBlock, threshold: usize) -> Vec<PrimExpr> {
    let mut all = Computations { axes: block.iter_vars.iter().map(|i| i.var.clone()).collect(), found: Vec::new() };
    all.visit_stmt(&block.body);
    let mut distinct: Vec<(PrimExpr, usize)> = Vec::new();
    for e in all.found {
        match distinct.iter_mut().find(|(known, _)| same(known, &e)) {
            Some((_, count)) => *count += 1,
            None => distinct.push((e, 1)),
        }
    }
    let mut ranked: Vec<(PrimExpr, usize)> = distinct;
    ranked.sort_by_key(|(e, _)| std::cmp::Reverse(count_parts(e)));
    let mut chosen: Vec<(PrimExpr, usize)> = Vec::new();
    for (e, count) in ranked {
        // Where it occurs inside of what is looked up already, nobody computes it any more.
        let gone: usize = chosen.iter().map(|(outer, times)| times * occurrences(outer, &e)).sum();
        if count.saturating_sub(gone) >= threshold {
            chosen.push((e, count - gone));
        }
    }
    chosen.into_iter().map(|(e, _)| e).collect()
}

/// Whether an expression depends on more than its variables: memory, or what a call does.
pub(super) fn reads_memory(e: &PrimExpr) -> bool {
    struct Outside(bool);
    impl PrimVisitor for Outside {
        fn visit_prim(&mut self, e: &PrimExpr) {
            self.0 |= matches!(e, PrimExpr::Load(_) | PrimExpr::Call(_));
            self.walk_prim(e);
        }
    }
    let mut outside = Outside(false);
    outside.visit_prim(e);
    outside.0
}

/// How often an expression occurs in another.
fn occurrences(outer: &PrimExpr, inner: &PrimExpr) -> usize {
    struct Count<'a>(&'a PrimExpr, usize);
    impl PrimVisitor for Count<'_> {
        fn visit_prim(&mut self, e: &PrimExpr) {
            self.1 += usize::from(same(e, self.0));
            self.walk_prim(e);
        }
    }
    let mut count = Count(inner, 0);
    count.visit_prim(outer);
    count.1
}

/// Every computation of axes alone, each with those inside of it.
struct Computations {
    axes: HashSet<Ref<Var>>,
    found: Vec<PrimExpr>,
}

impl Computations {
    fn is_of_axes(&self, e: &PrimExpr) -> bool {
        match e {
            PrimExpr::Var(var) => self.axes.contains(var),
            PrimExpr::Int(_) | PrimExpr::Float(_) => true,
            PrimExpr::Cast(n) => self.is_of_axes(&n.value),
            PrimExpr::Not(n) => self.is_of_axes(&n.a),
            PrimExpr::Binary(n) => {
                // What is computed in front is computed for all values of the axes: nothing there may divide by zero.
                let divides = matches!(n.op, BinaryOp::Div | BinaryOp::Mod | BinaryOp::FloorDiv | BinaryOp::FloorMod);
                let safe = !divides || n.b.as_int().is_some_and(|by| by != 0);
                safe && self.is_of_axes(&n.a) && self.is_of_axes(&n.b)
            }
            _ => false,
        }
    }
}

impl PrimVisitor for Computations {
    fn visit_prim(&mut self, e: &PrimExpr) {
        let is_computed = matches!(e, PrimExpr::Binary(_) | PrimExpr::Cast(_) | PrimExpr::Not(_));
        if is_computed && self.is_of_axes(e) && !free_vars(e).is_empty() {
            self.found.push(e.clone());
        }
        self.walk_prim(e);
    }
}

impl StmtVisitor for Computations {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            // Where a block stores is looked up only if what it loads needs the same.
            Stmt::Store(n) => self.visit_prim(&n.value),
            _ => self.walk_stmt(stmt),
        }
    }
}

impl Schedule {
    /// Computes once, in front of a block, what it computes of its axes alone. The blocks that do so.
    pub fn cache_index(
        &mut self,
        block: &Ref<SBlockRV>,
        storage_scope: &str,
        cse_thresh: i64,
    ) -> Result<Vec<Ref<SBlockRV>>, StepError> {
        self.step_blocks(&KIND, vec![operand(block)], vec![storage_scope.into(), cse_thresh.into()])
    }
}
