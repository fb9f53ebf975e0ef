//! Element-wise operators of one tensor: a table row each.

use relaxide_ffi::DataType;
use relaxide_ir::Type;
use relaxide_ir::prim::{self, PrimExpr, constant, math};

use super::*;

const X: &[ArgDef] = &[ArgDef::tensor("x", "The input.")];
const DATA: &[ArgDef] = &[ArgDef::tensor("data", "The input.")];

/// The argument of an operator; those of neural networks have another name for it.
const fn argument(op: &str) -> &'static [ArgDef] {
    if let [b'n', b'n', b'.', ..] = op.as_bytes() { DATA } else { X }
}

/// The type of the argument.
pub fn same_type(cx: &CallCx) -> Result<Type, OpError> {
    Ok(cx.tensor(0)?.ty())
}

/// As [`same_type`], for operators that exist on floating-point numbers only.
pub fn float_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    if x.dtype != DataType::void() && !x.dtype.is_float() {
        return cx.wrong_dtype(format!(
            "needs a floating-point tensor, but its dtype is {}; convert it with astype",
            x.dtype
        ));
    }
    Ok(x.ty())
}

fn bool_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    Ok(TensorInfo { dtype: DataType::bool(), ..x }.ty())
}

macro_rules! unary {
    ($($name:literal, $infer:ident, |$x:ident| $body:expr, $doc:literal $(, $gradient:path)? $(; $hook:ident($($given:path)?))*;)*) => {
        /// The rows.
        pub static TABLE: &[OpDef] = &[$(OpDef {
            name: $name,
            doc: $doc,
            args: argument($name),
            attrs: &[],
            infer: $infer,
            lower: Lowering::Scalar(|_, values| {
                let $x = values[0].clone();
                Ok($body)
            }),
            pattern: OpPattern::Elemwise,
            mixed_precision: MixedPrecision::Follow,
            layout: Some(layout::elementwise),
            ..OpDef::BASE
        }$(.gradient($gradient))?$(.$hook($($given)?))*),*];
    };
}

unary! {
    "abs", same_type, |x| absolute(x), "Absolute value.", gradient::abs;
    "acos", float_type, |x| math("acos", x), "Arc cosine.";
    "acosh", float_type, |x| math("acosh", x), "Inverse hyperbolic cosine.";
    "asin", float_type, |x| math("asin", x), "Arc sine.";
    "asinh", float_type, |x| math("asinh", x), "Inverse hyperbolic sine.";
    "atan", float_type, |x| math("atan", x), "Arc tangent.";
    "atanh", float_type, |x| math("atanh", x), "Inverse hyperbolic tangent.";
    "bitwise_not", same_type, |x| bitwise_not(x), "Every bit flipped.";
    "ceil", same_type, |x| rounded("ceil", x), "Rounded up.";
    "cos", float_type, |x| math("cos", x), "Cosine.", gradient::cos;
    "cosh", float_type, |x| math("cosh", x), "Hyperbolic cosine.";
    "erf", float_type, |x| math("erf", x), "Gauss error function.";
    "exp", float_type, |x| math("exp", x), "e to the power of x.", gradient::exp;
    "floor", same_type, |x| rounded("floor", x), "Rounded down.";
    "isfinite", bool_type, |x| classified("isfinite", x, true), "Whether neither infinite nor NaN.";
    "isinf", bool_type, |x| classified("isinf", x, false), "Whether infinite.";
    "isnan", bool_type, |x| classified("isnan", x, false), "Whether NaN.";
    "log", float_type, |x| math("log", x), "Natural logarithm.", gradient::log;
    "logical_not", same_type, |x| prim::cast(x.dtype(), prim::not(truth(x))), "Whether zero.";
    "negative", same_type, |x| negated(x), "Sign changed, also that of zero.", gradient::negative;
    "round", same_type, |x| rounded("round", x), "Rounded to the nearest integer, ties to even.";
    "rsqrt", float_type, |x| constant(x.dtype(), 1.0).div_by(math("sqrt", x)), "One over the square root.";
    "sigmoid", float_type, |x| math("sigmoid", x), "1 / (1 + exp(-x)).", gradient::sigmoid;
    "sign", same_type, |x| sign(x), "-1, 0 or 1.";
    "sin", float_type, |x| math("sin", x), "Sine.", gradient::sin;
    "sinh", float_type, |x| math("sinh", x), "Hyperbolic sine.";
    "sqrt", float_type, |x| math("sqrt", x), "Square root.", gradient::sqrt;
    "square", same_type, |x| &x * &x, "x times x.";
    "tan", float_type, |x| math("tan", x), "Tangent.";
    "tanh", float_type, |x| math("tanh", x), "Hyperbolic tangent.", gradient::tanh;
    "trunc", same_type, |x| rounded("trunc", x), "Rounded towards zero.";
    "nn.relu", same_type, |x| prim::max(&x, constant(x.dtype(), 0.0)), "max(x, 0).", gradient::relu; in_place();
    "nn.gelu", float_type, |x| gelu(x), "x * (1 + erf(x / sqrt 2)) / 2."; in_steps(steps::gelu);
    "nn.gelu_tanh", float_type, |x| gelu_tanh(x), "gelu with tanh in the place of erf."; in_steps(steps::gelu_tanh);
    "nn.silu", float_type, |x| &x * math("sigmoid", x.clone()), "x * sigmoid(x).", gradient::silu; in_steps(steps::silu); in_place();
    "nn.selu", float_type, |x| selu(x), "scale * (max(x, 0) + min(alpha * (exp(x) - 1), 0)), scale and alpha as in the paper on self-normalizing networks.";
}

