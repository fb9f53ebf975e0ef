//! Indexing by tensors of indices, writing at indices and into slices, slices whose bounds a tensor holds.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr, cast};
use relaxide_ir::{Attrs, Type, Var};
use relaxide_tir::{Stmt, te};

use super::index::wrapped;
use super::loops::{axes, nest};
use super::manipulate::{input, result_dims};
use super::*;
use crate::BlockBuilder;
use crate::display::tuple_text;
use crate::shape::broadcast_index;
use crate::shape::{Broadcast, broadcast};

const DATA: ArgDef = ArgDef::tensor("data", "The tensor that is indexed.");
const INDICES: ArgDef = ArgDef::tensors(
    "indices",
    "For each leading dimension the indices, broadcast to one shape; negative ones count from the end.",
);

/// The rows.
pub static TABLE: &[OpDef] = &[
    OpDef::compute(
        "index_tensor",
        &[DATA, INDICES],
        &[],
        index_type,
        index_tensor,
        "data[i, j, …] with tensors of indices, as NumPy indexes: their common shape takes the place of the indexed dimensions.",
    )
    .pattern(OpPattern::Injective),
    OpDef::compute(
        "index_put",
        &[DATA, ArgDef::any("indices", INDICES.doc), ArgDef::tensor("values", "What is written, broadcast to the indices' shape.")],
        &[AttrDef::bool("accumulate", false, "Whether values are added to what is there, each as often as it is named.")],
        put_type,
        index_put,
        "A copy of data with values at the indices; of values for one place the last one counts.",
    ),
    OpDef::compute(
        "slice_scatter",
        &[
            ArgDef::tensor("input_tensor", "What is copied."),
            ArgDef::tensor("src", "What is written into the slice."),
            ArgDef::scalar("start", "Where the slice begins; negative values count from the end."),
            ArgDef::scalar("end", "Where it ends, not included."),
            ArgDef::scalar("step", "Distance of neighbours in the slice."),
        ],
        &[AttrDef::int("axis", 0, "The dimension that is sliced.")],
        scatter_type,
        slice_scatter,
        "A copy of a tensor in which a slice is replaced.",
    )
    .pattern(OpPattern::Injective),
    OpDef::decomposed(
        "dynamic_strided_slice",
        &[
            ArgDef::tensor("x", "The input."),
            ArgDef::tensor("begin", "Where each dimension's slice begins, int64; negative values count from the end."),
            ArgDef::tensor("end", "Where each ends, not included."),
            ArgDef::tensor("strides", "Distance of neighbours; negative ones walk backwards."),
        ],
        &[],
        dynamic_type,
        dynamic_slice,
        "A slice along every dimension whose bounds are known when the program runs only.",
    )
    .follow()
    .layout(|cx| cx.unchanged()),
];

// Indexing by tensors.

/// The common shape of the index tensors; `Err` where it is not known.
fn index_shape(cx: &CallCx, indices: &[TensorInfo]) -> Result<Result<Vec<PrimExpr>, ()>, OpError> {
    if let Some(t) = indices.iter().find(|t| !t.dtype.is_void() && !t.dtype.is_integer()) {
        return cx.wrong_dtype(format!("a tensor of indices has dtype {}; it must be one of integers", t.dtype));
    }
    let mut common: Option<Vec<PrimExpr>> = None;
    for tensor in indices {
        let Some(dims) = &tensor.dims else { return Ok(Err(())) };
        common = Some(match common {
            None => dims.clone(),
            Some(so_far) => match broadcast(&so_far, dims) {
                Broadcast::Known(out) => out,
                Broadcast::Open(_) => return Ok(Err(())),
                Broadcast::Mismatch(_) => {
                    let (a, b) = (tuple_text(&so_far), tuple_text(dims));
                    return cx.invalid(format!("index tensors of shapes {a} and {b} cannot be broadcast"));
                }
            },
        });
    }
    Ok(common.ok_or(()))
}

fn index_type(cx: &CallCx) -> Result<Type, OpError> {
    let (data, indices) = (cx.tensor(0)?, cx.tensors(1)?);
    if indices.is_empty() {
        return cx.invalid("needs one tensor of indices at least");
    }
    if let Some(n) = data.ndim.filter(|n| *n < indices.len()) {
        return cx.invalid(format!("{} tensors of indices come with {n} dimensions", indices.len()));
    }
    let Ok(front) = index_shape(cx, &indices)? else { return Ok(tensor_type(None, None, data.dtype)) };
    let ndim = data.ndim.map(|n| front.len() + n - indices.len());
    let dims = data.dims.map(|dims| front.into_iter().chain(dims.into_iter().skip(indices.len())).collect());
    Ok(tensor_type(dims, ndim, data.dtype))
}

