//! `rfactor`: a reduction is executed in parts, apart for each iteration of one of its loops, and the parts are combined.
//!
//! ```text
//! for i, k_0, k_1 in T.grid(4, 8, 16):           for i, k_0, k_1 in T.grid(4, 8, 16):
//!     C[i] = C[i] + A[i, k_0 * 16 + k_1]   ->        C_rf[i, k_0] = C_rf[i, k_0] + A[i, k_0 * 16 + k_1]
//!                                                for i, k_0 in T.grid(4, 8):
//!                                                    C[i] = C[i] + C_rf[i, k_0]
//! ```
//!
//! The buffer of the parts has one dimension more, over the loop; `factor_axis` says where. How values are combined must be
//! known ([`crate::analysis::reducer`]), for then the order does not matter; the loops of the reduction must serve it alone,
//! one iteration after another. Every part that is combined must be set: where a predicate leaves out the first iteration of a
//! part, the step is refused.

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, PrimExpr, VarMap, free_vars, substitute};
use relaxide_ir::{Buffer, Var};

use super::caching::{buffer_like, element};
use super::structure::{free_name, loops_around, own_nest};
use crate::analysis::affine::{bindings_of, conjuncts};
use crate::analysis::reducer::Reducer;
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::scope::Scope;
use crate::s_tir::state::{StmtRef, copy_block, copy_loop, replace, with_block};
use crate::s_tir::step::{Call, loop_operand};
use crate::s_tir::{LoopRV, SBlockRV, Schedule, ScheduleError, StepError, Value};
use crate::stmt::*;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "RFactor",
    method: "rfactor",
    is_pure: false,
    params: &[Param::Input("loop"), Param::Attr("factor_axis")],
    results: Results::One,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let place = sch.loop_ref(&call.loop_(0)?)?;
    let (given, root) = (place.for_loop()?, place.scope()?);
    let task = Task::new(sch, &place, &given, call.int(0)?)?;
    let tree = &place.tree;
    let (parts, whole) = (task.parts(), task.whole());
    let nest = own_nest(tree, task.child);
    let parts_nest = replace(&nest, &[(task.realize.clone().into(), parts.clone().into())]);
    let whole_nest = task.whole_nest(&whole);
    let root_stmt = &tree.node(root).stmt;
    let rebuilt = match replace(root_stmt, &[(nest, Stmt::seq([parts_nest, whole_nest]))]) {
        Stmt::Block(n) => {
            let mut alloc_buffers = n.block.alloc_buffers.clone();
            alloc_buffers.extend(task.buffers.iter().cloned());
            Stmt::Block(with_block(&n, Ref::new(SBlock { alloc_buffers, ..copy_block(&n.block) })))
        }
        other => other,
    };
    let body = replace(&sch.func(&place.func)?.body, &[(root_stmt.clone(), rebuilt)]);
    sch.commit(&place.func, body, &[(task.realize.block.clone(), whole.block.clone())])?;
    Ok(vec![Value::Block(place.func.clone(), parts.block.clone())])
}

/// What is to be done, looked up and checked.
struct Task {
    realize: Ref<SBlockRealize>,
    child: crate::s_tir::state::NodeId,
    given: Ref<For>,
    loops: Vec<Ref<For>>,
    reducer: Reducer,
    /// The buffers of the parts.
    buffers: Vec<Ref<Buffer>>,
    /// Where among the dimensions the loop's is.
    axis: usize,
    /// What the predicate says of loops that are around the combination too.
    outer_predicate: PrimExpr,
}

