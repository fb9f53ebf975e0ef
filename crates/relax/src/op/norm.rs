//! Normalizations: softmax, batch, layer, group, instance and root-mean-square.
//!
//! All statistics are population statistics (the variance divides by the count). Averages over dimensions are taken in the
//! tensor's dtype.

use relaxide_ffi::DataType;
use relaxide_ir::Type;
use relaxide_ir::prim::{self, PrimExpr, cast, constant, math};
use relaxide_tir::te;

use super::manipulate::input;
use super::reduce::ReductionIndices;
use super::unary::float_type;
use super::*;
use crate::shape::{num_elements, same_dims};

const DATA: ArgDef = ArgDef::tensor("data", "The input.");
const GAMMA: ArgDef = ArgDef::tensor("gamma", "Scale.");
const BETA: ArgDef = ArgDef::tensor("beta", "Shift.");
const EPSILON: AttrDef = AttrDef::float("epsilon", 1e-5, "Added to the variance.");
const CENTER: AttrDef = AttrDef::bool("center", true, "Whether beta is added.");
const SCALE: AttrDef = AttrDef::bool("scale", true, "Whether it is multiplied by gamma.");
const AXES: AttrDef =
    AttrDef::new("axes", AttrKind::Ints, AttrDefault::Required, "The dimensions that statistics are taken over.");
const CHANNEL: AttrDef =
    AttrDef::new("channel_axis", AttrKind::Int, AttrDefault::Required, "The dimension of channels.");
const SOFTMAX_AXIS: &[AttrDef] = &[AttrDef::int("axis", -1, "The dimension that sums to one.")];

const fn row(
    name: &'static str,
    args: &'static [ArgDef],
    attrs: &'static [AttrDef],
    infer: fn(&CallCx) -> Result<Type, OpError>,
    lower: Compute,
    doc: &'static str,
) -> OpDef {
    OpDef::compute(name, args, attrs, infer, lower, doc).pattern(OpPattern::OutFusable)
}

/// The rows.
pub static TABLE: &[OpDef] = &[
    row(
        "nn.softmax",
        &[DATA],
        SOFTMAX_AXIS,
        softmax_type,
        |cx, t| softmax(cx, t, Log::No),
        "exp(x) over its sum along a dimension, computed without overflow.",
    ).layout(layout::along_axis).gradient(gradient::softmax),
    row(
        "nn.log_softmax",
        &[DATA],
        SOFTMAX_AXIS,
        softmax_type,
        |cx, t| softmax(cx, t, Log::Yes),
        "Logarithm of softmax, computed without overflow.",
    ).gradient(gradient::log_softmax),
    row(
        "nn.batch_norm",
        &[
            DATA,
            GAMMA,
            BETA,
            ArgDef::tensor("moving_mean", "Running average."),
            ArgDef::tensor("moving_var", "Running variance."),
        ],
        &[
            AttrDef::new("axis", AttrKind::Int, AttrDefault::Required, "The dimension of channels."),
            EPSILON,
            CENTER,
            SCALE,
            AttrDef::float("momentum", 0.1, "Weight of the batch in the running statistics."),
            AttrDef::bool("training", true, "Whether the batch's own statistics are used."),
        ],
        batch_norm_type,
        batch_norm,
        "A tuple: (x - mean) / sqrt(variance + epsilon) * gamma + beta for each channel, and the running average and variance. \
         In training the statistics are the batch's and the running ones move towards them.",
    ).lengths(|cx| channels_agree(cx, "axis")).layout(layout::normalization).in_steps(steps::batch_norm),
    row(
        "nn.layer_norm",
        &[DATA, GAMMA, BETA],
        &[AXES, EPSILON, CENTER, SCALE],
        |cx| over_axes(cx, 2),
        layer_norm,
        "Normalized over some dimensions; gamma and beta have those dimensions.",
    ).lengths(axes_agree).follow().layout(layout::normalization).in_steps(steps::layer_norm),
    row(
        "nn.group_norm",
        &[DATA, GAMMA, BETA],
        &[
            AttrDef::new(
                "num_groups",
                AttrKind::Int,
                AttrDefault::Required,
                "Into how many groups channels are divided.",
            ),
            CHANNEL,
            AXES,
            EPSILON,
            CENTER,
            SCALE,
        ],
        over_channels,
        group_norm,
        "Normalized over groups of channels and further dimensions; gamma and beta are per channel.",
    ).lengths(|cx| channels_agree(cx, "channel_axis")).follow().layout(layout::normalization).in_steps(steps::group_norm),
    row(
        "nn.instance_norm",
        &[DATA, GAMMA, BETA],
        &[CHANNEL, AXES, EPSILON, CENTER, SCALE],
        over_channels,
        instance_norm,
        "Normalized over some dimensions for each channel of each example; gamma and beta are per channel.",
    ).lengths(|cx| channels_agree(cx, "channel_axis")).follow().layout(layout::normalization),
    row(
        "nn.rms_norm",
        &[DATA, ArgDef::tensor("weight", "Scale.")],
        &[
            AttrDef::new(
                "axes",
                AttrKind::Ints,
                AttrDefault::Ints(&[-1]),
                "The dimensions that the mean is taken over.",
            ),
            EPSILON,
        ],
        |cx| over_axes(cx, 1),
        rms_norm,
        "x / sqrt(mean(x * x) + epsilon) * weight.",
    ).lengths(axes_agree).follow().layout(layout::normalization).in_steps(steps::rms_norm),
];

