//! `blockize`: what a loop executes becomes one block, over boxes of the axes.
//!
//! ```text
//! for i_0, k_0, i_1, k_1 in …:             for i_0, k_0 in …:
//!     with T.sblock("C"):                      with T.sblock("C_o"):
//!         vi = i_0 * 16 + i_1                      vi_o, vk_o = i_0, k_0
//!         vk = k_0 * 4 + k_1          ->           with T.init(): for i_1 …: C[vi_o * 16 + vi_i] = 0
//!         init: C[vi] = 0                          for i_1, k_1 in T.grid(16, 4):
//!         C[vi] = C[vi] + …                            with T.sblock("C"):
//!                                                          vi_i, vk_i = i_1, k_1
//!                                                          C[vi_o * 16 + vi_i] = …
//! ```
//!
//! Each axis is taken apart in the digits of the loops outside (axis `_o`) and of those inside (axis `_i`); the latter must be
//! the lighter ones. A part of one value has no axis inside, and outside one of extent one. The elements of a reduction are set
//! in the outer block, once for its first box along the reduction.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, PrimExpr, VarMap, free_vars, substitute};

use super::blockize_blocks::blockize_blocks;
use super::simpler_accesses::simpler_accesses;
use super::structure::loops_around;
use crate::analysis::affine::{Binding, bindings_of, conjuncts};
use crate::analysis::regions::with_regions;
use crate::functor::substitute_stmt;
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::state::{StmtRef, copy_block, copy_loop, replace};
use crate::s_tir::step::{Call, loop_operand};
use crate::s_tir::{LoopRV, SBlockRV, Schedule, ScheduleError, StepError, Value};
use crate::stmt::*;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "Blockize",
    method: "blockize",
    is_pure: false,
    params: &[Param::Input("target"), Param::Attr("preserve_unit_iters")],
    results: Results::One,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let keep_unit = call.flag(0)?;
    if let Ok(blocks) = call.blocks(0) {
        let places = blocks.iter().map(|block| sch.block_ref(block)).collect::<Result<Vec<_>, _>>()?;
        let made = blockize_blocks(sch, &places, keep_unit)?;
        let func = places.first().map(|place| place.func.clone()).unwrap_or_default();
        return Ok(vec![Value::Block(func, made)]);
    }
    let place = sch.loop_ref(&call.loop_(0)?)?;
    let made = blockize(sch, &place, keep_unit)?;
    Ok(vec![Value::Block(place.func.clone(), made)])
}

/// Makes one block of what a loop executes.
pub(super) fn blockize(sch: &mut Schedule, place: &StmtRef, keep_unit: bool) -> Result<Ref<SBlock>, ScheduleError> {
    let given = place.for_loop()?;
    place.scope()?;
    let children = place.tree.child_blocks(place.node);
    let [child] = children.as_slice() else {
        let reason = format!("loop `{}` has {} blocks inside, not one", given.var.name, children.len());
        return Err(ScheduleError::at_loop(&given, reason));
    };
    let realize = place.tree.as_block(*child).ok_or(ScheduleError::Expired { what: "block" })?;
    let loops = loops_around(&place.tree, *child);
    let at = loops.iter().position(|l| l.var == given.var).unwrap_or(0);
    check_chain(&loops[at..], realize)?;
    let parts = divide(realize, &loops, at, keep_unit)?;
    let inner = parts.inner(realize);
    let outer = parts.outer(realize, &inner, &loops[at..]);
    let body = replace(&sch.func(&place.func)?.body, &[(given.into(), outer.clone().into())]);
    sch.commit(&place.func, body, &[(realize.block.clone(), inner.block.clone())])?;
    Ok(outer.block.clone())
}

