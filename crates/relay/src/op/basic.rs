//! Element by element.

use relaxide_ffi::DataType;

use relaxide_ir::prim;
use relaxide_relax as rx;

use super::cx::{LowerCx, Lowered, attrs, fail};

pub(super) fn identity(cx: &mut LowerCx<'_>) -> Lowered {
    cx.arg(0)
}

pub(super) fn log2(cx: &mut LowerCx<'_>) -> Lowered {
    scaled_log(cx, std::f64::consts::LOG2_E)
}

pub(super) fn log10(cx: &mut LowerCx<'_>) -> Lowered {
    scaled_log(cx, std::f64::consts::LOG10_E)
}

fn scaled_log(cx: &mut LowerCx<'_>, scale: f64) -> Lowered {
    let x = cx.arg(0)?;
    let scale = cx.constant(scale, cx.dtype(&x)?)?;
    let log = cx.op("log", [x])?;
    cx.op("multiply", [log, scale])
}

pub(super) fn cast(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let dtype = cx.dtype_attr("dtype", cx.dtype(&x)?);
    cx.cast(x, dtype)
}

pub(super) fn cast_like(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, like) = (cx.arg(0)?, cx.arg(1)?);
    let dtype = cx.dtype(&like)?;
    cx.cast(x, dtype)
}

pub(super) fn clip(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let bound = |value: f64, dtype: DataType| {
        rx::Expr::prim(if dtype.is_float() {
            relaxide_ir::prim::float_of(dtype, value)
        } else {
            relaxide_ir::prim::int_of(DataType::int(64), value as i64)
        })
    };
    let dtype = cx.dtype(&x)?;
    let (low, high) = (bound(cx.float("a_min")?, dtype), bound(cx.float("a_max")?, dtype));
    cx.op("clip", [x, low, high])
}

/// `where`: the condition and both values are broadcast.
pub(super) fn choose(cx: &mut LowerCx<'_>) -> Lowered {
    let (condition, x, y) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let (dx, dy) = (cx.dtype(&x)?, cx.dtype(&y)?);
    if dx != dy {
        return fail(format!("where: the values are of types {dx} and {dy}, which must be one"));
    }
    let condition = cx.cast(condition, DataType::bool())?;
    let [condition, x, y] = cx.aligned_all([condition, x, y])?;
    cx.op("where", [condition, x, y])
}

pub(super) fn einsum(cx: &mut LowerCx<'_>) -> Lowered {
    let operands = cx.arg(0)?;
    let equation = cx.str("equation");
    cx.emit("einsum", [operands], attrs([("subscripts", equation.into())]))
}

/// The same bits as another element type of the same size.
pub(super) fn reinterpret(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let (from, to) = (cx.dtype(&x)?, cx.dtype_attr("dtype", DataType::float(32)));
    if (from.bits, from.lanes) != (to.bits, to.lanes) {
        return fail(format!("reinterpret: elements of type {from} and {to} are not of one size"));
    }
    let shape = cx.shape(&x)?;
    Ok(cx.builder.emit_te("reinterpret", vec![x], |inputs| {
        let x = inputs[0].clone();
        vec![relaxide_tir::te::compute("T_reinterpret", shape, |at: &[relaxide_ir::PrimExpr]| {
            relaxide_ir::prim::call(to, "tirx.reinterpret", vec![x.at(at)])
        })]
    })?)
}

/// To the nearest integer; from the middle away from zero, as C's `round`, where Relax goes to the even one.
pub(super) fn round(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    rounded_away(cx, x)
}

pub(super) fn rounded_away(cx: &mut LowerCx<'_>, x: rx::Expr) -> Lowered {
    let (shape, dtype) = (cx.shape(&x)?, cx.dtype(&x)?);
    if !dtype.is_float() {
        return Ok(x);
    }
    super::index::elements(cx, "round", vec![x], shape, move |inputs, at| {
        let x = inputs[0].at(at);
        let whole = prim::math("trunc", x.clone());
        let rest = x - whole.clone();
        let number = |v: f64| prim::constant(dtype, v);
        let down = prim::select(prim::le(&rest, number(-0.5)), whole.clone() - number(1.0), whole.clone());
        prim::select(prim::ge(&rest, number(0.5)), whole + number(1.0), down)
    })
}

/// The nearest integer; a number in the middle goes up. Nothing is added before it is rounded, which could round itself.
pub(super) fn rounded_up(cx: &mut LowerCx<'_>, x: rx::Expr) -> Lowered {
    let (shape, dtype) = (cx.shape(&x)?, cx.dtype(&x)?);
    super::index::elements(cx, "round_up", vec![x], shape, move |inputs, at| {
        let x = inputs[0].at(at);
        let whole = prim::math("floor", x.clone());
        let number = |v: f64| prim::constant(dtype, v);
        prim::select(prim::ge(&(x - whole.clone()), number(0.5)), whole.clone() + number(1.0), whole)
    })
}

/// A quotient without its fraction.
pub(super) fn trunc_divide(cx: &mut LowerCx<'_>) -> Lowered {
    let (a, b) = (cx.arg(0)?, cx.arg(1)?);
    let float = cx.dtype(&a)?.is_float();
    let quotient = cx.binary("divide", a, b)?;
    if float { cx.op("trunc", [quotient]) } else { Ok(quotient) }
}
