//! Reductions: many elements combined into one.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{BinaryOp, Var};

use super::compute::axis_over;

/// An axis that a reduction runs over, from 0.
#[derive(Clone, Debug)]
pub struct ReduceAxis {
    pub(super) var: Ref<Var>,
    pub(super) extent: PrimExpr,
}

impl ReduceAxis {
    /// The axis as an index.
    pub fn var(&self) -> PrimExpr {
        PrimExpr::Var(self.var.clone())
    }

    /// How many values it takes.
    pub fn extent(&self) -> &PrimExpr {
        &self.extent
    }
}

impl From<&ReduceAxis> for ReduceAxis {
    fn from(axis: &ReduceAxis) -> Self {
        axis.clone()
    }
}

/// An axis for a reduction over `0 .. extent`, named `k`.
pub fn reduce_axis(extent: impl Into<PrimExpr>) -> ReduceAxis {
    reduce_axis_named("k", extent)
}

/// An axis for a reduction over `0 .. extent`.
pub fn reduce_axis_named(name: impl Into<String>, extent: impl Into<PrimExpr>) -> ReduceAxis {
    let extent = extent.into();
    ReduceAxis { var: axis_over(name, &extent), extent }
}

/// One or several values, each the combination of many: `acc = combine(acc, value)` over every point of the axes.
#[derive(Clone, Debug)]
pub struct Reduction {
    pub(super) axes: Vec<ReduceAxis>,
    /// What the results are before the first value.
    pub(super) identity: Vec<PrimExpr>,
    /// The values at one point of the axes.
    pub(super) values: Vec<PrimExpr>,
    /// Stand-ins for the results so far, in `combined`.
    pub(super) accumulators: Vec<Ref<Var>>,
    /// The results with one more point, over `accumulators` and with the values in place.
    pub(super) combined: Vec<PrimExpr>,
}

impl Reduction {
    fn binary<A: Into<ReduceAxis>>(
        op: BinaryOp,
        identity: fn(DataType) -> PrimExpr,
        value: PrimExpr,
        axes: impl IntoIterator<Item = A>,
    ) -> Reduction {
        let identity = identity(value.dtype());
        combine([identity], [value], axes, |acc, x| vec![prim::binary(op, acc[0].clone(), x[0].clone())])
    }
}

/// A reduction of one's own: `identity` is what the results start as, `values` are the values at one point, and `f` makes
/// new results of the old ones and the values. `f` must be associative and commutative with `identity` neutral, since the
/// order of the points is free.
pub fn combine<A: Into<ReduceAxis>>(
    identity: impl IntoIterator<Item = PrimExpr>,
    values: impl IntoIterator<Item = PrimExpr>,
    axes: impl IntoIterator<Item = A>,
    f: impl FnOnce(&[PrimExpr], &[PrimExpr]) -> Vec<PrimExpr>,
) -> Reduction {
    let (identity, values): (Vec<_>, Vec<_>) = (identity.into_iter().collect(), values.into_iter().collect());
    let accumulators: Vec<Ref<Var>> =
        values.iter().enumerate().map(|(i, v)| Var::prim(format!("acc{i}"), v.dtype())).collect();
    let results: Vec<PrimExpr> = accumulators.iter().map(PrimExpr::from).collect();
    let combined = f(&results, &values);
    Reduction { axes: axes.into_iter().map(Into::into).collect(), identity, values, accumulators, combined }
}

/// The sum over the axes.
pub fn sum<A: Into<ReduceAxis>>(value: impl Into<PrimExpr>, axes: impl IntoIterator<Item = A>) -> Reduction {
    Reduction::binary(BinaryOp::Add, |dtype| prim::constant(dtype, 0.0), value.into(), axes)
}

/// The product over the axes.
pub fn prod<A: Into<ReduceAxis>>(value: impl Into<PrimExpr>, axes: impl IntoIterator<Item = A>) -> Reduction {
    Reduction::binary(BinaryOp::Mul, |dtype| prim::constant(dtype, 1.0), value.into(), axes)
}

/// The largest value over the axes; of no values at all, the type's least (minus infinity for floats).
pub fn max<A: Into<ReduceAxis>>(value: impl Into<PrimExpr>, axes: impl IntoIterator<Item = A>) -> Reduction {
    Reduction::binary(BinaryOp::Max, prim::lowest, value.into(), axes)
}

/// The smallest value over the axes; of no values at all, the type's greatest (infinity for floats).
pub fn min<A: Into<ReduceAxis>>(value: impl Into<PrimExpr>, axes: impl IntoIterator<Item = A>) -> Reduction {
    Reduction::binary(BinaryOp::Min, prim::highest, value.into(), axes)
}

impl Reduction {
    /// The same with other initial values, which must be neutral too.
    pub fn starting_with(mut self, identity: impl IntoIterator<Item = PrimExpr>) -> Reduction {
        self.identity = identity.into_iter().collect();
        self
    }
}

/// What one output of a compute is: an expression for each element, or a reduction.
#[derive(Clone, Debug)]
pub enum Body {
    /// The element itself.
    Element(PrimExpr),
    /// A reduction that gives the element.
    Reduction(Reduction),
}

impl From<PrimExpr> for Body {
    fn from(value: PrimExpr) -> Self {
        Body::Element(value)
    }
}

impl From<Reduction> for Body {
    fn from(value: Reduction) -> Self {
        Body::Reduction(value)
    }
}

/// What several outputs of one compute are: expressions, or one reduction of several results.
#[derive(Clone, Debug)]
pub enum Bodies {
    /// The elements themselves, one for each output.
    Elements(Vec<PrimExpr>),
    /// A reduction that gives one element of each output.
    Reduction(Reduction),
}

impl From<Vec<PrimExpr>> for Bodies {
    fn from(values: Vec<PrimExpr>) -> Self {
        Bodies::Elements(values)
    }
}

impl From<Reduction> for Bodies {
    fn from(value: Reduction) -> Self {
        Bodies::Reduction(value)
    }
}

impl From<Body> for Bodies {
    fn from(body: Body) -> Self {
        match body {
            Body::Element(value) => Bodies::Elements(vec![value]),
            Body::Reduction(value) => Bodies::Reduction(value),
        }
    }
}
