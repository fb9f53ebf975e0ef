//! Reductions over dimensions: a table row each.
//!
//! `axis` names the dimensions that go (all, if absent); with `keepdims` they stay with size one. Sums and products are
//! taken in the tensor's dtype. Averages are the sum divided by the count; `variance` and `std` divide by the count too,
//! without Bessel's correction.

use relaxide_ffi::DataType;
use relaxide_ir::Type;
use relaxide_ir::prim::{self, PrimExpr, cast, math};
use relaxide_tir::te;

use super::manipulate::{input, result_dims};
use super::*;
use crate::shape::num_elements;

const X: &[ArgDef] = &[ArgDef::tensor("x", "The input.")];
const ATTRS: &[AttrDef] = &[
    AttrDef::axes("axis", "The dimensions that are reduced; all if absent."),
    AttrDef::bool("keepdims", false, "Whether reduced dimensions stay, with size one."),
];
const ARG_ATTRS: &[AttrDef] = &[
    AttrDef::new(
        "axis",
        AttrKind::Int,
        AttrDefault::None,
        "The dimension that is searched; the flattened tensor if absent.",
    ),
    AttrDef::bool("keepdims", false, "Whether reduced dimensions stay, with size one."),
];

const fn row(name: &'static str, lower: Compute, doc: &'static str) -> OpDef {
    OpDef {
        name,
        doc,
        args: X,
        attrs: ATTRS,
        infer: reduced_type,
        lower: Lowering::Compute(lower),
        pattern: OpPattern::Reduce,
        layout: Some(layout::reduction),
        ..OpDef::BASE
    }
}

/// The rows.
pub static TABLE: &[OpDef] = &[
    row("sum", |cx, t| simple(cx, t, |x, k| te::sum(x, k)), "Sum.").gradient(gradient::sum),
    row("prod", |cx, t| simple(cx, t, |x, k| te::prod(x, k)), "Product."),
    row("max", |cx, t| extreme(cx, t, |x, k| te::max(x, k), |cx, dtype| cx.lowest(dtype)), "Largest value."),
    row("min", |cx, t| extreme(cx, t, |x, k| te::min(x, k), |cx, dtype| cx.highest(dtype)), "Smallest value."),
    row("mean", |cx, t| Ok(vec![mean(cx, input(cx, t, 0)?, "T_mean")?]), "Average.").gradient(gradient::mean),
    row(
        "variance",
        |cx, t| Ok(vec![variance(cx, input(cx, t, 0)?)?]),
        "Average of squared distances from the average.",
    )
    .gradient(gradient::variance),
    row("std", std, "Square root of the variance."),
    OpDef {
        attrs: ARG_ATTRS,
        infer: arg_type,
        lengths: has_elements,
        layout: None,
        // What comes before stays apart: computed once for each pass, a value might differ from itself.
        pattern: OpPattern::OutFusable,
        ..row(
            "argmax",
            |cx, t| arg_reduce(cx, t, |x, k| te::max(x, k)),
            "Index of the largest value, the first of equal ones, as int64.",
        )
    },
    OpDef {
        attrs: ARG_ATTRS,
        infer: arg_type,
        lengths: has_elements,
        layout: None,
        // What comes before stays apart: computed once for each pass, a value might differ from itself.
        pattern: OpPattern::OutFusable,
        ..row(
            "argmin",
            |cx, t| arg_reduce(cx, t, |x, k| te::min(x, k)),
            "Index of the smallest value, the first of equal ones, as int64.",
        )
    },
];

/// The dimensions that are reduced.
fn reduced_axes(cx: &CallCx, ndim: usize) -> Result<Vec<usize>, OpError> {
    match cx.attrs.get("axis") {
        None => Ok((0..ndim).collect()),
        Some(relaxide_ir::AttrValue::List(_)) => Ok(cx.axes("axis", ndim)?.unwrap_or_default()),
        Some(_) => Ok(vec![cx.axis("axis", ndim)?]),
    }
}

