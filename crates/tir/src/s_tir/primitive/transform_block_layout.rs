//! `transform_block_layout`: a block over other axes, and loops of their own around it.
//!
//! ```text
//! for i, j in T.grid(128, 64):                                 for ax0, ax1, ax2 in T.grid(8, 64, 16):
//!     with T.sblock("B"):                                          with T.sblock("B"):
//!         vi, vj = i, j             -- (i//16, j, i%16) ->             v0, v1, v2 = ax0, ax1, ax2
//!         B[vi, vj] = A[vi, vj]                                        B[v0 * 16 + v2, v1] = A[v0 * 16 + v2, v1]
//! ```
//!
//! The map must have an inverse and leave no place empty. An axis of the new block may be made of axes of one kind only. The
//! old loops must do nothing but run through the block's axes.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, PrimExpr, VarMap, free_vars};

use super::simpler_accesses::simpler_accesses;
use super::structure::{loop_inside, loops_around, own_nest};
use super::transform_layout::{map_operand, simpler};
use crate::IndexMap;
use crate::analysis::regions::{substitute_region, with_regions};
use crate::functor::substitute_stmt;
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::state::{copy_block, replace};
use crate::s_tir::step::{Call, operand};
use crate::s_tir::{SBlockRV, Schedule, ScheduleError, StepError, Value};
use crate::stmt::*;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "TransformBlockLayout",
    method: "transform_block_layout",
    is_pure: false,
    params: &[Param::Input("block"), Param::Attr("index_map")],
    results: Results::None,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let place = sch.block_ref(&call.block(0)?)?;
    let realize = place.realize()?;
    let block = &realize.block;
    place.scope()?;
    let refuse = |reason: String| ScheduleError::at_block(block, reason);
    let loops = loops_around(&place.tree, place.node);
    let nest = own_nest(&place.tree, place.node);
    let outermost = loops.first().map_or_else(|| place.stmt().clone(), |l| Stmt::For(l.clone()));
    if nest != outermost || !is_trivial(&realize, &loops) || loop_inside(block, &loops).is_some() {
        let reason = format!("the loops around block `{}` do more than run through its axes, one each", block.name);
        return Err(refuse(reason).with_help("transform a block's axes before its loops are changed"));
    }
    let dims: Vec<PrimExpr> = block.iter_vars.iter().map(|iter| iter.extent.clone()).collect();
    let given: Ref<IndexMap> = call.object(0)?;
    let map = simpler(&given, &dims);
    if map.initial_indices.len() != dims.len() {
        let takes = map.initial_indices.len();
        return Err(refuse(format!(
            "the map takes {takes} indices, but block `{}` has {} axes",
            block.name,
            dims.len()
        )));
    }
    let inverse = map.inverse(&dims).filter(|inverse| !inverse.padded);
    let (Some(inverse), Some(extents)) = (inverse, map.apply_to_shape(&dims)) else {
        return Err(refuse(format!("the map is not known to be one to one over the axes of block `{}`", block.name))
            .with_help("choose factors that divide the extents"));
    };
    let axes = new_axes(block, &map, &extents)?;
    let vars: Vec<PrimExpr> = axes.iter().map(|axis| PrimExpr::from(&axis.var)).collect();
    let mut analyzer = Analyzer::new();
    // An axis of one value stays what it is called, and does not become zero.
    let several: Vec<Ref<IterVar>> = axes.iter().filter(|axis| !axis.extent.is_int(1)).cloned().collect();
    for axis in &several {
        analyzer.bind(&axis.var, axis.min.clone(), axis.extent.clone());
    }
    let old = inverse.map.apply(&vars).unwrap_or_default();
    let old = old.iter().zip(&block.iter_vars).map(|(e, i)| prim::cast(i.var.dtype(), analyzer.simplify_as_tvm(e)));
    let values: VarMap = block.iter_vars.iter().map(|i| i.var.clone()).zip(old).collect();
    let changed = SBlock {
        init: block.init.as_ref().map(|s| simpler_accesses(&substitute_stmt(s, &values), &several)),
        body: simpler_accesses(&substitute_stmt(&block.body, &values), &several),
        iter_vars: axes.clone(),
        reads: block.reads.iter().map(|r| substitute_region(r, &values)).collect(),
        writes: block.writes.iter().map(|r| substitute_region(r, &values)).collect(),
        ..copy_block(block)
    };
    let new = with_regions(changed);
    let loop_vars: Vec<Ref<Var>> =
        axes.iter().enumerate().map(|(d, a)| Var::prim(format!("ax{d}"), a.var.dtype())).collect();
    let iter_values = loop_vars.iter().map(PrimExpr::from).collect();
    let innermost: Stmt =
        Ref::new(SBlockRealize { iter_values, predicate: prim::boolean(true), block: new.clone() }).into();
    let made = loop_vars
        .iter()
        .zip(&axes)
        .rev()
        .fold(innermost, |body, (var, axis)| Stmt::serial(var.clone(), axis.extent.clone(), body));
    let body = replace(&sch.func(&place.func)?.body, &[(nest, made)]);
    sch.commit(&place.func, body, &[(block.clone(), new)])?;
    Ok(Vec::new())
}