/// Scale and shift have the lengths of the axes that `axes` names.
fn axes_agree(cx: &CallCx) -> Result<Vec<lengths::Lengths>, OpError> {
    let Some(ndim) = cx.tensor(0)?.ndim else { return Ok(Vec::new()) };
    let axes = cx.axes("axes", ndim)?.unwrap_or_default();
    let of = |(i, axis): (usize, &usize)| {
        (1..cx.args.len())
            .flat_map(|p| lengths::equal_dims(cx, &[(0, *axis as i64), (p, i as i64)]))
            .collect::<Vec<_>>()
    };
    Ok(axes.iter().enumerate().flat_map(of).collect())
}

/// Every parameter has a number for each channel.
fn channels_agree(cx: &CallCx, name: &str) -> Result<Vec<lengths::Lengths>, OpError> {
    let Some(ndim) = cx.tensor(0)?.ndim else { return Ok(Vec::new()) };
    let channel = cx.axis(name, ndim)? as i64;
    Ok((1..cx.args.len()).flat_map(|i| lengths::equal_dims(cx, &[(0, channel), (i, 0)])).collect())
}

fn softmax_type(cx: &CallCx) -> Result<Type, OpError> {
    cx.tensor(0)?.ndim.map_or(Ok(0), |ndim| cx.axis("axis", ndim))?;
    float_type(cx)
}

/// Checks that parameters have the tensor's dtype, a known rank and, as far as that is known, given dimensions.
fn parameters(cx: &CallCx, count: usize, ndim: usize, dims: Option<Vec<PrimExpr>>) -> Result<Type, OpError> {
    let data = cx.tensor(0)?;
    for i in 1..=count {
        let parameter = cx.tensor(i)?;
        let name = cx.def.args[i].name;
        if parameter.dtype != data.dtype {
            return cx.wrong_dtype(format!("`{name}` has dtype {}, the tensor {}", parameter.dtype, data.dtype));
        }
        if parameter.ndim != Some(ndim) {
            let found = parameter.ndim.map_or("an unknown number of".to_string(), |n| n.to_string());
            return cx.invalid(format!("`{name}` has {found} dimensions, not {ndim}"));
        }
        let pairs = parameter.dims.iter().flatten().zip(dims.iter().flatten());
        if let Some((a, b)) = pairs.filter_map(|(a, b)| a.as_int().zip(b.as_int())).find(|(a, b)| a != b) {
            return cx.invalid(format!("`{name}` has {a} numbers where the tensor has {b}"));
        }
    }
    float_type(cx)
}

fn over_axes(cx: &CallCx, count: usize) -> Result<Type, OpError> {
    let data = cx.tensor(0)?;
    let Some(ndim) = data.ndim else { return parameters(cx, count, cx.ints("axes")?.len(), None) };
    let axes = cx.axes("axes", ndim)?.unwrap_or_default();
    let dims = data.dims.map(|dims| axes.iter().filter_map(|a| dims.get(*a).cloned()).collect());
    parameters(cx, count, axes.len(), dims)
}

