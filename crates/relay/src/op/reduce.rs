//! Reductions and running sums.

use relaxide_ffi::DataType;
use relaxide_ir::AttrValue;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax as rx;

use super::cx::{LowerCx, LowerError, Lowered, attrs};

/// The dimensions that are reduced, `exclude` minded; none for all.
fn axes(cx: &LowerCx<'_>, ndim: usize) -> Result<Option<Vec<i64>>, LowerError> {
    let Some(list) = cx.attrs.ints("axis") else { return Ok(None) };
    if list.is_empty() && !cx.bool("exclude") {
        return Ok(None);
    }
    let chosen = list.iter().map(|axis| cx.axis(*axis, ndim)).collect::<Result<Vec<_>, _>>()?;
    let exclude = cx.bool("exclude");
    Ok(Some((0..ndim).filter(|i| chosen.contains(i) != exclude).map(|i| i as i64).collect()))
}

pub(super) fn reduce(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let name = cx.def.name;
    by(cx, name, x)
}

fn by(cx: &mut LowerCx<'_>, name: &str, x: rx::Expr) -> Lowered {
    let axes = axes(cx, cx.ndim(&x)?)?;
    if axes.as_ref().is_some_and(Vec::is_empty) {
        return Ok(x);
    }
    let keepdims = cx.bool("keepdims");
    cx.emit(name, [x], attrs([("axis", axes.into()), ("keepdims", keepdims.into())]))
}

/// Whether all elements hold: the smallest of them as bytes.
pub(super) fn all(cx: &mut LowerCx<'_>) -> Lowered {
    truth(cx, "min")
}

/// Whether some element holds.
pub(super) fn any(cx: &mut LowerCx<'_>) -> Lowered {
    truth(cx, "max")
}

fn truth(cx: &mut LowerCx<'_>, name: &str) -> Lowered {
    let x = cx.arg(0)?;
    let bytes = cx.cast(x, DataType::int(8))?;
    let reduced = by(cx, name, bytes)?;
    cx.cast(reduced, DataType::bool())
}

/// `argmax`, `argmin`: 32-bit places. Over several dimensions they count in the order of the elements.
pub(super) fn arg_reduce(cx: &mut LowerCx<'_>) -> Lowered {
    let mut x = cx.arg(0)?;
    let mut shape = cx.shape(&x)?;
    let (ndim, name, keepdims) = (shape.len(), cx.def.name, cx.bool("keepdims"));
    let axes = axes(cx, ndim)?.unwrap_or_else(|| (0..ndim as i64).collect());
    let is_reduced = |i: usize| axes.contains(&(i as i64));
    let (left, gone): (Vec<usize>, Vec<usize>) = (0..ndim).partition(|i| !is_reduced(*i));
    let result: Vec<PrimExpr> = match keepdims {
        true => (0..ndim).map(|i| if is_reduced(i) { prim::int(1) } else { shape[i].clone() }).collect(),
        false => left.iter().map(|i| shape[*i].clone()).collect(),
    };
    let axis = match gone.as_slice() {
        [one] => *one,
        _ => {
            // The dimensions become one behind the others.
            let order: Vec<i64> = left.iter().chain(&gone).map(|i| *i as i64).collect();
            x = cx.emit("permute_dims", [x], attrs([("axes", order.into())]))?;
            let count = gone.iter().fold(prim::int(1), |n, i| n * shape[*i].clone());
            shape = left.iter().map(|i| shape[*i].clone()).chain([count]).collect();
            x = cx.reshape(x, shape.clone())?;
            left.len()
        }
    };
    // The last of equal ones is the first of them from behind.
    let from_behind = cx.bool("select_last_index");
    if from_behind {
        x = cx.emit("flip", [x], attrs([("axis", (axis as i64).into())]))?;
    }
    let places = cx.emit(name, [x], attrs([("axis", (axis as i64).into())]))?;
    let mut places = cx.cast(places, DataType::int(32))?;
    if from_behind {
        let extent = shape[axis].as_int();
        let extent =
            extent.ok_or_else(|| LowerError(format!("{name} with select_last_index needs a known dimension")))?;
        let top = cx.constant((extent - 1) as f64, DataType::int(32))?;
        places = cx.op("subtract", [top, places])?;
    }
    if keepdims { cx.reshape(places, result) } else { Ok(places) }
}

/// The mean of the squared distances from a mean that is given.
pub(super) fn variance(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, mean) = (cx.arg(0)?, cx.arg(1)?);
    let shape = cx.shape(&x)?;
    let dtype = cx.dtype(&x)?;
    let distance = cx.binary("subtract", x, mean)?;
    let square = cx.op("multiply", [distance.clone(), distance])?;
    let result = by(cx, "mean", square)?;
    if !cx.bool("unbiased") {
        return Ok(result);
    }
    let axes = axes(cx, shape.len())?.unwrap_or_else(|| (0..shape.len() as i64).collect());
    let count = axes.iter().try_fold(1i64, |n, axis| n.checked_mul(shape[*axis as usize].as_int()?));
    let count = count.ok_or_else(|| LowerError("variance without bias needs known dimensions".into()))?;
    let scale = cx.constant(count as f64 / (count - 1).max(1) as f64, dtype)?;
    cx.op("multiply", [result, scale])
}

/// `cumsum`, `cumprod`.
pub(super) fn scan(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let name = cx.def.name;
    let dtype = cx.dtype_attr("dtype", cx.dtype(&x)?);
    let axis: AttrValue = cx.attrs.int("axis").into();
    let exclusive = cx.bool("exclusive");
    cx.emit(name, [x], attrs([("axis", axis), ("dtype", dtype.into()), ("exclusive", exclusive.into())]))
}

/// The sums over dimensions that a broadcast had repeated; the shape is a constant.
pub(super) fn collapse_sum_to(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let shape = cx.value(1).and_then(|t| crate::scalar::ints(&t));
    let shape = shape.ok_or_else(|| LowerError("collapse_sum_to: the shape must be a constant".into()))?;
    cx.op("collapse_sum_to", [x, relaxide_relax::Expr::shape(shape)])
}
