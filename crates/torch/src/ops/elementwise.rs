//! Operators on each element.

use relaxide_ffi::DataType;
use relaxide_relax::Expr;

use super::Table;
use super::transcendental::{erfc, exp2, expm1, frac, log_of, log1p, logit};
use crate::dtype;
use crate::error::NodeError;
use crate::rule::{Cx, Outputs, Result, one};
use crate::value::Scalar;

pub const TABLE: Table = &[
    ("aten.abs", |cx| unary(cx, "abs")),
    ("aten.acos", |cx| unary(cx, "acos")),
    ("aten.acosh", |cx| unary(cx, "acosh")),
    ("aten.asin", |cx| unary(cx, "asin")),
    ("aten.asinh", |cx| unary(cx, "asinh")),
    ("aten.atan", |cx| unary(cx, "atan")),
    ("aten.atanh", |cx| unary(cx, "atanh")),
    ("aten.ceil", |cx| whole_or(cx, "ceil")),
    ("aten.floor", |cx| whole_or(cx, "floor")),
    ("aten.trunc", |cx| whole_or(cx, "trunc")),
    ("aten.cos", |cx| unary(cx, "cos")),
    ("aten.cosh", |cx| unary(cx, "cosh")),
    ("aten.erf", |cx| unary(cx, "erf")),
    ("aten.exp", |cx| unary(cx, "exp")),
    ("aten.log", |cx| unary(cx, "log")),
    ("aten.neg", |cx| unary(cx, "negative")),
    ("aten.rsqrt", |cx| unary(cx, "rsqrt")),
    ("aten.sigmoid", |cx| unary(cx, "sigmoid")),
    ("aten.sign", |cx| unary(cx, "sign")),
    ("aten.sgn", |cx| unary(cx, "sign")),
    ("aten.sin", |cx| unary(cx, "sin")),
    ("aten.sinh", |cx| unary(cx, "sinh")),
    ("aten.sqrt", |cx| unary(cx, "sqrt")),
    ("aten.square", |cx| unary(cx, "square")),
    ("aten.tan", |cx| unary(cx, "tan")),
    ("aten.tanh", |cx| unary(cx, "tanh")),
    ("aten.relu", |cx| unary(cx, "nn.relu")),
    ("aten.silu", |cx| unary(cx, "nn.silu")),
    ("aten.selu", |cx| unary(cx, "nn.selu")),
    ("aten.bitwise_not", |cx| unary(cx, "bitwise_not")),
    ("aten.isfinite", |cx| test(cx, "isfinite")),
    ("aten.isinf", |cx| test(cx, "isinf")),
    ("aten.isnan", |cx| test(cx, "isnan")),
    ("aten.logical_not", logical_not),
    ("aten.expm1", expm1),
    ("aten.erfc", erfc),
    ("aten.exp2", exp2),
    ("aten.log1p", log1p),
    ("aten.log2", |cx| log_of(cx, std::f64::consts::LN_2)),
    ("aten.log10", |cx| log_of(cx, std::f64::consts::LN_10)),
    ("aten.frac", frac),
    ("aten.logit", logit),
    ("aten.deg2rad", |cx| scaled(cx, std::f64::consts::PI / 180.0)),
    ("aten.rad2deg", |cx| scaled(cx, 180.0 / std::f64::consts::PI)),
    ("aten.nan_to_num", nan_to_num),
    ("aten.reciprocal", reciprocal),
    ("aten.round", round),
    ("aten.clamp", clamp),
    ("aten.clip", clamp),
    ("aten.clamp_min", clamp),
    ("aten.clamp_max", clamp),
    ("aten.add", |cx| sum(cx, "add")),
    ("aten.sub", |cx| sum(cx, "subtract")),
    ("aten.rsub", rsub),
    ("aten.mul", |cx| arithmetic(cx, "multiply")),
    ("aten.div", div),
    ("aten.true_divide", div),
    ("aten.divide", div),
    ("aten.floor_divide", |cx| arithmetic(cx, "floor_divide")),
    ("aten.remainder", |cx| arithmetic(cx, "floor_mod")),
    ("aten.fmod", fmod),
    ("aten.pow", pow),
    ("aten.atan2", |cx| arithmetic(cx, "atan2")),
    ("aten.arctan2", |cx| arithmetic(cx, "atan2")),
    ("aten.hypot", hypot),
    ("aten.copysign", copysign),
    ("aten.maximum", |cx| arithmetic(cx, "maximum")),
    ("aten.minimum", |cx| arithmetic(cx, "minimum")),
    ("aten.fmax", |cx| ignoring_nan(cx, "maximum")),
    ("aten.fmin", |cx| ignoring_nan(cx, "minimum")),
    ("aten.max.other", |cx| arithmetic(cx, "maximum")),
    ("aten.min.other", |cx| arithmetic(cx, "minimum")),
    ("aten.logaddexp", |cx| arithmetic(cx, "log_add_exp")),
    ("aten.xlogy", xlogy),
    ("aten.lerp", lerp),
    ("aten.addcmul", |cx| add_scaled(cx, "multiply")),
    ("aten.addcdiv", |cx| add_scaled(cx, "divide")),
    ("aten.bitwise_and", |cx| arithmetic(cx, "bitwise_and")),
    ("aten.bitwise_or", |cx| arithmetic(cx, "bitwise_or")),
    ("aten.bitwise_xor", |cx| arithmetic(cx, "bitwise_xor")),
    ("aten.__and__", |cx| arithmetic(cx, "bitwise_and")),
    ("aten.__or__", |cx| arithmetic(cx, "bitwise_or")),
    ("aten.__xor__", |cx| arithmetic(cx, "bitwise_xor")),
    ("aten.__lshift__", |cx| arithmetic(cx, "left_shift")),
    ("aten.__rshift__", |cx| arithmetic(cx, "right_shift")),
    ("aten.bitwise_left_shift", |cx| arithmetic(cx, "left_shift")),
    ("aten.bitwise_right_shift", |cx| arithmetic(cx, "right_shift")),
    ("aten.logical_and", |cx| logical(cx, "logical_and")),
    ("aten.logical_or", |cx| logical(cx, "logical_or")),
    ("aten.logical_xor", |cx| logical(cx, "logical_xor")),
    ("aten.eq", |cx| comparison(cx, "equal")),
    ("aten.ne", |cx| comparison(cx, "not_equal")),
    ("aten.lt", |cx| comparison(cx, "less")),
    ("aten.le", |cx| comparison(cx, "less_equal")),
    ("aten.gt", |cx| comparison(cx, "greater")),
    ("aten.ge", |cx| comparison(cx, "greater_equal")),
    ("aten.where", choose),
    ("aten.masked_fill", masked_fill),
    ("aten._to_copy", converted),
    ("aten.to", converted),
    ("aten.type_as", converted),
    ("aten.lift_fresh_copy", same),
    ("aten.lift_fresh", same),
    ("aten.clone", same),
    ("aten.contiguous", same),
    ("aten.detach", same),
    ("aten.alias", same),
    ("aten.alias_copy", same),
    ("aten.view_of", same),
    ("aten.dropout", dropout),
    ("aten.feature_dropout", dropout),
    ("aten.alpha_dropout", dropout),
    ("aten.native_dropout", native_dropout),
    ("aten.copy", copy),
    ("aten.fill", fill),
    ("aten.zero", |cx| {
        let declared = cx.result()?.clone();
        let zero = cx.number(0.0, declared.dtype)?;
        one(cx.broadcast(zero, &declared.dims)?)
    }),
];

