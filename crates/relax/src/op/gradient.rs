//! Gradients: of each argument of a call, given that of its result.
//!
//! What an argument was broadcast by, its gradient is summed over ([`fit`]). Each function says the formula; `g` is the
//! gradient of the result, `y` the result.

use relaxide_ffi::DataType;
use relaxide_ir::prim::PrimExpr;
use relaxide_ir::{AttrValue, Attrs, Type};

use super::*;
use crate::constant::scalar_constant;
use crate::shape::same_dims;
use crate::{BlockBuilder, BuildError};

type Grads = Result<Vec<Option<Expr>>, BuildError>;

fn op<const N: usize>(name: &str, args: [Expr; N]) -> Result<Expr, OpError> {
    call(name, args, Attrs::new())
}

fn neg(x: Expr) -> Result<Expr, OpError> {
    op("negative", [x])
}

fn mul(a: Expr, b: Expr) -> Result<Expr, OpError> {
    op("multiply", [a, b])
}

impl GradCx<'_> {
    fn g(&self) -> Expr {
        self.grad.clone()
    }

    fn y(&self) -> Expr {
        self.output.clone()
    }

    fn x(&self, i: usize) -> Result<Expr, OpError> {
        self.call.arg(i).cloned()
    }

    fn number(&self, dtype: DataType, value: f64) -> Result<Expr, OpError> {
        scalar_constant(dtype, value)
            .ok_or_else(|| OpError::unsupported(self.call.name(), format!("has no gradient for tensors of {dtype}")))
    }

    /// A number of the dtype of argument `i`.
    fn like(&self, i: usize, value: f64) -> Result<Expr, OpError> {
        self.number(self.call.operand(i)?.dtype, value)
    }

    /// The shape of tensor argument `i`.
    fn shape(&self, i: usize) -> Result<Expr, OpError> {
        Ok(Expr::shape(self.call.dims(i)?))
    }

    /// How many elements are reduced into one.
    fn reduced(&self, i: usize) -> Result<f64, OpError> {
        let dims = self.call.dims(i)?;
        let axes = match self.call.attrs.get("axis") {
            None => (0..dims.len()).collect(),
            Some(_) => self.call.axes("axis", dims.len())?.unwrap_or_default(),
        };
        let sizes: Option<Vec<i64>> = axes.iter().map(|a| dims.get(*a).and_then(PrimExpr::as_int)).collect();
        match sizes {
            Some(sizes) => Ok(sizes.iter().map(|s| *s as f64).product()),
            None => self.call.unsupported("has a gradient only where the sizes of what is averaged are numbers"),
        }
    }

    /// The gradient of the result with the dimensions that a reduction dropped.
    fn restored(&self, g: Expr) -> Result<Expr, OpError> {
        match self.call.attrs.get("axis") {
            Some(axis @ AttrValue::List(list)) if !list.is_empty() && !self.call.bool("keepdims")? => {
                call("expand_dims", [g], Attrs::new().with("axis", axis.clone()))
            }
            _ => Ok(g),
        }
    }
}

/// A gradient summed to the shape of the argument that it belongs to.
fn fit(cx: &GradCx, g: Expr, i: usize) -> Result<Option<Expr>, BuildError> {
    let Type::Tensor(to) = cx.call.ty(i)? else { return Ok(None) };
    let Type::Tensor(from) = g.ty() else { return Ok(Some(g)) };
    match (&from.shape, &to.shape) {
        (Some(a), Some(b)) if same_dims(a, b) => Ok(Some(g)),
        _ => Ok(Some(op("collapse_sum_to", [g, cx.shape(i)?])?)),
    }
}

/// No gradient flows into any argument.
pub fn none(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    Ok(cx.call.args.iter().map(|_| None).collect())
}

// Operators of two tensors.

/// `g` and `g`.
pub fn add(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    Ok(vec![fit(cx, cx.g(), 0)?, fit(cx, cx.g(), 1)?])
}

/// `g` and `-g`.
pub fn subtract(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    Ok(vec![fit(cx, cx.g(), 0)?, fit(cx, neg(cx.g())?, 1)?])
}

/// `g * x2` and `g * x1`.
pub fn multiply(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    Ok(vec![fit(cx, mul(cx.g(), cx.x(1)?)?, 0)?, fit(cx, mul(cx.g(), cx.x(0)?)?, 1)?])
}