/// The type of a reduction, of the input's dtype unless another is given.
pub fn reduced(cx: &CallCx, dtype: Option<DataType>) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    let dtype = dtype.unwrap_or(x.dtype);
    let keep = cx.bool("keepdims")?;
    let Some(ndim) = x.ndim else {
        let all = cx.attrs.get("axis").is_none() && !keep;
        return Ok(tensor_type(all.then(Vec::new), None, dtype));
    };
    let axes = reduced_axes(cx, ndim)?;
    if axes.len() == ndim && (!keep || x.dims.is_some() || cx.attrs.get("axis").is_none()) {
        return Ok(Type::tensor(vec![PrimExpr::from(1); if keep { ndim } else { 0 }], dtype));
    }
    let dims = x.dims.map(|dims| {
        let at = |(i, d): (usize, PrimExpr)| match (axes.contains(&i), keep) {
            (false, _) => Some(d),
            (true, true) => Some(PrimExpr::from(1)),
            (true, false) => None,
        };
        dims.into_iter().enumerate().filter_map(at).collect()
    });
    Ok(tensor_type(dims, Some(if keep { ndim } else { ndim - axes.len() }), dtype))
}

fn reduced_type(cx: &CallCx) -> Result<Type, OpError> {
    reduced(cx, None)
}

/// Of no elements none is the largest.
fn has_elements(cx: &CallCx) -> Result<Vec<lengths::Lengths>, OpError> {
    let Some(ndim) = cx.tensor(0)?.ndim else { return Ok(Vec::new()) };
    let one = || Some(("the least length that has an extreme element".to_string(), PrimExpr::from(1)));
    let axes = reduced_axes(cx, ndim)?.into_iter();
    let some = |axis: usize| lengths::pair(one(), lengths::Relation::AtMost, lengths::of(cx, 0, axis as i64));
    Ok(axes.filter_map(some).collect())
}

fn arg_type(cx: &CallCx) -> Result<Type, OpError> {
    reduced(cx, Some(DataType::int(64)))
}

/// How the index into the input follows from that into the result and the reduction axes.
pub struct ReductionIndices {
    axes: Vec<usize>,
    keep: bool,
    /// A reduction axis for each reduced dimension.
    pub reduce: Vec<te::ReduceAxis>,
}

impl ReductionIndices {
    /// A reduction of some dimensions of a tensor.
    pub fn new(x: &te::Tensor, axes: Vec<usize>, keep: bool) -> ReductionIndices {
        let extent = |a: &usize| x.shape().get(*a).cloned().unwrap_or_else(|| PrimExpr::from(1));
        let reduce = axes.iter().enumerate().map(|(i, a)| te::reduce_axis_named(format!("k{i}"), extent(a))).collect();
        ReductionIndices { axes, keep, reduce }
    }

    /// The index into the input.
    pub fn index(&self, ndim: usize, out: &[PrimExpr]) -> Vec<PrimExpr> {
        let mut rest = out.iter();
        let mut at = |i: usize| {
            let reduced = self.axes.iter().position(|a| *a == i).and_then(|j| self.reduce.get(j));
            let own = if reduced.is_none() || self.keep { rest.next().cloned() } else { None };
            reduced.map(te::ReduceAxis::var).or(own).unwrap_or_else(|| PrimExpr::from(0))
        };
        (0..ndim).map(&mut at).collect()
    }
}

fn plan(cx: &CallCx, x: &te::Tensor) -> Result<ReductionIndices, OpError> {
    Ok(ReductionIndices::new(x, reduced_axes(cx, x.ndim())?, cx.bool("keepdims")?))
}

fn simple(
    cx: &CallCx,
    inputs: &[te::Tensor],
    combine: fn(PrimExpr, &[te::ReduceAxis]) -> te::Reduction,
) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    let plan = plan(cx, x)?;
    let name = format!("{}_red", cx.name());
    Ok(vec![te::compute(name, result_dims(cx)?, |out| combine(x.at(&plan.index(x.ndim(), out)), &plan.reduce))])
}

fn extreme(
    cx: &CallCx,
    inputs: &[te::Tensor],
    combine: fn(PrimExpr, &[te::ReduceAxis]) -> te::Reduction,
    first: fn(&CallCx, DataType) -> PrimExpr,
) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    let (plan, first) = (plan(cx, x)?, first(cx, x.dtype()));
    let name = format!("{}_red", cx.name());
    let value = |out: &[PrimExpr]| combine(x.at(&plan.index(x.ndim(), out)), &plan.reduce).starting_with([first]);
    Ok(vec![te::compute(name, result_dims(cx)?, value)])
}

/// How many elements are reduced into one, in a dtype.
fn count(cx: &CallCx, x: &te::Tensor) -> Result<PrimExpr, OpError> {
    let dims: Vec<_> = reduced_axes(cx, x.ndim())?.iter().filter_map(|a| x.shape().get(*a).cloned()).collect();
    Ok(cast(x.dtype(), num_elements(&dims)))
}

