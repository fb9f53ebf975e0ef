//! Attention: for each query a mean of values, weighted by how well keys fit it.
//!
//! Tensors are (batch, length, heads, head size). An operator is decomposed into matrix products and a softmax; what a position
//! must not see gets the score minus infinity.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr, constant};
use relaxide_ir::{Attrs, Type};
use relaxide_tir::te;

use super::*;
use crate::BlockBuilder;
use crate::constant::scalar_constant;

const QUERY: ArgDef = ArgDef::tensor("query", "(batch, length, heads, head size).");
const KEY: ArgDef = ArgDef::tensor("key", "(batch, length, heads, head size).");
const VALUE: ArgDef = ArgDef::tensor("value", "(batch, length, heads, head size).");
const ATTRS: &[AttrDef] = &[
    AttrDef::absent("scale", AttrKind::Float, "Factor of the products; 1 / sqrt(head size) if absent."),
    AttrDef::absent(
        "causal_mask",
        AttrKind::Str,
        "Which later positions are hidden: TopLeft (those behind the query's own), BottomRight (counted from the ends), or none.",
    ),
    AttrDef::absent("window_size", AttrKind::Int, "How many positions, its own included, a query sees; all if absent."),
];

/// The rows.
pub static TABLE: &[OpDef] = &[
    OpDef::decomposed(
        "nn.attention",
        &[QUERY, KEY, VALUE],
        ATTRS,
        attention_type,
        attention,
        "softmax(query * key^T * scale) * value for each head.",
    )
    .always(),
    OpDef::decomposed(
        "nn.attention_bias",
        &[
            QUERY,
            KEY,
            VALUE,
            ArgDef::tensor("bias", "Added to the products; broadcast to (batch, heads, length, length)."),
        ],
        ATTRS,
        attention_type,
        attention,
        "softmax(query * key^T * scale + bias) * value for each head.",
    )
    .always(),
    OpDef::decomposed(
        "nn.attention_var_len",
        &[
            ArgDef::tensor("query", "All sequences, one behind the other: (1, total length, heads, head size)."),
            ArgDef::tensor("key", "As the query."),
            ArgDef::tensor("value", "As the query."),
            ArgDef::tensor("seqstart_q", "Where each sequence of queries begins, and the total length."),
            ArgDef::tensor("seqstart_k", "Where each sequence of keys begins, and the total length."),
            ArgDef::tensor("max_seqlen_q", "The length of the longest sequence of queries."),
            ArgDef::tensor("max_seqlen_k", "The length of the longest sequence of keys."),
        ],
        ATTRS,
        attention_type,
        attention,
        "Attention within each of several sequences of different lengths.",
    )
    .always(),
];

fn check(cx: &CallCx, what: &str, a: &PrimExpr, b: &PrimExpr) -> Result<(), OpError> {
    let differ = matches!((a.as_int(), b.as_int()), (Some(a), Some(b)) if a != b);
    if differ {
        let (a, b) = (crate::display::dim_text(a), crate::display::dim_text(b));
        return cx.invalid(format!("the {what} are {a} and {b}"));
    }
    Ok(())
}

fn attention_type(cx: &CallCx) -> Result<Type, OpError> {
    let (q, k, v) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    let bias = if cx.name() == "nn.attention_bias" { Some(cx.tensor(3)?) } else { None };
    for (info, name) in [(Some(&q), "query"), (Some(&k), "key"), (Some(&v), "value"), (bias.as_ref(), "bias")] {
        if let Some(n) = info.and_then(|t| t.ndim).filter(|n| *n != 4) {
            return cx.invalid(format!("`{name}` has {n} dimensions, not 4"));
        }
    }
    let dims = match (&q.dims, &k.dims, &v.dims) {
        (Some(q), Some(k), Some(v)) => {
            check(cx, "batches of query and key", &q[0], &k[0])?;
            check(cx, "batches of query and value", &q[0], &v[0])?;
            check(cx, "head sizes of query and key", &q[3], &k[3])?;
            check(cx, "lengths of key and value", &k[1], &v[1])?;
            check(cx, "heads of key and value", &k[2], &v[2])?;
            if let Some(bias) = bias.as_ref().and_then(|b| b.dims.as_ref()) {
                let want = [&q[0], &q[2], &q[1], &k[1]];
                for (have, want) in bias.iter().zip(want).filter(|(have, _)| !have.is_int(1)) {
                    check(cx, "dimensions of the bias and of the products", have, want)?;
                }
            }
            Some(vec![q[0].clone(), q[1].clone(), q[2].clone(), v[3].clone()])
        }
        _ => None,
    };
    Ok(tensor_type(dims, Some(4), q.dtype))
}

/// Writes calls with the errors of operators.
struct AttentionCalls<'a> {
    b: &'a mut BlockBuilder,
    name: &'static str,
}

impl AttentionCalls<'_> {
    fn op(&mut self, name: &str, args: impl Into<Vec<Expr>>, attrs: Attrs) -> Result<Expr, OpError> {
        self.b.op(name, args, attrs).map_err(|e| OpError::of_build(self.name, e))
    }
}

fn order(axes: [i64; 4]) -> Attrs {
    Attrs::new().with("axes", axes.to_vec())
}