/// Each loop holds the next and nothing else.
pub(super) fn check_chain(loops: &[Ref<For>], realize: &Ref<SBlockRealize>) -> Result<(), ScheduleError> {
    let inside = loops.iter().skip(1).map(|l| Stmt::For(l.clone())).chain([Stmt::Block(realize.clone())]);
    for (l, inner) in loops.iter().zip(inside) {
        if l.body != inner {
            let reason = format!("loop `{}` holds more than a loop or a block", l.var.name);
            return Err(ScheduleError::at_loop(l, reason));
        }
    }
    Ok(())
}

/// An axis taken apart.
pub(super) struct Axis {
    pub outer: Ref<IterVar>,
    pub outer_value: PrimExpr,
    /// The axis inside and its value, where there is more than one.
    inner: Option<(Ref<IterVar>, PrimExpr)>,
    /// The whole axis, of the two parts.
    pub whole: PrimExpr,
}

pub(super) struct Parts {
    pub axes: Vec<Axis>,
    /// The conditions of the block outside and inside.
    pub outer_predicate: PrimExpr,
    inner_predicate: PrimExpr,
    /// Whether elements are set in the block outside.
    pub sets_outside: bool,
}

pub(super) fn divide(
    realize: &SBlockRealize,
    loops: &[Ref<For>],
    at: usize,
    keep_unit: bool,
) -> Result<Parts, ScheduleError> {
    let block = &realize.block;
    let refuse = |reason: String| ScheduleError::at_block(block, reason);
    let bindings = bindings_of(realize, loops).map_err(|why| {
        refuse(format!("the axes of block `{}` cannot be taken apart: {why}", block.name))
            .with_help("blockize before loops are fused across it, or split so that factors divide extents")
    })?;
    let uses = |e: &PrimExpr, some: &[Ref<For>]| free_vars(e).iter().any(|v| some.iter().any(|l| l.var == *v));
    let (mut outer_predicate, mut inner_predicate) = (prim::boolean(true), prim::boolean(true));
    for condition in conjuncts(&realize.predicate) {
        match (uses(&condition, &loops[..at]), uses(&condition, &loops[at..])) {
            (_, false) => outer_predicate = prim::and(outer_predicate, condition),
            (false, true) => inner_predicate = prim::and(inner_predicate, condition),
            (true, true) => {
                let reason = format!("the condition `{condition}` of block `{}` cannot be taken apart", block.name);
                return Err(refuse(reason).with_help("split so that the factors' product is the extent"));
            }
        }
    }
    let mut analyzer = Analyzer::new();
    for l in loops {
        analyzer.bind(&l.var, l.min.clone(), l.extent.clone());
    }
    let mut axes = Vec::with_capacity(bindings.len());
    for (iter, binding) in block.iter_vars.iter().zip(&bindings) {
        let inside = |e: &PrimExpr| uses(e, &loops[at..]);
        let axis = divide_axis(iter, binding, &inside, keep_unit, &mut analyzer);
        axes.push(axis.ok_or_else(|| {
            let value = binding.value(&mut analyzer);
            let reason = format!(
                "axis `{}` is bound to {value}, of which the loops inside are not the lighter part",
                iter.var.name
            );
            refuse(reason).with_help("reorder, so that the loops inside of the given one are those of the lower digits")
        })?);
    }
    let sets_outside = block.init.is_some() && axes.iter().any(|a| a.outer.kind == IterKind::Reduce);
    Ok(Parts { axes, outer_predicate, inner_predicate, sets_outside })
}

