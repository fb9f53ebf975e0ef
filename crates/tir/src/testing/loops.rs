//! Random changes to the loops around blocks, which must not change results.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::prim::{self, PrimExpr, PrimMutator, VarMap, substitute};

use super::Random;
use crate::PrimFunc;
use crate::functor::StmtMutator;
use crate::stmt::*;

/// The same kernel with other loops: permuted, split with a predicate for the rest, and marked as parallel, vectorized or
/// unrolled where the axes allow it. Reduction axes keep their order.
pub fn reschedule(func: &PrimFunc, seed: u64) -> PrimFunc {
    let mut loops = Loops { random: Random::new(seed) };
    func.with_body(loops.mutate_stmt(&func.body))
}

struct Loops {
    random: Random,
}

/// One loop of a nest.
struct Loop {
    var: Ref<Var>,
    extent: PrimExpr,
    spatial: bool,
    kind: ForKind,
}

impl PrimMutator for Loops {}

impl StmtMutator for Loops {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        match nest(stmt) {
            Some((loops, realize)) => self.rebuild(loops, &realize),
            None => self.remake_stmt(stmt),
        }
    }
}

/// The loops around a block, if there is nothing else and each drives one axis.
fn nest(stmt: &Stmt) -> Option<(Vec<Loop>, Ref<SBlockRealize>)> {
    let mut loops = Vec::new();
    let mut here = stmt;
    while let Stmt::For(n) = here {
        loops.push((n.var.clone(), n.extent.clone()));
        here = &n.body;
    }
    let Stmt::Block(realize) = here else { return None };
    if loops.is_empty() || realize.iter_values.len() != loops.len() {
        return None;
    }
    let axis = |(var, extent): (Ref<Var>, PrimExpr)| {
        let at = realize.iter_values.iter().position(|v| v.as_var() == Some(&var))?;
        let spatial = realize.block.iter_vars[at].kind == IterKind::Spatial;
        Some(Loop { var, extent, spatial, kind: ForKind::Serial })
    };
    Some((loops.into_iter().map(axis).collect::<Option<_>>()?, realize.clone()))
}

impl Loops {
    fn rebuild(&mut self, loops: Vec<Loop>, realize: &SBlockRealize) -> Stmt {
        let mut values = VarMap::new();
        let mut predicate = realize.predicate.clone();
        let mut result: Vec<Loop> = Vec::new();
        for one in loops {
            if self.random.one_in(3) {
                let by = self.random.between(2, 5);
                let (outer, inner) = (Var::dim(format!("{}_o", one.var.name)), Var::dim(format!("{}_i", one.var.name)));
                let value = PrimExpr::from(&outer) * by + &inner;
                predicate = prim::and(predicate, prim::lt(value.clone(), &one.extent));
                values.insert(one.var.clone(), value);
                let count = prim::floordiv(&one.extent + (by - 1), by);
                let (spatial, kind) = (one.spatial, ForKind::Serial);
                result.push(Loop { var: outer, extent: count, spatial, kind });
                result.push(Loop { var: inner, extent: by.into(), spatial, kind });
            } else {
                result.push(one);
            }
        }
        self.permute(&mut result);
        self.mark(&mut result);
        let iter_values = realize.iter_values.iter().map(|v| substitute(v, &values)).collect();
        let block = realize.block.clone();
        let innermost = Ref::new(SBlockRealize { iter_values, predicate, block }).into();
        result.into_iter().rev().fold(innermost, |body, l| Stmt::for_loop(l.kind, l.var, l.extent, body))
    }

    /// Moves spatial loops anywhere; reduction loops stay in order among themselves.
    fn permute(&mut self, loops: &mut Vec<Loop>) {
        for _ in 0..loops.len() {
            let from = self.random.below(loops.len());
            if loops[from].spatial {
                let moved = loops.remove(from);
                let to = self.random.below(loops.len() + 1);
                loops.insert(to, moved);
            }
        }
    }

    fn mark(&mut self, loops: &mut [Loop]) {
        let last = loops.len().saturating_sub(1);
        for (i, one) in loops.iter_mut().enumerate() {
            let constant = one.extent.as_int().is_some();
            one.kind = match self.random.below(4) {
                0 if one.spatial && i == 0 => ForKind::Parallel,
                1 | 2 if one.spatial && constant && i == last => ForKind::Vectorized,
                1 if one.spatial => ForKind::Vectorized,
                2 => ForKind::Unrolled,
                _ => ForKind::Serial,
            };
        }
    }
}