/// The first argument in the type of the result.
pub fn input(cx: &mut Cx<'_>) -> Result<Expr> {
    let dtype = cx.result()?.dtype;
    let x = cx.tensor("self")?;
    cx.cast(x, dtype)
}

fn unary(cx: &mut Cx<'_>, op: &str) -> Outputs {
    let x = input(cx)?;
    one(cx.call(op, [x])?)
}

/// Rounding, which leaves integers as they are.
fn whole_or(cx: &mut Cx<'_>, op: &str) -> Outputs {
    let x = input(cx)?;
    if !dtype::is_float(cx.dtype(&x)) {
        return one(x);
    }
    one(cx.call(op, [x])?)
}

fn test(cx: &mut Cx<'_>, op: &str) -> Outputs {
    let x = cx.tensor("self")?;
    // Integers are finite.
    let x = if dtype::is_float(cx.dtype(&x)) { x } else { cx.cast(x, DataType::float(32))? };
    one(cx.call(op, [x])?)
}

fn same(cx: &mut Cx<'_>) -> Outputs {
    one(cx.tensor("self")?)
}

fn converted(cx: &mut Cx<'_>) -> Outputs {
    let (x, to) = (cx.tensor("self")?, cx.result()?.dtype);
    truth_or_cast(cx, x, to).and_then(one)
}

