//! A block-form kernel read as stages: what each block computes, over which axes, from what.
//!
//! ```text
//! for i, j in T.grid(n, m):                      Stage { spatial: [i: n, j: m], reduce: [], reduction: None,
//!     with T.sblock("relu"):             ->              output: B, indices: [i, j],
//!         vi, vj = T.axis.remap("SS", …)                 value: max(A[i, j], 0) }
//!         B[vi, vj] = T.max(A[vi, vj], 0)
//! ```
//!
//! Axes of constant extent one are dropped (their variable becomes 0), so that a rule sees a 1x1 convolution as the matrix
//! product that it is. Whatever does not have this form (several stores, ordered axes, predicates, hand-written loops) is
//! an [`Item::Opaque`] statement and stays as it is.

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::prim::{BinaryOp, PrimExpr, PrimMutator, PrimVisitor, VarMap, cast, int, substitute};
use relaxide_ir::{Buffer, DataType, Var};

use super::affine::{all_same, loads, uses_any};
use super::nest::Tail;
use super::prefetch::Prefetch;
use crate::analysis::wide::{Widen, wider};
use crate::early_exit::EarlyExits;
use crate::functor::StmtVisitor;
use crate::{BufferStore, IterKind, PrimFunc, SBlockRealize, Stmt};

/// One axis: a variable over `0 .. extent`.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The variable that stands for it in the stage's expressions.
    pub var: Ref<Var>,
    /// Number of values.
    pub extent: PrimExpr,
}

/// How the values of the reduction axes are combined.
#[derive(Clone, Debug)]
pub struct Reduction {
    /// Add, Mul, Min or Max.
    pub op: BinaryOp,
    /// What the element is before the first value.
    pub init: PrimExpr,
}

/// A block that writes one element of one buffer per point of its spatial axes.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The block's name.
    pub name: String,
    /// Axes of the elements.
    pub spatial: Vec<Axis>,
    /// Axes that are combined; empty where there is no reduction.
    pub reduce: Vec<Axis>,
    /// The buffer that is written.
    pub output: Ref<Buffer>,
    /// Where, over the spatial axes.
    pub indices: Vec<PrimExpr>,
    /// How values are combined, for a reduction.
    pub reduction: Option<Reduction>,
    /// The value at a point of all axes.
    pub value: PrimExpr,
    /// What is asked for ahead of its use.
    pub ahead: Option<Box<Prefetch>>,
    /// How rows of the output may end.
    pub tail: Tail,
    /// Whether a NaN among the terms of a maximum shows in a sum beside it, so that the maximum may leave it out.
    pub shown_elsewhere: bool,
}

/// A top-level statement of a kernel.
#[derive(Clone, Debug)]
pub enum Item {
    /// A block that was understood.
    Stage(Stage),
    /// A statement that was not.
    Opaque(Stmt),
}

/// A kernel as items in order, and the buffers between them.
#[derive(Clone, Debug)]
pub struct Program {
    /// Statements in order.
    pub items: Vec<Item>,
    /// Buffers that live only inside the kernel.
    pub intermediates: Vec<Ref<Buffer>>,
}

impl Program {
    /// Reads a kernel.
    pub fn read(func: &PrimFunc) -> Program {
        let (body, mut intermediates) = match &func.body {
            Stmt::Block(root) if root.block.iter_vars.is_empty() && root.block.init.is_none() => {
                (root.block.body.clone(), root.block.alloc_buffers.clone())
            }
            other => (other.clone(), Vec::new()),
        };
        let list = match &body {
            Stmt::Seq(seq) => seq.seq.clone(),
            other => vec![other.clone()],
        };
        // Plain memory is the root's, wherever it is asked for.
        let (allocated, list): (Vec<Stmt>, Vec<Stmt>) = list.into_iter().partition(is_plain_memory);
        // A name or memory that is introduced between statements ties them together, and so does an early end.
        let ties = |s: &Stmt| matches!(s, Stmt::Bind(_) | Stmt::Alloc(_) | Stmt::Decl(_)) || EarlyExits::of(s).any();
        if list.iter().any(ties) {
            return Program { items: vec![Item::Opaque(body)], intermediates };
        }
        intermediates.extend(allocated.iter().filter_map(|s| match s {
            Stmt::Alloc(alloc) => Some(alloc.buffer.clone()),
            _ => None,
        }));
        let items = list.into_iter().map(|s| read_nest(&s).map_or(Item::Opaque(s), Item::Stage)).collect();
        Program { items, intermediates }
    }
}

/// Whether it allocates memory that any statement may use.
fn is_plain_memory(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Alloc(alloc) if alloc.buffer.scope == "global" && alloc.annotations.0.is_empty())
}

impl Item {
    /// The buffers that it reads.
    pub fn reads(&self) -> HashSet<Ref<Buffer>> {
        match self {
            Item::Stage(stage) => stage.reads(),
            Item::Opaque(stmt) => accessed(stmt).0,
        }
    }

