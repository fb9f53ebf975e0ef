//! Activations.

use relaxide_ir::Attrs;
use relaxide_relax::Expr;

use super::Table;
use super::elementwise::{bounded, input, scalar};
use crate::error::NodeError;
use crate::rule::{Cx, Outputs, Result, one};

pub const TABLE: Table = &[
    ("aten.relu6", |cx| clipped(cx, 0.0, 6.0)),
    ("aten.gelu", gelu),
    ("aten.elu", elu),
    ("aten.celu", celu),
    ("aten.leaky_relu", leaky_relu),
    ("aten.hardsigmoid", |cx| {
        let x = input(cx)?;
        let y = hard_sigmoid(cx, x)?;
        one(y)
    }),
    ("aten.hardswish", hard_swish),
    ("aten.hardtanh", hard_tanh),
    ("aten.hardshrink", |cx| shrink(cx, false)),
    ("aten.softshrink", |cx| shrink(cx, true)),
    ("aten.softplus", softplus),
    ("aten.softsign", softsign),
    ("aten.log_sigmoid", log_sigmoid),
    ("aten.log_sigmoid_forward", log_sigmoid),
    ("aten.mish", mish),
    ("aten.threshold", threshold),
    ("aten.prelu", prelu),
    ("aten._prelu_kernel", prelu),
    ("aten.glu", glu),
];

fn gelu(cx: &mut Cx<'_>) -> Outputs {
    let x = input(cx)?;
    match cx.text_or("approximate", "none")? {
        "none" => one(cx.call("nn.gelu", [x])?),
        "tanh" => one(cx.call("nn.gelu_tanh", [x])?),
        other => Err(NodeError::invalid(format!("`approximate` is \"{other}\""))),
    }
}

/// `scale * (x > 0 ? x : alpha * (exp(x * input_scale) - 1))`.
fn elu(cx: &mut Cx<'_>) -> Outputs {
    let alpha = cx.float_or("alpha", 1.0)?;
    let (scale, input_scale) = (cx.float_or("scale", 1.0)?, cx.float_or("input_scale", 1.0)?);
    let x = input(cx)?;
    exponential_below_zero(cx, x, scale, scale * alpha, input_scale)
}

fn celu(cx: &mut Cx<'_>) -> Outputs {
    let alpha = cx.float_or("alpha", 1.0)?;
    let x = input(cx)?;
    exponential_below_zero(cx, x, 1.0, alpha, 1.0 / alpha)
}

fn exponential_below_zero(cx: &mut Cx<'_>, x: Expr, above: f64, below: f64, inside: f64) -> Outputs {
    let dtype = cx.dtype(&x);
    let number = |cx: &Cx<'_>, value: f64| cx.number(value, dtype);
    let (unit, zero) = (number(cx, 1.0)?, number(cx, 0.0)?);
    let scaled = if inside == 1.0 {
        x.clone()
    } else {
        let by = number(cx, inside)?;
        cx.call("multiply", [x.clone(), by])?
    };
    let exp = cx.call("exp", [scaled])?;
    let drop = cx.call("subtract", [exp, unit])?;
    let by = number(cx, below)?;
    let low = cx.call("multiply", [drop, by])?;
    let high = if above == 1.0 {
        x.clone()
    } else {
        let by = number(cx, above)?;
        cx.call("multiply", [x.clone(), by])?
    };
    let positive = cx.call("greater", [x, zero])?;
    one(cx.call("where", [positive, high, low])?)
}

fn leaky_relu(cx: &mut Cx<'_>) -> Outputs {
    let x = input(cx)?;
    let slope = cx.float_or("negative_slope", 0.01)?;
    one(cx.op("nn.leakyrelu", [x], Attrs::new().with("alpha", slope))?)
}

fn clipped(cx: &mut Cx<'_>, min: f64, max: f64) -> Outputs {
    let x = input(cx)?;
    one(bounded(cx, x, Some(min), Some(max))?)
}

/// `clip(x + 3, 0, 6) / 6`.
fn hard_sigmoid(cx: &mut Cx<'_>, x: Expr) -> Result<Expr> {
    let dtype = cx.dtype(&x);
    let three = cx.number(3.0, dtype)?;
    let six = cx.number(6.0, dtype)?;
    let moved = cx.call("add", [x, three])?;
    let clipped = bounded(cx, moved, Some(0.0), Some(6.0))?;
    cx.call("divide", [clipped, six])
}

