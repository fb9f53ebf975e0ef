//! Layers.

use relaxide_ffi::DataType;
use relaxide_ir::AttrValue;
use relaxide_ir::prim;
use relaxide_relax as rx;

use super::cx::{LowerCx, LowerError, Lowered, attrs, fail};

pub(super) fn leaky_relu(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, alpha) = (cx.arg(0)?, cx.float("alpha")?);
    cx.emit("nn.leakyrelu", [x], attrs([("alpha", alpha.into())]))
}

pub(super) fn prelu(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, alpha, axis) = (cx.arg(0)?, cx.arg(1)?, cx.int("axis")?);
    cx.emit("nn.prelu", [x, alpha], attrs([("axis", axis.into())]))
}

/// A vector along a dimension of a tensor, with ones in the place of the dimensions behind it.
pub(super) fn along(cx: &mut LowerCx<'_>, vector: rx::Expr, axis: usize, ndim: usize) -> Lowered {
    let mut shape = cx.shape(&vector)?;
    if shape.is_empty() {
        return Ok(vector);
    }
    shape.resize(shape.len() + ndim - 1 - axis, prim::int(1));
    cx.reshape(vector, shape)
}

pub(super) fn bias_add(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, bias) = (cx.arg(0)?, cx.arg(1)?);
    let ndim = cx.ndim(&x)?;
    let axis = cx.axis(cx.int("axis")?, ndim)?;
    let bias = along(cx, bias, axis, ndim)?;
    cx.binary("add", x, bias)
}

fn transposed(cx: &mut LowerCx<'_>, x: rx::Expr) -> Lowered {
    let ndim = cx.ndim(&x)? as i64;
    let mut order: Vec<i64> = (0..ndim).collect();
    let n = order.len();
    order.swap(n - 1, n - 2);
    cx.emit("permute_dims", [x], attrs([("axes", order.into())]))
}

fn product(cx: &mut LowerCx<'_>, a: rx::Expr, b: rx::Expr) -> Lowered {
    let dtype = cx.dtype(&a)?;
    let out = cx.dtype_attr("out_dtype", dtype);
    let out: AttrValue = if out == dtype { AttrValue::None } else { out.into() };
    // What both have at the place that is summed over is one dimension, or the product is an error when it runs.
    cx.emit("matmul", [a, b], attrs([("out_dtype", out)]))
}

/// `x` times the transposed weight. A depth that is not known on both sides is taken to be the same on both, which the
/// kernel checks where it cannot be proved.
pub(super) fn dense(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, weight) = (cx.arg(0)?, cx.arg(1)?);
    let (sx, sw) = (cx.shape(&x)?, cx.shape(&weight)?);
    if sw.len() != 2 {
        return fail("nn.dense: the weight has two dimensions");
    }
    let (Some(a), b) = (sx.last(), &sw[1]) else { return fail("nn.dense: the data have at least one dimension") };
    if let (Some(a), Some(b)) = (a.as_int(), b.as_int())
        && a != b
    {
        return fail(format!("nn.dense: the data have {a} columns and the weight {b}"));
    }
    let (x, weight) = depth_agreed(cx, x, weight, sx.len() - 1)?;
    let weight = transposed(cx, weight)?;
    product(cx, x, weight)
}

/// Two tensors whose depths are one dimension; where only the run shows that they are, it is checked.
fn depth_agreed(
    cx: &mut LowerCx<'_>,
    x: rx::Expr,
    weight: rx::Expr,
    last: usize,
) -> Result<(rx::Expr, rx::Expr), LowerError> {
    let (sx, sw) = (cx.shape(&x)?, cx.shape(&weight)?);
    if rx::shape::prove_equal(&sx[last], &sw[1]) {
        return Ok((x, weight));
    }
    let depth = cx.agreed(&sx[last], &sw[1], false);
    let (mut of_x, mut of_w) = (sx, sw);
    of_x[last] = depth.clone();
    of_w[1] = depth;
    let x = super::manipulate::same_shape(cx, x, &of_x)?;
    let weight = super::manipulate::same_shape(cx, weight, &of_w)?;
    Ok((x, weight))
}

pub(super) fn matmul(cx: &mut LowerCx<'_>) -> Lowered {
    let (mut a, mut b) = (cx.arg(0)?, cx.arg(1)?);
    if cx.bool("transpose_a") {
        a = transposed(cx, a)?;
    }
    if cx.bool("transpose_b") {
        b = transposed(cx, b)?;
    }
    product(cx, a, b)
}

