//! Normalization, and softmax.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;

use super::Table;
use crate::error::NodeError;
use crate::rule::{Cx, Outputs, Result, one};
use crate::value::{Scalar, Value};

pub const TABLE: Table = &[
    ("aten.softmax", |cx| softmax(cx, "nn.softmax")),
    ("aten._softmax", |cx| softmax(cx, "nn.softmax")),
    ("aten._safe_softmax", safe_softmax),
    ("aten.special_softmax", |cx| softmax(cx, "nn.softmax")),
    ("aten.log_softmax", |cx| softmax(cx, "nn.log_softmax")),
    ("aten._log_softmax", |cx| softmax(cx, "nn.log_softmax")),
    ("aten.layer_norm", layer_norm),
    ("aten.native_layer_norm", layer_norm),
    ("aten.rms_norm", rms_norm),
    ("aten._fused_rms_norm", rms_norm),
    ("aten.group_norm", group_norm),
    ("aten.native_group_norm", group_norm),
    ("aten.instance_norm", instance_norm),
    ("aten.batch_norm", batch_norm),
    ("aten._native_batch_norm_legit_no_training", batch_norm),
    ("aten._native_batch_norm_legit", batch_norm),
    ("aten._native_batch_norm_legit_functional", batch_norm),
    ("aten.native_batch_norm", batch_norm),
    ("aten._batch_norm_no_update", batch_norm),
    ("aten.cudnn_batch_norm", batch_norm),
    ("aten.local_response_norm", |_| Err(NodeError::unsupported("export the program with `run_decompositions()`"))),
];

fn softmax(cx: &mut Cx<'_>, op: &str) -> Outputs {
    let x = super::elementwise::input(cx)?;
    let rank = cx.rank(&x)?;
    if rank == 0 {
        return one(cx.number(if op == "nn.softmax" { 1.0 } else { 0.0 }, cx.dtype(&x))?);
    }
    let axis = cx.axis("dim", -1, rank)?;
    one(cx.op(op, [x], Attrs::new().with("axis", axis as i64))?)
}

/// Softmax in which a row of nothing but minus infinity is zeros.
fn safe_softmax(cx: &mut Cx<'_>) -> Outputs {
    let x = super::elementwise::input(cx)?;
    let dtype = cx.dtype(&x);
    let axis = cx.axis("dim", -1, cx.rank(&x)?)?;
    let attrs = Attrs::new().with("axis", vec![axis as i64]).with("keepdims", true);
    let high = cx.op("max", [x.clone()], attrs)?;
    let least = cx.number(f64::NEG_INFINITY, dtype)?;
    let empty = cx.call("equal", [high, least])?;
    let zero = cx.number(0.0, dtype)?;
    let shares = cx.op("nn.softmax", [x], Attrs::new().with("axis", axis as i64))?;
    one(cx.call("where", [empty, zero, shares])?)
}

/// Weight and bias of so many elements, ones and zeros where they are missing.
fn affine(cx: &mut Cx<'_>, dims: &[PrimExpr], dtype: DataType) -> Result<[Expr; 2]> {
    let mut part = |name: &str, missing: f64| -> Result<Expr> {
        if let Some(given) = cx.optional(name)? {
            return cx.cast(given, dtype);
        }
        let known: Option<Vec<i64>> = dims.iter().map(PrimExpr::as_int).collect();
        let known =
            known.ok_or_else(|| NodeError::unsupported("normalized dimensions that are not known at export"))?;
        let count = cx.count(&known)?;
        cx.constant(&vec![missing; count], &known, dtype)
    };
    Ok([part("weight", 1.0)?, part("bias", 0.0)?])
}

fn epsilon(cx: &Cx<'_>) -> Result<f64> {
    if cx.get("epsilon").is_some() { cx.float_or("epsilon", 1e-5) } else { cx.float_or("eps", 1e-5) }
}

fn last_axes(rank: usize, count: usize) -> Vec<i64> {
    (rank.saturating_sub(count)..rank).map(|axis| axis as i64).collect()
}

fn layer_norm(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("input")?;
    let shape = cx.shape(&x)?;
    let count = cx.dims("normalized_shape")?.unwrap_or_default().len();
    let axes = last_axes(shape.len(), count);
    let [weight, bias] = affine(cx, &shape[shape.len() - axes.len()..], cx.dtype(&x))?;
    let attrs = Attrs::new().with("axes", axes).with("epsilon", epsilon(cx)?);
    one(cx.op("nn.layer_norm", [x, weight, bias], attrs)?)
}

fn rms_norm(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("input")?;
    let shape = cx.shape(&x)?;
    let count = cx.dims("normalized_shape")?.unwrap_or_default().len();
    let axes = last_axes(shape.len(), count);
    let dtype = cx.dtype(&x);
    let [weight, _] = affine(cx, &shape[shape.len() - axes.len()..], dtype)?;
    let tiny = match dtype.bits {
        64 => f64::EPSILON,
        16 if dtype.code == DataType::FLOAT => 9.765625e-4,
        16 => 7.8125e-3,
        _ => f64::from(f32::EPSILON),
    };
    let epsilon = cx.float_or("eps", tiny)?;
    one(cx.op("nn.rms_norm", [x, weight], Attrs::new().with("axes", axes).with("epsilon", epsilon))?)
}