/// A conversion in which all but zero is true.
fn truth_or_cast(cx: &mut Cx<'_>, x: Expr, to: DataType) -> Result<Expr> {
    let own = cx.dtype(&x);
    if to.is_bool() && !own.is_bool() {
        let zero = cx.number(0.0, own)?;
        return cx.call("not_equal", [x, zero]);
    }
    cx.cast(x, to)
}

/// Dropout of an exported program does nothing, unless it was exported for training.
fn dropout(cx: &mut Cx<'_>) -> Outputs {
    let name = if cx.get("self").is_some() { "self" } else { "input" };
    let training = cx.flag("train", false)? && cx.float_or("p", 0.5)? != 0.0;
    if training {
        return Err(NodeError::unsupported("it is exported for training; call `model.eval()` before the export"));
    }
    one(cx.tensor(name)?)
}

fn native_dropout(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("input")?;
    if cx.flag("train", false)? && cx.float_or("p", 0.5)? != 0.0 {
        return Err(NodeError::unsupported("it is exported for training; call `model.eval()` before the export"));
    }
    let dims = cx.shape(&x)?;
    let truth = cx.number(1.0, DataType::bool())?;
    let mask = cx.broadcast(truth, &dims)?;
    Ok(vec![crate::value::Value::Tensor(x), crate::value::Value::Tensor(mask)])
}

fn copy(cx: &mut Cx<'_>) -> Outputs {
    let (declared, source) = (cx.result()?.clone(), cx.tensor("src")?);
    let source = truth_or_cast(cx, source, declared.dtype)?;
    one(cx.broadcast(source, &declared.dims)?)
}

fn fill(cx: &mut Cx<'_>) -> Outputs {
    let declared = cx.result()?.clone();
    let value = scalar(cx, "value")?;
    let value = cx.operand(value, declared.dtype)?;
    one(cx.broadcast(value, &declared.dims)?)
}

/// An argument that is a number or a tensor.
pub fn scalar(cx: &Cx<'_>, name: &str) -> Result<Scalar> {
    cx.scalar(name)?.ok_or_else(|| NodeError::invalid(format!("`{name}` is missing")))
}

/// Both arguments in one type.
fn pair(cx: &mut Cx<'_>, dtype: DataType) -> Result<[Expr; 2]> {
    let (a, b) = (scalar(cx, "self")?, scalar(cx, "other")?);
    Ok([cx.operand(a, dtype)?, cx.operand(b, dtype)?])
}

/// An operation in the type of its result.
fn arithmetic(cx: &mut Cx<'_>, op: &str) -> Outputs {
    let dtype = cx.result()?.dtype;
    if dtype.is_bool() && op == "multiply" {
        return logical(cx, "logical_and");
    }
    let op = match op {
        "bitwise_and" if dtype.is_bool() => "logical_and",
        "bitwise_or" if dtype.is_bool() => "logical_or",
        "bitwise_xor" if dtype.is_bool() => "logical_xor",
        other => other,
    };
    let args = pair(cx, dtype)?;
    one(cx.call(op, args)?)
}

/// `self + alpha * other`, or the difference.
fn sum(cx: &mut Cx<'_>, op: &str) -> Outputs {
    let dtype = cx.result()?.dtype;
    if dtype.is_bool() {
        return logical(cx, "logical_or");
    }
    let [a, b] = pair(cx, dtype)?;
    let b = alpha_times(cx, b)?;
    one(cx.call(op, [a, b])?)
}