pub(super) fn batch_matmul(cx: &mut LowerCx<'_>) -> Lowered {
    matmul(cx)
}

/// Nothing is dropped in inference; the mask is ones.
pub(super) fn dropout(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let mask = cx.op("ones_like", [x.clone()])?;
    Ok(rx::Expr::tuple([x, mask]))
}

fn norm_flags(cx: &LowerCx<'_>) -> Result<[(&'static str, AttrValue); 3], LowerError> {
    Ok([
        ("epsilon", cx.float("epsilon")?.into()),
        ("center", cx.bool("center").into()),
        ("scale", cx.bool("scale").into()),
    ])
}

pub(super) fn batch_norm(cx: &mut LowerCx<'_>) -> Lowered {
    let args = (0..5).map(|i| cx.arg(i)).collect::<Result<Vec<_>, _>>()?;
    let ndim = cx.ndim(&args[0])?;
    let axis = cx.axis(cx.int("axis")?, ndim)? as i64;
    let [epsilon, center, scale] = norm_flags(cx)?;
    cx.emit("nn.batch_norm", args, attrs([("axis", axis.into()), ("training", false.into()), epsilon, center, scale]))
}

pub(super) fn layer_norm(cx: &mut LowerCx<'_>) -> Lowered {
    let args = (0..3).map(|i| cx.arg(i)).collect::<Result<Vec<_>, _>>()?;
    let axis = cx.axis(cx.int("axis")?, cx.ndim(&args[0])?)? as i64;
    let [epsilon, center, scale] = norm_flags(cx)?;
    cx.emit("nn.layer_norm", args, attrs([("axes", vec![axis].into()), epsilon, center, scale]))
}

/// All dimensions but the batch and the channels.
fn others(cx: &LowerCx<'_>, x: &rx::Expr, axis: usize) -> Result<Vec<i64>, LowerError> {
    Ok((1..cx.ndim(x)?).filter(|i| *i != axis).map(|i| i as i64).collect())
}

pub(super) fn group_norm(cx: &mut LowerCx<'_>) -> Lowered {
    let args = (0..3).map(|i| cx.arg(i)).collect::<Result<Vec<_>, _>>()?;
    let axis = cx.axis(cx.int("axis")?, cx.ndim(&args[0])?)?;
    let (axes, groups) = (others(cx, &args[0], axis)?, cx.int("num_groups")?);
    let [epsilon, center, scale] = norm_flags(cx)?;
    let pairs = [
        ("num_groups", groups.into()),
        ("channel_axis", (axis as i64).into()),
        ("axes", axes.into()),
        epsilon,
        center,
        scale,
    ];
    cx.emit("nn.group_norm", args, attrs(pairs))
}

pub(super) fn instance_norm(cx: &mut LowerCx<'_>) -> Lowered {
    let args = (0..3).map(|i| cx.arg(i)).collect::<Result<Vec<_>, _>>()?;
    let axis = cx.axis(cx.int("axis")?, cx.ndim(&args[0])?)?;
    let axes = others(cx, &args[0], axis)?;
    let [epsilon, center, scale] = norm_flags(cx)?;
    let pairs = [("channel_axis", (axis as i64).into()), ("axes", axes.into()), epsilon, center, scale];
    cx.emit("nn.instance_norm", args, attrs(pairs))
}

/// x / sqrt(max(sum(x * x), eps))
pub(super) fn l2_normalize(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let axes = cx.ints("axis")?;
    let epsilon = cx.constant(cx.float("eps")?, cx.dtype(&x)?)?;
    let square = cx.op("multiply", [x.clone(), x.clone()])?;
    let axes: AttrValue = if axes.is_empty() { AttrValue::None } else { axes.into() };
    let sum = cx.emit("sum", [square], attrs([("axis", axes), ("keepdims", true.into())]))?;
    let bounded = cx.op("maximum", [sum, epsilon])?;
    let root = cx.op("sqrt", [bounded])?;
    cx.op("divide", [x, root])
}

