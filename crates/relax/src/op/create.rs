//! Operators that make tensors of a pattern, and those that convert or bound each element.

use relaxide_ffi::DataType;
use relaxide_ir::Type;
use relaxide_ir::arith::dims;
use relaxide_ir::prim::{self, PrimExpr, cast, constant};
use relaxide_tir::te;

use super::manipulate::{input, result_dims};
use super::*;

const X: ArgDef = ArgDef::tensor("x", "The input.");
const SHAPE: ArgDef = ArgDef::shape("shape", "Dimensions of the result.");
const DTYPE: AttrDef = AttrDef::dtype("dtype", "Dtype of the result; that of the arguments if void.");

const fn row(
    name: &'static str,
    args: &'static [ArgDef],
    attrs: &'static [AttrDef],
    infer: fn(&CallCx) -> Result<Type, OpError>,
    lower: Lowering,
    pattern: OpPattern,
    doc: &'static str,
) -> OpDef {
    OpDef { name, doc, args, attrs, infer, lower, pattern, ..OpDef::BASE }
}

const fn filler(name: &'static str, lower: Compute, doc: &'static str) -> OpDef {
    row(name, &[SHAPE], &[DTYPE], filled_type, Lowering::Compute(lower), OpPattern::Elemwise, doc)
}

const fn like(name: &'static str, args: &'static [ArgDef], lower: Compute, doc: &'static str) -> OpDef {
    row(name, args, &[DTYPE], like_type, Lowering::Compute(lower), OpPattern::Elemwise, doc)
}