impl Task {
    fn new(sch: &Schedule, place: &StmtRef, given: &Ref<For>, factor_axis: i64) -> Result<Task, ScheduleError> {
        let tree = &place.tree;
        let children = tree.child_blocks(place.node);
        let [child] = children.as_slice() else {
            let reason = format!("loop `{}` has {} blocks inside, not one", given.var.name, children.len());
            return Err(ScheduleError::at_loop(given, reason));
        };
        let realize = tree.as_block(*child).ok_or(ScheduleError::Expired { what: "block" })?.clone();
        let block = &realize.block;
        let refuse = |reason: String| ScheduleError::at_block(block, reason);
        let scope = Scope::new(tree, place.scope()?);
        if let Some(why) = scope.why_not_reduction(*child) {
            return Err(refuse(format!("block `{}` is no reduction: {why}", block.name)));
        }
        let loops = loops_around(tree, *child);
        let outermost = loops.first().map(|l| Stmt::For(l.clone()));
        if outermost.as_ref() != Some(&own_nest(tree, *child)) {
            let reason = format!("the loops around block `{}` hold other statements as well", block.name);
            return Err(refuse(reason).with_help("rfactor before other blocks are computed at its loops"));
        }
        bindings_of(&realize, &loops)
            .map_err(|why| refuse(format!("the axes of block `{}` are not affine in its loops: {why}", block.name)))?;
        for (iter, value) in block.iter_vars.iter().zip(&realize.iter_values) {
            if iter.kind == IterKind::Spatial && free_vars(value).contains(&given.var) {
                let reason = format!("loop `{}` runs along axis `{}`, which is spatial", given.var.name, iter.var.name);
                return Err(ScheduleError::at_loop(given, reason).with_help("choose a loop of the reduction"));
            }
        }
        let in_reduction = |(iter, value): (&Ref<IterVar>, &PrimExpr)| {
            iter.kind == IterKind::Reduce && free_vars(value).contains(&given.var)
        };
        if !block.iter_vars.iter().zip(&realize.iter_values).any(in_reduction) {
            let reason = format!("loop `{}` takes no part in the reduction", given.var.name);
            return Err(ScheduleError::at_loop(given, reason).with_help("choose a loop of the reduction"));
        }
        check_loops(&realize, &loops)?;
        let reducer = Reducer::of(block).map_err(|why| refuse(format!("block `{}`: {why}", block.name)))?;
        let ndim = reducer.indices.len() as i64;
        let axis = if factor_axis < 0 { factor_axis + ndim + 1 } else { factor_axis };
        let axis = usize::try_from(axis)
            .ok()
            .filter(|axis| *axis as i64 <= ndim)
            .ok_or_else(|| refuse(format!("factor_axis {factor_axis} is not in {} ..= {ndim}", -ndim - 1)))?;
        let func = sch.func(&place.func)?;
        let new = |buffer: &Ref<Buffer>| {
            let mut shape = buffer.shape.clone();
            shape.insert(axis.min(shape.len()), given.extent.clone());
            let name = free_name(&func, tree, format!("{}_rf", buffer.name));
            buffer_like(buffer, name, &shape, &buffer.scope)
        };
        let buffers = reducer.buffers.iter().map(new).collect();
        let outer_predicate = outer_predicate(&realize, &loops, given)?;
        Ok(Task { child: *child, given: given.clone(), loops, reducer, buffers, axis, outer_predicate, realize })
    }

    fn iter(&self, l: &For, kind: IterKind) -> Ref<IterVar> {
        let var = Var::new(format!("v{}", l.var.name), l.var.ty.clone());
        Ref::new(IterVar { var, min: l.min.clone(), extent: l.extent.clone(), kind })
    }

    /// The indices of a part.
    fn part(&self, indices: &[PrimExpr], at: &Ref<Var>) -> Vec<PrimExpr> {
        let mut indices = indices.to_vec();
        indices.insert(self.axis.min(indices.len()), PrimExpr::from(at) - &self.given.min);
        indices
    }