fn divide_axis(
    iter: &IterVar,
    binding: &Binding,
    inside: &dyn Fn(&PrimExpr) -> bool,
    keep_unit: bool,
    analyzer: &mut Analyzer,
) -> Option<Axis> {
    if !iter.min.is_int(0) || !binding.base.is_int(0) {
        return None;
    }
    let dtype = iter.var.dtype();
    let at = binding.inner(|digit| inside(&digit.source))?;
    let one = prim::int_of(dtype, 1);
    let inner_extent = match binding.terms.get(at) {
        Some(term) => analyzer.simplify_as_tvm(&(&term.weight * &term.digit.extent)),
        None => one.clone(),
    };
    // A dimension divided by itself is no number where the dimension may be zero.
    let outer_extent = match analyzer.can_prove_equal(&iter.extent, &inner_extent) {
        true => one.clone(),
        false => analyzer.simplify_as_tvm(&prim::floordiv(&iter.extent + &inner_extent - &one, &inner_extent)),
    };
    let zero = || prim::int_of(dtype, 0);
    let sum = |terms: &[crate::analysis::affine::Term], by: &PrimExpr, analyzer: &mut Analyzer| {
        let value = terms.iter().fold(zero(), |sum, t| {
            let weight = analyzer.simplify_as_tvm(&prim::floordiv(t.weight.clone(), by.clone()));
            sum + t.digit.value(analyzer) * weight
        });
        analyzer.simplify_as_tvm(&value)
    };
    let outer_value = sum(&binding.terms[..at], &inner_extent, analyzer);
    let named = |suffix: &str| Var::new(format!("{}_{suffix}", iter.var.name), iter.var.ty.clone());
    let axis = |var: &Ref<Var>, extent: &PrimExpr| {
        Ref::new(IterVar { var: var.clone(), min: zero(), extent: extent.clone(), kind: iter.kind })
    };
    let outer = axis(&named("o"), &outer_extent);
    let high = if outer_extent.is_int(1) { zero() } else { PrimExpr::from(&outer.var) };
    if inner_extent.is_int(1) {
        let high = if keep_unit { PrimExpr::from(&outer.var) } else { high };
        return Some(Axis { outer, outer_value, inner: None, whole: high });
    }
    let inner = axis(&named("i"), &inner_extent);
    let whole = high * &inner_extent + &inner.var;
    let inner_value = sum(&binding.terms[at..], &one, analyzer);
    Some(Axis { outer, outer_value, inner: Some((inner, inner_value)), whole })
}

impl Parts {
    fn map(&self, block: &SBlock) -> VarMap {
        block.iter_vars.iter().zip(&self.axes).map(|(iter, axis)| (iter.var.clone(), axis.whole.clone())).collect()
    }

    /// The block inside.
    pub fn inner(&self, realize: &SBlockRealize) -> Ref<SBlockRealize> {
        let block = &realize.block;
        let changed = match substitute_stmt(&Ref::new(bare(realize)).into(), &self.map(block)) {
            Stmt::Block(n) => copy_block(&n.block),
            _ => copy_block(block),
        };
        let (iter_vars, iter_values) = self.axes.iter().filter_map(|a| a.inner.clone()).unzip();
        let axes: Vec<Ref<IterVar>> = self
            .axes
            .iter()
            .flat_map(|a| [&a.outer].into_iter().chain(a.inner.as_ref().map(|i| &i.0)))
            .cloned()
            .collect();
        let init = changed.init.as_ref().filter(|_| !self.sets_outside).map(|s| simpler_accesses(s, &axes));
        let body = simpler_accesses(&changed.body, &axes);
        let block = with_regions(SBlock { iter_vars, init, body, ..changed });
        Ref::new(SBlockRealize { iter_values, predicate: self.inner_predicate.clone(), block })
    }

    /// The block outside, around the loops.
    fn outer(&self, realize: &SBlockRealize, inner: &Ref<SBlockRealize>, loops: &[Ref<For>]) -> Ref<SBlockRealize> {
        let block = &realize.block;
        let innermost: Stmt = inner.clone().into();
        let body = loops.iter().rev().fold(innermost, |body, l| Ref::new(For { body, ..copy_loop(l) }).into());
        let init = block.init.as_ref().filter(|_| self.sets_outside);
        let block = with_regions(SBlock {
            iter_vars: self.axes.iter().map(|a| a.outer.clone()).collect(),
            reads: Vec::new(),
            writes: Vec::new(),
            name: format!("{}_o", block.name),
            alloc_buffers: Vec::new(),
            match_buffers: Vec::new(),
            annotations: relaxide_ir::Attrs::new(),
            init: init.map(|init| self.init_nest(block, init, loops)),
            body,
        });
        let iter_values = self.axes.iter().map(|a| a.outer_value.clone()).collect();
        Ref::new(SBlockRealize { iter_values, predicate: self.outer_predicate.clone(), block })
    }