/// The rows.
pub static TABLE: &[OpDef] = &[
    filler("zeros", |cx, _| splat(cx, 0.0), "Zeros.").follow().gradient(gradient::none),
    filler("ones", |cx, _| splat(cx, 1.0), "Ones.").follow().gradient(gradient::none),
    row(
        "full",
        &[SHAPE, ArgDef::operand("fill_value", "A 0-d tensor or a scalar.")],
        &[DTYPE],
        full_type,
        Lowering::Compute(full),
        OpPattern::Broadcast,
        "One value everywhere.",
    )
    .follow()
    .gradient(gradient::none),
    like("zeros_like", &[X], |cx, _| splat(cx, 0.0), "Zeros in the shape of x.").gradient(gradient::none),
    like("ones_like", &[X], |cx, _| splat(cx, 1.0), "Ones in the shape of x.").gradient(gradient::none),
    like(
        "full_like",
        &[X, ArgDef::operand("fill_value", "A 0-d tensor or a scalar.")],
        full,
        "One value in the shape of x.",
    )
    .follow()
    .gradient(gradient::none),
    row(
        "arange",
        &[
            ArgDef::scalar("start", "First value."),
            ArgDef::scalar("end", "Where it stops, not included."),
            ArgDef::scalar("step", "Distance of neighbours."),
        ],
        &[DTYPE],
        arange_type,
        Lowering::Compute(arange),
        OpPattern::Opaque,
        "start, start + step … up to end.",
    )
    .follow(),
    row(
        "eye",
        &[
            ArgDef::scalar("n", "Rows."),
            ArgDef::scalar("m", "Columns."),
            ArgDef::scalar("k", "Which diagonal; 0 is the main one.").or(ArgDefault::Int(0)),
        ],
        &[DTYPE],
        eye_type,
        Lowering::Compute(|cx, _| eye(cx, 2)),
        OpPattern::Elemwise,
        "Ones on a diagonal, zeros elsewhere.",
    )
    .follow(),
    row(
        "eye_like",
        &[X, ArgDef::scalar("k", "Which diagonal; 0 is the main one.").or(ArgDefault::Int(0))],
        &[DTYPE],
        eye_like_type,
        Lowering::Compute(|cx, _| eye(cx, 1)),
        OpPattern::Elemwise,
        "Ones on a diagonal, zeros elsewhere, in the shape of x.",
    ),
    row(
        "hamming_window",
        &[
            ArgDef::scalar("window_size", "How many values."),
            ArgDef::scalar("periodic", "Whether the window is made for one more, which is left out."),
            ArgDef::scalar("alpha", "The constant part."),
            ArgDef::scalar("beta", "The part of the cosine."),
        ],
        &[AttrDef::required("dtype", AttrKind::DType, "Dtype of the result, of floating-point numbers.")],
        hamming_type,
        Lowering::Compute(hamming),
        OpPattern::Opaque,
        "alpha - beta * cos(2 pi i / (n - 1)).",
    )
    .follow(),
    row(
        "tril",
        &[X, ArgDef::scalar("k", "The last diagonal that is kept.").or(ArgDefault::Int(0))],
        &[],
        triangle_type,
        Lowering::Compute(|cx, t| triangle(cx, t, |row, column, k| at_most(column, row, k))),
        OpPattern::Injective,
        "x below a diagonal, zero above.",
    ),
    row(
        "triu",
        &[X, ArgDef::scalar("k", "The first diagonal that is kept.").or(ArgDefault::Int(0))],
        &[],
        triangle_type,
        Lowering::Compute(|cx, t| triangle(cx, t, |row, column, k| at_most(row, column, PrimExpr::from(0) - k))),
        OpPattern::Injective,
        "x above a diagonal, zero below.",
    )
    .gradient(gradient::triu),
    row(
        "astype",
        &[X],
        &[AttrDef::new("dtype", AttrKind::DType, AttrDefault::Required, "Dtype of the result.")],
        astype_type,
        Lowering::Scalar(|cx, v| Ok(convert(cx.dtype("dtype").unwrap_or(v[0].dtype()), v[0].clone()))),
        OpPattern::Elemwise,
        "Each element converted. Floats become integers by truncation, and bools by comparing with zero.",
    )
    .follow()
    .layout(layout::elementwise)
    .gradient(gradient::astype),
    row(
        "clip",
        &[X, ArgDef::scalar("min", "Lower bound."), ArgDef::scalar("max", "Upper bound.")],
        &[],
        |cx| Ok(cx.tensor(0)?.ty()),
        Lowering::Scalar(clip),
        OpPattern::Elemwise,
        "Each element brought between two bounds. A bound that the dtype cannot hold does not bind.",
    ),
];

fn filled_type(cx: &CallCx) -> Result<Type, OpError> {
    let Some(dtype) = cx.dtype("dtype") else { return cx.wrong_dtype("needs a dtype") };
    Ok(match cx.shape_arg(0)? {
        Ok(dims) => Type::tensor(dims, dtype),
        Err(ndim) => tensor_type(None, ndim, dtype),
    })
}

fn full_type(cx: &CallCx) -> Result<Type, OpError> {
    let dtype = match cx.dtype("dtype") {
        Some(dtype) => dtype,
        None => cx.operand(1)?.dtype,
    };
    Ok(match cx.shape_arg(0)? {
        Ok(dims) => Type::tensor(dims, dtype),
        Err(ndim) => tensor_type(None, ndim, dtype),
    })
}

fn like_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    Ok(TensorInfo { dtype: cx.dtype("dtype").unwrap_or(x.dtype), ..x }.ty())
}

/// Dimensions and dtype of the result.
fn result(cx: &CallCx) -> Result<(Vec<PrimExpr>, DataType), OpError> {
    let dims = result_dims(cx)?;
    let ty = (cx.def.infer)(cx)?;
    Ok((dims, ty.as_tensor().map_or(DataType::void(), |t| t.dtype)))
}

fn splat(cx: &CallCx, value: f64) -> Result<Vec<te::Tensor>, OpError> {
    let (dims, dtype) = result(cx)?;
    Ok(vec![te::compute("T_full", dims, |_| constant(dtype, value))])
}