fn mean(cx: &CallCx, x: &te::Tensor, name: &str) -> Result<te::Tensor, OpError> {
    let dims = result_dims(cx)?;
    let plan = plan(cx, x)?;
    let total =
        te::compute(format!("{}_red", cx.name()), &dims, |out| te::sum(x.at(&plan.index(x.ndim(), out)), &plan.reduce));
    let count = count(cx, x)?;
    Ok(te::compute(name, &dims, |out| prim::div(total.at(out), &count)))
}

/// The variance with a block for each of its steps.
fn variance_in_steps(cx: &CallCx, x: &te::Tensor) -> Result<te::Tensor, OpError> {
    let (axes, count) = (reduced_axes(cx, x.ndim())?, count(cx, x)?);
    let kept = |(i, dim): (usize, &PrimExpr)| if axes.contains(&i) { PrimExpr::from(1) } else { dim.clone() };
    let kept: Vec<PrimExpr> = x.shape().iter().enumerate().map(kept).collect();
    let total = |name: &str, of: &te::Tensor, dims: &[PrimExpr], keep: bool| {
        let plan = ReductionIndices::new(of, axes.clone(), keep);
        te::compute(name, dims, |out| te::sum(of.at(&plan.index(of.ndim(), out)), &plan.reduce))
    };
    let sum = total("x_red", x, &kept, true);
    let average = te::compute("T_divide", &kept, |out| prim::div(sum.at(out), &count));
    let distance = te::compute("T_subtract", x.shape(), |at| {
        let own = at.iter().enumerate().map(|(i, e)| if axes.contains(&i) { PrimExpr::from(0) } else { e.clone() });
        x.at(at) - average.at(&own.collect::<Vec<_>>())
    });
    let squares = te::compute("T_multiply", x.shape(), |at| distance.at(at) * distance.at(at));
    let dims = result_dims(cx)?;
    let total = total("T_multiply_red", &squares, &dims, cx.bool("keepdims")?);
    Ok(te::compute("T_divide", &dims, |out| prim::div(total.at(out), &count)))
}

fn variance(cx: &CallCx, x: &te::Tensor) -> Result<te::Tensor, OpError> {
    if cx.form == KernelForm::Plain {
        return variance_in_steps(cx, x);
    }
    let dims = result_dims(cx)?;
    let average = mean(cx, x, "T_mean")?;
    let plan = plan(cx, x)?;
    let total = te::compute("squares_red", &dims, |out| {
        let distance = x.at(&plan.index(x.ndim(), out)) - average.at(out);
        te::sum(&distance * &distance, &plan.reduce)
    });
    let count = count(cx, x)?;
    Ok(te::compute("T_variance", &dims, |out| prim::div(total.at(out), &count)))
}

fn std(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let variance = variance(cx, input(cx, inputs, 0)?)?;
    Ok(vec![te::compute("T_std", variance.shape(), |out| math("sqrt", variance.at(out)))])
}

/// Index of the best value, the first of equal ones: the best value first, and then the least index that has it. Both are reductions of
/// numbers in lanes, where one of pairs would be a chain of choices.
///
/// NaN is before every number, as in NumPy.
fn arg_reduce(
    cx: &CallCx,
    inputs: &[te::Tensor],
    best_of: fn(PrimExpr, &[te::ReduceAxis]) -> te::Reduction,
) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    let dims = result_dims(cx)?;
    let first = plan(cx, x)?;
    let best = te::compute(format!("{}_best", cx.name()), &dims, |out| {
        best_of(x.at(&first.index(x.ndim(), out)), &first.reduce)
    });
    let second = plan(cx, x)?;
    let position = second.reduce.iter().fold(PrimExpr::from(0), |flat, k| flat * k.extent() + k.var());
    let count = second.reduce.iter().try_fold(1i64, |n, k| n.checked_mul(k.extent().as_int()?));
    // In half of the bits there are twice as many lanes.
    let narrow = count.is_some_and(|n| n <= i64::from(i32::MAX));
    let index = DataType::int(if narrow { 32 } else { 64 });
    let places = te::compute(format!("{}_red", cx.name()), &dims, |out| {
        let (value, best) = (x.at(&second.index(x.ndim(), out)), best.at(out));
        let mut is_best = prim::eq(&value, &best);
        if x.dtype().is_float() {
            let none = |e: &PrimExpr| prim::ne(e, e);
            is_best = prim::or(is_best, prim::and(none(&value), none(&best)));
        }
        te::min(prim::select(is_best, cast(index, position), prim::highest(index)), &second.reduce)
    });
    Ok(vec![te::compute(cx.name(), &dims, |out| cast(DataType::int(64), places.at(out)))])
}