fn alpha_times(cx: &mut Cx<'_>, b: Expr) -> Result<Expr> {
    match cx.scalar("alpha")? {
        None | Some(Scalar::Bool(true)) => Ok(b),
        Some(Scalar::Float(1.0)) => Ok(b),
        Some(Scalar::Int(n)) if n.is_int(1) => Ok(b),
        Some(alpha) => {
            let dtype = cx.dtype(&b);
            let alpha = cx.operand(alpha, dtype)?;
            cx.call("multiply", [b, alpha])
        }
    }
}

fn rsub(cx: &mut Cx<'_>) -> Outputs {
    let dtype = cx.result()?.dtype;
    let [a, b] = pair(cx, dtype)?;
    let a = alpha_times(cx, a)?;
    one(cx.call("subtract", [b, a])?)
}

fn div(cx: &mut Cx<'_>) -> Outputs {
    let dtype = cx.result()?.dtype;
    let args = pair(cx, dtype)?;
    match cx.text_or("rounding_mode", "")? {
        "" => one(cx.call("divide", args)?),
        "floor" => one(cx.call("floor_divide", args)?),
        "trunc" => {
            if dtype::is_float(dtype) {
                let quotient = cx.call("divide", args)?;
                return one(cx.call("trunc", [quotient])?);
            }
            one(truncated_quotient(cx, args)?)
        }
        other => Err(NodeError::invalid(format!("`rounding_mode` is \"{other}\""))),
    }
}

/// A quotient of integers rounded towards zero.
fn truncated_quotient(cx: &mut Cx<'_>, [a, b]: [Expr; 2]) -> Result<Expr> {
    let remainder = truncated_remainder(cx, [a.clone(), b.clone()])?;
    let whole = cx.call("subtract", [a, remainder])?;
    cx.call("floor_divide", [whole, b])
}

/// The remainder with the sign of the dividend.
fn truncated_remainder(cx: &mut Cx<'_>, [a, b]: [Expr; 2]) -> Result<Expr> {
    let dtype = cx.dtype(&a);
    let size = cx.call("abs", [a.clone()])?;
    let divisor = cx.call("abs", [b])?;
    let rest = cx.call("floor_mod", [size, divisor])?;
    let zero = cx.number(0.0, dtype)?;
    let negative = cx.call("less", [a, zero])?;
    let opposite = cx.call("negative", [rest.clone()])?;
    cx.call("where", [negative, opposite, rest])
}

fn fmod(cx: &mut Cx<'_>) -> Outputs {
    let dtype = cx.result()?.dtype;
    let args = pair(cx, dtype)?;
    one(truncated_remainder(cx, args)?)
}

fn pow(cx: &mut Cx<'_>) -> Outputs {
    let dtype = cx.result()?.dtype;
    let base = scalar(cx, "self")?;
    let exponent = scalar(cx, "exponent")?;
    let base = cx.operand(base, dtype)?;
    match &exponent {
        Scalar::Float(2.0) => return one(cx.call("multiply", [base.clone(), base])?),
        Scalar::Int(n) if n.is_int(2) => return one(cx.call("multiply", [base.clone(), base])?),
        Scalar::Float(0.5) if dtype::is_float(dtype) => return one(cx.call("sqrt", [base])?),
        _ => {}
    }
    let exponent = cx.operand(exponent, dtype)?;
    one(cx.call("power", [base, exponent])?)
}

fn hypot(cx: &mut Cx<'_>) -> Outputs {
    let dtype = cx.result()?.dtype;
    let [a, b] = pair(cx, dtype)?;
    let (a, b) = (cx.call("square", [a])?, cx.call("square", [b])?);
    let sum = cx.call("add", [a, b])?;
    one(cx.call("sqrt", [sum])?)
}

