//! What a new layout leaves empty, and how it is filled: `transform_layout` with a `pad_value`.
//!
//! ```text
//! for i, j in T.grid(16, 32):                             for i, axis1, axis2 in T.grid(16, 7, 5):
//!     B[vi, vj] = A[vi, vj] * 2                               B[v0, v1, v2] = T.if_then_else(
//!          -- (i, j // 5, j % 5), pad_value=0 ->                  v1 == 6 and 2 <= v2, 0, A[v0, v1 * 5 + v2] * 2)
//! ```
//!
//! Where one block writes the buffer, under loops that do nothing but run through it in order, the block runs through the new
//! layout and writes the padding too. Where the buffer is written in another way, a block behind the writers fills the
//! padding. A parameter that nobody writes comes with its padding: that is the caller's word.

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, BinaryOp, PrimExpr, VarMap, free_vars, substitute};
use relaxide_ir::{Buffer, Var};

use super::caching::element;
use super::simpler_accesses::simpler_accesses;
use super::structure::{body_list, holds, loops_around, own_nest, with_body_list};
use super::transform_block_layout::is_trivial;
use crate::IndexMap;
use crate::analysis::regions::with_regions;
use crate::functor::substitute_stmt;
use crate::index_map::Inverse;
use crate::s_tir::state::{NodeId, StmtRef, Tree, copy_block, copy_loop, replace};
use crate::s_tir::{Schedule, ScheduleError};
use crate::stmt::*;

/// A new layout with places that no element goes to.
pub(super) struct LayoutPadding<'a> {
    pub from: &'a Ref<Buffer>,
    pub to: &'a Ref<Buffer>,
    pub inverse: &'a Inverse,
    /// What is there, over the indices of the new layout.
    pub value: &'a IndexMap,
}

