//! Activations and normalizations block by block, as TVM writes them ([`OpDef::steps`]).
//!
//! `x * sigmoid(x)` is one block of sigmoids and one of products. Programs that go on with the kernels themselves
//! ([`KernelForm::Plain`]) find the blocks that TVM's kernels have, by their names; a compiled kernel takes one pass for all
//! of them either way.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr, cast, constant, math};
use relaxide_tir::te;

use super::manipulate::{input, reshape_in_full};
use super::reduce::ReductionIndices;
use super::*;
use crate::shape::num_elements;

/// A block of one input.
fn map(name: &str, x: &te::Tensor, f: impl Fn(PrimExpr) -> PrimExpr) -> te::Tensor {
    te::compute(name, x.shape(), |at| f(x.at(at)))
}

/// A block of two inputs of as many dimensions, of which the second may have dimensions of one.
fn zip(name: &str, x: &te::Tensor, y: &te::Tensor, f: impl Fn(PrimExpr, PrimExpr) -> PrimExpr) -> te::Tensor {
    te::compute(name, x.shape(), |at| {
        let own = at.iter().zip(y.shape()).map(|(at, d)| if d.is_int(1) { PrimExpr::from(0) } else { at.clone() });
        f(x.at(at), y.at(&own.collect::<Vec<_>>()))
    })
}

fn times(x: &te::Tensor, y: &te::Tensor) -> te::Tensor {
    zip("T_multiply", x, y, |x, y| x * y)
}

/// A number of the tensor's type times each element.
fn scaled(x: &te::Tensor, by: f64) -> te::Tensor {
    map("T_multiply", x, |x| constant(x.dtype(), by) * x)
}

/// A number of the tensor's type plus each element.
fn raised(x: &te::Tensor, by: f64) -> te::Tensor {
    map("T_add", x, |x| constant(x.dtype(), by) + x)
}

/// x * sigmoid(x).
pub fn silu(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    Ok(vec![times(x, &map("compute", x, |x| math("sigmoid", x)))])
}

/// x * (1 + erf(x / sqrt 2)) / 2.
pub fn gelu(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    let behind = |x: &te::Tensor, by: f64| map("T_multiply", x, |x| &x * constant(x.dtype(), by));
    let erf = map("compute", &behind(x, std::f64::consts::FRAC_1_SQRT_2), |x| math("erf", x));
    Ok(vec![times(x, &raised(&behind(&erf, 0.5), 0.5))])
}

/// The same with tanh in the place of erf.
pub fn gelu_tanh(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    let root = (2.0 / std::f64::consts::PI).sqrt();
    let inner = times(&scaled(x, root), &raised(&times(&scaled(x, 0.044715), x), 1.0));
    let tanh = map("compute", &inner, |x| math("tanh", x));
    Ok(vec![times(&scaled(x, 0.5), &raised(&tanh, 1.0))])
}

/// The dimensions of a tensor that are not reduced, and how many elements one sum has, as a number of a type.
fn split(x: &te::Tensor, axes: &[usize], dtype: DataType) -> (Vec<PrimExpr>, PrimExpr) {
    let kept = x.shape().iter().enumerate().filter(|(i, _)| !axes.contains(i)).map(|(_, d)| d.clone()).collect();
    let reduced: Vec<PrimExpr> = axes.iter().filter_map(|a| x.shape().get(*a).cloned()).collect();
    let count = match reduced.iter().all(|dim| dim.as_int().is_some()) {
        true => cast(dtype, num_elements(&reduced)),
        false => reduced
            .iter()
            .map(|dim| cast(dtype, dim))
            .reduce(|all, dim| all * dim)
            .unwrap_or_else(|| constant(dtype, 1.0)),
    };
    (kept, count)
}

/// The index into sums over axes that belongs to an index into the tensor.
fn outside(at: &[PrimExpr], axes: &[usize]) -> Vec<PrimExpr> {
    at.iter().enumerate().filter(|(i, _)| !axes.contains(i)).map(|(_, e)| e.clone()).collect()
}

/// The sum of a tensor over some axes.
fn total(name: &str, x: &te::Tensor, axes: &[usize]) -> te::Tensor {
    let (kept, _) = split(x, axes, x.dtype());
    let plan = ReductionIndices::new(x, axes.to_vec(), false);
    te::compute(name, kept, |at| te::sum(x.at(&plan.index(x.ndim(), at)), &plan.reduce))
}

