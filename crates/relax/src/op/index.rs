//! Operators that choose elements: slices, gathers, choices by a condition.

use relaxide_ffi::DataType;
use relaxide_ir::Type;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, PrimExpr, cast, constant};
use relaxide_tir::te;

use super::binary::broadcast_info;
use super::manipulate::{input, result_dims};
use super::unary::truth;
use super::*;

const X: ArgDef = ArgDef::tensor("x", "The input.");
const DATA: ArgDef = ArgDef::tensor("data", "The input.");
const INDICES: ArgDef = ArgDef::tensor("indices", "Indices, of an integer dtype; negative ones count from the end.");

/// The rows.
pub static TABLE: &[OpDef] = &[
    OpDef::injective(
        "strided_slice",
        &[
            X,
            ArgDef::scalars("axes", "The dimensions that are sliced."),
            ArgDef::scalars("begin", "Where each slice begins; negative values count from the end."),
            ArgDef::scalars("end", "Where each slice ends, not included."),
            ArgDef::scalars("strides", "Distance of neighbours; negative ones walk backwards.").optional(),
        ],
        &[AttrDef::bool(
            "assume_inbound",
            false,
            "Whether begin and end are promised to lie inside, so that they are not clamped.",
        )],
        slice_type,
        slice,
        "A regular part of a tensor, as Python slices it.",
    )
    .follow()
    .layout(layout::strided_slice),
    OpDef {
        lower: Lowering::Scalar(|cx, v| match v {
            [c, a, b] => Ok(prim::select(truth(c.clone()), a.clone(), b.clone())),
            _ => cx.invalid("takes three arguments"),
        }),
        pattern: OpPattern::Broadcast,
        ..OpDef::injective(
            "where",
            &[
                ArgDef::tensor("condition", "Bools."),
                ArgDef::operand("x1", "Where it holds."),
                ArgDef::operand("x2", "Where it does not."),
            ],
            &[],
            where_type,
            |cx, _| cx.unsupported("has no compute of its own"),
            "x1 where a condition holds, else x2; all three are broadcast.",
        )
        .gradient(gradient::where_)
    },
    OpDef::injective(
        "take",
        &[X, ArgDef::any("indices", "Indices: a tensor of an integer dtype, or a scalar.")],
        &[
            AttrDef::new(
                "axis",
                AttrKind::Int,
                AttrDefault::None,
                "The dimension that is indexed; of the flattened tensor if absent.",
            ),
            AttrDef::str("mode", "fast", "What happens outside: fast (undefined), clip, wrap, nan."),
        ],
        take_type,
        take,
        "Slices along a dimension, by index; the dimension is replaced by those of the indices.",
    )
    .gradient(gradient::take),
    OpDef::injective(
        "gather_elements",
        &[DATA, INDICES],
        &[AttrDef::int("axis", 0, "The dimension that the indices index.")],
        gather_elements_type,
        gather_elements,
        "Element i, j … is x at i, indices[i, j …] … along one dimension.",
    )
    .lengths(|cx| {
        let Some(ndim) = cx.tensor(0)?.ndim else { return Ok(Vec::new()) };
        let axis = cx.axis("axis", ndim)? as i64;
        let others = (0..ndim as i64).filter(|i| *i != axis);
        let within = |i: i64| lengths::pair(lengths::of(cx, 1, i), lengths::Relation::AtMost, lengths::of(cx, 0, i));
        Ok(others.filter_map(within).collect())
    })
    .layout(layout::along_axis),
    OpDef::injective(
        "gather_nd",
        &[DATA, INDICES],
        &[AttrDef::int("batch_dims", 0, "How many leading dimensions x and the indices share.")],
        gather_nd_type,
        gather_nd,
        "Slices of x at the points whose coordinates lie in the last dimension of the indices.",
    )
    .lengths(|cx| Ok((0..cx.int("batch_dims")?).flat_map(|i| lengths::equal_dims(cx, &[(1, i), (0, i)])).collect())),
    OpDef {
        args: &[
            ArgDef::tensor("indices", "Where the values are on."),
            ArgDef::scalar("on_value", "The value there."),
            ArgDef::scalar("off_value", "The value elsewhere."),
        ],
        attrs: &[
            AttrDef::new("depth", AttrKind::Int, AttrDefault::Required, "Size of the new dimension."),
            AttrDef::int("axis", -1, "Where the new dimension is, in the result."),
        ],
        ..OpDef::injective(
            "one_hot",
            &[],
            &[],
            one_hot_type,
            one_hot,
            "A new dimension in which one value is on, at the index.",
        )
    },
];

// Slices.