fn attention(cx: &CallCx, b: &mut BlockBuilder) -> Result<Expr, OpError> {
    let q_dims = cx.dims(0)?;
    let dtype = cx.tensor(0)?.dtype;
    let scale = match (cx.attrs.float("scale"), q_dims[3].as_int()) {
        (Some(scale), _) => scale,
        (None, Some(head)) => 1.0 / (head as f64).sqrt(),
        _ => return cx.unsupported("the head size must be a number, or the scale given"),
    };
    let hidden = mask(cx, b)?;
    let mut w = AttentionCalls { b, name: cx.name() };
    let q = w.op("permute_dims", [cx.arg(0)?.clone()], order([0, 2, 1, 3]))?;
    let (key, value) = (heads(&mut w, cx, 1)?, heads(&mut w, cx, 2)?);
    let k = w.op("permute_dims", [key], order([0, 2, 3, 1]))?;
    let v = w.op("permute_dims", [value], order([0, 2, 1, 3]))?;
    let products = w.op("matmul", [q, k], Attrs::new())?;
    let mut scores = w.op("multiply", [products, Expr::prim(constant(dtype, scale))], Attrs::new())?;
    if cx.name() == "nn.attention_bias" {
        scores = w.op("add", [scores, cx.arg(3)?.clone()], Attrs::new())?;
    }
    if let Some(hidden) = hidden {
        let Some(lowest) = scalar_constant(dtype, f64::NEG_INFINITY) else {
            return cx.unsupported(format!("masks of {dtype} are not implemented"));
        };
        scores = w.op("where", [hidden, lowest, scores], Attrs::new())?;
    }
    let weights = w.op("nn.softmax", [scores], Attrs::new())?;
    let mixed = w.op("matmul", [weights, v], Attrs::new())?;
    call("permute_dims", [mixed], order([0, 2, 1, 3]))
}

/// Keys or values with as many heads as the query has: where several queries share one, it is repeated.
fn heads(w: &mut AttentionCalls, cx: &CallCx, i: usize) -> Result<Expr, OpError> {
    let (want, have) = (cx.dims(0)?[2].as_int(), cx.dims(i)?[2].as_int());
    match (want, have) {
        (Some(want), Some(have)) if want != have => {
            if have == 0 || want % have != 0 {
                return cx.invalid(format!("{want} heads of queries cannot share {have} heads of keys"));
            }
            w.op("repeat", [cx.arg(i)?.clone()], Attrs::new().with("repeats", want / have).with("axis", 2i64))
        }
        _ => cx.arg(i).cloned(),
    }
}

/// Which keys each query must not see: a tensor of bools (length of queries, length of keys); `None` where all are seen.
fn mask(cx: &CallCx, b: &mut BlockBuilder) -> Result<Option<Expr>, OpError> {
    let causal = match cx.attrs.str("causal_mask") {
        None => None,
        Some("TopLeft") => Some(Corner::TopLeft),
        Some("BottomRight") => Some(Corner::BottomRight),
        Some(other) => return cx.invalid(format!("causal_mask is {other}; there are TopLeft and BottomRight")),
    };
    let window = cx.attrs.int("window_size");
    let several = cx.name() == "nn.attention_var_len";
    if causal.is_none() && window.is_none() && !several {
        return Ok(None);
    }
    let (rows, columns) = (cx.dims(0)?[1].clone(), cx.dims(1)?[1].clone());
    let starts = if several { vec![cx.arg(3)?.clone(), cx.arg(4)?.clone()] } else { Vec::new() };
    let masked = |t: &[te::Tensor]| {
        vec![te::compute("T_hidden", [rows.clone(), columns.clone()], |at| {
            let (row, column) = (&at[0], &at[1]);
            let whole = (PrimExpr::from(0), PrimExpr::from(0), rows.clone(), columns.clone(), prim::boolean(false));
            let (row_start, column_start, row_count, column_count, apart) = match t {
                [q, k] => within(q, k, row, column),
                _ => whole,
            };
            let offset = match causal {
                Some(Corner::BottomRight) => column_count - row_count,
                _ => PrimExpr::from(0),
            };
            let distance = (row - row_start + offset) - (column - column_start);
            let mut hidden = apart;
            if causal.is_some() {
                hidden = prim::or(hidden, prim::lt(&distance, 0));
            }
            if let Some(window) = window {
                hidden = prim::or(hidden, prim::ge(&distance, window));
            }
            hidden
        })]
    };
    let made = b.emit_te("attention_mask", starts, masked);
    made.map(Some).map_err(|e| OpError::of_build(cx.name(), e))
}

/// Which corner of the products a causal mask starts from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Corner {
    TopLeft,
    BottomRight,
}

/// Where the sequences of a query and of a key begin, how long the query's sequences are, and whether the two are different.
fn within(
    q: &te::Tensor,
    k: &te::Tensor,
    row: &PrimExpr,
    column: &PrimExpr,
) -> (PrimExpr, PrimExpr, PrimExpr, PrimExpr, PrimExpr) {
    let wide = DataType::int(64);
    let count = q.shape()[0].as_int().unwrap_or(1);
    let at = |t: &te::Tensor, i: i64| prim::cast(wide, t.at(&[PrimExpr::from(i)]));
    let last = |t: &te::Tensor, place: &PrimExpr, value: &dyn Fn(i64) -> PrimExpr| {
        (1..count - 1).fold(value(0), |before, i| prim::select(prim::ge(place, at(t, i)), value(i), before))
    };
    let number = |t: &te::Tensor, place: &PrimExpr| last(t, place, &PrimExpr::from);
    let start = |t: &te::Tensor, place: &PrimExpr| last(t, place, &|i| at(t, i));
    let length = |t: &te::Tensor, own: &te::Tensor, place: &PrimExpr| last(own, place, &|i| at(t, i + 1) - at(t, i));
    let apart = prim::ne(number(q, row), number(k, column));
    (start(q, row), start(k, column), length(q, q, row), length(k, q, row), apart)
}