fn full(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let (dims, dtype) = result(cx)?;
    let value = match (cx.literal(1), inputs.last()) {
        (Some(value), _) => value,
        (None, Some(t)) if cx.tensor(1).is_ok() => t.at(&vec![PrimExpr::from(0); t.ndim()]),
        _ => cx.scalar(1)?,
    };
    Ok(vec![te::compute("T_full", dims, |_| convert(dtype, value))])
}

fn arange_type(cx: &CallCx) -> Result<Type, OpError> {
    let (start, end, step) = (cx.scalar(0)?, cx.scalar(1)?, cx.scalar(2)?);
    let dtype = cx.dtype("dtype").unwrap_or_else(|| {
        let float = [&start, &end, &step].into_iter().map(|e| e.dtype()).find(|d| d.is_float());
        float.unwrap_or(DataType::int(64))
    });
    let number = |e: &PrimExpr| match e {
        PrimExpr::Int(i) => Some(i.value as f64),
        PrimExpr::Float(f) => Some(f.value),
        _ => None,
    };
    let whole = |e: &PrimExpr| e.as_int().map(i128::from);
    let count = match (number(&start), number(&end), number(&step)) {
        (_, _, Some(0.0)) => return cx.invalid("the step is zero"),
        (Some(from), Some(to), Some(by)) => match (whole(&start), whole(&end), whole(&step)) {
            (Some(from), Some(to), Some(by)) => {
                let count = ((to - from + by - by.signum()) / by).max(0);
                PrimExpr::from(i64::try_from(count).map_or_else(|_| cx.invalid("it has too many elements"), Ok)?)
            }
            _ => PrimExpr::from(((to - from) / by).ceil().max(0.0) as i64),
        },
        (_, _, Some(by)) => {
            // Rounded up, whichever way it goes.
            let span = if by > 0.0 { &end - &start + &step - 1 } else { &end - &start + &step + 1 };
            dims::simplify(&prim::max(prim::floordiv(span, &step), 0))
        }
        _ => {
            let towards = prim::select(prim::gt(&step, 0), prim::int(1), prim::int(-1));
            let span = prim::floordiv(&end - &start + &step - towards, &step);
            dims::simplify(&prim::select(prim::eq(&step, 0), prim::int(0), prim::max(span, 0)))
        }
    };
    Ok(Type::tensor([count], dtype))
}

fn arange(cx: &CallCx, _: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let (dims, dtype) = result(cx)?;
    let (start, step) = (cx.scalar(0)?, cx.scalar(2)?);
    Ok(vec![te::compute("T_arange", dims, |i| cast(dtype, &i[0]) * cast(dtype, step) + cast(dtype, start))])
}

fn eye_type(cx: &CallCx) -> Result<Type, OpError> {
    let dtype = cx.dtype("dtype").unwrap_or(DataType::float(32));
    Ok(Type::tensor([cx.scalar(0)?, cx.scalar(1)?], dtype))
}

fn eye_like_type(cx: &CallCx) -> Result<Type, OpError> {
    match cx.tensor(0)?.ndim {
        Some(2) => like_type(cx),
        Some(n) => cx.invalid(format!("needs a tensor of 2 dimensions, not {n}")),
        None => cx.invalid("needs a tensor of 2 dimensions, but the rank is not known"),
    }
}

fn hamming_type(cx: &CallCx) -> Result<Type, OpError> {
    let dtype = cx.dtype("dtype").unwrap_or(DataType::void());
    if !dtype.is_float() {
        return cx.wrong_dtype(format!("dtype is {dtype}; it must be one of floating-point numbers"));
    }
    let size = cx.scalar(0)?;
    match size.as_int() {
        Some(n) if n < 1 => cx.invalid(format!("window_size is {n}")),
        _ => Ok(Type::tensor([size], dtype)),
    }
}

