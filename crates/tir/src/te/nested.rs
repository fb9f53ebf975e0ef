//! Reductions whose axes are as long as other axes say.
//!
//! ```text
//! for i in range(n):                                  # over k in range(i):
//!     with T.sblock("B_1"):
//!         v_i = T.axis.spatial(n, i)
//!         for k in range(v_i):
//!             with T.sblock("B"):
//!                 v_i_1 = T.axis.spatial((v_i, v_i + 1), v_i)
//!                 v_k = T.axis.reduce(v_i, k)
//!                 with T.init(): …
//!                 B[v_i_1] = B[v_i_1] + A[v_i_1, v_k]
//! ```

use relaxide_ffi::Ref;
use relaxide_ir::prim::{self, PrimExpr, VarMap};
use relaxide_ir::{Buffer, Var};

use super::prim_func::{Builder, NestAxis, realize, store_together, unique};
use super::reduce::Reduction;
use super::tensor::Stage;
use crate::analysis::regions::regions_of_block;
use crate::stmt::*;

/// How deep each axis stands where one is as long as others say: behind all of those. `None` where none does.
pub(super) fn levels(axes: &[NestAxis]) -> Option<Vec<usize>> {
    let mut levels: Vec<usize> = Vec::with_capacity(axes.len());
    for axis in axes {
        let known = axes.iter().zip(&levels);
        let used = prim::free_vars(&axis.extent);
        let above = known.filter(|(other, _)| used.contains(&other.source)).map(|(_, level)| level + 1);
        levels.push(above.max().unwrap_or(0));
    }
    levels.iter().any(|level| *level > 0).then_some(levels)
}

/// The parts of one block.
struct Level {
    iter_vars: Vec<Ref<IterVar>>,
    iter_values: Vec<PrimExpr>,
    /// Its loops, the outermost first.
    loops: Vec<(Ref<Var>, PrimExpr)>,
    init: Option<Stmt>,
}

impl Builder {
    /// A reduction whose axes are as long as others say: a block within a block for each level. An inner block takes the axes of the
    /// outer ones again, one value at a time; results start where the first axis of the reduction is.
    pub(super) fn nested_reduction(
        &mut self,
        stage: &Stage,
        name: String,
        reduction: &Reduction,
        targets: &[Ref<Buffer>],
        axes: Vec<NestAxis>,
        levels: &[usize],
    ) -> Stmt {
        let depth = levels.iter().copied().max().map_or(0, |deepest| deepest + 1);
        let first_reduced =
            axes.iter().zip(levels).filter(|(a, _)| a.kind == IterKind::Reduce).map(|(_, level)| *level);
        let starts = first_reduced.min().unwrap_or(0);
        let spatial = axes.len() - reduction.axes.len();
        let mut at = VarMap::new();
        let mut nest = Vec::with_capacity(depth);
        let mut body = Stmt::nop();
        for level in 0..depth {
            let (mut iter_vars, mut iter_values, mut loops) = (Vec::new(), Vec::new(), Vec::new());
            let outer = at.clone();
            for (axis, _) in axes.iter().zip(levels).filter(|(_, of)| **of <= level) {
                let var = Var::new(axis.block_var.name.clone(), axis.block_var.ty.clone());
                let (min, extent, value) = match outer.get(&axis.source) {
                    Some(now) => (now.clone(), prim::int_of(var.dtype(), 1), now.clone()),
                    None => {
                        let extent = prim::substitute(&axis.extent, &outer);
                        loops.push((axis.loop_var.clone(), extent.clone()));
                        (prim::int_of(var.dtype(), 0), extent, PrimExpr::from(&axis.loop_var))
                    }
                };
                at.insert(axis.source.clone(), PrimExpr::from(&var));
                iter_vars.push(Ref::new(IterVar { var, min, extent, kind: axis.kind }));
                iter_values.push(value);
            }
            let indices: Vec<PrimExpr> = axes[..spatial].iter().map(|axis| at[&axis.source].clone()).collect();
            let (init, combined) = self.reduced(reduction, targets, &indices, self.rebind_to(at.clone()));
            let init = targets.iter().zip(init).map(|(b, value)| Stmt::store(b, &indices, value));
            let init = (level == starts).then(|| Stmt::seq(init));
            body = store_together(targets, &indices, combined);
            nest.push(Level { iter_vars, iter_values, loops, init });
        }
        let mut name = Some(name);
        for Level { iter_vars, iter_values, loops, init } in nest.into_iter().rev() {
            let name = name.take().unwrap_or_else(|| unique(&mut self.block_names, &stage.name));
            let (reads, writes) = (Vec::new(), Vec::new());
            let (alloc_buffers, match_buffers, annotations) = (Vec::new(), Vec::new(), self.annotations(stage));
            let mut block =
                SBlock { iter_vars, reads, writes, name, alloc_buffers, match_buffers, annotations, init, body };
            let touched = regions_of_block(&block);
            (block.reads, block.writes) = (touched.reads, touched.writes);
            let innermost = realize(block, iter_values);
            body = loops.into_iter().rev().fold(innermost, |body, (var, extent)| Stmt::serial(var, extent, body));
        }
        body
    }
}
