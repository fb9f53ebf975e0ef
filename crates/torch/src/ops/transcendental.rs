//! Exponentials, logarithms and what is made of them, exact near zero.

use crate::rule::{Cx, Outputs, one};

use super::elementwise::{bounded, input};

pub(super) fn expm1(cx: &mut Cx<'_>) -> Outputs {
    let x = input(cx)?;
    let dtype = cx.dtype(&x);
    let unit = cx.number(1.0, dtype)?;
    let exp = cx.call("exp", [x.clone()])?;
    let far = cx.call("subtract", [exp, unit])?;
    // Near zero the difference cancels; there it is twice tanh(x/2) / (1 - tanh(x/2)).
    let half = cx.number(0.5, dtype)?;
    let halved = cx.call("multiply", [x.clone(), half.clone()])?;
    let t = cx.call("tanh", [halved])?;
    let two = cx.number(2.0, dtype)?;
    let above = cx.call("multiply", [t.clone(), two])?;
    let unit = cx.number(1.0, dtype)?;
    let below = cx.call("subtract", [unit, t])?;
    let near = cx.call("divide", [above, below])?;
    let size = cx.call("abs", [x])?;
    let small = cx.call("less", [size, half])?;
    one(cx.call("where", [small, near, far])?)
}

pub(super) fn erfc(cx: &mut Cx<'_>) -> Outputs {
    let x = input(cx)?;
    let unit = cx.number(1.0, cx.dtype(&x))?;
    let erf = cx.call("erf", [x])?;
    one(cx.call("subtract", [unit, erf])?)
}

pub(super) fn exp2(cx: &mut Cx<'_>) -> Outputs {
    let x = input(cx)?;
    let two = cx.number(2.0, cx.dtype(&x))?;
    one(cx.call("power", [two, x])?)
}

pub(super) fn log1p(cx: &mut Cx<'_>) -> Outputs {
    let x = input(cx)?;
    let dtype = cx.dtype(&x);
    // With u = 1 + x rounded, log(u) * x / (u - 1) makes up for the rounding; where u is 1 the result is x.
    let unit = cx.number(1.0, dtype)?;
    let u = cx.call("add", [x.clone(), unit.clone()])?;
    let log = cx.call("log", [u.clone()])?;
    let step = cx.call("subtract", [u.clone(), unit.clone()])?;
    let ratio = cx.call("divide", [x.clone(), step])?;
    let corrected = cx.call("multiply", [log.clone(), ratio])?;
    let tiny = cx.call("equal", [u.clone(), unit])?;
    let infinite = cx.call("isinf", [u])?;
    let result = cx.call("where", [infinite, log, corrected])?;
    one(cx.call("where", [tiny, x, result])?)
}

pub(super) fn log_of(cx: &mut Cx<'_>, base: f64) -> Outputs {
    let x = input(cx)?;
    let base = cx.number(base, cx.dtype(&x))?;
    let log = cx.call("log", [x])?;
    one(cx.call("divide", [log, base])?)
}

pub(super) fn frac(cx: &mut Cx<'_>) -> Outputs {
    let x = input(cx)?;
    let whole = cx.call("trunc", [x.clone()])?;
    one(cx.call("subtract", [x, whole])?)
}

pub(super) fn logit(cx: &mut Cx<'_>) -> Outputs {
    let mut x = input(cx)?;
    let dtype = cx.dtype(&x);
    if cx.get("eps").is_some() {
        let eps = cx.float_or("eps", 0.0)?;
        x = bounded(cx, x, Some(eps), Some(1.0 - eps))?;
    }
    let unit = cx.number(1.0, dtype)?;
    let rest = cx.call("subtract", [unit, x.clone()])?;
    let odds = cx.call("divide", [x, rest])?;
    one(cx.call("log", [odds])?)
}