fn over_channels(cx: &CallCx) -> Result<Type, OpError> {
    let data = cx.tensor(0)?;
    let Some(ndim) = data.ndim else { return parameters(cx, 2, 1, None) };
    let channel = cx.axis("channel_axis", ndim)?;
    if cx.axes("axes", ndim)?.unwrap_or_default().contains(&channel) {
        return cx.invalid("`axes` names the dimension of channels");
    }
    let channels = data.dims.map(|dims| vec![dims[channel].clone()]);
    if cx.name() == "nn.group_norm" {
        let groups = cx.int("num_groups")?;
        let size = channels.as_ref().and_then(|c| c[0].as_int());
        if groups < 1 || size.is_some_and(|c| c % groups != 0) {
            return cx.invalid(format!("the channels cannot be divided into {groups} groups"));
        }
    }
    parameters(cx, 2, 1, channels)
}

/// Whether the logarithm is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Log {
    /// It is not.
    No,
    /// It is.
    Yes,
}

fn softmax(cx: &CallCx, inputs: &[te::Tensor], log: Log) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    let axis = cx.axis("axis", x.ndim())?;
    Ok(vec![softmax_from(x, axis, log, &cx.lowest(x.dtype()), cx.form)])
}

/// The softmax of a tensor along an axis, or its logarithm.
pub fn softmax_over(x: &te::Tensor, axis: usize, log: Log) -> te::Tensor {
    softmax_from(x, axis, log, &prim::lowest(x.dtype()), KernelForm::Fast)
}

fn softmax_from(x: &te::Tensor, axis: usize, log: Log, lowest: &PrimExpr, form: KernelForm) -> te::Tensor {
    let kept: Vec<PrimExpr> =
        x.shape().iter().enumerate().filter(|(i, _)| *i != axis).map(|(_, d)| d.clone()).collect();
    let without = |out: &[PrimExpr]| {
        let mut rest = out.to_vec();
        rest.remove(axis);
        rest
    };
    let over = || ReductionIndices::new(x, vec![axis], false);
    let plan = over();
    let highest = te::compute("T_softmax_maxelem", &kept, |out| {
        te::max(x.at(&plan.index(x.ndim(), out)), &plan.reduce).starting_with([lowest.clone()])
    });
    // What rules of TVM's find the axis by.
    let over_rows = |name: &str| match form {
        KernelForm::Plain => te::Compute::new(name, x.shape()).annotate("axis", axis as i64),
        KernelForm::Fast => te::Compute::new(name, x.shape()),
    };
    let distance = |at: &[PrimExpr]| x.at(at) - highest.at(&without(at));
    let plan = over();
    if log == Log::Yes {
        let total = te::compute("T_softmax_expsum", &kept, |out| {
            te::sum(math("exp", distance(&plan.index(x.ndim(), out))), &plan.reduce)
        });
        return over_rows("T_log_softmax").build(|out| distance(out) - math("log", total.at(&without(out))));
    }
    let exps = te::compute("T_softmax_exp", x.shape(), |out| math("exp", distance(out)));
    let total =
        te::compute("T_softmax_expsum", &kept, |out| te::sum(exps.at(&plan.index(x.ndim(), out)), &plan.reduce));
    // One division a row. Halves have too few digits to round the reciprocal.
    let one = constant(x.dtype(), 1.0);
    over_rows("T_softmax_norm").build(|out| match x.dtype().bits {
        32.. if form == KernelForm::Fast => exps.at(out) * prim::div(one.clone(), total.at(&without(out))),
        _ => prim::div(exps.at(out), total.at(&without(out))),
    })
}

/// Average and variance over some dimensions, which are dropped.
struct Moments {
    axes: Vec<usize>,
    mean: te::Tensor,
    variance: te::Tensor,
}

impl Moments {
    fn of(x: &te::Tensor, axes: Vec<usize>) -> Moments {
        let kept: Vec<PrimExpr> =
            x.shape().iter().enumerate().filter(|(i, _)| !axes.contains(i)).map(|(_, d)| d.clone()).collect();
        let sizes: Vec<PrimExpr> = axes.iter().filter_map(|a| x.shape().get(*a).cloned()).collect();
        let count = cast(x.dtype(), num_elements(&sizes));
        let average = |name: &str, value: &dyn Fn(&[PrimExpr], &[PrimExpr]) -> PrimExpr| {
            let plan = ReductionIndices::new(x, axes.clone(), false);
            let total = te::compute(format!("{name}_red"), &kept, |out| {
                te::sum(value(&plan.index(x.ndim(), out), out), &plan.reduce)
            });
            te::compute(format!("T_{name}"), &kept, |out| prim::div(total.at(out), &count))
        };
        let mean = average("mean", &|at, _| x.at(at));
        let variance = average("variance", &|at, out| {
            let distance = x.at(at) - mean.at(out);
            &distance * &distance
        });
        Moments { axes, mean, variance }
    }