/// `g / x2` and `-g * y / x2`.
pub fn divide(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    let right = op("divide", [mul(neg(cx.g())?, cx.y())?, cx.x(1)?])?;
    Ok(vec![fit(cx, op("divide", [cx.g(), cx.x(1)?])?, 0)?, fit(cx, right, 1)?])
}

/// `g * x2 * x1 ** (x2 - 1)` and `g * y * log(x1)`; the latter for positive x1 only.
pub fn power(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    let (x, y) = (cx.x(0)?, cx.x(1)?);
    let less = op("subtract", [y.clone(), cx.like(1, 1.0)?])?;
    let left = mul(mul(cx.g(), y)?, op("power", [x.clone(), less])?)?;
    let right = mul(mul(cx.g(), cx.y())?, op("log", [x])?)?;
    Ok(vec![fit(cx, left, 0)?, fit(cx, right, 1)?])
}

/// `g` goes to the larger one, to the first of equal ones.
pub fn maximum(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    Ok(vec![gated(cx, "less", 0)?, gated(cx, "greater_equal", 1)?])
}

/// `g` goes to the smaller one, to the second of equal ones.
pub fn minimum(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    Ok(vec![gated(cx, "greater_equal", 0)?, gated(cx, "less", 1)?])
}

/// `g` where a comparison of the two arguments does not hold.
fn gated(cx: &GradCx, comparison: &str, i: usize) -> Result<Option<Expr>, BuildError> {
    let holds = op(comparison, [cx.x(0)?, cx.x(1)?])?;
    fit(cx, op("where", [holds, cx.like(0, 0.0)?, cx.g()])?, i)
}

// Operators of one tensor.

/// `g * sign(x)`, of zero 1.
pub fn abs(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    let below = op("less", [cx.x(0)?, cx.like(0, 0.0)?])?;
    let sign = op("where", [below, neg(cx.like(0, 1.0)?)?, cx.like(0, 1.0)?])?;
    Ok(vec![Some(mul(cx.g(), sign)?)])
}

/// `-g * sin(x)`.
pub fn cos(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    Ok(vec![Some(mul(neg(cx.g())?, op("sin", [cx.x(0)?])?)?)])
}

/// `g * y`.
pub fn exp(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    Ok(vec![Some(mul(cx.g(), cx.y())?)])
}

/// `g / x`.
pub fn log(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    Ok(vec![Some(op("divide", [cx.g(), cx.x(0)?])?)])
}

/// `-g`.
pub fn negative(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    Ok(vec![Some(neg(cx.g())?)])
}

/// `g * y * (1 - y)`.
pub fn sigmoid(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    let rest = op("subtract", [cx.like(0, 1.0)?, cx.y()])?;
    Ok(vec![Some(mul(mul(cx.g(), cx.y())?, rest)?)])
}

/// `g * cos(x)`.
pub fn sin(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    Ok(vec![Some(mul(cx.g(), op("cos", [cx.x(0)?])?)?)])
}

/// `0.5 * g / y`.
pub fn sqrt(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    Ok(vec![Some(op("divide", [mul(cx.like(0, 0.5)?, cx.g())?, cx.y()])?)])
}

/// `g * (1 - y * y)`.
pub fn tanh(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    let slope = op("subtract", [cx.like(0, 1.0)?, mul(cx.y(), cx.y())?])?;
    Ok(vec![Some(mul(cx.g(), slope)?)])
}

/// `g` where x is not negative.
pub fn relu(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    let zero = cx.like(0, 0.0)?;
    let below = op("less", [cx.x(0)?, zero.clone()])?;
    Ok(vec![Some(op("where", [below, zero, cx.g()])?)])
}

/// `g * (s + y * (1 - s))` with `s = sigmoid(x)`.
pub fn silu(cx: &GradCx, b: &mut BlockBuilder) -> Grads {
    let s = b.normalize_arg(op("sigmoid", [cx.x(0)?])?)?;
    let rest = mul(cx.y(), op("subtract", [cx.like(0, 1.0)?, s.clone()])?)?;
    Ok(vec![Some(mul(cx.g(), op("add", [s, rest])?)?)])
}

/// `g`, in the dtype of x.
pub fn astype(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    let dtype = cx.call.tensor(0)?.dtype;
    Ok(vec![Some(call("astype", [cx.g()], Attrs::new().with("dtype", dtype))?)])
}

// Reductions.

/// `g`, repeated over what was summed.
pub fn sum(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    Ok(vec![Some(op("broadcast_to", [cx.restored(cx.g())?, cx.shape(0)?])?)])
}