/// One sliced dimension, with begin inside and the number of elements.
struct Slice {
    axis: usize,
    begin: PrimExpr,
    stride: i64,
    count: PrimExpr,
}

fn slices(cx: &CallCx, dims: &[PrimExpr]) -> Result<Vec<Slice>, OpError> {
    let ints = |list: Vec<PrimExpr>| list.iter().map(PrimExpr::as_int).collect::<Option<Vec<_>>>();
    let Some(axes) = ints(cx.scalars(1)?) else { return cx.invalid("`axes` must be constants") };
    let (begins, ends) = (cx.scalars(2)?, cx.scalars(3)?);
    let strides = if cx.has(4) { ints(cx.scalars(4)?) } else { Some(vec![1; axes.len()]) };
    let Some(strides) = strides else { return cx.unsupported("strides must be constants") };
    if begins.len() != axes.len() || ends.len() != axes.len() || strides.len() != axes.len() {
        return cx.invalid(format!(
            "{} axes come with {} begins, {} ends and {} strides",
            axes.len(),
            begins.len(),
            ends.len(),
            strides.len()
        ));
    }
    let inbound = cx.bool("assume_inbound")?;
    let mut analyzer = Analyzer::new();
    analyzer.mark_dims(dims);
    let mut out = Vec::with_capacity(axes.len());
    for (((axis, begin), end), stride) in axes.iter().zip(&begins).zip(&ends).zip(&strides) {
        let axis = cx.axis_of(*axis, dims.len())?;
        if *stride == 0 {
            return cx.invalid("a stride is zero");
        }
        let Some(size) = dims.get(axis) else { return cx.invalid("an axis is out of range") };
        let (low, high) = if *stride > 0 { (PrimExpr::from(0), size.clone()) } else { (PrimExpr::from(-1), size - 1) };
        let mut clamp = |e: &PrimExpr| {
            let e = analyzer.simplify(&from_end(&mut Analyzer::new(), e, size));
            if inbound {
                return e;
            }
            let above = if analyzer.can_prove(&prim::ge(&e, &low)) { e } else { prim::max(e, &low) };
            if analyzer.can_prove(&prim::le(&above, &high)) { above } else { prim::min(above, &high) }
        };
        let first = from_end(&mut Analyzer::new(), begin, size);
        let (begin, end) = (clamp(begin), clamp(end));
        // A begin behind the end leaves nothing, wherever it is: so it need not be clamped for the count.
        let counts_up = *stride > 0 && !inbound && analyzer.can_prove(&prim::ge(&first, 0));
        let first = if counts_up { first } else { begin.clone() };
        let span = if *stride > 0 { &end - &first } else { &begin - &end };
        let step = stride.abs();
        let count = analyzer.simplify(&prim::floordiv(span + (step - 1), step));
        let count = if inbound || analyzer.can_prove(&prim::ge(&count, 0)) { count } else { prim::max(count, 0) };
        out.push(Slice { axis, begin: analyzer.simplify(&begin), stride: *stride, count });
    }
    Ok(out)
}

/// An index that may count from the end, counted from the front.
fn from_end(analyzer: &mut Analyzer, e: &PrimExpr, size: &PrimExpr) -> PrimExpr {
    match e.as_int() {
        Some(v) if v < 0 => size + v,
        Some(_) => e.clone(),
        None if analyzer.can_prove(&prim::ge(e, 0)) || e.as_var().is_some() => e.clone(),
        None => prim::select(prim::lt(e, 0), size + e, e.clone()),
    }
}

fn slice_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    let Some(mut dims) = x.dims else { return Ok(tensor_type(None, x.ndim, x.dtype)) };
    let is_known = |i: usize| matches!(cx.arg(i), Ok(Expr::Tuple(_) | Expr::Shape(_)));
    if !(1..=3).all(is_known) {
        return Ok(tensor_type(None, x.ndim, x.dtype));
    }
    let mut seen = vec![false; dims.len()];
    for slice in slices(cx, &dims.clone())? {
        if std::mem::replace(&mut seen[slice.axis], true) {
            return cx.invalid(format!("dimension {} is sliced twice", slice.axis));
        }
        dims[slice.axis] = slice.count;
    }
    Ok(Type::tensor(dims, x.dtype))
}

fn slice(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    let slices = slices(cx, x.shape())?;
    Ok(vec![te::compute("T_strided_slice_with_axes", result_dims(cx)?, |out| {
        let mut index = out.to_vec();
        for slice in &slices {
            let along = &index[slice.axis];
            index[slice.axis] = match slice.stride {
                stride if stride < 0 => &slice.begin - along * -stride,
                stride => along * stride + &slice.begin,
            };
        }
        x.at(&index)
    })])
}