    /// The index into the statistics that belongs to an index into the tensor.
    fn index(&self, at: &[PrimExpr]) -> Vec<PrimExpr> {
        at.iter().enumerate().filter(|(i, _)| !self.axes.contains(i)).map(|(_, e)| e.clone()).collect()
    }

    /// The element at `at`, brought to average zero and variance one.
    fn normalized(&self, x: &te::Tensor, at: &[PrimExpr], epsilon: f64) -> PrimExpr {
        let own = self.index(at);
        (x.at(at) - self.mean.at(&own)) * over_spread(self.variance.at(&own), constant(x.dtype(), epsilon))
    }
}

/// `1 / sqrt(variance + epsilon)`: a factor, since it is the same for a whole row, whose elements would each be divided.
fn over_spread(variance: PrimExpr, epsilon: PrimExpr) -> PrimExpr {
    let one = constant(variance.dtype(), 1.0);
    prim::div(one, math("sqrt", variance + epsilon))
}

/// Applies gamma and beta, at an index of theirs, as the attributes say.
fn affine(cx: &CallCx, inputs: &[te::Tensor], value: PrimExpr, at: &[PrimExpr]) -> Result<PrimExpr, OpError> {
    let dtype = value.dtype();
    let scaled = if cx.bool("scale")? { value * cast(dtype, input(cx, inputs, 1)?.at(at)) } else { value };
    Ok(if cx.bool("center")? { scaled + cast(dtype, input(cx, inputs, 2)?.at(at)) } else { scaled })
}

/// A compute whose elements may be refused.
pub(super) fn try_compute(
    name: &str,
    shape: &[PrimExpr],
    f: impl Fn(&[PrimExpr]) -> Result<PrimExpr, OpError>,
) -> Result<te::Tensor, OpError> {
    let mut failed = None;
    let tensor = te::compute(name, shape, |out| {
        f(out).unwrap_or_else(|e| {
            failed = Some(e);
            PrimExpr::from(0)
        })
    });
    failed.map_or(Ok(tensor), Err)
}

fn layer_norm(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    let axes = cx.axes("axes", x.ndim())?.unwrap_or_default();
    let epsilon = cx.float("epsilon")?;
    let moments = Moments::of(x, axes.clone());
    let out = try_compute("T_layer_norm", x.shape(), |out| {
        let at: Vec<PrimExpr> = axes.iter().map(|a| out[*a].clone()).collect();
        affine(cx, inputs, moments.normalized(x, out, epsilon), &at)
    })?;
    Ok(vec![out])
}

fn instance_norm(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    let axes = cx.axes("axes", x.ndim())?.unwrap_or_default();
    let channel = cx.axis("channel_axis", x.ndim())?;
    let epsilon = cx.float("epsilon")?;
    let moments = Moments::of(x, axes);
    let out = try_compute("T_instance_norm", x.shape(), |out| {
        affine(cx, inputs, moments.normalized(x, out, epsilon), &out[channel..=channel])
    })?;
    Ok(vec![out])
}

fn group_norm(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    let channel = cx.axis("channel_axis", x.ndim())?;
    let groups = cx.int("num_groups")?;
    let channels = x.shape()[channel].clone();
    if groups < 1 || channels.as_int().is_some_and(|c| c % groups != 0) {
        return cx.invalid(format!("the channels cannot be divided into {groups} groups"));
    }
    let size = prim::floordiv(&channels, groups);
    let mut dims = x.shape().to_vec();
    dims.splice(channel..=channel, [PrimExpr::from(groups), size.clone()]);
    let split = super::manipulate::reshape_tensor("groups", x, &dims);
    let shifted = |a: usize| if a > channel { a + 1 } else { a };
    let further = cx.axes("axes", x.ndim())?.unwrap_or_default();
    let axes: Vec<usize> =
        std::iter::once(channel + 1).chain(further.into_iter().filter(|a| *a != channel).map(shifted)).collect();
    let epsilon = cx.float("epsilon")?;
    let moments = Moments::of(&split, axes);
    let out = try_compute("T_group_norm", x.shape(), |out| {
        let mut at = out.to_vec();
        let own = out[channel].clone();
        at.splice(channel..=channel, [prim::floordiv(&own, &size), prim::floormod(&own, &size)]);
        affine(cx, inputs, moments.normalized(&split, &at, epsilon), &out[channel..=channel])
    })?;
    Ok(vec![out])
}

