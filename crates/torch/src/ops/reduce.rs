//! Reductions over axes.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::Table;
use crate::dtype;
use crate::error::NodeError;
use crate::rule::{Cx, Outputs, Result, one};
use crate::value::Value;

pub const TABLE: Table = &[
    ("aten.sum", |cx| reduction(cx, "sum")),
    ("aten.mean", |cx| reduction(cx, "mean")),
    ("aten.prod", |cx| reduction(cx, "prod")),
    ("aten.amax", |cx| reduction(cx, "max")),
    ("aten.amin", |cx| reduction(cx, "min")),
    ("aten.max", |cx| reduction(cx, "max")),
    ("aten.min", |cx| reduction(cx, "min")),
    ("aten.max.dim", |cx| with_place(cx, "max", "argmax")),
    ("aten.min.dim", |cx| with_place(cx, "min", "argmin")),
    ("aten.aminmax", aminmax),
    ("aten.argmax", |cx| place(cx, "argmax")),
    ("aten.argmin", |cx| place(cx, "argmin")),
    ("aten.any", |cx| quantifier(cx, "max")),
    ("aten.all", |cx| quantifier(cx, "min")),
    ("aten.var", |cx| {
        let x = spread(cx)?;
        one(x)
    }),
    ("aten.std", |cx| {
        let x = spread(cx)?;
        one(cx.call("sqrt", [x])?)
    }),
    ("aten.var_mean", |cx| spread_and_mean(cx, false)),
    ("aten.std_mean", |cx| spread_and_mean(cx, true)),
    ("aten.histc", histogram),
    ("aten.logsumexp", logsumexp),
    ("aten.linalg_vector_norm", vector_norm),
    ("aten.norm", vector_norm),
    ("aten.median", median),
    ("aten.cumsum", |cx| scan(cx, "cumsum")),
    ("aten.cumprod", |cx| scan(cx, "cumprod")),
    ("aten.count_nonzero", count_nonzero),
];

fn attrs(axes: &[usize], keep: bool) -> Attrs {
    let axes: Vec<i64> = axes.iter().map(|&a| a as i64).collect();
    Attrs::new().with("axis", axes).with("keepdims", keep)
}

/// A reduction; without axes over all of them.
fn reduced(cx: &mut Cx<'_>, op: &str, x: Expr, axes: &[usize], keep: bool) -> Result<Expr> {
    if cx.rank(&x)? == 0 {
        return Ok(x);
    }
    if axes.len() == cx.rank(&x)? && !keep {
        return cx.op(op, [x], Attrs::new());
    }
    cx.op(op, [x], attrs(axes, keep))
}

fn reduction(cx: &mut Cx<'_>, op: &str) -> Outputs {
    let dtype = cx.result()?.dtype;
    let x = cx.tensor("self")?;
    let axes = cx.axes("dim", cx.rank(&x)?)?;
    let keep = cx.flag("keepdim", false)?;
    if dtype.is_bool() {
        let bytes = cx.cast(x, DataType::uint(8))?;
        let result = reduced(cx, op, bytes, &axes, keep)?;
        return one(cx.cast(result, dtype)?);
    }
    let narrow = dtype::is_float(dtype) && dtype.bits < 32 && !matches!(op, "max" | "min");
    let x = cx.cast(x, if narrow { DataType::float(32) } else { dtype })?;
    one(reduced(cx, op, x, &axes, keep)?)
}

fn index_attrs(axis: usize, keep: bool) -> Attrs {
    Attrs::new().with("axis", axis as i64).with("keepdims", keep)
}

/// The extreme of an axis and where it is.
fn with_place(cx: &mut Cx<'_>, op: &str, arg: &str) -> Outputs {
    let x = cx.tensor("self")?;
    let rank = cx.rank(&x)?;
    if rank == 0 {
        let zero = cx.whole(0, DataType::int(64))?;
        return Ok(vec![Value::Tensor(x), Value::Tensor(zero)]);
    }
    let (axis, keep) = (cx.axis("dim", 0, rank)?, cx.flag("keepdim", false)?);
    let compared = comparable(cx, x)?;
    let value = reduced(cx, op, compared.clone(), &[axis], keep)?;
    let place = cx.op(arg, [compared], index_attrs(axis, keep))?;
    Ok(vec![Value::Tensor(value), Value::Tensor(place)])
}

/// Bools as bytes, of which a reduction may be made.
fn comparable(cx: &mut Cx<'_>, x: Expr) -> Result<Expr> {
    if cx.dtype(&x).is_bool() { cx.cast(x, DataType::uint(8)) } else { Ok(x) }
}

fn aminmax(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("self")?;
    let axes = cx.axes("dim", cx.rank(&x)?)?;
    let keep = cx.flag("keepdim", false)?;
    let low = reduced(cx, "min", x.clone(), &axes, keep)?;
    let high = reduced(cx, "max", x, &axes, keep)?;
    Ok(vec![Value::Tensor(low), Value::Tensor(high)])
}