impl LayoutPadding<'_> {
    /// The value is one, of the buffer's type, and made without memory.
    pub fn check(&self, block: &SBlock) -> Result<(), ScheduleError> {
        let refuse = |reason: String| ScheduleError::at_block(block, reason);
        let (takes, ndim) = (self.value.initial_indices.len(), self.to.ndim());
        let [value] = self.value.final_indices.as_slice() else {
            return Err(refuse(format!("the padding of buffer `{}` is not one value", self.from.name)));
        };
        if takes != ndim {
            return Err(refuse(format!("the padding is a value of {takes} indices, but the new layout has {ndim}")));
        }
        if value.dtype() != self.from.dtype {
            let (wanted, given) = (self.from.dtype, value.dtype());
            return Err(refuse(format!("buffer `{}` holds {wanted}, but the padding is {given}", self.from.name))
                .with_help(format!("give the padding as {wanted}, T.{wanted}(0) for instance")));
        }
        let known = |v: &Ref<Var>| self.value.initial_indices.contains(v);
        match super::cache_index::reads_memory(value) || !free_vars(value).iter().all(known) {
            true => Err(refuse("the padding may depend on the indices of the new layout only".into())),
            false => Ok(()),
        }
    }

    fn value_at(&self, at: &[PrimExpr]) -> PrimExpr {
        self.value
            .apply(at)
            .and_then(|list| list.into_iter().next())
            .unwrap_or_else(|| prim::constant(self.to.dtype, 0.0))
    }

    /// Whether indices of the new layout are those of no element.
    fn is_padding(&self, at: &[PrimExpr]) -> PrimExpr {
        let mut analyzer = Analyzer::new();
        let vars: Vec<Ref<Var>> = self.to.shape.iter().map(|d| Var::prim("at", d.dtype())).collect();
        for (var, dim) in vars.iter().zip(&self.to.shape) {
            analyzer.bind(var, prim::int_of(dim.dtype(), 0), dim.clone());
        }
        analyzer.mark_dims(&self.from.shape);
        let own: Vec<PrimExpr> = vars.iter().map(PrimExpr::from).collect();
        let back = self.inverse.map.apply(&own).unwrap_or_default();
        let outside = back.iter().zip(&self.from.shape).filter_map(|(index, dim)| {
            let index = analyzer.simplify_as_tvm(&prim::cast(dim.dtype(), index.clone()));
            (!analyzer.can_prove(&prim::lt(&index, dim.clone()))).then(|| not_below(&index, dim))
        });
        let condition = outside.reduce(prim::or).unwrap_or_else(|| prim::boolean(false));
        let map: VarMap = vars.into_iter().zip(at.iter().cloned()).collect();
        substitute(&condition, &map)
    }

    /// Fills the padding of a buffer that has its new layout already in all accesses but those of the block that `rewrites`.
    pub fn fill_behind(&self, sch: &mut Schedule, func: &str, writers: &[Ref<SBlock>]) -> Result<(), ScheduleError> {
        let old = sch.func(func)?;
        let tree = Tree::of(&old.body);
        let last = writers.iter().filter_map(|block| tree.find_block(block)).max();
        let Some(root) = last.and_then(|last| tree.scope_of(last)) else { return Ok(()) };
        let around = &tree.node(root).stmt;
        let mut list = body_list(around);
        let inside = |s: &Stmt| last.is_some_and(|last| holds(s, &tree.node(last).stmt));
        let at = list.iter().position(inside).map_or(list.len(), |at| at + 1);
        list.insert(at, self.filling());
        let body = replace(&old.body, &[(around.clone(), with_body_list(around, list))]);
        sch.commit(func, body, &[])
    }

    /// A block that fills the padding.
    fn filling(&self) -> Stmt {
        let axes = self.axes();
        let at: Vec<PrimExpr> = axes.iter().map(|a| (&a.var).into()).collect();
        let counters = self.counters();
        let iter_values: Vec<PrimExpr> = counters.iter().map(PrimExpr::from).collect();
        let block = Ref::new(SBlock {
            iter_vars: axes,
            reads: Vec::new(),
            writes: vec![element(self.to, &at)],
            name: format!("buffer_{}_padding", self.from.name),
            alloc_buffers: Vec::new(),
            match_buffers: Vec::new(),
            annotations: relaxide_ir::Attrs::new(),
            init: None,
            body: Stmt::store(self.to, at.iter().cloned(), self.value_at(&at)),
        });
        let predicate = self.is_padding(&iter_values);
        let innermost: Stmt = Ref::new(SBlockRealize { iter_values, predicate, block }).into();
        let levels = counters.iter().zip(&self.to.shape).rev();
        levels.fold(innermost, |body, (var, extent)| Stmt::serial(var.clone(), extent.clone(), body))
    }

    fn axes(&self) -> Vec<Ref<IterVar>> {
        let axis = |(d, dim): (usize, &PrimExpr)| {
            let (var, min) = (Var::prim(format!("v{d}"), dim.dtype()), prim::int_of(dim.dtype(), 0));
            Ref::new(IterVar { var, min, extent: dim.clone(), kind: IterKind::Spatial })
        };
        self.to.shape.iter().enumerate().map(axis).collect()
    }

    fn counters(&self) -> Vec<Ref<Var>> {
        self.to.shape.iter().enumerate().map(|(d, dim)| Var::prim(format!("axis{d}"), dim.dtype())).collect()
    }

    /// The nest of the only writer and what takes its place, if the writer may run through the new layout; and that block.
    pub fn over_layout(&self, place: &StmtRef, writer: NodeId) -> Option<(Stmt, Stmt, Ref<SBlock>, Ref<SBlock>)> {
        let tree = &place.tree;
        let n = tree.as_block(writer)?;
        let block = &n.block;
        let loops = loops_around(tree, writer);
        let nest = own_nest(tree, writer);
        if loops.first().map(|l| Stmt::For(l.clone())) != Some(nest.clone()) || !is_trivial(n, &loops) {
            return None;
        }
        let Stmt::Store(store) = &block.body else { return None };
        let spatial = self.runs_in_order(n, &loops, store)?;
        let (axes, counters) = (self.axes(), self.counters());
        let at: Vec<PrimExpr> = axes.iter().map(|a| (&a.var).into()).collect();
        let mut analyzer = Analyzer::new();
        for axis in &axes {
            analyzer.bind(&axis.var, axis.min.clone(), axis.extent.clone());
        }
        let back = self.inverse.map.apply(&at)?;
        let old: VarMap = spatial
            .iter()
            .zip(&back)
            .map(|(iter, e)| (iter.var.clone(), prim::cast(iter.var.dtype(), analyzer.simplify_as_tvm(e))))
            .collect();
        let padding = self.is_padding(&at);
        let filled = |stmt: &Stmt| -> Option<Stmt> {
            let Stmt::Store(n) = stmt else { return None };
            let moved = substitute_stmt(&self.on_new_layout(&n.clone().into(), &store.indices, &at), &old);
            let Stmt::Store(n) = &moved else { return None };
            let value = prim::if_then_else(padding.clone(), self.value_at(&at), n.value.clone());
            Some(simpler_accesses(&Stmt::store(self.to, at.iter().cloned(), value), &axes))
        };
        let init = match &block.init {
            Some(init) => Some(filled(init)?),
            None => None,
        };
        let rest = block.iter_vars.iter().zip(&n.iter_values).skip(spatial.len());
        let (others, values): (Vec<_>, Vec<_>) = rest.map(|(iter, value)| (iter.clone(), value.clone())).unzip();
        let body = filled(&block.body)?;
        let made = with_regions(SBlock {
            iter_vars: axes.iter().cloned().chain(others).collect(),
            reads: Vec::new(),
            writes: Vec::new(),
            init,
            body,
            ..copy_block(block)
        });
        let iter_values = counters.iter().map(PrimExpr::from).chain(values).collect();
        let innermost: Stmt =
            Ref::new(SBlockRealize { iter_values, predicate: prim::boolean(true), block: made.clone() }).into();
        let inner = loops.iter().skip(spatial.len()).rev();
        let inner = inner.fold(innermost, |body, l| Ref::new(For { body, ..copy_loop(l) }).into());
        let levels = counters.iter().zip(&self.to.shape).rev();
        let whole = levels.fold(inner, |body, (var, extent)| Stmt::serial(var.clone(), extent.clone(), body));
        Some((nest, whole, block.clone(), made))
    }

    /// The axes of a block that its store's indices are, if they come first, in order, as do plain loops over all of the
    /// buffer.
    fn runs_in_order(&self, n: &SBlockRealize, loops: &[Ref<For>], store: &BufferStore) -> Option<Vec<Ref<IterVar>>> {
        let spatial: Vec<Ref<IterVar>> = n.block.iter_vars.iter().take(store.indices.len()).cloned().collect();
        let mut analyzer = Analyzer::new();
        let in_place = spatial.iter().zip(&store.indices).zip(&self.from.shape).all(|((iter, index), dim)| {
            index.as_var() == Some(&iter.var)
                && iter.kind == IterKind::Spatial
                && analyzer.can_prove_equal(&iter.extent, &prim::cast(iter.extent.dtype(), dim.clone()))
        });
        let values = n.iter_values.iter().take(spatial.len());
        let by_loops = values.zip(loops).all(|(value, l)| value.as_var() == Some(&l.var));
        let plain = |l: &Ref<For>| l.kind == ForKind::Serial && l.annotations.is_empty();
        let fits = spatial.len() == self.from.ndim()
            && loops.len() == n.block.iter_vars.len()
            && loops.iter().take(spatial.len()).all(plain);
        let same = |stmt: &Stmt| matches!(stmt, Stmt::Store(s) if s.buffer == *self.from && s.predicate.is_none());
        let stores = same(&n.block.body) && n.block.init.as_ref().is_none_or(same);
        (fits && in_place && by_loops && stores).then_some(spatial)
    }

    /// A store with accesses of the buffer at its own place moved to the new layout.
    fn on_new_layout(&self, stmt: &Stmt, own: &[PrimExpr], at: &[PrimExpr]) -> Stmt {
        use super::inline::Inline;
        use crate::functor::StmtMutator;
        let to = |indices: &[PrimExpr]| {
            let here =
                indices.len() == own.len() && indices.iter().zip(own).all(|(a, b)| relaxide_ir::arith::same(a, b));
            if here { prim::load(self.to, at.iter().cloned()) } else { prim::load(self.from, indices.iter().cloned()) }
        };
        Inline { buffer: self.from, value: &to, reuse: Vec::new() }.mutate_stmt(stmt)
    }
}