/// -sum(x * y), divided by the batch where there is one.
pub fn cross_entropy(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let (x, y) = (input(cx, inputs, 0)?, input(cx, inputs, 1)?);
    let axes: Vec<usize> = (0..x.ndim()).collect();
    let sum = total("T_multiply_red", &times(x, y), &axes);
    let negative = map("T_multiply", &sum, |sum| sum * constant(x.dtype(), -1.0));
    Ok(vec![match x.shape() {
        [] => return cx.invalid("needs a tensor of one dimension at least"),
        [_] => negative,
        [batch, ..] => map("T_divide", &negative, |sum| prim::div(sum, cast(x.dtype(), batch))),
    }])
}

/// The type that statistics are taken in.
fn wide(dtype: DataType) -> DataType {
    if dtype.is_float() && dtype.bits < 32 { DataType::float(32) } else { dtype }
}

/// Applies scale and shift, where the attributes say so.
fn affine(
    cx: &CallCx,
    value: PrimExpr,
    gamma: impl Fn() -> PrimExpr,
    beta: impl Fn() -> PrimExpr,
) -> Result<PrimExpr, OpError> {
    let scaled = if cx.bool("scale")? { value * gamma() } else { value };
    Ok(if cx.bool("center")? { scaled + beta() } else { scaled })
}

/// Normalization over some axes: the mean first, then the squares of the distances from it.
pub fn layer_norm(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let (x, gamma, beta) = (input(cx, inputs, 0)?, input(cx, inputs, 1)?, input(cx, inputs, 2)?);
    let axes = cx.axes("axes", x.ndim())?.unwrap_or_default();
    let (dtype, epsilon) = (wide(x.dtype()), cx.float("epsilon")?);
    let (kept, count) = split(x, &axes, dtype);
    let read = |at: &[PrimExpr]| cast(dtype, x.at(at));
    let plan = ReductionIndices::new(x, axes.clone(), false);
    let sum = te::compute("x_sum", &kept, |at| te::sum(read(&plan.index(x.ndim(), at)), &plan.reduce));
    let mean = map("x_mean", &sum, |sum| prim::div(sum, &count));
    let plan = ReductionIndices::new(x, axes.clone(), false);
    let spread = te::compute("x_var_sum", &kept, |at| {
        let distance = read(&plan.index(x.ndim(), at)) - mean.at(at);
        te::sum(&distance * &distance, &plan.reduce)
    });
    let result = norm::try_compute("T_layer_norm", x.shape(), |at| {
        let own = outside(at, &axes);
        let variance = prim::div(spread.at(&own), &count) + constant(dtype, epsilon);
        let value = cast(x.dtype(), (read(at) - mean.at(&own)) * math("rsqrt", variance));
        let place: Vec<PrimExpr> = axes.iter().map(|a| at[*a].clone()).collect();
        affine(cx, value, || gamma.at(&place), || beta.at(&place))
    })?;
    Ok(vec![result])
}

/// Normalization over groups of channels: the sums of elements and of their squares in one pass.
pub fn group_norm(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let (x, gamma, beta) = (input(cx, inputs, 0)?, input(cx, inputs, 1)?, input(cx, inputs, 2)?);
    let channel = cx.axis("channel_axis", x.ndim())?;
    let groups = cx.int("num_groups")?;
    let in_groups = |dims: &[PrimExpr], axis: usize| {
        let mut dims = dims.to_vec();
        let size = prim::floordiv(&dims[axis], groups);
        dims.splice(axis..=axis, [PrimExpr::from(groups), size]);
        dims
    };
    let grouped = reshape_in_full("T_reshape", x, &in_groups(x.shape(), channel));
    let (dtype, epsilon) = (wide(x.dtype()), cx.float("epsilon")?);
    let taken = if dtype == x.dtype() { grouped } else { map("T_cast", &grouped, |x| cast(dtype, x)) };
    let further = cx.axes("axes", x.ndim())?.unwrap_or_default().into_iter().filter(|a| *a != channel);
    let mut axes: Vec<usize> = further.map(|a| if a > channel { a + 1 } else { a }).chain([channel + 1]).collect();
    axes.sort_unstable();
    let (kept, count) = split(&taken, &axes, dtype);
    let plan = ReductionIndices::new(&taken, axes.clone(), false);
    let sums = te::compute_multi("x_red_temp", &kept, |at| {
        let value = taken.at(&plan.index(taken.ndim(), at));
        let zero = || constant(dtype, 0.0);
        te::combine([zero(), zero()], [value.clone(), &value * &value], &plan.reduce, |sums, values| {
            sums.iter().zip(values).map(|(sum, value)| sum + value).collect()
        })
    });
    let [sum, squares] = sums.as_slice() else { return cx.invalid("needs two sums") };
    let (gamma, beta) = (
        reshape_in_full("T_reshape", gamma, &in_groups(gamma.shape(), 0)),
        reshape_in_full("T_reshape", beta, &in_groups(beta.shape(), 0)),
    );
    let normal = norm::try_compute("T_group_norm", taken.shape(), |at| {
        let own = outside(at, &axes);
        let mean = prim::div(sum.at(&own), &count);
        let variance = prim::div(squares.at(&own), &count) - &mean * &mean;
        let value = (taken.at(at) - mean) * math("rsqrt", variance + constant(dtype, epsilon));
        let place = &at[channel..=channel + 1];
        affine(cx, cast(x.dtype(), value), || gamma.at(place), || beta.at(place))
    })?;
    Ok(vec![reshape_in_full("T_reshape", &normal, x.shape())])
}

