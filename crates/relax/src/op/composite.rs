//! Operators that are a few others: they are decomposed when a program is legalized, and their type is that of what they become.

use relaxide_ffi::DataType;
use relaxide_ir::prim::PrimExpr;
use relaxide_ir::{Attrs, Type};

use super::*;
use crate::BlockBuilder;
use crate::shape::{num_elements, same_dims};

type Open = fn(&CallCx, &mut BlockBuilder) -> Result<Expr, OpError>;

const DATA: ArgDef = ArgDef::tensor("data", "The input.");

const fn row(
    name: &'static str,
    args: &'static [ArgDef],
    attrs: &'static [AttrDef],
    infer: fn(&CallCx) -> Result<Type, OpError>,
    open: Open,
    doc: &'static str,
) -> OpDef {
    OpDef { name, doc, args, attrs, infer, lower: Lowering::Decompose(open), pattern: OpPattern::Opaque, ..OpDef::BASE }
}

/// The rows.
pub static TABLE: &[OpDef] = &[
    row(
        "outer",
        &[ArgDef::tensor("x1", "A vector."), ArgDef::tensor("x2", "A vector.")],
        &[],
        outer_type,
        outer,
        "Products of every element of one vector with every element of another.",
    )
    .always(),
    row(
        "ewise_fma",
        &[ArgDef::tensor("x1", "Factor."), ArgDef::tensor("x2", "Factor."), ArgDef::tensor("x3", "Summand.")],
        &[],
        fused_type,
        fused_multiply_add,
        "x1 * x2 + x3.",
    )
    .follow()
    .layout(layout::elementwise),
    row(
        "nn.pixel_shuffle",
        &[DATA],
        &[AttrDef::new("upscale_factor", AttrKind::Int, AttrDefault::Required, "How many times wider and higher.")],
        pixel_shuffle_type,
        pixel_shuffle,
        "Channels become pixels: (N, C * r * r, H, W) to (N, C, H * r, W * r).",
    ),
    row(
        "nn.cross_entropy_with_logits",
        &[ArgDef::tensor("predictions", "Logits."), ArgDef::tensor("labels", "Probabilities.")],
        &[],
        cross_entropy_type,
        cross_entropy,
        "-sum(predictions * labels), divided by the batch where there is one.",
    )
    .gradient(gradient::cross_entropy)
    .in_steps(steps::cross_entropy),
];

/// Writes calls with the errors of operators.
struct CompositeCalls<'a> {
    b: &'a mut BlockBuilder,
    name: &'static str,
}

impl CompositeCalls<'_> {
    fn op(&mut self, name: &str, args: impl Into<Vec<Expr>>, attrs: Attrs) -> Result<Expr, OpError> {
        self.b.op(name, args, attrs).map_err(|e| OpError::of_build(self.name, e))
    }
}

fn writer<'a>(cx: &CallCx, b: &'a mut BlockBuilder) -> CompositeCalls<'a> {
    CompositeCalls { b, name: cx.name() }
}

fn outer_type(cx: &CallCx) -> Result<Type, OpError> {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    if a.ndim != Some(1) || b.ndim != Some(1) {
        return cx.invalid("needs two vectors");
    }
    let dims = a.dims.zip(b.dims).map(|(a, b)| a.into_iter().chain(b).collect());
    Ok(tensor_type(dims, Some(2), a.dtype))
}

/// The dtype that all of some tensors have; void where one is not known.
fn one_dtype(cx: &CallCx, tensors: &[TensorInfo]) -> Result<DataType, OpError> {
    let mut known = tensors.iter().map(|t| t.dtype).filter(|d| !d.is_void());
    let first = known.next().unwrap_or(DataType::void());
    match known.find(|d| *d != first) {
        Some(other) => cx.wrong_dtype(format!("the tensors have dtypes {first} and {other}; convert one with astype")),
        None if tensors.iter().any(|t| t.dtype.is_void()) => Ok(DataType::void()),
        None => Ok(first),
    }
}

fn fused_type(cx: &CallCx) -> Result<Type, OpError> {
    let tensors = [cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?];
    let dtype = one_dtype(cx, &tensors)?;
    let ndim = tensors.iter().find_map(|t| t.ndim);
    if let Some((n, m)) = ndim.zip(tensors.iter().filter_map(|t| t.ndim).find(|n| Some(*n) != ndim)) {
        return cx.invalid(format!("the tensors have {n} and {m} dimensions"));
    }
    match &tensors {
        [TensorInfo { dims: Some(a), .. }, TensorInfo { dims: Some(b), .. }, TensorInfo { dims: Some(c), .. }] => {
            match same_dims(a, b) && same_dims(b, c) {
                true => Ok(Type::tensor(a.clone(), dtype)),
                false => Ok(tensor_type(None, ndim, dtype)),
            }
        }
        _ => Ok(tensor_type(None, ndim, dtype)),
    }
}

