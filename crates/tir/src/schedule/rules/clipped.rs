//! Reductions of guarded terms, without the guard.
//!
//! ```text
//! M[y, x] = max over k of  if (y*2 + k >= 1 and y*2 + k < h + 1 and x >= 1 and x < w + 1) A[y*2 + k - 1, x - 1] else lowest
//!     ->  x in 1 .. w + 1, k in max(0, 1 - y*2) .. min(3, h + 1 - y*2):   max over k of A[y*2 + k - 1, x - 1]
//!         all other x:                                                    lowest
//! ```
//!
//! Where what stands on the other side of the guard is what a reduction starts from, a term that is guarded away changes
//! nothing. Inequalities of one axis each leave an interval of it, which is found once a row instead of asked for each
//! element: padding under a window that slides is such. What is left of a guard stays one.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::prim::{BinaryOp, PrimExpr, VarMap, add, call, constant, int, max, min, sub};

use super::super::affine::{same, uses};
use super::super::{Axis, Reduction, Stage};
use super::row::{Interval, all_of, choice, conjuncts, interval};
use crate::Stmt;

/// The terms of a reduction and where they are.
pub struct Clipped {
    /// A term.
    pub value: PrimExpr,
    /// The part of the output's row that has terms.
    pub along: Interval,
    /// The part of each reduction axis that has them.
    taps: HashMap<Ref<Var>, Interval>,
}

impl Clipped {
    /// Takes apart the guard of a reduction's terms, for a row of outputs along `x`.
    pub fn of(stage: &Stage, reduction: &Reduction, x: &Ref<Var>) -> Clipped {
        let whole = || Clipped { value: stage.value.clone(), along: Interval::default(), taps: HashMap::new() };
        let Some((condition, term, otherwise)) = choice(&stage.value) else { return whole() };
        let changes_nothing = match reduction.op {
            BinaryOp::Max | BinaryOp::Min => same(otherwise, &reduction.init),
            BinaryOp::Add => same(otherwise, &constant(stage.output.dtype, 0.0)),
            _ => false,
        };
        if !changes_nothing {
            return whole();
        }
        // Each condition belongs to the only axis that moves it.
        let axes: Vec<&Ref<Var>> = stage.reduce.iter().map(|a| &a.var).chain([x]).collect();
        let mut own: HashMap<Ref<Var>, Vec<PrimExpr>> = HashMap::new();
        let mut rest = Vec::new();
        for condition in conjuncts(condition) {
            let moved: Vec<&Ref<Var>> = axes.iter().filter(|a| uses(&condition, a)).copied().collect();
            match moved.as_slice() {
                [axis] if interval(axis, std::slice::from_ref(&condition)).is_some() => {
                    own.entry((*axis).clone()).or_default().push(condition);
                }
                _ => rest.push(condition),
            }
        }
        let mut taps: HashMap<Ref<Var>, Interval> = own
            .into_iter()
            .filter_map(|(axis, conditions)| Some((axis.clone(), interval(&axis, &conditions)?)))
            .collect();
        let along = taps.remove(x).unwrap_or_default();
        let value = match all_of(&rest) {
            Some(rest) => call(term.dtype(), "tirx.if_then_else", vec![rest, term.clone(), otherwise.clone()]),
            None => term.clone(),
        };
        Clipped { value, along, taps }
    }

    /// A loop over the part of some reduction axes that has terms: the statements in front of it, its axes, and what the
    /// reduction's own are in terms of those.
    pub fn over(&self, reduce: &[Axis]) -> (Vec<Stmt>, Vec<Axis>, VarMap) {
        let (mut binds, mut axes, mut map) = (Vec::new(), Vec::new(), VarMap::new());
        for axis in reduce {
            let var = Var::dim(axis.var.name.clone());
            let counter = PrimExpr::from(&var);
            let Some(within) = self.taps.get(&axis.var) else {
                map.insert(axis.var.clone(), counter);
                axes.push(Axis { var, extent: axis.extent.clone() });
                continue;
            };
            let (first, extent) = part(&mut binds, within, &axis.extent);
            map.insert(axis.var.clone(), add(counter, first));
            axes.push(Axis { var, extent });
        }
        (binds, axes, map)
    }
}

/// An interval within `0 .. extent`: where it begins and how long it is, by names.
pub fn part(binds: &mut Vec<Stmt>, within: &Interval, extent: &PrimExpr) -> (PrimExpr, PrimExpr) {
    let Interval { low, high } = within;
    let mut named = |name: &str, value: PrimExpr| {
        if value.as_int().is_some() {
            return value;
        }
        let var = Var::dim(name);
        binds.push(Stmt::bind(var.clone(), value));
        PrimExpr::from(&var)
    };
    let first = match low {
        Some(low) => named("first", min(max(int(0), low.clone()), extent.clone())),
        None => int(0),
    };
    let end = match high {
        Some(high) => min(high.clone(), extent.clone()),
        None => extent.clone(),
    };
    let length = named("length", max(int(0), sub(end, &first)));
    (first, length)
}
