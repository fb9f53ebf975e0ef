//! Attention.

use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;

use super::Table;
use crate::error::NodeError;
use crate::rule::{Cx, Outputs, Result, one};

pub const TABLE: Table = &[
    ("aten.scaled_dot_product_attention", attention),
    ("aten._scaled_dot_product_flash_attention_for_cpu", attention),
    ("aten._scaled_dot_product_attention_math", attention),
];

/// Keys or values with as many heads as the queries have: each serves the heads of its group.
fn repeated_heads(cx: &mut Cx<'_>, x: Expr, heads: &PrimExpr) -> Result<Expr> {
    let own = cx.shape(&x)?[1].clone();
    match (own.as_int(), heads.as_int()) {
        (Some(a), Some(b)) if a == b => Ok(x),
        (Some(a), Some(b)) if a > 0 && b % a == 0 => {
            cx.op("repeat", [x], Attrs::new().with("repeats", b / a).with("axis", 1i64))
        }
        _ => Err(NodeError::unsupported("the heads of the keys are not a fixed share of those of the queries")),
    }
}

fn attention(cx: &mut Cx<'_>) -> Outputs {
    let (q, k, v) = (cx.tensor("query")?, cx.tensor("key")?, cx.tensor("value")?);
    if cx.float_or("dropout_p", 0.0)? != 0.0 {
        return Err(NodeError::unsupported("it is exported for training; call `model.eval()` before the export"));
    }
    let shape = cx.shape(&q)?;
    let rank = shape.len();
    if rank < 2 {
        return Err(NodeError::invalid("the queries have too few axes"));
    }
    // The operator has a batch and heads; what stands in front of them is more of the batch.
    let q = in_four_axes(cx, q)?;
    let (mut k, mut v) = (in_four_axes(cx, k)?, in_four_axes(cx, v)?);
    if cx.flag("enable_gqa", false)? {
        let heads = cx.shape(&q)?[1].clone();
        k = repeated_heads(cx, k, &heads)?;
        v = repeated_heads(cx, v, &heads)?;
    }
    let lengths = (cx.shape(&q)?[2].clone(), cx.shape(&k)?[2].clone());
    let mask_name = if cx.get("attn_mask").is_some() { "attn_mask" } else { "attn_bias" };
    let mask = cx.optional(mask_name)?;
    let causal = cx.flag("is_causal", false)?;
    let mut attrs = Attrs::new();
    if cx.get("scale").is_some() {
        attrs = attrs.with("scale", cx.float_or("scale", 1.0)?);
    }
    if causal {
        attrs = attrs.with("causal_mask", "TopLeft");
    }
    let order = [0, 2, 1, 3];
    let (q, k, v) = (cx.permute(q, &order)?, cx.permute(k, &order)?, cx.permute(v, &order)?);
    let mut blind = None;
    let mut y = match mask {
        None => cx.op("nn.attention", [q, k, v], attrs)?,
        Some(mask) => {
            let dtype = cx.dtype(&q);
            let bias = bias(cx, mask, dtype)?;
            // Of a query that may see nothing, PyTorch gives zeros.
            let closed = cx.number(f64::NEG_INFINITY, dtype)?;
            let most = cx.op("max", [bias.clone()], Attrs::new().with("axis", vec![-1i64]).with("keepdims", true))?;
            blind = Some(cx.call("equal", [most, closed])?);
            let (batch, heads) = (cx.shape(&q)?[0].clone(), cx.shape(&q)?[2].clone());
            let bias = cx.broadcast(bias, &[batch, heads, lengths.0, lengths.1])?;
            cx.op("nn.attention_bias", [q, k, v, bias], attrs)?
        }
    };
    y = cx.permute(y, &order)?;
    if let Some(blind) = blind {
        let zero = cx.number(0.0, cx.dtype(&y))?;
        y = cx.call("where", [blind, zero, y])?;
    }
    let dims = cx.result()?.dims.clone();
    one(if rank == 4 { y } else { cx.reshape(y, &dims)? })
}

fn in_four_axes(cx: &mut Cx<'_>, x: Expr) -> Result<Expr> {
    let shape = cx.shape(&x)?;
    match shape.len() {
        4 => Ok(x),
        2 => cx.reshape(x, &[prim::int(1), prim::int(1), shape[0].clone(), shape[1].clone()]),
        3 => cx.reshape(x, &[shape[0].clone(), prim::int(1), shape[1].clone(), shape[2].clone()]),
        n => {
            let batch = shape[..n - 3].iter().fold(prim::int(1), |n, d| n * d);
            cx.reshape(x, &[&[batch], &shape[n - 3..]].concat())
        }
    }
}

/// A mask as what is added to the products: minus infinity where it says no.
fn bias(cx: &mut Cx<'_>, mask: Expr, dtype: relaxide_ffi::DataType) -> Result<Expr> {
    let mask = {
        let shape = cx.shape(&mask)?;
        match shape.len() {
            3 => cx.reshape(mask, &[shape[0].clone(), prim::int(1), shape[1].clone(), shape[2].clone()])?,
            _ => mask,
        }
    };
    if !cx.dtype(&mask).is_bool() {
        return cx.cast(mask, dtype);
    }
    let (open, closed) = (cx.number(0.0, dtype)?, cx.number(f64::NEG_INFINITY, dtype)?);
    cx.call("where", [mask, open, closed])
}
