//! Operators that are a few others: they are opened when a program is legalized, and their type is that of what they open to.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{PrimExpr, constant};
use relaxide_ir::{Attrs, Type};

use super::*;
use crate::shape::num_elements;
use crate::{BlockBuilder, BuildError};

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

const ATTENTION: &[AttrDef] = &[
    AttrDef::new("scale", AttrKind::Float, AttrDefault::None, "Factor of the products; 1 / sqrt(head size) if absent."),
    AttrDef::new("causal_mask", AttrKind::Str, AttrDefault::None, "Which later positions are hidden; must be absent."),
    AttrDef::new("window_size", AttrKind::Int, AttrDefault::None, "How far positions see; must be absent."),
];

/// The rows.
pub static TABLE: &[OpDef] = &[
    row(
        "outer",
        &[ArgDef::tensor("x1", "A vector."), ArgDef::tensor("x2", "A vector.")],
        &[],
        |cx| opened_type(cx, outer),
        outer,
        "Products of every element of one vector with every element of another.",
    )
    .always(),
    row(
        "ewise_fma",
        &[ArgDef::tensor("x1", "Factor."), ArgDef::tensor("x2", "Factor."), ArgDef::tensor("x3", "Summand.")],
        &[],
        |cx| opened_type(cx, fused_multiply_add),
        fused_multiply_add,
        "x1 * x2 + x3.",
    )
    .follow()
    .layout(layout::elementwise),
    row(
        "nn.pixel_shuffle",
        &[DATA],
        &[AttrDef::new("upscale_factor", AttrKind::Int, AttrDefault::Required, "How many times wider and higher.")],
        |cx| opened_type(cx, pixel_shuffle),
        pixel_shuffle,
        "Channels become pixels: (N, C * r * r, H, W) to (N, C, H * r, W * r).",
    ),
    row(
        "nn.cross_entropy_with_logits",
        &[ArgDef::tensor("predictions", "Logits."), ArgDef::tensor("labels", "Probabilities.")],
        &[],
        |cx| opened_type(cx, cross_entropy),
        cross_entropy,
        "-sum(predictions * labels), divided by the batch where there is one.",
    )
    .gradient(gradient::cross_entropy),
    row(
        "nn.attention",
        &[
            ArgDef::tensor("query", "(batch, length, heads, head size)."),
            ArgDef::tensor("key", "(batch, length, heads, head size)."),
            ArgDef::tensor("value", "(batch, length, heads, head size)."),
        ],
        ATTENTION,
        |cx| opened_type(cx, attention),
        attention,
        "softmax(query * key^T * scale) * value for each head.",
    )
    .always(),
    row(
        "nn.attention_bias",
        &[
            ArgDef::tensor("query", "(batch, length, heads, head size)."),
            ArgDef::tensor("key", "(batch, length, heads, head size)."),
            ArgDef::tensor("value", "(batch, length, heads, head size)."),
            ArgDef::tensor("bias", "Added to the products; broadcast to (batch, heads, length, length)."),
        ],
        ATTENTION,
        |cx| opened_type(cx, attention),
        attention,
        "softmax(query * key^T * scale + bias) * value for each head.",
    )
    .always(),
];

/// The type of what an operator opens to.
fn opened_type(cx: &CallCx, open: Open) -> Result<Type, OpError> {
    let mut b = BlockBuilder::new();
    b.begin_scope();
    Ok(open(cx, &mut b)?.ty())
}

/// Writes calls with the errors of operators.
struct Writer<'a> {
    b: &'a mut BlockBuilder,
    name: &'static str,
}

impl Writer<'_> {
    fn op(&mut self, name: &str, args: impl Into<Vec<Expr>>, attrs: Attrs) -> Result<Expr, OpError> {
        self.b.op(name, args, attrs).map_err(|e| match e {
            BuildError::Op(e) => e,
            other => OpError::invalid(self.name, other.to_string()),
        })
    }
}

fn writer<'a>(cx: &CallCx, b: &'a mut BlockBuilder) -> Writer<'a> {
    Writer { b, name: cx.name() }
}

fn outer(cx: &CallCx, b: &mut BlockBuilder) -> Result<Expr, OpError> {
    for i in 0..2 {
        if let Some(n) = cx.tensor(i)?.ndim.filter(|n| *n != 1) {
            return cx.invalid(format!("needs vectors, but argument {i} has {n} dimensions"));
        }
    }
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

fn attention(cx: &CallCx, b: &mut BlockBuilder) -> Result<Expr, OpError> {
    for attr in ["causal_mask", "window_size"] {
        if cx.attrs.get(attr).is_some() {
            return cx.unsupported(format!("`{attr}` is not implemented; add a bias that hides positions"));
        }
    }
    let query = cx.tensor(0)?;
    let head = query.dims.as_ref().and_then(|d| d.last()).and_then(PrimExpr::as_int);
    let scale = match (cx.attrs.float("scale"), head) {
        (Some(scale), _) => scale,
        (None, Some(head)) => 1.0 / (head as f64).sqrt(),
        _ => return cx.unsupported("the head size must be a number, or the scale given"),
    };
    if query.ndim != Some(4) {
        return cx.invalid("needs tensors of four dimensions");
    }
    let number =
        |v: f64| Expr::prim(constant(if query.dtype.is_void() { DataType::float(32) } else { query.dtype }, v));
    let mut w = writer(cx, b);
    let order = |axes: [i64; 4]| Attrs::new().with("axes", axes.to_vec());
    let q = w.op("permute_dims", [cx.arg(0)?.clone()], order([0, 2, 1, 3]))?;
    let k = w.op("permute_dims", [cx.arg(1)?.clone()], order([0, 2, 3, 1]))?;
    let v = w.op("permute_dims", [cx.arg(2)?.clone()], order([0, 2, 1, 3]))?;
    let products = w.op("matmul", [q, k], Attrs::new())?;
    let mut scores = w.op("multiply", [products, number(scale)], Attrs::new())?;
    if cx.has(3) {
        scores = w.op("add", [scores, cx.arg(3)?.clone()], Attrs::new())?;
    }
    let weights = w.op("nn.softmax", [scores], Attrs::new())?;
    let mixed = w.op("matmul", [weights, v], Attrs::new())?;
    call("permute_dims", [mixed], order([0, 2, 1, 3]))
}