    /// The buffers that it writes.
    pub fn writes(&self) -> HashSet<Ref<Buffer>> {
        match self {
            Item::Stage(stage) => HashSet::from([stage.output.clone()]),
            Item::Opaque(stmt) => accessed(stmt).1,
        }
    }
}

impl Stage {
    /// The buffers that it reads, the output of a reduction not counted.
    pub fn reads(&self) -> HashSet<Ref<Buffer>> {
        let init = self.reduction.as_ref().map(|r| loads(&r.init)).unwrap_or_default();
        loads(&self.value).into_iter().chain(init).map(|l| l.buffer.clone()).collect()
    }

    /// Whether each index of the output is one axis, all different, or 0: element and point are the same thing.
    pub fn is_identity(&self) -> bool {
        let mut rest: Vec<&Ref<Var>> = self.spatial.iter().map(|a| &a.var).collect();
        for index in self.indices.iter().filter(|i| !i.is_int(0)) {
            let Some(position) = index.as_var().and_then(|v| rest.iter().position(|r| *r == v)) else { return false };
            rest.remove(position);
        }
        rest.is_empty()
    }

    /// The same stage over axes of 64 bits, which is what rules count in.
    fn widened(self) -> Stage {
        let index = DataType::int(64);
        let axes = || self.spatial.iter().chain(&self.reduce);
        if axes().all(|a| a.var.dtype() == index && a.extent.dtype() == index) {
            return self;
        }
        let wide = |a: &Axis| (a.var.clone(), PrimExpr::from(&wider(&a.var)));
        let mut widen = Widen(axes().map(wide).collect());
        let axis = |a: &Axis, map: &VarMap| {
            let var = map.get(&a.var).and_then(PrimExpr::as_var).unwrap_or(&a.var).clone();
            Axis { var, extent: cast(index, a.extent.clone()) }
        };
        let spatial = self.spatial.iter().map(|a| axis(a, &widen.0)).collect();
        let reduce = self.reduce.iter().map(|a| axis(a, &widen.0)).collect();
        let indices = widen.mutate_prims(&self.indices);
        let value = cast(self.value.dtype(), widen.mutate_prim(&self.value));
        let init = |r: &Reduction| Reduction { op: r.op, init: cast(r.init.dtype(), widen.mutate_prim(&r.init)) };
        let reduction = self.reduction.as_ref().map(init);
        Stage { spatial, reduce, indices, reduction, value, ..self }
    }

    /// The same stage over fresh variables.
    pub fn freshened(&self) -> Stage {
        let mut map = VarMap::new();
        let mut fresh = |axes: &[Axis]| -> Vec<Axis> {
            axes.iter()
                .map(|a| {
                    let var = Var::new(a.var.name.clone(), a.var.ty.clone());
                    map.insert(a.var.clone(), PrimExpr::from(&var));
                    Axis { var, extent: a.extent.clone() }
                })
                .collect()
        };
        let (spatial, reduce) = (fresh(&self.spatial), fresh(&self.reduce));
        Stage {
            spatial,
            reduce,
            indices: self.indices.iter().map(|i| substitute(i, &map)).collect(),
            reduction: self.reduction.as_ref().map(|r| Reduction { op: r.op, init: substitute(&r.init, &map) }),
            value: substitute(&self.value, &map),
            ..self.clone()
        }
    }
}

/// Buffers read and written anywhere in a statement.
pub(super) fn accessed(stmt: &Stmt) -> (HashSet<Ref<Buffer>>, HashSet<Ref<Buffer>>) {
    #[derive(Default)]
    struct Accessed(HashSet<Ref<Buffer>>, HashSet<Ref<Buffer>>);
    impl PrimVisitor for Accessed {
        fn visit_buffer_use(&mut self, buffer: &Ref<Buffer>) {
            self.0.insert(buffer.clone());
        }
    }
    impl StmtVisitor for Accessed {
        fn visit_buffer_store(&mut self, buffer: &Ref<Buffer>) {
            self.1.insert(buffer.clone());
        }

        fn visit_stmt(&mut self, stmt: &Stmt) {
            if let Stmt::Block(n) = stmt {
                self.0.extend(n.block.reads.iter().map(|r| r.buffer.clone()));
                self.1.extend(n.block.writes.iter().map(|r| r.buffer.clone()));
                for alias in &n.block.match_buffers {
                    self.0.insert(alias.source.buffer.clone());
                    self.1.insert(alias.source.buffer.clone());
                }
            }
            self.walk_stmt(stmt);
        }
    }
    let mut found = Accessed::default();
    found.visit_stmt(stmt);
    (found.0, found.1)
}