fn hamming(cx: &CallCx, _: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let (dims, dtype) = result(cx)?;
    let number = |i: usize| Ok::<_, OpError>(cast(dtype, cx.scalar(i)?));
    let (alpha, beta) = (number(2)?, number(3)?);
    let Some(periodic) = cx.scalar(1)?.as_int() else { return cx.unsupported("`periodic` must be a constant") };
    let steps = cast(dtype, prim::max(cx.scalar(0)? - i64::from(periodic == 0), 1));
    Ok(vec![te::compute("T_hamming", dims, |i| {
        let angle = prim::div(cast(dtype, &i[0]) * constant(dtype, 2.0 * std::f64::consts::PI), &steps);
        &alpha - &beta * prim::math("cos", angle)
    })])
}

/// Ones on the diagonal that scalar argument `which` names.
fn eye(cx: &CallCx, which: usize) -> Result<Vec<te::Tensor>, OpError> {
    let (dims, dtype) = result(cx)?;
    let k = cx.scalar(which)?;
    Ok(vec![te::compute("T_eye", dims, |i| {
        prim::select(prim::eq(&i[1], &i[0] + k), constant(dtype, 1.0), constant(dtype, 0.0))
    })])
}

fn triangle_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    match x.ndim {
        Some(n) if n < 2 => cx.invalid(format!("needs a tensor of two dimensions at least, not {n}")),
        _ => Ok(x.ty()),
    }
}

fn triangle(
    cx: &CallCx,
    inputs: &[te::Tensor],
    keep: fn(&PrimExpr, &PrimExpr, PrimExpr) -> PrimExpr,
) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    let k = cx.scalar(1)?;
    if x.ndim() < 2 {
        return cx.invalid("needs a tensor of two dimensions at least");
    }
    Ok(vec![te::compute("T_tri", x.shape(), |out| {
        let (row, column) = (&out[out.len() - 2], &out[out.len() - 1]);
        prim::select(keep(row, column, k), x.at(out), constant(x.dtype(), 0.0))
    })])
}

/// `a <= b + k`, without a negative constant where `k` is known.
fn at_most(a: &PrimExpr, b: &PrimExpr, k: PrimExpr) -> PrimExpr {
    match k.as_int() {
        Some(-1) => prim::lt(a, b),
        Some(0) => prim::le(a, b),
        Some(k @ ..0) => prim::le(a - k, b),
        _ => prim::le(a, b + k),
    }
}

fn astype_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    Ok(TensorInfo { dtype: cx.dtype("dtype").unwrap_or(x.dtype), ..x }.ty())
}

/// A conversion; to bools it is a comparison with zero.
fn convert(dtype: DataType, x: PrimExpr) -> PrimExpr {
    match &x {
        _ if dtype.is_bool() && !x.dtype().is_bool() => prim::ne(&x, constant(x.dtype(), 0.0)),
        PrimExpr::Float(f) if dtype.is_int() && f.value.abs() < 2f64.powi(i32::from(dtype.bits.min(54)) - 1) => {
            constant(dtype, f.value.trunc())
        }
        _ => cast(dtype, x),
    }
}

fn clip(cx: &CallCx, values: &[PrimExpr]) -> Result<PrimExpr, OpError> {
    let [x, low, high] = values else { return cx.invalid("takes three arguments") };
    let dtype = x.dtype();
    let bound = |e: &PrimExpr| match e {
        PrimExpr::Float(f) if !dtype.is_float() => {
            let value = f.value;
            (value.is_finite() && value.abs() < 2f64.powi(i32::from(dtype.bits) - 1)).then(|| constant(dtype, value))
        }
        PrimExpr::Float(f) if f.value.is_infinite() => None,
        other => Some(cast(dtype, other)),
    };
    let mut value = x.clone();
    if let Some(low) = bound(low) {
        value = prim::max(value, low);
    }
    if let Some(high) = bound(high) {
        value = prim::min(value, high);
    }
    Ok(value)
}