fn index_tensor(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let Some((data, indices)) = inputs.split_first() else { return cx.invalid("needs data") };
    let dims = result_dims(cx)?;
    let front = dims.len() - (data.ndim() - indices.len());
    Ok(vec![te::compute("T_index", &dims, |out| {
        let of = |(i, t): (usize, &te::Tensor)| {
            wrapped(t.at(&broadcast_index(t.shape(), &out[..front], &dims[..front])), &data.shape()[i])
        };
        let place: Vec<PrimExpr> = indices.iter().enumerate().map(of).chain(out[front..].iter().cloned()).collect();
        data.at(&place)
    })])
}

/// The tensors of indices of an argument that is one or a tuple of them.
fn put_indices(cx: &CallCx) -> Result<Vec<TensorInfo>, OpError> {
    match cx.ty(1)? {
        Type::Tensor(t) => Ok(vec![TensorInfo::from(&*t)]),
        _ => cx.tensors(1),
    }
}

fn put_type(cx: &CallCx) -> Result<Type, OpError> {
    let (data, values) = (cx.tensor(0)?, cx.tensor(2)?);
    let indices = put_indices(cx)?;
    if let Some(t) = indices.iter().find(|t| !t.dtype.is_void() && !t.dtype.is_integer()) {
        return cx.wrong_dtype(format!("a tensor of indices has dtype {}; it must be one of integers", t.dtype));
    }
    if let Some(n) = data.ndim.filter(|n| *n != indices.len()) {
        return cx.invalid(format!("{} tensors of indices come with {n} dimensions", indices.len()));
    }
    if data.dtype != values.dtype && !data.dtype.is_void() && !values.dtype.is_void() {
        return cx.wrong_dtype(format!(
            "data has dtype {}, the values {}; convert one with astype",
            data.dtype, values.dtype
        ));
    }
    Ok(data.ty())
}

fn index_put(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let count = put_indices(cx)?.len();
    let (Some(data), Some(values)) = (inputs.first(), inputs.get(count + 1)) else { return cx.invalid("needs values") };
    let Ok(shape) = index_shape(cx, &put_indices(cx)?)? else {
        return cx.unsupported("the common shape of the indices is not known to the compiler; give it with match_cast");
    };
    match broadcast(values.shape(), &shape) {
        Broadcast::Known(out) if out.len() == shape.len() => {}
        _ => {
            let (a, b) = (tuple_text(values.shape()), tuple_text(&shape));
            return cx.invalid(format!("values of shape {a} cannot be broadcast to indices of shape {b}"));
        }
    }
    let accumulate = cx.bool("accumulate")?;
    let out = [("T_index_put".to_string(), data.shape().to_vec(), data.dtype())];
    Ok(te::extern_stage("index_put", inputs, out, |source, result| {
        let (copy_vars, at) = axes(data.shape(), "i");
        let copy = Stmt::store(&result[0], at.clone(), prim::load(&source[0], at));
        let (vars, at) = axes(&shape, "j");
        let index = |i: usize| {
            let load = prim::load(&source[i + 1], broadcast_index(inputs[i + 1].shape(), &at, &shape));
            wrapped(load, &data.shape()[i])
        };
        let to: Vec<PrimExpr> = (0..count).map(index).collect();
        let new = prim::load(&source[count + 1], broadcast_index(values.shape(), &at, &shape));
        let new = if accumulate { prim::load(&result[0], to.clone()) + new } else { new };
        let write = Stmt::store(&result[0], to, new);
        Stmt::seq([nest(&copy_vars, data.shape(), copy), nest(&vars, &shape, write)])
    }))
}

// Writing into a slice.

fn scatter_type(cx: &CallCx) -> Result<Type, OpError> {
    let (x, src) = (cx.tensor(0)?, cx.tensor(1)?);
    if x.dtype != src.dtype && !x.dtype.is_void() && !src.dtype.is_void() {
        return cx.wrong_dtype(format!(
            "the tensor has dtype {}, the source {}; convert one with astype",
            x.dtype, src.dtype
        ));
    }
    if let Some((n, m)) = x.ndim.zip(src.ndim).filter(|(n, m)| n != m) {
        return cx.invalid(format!("the tensor has {n} dimensions, the source {m}"));
    }
    let (start, end, step) = (cx.scalar(2)?, cx.scalar(3)?, cx.scalar(4)?);
    if step.as_int().is_some_and(|s| s < 1) {
        return cx.invalid("the step must be positive");
    }
    let Some(ndim) = x.ndim else { return Ok(x.ty()) };
    let axis = cx.axis("axis", ndim)?;
    if let (Some(dims), Some(from)) = (&x.dims, &src.dims) {
        let count = prim::floordiv(&end - &start + &step - 1, &step);
        let differs = |(i, (a, b)): (usize, (&PrimExpr, &PrimExpr))| {
            let want = if i == axis { count.clone() } else { a.clone() };
            matches!((want.as_int(), b.as_int()), (Some(a), Some(b)) if a != b)
        };
        if dims.iter().zip(from).enumerate().any(differs) {
            let (a, b) = (tuple_text(from), tuple_text(dims));
            return cx.invalid(format!("a source of shape {a} does not fill the slice of a tensor of shape {b}"));
        }
    }
    Ok(x.ty())
}