    /// The block that computes the parts.
    fn parts(&self) -> Ref<SBlockRealize> {
        let block = &self.realize.block;
        let factor = self.iter(&self.given, IterKind::Spatial);
        let mut loop_axes: VarMap = VarMap::from([(self.given.var.clone(), PrimExpr::from(&factor.var))]);
        let mut iter_vars = vec![factor.clone()];
        let mut iter_values = vec![PrimExpr::from(&self.given.var)];
        let mut axes = VarMap::new();
        for (iter, value) in block.iter_vars.iter().zip(&self.realize.iter_values) {
            let used = free_vars(value);
            if iter.kind == IterKind::Spatial || !used.contains(&self.given.var) {
                let var = Var::new(iter.var.name.clone(), iter.var.ty.clone());
                axes.insert(iter.var.clone(), PrimExpr::from(&var));
                let (min, extent) = (iter.min.clone(), iter.extent.clone());
                iter_vars.push(Ref::new(IterVar { var, min, extent, kind: iter.kind }));
                iter_values.push(value.clone());
                continue;
            }
            for l in self.loops.iter().filter(|l| used.contains(&l.var)) {
                if !loop_axes.contains_key(&l.var) {
                    let new = self.iter(l, IterKind::Reduce);
                    loop_axes.insert(l.var.clone(), PrimExpr::from(&new.var));
                    iter_vars.push(new);
                    iter_values.push(PrimExpr::from(&l.var));
                }
            }
            axes.insert(iter.var.clone(), substitute(value, &loop_axes));
        }
        let replaced = |list: &[PrimExpr]| list.iter().map(|e| substitute(e, &axes)).collect::<Vec<_>>();
        let indices = self.part(&replaced(&self.reducer.indices), &factor.var);
        let values = replaced(&self.reducer.values);
        let name = format!("{}_rf", block.name);
        let (block, predicate) =
            (self.block(name, iter_vars, &self.buffers, &indices, &values), self.realize.predicate.clone());
        Ref::new(SBlockRealize { iter_values, predicate, block })
    }

    /// The block that combines the parts.
    fn whole(&self) -> Ref<SBlockRealize> {
        let block = &self.realize.block;
        let factor = self.iter(&self.given, IterKind::Reduce);
        let (mut iter_vars, mut iter_values) = (vec![factor.clone()], vec![PrimExpr::from(&self.given.var)]);
        for (iter, value) in block.iter_vars.iter().zip(&self.realize.iter_values) {
            if iter.kind == IterKind::Spatial {
                iter_vars.push(iter.clone());
                iter_values.push(value.clone());
            }
        }
        let indices = &self.reducer.indices;
        let at = self.part(indices, &factor.var);
        let values: Vec<PrimExpr> = self.buffers.iter().map(|b| prim::load(b, at.iter().cloned())).collect();
        let block = self.block(block.name.clone(), iter_vars, &self.reducer.buffers, indices, &values);
        let reads = self.buffers.iter().map(|b| element(b, &at)).collect();
        let block = Ref::new(SBlock { reads, ..copy_block(&block) });
        Ref::new(SBlockRealize { iter_values, predicate: self.outer_predicate.clone(), block })
    }

    /// A reduction block over some axes that combines values into elements.
    fn block(
        &self,
        name: String,
        iter_vars: Vec<Ref<IterVar>>,
        buffers: &[Ref<Buffer>],
        indices: &[PrimExpr],
        values: &[PrimExpr],
    ) -> Ref<SBlock> {
        let store = |buffer: &Ref<Buffer>, value: PrimExpr| Stmt::store(buffer, indices.iter().cloned(), value);
        // Where no axis of the reduction is left, each part is one value.
        let combines = iter_vars.iter().any(|iter| iter.kind == IterKind::Reduce);
        let init = buffers.iter().zip(&self.reducer.identities).map(|(b, value)| store(b, value.clone()));
        let so_far: Vec<PrimExpr> = buffers.iter().map(|b| prim::load(b, indices.iter().cloned())).collect();
        let combined = if combines { self.reducer.combine(&so_far, values) } else { values.to_vec() };
        let body = match (buffers, combined.as_slice()) {
            ([buffer], [value]) => store(buffer, value.clone()),
            _ => {
                let named = |b: &Ref<Buffer>| Var::prim(format!("v_{}", b.name), b.dtype);
                let vars: Vec<Ref<Var>> = buffers.iter().map(named).collect();
                let binds = vars.iter().zip(&combined).map(|(var, value)| Stmt::bind(var.clone(), value));
                let stores = buffers.iter().zip(&vars).map(|(b, var)| store(b, PrimExpr::from(var)));
                Stmt::seq(binds.chain(stores))
            }
        };
        crate::analysis::regions::with_regions(SBlock {
            iter_vars,
            reads: Vec::new(),
            writes: buffers.iter().map(|b| element(b, indices)).collect(),
            name,
            alloc_buffers: Vec::new(),
            match_buffers: Vec::new(),
            annotations: self.realize.block.annotations.clone(),
            init: combines.then(|| Stmt::seq(init)),
            body,
        })
    }