// Choices and gathers.

fn where_type(cx: &CallCx) -> Result<Type, OpError> {
    let (c, a, b) = (cx.tensor(0)?, cx.operand(1)?, cx.operand(2)?);
    if !c.dtype.is_void() && !c.dtype.is_bool() {
        return cx.wrong_dtype(format!("the condition has dtype {}, not bool", c.dtype));
    }
    let is_scalar = |i: usize| matches!(cx.ty(i), Ok(Type::Prim(_)));
    if a.dtype != b.dtype && !a.dtype.is_void() && !b.dtype.is_void() && !is_scalar(1) && !is_scalar(2) {
        return cx
            .wrong_dtype(format!("the two sides have dtypes {} and {}; convert one with astype", a.dtype, b.dtype));
    }
    let dtype = match (is_scalar(1), is_scalar(2)) {
        (true, _) => b.dtype,
        (_, true) => a.dtype,
        _ if b.dtype.is_void() => b.dtype,
        _ => a.dtype,
    };
    let (dims, ndim) = broadcast_info(cx, &a, &b)?;
    let (dims, ndim) = broadcast_info(cx, &TensorInfo { dims, ndim, dtype }, &c)?;
    Ok(tensor_type(dims, ndim, dtype))
}

/// What is known of argument `i`, which must hold integers.
pub fn index_info(cx: &CallCx, i: usize) -> Result<TensorInfo, OpError> {
    let indices = cx.operand(i)?;
    if !indices.dtype.is_void() && !indices.dtype.is_integer() {
        return cx.wrong_dtype(format!("the indices have dtype {}; they must be integers", indices.dtype));
    }
    Ok(indices)
}

fn take_type(cx: &CallCx) -> Result<Type, OpError> {
    let (x, indices) = (cx.tensor(0)?, index_info(cx, 1)?);
    if cx.attrs.get("axis").is_none() {
        if x.ndim != Some(1) {
            return cx.invalid("without an axis it takes from a vector only; flatten the tensor first");
        }
        return Ok(tensor_type(indices.dims, indices.ndim, x.dtype));
    }
    let (Some(n), Some(m)) = (x.ndim, indices.ndim) else { return Ok(tensor_type(None, None, x.dtype)) };
    let axis = cx.axis("axis", n)?;
    let dims = x.dims.zip(indices.dims).map(|(mut dims, indices)| {
        dims.splice(axis..=axis, indices);
        dims
    });
    Ok(tensor_type(dims, Some(n + m - 1), x.dtype))
}

/// An index that may count from the end.
pub fn wrapped(index: PrimExpr, size: &PrimExpr) -> PrimExpr {
    let index = cast(DataType::int(64), index);
    match index.as_int() {
        Some(v) if v < 0 => size + v,
        Some(_) => index,
        None => prim::select(prim::lt(&index, 0), &index + size, index),
    }
}

fn take(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    let mode = cx.str("mode")?;
    let (axis, size) = match cx.attrs.get("axis") {
        None => (0, crate::shape::num_elements(x.shape())),
        Some(_) => {
            let axis = cx.axis("axis", x.ndim())?;
            (axis, x.shape().get(axis).cloned().unwrap_or_else(|| PrimExpr::from(1)))
        }
    };
    let flat = match cx.attrs.get("axis") {
        None => super::manipulate::reshape_tensor("flatten", x, std::slice::from_ref(&size)),
        Some(_) => x.clone(),
    };
    let m = inputs.get(1).map_or(0, te::Tensor::ndim);
    let scalar = if inputs.len() < 2 { Some(cx.scalar(1)?) } else { None };
    let out = te::compute("T_take", result_dims(cx)?, |out| {
        let raw = match &scalar {
            Some(value) => value.clone(),
            None => inputs[1].at(&out[axis..axis + m]),
        };
        let at = wrapped(raw, &size);
        let inside = match mode {
            "clip" => prim::max(prim::min(&at, &size - 1), 0),
            "wrap" => prim::floormod(&at, &size),
            _ => at.clone(),
        };
        let index: Vec<PrimExpr> =
            out[..axis].iter().cloned().chain([inside]).chain(out[axis + m..].iter().cloned()).collect();
        let value = flat.at(&index);
        if mode == "nan" {
            let ok = prim::and(prim::ge(&at, 0), prim::lt(&at, &size));
            return prim::if_then_else(ok, value.clone(), constant(value.dtype(), f64::NAN));
        }
        // An axis of no length, which may show only when the program runs, has no first and no last element.
        if mode == "clip" && size.as_int().is_none_or(|n| n == 0) {
            return prim::if_then_else(prim::gt(&size, 0), value.clone(), constant(value.dtype(), 0.0));
        }
        value
    });
    Ok(vec![out])
}

