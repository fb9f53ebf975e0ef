//! `decompose_reduction`: a reduction block becomes two, one that sets its elements and one that adds to them.
//!
//! ```text
//! for i, j, k in T.grid(4, 8, 16):              for i in range(4):
//!     with T.sblock("C"):                           for j_init in range(8):
//!         with T.init():                                with T.sblock("C_init"):
//!             C[vi, vj] = 0                ->               C[vi, vj] = 0
//!         C[vi, vj] = C[vi, vj] + …                 for j, k in T.grid(8, 16):
//!                                                       with T.sblock("C_update"):
//!                                                           C[vi, vj] = C[vi, vj] + …
//! ```
//!
//! The first stands in front of the given loop. No loop around that one may take part in the reduction: the elements would
//! be set again in the middle of it. Of the loops from the given one inwards, the first block gets those that its axes
//! depend on, and of the condition the parts that do not speak of the others.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::prim::{self, PrimExpr, VarMap, free_vars, substitute};

use super::structure::{Inner, inner_place};
use crate::analysis::affine::conjuncts;
use crate::analysis::regions::with_regions;
use crate::functor::substitute_stmt;
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::scope::Scope;
use crate::s_tir::state::{copy_block, copy_loop, replace, with_block};
use crate::s_tir::step::{Call, loop_operand, operand};
use crate::s_tir::{LoopRV, SBlockRV, Schedule, ScheduleError, StepError, Value};
use crate::stmt::*;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "DecomposeReduction",
    method: "decompose_reduction",
    is_pure: false,
    params: &[Param::Input("block"), Param::Input("loop")],
    results: Results::One,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let Inner { place, realize, at, loops } = inner_place(sch, &call.block(0)?, &call.loop_(1)?)?;
    let block = &realize.block;
    let scope = Scope::new(&place.tree, place.scope()?);
    if let Some(why) = scope.why_not_reduction(place.node) {
        return Err(ScheduleError::at_block(block, format!("block `{}` is no reduction: {why}", block.name)));
    }
    check_outer_loops(&realize, &loops[..at], &loops[at])?;
    let Some(init) = &block.init else { return Err(ScheduleError::at_block(block, "it has no init")) };
    let (nest, first) = init_nest(&realize, init, &loops[at..]);
    // Without an init the block reads what it adds to.
    let own = block.writes.iter().filter(|w| !block.reads.iter().any(|r| r.buffer == w.buffer));
    let reads = own.chain(&block.reads).cloned().collect();
    let update = SBlock { name: format!("{}_update", block.name), init: None, reads, ..copy_block(block) };
    let update = Ref::new(update);
    let target: Stmt = loops[at].clone().into();
    let updated = replace(&target, &[(realize.clone().into(), with_block(&realize, update.clone()).into())]);
    let body = replace(&sch.func(&place.func)?.body, &[(target, Stmt::seq([nest, updated]))]);
    sch.commit(&place.func, body, &[(block.clone(), update)])?;
    Ok(vec![Value::Block(place.func.clone(), first)])
}

/// No loop outside takes part in the reduction.
fn check_outer_loops(realize: &SBlockRealize, outer: &[Ref<For>], given: &For) -> Result<(), ScheduleError> {
    for (iter, value) in realize.block.iter_vars.iter().zip(&realize.iter_values) {
        if iter.kind != IterKind::Reduce {
            continue;
        }
        let used = free_vars(value);
        if let Some(l) = outer.iter().find(|l| used.contains(&l.var)) {
            let reason = format!(
                "loop `{}` is around `{}` and takes part in the reduction along `{}`: the elements would be set again in \
                 each of its iterations",
                l.var.name, given.var.name, iter.var.name
            );
            let help = format!("give `{}` or a loop around it", l.var.name);
            return Err(ScheduleError::at_loop(given, reason).with_help(help));
        }
    }
    Ok(())
}

/// The loops and the block that set the elements, and that block.
fn init_nest(realize: &SBlockRealize, init: &Stmt, loops: &[Ref<For>]) -> (Stmt, Ref<SBlock>) {
    let block = &realize.block;
    let (mut iter_vars, mut iter_values, mut axes) = (Vec::new(), Vec::new(), VarMap::new());
    for (iter, value) in block.iter_vars.iter().zip(&realize.iter_values) {
        if iter.kind == IterKind::Spatial {
            let var = Var::new(iter.var.name.clone(), iter.var.ty.clone());
            axes.insert(iter.var.clone(), PrimExpr::from(&var));
            let (min, extent) = (iter.min.clone(), iter.extent.clone());
            iter_vars.push(Ref::new(IterVar { var, min, extent, kind: iter.kind }));
            iter_values.push(value.clone());
        }
    }
    let (kept, dropped): (Vec<&Ref<For>>, Vec<&Ref<For>>) =
        loops.iter().partition(|l| iter_values.iter().any(|v| free_vars(v).contains(&l.var)));
    let about_dropped = |c: &PrimExpr| free_vars(c).iter().any(|v| dropped.iter().any(|l| l.var == *v));
    let conditions = conjuncts(&realize.predicate).into_iter().filter(|c| !about_dropped(c));
    let predicate = conditions.fold(prim::boolean(true), prim::and);
    let renamed: Vec<(Ref<Var>, &Ref<For>)> =
        kept.iter().map(|l| (Var::new(format!("{}_init", l.var.name), l.var.ty.clone()), *l)).collect();
    let map: VarMap = renamed.iter().map(|(new, l)| (l.var.clone(), PrimExpr::from(new))).collect();
    let first = with_regions(SBlock {
        iter_vars,
        reads: Vec::new(),
        writes: block.writes.clone(),
        name: format!("{}_init", block.name),
        alloc_buffers: Vec::new(),
        match_buffers: Vec::new(),
        annotations: block.annotations.clone(),
        init: None,
        body: substitute_stmt(init, &axes),
    });
    let iter_values = iter_values.iter().map(|v| substitute(v, &map)).collect();
    let predicate = substitute(&predicate, &map);
    let innermost = Ref::new(SBlockRealize { iter_values, predicate, block: first.clone() }).into();
    let nest = renamed.iter().rev().fold(innermost, |body, (var, l)| {
        let (min, extent) = (substitute(&l.min, &map), substitute(&l.extent, &map));
        Ref::new(For { var: var.clone(), min, extent, body, ..copy_loop(l) }).into()
    });
    (nest, first)
}

impl Schedule {
    /// Takes a reduction apart in a block that sets its elements, in front of a loop, and one that adds to them. The first
    /// is returned; the given block is the second from now on.
    pub fn decompose_reduction(
        &mut self,
        block: &Ref<SBlockRV>,
        loop_: &Ref<LoopRV>,
    ) -> Result<Ref<SBlockRV>, StepError> {
        self.step_block(&KIND, vec![operand(block), loop_operand(loop_)], vec![])
    }
}