fn slice_scatter(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let (x, src) = (input(cx, inputs, 0)?, input(cx, inputs, 1)?);
    let axis = cx.axis("axis", x.ndim())?;
    let size = &x.shape()[axis];
    let place = |i: usize| Ok::<_, OpError>(wrapped(cx.scalar(i)?, size));
    let (start, end) = (place(2)?, prim::min(place(3)?, size));
    let step = cast(DataType::int(64), cx.scalar(4)?);
    Ok(vec![te::compute("T_slice_scatter", x.shape(), |out| {
        let distance = &out[axis] - &start;
        let inside =
            [prim::ge(&distance, 0), prim::lt(&out[axis], &end), prim::eq(prim::floormod(&distance, &step), 0)];
        let mut index = out.to_vec();
        index[axis] = prim::floordiv(&distance, &step);
        prim::if_then_else(window::all(inside), src.at(&index), x.at(out))
    })])
}

// Slices whose bounds a tensor holds.

fn dynamic_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    for i in 1..4 {
        let bound = cx.tensor(i)?;
        if let Some(n) = bound.ndim.filter(|n| *n != 1) {
            return cx.invalid(format!("argument {i} has {n} dimensions, not 1"));
        }
        if !bound.dtype.is_void() && bound.dtype != DataType::int(64) {
            return cx.wrong_dtype(format!("argument {i} has dtype {}, not int64", bound.dtype));
        }
        let Some(size) = bound.dims.as_ref().and_then(|d| d.first()).and_then(PrimExpr::as_int) else {
            return cx.invalid(format!("the number of elements of argument {i} must be known"));
        };
        if let Some(n) = x.ndim.filter(|n| *n as i64 != size) {
            return cx.invalid(format!("argument {i} has {size} elements for {n} dimensions"));
        }
    }
    Ok(tensor_type(None, x.ndim, x.dtype))
}

/// First the shape is computed and bound, then the slice is taken.
fn dynamic_slice(cx: &CallCx, b: &mut BlockBuilder) -> Result<Expr, OpError> {
    let plain = |e| OpError::of_build(cx.name(), e);
    let (x, dims) = (cx.tensor(0)?, cx.dims(0)?);
    let ndim = dims.len();
    let args: Vec<Expr> = cx.args.to_vec();
    let shape = b
        .emit_te("shape_func", args.clone(), |t| {
            let count = |axis: usize| {
                let (begin, end, stride) = bounds(t, axis, &dims[axis]);
                let span = prim::select(prim::gt(&stride, 0), &end - &begin, &begin - &end);
                let step = prim::select(prim::gt(&stride, 0), stride.clone(), PrimExpr::from(0) - &stride);
                prim::max(prim::floordiv(span + &step - 1, step), 0)
            };
            vec![te::compute("T_shape", [ndim as i64], |i| {
                (0..ndim).rev().fold(PrimExpr::from(0), |rest, axis| {
                    prim::if_then_else(prim::eq(&i[0], axis as i64), count(axis), rest)
                })
            })]
        })
        .map_err(plain)?;
    let shape = b.op("tensor_to_shape", [shape], Attrs::new()).map_err(plain)?;
    let sizes: Vec<PrimExpr> = (0..ndim).map(|i| PrimExpr::from(&Var::dim(format!("s{i}")))).collect();
    b.match_cast(shape, Type::shape(sizes.clone())).map_err(plain)?;
    let sliced = b.call_te("dynamic_strided_slice", args, |t| {
        vec![te::compute("T_dynamic_strided_slice", &sizes, |out| {
            let index = |axis: usize| {
                let (begin, _, stride) = bounds(t, axis, &dims[axis]);
                begin + &out[axis] * stride
            };
            t[0].at(&(0..ndim).map(index).collect::<Vec<_>>())
        })]
    });
    let sliced = sliced.map_err(plain)?;
    debug_assert_eq!(sliced.ty().as_tensor().map(|t| t.dtype), Some(x.dtype));
    Ok(sliced)
}

/// Begin and end of a slice, brought inside, and its stride.
fn bounds(t: &[te::Tensor], axis: usize, size: &PrimExpr) -> (PrimExpr, PrimExpr, PrimExpr) {
    let of = |i: usize| t[i].at(&[PrimExpr::from(axis as i64)]);
    let stride = of(3);
    let forward = prim::gt(&stride, 0);
    let low = prim::select(forward.clone(), PrimExpr::from(0), PrimExpr::from(-1));
    let high = prim::select(forward, size.clone(), size - 1);
    let inside = |i: usize| prim::max(prim::min(wrapped(of(i), size), &high), &low);
    (inside(1), inside(2), stride)
}