/// Division, which has no operator of its own on expressions.
trait DivBy {
    fn div_by(self, other: PrimExpr) -> PrimExpr;
}

impl DivBy for PrimExpr {
    fn div_by(self, other: PrimExpr) -> PrimExpr {
        prim::div(self, other)
    }
}

/// Absolute value, by type.
fn absolute(x: PrimExpr) -> PrimExpr {
    let dtype = x.dtype();
    if dtype.is_float() {
        math("fabs", x)
    } else if dtype.is_uint() || dtype.is_bool() {
        x
    } else {
        let zero = constant(dtype, 0.0);
        prim::select(prim::lt(&x, &zero), &zero - &x, x)
    }
}

/// The opposite value. Taken from zero, a floating-point zero would lose its sign.
fn negated(x: PrimExpr) -> PrimExpr {
    let dtype = x.dtype();
    if dtype.is_float() { x * constant(dtype, -1.0) } else { constant(dtype, 0.0) - x }
}

/// A rounding, which integers do not need.
fn rounded(name: &str, x: PrimExpr) -> PrimExpr {
    if x.dtype().is_float() { math(name, x) } else { x }
}

/// A test of floating-point kind, of known result on integers.
fn classified(name: &str, x: PrimExpr, integers: bool) -> PrimExpr {
    if x.dtype().is_float() {
        prim::call(DataType::bool(), format!("tirx.{name}"), vec![x])
    } else {
        prim::boolean(integers)
    }
}

/// Whether a value is not zero.
pub fn truth(x: PrimExpr) -> PrimExpr {
    if x.dtype().is_bool() { x } else { prim::ne(&x, constant(x.dtype(), 0.0)) }
}

fn bitwise_not(x: PrimExpr) -> PrimExpr {
    if x.dtype().is_bool() { prim::not(x) } else { math("bitwise_not", x) }
}

fn sign(x: PrimExpr) -> PrimExpr {
    let dtype = x.dtype();
    let (zero, one, minus) = (constant(dtype, 0.0), constant(dtype, 1.0), constant(dtype, -1.0));
    let negative = if dtype.is_uint() || dtype.is_bool() { zero.clone() } else { minus };
    // What is neither above nor below zero is zero, or no number at all.
    let rest = if dtype.is_float() { prim::select(prim::eq(&x, &zero), zero.clone(), &x) } else { zero.clone() };
    prim::select(prim::gt(&x, &zero), one, prim::select(prim::lt(&x, &zero), negative, rest))
}

fn gelu(x: PrimExpr) -> PrimExpr {
    let dtype = x.dtype();
    let erf = math("erf", &x * constant(dtype, std::f64::consts::FRAC_1_SQRT_2));
    x * (constant(dtype, 0.5) + erf * constant(dtype, 0.5))
}

fn gelu_tanh(x: PrimExpr) -> PrimExpr {
    let c = |v: f64| constant(x.dtype(), v);
    let inner = &x * c((2.0 / std::f64::consts::PI).sqrt()) * (c(1.0) + &x * &x * c(0.044715));
    &x * c(0.5) * (c(1.0) + math("tanh", inner))
}

fn selu(x: PrimExpr) -> PrimExpr {
    let (alpha, scale) = (1.673_263_242_354_377_2, 1.050_700_987_355_480_5);
    let c = |v: f64| constant(x.dtype(), v);
    let low = prim::min(c(alpha) * (math("exp", x.clone()) - c(1.0)), c(0.0));
    c(scale) * (prim::max(&x, c(0.0)) + low)
}