/// `g` over the count, repeated over what was averaged.
pub fn mean(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    let count = cx.like(0, cx.reduced(0)?)?;
    let g = cx.restored(op("divide", [cx.g(), count])?)?;
    Ok(vec![Some(op("broadcast_to", [g, cx.shape(0)?])?)])
}

/// `g * 2 * (x - mean) / count`.
pub fn variance(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    let count = cx.reduced(0)?;
    let attrs = Attrs::new().with("keepdims", true);
    let attrs = match cx.call.attrs.get("axis") {
        Some(axis) => attrs.with("axis", axis.clone()),
        None => attrs,
    };
    let own = mul(cx.like(0, 2.0 / count)?, cx.x(0)?)?;
    let shared = mul(cx.like(0, 2.0 / count / count)?, call("sum", [cx.x(0)?], attrs)?)?;
    Ok(vec![Some(mul(cx.restored(cx.g())?, op("subtract", [own, shared])?)?)])
}

/// The running sum from the other end.
pub fn cumsum(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    let keep = Attrs::new().with("keepdims", true);
    let grad = match cx.call.attrs.int("axis") {
        Some(axis) => {
            let total = call("sum", [cx.g()], keep.with("axis", vec![axis]))?;
            let before = call("cumsum", [cx.g()], Attrs::new().with("axis", axis))?;
            op("add", [op("subtract", [total, before])?, cx.g()])?
        }
        None => {
            let rest = op("subtract", [call("sum", [cx.g()], keep)?, op("cumsum", [cx.g()])?])?;
            op("reshape", [op("add", [rest, op("flatten", [cx.g()])?])?, cx.shape(0)?])?
        }
    };
    let grad = match cx.call.dtype("dtype") {
        Some(_) => call("astype", [grad], Attrs::new().with("dtype", cx.call.tensor(0)?.dtype))?,
        None => grad,
    };
    Ok(vec![Some(grad)])
}

// Rearrangements.

/// `g`, transposed back.
pub fn permute_dims(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    let ndim = cx.call.dims(0)?.len();
    let attrs = match cx.call.axes("axes", ndim)?.and_then(AxisOrder::new) {
        Some(order) => Attrs::new().with("axes", order.inverse().axes().iter().map(|a| *a as i64).collect::<Vec<_>>()),
        None => Attrs::new(),
    };
    Ok(vec![Some(call("permute_dims", [cx.g()], attrs)?)])
}

/// `g`, split where the tensors meet.
pub fn concat(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    let tensors = cx.call.tensors(0)?;
    let Some(ndim) = tensors.first().and_then(|t| t.ndim) else {
        return Ok(cx.call.unsupported("has a gradient only for tensors of known rank")?);
    };
    let axis = cx.call.axis("axis", ndim)?;
    let (mut at, mut indices) = (0, Vec::new());
    for tensor in tensors.iter().take(tensors.len().saturating_sub(1)) {
        let Some(size) = tensor.dims.as_ref().and_then(|d| d.get(axis)).and_then(PrimExpr::as_int) else {
            return Ok(cx.call.unsupported("has a gradient only where the joined sizes are numbers")?);
        };
        at += size;
        indices.push(at);
    }
    let attrs = Attrs::new().with("indices_or_sections", indices).with("axis", cx.call.int("axis")?);
    Ok(vec![Some(call("split", [cx.g()], attrs)?)])
}

/// The gradients of the parts, joined.
pub fn split(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    Ok(vec![Some(call("concat", [cx.g()], Attrs::new().with("axis", cx.call.int("axis")?))?)])
}

/// `g` without the new dimensions.
pub fn expand_dims(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    Ok(vec![Some(call("squeeze", [cx.g()], Attrs::new().with("axis", cx.call.ints("axis")?))?)])
}

/// `g` in the shape of x.
pub fn reshape(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    Ok(vec![Some(op("reshape", [cx.g(), cx.shape(0)?])?), None])
}

/// `g`, summed over what x was repeated along.
pub fn broadcast_to(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    Ok(vec![Some(op("collapse_sum_to", [cx.g(), cx.shape(0)?])?), None])
}

/// `g` above the diagonal.
pub fn triu(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    Ok(vec![Some(op("triu", [cx.g(), cx.x(1)?])?), None])
}

/// `g`, added up at the indices.
pub fn take(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    let attrs = match cx.call.attrs.get("axis") {
        Some(axis) => Attrs::new().with("axis", axis.clone()),
        None => Attrs::new(),
    };
    Ok(vec![Some(call("grad.take_backward", [cx.g(), cx.x(0)?, cx.x(1)?], attrs)?), None])
}