fn place(cx: &mut Cx<'_>, op: &str) -> Outputs {
    let x = cx.tensor("self")?;
    let x = comparable(cx, x)?;
    let keep = cx.flag("keepdim", false)?;
    let rank = cx.rank(&x)?;
    if rank == 0 {
        return one(cx.whole(0, DataType::int(64))?);
    }
    if cx.get("dim").is_some() {
        let axis = cx.axis("dim", 0, rank)?;
        return one(cx.op(op, [x], index_attrs(axis, keep))?);
    }
    let count = cx.shape(&x)?.into_iter().fold(prim::int(1), |n, d| n * d);
    let flat = cx.reshape(x, &[count])?;
    let found = cx.op(op, [flat], index_attrs(0, false))?;
    let dims = cx.result()?.dims.clone();
    one(cx.reshape(found, &dims)?)
}

/// Whether some or all elements are not zero.
fn quantifier(cx: &mut Cx<'_>, op: &str) -> Outputs {
    let x = cx.tensor("self")?;
    let axes = cx.axes("dim", cx.rank(&x)?)?;
    let keep = cx.flag("keepdim", false)?;
    let own = cx.dtype(&x);
    let truth = if own.is_bool() {
        x
    } else {
        let zero = cx.number(0.0, own)?;
        cx.call("not_equal", [x, zero])?
    };
    let bytes = cx.cast(truth, DataType::uint(8))?;
    let result = reduced(cx, op, bytes, &axes, keep)?;
    one(cx.cast(result, DataType::bool())?)
}

fn count_nonzero(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("self")?;
    let axes = cx.axes("dim", cx.rank(&x)?)?;
    let zero = cx.number(0.0, cx.dtype(&x))?;
    let truth = cx.call("not_equal", [x, zero])?;
    let ones = cx.cast(truth, DataType::int(64))?;
    one(reduced(cx, "sum", ones, &axes, false)?)
}

/// The product of the extents of axes.
fn extent(dims: &[PrimExpr], axes: &[usize]) -> PrimExpr {
    relaxide_ir::arith::dims::simplify(&axes.iter().fold(prim::int(1), |n, &axis| n * dims[axis].clone()))
}

/// A number over dimensions as a constant or a tensor of a type.
fn length(cx: &mut Cx<'_>, dim: PrimExpr, dtype: DataType) -> Result<Expr> {
    cx.operand(crate::value::Scalar::Int(dim), dtype)
}

/// The variance, with `correction` fewer than the elements as divisor (1 by default).
fn spread(cx: &mut Cx<'_>) -> Result<Expr> {
    let x = cx.tensor("self")?;
    let dtype = cx.dtype(&x);
    let dims = cx.shape(&x)?;
    let axes = cx.axes("dim", dims.len())?;
    let keep = cx.flag("keepdim", false)?;
    let default = if cx.flag("unbiased", true)? { 1.0 } else { 0.0 };
    let correction = cx.float_or("correction", default)?;
    let wide = if dtype.bits < 32 { cx.cast(x, DataType::float(32))? } else { x };
    let dtype = cx.dtype(&wide);
    let mean = reduced(cx, "mean", wide.clone(), &axes, true)?;
    let distance = cx.call("subtract", [wide, mean])?;
    let square = cx.call("multiply", [distance.clone(), distance])?;
    let total = reduced(cx, "sum", square, &axes, keep)?;
    let count = length(cx, extent(&dims, &axes), dtype)?;
    let less = cx.number(correction, dtype)?;
    let divisor = cx.call("subtract", [count, less])?;
    let zero = cx.number(0.0, dtype)?;
    let divisor = cx.call("maximum", [divisor, zero])?;
    cx.call("divide", [total, divisor])
}

fn spread_and_mean(cx: &mut Cx<'_>, root: bool) -> Outputs {
    let mut value = spread(cx)?;
    if root {
        value = cx.call("sqrt", [value])?;
    }
    let x = cx.tensor("self")?;
    let axes = cx.axes("dim", cx.rank(&x)?)?;
    let mean = reduced(cx, "mean", x, &axes, cx.flag("keepdim", false)?)?;
    Ok(vec![Value::Tensor(value), Value::Tensor(mean)])
}