fn hard_swish(cx: &mut Cx<'_>) -> Outputs {
    let x = input(cx)?;
    let gate = hard_sigmoid(cx, x.clone())?;
    one(cx.call("multiply", [x, gate])?)
}

fn hard_tanh(cx: &mut Cx<'_>) -> Outputs {
    let (min, max) = (cx.float_or("min_val", -1.0)?, cx.float_or("max_val", 1.0)?);
    clipped(cx, min, max)
}

/// Zero between `-lambd` and `lambd`; a soft one moves the rest towards zero.
fn shrink(cx: &mut Cx<'_>, soft: bool) -> Outputs {
    let x = input(cx)?;
    let dtype = cx.dtype(&x);
    let width = cx.float_or("lambd", 0.5)?;
    let (high, low, zero) = (cx.number(width, dtype)?, cx.number(-width, dtype)?, cx.number(0.0, dtype)?);
    let above = cx.call("greater", [x.clone(), high.clone()])?;
    let below = cx.call("less", [x.clone(), low])?;
    let (up, down) = if soft {
        (cx.call("subtract", [x.clone(), high.clone()])?, cx.call("add", [x, high])?)
    } else {
        (x.clone(), x)
    };
    let rest = cx.call("where", [below, down, zero])?;
    one(cx.call("where", [above, up, rest])?)
}

fn softplus(cx: &mut Cx<'_>) -> Outputs {
    let x = input(cx)?;
    let attrs = Attrs::new().with("beta", cx.float_or("beta", 1.0)?).with("threshold", cx.float_or("threshold", 20.0)?);
    one(cx.op("nn.softplus", [x], attrs)?)
}

fn softsign(cx: &mut Cx<'_>) -> Outputs {
    let x = input(cx)?;
    let unit = cx.number(1.0, cx.dtype(&x))?;
    let size = cx.call("abs", [x.clone()])?;
    let below = cx.call("add", [size, unit])?;
    one(cx.call("divide", [x, below])?)
}

fn log_sigmoid(cx: &mut Cx<'_>) -> Outputs {
    let x = input(cx)?;
    let opposite = cx.call("negative", [x])?;
    let plus = cx.op("nn.softplus", [opposite], Attrs::new().with("beta", 1.0).with("threshold", 20.0))?;
    one(cx.call("negative", [plus])?)
}

fn mish(cx: &mut Cx<'_>) -> Outputs {
    let x = input(cx)?;
    let plus = cx.op("nn.softplus", [x.clone()], Attrs::new().with("beta", 1.0).with("threshold", 20.0))?;
    let gate = cx.call("tanh", [plus])?;
    one(cx.call("multiply", [x, gate])?)
}

fn threshold(cx: &mut Cx<'_>) -> Outputs {
    let x = input(cx)?;
    let dtype = cx.dtype(&x);
    let (limit, value) = (scalar(cx, "threshold")?, scalar(cx, "value")?);
    let (limit, value) = (cx.operand(limit, dtype)?, cx.operand(value, dtype)?);
    let low = cx.call("less_equal", [x.clone(), limit])?;
    one(cx.call("where", [low, value, x])?)
}

fn prelu(cx: &mut Cx<'_>) -> Outputs {
    let (x, slope) = (cx.tensor("self")?, cx.tensor("weight")?);
    let rank = cx.rank(&x)?;
    if cx.rank(&slope)? != 1 || rank < 2 {
        // Already in the dimensions of the input, or one slope for all.
        let zero = cx.number(0.0, cx.dtype(&x))?;
        let low = cx.call("multiply", [x.clone(), slope])?;
        let positive = cx.call("greater", [x.clone(), zero])?;
        return one(cx.call("where", [positive, x, low])?);
    }
    one(cx.op("nn.prelu", [x, slope], Attrs::new().with("axis", 1i64))?)
}

fn glu(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("self")?;
    let rank = cx.rank(&x)?;
    let axis = cx.axis("dim", -1, rank)?;
    let halves = cx.op("split", [x], Attrs::new().with("indices_or_sections", 2i64).with("axis", axis as i64))?;
    let (value, gate) = (cx.field(&halves, 0)?, cx.field(&halves, 1)?);
    let gate = cx.call("sigmoid", [gate])?;
    one(cx.call("multiply", [value, gate])?)
}