fn copysign(cx: &mut Cx<'_>) -> Outputs {
    let dtype = cx.result()?.dtype;
    let [a, b] = pair(cx, dtype)?;
    let size = cx.call("abs", [a])?;
    let zero = cx.number(0.0, dtype)?;
    // The sign of -0 counts, which its reciprocal shows.
    let unit = cx.number(1.0, dtype)?;
    let inverse = cx.call("divide", [unit, b.clone()])?;
    let below = cx.call("less", [b, zero.clone()])?;
    let minus_zero = cx.call("less", [inverse, zero])?;
    let negative = cx.call("logical_or", [below, minus_zero])?;
    let opposite = cx.call("negative", [size.clone()])?;
    one(cx.call("where", [negative, opposite, size])?)
}

/// The greater or smaller of two, where a NaN gives way to a number.
fn ignoring_nan(cx: &mut Cx<'_>, op: &str) -> Outputs {
    let dtype = cx.result()?.dtype;
    let [a, b] = pair(cx, dtype)?;
    let result = cx.call(op, [a.clone(), b.clone()])?;
    if !dtype::is_float(dtype) {
        return one(result);
    }
    let (no_a, no_b) = (cx.call("isnan", [a.clone()])?, cx.call("isnan", [b.clone()])?);
    let result = cx.call("where", [no_b, a, result])?;
    one(cx.call("where", [no_a, b, result])?)
}

fn xlogy(cx: &mut Cx<'_>) -> Outputs {
    let dtype = cx.result()?.dtype;
    let [a, b] = pair(cx, dtype)?;
    let zero = cx.number(0.0, dtype)?;
    let log = cx.call("log", [b.clone()])?;
    let product = cx.call("multiply", [a.clone(), log])?;
    let none = cx.call("equal", [a, zero.clone()])?;
    let unknown = cx.call("isnan", [b.clone()])?;
    let known = cx.call("logical_not", [unknown])?;
    let vanishes = cx.call("logical_and", [none, known])?;
    one(cx.call("where", [vanishes, zero, product])?)
}

fn lerp(cx: &mut Cx<'_>) -> Outputs {
    let dtype = cx.result()?.dtype;
    let (start, end, weight) = (cx.tensor("self")?, cx.tensor("end")?, scalar(cx, "weight")?);
    let weight = cx.operand(weight, dtype)?;
    let span = cx.call("subtract", [end, start.clone()])?;
    let step = cx.call("multiply", [weight, span])?;
    one(cx.call("add", [start, step])?)
}

/// `self + value * tensor1 * tensor2`, or the quotient.
fn add_scaled(cx: &mut Cx<'_>, op: &str) -> Outputs {
    let dtype = cx.result()?.dtype;
    let x = input(cx)?;
    let (a, b) = (cx.tensor("tensor1")?, cx.tensor("tensor2")?);
    let (a, b) = (cx.cast(a, dtype)?, cx.cast(b, dtype)?);
    let mut term = cx.call(op, [a, b])?;
    if let Some(value) = cx.scalar("value")? {
        let value = cx.operand(value, dtype)?;
        term = cx.call("multiply", [term, value])?;
    }
    one(cx.call("add", [x, term])?)
}

/// The type in which two arguments meet.
fn common(cx: &Cx<'_>, a: &Scalar, b: &Scalar) -> DataType {
    dtype::promote(cx.scalar_type(a), cx.scalar_type(b))
}

fn comparison(cx: &mut Cx<'_>, op: &str) -> Outputs {
    let (a, b) = (scalar(cx, "self")?, scalar(cx, "other")?);
    let dtype = common(cx, &a, &b);
    let (a, b) = (cx.operand(a, dtype)?, cx.operand(b, dtype)?);
    one(cx.call(op, [a, b])?)
}

fn truth(cx: &mut Cx<'_>, name: &str) -> Result<Expr> {
    match scalar(cx, name)? {
        Scalar::Tensor(tensor) => truth_or_cast(cx, tensor, DataType::bool()),
        other => cx.operand(other, DataType::bool()),
    }
}

fn logical(cx: &mut Cx<'_>, op: &str) -> Outputs {
    let (a, b) = (truth(cx, "self")?, truth(cx, "other")?);
    one(cx.call(op, [a, b])?)
}