/// `g` where the side was taken.
pub fn where_(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    let condition = cx.x(0)?;
    let first = op("where", [condition.clone(), cx.g(), cx.like(1, 0.0)?])?;
    let second = op("where", [condition, cx.like(2, 0.0)?, cx.g()])?;
    Ok(vec![None, fit(cx, first, 1)?, fit(cx, second, 2)?])
}

// Products and networks.

fn transposed(x: Expr, ndim: usize) -> Result<Expr, OpError> {
    let axes: Vec<i64> = (0..ndim).map(|i| if i + 2 < ndim { i } else { 2 * ndim - 3 - i } as i64).collect();
    call("permute_dims", [x], Attrs::new().with("axes", axes))
}

fn expanded(x: Expr, axis: i64) -> Result<Expr, OpError> {
    call("expand_dims", [x], Attrs::new().with("axis", vec![axis]))
}

/// `g @ x2^T` and `x1^T @ g`, vectors being made matrices.
pub fn matmul(cx: &GradCx, b: &mut BlockBuilder) -> Grads {
    let (x1, x2) = (cx.x(0)?, cx.x(1)?);
    let (n1, n2) = (cx.call.dims(0)?.len(), cx.call.dims(1)?.len());
    let (left, right) = match (n1, n2) {
        (1, 1) => (mul(cx.g(), x2)?, mul(cx.g(), x1)?),
        (1, _) => {
            let row = b.normalize_arg(expanded(cx.g(), -2)?)?;
            (op("matmul", [row.clone(), transposed(x2, n2)?])?, op("matmul", [expanded(x1, 1)?, row])?)
        }
        (_, 1) => {
            let column = b.normalize_arg(expanded(cx.g(), -1)?)?;
            let left = op("matmul", [column.clone(), expanded(x2, 0)?])?;
            let right = op("matmul", [transposed(x1, n1)?, column])?;
            (left, call("squeeze", [right], Attrs::new().with("axis", vec![-1i64]))?)
        }
        _ => (op("matmul", [cx.g(), transposed(x2, n2)?])?, op("matmul", [transposed(x1, n1)?, cx.g()])?),
    };
    Ok(vec![fit(cx, left, 0)?, fit(cx, right, 1)?])
}

/// The sum along the axis of a softmax, which stays.
fn along(cx: &GradCx, x: Expr) -> Result<Expr, OpError> {
    let attrs = Attrs::new().with("axis", vec![cx.call.int("axis")?]).with("keepdims", true);
    call("sum", [x], attrs)
}

/// `(g - sum(g * y)) * y`.
pub fn softmax(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    let mean = along(cx, mul(cx.g(), cx.y())?)?;
    Ok(vec![Some(mul(op("subtract", [cx.g(), mean])?, cx.y())?)])
}

/// `g - sum(g) * exp(y)`.
pub fn log_softmax(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    let shared = mul(along(cx, cx.g())?, op("exp", [cx.y()])?)?;
    Ok(vec![Some(op("subtract", [cx.g(), shared])?)])
}

/// `-g * labels` and `-g * predictions`, over the batch where there is one.
pub fn cross_entropy(cx: &GradCx, b: &mut BlockBuilder) -> Grads {
    let dims = cx.call.dims(0)?;
    let g = match (dims.len(), dims.first().and_then(PrimExpr::as_int)) {
        (0 | 1, _) => cx.g(),
        (_, Some(batch)) => b.normalize_arg(op("divide", [cx.g(), cx.like(0, batch as f64)?])?)?,
        _ => return Ok(cx.call.unsupported("has a gradient only for a batch of known size")?),
    };
    Ok(vec![Some(mul(neg(g.clone())?, cx.x(1)?)?), Some(mul(neg(g)?, cx.x(0)?)?)])
}

/// An operator of its own; targets and weights have no gradient.
pub fn nll_loss(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    let args: Vec<Expr> = std::iter::once(cx.g()).chain(cx.call.args.iter().cloned()).collect();
    let first = call("grad.nll_loss_backward", args, cx.call.attrs.clone())?;
    Ok(std::iter::once(Some(first)).chain(cx.call.args.iter().skip(1).map(|_| None)).collect())
}

/// An operator of its own, with the same attributes.
pub fn max_pool2d(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    Ok(vec![Some(call("grad.max_pool2d_backward", [cx.g(), cx.x(0)?], cx.call.attrs.clone())?)])
}

