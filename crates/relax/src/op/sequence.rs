//! Grids of coordinates, and sequences reversed up to a length of their own.

use relaxide_ffi::DataType;
use relaxide_ir::Type;
use relaxide_ir::prim::{self, PrimExpr, cast};
use relaxide_tir::te;

use super::manipulate::input;
use super::*;

/// The rows.
pub static TABLE: &[OpDef] = &[
    OpDef::compute(
        "meshgrid",
        &[ArgDef::tensors("tensors", "Vectors.")],
        &[AttrDef::str("indexing", "ij", "ij (matrix order), or xy: the first two dimensions change places.")],
        meshgrid_type,
        meshgrid,
        "The coordinates of a grid: for each vector a tensor of the grid's shape in which it runs along a dimension of its own.",
    )
    .pattern(OpPattern::Injective)
    .follow(),
    OpDef::compute(
        "reverse_sequence",
        &[ArgDef::tensor("data", "The sequences."), ArgDef::tensor("seq_lengths", "How much of each is reversed.")],
        &[
            AttrDef::int("seq_axis", 1, "The dimension that is reversed."),
            AttrDef::int("batch_axis", 0, "The dimension that counts sequences."),
        ],
        reverse_type,
        reverse,
        "Each sequence with its first elements, as many as its length says, in the opposite order.",
    )
    .lengths(|cx| {
        let Some(ndim) = cx.tensor(0)?.ndim else { return Ok(Vec::new()) };
        Ok(lengths::equal_dims(cx, &[(0, cx.axis("batch_axis", ndim)? as i64), (1, 0)]))
    })
    .pattern(OpPattern::Injective),
];

/// The place in the grid of each vector's dimension.
fn grid_axes(cx: &CallCx, n: usize) -> Result<Vec<usize>, OpError> {
    let mut order: Vec<usize> = (0..n).collect();
    match cx.attrs.str("indexing").unwrap_or("ij") {
        "ij" => {}
        "xy" if n > 1 => order.swap(0, 1),
        "xy" => {}
        other => return cx.invalid(format!("indexing is {other}; there are ij and xy")),
    }
    Ok(order)
}

fn meshgrid_type(cx: &CallCx) -> Result<Type, OpError> {
    let vectors = cx.tensors(0)?;
    let Some(first) = vectors.first() else { return cx.invalid("needs one vector at least") };
    if let Some(t) = vectors.iter().find(|t| t.ndim != Some(1)) {
        let found = t.ndim.map_or("an unknown number of".to_string(), |n| n.to_string());
        return cx.invalid(format!("needs vectors, but one argument has {found} dimensions"));
    }
    let dtype = first.dtype;
    if let Some(t) = vectors.iter().find(|t| t.dtype != dtype) {
        return cx.wrong_dtype(format!("the vectors have dtypes {dtype} and {}; convert them with astype", t.dtype));
    }
    let axes = grid_axes(cx, vectors.len())?;
    let sizes: Option<Vec<PrimExpr>> =
        vectors.iter().map(|t| t.dims.as_ref().and_then(|d| d.first().cloned())).collect();
    let dims: Option<Vec<PrimExpr>> = sizes.map(|sizes| axes.iter().filter_map(|a| sizes.get(*a).cloned()).collect());
    let field = tensor_type(dims, Some(vectors.len()), dtype);
    Ok(Type::tuple(vec![field; vectors.len()]))
}

fn meshgrid(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let axes = grid_axes(cx, inputs.len())?;
    let dims: Vec<PrimExpr> = axes.iter().filter_map(|a| inputs.get(*a)).map(|t| t.shape()[0].clone()).collect();
    let place = |vector: usize| axes.iter().position(|a| *a == vector).unwrap_or(vector);
    let grid = |(i, t): (usize, &te::Tensor)| {
        te::compute(format!("T_meshgrid_{i}"), &dims, |out| t.at(&[out[place(i)].clone()]))
    };
    Ok(inputs.iter().enumerate().map(grid).collect())
}

fn reverse_type(cx: &CallCx) -> Result<Type, OpError> {
    let (data, lengths) = (cx.tensor(0)?, cx.tensor(1)?);
    if let Some(n) = lengths.ndim.filter(|n| *n != 1) {
        return cx.invalid(format!("`seq_lengths` has {n} dimensions, not 1"));
    }
    let fits = [DataType::void(), DataType::int(32), DataType::int(64)];
    if !fits.contains(&lengths.dtype) {
        return cx.wrong_dtype(format!("`seq_lengths` has dtype {}, not int32 or int64", lengths.dtype));
    }
    let Some(ndim) = data.ndim else { return Ok(data.ty()) };
    cx.axis("seq_axis", ndim)?;
    let batch = cx.axis("batch_axis", ndim)?;
    if let (Some(dims), Some(count)) = (&data.dims, &lengths.dims)
        && let (Some(a), Some(b)) = (dims[batch].as_int(), count[0].as_int())
        && a != b
    {
        return cx.invalid(format!("there are {a} sequences and {b} lengths"));
    }
    Ok(data.ty())
}

fn reverse(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let (x, lengths) = (input(cx, inputs, 0)?, input(cx, inputs, 1)?);
    let (axis, batch) = (cx.axis("seq_axis", x.ndim())?, cx.axis("batch_axis", x.ndim())?);
    Ok(vec![te::compute("T_reverse_sequence", x.shape(), |out| {
        let length = cast(DataType::int(64), lengths.at(std::slice::from_ref(&out[batch])));
        let mut index = out.to_vec();
        // A length that is negative, or that exceeds the axis, has its first element outside: the access is checked.
        let reversed = prim::select(prim::lt(&out[axis], &length), &length - 1 - &out[axis], out[axis].clone());
        index[axis] = prim::select(prim::lt(&length, 0), length, reversed);
        x.at(&index)
    })])
}
