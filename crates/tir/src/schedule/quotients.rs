//! Axes that an operand sees by their quotient (and remainder) by a length, as two axes.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{BinaryOp, PrimExpr, PrimMutator, VarMap, add, floordiv, mul, substitute};

use super::affine::{same, uses};
use super::group::Reduce;
use super::stage::{Axis, Stage};

/// Puts variables in the place of an axis's quotients and, if it is asked to, remainders.
pub struct Quotients {
    axis: Ref<Var>,
    outer: Ref<Var>,
    /// What takes the place of remainders; they are left where there is nothing.
    inner: Option<Ref<Var>>,
    /// What the axis is divided by, once that was met.
    by: Option<PrimExpr>,
    /// Whether the axis stands elsewhere, or is divided by another number.
    is_elsewhere: bool,
}

impl Quotients {
    /// Those of an expression that has the axis nowhere else; remainders count where `remainders` says so. The axis of quotients gets a `name`.
    pub fn of(e: &PrimExpr, axis: &Ref<Var>, name: &str, remainders: bool) -> Option<Quotients> {
        let inner = remainders.then(|| Var::dim(axis.name.clone()));
        let mut quotients =
            Quotients { axis: axis.clone(), outer: Var::dim(name), inner, by: None, is_elsewhere: false };
        quotients.mutate_prim(e);
        (quotients.by.is_some() && !quotients.is_elsewhere).then_some(quotients)
    }

    /// What the axis is divided by, where that is a number.
    pub fn by(&self) -> Option<i64> {
        self.by.as_ref()?.as_int()
    }

    /// The expression over quotient and remainder, and the variables of both.
    pub fn parts(mut self, e: &PrimExpr) -> Option<(PrimExpr, Ref<Var>, Ref<Var>)> {
        let replaced = self.mutate_prim(e);
        Some((replaced, self.outer, self.inner?))
    }

    /// A reduction over the quotient and the remainder of an axis of its output, where they make up all of the axis.
    pub fn split(self, reduce: &Reduce) -> Option<Reduce> {
        let mut parts = self.in_place(&reduce.stage)?;
        Some(Reduce {
            stage: parts.stage(&reduce.stage),
            epilogue: parts.rewritten(&reduce.epilogue),
            indices: reduce.indices.iter().map(|index| parts.rewritten(index)).collect(),
            ..reduce.clone()
        })
    }

    /// The same of a map.
    pub fn split_map(self, stage: &Stage) -> Option<Stage> {
        Some(self.in_place(stage)?.stage(stage))
    }

    /// The two axes in the place of one of a stage.
    fn in_place(self, stage: &Stage) -> Option<Parts> {
        let at = stage.spatial.iter().position(|axis| axis.var == self.axis)?;
        let (outer, inner, map) = self.axes(&stage.spatial[at].extent)?;
        Some(Parts { quotients: self, at, axes: [outer, inner], map })
    }

    /// Whether remainders stand in an expression.
    pub fn has_remainders(&mut self, e: &PrimExpr) -> bool {
        let replaced = self.mutate_prim(e);
        self.inner.as_ref().is_some_and(|inner| uses(&replaced, inner))
    }

    /// The two axes, and what the one that they make up is of them.
    fn axes(&self, extent: &PrimExpr) -> Option<(Axis, Axis, VarMap)> {
        let size = self.by.clone()?;
        let mut analyzer = Analyzer::new();
        let count = analyzer.simplify(&floordiv(extent, &size));
        if !analyzer.can_prove_equal(&mul(&count, &size), extent) {
            return None;
        }
        let outer = Axis { var: self.outer.clone(), extent: count };
        let inner = self.inner.clone().unwrap_or_else(|| Var::dim(self.axis.name.clone()));
        let inner = Axis { var: inner, extent: size.clone() };
        let place = add(mul(PrimExpr::from(&outer.var), size), PrimExpr::from(&inner.var));
        Some((outer, inner, [(self.axis.clone(), place)].into()))
    }
}

/// Two axes that take the place of one.
struct Parts {
    quotients: Quotients,
    /// Which of a stage's axes it is.
    at: usize,
    axes: [Axis; 2],
    /// What the one axis is of them.
    map: VarMap,
}

impl Parts {
    fn rewritten(&mut self, e: &PrimExpr) -> PrimExpr {
        substitute(&self.quotients.mutate_prim(e), &self.map)
    }

    fn stage(&mut self, stage: &Stage) -> Stage {
        let mut new = stage.clone();
        new.value = self.rewritten(&stage.value);
        new.indices = stage.indices.iter().map(|index| self.rewritten(index)).collect();
        if let Some(reduction) = &mut new.reduction {
            reduction.init = self.rewritten(&reduction.init);
        }
        new.spatial.splice(self.at..=self.at, self.axes.clone());
        new
    }
}

impl Quotients {
    /// Whether something may divide the axis: a number above one or a length, the same everywhere.
    fn divides(&self, by: &PrimExpr) -> bool {
        let is_length = match by {
            PrimExpr::Int(n) => n.value > 1,
            other => other.as_var().is_some_and(|var| *var != self.axis),
        };
        is_length && self.by.as_ref().is_none_or(|known| same(known, by))
    }
}

impl PrimMutator for Quotients {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Binary(n) if matches!(&n.a, PrimExpr::Var(var) if *var == self.axis) && self.divides(&n.b) => {
                let var = match n.op {
                    BinaryOp::FloorDiv => Some(&self.outer),
                    BinaryOp::FloorMod => self.inner.as_ref(),
                    _ => None,
                };
                let Some(var) = var else { return self.remake_prim(e) };
                self.by = Some(n.b.clone());
                PrimExpr::from(var)
            }
            PrimExpr::Var(var) => {
                self.is_elsewhere |= *var == self.axis;
                e.clone()
            }
            _ => self.remake_prim(e),
        }
    }
}