fn pixel_shuffle_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    match x.ndim {
        Some(n) if n >= 3 => {}
        Some(n) => return cx.invalid(format!("needs channels, height and width, but has {n} dimensions")),
        None => return cx.invalid("needs channels, height and width, but the rank is not known"),
    }
    let factor = cx.int("upscale_factor")?;
    if factor < 1 {
        return cx.invalid(format!("`upscale_factor` is {factor}"));
    }
    let Some(mut dims) = x.dims else { return Ok(tensor_type(None, x.ndim, x.dtype)) };
    let last = dims.len();
    if dims[last - 3].as_int().is_some_and(|c| c % (factor * factor) != 0) {
        return cx.invalid(format!("the channels cannot be divided into squares of {factor} by {factor}"));
    }
    let mut analyzer = relaxide_ir::arith::Analyzer::new();
    dims[last - 3] = analyzer.simplify(&relaxide_ir::prim::floordiv(&dims[last - 3], factor * factor));
    for dim in dims.iter_mut().skip(last - 2) {
        *dim = analyzer.simplify(&(&*dim * factor));
    }
    Ok(Type::tensor(dims, x.dtype))
}

fn cross_entropy_type(cx: &CallCx) -> Result<Type, OpError> {
    let tensors = [cx.tensor(0)?, cx.tensor(1)?];
    let dtype = one_dtype(cx, &tensors)?;
    let [a, b] = &tensors;
    if let Some((n, m)) = a.ndim.zip(b.ndim).filter(|(n, m)| n != m) {
        return cx.invalid(format!("predictions of {n} dimensions come with labels of {m}"));
    }
    if let (Some(a), Some(b)) = (&a.dims, &b.dims)
        && a.iter().zip(b).filter_map(|(a, b)| a.as_int().zip(b.as_int())).any(|(a, b)| a != b)
    {
        return cx.invalid("predictions and labels have different shapes");
    }
    Ok(Type::tensor(Vec::<PrimExpr>::new(), dtype))
}

fn outer(cx: &CallCx, b: &mut BlockBuilder) -> Result<Expr, OpError> {
    let mut w = writer(cx, b);
    let column = w.op("expand_dims", [cx.arg(0)?.clone()], Attrs::new().with("axis", vec![1i64]))?;
    call("multiply", [column, cx.arg(1)?.clone()], Attrs::new())
}

fn fused_multiply_add(cx: &CallCx, b: &mut BlockBuilder) -> Result<Expr, OpError> {
    let product = writer(cx, b).op("multiply", [cx.arg(0)?.clone(), cx.arg(1)?.clone()], Attrs::new())?;
    call("add", [product, cx.arg(2)?.clone()], Attrs::new())
}

fn pixel_shuffle(cx: &CallCx, b: &mut BlockBuilder) -> Result<Expr, OpError> {
    let r = cx.int("upscale_factor")?;
    let dims = cx.dims(0)?;
    let [lead @ .., c, h, width] = dims.as_slice() else { return cx.invalid("needs channels, height and width") };
    let Some(channels) = c.as_int().filter(|c| r > 0 && c % (r * r) == 0) else {
        return cx.invalid(format!("the channels cannot be divided into squares of {r} by {r}"));
    };
    let channels = PrimExpr::from(channels / (r * r));
    let n = lead.len() as i64;
    let shape = |rest: Vec<PrimExpr>| Expr::shape(lead.iter().cloned().chain(rest));
    let step = PrimExpr::from(r);
    let split = shape(vec![channels.clone(), step.clone(), step, h.clone(), width.clone()]);
    let mut w = writer(cx, b);
    let parts = w.op("reshape", [cx.arg(0)?.clone(), split], Attrs::new())?;
    let axes: Vec<i64> = (0..n).chain([n, n + 3, n + 1, n + 4, n + 2]).collect();
    let mixed = w.op("permute_dims", [parts], Attrs::new().with("axes", axes))?;
    call("reshape", [mixed, shape(vec![channels, h * r, width * r])], Attrs::new())
}

fn cross_entropy(cx: &CallCx, b: &mut BlockBuilder) -> Result<Expr, OpError> {
    let dims = cx.dims(0)?;
    let dtype = cx.tensor(0)?.dtype;
    let mut w = writer(cx, b);
    let products = w.op("multiply", [cx.arg(0)?.clone(), cx.arg(1)?.clone()], Attrs::new())?;
    let total = w.op("sum", [products], Attrs::new())?;
    match dims.as_slice() {
        [_] => call("negative", [total], Attrs::new()),
        [batch, ..] => {
            let count = relaxide_ir::prim::cast(dtype, num_elements(std::slice::from_ref(batch)));
            let negative = w.op("negative", [total], Attrs::new())?;
            call("divide", [negative, Expr::prim(count)], Attrs::new())
        }
        [] => cx.invalid("needs a tensor of one dimension at least"),
    }
}