/// The blocks that store to a buffer themselves.
pub(super) fn writers_of(tree: &Tree, buffer: &Ref<Buffer>) -> Vec<NodeId> {
    let writes = |n: &SBlockRealize| n.block.writes.iter().any(|w| w.buffer == *buffer);
    let leaf = |id: NodeId| tree.child_blocks(id).is_empty();
    tree.blocks().filter(|(id, n)| leaf(*id) && writes(n)).map(|(id, _)| id).collect()
}

/// `dim <= index`, told by the digits of the index where it has two: `a * 5 + b` is not below 32 where `a == 6 and 2 <= b`.
fn not_below(index: &PrimExpr, dim: &PrimExpr) -> PrimExpr {
    let digits = || {
        let PrimExpr::Binary(sum) = index else { return None };
        let PrimExpr::Binary(high) = &sum.a else { return None };
        let by = high.b.as_int().filter(|_| sum.op == BinaryOp::Add && high.op == BinaryOp::Mul)?;
        let (Some(_), Some(_)) = (high.a.as_var(), sum.b.as_var()) else { return None };
        let dim = dim.as_int()?;
        let dtype = index.dtype();
        let last = prim::eq(&high.a, prim::int_of(dtype, dim.div_euclid(by)));
        Some(prim::and(last, prim::le(prim::int_of(dtype, dim.rem_euclid(by)), &sum.b)))
    };
    digits().unwrap_or_else(|| prim::le(dim.clone(), index))
}