fn rms_norm(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let (x, weight) = (input(cx, inputs, 0)?, input(cx, inputs, 1)?);
    let axes = cx.axes("axes", x.ndim())?.unwrap_or_default();
    let epsilon = cx.float("epsilon")?;
    let kept: Vec<PrimExpr> =
        x.shape().iter().enumerate().filter(|(i, _)| !axes.contains(i)).map(|(_, d)| d.clone()).collect();
    let sizes: Vec<PrimExpr> = axes.iter().map(|a| x.shape()[*a].clone()).collect();
    let wide = DataType::float(32);
    let plan = ReductionIndices::new(x, axes.clone(), false);
    let squares = te::compute("squares_red", &kept, |out| {
        let value = cast(wide, x.at(&plan.index(x.ndim(), out)));
        te::sum(&value * &value, &plan.reduce)
    });
    let count = cast(wide, num_elements(&sizes));
    Ok(vec![te::compute("T_rms_norm", x.shape(), |out| {
        let own: Vec<PrimExpr> =
            out.iter().enumerate().filter(|(i, _)| !axes.contains(i)).map(|(_, e)| e.clone()).collect();
        let at: Vec<PrimExpr> = axes.iter().map(|a| out[*a].clone()).collect();
        let factor = over_spread(prim::div(squares.at(&own), &count), constant(wide, epsilon));
        cast(x.dtype(), cast(wide, x.at(out)) * factor * cast(wide, weight.at(&at)))
    })])
}

fn batch_norm_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    let channels = match x.ndim {
        Some(ndim) => {
            let axis = cx.axis("axis", ndim)?;
            x.dims.as_ref().map(|dims| vec![dims[axis].clone()])
        }
        None => None,
    };
    let alike = |i: usize| match (&channels, cx.tensor(i)) {
        (Some(channels), Ok(TensorInfo { dims: Some(dims), .. })) => same_dims(channels, &dims),
        _ => true,
    };
    let certain = (1..=4).all(alike);
    let data = parameters(cx, 4, 1, channels.clone())?;
    if !certain {
        let small = || tensor_type(None, Some(1), x.dtype);
        return Ok(Type::tuple(vec![tensor_type(None, x.ndim, x.dtype), small(), small()]));
    }
    Ok(Type::tuple(vec![data, cx.tensor(3)?.ty(), cx.tensor(4)?.ty()]))
}

fn batch_norm(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    let axis = cx.axis("axis", x.ndim())?;
    let epsilon = constant(x.dtype(), cx.float("epsilon")?);
    let (moving_mean, moving_var) = (input(cx, inputs, 3)?, input(cx, inputs, 4)?);
    let training = cx.bool("training")?;
    let batch = training.then(|| Moments::of(x, (0..x.ndim()).filter(|a| *a != axis).collect()));
    let (mean, variance) = match &batch {
        Some(batch) => (&batch.mean, &batch.variance),
        None => (moving_mean, moving_var),
    };
    let data = try_compute("T_batch_norm", x.shape(), |out| {
        let at = &out[axis..=axis];
        let normalized = (x.at(out) - mean.at(at)) * over_spread(variance.at(at), epsilon.clone());
        affine(cx, inputs, normalized, at)
    })?;
    let momentum = cx.float("momentum")?;
    let moved = |name: &str, running: &te::Tensor, new: &te::Tensor| {
        te::compute(name, running.shape(), |c| {
            if !training {
                return running.at(c);
            }
            let weight = |v: f64| constant(running.dtype(), v);
            running.at(c) * weight(1.0 - momentum) + new.at(c) * weight(momentum)
        })
    };
    Ok(vec![data, moved("T_moving_mean", moving_mean, mean), moved("T_moving_var", moving_var, variance)])
}
