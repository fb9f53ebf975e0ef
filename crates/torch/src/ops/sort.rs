//! Order.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::prim;

use super::Table;
use crate::error::NodeError;
use crate::rule::{Cx, Outputs, one};
use crate::value::Value;

pub const TABLE: Table = &[
    ("aten.sort", sort),
    ("aten.argsort", argsort),
    ("aten.msort", |cx| {
        let x = cx.tensor("self")?;
        one(cx.op("sort", [x], Attrs::new().with("axis", 0i64))?)
    }),
    ("aten.topk", topk),
    ("aten.kthvalue", kthvalue),
    ("aten.bucketize", |cx| search(cx, "boundaries", "self")),
    ("aten.searchsorted", |cx| search(cx, "sorted_sequence", "self")),
    ("aten.isin", isin),
    ("aten.unique", |_| Err(NodeError::unsupported("values without repetition"))),
];

fn order(axis: usize, descending: bool) -> Attrs {
    Attrs::new().with("axis", axis as i64).with("descending", descending).with("dtype", DataType::int(64))
}

fn sort(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("self")?;
    let rank = cx.rank(&x)?;
    if rank == 0 {
        let zero = cx.whole(0, DataType::int(64))?;
        return Ok(vec![Value::Tensor(x), Value::Tensor(zero)]);
    }
    let axis = cx.axis("dim", -1, rank)?;
    let places = cx.op("argsort", [x.clone()], order(axis, cx.flag("descending", false)?))?;
    let values = cx.op("gather_elements", [x, places.clone()], Attrs::new().with("axis", axis as i64))?;
    Ok(vec![Value::Tensor(values), Value::Tensor(places)])
}

fn argsort(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("self")?;
    let axis = cx.axis("dim", -1, cx.rank(&x)?)?;
    one(cx.op("argsort", [x], order(axis, cx.flag("descending", false)?))?)
}

fn topk(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("self")?;
    let axis = cx.axis("dim", -1, cx.rank(&x)?)?;
    let k = cx.int("k")?.ok_or_else(|| NodeError::unsupported("a `k` that is not known at export"))?;
    let attrs = Attrs::new().with("k", k).with("axis", axis as i64).with("largest", cx.flag("largest", true)?);
    let both = cx.op("topk", [x], attrs.with("ret_type", "both").with("dtype", DataType::int(64)))?;
    Ok(vec![Value::Tensor(cx.field(&both, 0)?), Value::Tensor(cx.field(&both, 1)?)])
}

fn kthvalue(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("self")?;
    let axis = cx.axis("dim", -1, cx.rank(&x)?)?;
    let k = cx.int("k")?.filter(|&k| k >= 1).ok_or_else(|| NodeError::unsupported("a `k` that is not known"))?;
    let places = cx.op("argsort", [x.clone()], order(axis, false))?;
    let values = cx.op("gather_elements", [x, places.clone()], Attrs::new().with("axis", axis as i64))?;
    let at = cx.whole(k - 1, DataType::int(64))?;
    let dims = cx.result()?.dims.clone();
    let mut out = Vec::new();
    for all in [values, places] {
        let taken = cx.op("take", [all, at.clone()], Attrs::new().with("axis", axis as i64))?;
        out.push(Value::Tensor(cx.reshape(taken, &dims)?));
    }
    Ok(out)
}

/// Where values would stand in a row that is in order.
fn search(cx: &mut Cx<'_>, row: &str, values: &str) -> Outputs {
    let sorted = cx.tensor(row)?;
    if cx.rank(&sorted)? != 1 {
        return Err(NodeError::unsupported("several rows that are in order"));
    }
    let dtype = cx.dtype(&sorted);
    let value = cx.scalar(values)?.ok_or_else(|| NodeError::invalid("no values are given"))?;
    let value = cx.operand(value, dtype)?;
    let dims = cx.result()?.dims.clone();
    // The operator wants an axis.
    let bare = dims.is_empty();
    let value = if bare { cx.reshape(value, &[prim::int(1)])? } else { value };
    let right = cx.flag("right", false)? || cx.text_or("side", "left")? == "right";
    let attrs = Attrs::new().with("out_int32", cx.flag("out_int32", false)?).with("right", right);
    let found = cx.op("bucketize", [value, sorted], attrs)?;
    one(if bare { cx.reshape(found, &[])? } else { found })
}

/// Whether each element is one of a list.
fn isin(cx: &mut Cx<'_>) -> Outputs {
    let (x, list) = (cx.tensor("elements")?, cx.tensor("test_elements")?);
    let count = cx.shape(&list)?.into_iter().fold(prim::int(1), |n, d| n * d);
    let list = cx.reshape(list, &[count])?;
    let rank = cx.rank(&x)?;
    let column = cx.op("expand_dims", [x], Attrs::new().with("axis", vec![rank as i64]))?;
    let equal = cx.call("equal", [column, list])?;
    let bytes = cx.cast(equal, DataType::uint(8))?;
    let some = cx.op("max", [bytes], Attrs::new().with("axis", vec![rank as i64]).with("keepdims", false))?;
    let found = cx.cast(some, DataType::bool())?;
    one(if cx.flag("invert", false)? { cx.call("logical_not", [found])? } else { found })
}