fn group_norm(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("input")?;
    let shape = cx.shape(&x)?;
    let name = if cx.get("num_groups").is_some() { "num_groups" } else { "group" };
    let groups = cx.int_or(name, 1)?;
    if shape.len() < 2 {
        return Err(NodeError::invalid("the input has no channels"));
    }
    let [weight, bias] = affine(cx, &shape[1..2], cx.dtype(&x))?;
    let axes: Vec<i64> = (2..shape.len()).map(|axis| axis as i64).collect();
    let attrs = Attrs::new().with("num_groups", groups).with("channel_axis", 1i64).with("axes", axes);
    one(cx.op("nn.group_norm", [x, weight, bias], attrs.with("epsilon", epsilon(cx)?))?)
}

fn instance_norm(cx: &mut Cx<'_>) -> Outputs {
    if !cx.flag("use_input_stats", true)? {
        return batch_norm(cx);
    }
    let x = cx.tensor("input")?;
    let shape = cx.shape(&x)?;
    let [weight, bias] = affine(cx, &shape[1..2], cx.dtype(&x))?;
    let axes: Vec<i64> = (2..shape.len()).map(|axis| axis as i64).collect();
    let attrs = Attrs::new().with("channel_axis", 1i64).with("axes", axes).with("epsilon", epsilon(cx)?);
    one(cx.op("nn.instance_norm", [x, weight, bias], attrs)?)
}

/// By the running statistics, or by the batch's own where there are none or the program was exported for training.
fn batch_norm(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("input")?;
    let shape = cx.shape(&x)?;
    let channels = shape.get(1..2).ok_or_else(|| NodeError::invalid("the input has no channels"))?.to_vec();
    let training = cx.flag("training", false)? || cx.node.target.contains("_functional");
    let [weight, bias] = affine(cx, &channels, cx.dtype(&x))?;
    let statistics = (cx.optional("running_mean")?, cx.optional("running_var")?);
    if let (false, (Some(mean), Some(variance))) = (training, statistics) {
        let attrs = Attrs::new().with("axis", 1i64).with("epsilon", epsilon(cx)?).with("training", false);
        let attrs = attrs.with("momentum", cx.float_or("momentum", 0.1)?);
        let tuple = cx.op("nn.batch_norm", [x, weight, bias, mean, variance], attrs)?;
        return one(cx.field(&tuple, 0)?);
    }
    by_batch(cx, x, &shape, [weight, bias])
}

fn by_batch(cx: &mut Cx<'_>, x: Expr, shape: &[PrimExpr], [weight, bias]: [Expr; 2]) -> Outputs {
    let dtype = cx.dtype(&x);
    let axes: Vec<i64> = (0..shape.len() as i64).filter(|&axis| axis != 1).collect();
    let over = |keep: bool| Attrs::new().with("axis", axes.clone()).with("keepdims", keep);
    let mean = cx.op("mean", [x.clone()], over(true))?;
    let distance = cx.call("subtract", [x, mean.clone()])?;
    let square = cx.call("multiply", [distance.clone(), distance.clone()])?;
    let variance = cx.op("mean", [square], over(true))?;
    let tiny = cx.number(epsilon(cx)?, dtype)?;
    let moved = cx.call("add", [variance.clone(), tiny])?;
    let inverse = cx.call("rsqrt", [moved])?;
    let mut column = vec![prim::int(1); shape.len()];
    column[1] = shape[1].clone();
    let (weight, bias) = (cx.reshape(weight, &column)?, cx.reshape(bias, &column)?);
    let scaled = cx.call("multiply", [distance, inverse.clone()])?;
    let scaled = cx.call("multiply", [scaled, weight])?;
    let y = cx.call("add", [scaled, bias])?;
    let flat = [shape[1].clone()];
    let (mean, variance, inverse) =
        (cx.reshape(mean, &flat)?, cx.reshape(variance, &flat)?, cx.reshape(inverse, &flat)?);
    let mut out = vec![Value::Tensor(y), Value::Tensor(mean.clone()), Value::Tensor(inverse)];
    if let (true, Some(old_mean), Some(old_variance)) =
        (cx.node.target.contains("_functional"), cx.optional("running_mean")?, cx.optional("running_var")?)
    {
        // The running variance takes the batch's with one element less as divisor.
        let count = shape.iter().enumerate().filter(|(axis, _)| *axis != 1).fold(prim::int(1), |n, (_, d)| n * d);
        let count = cx.operand(Scalar::Int(count), dtype)?;
        let unit = cx.number(1.0, dtype)?;
        let fewer = cx.call("subtract", [count.clone(), unit])?;
        let ratio = cx.call("divide", [count, fewer])?;
        let unbiased = cx.call("multiply", [variance, ratio])?;
        let momentum = cx.float_or("momentum", 0.1)?;
        for (old, new) in [(old_mean, mean), (old_variance, unbiased)] {
            let (keep, take) = (cx.number(1.0 - momentum, dtype)?, cx.number(momentum, dtype)?);
            let old = cx.call("multiply", [old, keep])?;
            let new = cx.call("multiply", [new, take])?;
            out.push(Value::Tensor(cx.call("add", [old, new])?));
        }
    }
    Ok(out)
}