/// Reads loops around one block.
fn read_nest(stmt: &Stmt) -> Option<Stage> {
    let mut loops = VarMap::new();
    let mut extents: Vec<(Ref<Var>, PrimExpr)> = Vec::new();
    let mut inner = stmt;
    while let Stmt::For(n) = inner {
        if !n.min.is_int(0) || n.kind != crate::ForKind::Serial {
            return None;
        }
        extents.push((n.var.clone(), n.extent.clone()));
        inner = &n.body;
    }
    let Stmt::Block(realize) = inner else { return None };
    let axes = read_axes(realize, &extents, &mut loops)?;
    read_block(realize, axes, &loops).map(Stage::widened)
}

/// Pairs a block's axes with the loops around it, one to one; axes at a fixed value and unit axes go into `fixed`.
fn read_axes(
    realize: &SBlockRealize,
    extents: &[(Ref<Var>, PrimExpr)],
    fixed: &mut VarMap,
) -> Option<Vec<(IterKind, Axis)>> {
    let block = &realize.block;
    if realize.predicate.as_int() != Some(1) || !block.match_buffers.is_empty() || !block.alloc_buffers.is_empty() {
        return None;
    }
    if block.iter_vars.len() != realize.iter_values.len() {
        return None;
    }
    let mut bound: Vec<&Ref<Var>> = Vec::new();
    let mut axes = Vec::new();
    for (iter, value) in block.iter_vars.iter().zip(&realize.iter_values) {
        if !matches!(iter.kind, IterKind::Spatial | IterKind::Reduce) {
            return None;
        }
        if value.as_int().is_some() {
            fixed.insert(iter.var.clone(), value.clone());
            continue;
        }
        let (var, extent) = extents.iter().find(|(v, _)| value.as_var() == Some(v))?;
        if bound.contains(&var) {
            return None;
        }
        bound.push(var);
        if extent.is_int(1) {
            fixed.insert(iter.var.clone(), int(0));
        } else {
            axes.push((iter.kind, Axis { var: iter.var.clone(), extent: extent.clone() }));
        }
    }
    // A loop that no axis stands for would repeat the block.
    let all_bound = extents.iter().all(|(v, e)| bound.contains(&v) || e.is_int(1));
    all_bound.then_some(axes)
}

fn read_block(realize: &SBlockRealize, axes: Vec<(IterKind, Axis)>, fixed: &VarMap) -> Option<Stage> {
    let block = &realize.block;
    let Stmt::Store(store) = &block.body else { return None };
    if store.predicate.is_some() || !is_compact(&store.buffer) {
        return None;
    }
    let is_reduction = block.iter_vars.iter().any(|v| v.kind == IterKind::Reduce);
    let (reduction, value) = match (is_reduction, &block.init) {
        (true, Some(Stmt::Store(init))) => {
            let (op, value) = read_update(store)?;
            if init.buffer != store.buffer || !all_same(&init.indices, &store.indices) {
                return None;
            }
            (Some(Reduction { op, init: substitute(&init.value, fixed) }), value)
        }
        (false, None) => (None, store.value.clone()),
        _ => return None,
    };
    let value = substitute(&value, fixed);
    if loads(&value).iter().any(|l| l.buffer == store.buffer || l.predicate.is_some() || !is_compact(&l.buffer)) {
        return None;
    }
    let of_kind = |kind| axes.iter().filter(|(k, _)| *k == kind).map(|(_, a)| a.clone()).collect::<Vec<_>>();
    let (spatial, reduce) = (of_kind(IterKind::Spatial), of_kind(IterKind::Reduce));
    let indices: Vec<PrimExpr> = store.indices.iter().map(|i| substitute(i, fixed)).collect();
    if indices.iter().any(|i| uses_any(i, reduce.iter().map(|a| &a.var))) {
        return None;
    }
    Some(Stage {
        name: block.name.clone(),
        spatial,
        reduce,
        output: store.buffer.clone(),
        indices,
        reduction,
        value,
        ahead: None,
        tail: Tail::Masked,
        shown_elsewhere: false,
    })
}

/// Reads `C[i] = C[i] op value` in either order of the operands.
fn read_update(store: &BufferStore) -> Option<(BinaryOp, PrimExpr)> {
    let PrimExpr::Binary(update) = &store.value else { return None };
    if !matches!(update.op, BinaryOp::Add | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max) {
        return None;
    }
    let is_self = |e: &PrimExpr| match e {
        PrimExpr::Load(l) => l.buffer == store.buffer && all_same(&l.indices, &store.indices),
        _ => false,
    };
    match (is_self(&update.a), is_self(&update.b)) {
        (true, false) => Some((update.op, update.b.clone())),
        (false, true) => Some((update.op, update.a.clone())),
        _ => None,
    }
}

fn is_compact(buffer: &Buffer) -> bool {
    buffer.strides.is_empty() && buffer.elem_offset.is_int(0)
}