/// An operator of its own, with the same attributes.
pub fn avg_pool2d(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    Ok(vec![Some(call("grad.avg_pool2d_backward", [cx.g(), cx.x(0)?], cx.call.attrs.clone())?)])
}

fn numbers(cx: &GradCx, dims: &[PrimExpr]) -> Result<[i64; 4], OpError> {
    let fixed: Option<Vec<i64>> = dims.iter().map(PrimExpr::as_int).collect();
    match fixed.map(<[i64; 4]>::try_from) {
        Some(Ok(dims)) => Ok(dims),
        _ => cx.call.unsupported("has a gradient only for images and weights of known sizes"),
    }
}

/// The image's by a transposed convolution with the weight; the weight's by a convolution of the image with `g`, batch and
/// channels having changed places.
pub fn conv2d(cx: &GradCx, _: &mut BlockBuilder) -> Grads {
    for (attr, only) in [("data_layout", "NCHW"), ("kernel_layout", "OIHW"), ("out_layout", "NCHW")] {
        if cx.call.attrs.str(attr).is_some_and(|l| l != only) {
            return Ok(cx.call.unsupported(format!("has a gradient only where `{attr}` is {only}"))?);
        }
    }
    let Type::Tensor(out) = cx.output.ty() else { return Ok(cx.call.invalid("gives no tensor")?) };
    let [batch, channels, gh, gw] = numbers(cx, out.shape.as_deref().unwrap_or_default())?;
    let [_, image_channels, h, w] = numbers(cx, &cx.call.dims(0)?)?;
    let [_, _, kh, kw] = numbers(cx, &cx.call.dims(1)?)?;
    let (strides, padding, dilation) = (cx.call.ints("strides")?, cx.call.ints("padding")?, cx.call.ints("dilation")?);
    let (&[sh, sw], &[top, left, bottom, right], &[dh, dw]) = (&strides[..], &padding[..], &dilation[..]) else {
        return Ok(cx.call.invalid("needs two strides, four paddings and two dilations")?);
    };
    let groups = cx.call.int("groups")?;
    let spread = |g: i64, s: i64, pads: i64, k: i64, d: i64| (g - 1) * s - pads + d * (k - 1) + 1;
    let missing = vec![h - spread(gh, sh, top + bottom, kh, dh), w - spread(gw, sw, left + right, kw, dw)];
    let dtype = |attrs: Attrs| match cx.call.dtype("out_dtype") {
        Some(dtype) => attrs.with("out_dtype", dtype),
        None => attrs,
    };
    let attrs = Attrs::new().with("strides", strides.clone()).with("padding", padding.clone());
    let attrs = attrs.with("output_padding", missing).with("dilation", dilation.clone()).with("groups", groups);
    let attrs = attrs.with("data_layout", "NCHW").with("kernel_layout", "IOHW").with("out_layout", "NCHW");
    let image = call("nn.conv2d_transpose", [cx.g(), cx.x(1)?], dtype(attrs))?;

    let per_group = image_channels / groups;
    let mut data = cx.x(0)?;
    if groups != 1 {
        data = op("reshape", [data, Expr::shape([batch, groups, per_group, h, w])])?;
        data = call("permute_dims", [data], Attrs::new().with("axes", vec![1i64, 0, 2, 3, 4]))?;
        data = op("reshape", [data, Expr::shape([batch * groups, per_group, h, w])])?;
    }
    let attrs = Attrs::new().with("strides", dilation).with("padding", padding).with("dilation", strides);
    let attrs = attrs.with("groups", groups).with("data_layout", "CNHW").with("kernel_layout", "IOHW");
    let mut weight = call("nn.conv2d", [data, cx.g()], dtype(attrs.with("out_layout", "CNHW")))?;
    let seen = |size: i64, g: i64, s: i64, pads: i64, d: i64| (size - (g - 1) * s - 1 + pads).div_euclid(d) + 1;
    if seen(h, gh, sh, top + bottom, dh) > kh || seen(w, gw, sw, left + right, dw) > kw {
        let list = |values: [i64; 4]| Expr::tuple(values.into_iter().map(Expr::prim).collect::<Vec<_>>());
        let (axes, begin, end) = ([0, 1, 2, 3], [0; 4], [channels, per_group, kh, kw]);
        weight = op("strided_slice", [weight, list(axes), list(begin), list(end)])?;
    }
    Ok(vec![Some(image), Some(weight)])
}