    /// The block that combines under the loops that it needs, with counters of their own.
    fn whole_nest(&self, whole: &Ref<SBlockRealize>) -> Stmt {
        let used = |l: &&Ref<For>| whole.iter_values.iter().any(|v| free_vars(v).contains(&l.var));
        let kept: Vec<&Ref<For>> = self.loops.iter().filter(used).collect();
        let renamed: Vec<(&Ref<For>, Ref<Var>)> =
            kept.iter().map(|l| (*l, Var::new(l.var.name.clone(), l.var.ty.clone()))).collect();
        let map: VarMap = renamed.iter().map(|(l, var)| (l.var.clone(), PrimExpr::from(var))).collect();
        let iter_values = whole.iter_values.iter().map(|v| substitute(v, &map)).collect();
        let predicate = substitute(&whole.predicate, &map);
        let realize = SBlockRealize { iter_values, predicate, block: whole.block.clone() };
        let innermost: Stmt = Ref::new(realize).into();
        renamed
            .iter()
            .rev()
            .fold(innermost, |body, (l, var)| Ref::new(For { var: var.clone(), body, ..copy_loop(l) }).into())
    }
}

/// The loops of the reduction are executed one iteration after another, and serve no spatial axis: the axes of the parts could
/// not be told apart.
fn check_loops(realize: &SBlockRealize, loops: &[Ref<For>]) -> Result<(), ScheduleError> {
    let used_by = |l: &Ref<For>, kind: IterKind| {
        let mut axes = realize.block.iter_vars.iter().zip(&realize.iter_values);
        axes.any(|(iter, value)| iter.kind == kind && free_vars(value).contains(&l.var))
    };
    for l in loops.iter().filter(|l| used_by(l, IterKind::Reduce)) {
        let reason = if matches!(l.kind, ForKind::Parallel | ForKind::Vectorized) {
            format!("the iterations of loop `{}` are executed at once, but add to the same elements", l.var.name)
        } else if used_by(l, IterKind::Spatial) {
            format!("loop `{}` runs along axes of the reduction and along spatial ones", l.var.name)
        } else {
            continue;
        };
        return Err(ScheduleError::at_loop(l, reason));
    }
    Ok(())
}

/// The part of a block's predicate that is about the given loop and the loops of spatial axes. The rest must hold in the first
/// iteration of every part, which sets it.
fn outer_predicate(
    realize: &Ref<SBlockRealize>,
    loops: &[Ref<For>],
    given: &Ref<For>,
) -> Result<PrimExpr, ScheduleError> {
    let axes = realize.block.iter_vars.iter().zip(&realize.iter_values);
    let spatial: Vec<Ref<Var>> =
        axes.filter(|(iter, _)| iter.kind == IterKind::Spatial).flat_map(|(_, value)| free_vars(value)).collect();
    let (outer, inner): (Vec<&Ref<For>>, Vec<&Ref<For>>) =
        loops.iter().partition(|l| l.var == given.var || spatial.contains(&l.var));
    let mut analyzer = Analyzer::new();
    outer.iter().for_each(|l| analyzer.bind(&l.var, l.min.clone(), l.extent.clone()));
    let first: VarMap = inner.iter().map(|l| (l.var.clone(), l.min.clone())).collect();
    let about_parts = |c: &PrimExpr| free_vars(c).iter().any(|var| first.contains_key(var));
    let (parts, kept): (Vec<PrimExpr>, Vec<PrimExpr>) =
        conjuncts(&realize.predicate).into_iter().partition(about_parts);
    match parts.iter().find(|c| !analyzer.can_prove(&substitute(c, &first))) {
        Some(condition) => {
            let reason = format!(
                "where `{condition}` fails, an iteration of loop `{}` computes nothing, and its part would not be set",
                given.var.name
            );
            Err(ScheduleError::at_loop(given, reason).with_help("split the loop by a factor that fits"))
        }
        None => Ok(kept.into_iter().fold(prim::boolean(true), prim::and)),
    }
}

impl Schedule {
    /// Carries a reduction out apart for each iteration of one of its loops. The block that computes the parts; the given
    /// loop's block combines them from now on.
    pub fn rfactor(&mut self, loop_: &Ref<LoopRV>, factor_axis: i64) -> Result<Ref<SBlockRV>, StepError> {
        self.step_block(&KIND, vec![loop_operand(loop_)], vec![factor_axis.into()])
    }
}