fn logical_not(cx: &mut Cx<'_>) -> Outputs {
    let x = truth(cx, "self")?;
    one(cx.call("logical_not", [x])?)
}

fn choose(cx: &mut Cx<'_>) -> Outputs {
    if cx.get("self").is_none() {
        return super::index::nonzero_columns(cx);
    }
    let dtype = cx.result()?.dtype;
    let condition = cx.tensor("condition")?;
    let condition = truth_or_cast(cx, condition, DataType::bool())?;
    let [a, b] = pair(cx, dtype)?;
    one(cx.call("where", [condition, a, b])?)
}

fn masked_fill(cx: &mut Cx<'_>) -> Outputs {
    let (x, mask, value) = (input(cx)?, cx.tensor("mask")?, scalar(cx, "value")?);
    let dtype = cx.dtype(&x);
    let value = cx.operand(value, dtype)?;
    one(cx.call("where", [mask, value, x])?)
}

// Functions of one number.

fn scaled(cx: &mut Cx<'_>, by: f64) -> Outputs {
    let x = input(cx)?;
    let by = cx.number(by, cx.dtype(&x))?;
    one(cx.call("multiply", [x, by])?)
}

fn nan_to_num(cx: &mut Cx<'_>) -> Outputs {
    let x = input(cx)?;
    let dtype = cx.dtype(&x);
    if !dtype::is_float(dtype) {
        return one(x);
    }
    let largest = match dtype.bits {
        64 => f64::MAX,
        16 if dtype.code == DataType::FLOAT => 65504.0,
        16 => f64::from(half::bf16::MAX),
        _ => f64::from(f32::MAX),
    };
    let nan = cx.float_or("nan", 0.0)?;
    let above = cx.float_or("posinf", largest)?;
    let below = cx.float_or("neginf", -largest)?;
    let (nan, above, below) = (cx.number(nan, dtype)?, cx.number(above, dtype)?, cx.number(below, dtype)?);
    let unknown = cx.call("isnan", [x.clone()])?;
    let infinite = cx.call("isinf", [x.clone()])?;
    let zero = cx.number(0.0, dtype)?;
    let positive = cx.call("greater", [x.clone(), zero])?;
    let bound = cx.call("where", [positive, above, below])?;
    let finite = cx.call("where", [infinite, bound, x])?;
    one(cx.call("where", [unknown, nan, finite])?)
}

fn reciprocal(cx: &mut Cx<'_>) -> Outputs {
    let x = input(cx)?;
    let unit = cx.number(1.0, cx.dtype(&x))?;
    one(cx.call("divide", [unit, x])?)
}

fn round(cx: &mut Cx<'_>) -> Outputs {
    let x = input(cx)?;
    let dtype = cx.dtype(&x);
    if !dtype::is_float(dtype) {
        return one(x);
    }
    let decimals = cx.int_or("decimals", 0)?;
    if decimals == 0 {
        return one(cx.call("round", [x])?);
    }
    let scale = cx.number(10f64.powi(decimals as i32), dtype)?;
    let large = cx.call("multiply", [x, scale.clone()])?;
    let whole = cx.call("round", [large])?;
    one(cx.call("divide", [whole, scale])?)
}

/// A tensor between two bounds.
pub fn bounded(cx: &mut Cx<'_>, x: Expr, min: Option<f64>, max: Option<f64>) -> Result<Expr> {
    let dtype = cx.dtype(&x);
    let mut x = x;
    if let Some(min) = min {
        let min = cx.number(min, dtype)?;
        x = cx.call("maximum", [x, min])?;
    }
    if let Some(max) = max {
        let max = cx.number(max, dtype)?;
        x = cx.call("minimum", [x, max])?;
    }
    Ok(x)
}

fn clamp(cx: &mut Cx<'_>) -> Outputs {
    let mut x = input(cx)?;
    let dtype = cx.dtype(&x);
    for (name, op) in [("min", "maximum"), ("max", "minimum")] {
        if let Some(bound) = cx.scalar(name)? {
            let bound = cx.operand(bound, dtype)?;
            x = cx.call(op, [x, bound])?;
        }
    }
    one(x)
}