fn gather_elements_type(cx: &CallCx) -> Result<Type, OpError> {
    let (x, indices) = (cx.tensor(0)?, index_info(cx, 1)?);
    if let Some((n, m)) = x.ndim.zip(indices.ndim).filter(|(n, m)| n != m) {
        return cx.invalid(format!("a tensor of {n} dimensions comes with indices of {m}"));
    }
    let Some(ndim) = x.ndim else { return Ok(tensor_type(None, None, x.dtype)) };
    cx.axis("axis", ndim)?;
    Ok(tensor_type(indices.dims, indices.ndim, x.dtype))
}

fn gather_elements(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let (x, indices) = (input(cx, inputs, 0)?, input(cx, inputs, 1)?);
    let axis = cx.axis("axis", x.ndim())?;
    Ok(vec![te::compute("T_gather", indices.shape(), |out| {
        let mut index = out.to_vec();
        index[axis] = wrapped(indices.at(out), &x.shape()[axis]);
        x.at(&index)
    })])
}

/// How many coordinates each point of a `gather_nd` has.
fn coordinates(cx: &CallCx, indices: &[PrimExpr]) -> Result<usize, OpError> {
    let count = indices.last().and_then(PrimExpr::as_int).and_then(|v| usize::try_from(v).ok());
    count.map_or_else(|| cx.invalid("the last dimension of the indices must be a constant"), Ok)
}

fn gather_nd_type(cx: &CallCx) -> Result<Type, OpError> {
    let (x, indices) = (cx.tensor(0)?, index_info(cx, 1)?);
    if !indices.dtype.is_void() && indices.dtype != DataType::int(64) {
        return cx.wrong_dtype(format!("the indices have dtype {}, not int64", indices.dtype));
    }
    let batch = usize::try_from(cx.int("batch_dims")?).unwrap_or(0);
    let Some(points) = indices.dims else { return Ok(tensor_type(None, None, x.dtype)) };
    let n = coordinates(cx, &points)?;
    let Some(dims) = x.dims else {
        let ndim = x.ndim.and_then(|ndim| (ndim + points.len() - 1).checked_sub(batch + n));
        return Ok(tensor_type(None, ndim, x.dtype));
    };
    let Some(rest) = dims.get(batch + n..) else {
        return cx.invalid(format!("points have {n} coordinates, more than x has dimensions"));
    };
    let out: Vec<PrimExpr> = points[..points.len() - 1].iter().chain(rest).cloned().collect();
    Ok(Type::tensor(out, x.dtype))
}

fn gather_nd(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let (x, indices) = (input(cx, inputs, 0)?, input(cx, inputs, 1)?);
    let batch = usize::try_from(cx.int("batch_dims")?).unwrap_or(0);
    let n = coordinates(cx, indices.shape())?;
    let lead = indices.ndim() - 1;
    Ok(vec![te::compute("T_gather_nd", result_dims(cx)?, |out| {
        let coordinate = |i: usize| {
            let at: Vec<PrimExpr> = out[..lead].iter().cloned().chain([PrimExpr::from(i as i64)]).collect();
            wrapped(indices.at(&at), &x.shape()[batch + i])
        };
        let index: Vec<PrimExpr> =
            out[..batch].iter().cloned().chain((0..n).map(coordinate)).chain(out[lead..].iter().cloned()).collect();
        x.at(&index)
    })])
}

fn one_hot_type(cx: &CallCx) -> Result<Type, OpError> {
    let indices = index_info(cx, 0)?;
    let dtype = cx.scalar(1)?.dtype();
    let Some(ndim) = indices.ndim else { return Ok(tensor_type(None, None, dtype)) };
    let axis = cx.axis("axis", ndim + 1)?;
    let depth = PrimExpr::from(cx.int("depth")?);
    let dims = indices.dims.map(|mut dims| {
        dims.insert(axis, depth);
        dims
    });
    Ok(tensor_type(dims, Some(ndim + 1), dtype))
}

fn one_hot(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let indices = input(cx, inputs, 0)?;
    let (on, off) = (cx.scalar(1)?, cx.scalar(2)?);
    let axis = cx.axis("axis", indices.ndim() + 1)?;
    Ok(vec![te::compute("T_one_hot", result_dims(cx)?, |out| {
        let mut index = out.to_vec();
        let which = index.remove(axis);
        let hot = cast(DataType::int(64), indices.at(&index));
        prim::select(prim::eq(hot, which), on, cast(off.dtype(), off))
    })])
}