/// x / sqrt(mean(x * x) + epsilon) * weight, in numbers of 32 bits.
pub fn rms_norm(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let (x, weight) = (input(cx, inputs, 0)?, input(cx, inputs, 1)?);
    let axes = cx.axes("axes", x.ndim())?.unwrap_or_default();
    let (dtype, epsilon) = (DataType::float(32), cx.float("epsilon")?);
    let converted = |x: &te::Tensor, to: DataType| map("T_cast", x, |x| cast(to, x));
    let taken = converted(x, dtype);
    let squares = total("T_multiply_red", &times(&taken, &taken), &axes);
    let count = split(x, &axes, dtype).1;
    let factor = map("rsqrt", &squares, |sum| math("rsqrt", prim::div(sum, &count) + constant(dtype, epsilon)));
    let weight = converted(weight, dtype);
    let normal = te::compute("T_rms_norm", x.shape(), |at| {
        let place: Vec<PrimExpr> = axes.iter().map(|a| at[*a].clone()).collect();
        factor.at(&outside(at, &axes)) * taken.at(at) * weight.at(&place)
    });
    Ok(vec![converted(&normal, x.dtype())])
}

/// Normalization for each channel, with the batch's own statistics or with running ones, and the running ones behind it.
pub fn batch_norm(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    let axis = cx.axis("axis", x.ndim())?;
    let mut dims = vec![PrimExpr::from(1); x.ndim()];
    dims[axis] = x.shape()[axis].clone();
    let along = |per_channel: &te::Tensor| reshape_in_full("T_reshape", per_channel, &dims);
    let (running_mean, running_variance) = (input(cx, inputs, 3)?, input(cx, inputs, 4)?);
    let less = |mean: &te::Tensor| zip("T_subtract", x, mean, |x, mean| x - mean);
    let training = cx.bool("training")?;
    let batch = training.then(|| {
        let axes: Vec<usize> = (0..x.ndim()).filter(|a| *a != axis).collect();
        let count = split(x, &axes, x.dtype()).1;
        let mean = map("T_divide", &total("x_red", x, &axes), |sum| prim::div(sum, &count));
        let placed = along(&mean);
        let squares = times(&less(&placed), &less(&placed));
        let variance = map("T_divide", &total("T_multiply_red", &squares, &axes), |sum| prim::div(sum, &count));
        (mean, placed, variance)
    });
    let (placed, variance) = match &batch {
        Some((_, placed, variance)) => (placed.clone(), variance),
        None => (along(running_mean), running_variance),
    };
    let epsilon = cx.float("epsilon")?;
    let deviation = map("T_add", &along(variance), |x| &x + constant(x.dtype(), epsilon));
    let deviation = map("compute", &deviation, |x| math("sqrt", x));
    let mut result = zip("T_divide", &less(&placed), &deviation, prim::div);
    if cx.bool("scale")? {
        result = times(&result, &along(input(cx, inputs, 1)?));
    }
    if cx.bool("center")? {
        result = zip("T_add", &result, &along(input(cx, inputs, 2)?), |x, beta| x + beta);
    }
    let momentum = cx.float("momentum")?;
    let moved = |running: &te::Tensor, new: Option<&te::Tensor>| match new {
        Some(new) => zip("T_add", &scaled(running, 1.0 - momentum), &scaled(new, momentum), |x, y| x + y),
        None => scaled(running, 1.0),
    };
    let (mean, variance) = batch.as_ref().map_or((None, None), |(mean, _, variance)| (Some(mean), Some(variance)));
    Ok(vec![result, moved(running_mean, mean), moved(running_variance, variance)])
}