    /// The loops that set the elements of a box.
    fn init_nest(&self, block: &SBlock, init: &Stmt, loops: &[Ref<For>]) -> Stmt {
        let (mut iter_vars, mut iter_values, mut axes) = (Vec::new(), Vec::new(), VarMap::new());
        for (iter, value) in self.axes.iter().filter_map(|a| a.inner.as_ref()) {
            if iter.kind != IterKind::Spatial {
                continue;
            }
            let var = Var::new(format!("{}_init", iter.var.name), iter.var.ty.clone());
            axes.insert(iter.var.clone(), PrimExpr::from(&var));
            let (min, extent) = (iter.min.clone(), iter.extent.clone());
            iter_vars.push(Ref::new(IterVar { var, min, extent, kind: iter.kind }));
            iter_values.push(value.clone());
        }
        let used = |l: &&Ref<For>| iter_values.iter().any(|v| free_vars(v).contains(&l.var));
        let kept: Vec<&Ref<For>> = loops.iter().filter(used).collect();
        let fresh = |l: &&Ref<For>| (l.var.clone(), Var::new(format!("{}_init", l.var.name), l.var.ty.clone()));
        let renamed: Vec<(Ref<Var>, Ref<Var>)> = kept.iter().map(fresh).collect();
        let map: VarMap = renamed.iter().map(|(old, new)| (old.clone(), PrimExpr::from(new))).collect();
        let dropped =
            |c: &PrimExpr| free_vars(c).iter().any(|v| loops.iter().any(|l| l.var == *v) && !map.contains_key(v));
        // A loop of one iteration that no value names is at its only place.
        let still = loops.iter().filter(|l| l.extent.is_int(1) && !map.contains_key(&l.var));
        let still: VarMap = still.map(|l| (l.var.clone(), l.min.clone())).collect();
        let conditions = conjuncts(&substitute(&self.inner_predicate, &still)).into_iter().filter(|c| !dropped(c));
        let predicate = substitute(&conditions.fold(prim::boolean(true), prim::and), &map);
        let iter_values = iter_values.iter().map(|v| substitute(v, &map)).collect();
        let whole = self.map(block).into_iter().map(|(var, e)| (var, substitute(&e, &axes))).collect();
        let block = with_regions(SBlock {
            iter_vars,
            reads: Vec::new(),
            writes: Vec::new(),
            name: format!("{}_init", block.name),
            alloc_buffers: Vec::new(),
            match_buffers: Vec::new(),
            annotations: relaxide_ir::Attrs::new(),
            init: None,
            body: substitute_stmt(init, &whole),
        });
        let innermost: Stmt = Ref::new(SBlockRealize { iter_values, predicate, block }).into();
        kept.iter().zip(&renamed).rev().fold(innermost, |body, (l, (_, var))| {
            Ref::new(For { var: var.clone(), body, annotations: relaxide_ir::Attrs::new(), ..copy_loop(l) }).into()
        })
    }
}

/// The block at no values: its axes are about to be replaced inside.
fn bare(realize: &SBlockRealize) -> SBlockRealize {
    let block = Ref::new(SBlock { iter_vars: Vec::new(), ..copy_block(&realize.block) });
    SBlockRealize { iter_values: Vec::new(), predicate: prim::boolean(true), block }
}

impl Schedule {
    /// Makes one block of what a loop executes, which must be one block. The block outside.
    pub fn blockize(&mut self, loop_: &Ref<LoopRV>) -> Result<Ref<SBlockRV>, StepError> {
        self.step_block(&KIND, vec![loop_operand(loop_)], vec![true.into()])
    }
}