fn logsumexp(cx: &mut Cx<'_>) -> Outputs {
    let x = super::elementwise::input(cx)?;
    let dtype = cx.dtype(&x);
    let rank = cx.rank(&x)?;
    let axes = cx.axes("dim", rank)?;
    let keep = cx.flag("keepdim", false)?;
    let high = reduced(cx, "max", x.clone(), &axes, true)?;
    // An infinite maximum would make the difference NaN.
    let finite = cx.call("isfinite", [high.clone()])?;
    let zero = cx.number(0.0, dtype)?;
    let high = cx.call("where", [finite, high, zero])?;
    let low = cx.call("subtract", [x, high.clone()])?;
    let exp = cx.call("exp", [low])?;
    let total = reduced(cx, "sum", exp, &axes, keep)?;
    let log = cx.call("log", [total])?;
    let dims = cx.result()?.dims.clone();
    let high = cx.reshape(high, &dims)?;
    one(cx.call("add", [log, high])?)
}

fn vector_norm(cx: &mut Cx<'_>) -> Outputs {
    let x = super::elementwise::input(cx)?;
    let dtype = cx.dtype(&x);
    let order = match cx.get("ord") {
        Some(_) => cx.float_or("ord", 2.0)?,
        None => cx.float_or("p", 2.0)?,
    };
    let axes = cx.axes("dim", cx.rank(&x)?)?;
    let keep = cx.flag("keepdim", false)?;
    let size = cx.call("abs", [x.clone()])?;
    if order.is_infinite() {
        return one(reduced(cx, if order > 0.0 { "max" } else { "min" }, size, &axes, keep)?);
    }
    if order == 0.0 {
        let zero = cx.number(0.0, dtype)?;
        let truth = cx.call("not_equal", [x, zero])?;
        let ones = cx.cast(truth, dtype)?;
        return one(reduced(cx, "sum", ones, &axes, keep)?);
    }
    if order == 1.0 {
        return one(reduced(cx, "sum", size, &axes, keep)?);
    }
    if order == 2.0 {
        let square = cx.call("multiply", [x.clone(), x])?;
        let total = reduced(cx, "sum", square, &axes, keep)?;
        return one(cx.call("sqrt", [total])?);
    }
    let (power, root) = (cx.number(order, dtype)?, cx.number(1.0 / order, dtype)?);
    let raised = cx.call("power", [size, power])?;
    let total = reduced(cx, "sum", raised, &axes, keep)?;
    one(cx.call("power", [total, root])?)
}

/// How many elements fall into each of `bins` parts of a range, whose end belongs to the last part.
fn histogram(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("self")?;
    let (bins, low, high) = (cx.int_or("bins", 100)?, cx.float_or("min", 0.0)?, cx.float_or("max", 0.0)?);
    if low >= high {
        return Err(NodeError::unsupported("a histogram over the range of the elements; give `min` and `max`"));
    }
    let count = cx.shape(&x)?.into_iter().fold(prim::int(1), |n, d| n * d);
    let flat = cx.reshape(x, std::slice::from_ref(&count))?;
    let (dtype, wide) = (cx.result()?.dtype, DataType::float(64));
    let number = |value: f64| prim::constant(wide, value);
    one(cx.te("histogram", vec![flat], |inputs| {
        let i = te::reduce_axis(count);
        vec![te::compute("histogram", vec![prim::int(bins)], |at: &[PrimExpr]| {
            let x = prim::cast(wide, inputs[0].at(&[i.var()]));
            let part = prim::math("floor", (x.clone() - number(low)) * number(bins as f64 / (high - low)));
            let part = prim::min(part, number(bins as f64 - 1.0));
            let inside = prim::and(prim::ge(x.clone(), number(low)), prim::le(x, number(high)));
            let own = prim::and(inside, prim::eq(part, prim::cast(wide, at[0].clone())));
            te::sum(prim::select(own, prim::constant(dtype, 1.0), prim::constant(dtype, 0.0)), [&i])
        })]
    })?)
}

fn median(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("self")?;
    let rank = cx.rank(&x)?;
    if cx.get("dim").is_none() {
        let count = cx.shape(&x)?.into_iter().fold(prim::int(1), |n, d| n * d);
        let flat = cx.reshape(x, &[count])?;
        let found = cx.op("median", [flat], Attrs::new().with("axis", vec![0i64]))?;
        let value = cx.field(&found, 0)?;
        return one(value);
    }
    let (axis, keep) = (cx.axis("dim", 0, rank)?, cx.flag("keepdim", false)?);
    let found = cx.op("median", [x], attrs(&[axis], keep))?;
    Ok(vec![Value::Tensor(cx.field(&found, 0)?), Value::Tensor(cx.field(&found, 1)?)])
}

fn scan(cx: &mut Cx<'_>, op: &str) -> Outputs {
    let x = super::elementwise::input(cx)?;
    let rank = cx.rank(&x)?;
    if rank == 0 {
        return one(x);
    }
    let axis = cx.axis("dim", 0, rank)?;
    if cx.dtype(&x).is_bool() {
        return Err(NodeError::unsupported("a running sum of bools in their own type"));
    }
    one(cx.op(op, [x], Attrs::new().with("axis", axis as i64))?)
}