/// Whether each loop runs through one axis, from zero to its end.
pub(super) fn is_trivial(realize: &SBlockRealize, loops: &[Ref<For>]) -> bool {
    let binds = |(iter, value): (&Ref<IterVar>, &PrimExpr)| {
        let same = |e: &PrimExpr| Analyzer::new().can_prove_equal(e, &iter.extent);
        value.as_int() == Some(0) && iter.extent.is_int(1)
            || loops.iter().any(|l| value.as_var() == Some(&l.var) && l.min.is_int(0) && same(&l.extent))
    };
    let used: Vec<&Ref<Var>> = realize.iter_values.iter().filter_map(PrimExpr::as_var).collect();
    let once = |l: &Ref<For>| used.iter().filter(|v| **v == &l.var).count() == 1 || l.extent.is_int(1);
    realize.predicate.is_int(1)
        && realize.block.iter_vars.iter().zip(&realize.iter_values).all(binds)
        && realize.block.iter_vars.iter().all(|i| i.min.is_int(0))
        && loops.iter().all(once)
}

fn new_axes(block: &SBlock, map: &IndexMap, extents: &[PrimExpr]) -> Result<Vec<Ref<IterVar>>, ScheduleError> {
    let of_block = block.iter_vars.first().map_or(relaxide_ir::DataType::int(64), |i| i.var.dtype());
    let mut axes = Vec::with_capacity(extents.len());
    for (d, (index, extent)) in map.final_indices.iter().zip(extents).enumerate() {
        let used = free_vars(index);
        let kinds = map.initial_indices.iter().zip(&block.iter_vars).filter(|(v, _)| used.contains(v));
        let mut kinds = kinds.map(|(_, iter)| iter.kind);
        let kind = kinds.next().unwrap_or(IterKind::Spatial);
        if kinds.any(|other| other != kind) {
            let reason = format!("axis {d} of the new block would be made of axes of several kinds");
            return Err(ScheduleError::at_block(block, reason).with_help("keep spatial and reduction axes apart"));
        }
        // A number says its own type; an index that is computed is of the type of the block's axes.
        let dtype = if used.is_empty() { index.dtype() } else { of_block };
        let extent = prim::cast(dtype, Analyzer::new().simplify_as_tvm(extent));
        axes.push(Ref::new(IterVar {
            var: Var::prim(format!("v{d}"), dtype),
            min: prim::int_of(dtype, 0),
            extent,
            kind,
        }));
    }
    Ok(axes)
}

impl Schedule {
    /// Puts a block over other axes, by a map of the indices of the old ones.
    pub fn transform_block_layout(&mut self, block: &Ref<SBlockRV>, map: &Ref<IndexMap>) -> Result<(), StepError> {
        self.step_only(&KIND, vec![operand(block)], vec![map_operand(map)])
    }
}