/// x / (bias + alpha / size * sum of the squares of `size` neighbours) ^ beta, the neighbours along one dimension.
pub(super) fn lrn(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let (size, axis) = (cx.int("size")?, cx.axis(cx.int("axis")?, cx.ndim(&x)?)?);
    let dtype = cx.dtype(&x)?;
    let shape = cx.shape(&x)?;
    let square = cx.op("multiply", [x.clone(), x.clone()])?;
    let half = size / 2;
    let sums = cx.builder.emit_te("lrn_sum", vec![square], |inputs| {
        let squares = inputs[0].clone();
        let k = relaxide_tir::te::reduce_axis(size);
        let own = shape.clone();
        vec![relaxide_tir::te::compute("T_lrn", shape, |at: &[relaxide_ir::PrimExpr]| {
            let mut place = at.to_vec();
            place[axis] = &at[axis] + k.var() - half;
            let inside = prim::and(prim::ge(&place[axis], prim::int(0)), prim::lt(&place[axis], own[axis].clone()));
            relaxide_tir::te::sum(prim::if_then_else(inside, squares.at(&place), prim::constant(dtype, 0.0)), [&k])
        })]
    })?;
    let scale = cx.constant(cx.float("alpha")? / size as f64, dtype)?;
    let bias = cx.constant(cx.float("bias")?, dtype)?;
    let beta = cx.constant(cx.float("beta")?, dtype)?;
    let scaled = cx.op("multiply", [sums, scale])?;
    let base = cx.op("add", [scaled, bias])?;
    let power = cx.op("power", [base, beta])?;
    cx.op("divide", [x, power])
}

/// -sum(log(x) * y) / batch
pub(super) fn cross_entropy(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let log = cx.op("log", [x])?;
    entropy(cx, log)
}

pub(super) fn cross_entropy_with_logits(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    entropy(cx, x)
}

fn entropy(cx: &mut LowerCx<'_>, x: rx::Expr) -> Lowered {
    let y = cx.arg(1)?;
    let dtype = cx.dtype(&x)?;
    let batch = cx.shape(&x)?.first().and_then(|d| d.as_int());
    let batch = batch.ok_or_else(|| LowerError(format!("{} needs a known batch", cx.def.name)))?;
    let product = cx.op("multiply", [x, y])?;
    let sum = cx.op("sum", [product])?;
    let scale = cx.constant(-1.0 / batch as f64, dtype)?;
    cx.op("multiply", [sum, scale])
}

/// Elements set apart, with a value between them.
pub(super) fn dilate(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let (strides, value, dtype) = (cx.ints("strides")?, cx.float("dilation_value")?, cx.dtype(&x)?);
    let own = cx.shape(&x)?;
    if strides.len() != own.len() || strides.iter().any(|s| *s <= 0) {
        return fail("nn.dilate: a positive stride for each dimension is needed");
    }
    let shape: Vec<_> = own.iter().zip(&strides).map(|(dim, s)| (dim - 1) * *s + 1).collect();
    Ok(cx.builder.emit_te("dilate", vec![x], |inputs| {
        let x = inputs[0].clone();
        vec![relaxide_tir::te::compute("T_dilate", shape, |at: &[relaxide_ir::PrimExpr]| {
            let on = at.iter().zip(&strides).filter(|(_, s)| **s != 1);
            let on = on.map(|(i, s)| prim::eq(prim::floormod(i.clone(), prim::int(*s)), prim::int(0)));
            let on = on.reduce(prim::and).unwrap_or_else(|| prim::boolean(true));
            let place: Vec<_> =
                at.iter().zip(&strides).map(|(i, s)| prim::floordiv(i.clone(), prim::int(*s))).collect();
            prim::if_then_else(on, x.at(&place), prim::constant(dtype, value))
        })]
    })?)
}

/// What lies in a queue after new elements have pushed out as many old ones.
pub(super) fn fifo_buffer(cx: &mut LowerCx<'_>) -> Lowered {
    let (data, buffer) = (cx.arg(0)?, cx.arg(1)?);
    let axis = cx.axis(cx.int("axis")?, cx.ndim(&buffer)?)?;
    let fresh = cx.shape(&data)?[axis].as_int();
    let kept = cx.shape(&buffer)?[axis].as_int();
    let (Some(fresh), Some(kept)) = (fresh, kept) else { return fail("nn.fifo_buffer needs known dimensions") };
    let joined = cx.emit("concat", [rx::Expr::tuple([buffer, data])], attrs([("axis", (axis as i64).into())]))?;
    let slice =
        attrs([("begin", vec![fresh].into()), ("end", vec![fresh + kept].into()), ("axes", vec![axis as i64].into())]);
    cx.relay("strided_slice", vec![joined], slice)
}

/// The element type of accumulation, for the quantized operators.
pub(super) const ACCUMULATED: DataType = DataType::int(32);
