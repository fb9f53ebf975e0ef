//! Attention in heads: `Attention`, `MultiHeadAttention`, `RotaryEmbedding`.
//!
//! ```text
//! q, k, v  [batch, heads, length, size]
//! softmax(q · kᵀ * scale + bias + mask) · v
//! ```
//!
//! A mask is a number for each key (1: seen, 0: hidden), or for each pair of query and key, or how many keys of each row of
//! the batch are seen. Past keys and values are joined in front of new ones and given back as `present`.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::ops::elementwise::{broadcast_call, with_number};
use crate::ops::{Outputs, matmul, one};
use crate::quantized::integer::only;
use crate::scope::Scope;
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

/// Queries, keys and values in heads.
struct Heads {
    q: Expr,
    k: Expr,
    v: Expr,
}

/// What is added to scores.
struct Masks {
    /// For each key or pair; see the module.
    mask: Option<Expr>,
    /// Numbers to add.
    bias: Option<Expr>,
    /// What hides a key.
    fill: f64,
    /// Whether a query sees what is behind it.
    causal: bool,
}

fn count_of_heads(node: &Node) -> Result<i64> {
    node.int("num_heads")?.filter(|n| *n > 0).ok_or_else(|| NodeError::invalid("`num_heads` is missing"))
}

/// `[batch, length, heads * size]` as `[batch, heads, length, size]`.
fn split_heads(scope: &mut Scope, x: Expr, heads: i64) -> Result<Expr> {
    let dims = scope.dims(&x)?;
    let [batch, length, width] = &dims[..] else {
        return Err(NodeError::unsupported(format!("a tensor of {} axes is not supported; of 3 it is", dims.len())));
    };
    let size = dims::floor_div(width, &prim::int(heads));
    let x = scope.reshape(x, vec![batch.clone(), length.clone(), prim::int(heads), size])?;
    scope.transpose(x, &[0, 2, 1, 3])
}

/// And back.
fn join_heads(scope: &mut Scope, x: Expr) -> Result<Expr> {
    let x = scope.transpose(x, &[0, 2, 1, 3])?;
    let dims = scope.dims(&x)?;
    let width = dims::product(&dims[2..]);
    scope.reshape(x, vec![dims[0].clone(), dims[1].clone(), width])
}

fn join(scope: &mut Scope, parts: [Expr; 2], axis: i64) -> Result<Expr> {
    scope.op("concat", [Expr::tuple(parts.to_vec())], Attrs::new().with("axis", axis))
}

/// Columns from one on.
fn columns(scope: &mut Scope, x: Expr, from: PrimExpr, count: PrimExpr) -> Result<Expr> {
    let mut dims = scope.dims(&x)?;
    if let Some(last) = dims.last_mut() {
        *last = count;
    }
    scope.te("columns", vec![x], |inputs| {
        let x = inputs[0].clone();
        vec![te::compute("columns", dims, |at: &[PrimExpr]| {
            let mut place = at.to_vec();
            if let Some(last) = place.last_mut() {
                *last = &*last + &from;
            }
            x.at(&place)
        })]
    })
}

fn product(scope: &mut Scope, node: &Node, a: Expr, b: Expr) -> Result<Expr> {
    only(matmul::matmul(scope, &node.with_inputs([a, b]))?)
}

/// The scores of hidden keys.
fn masked(scope: &mut Scope, scores: Expr, mask: Expr, fill: f64) -> Result<Expr> {
    let dims = scope.dims(&scores)?;
    let shape = scope.dims(&mask)?;
    let (rank, dtype) = (shape.len(), scope.dtype(&scores));
    let lengths = rank == 1 && (dims::equal(&shape[0], &dims[0]) || !dims::equal(&shape[0], &dims[3]));
    if rank > 4 || (rank == 1 && !lengths) {
        return Err(NodeError::unsupported(format!("a mask of {rank} axes is not supported")));
    }
    let (fixed, target) = (shape.clone(), dims.clone());
    let hidden = scope.te("mask", vec![mask], move |inputs| {
        let mask = inputs[0].clone();
        let read = |i: usize, at: &PrimExpr| if fixed[i].is_int(1) { prim::int(0) } else { at.clone() };
        vec![te::compute("mask", target, |at: &[PrimExpr]| {
            let seen = match rank {
                1 => prim::lt(at[3].clone(), prim::cast(DataType::int(64), mask.at(&[read(0, &at[0])]))),
                2 => prim::ne(mask.at(&[read(0, &at[0]), read(1, &at[3])]), prim::constant(mask.dtype(), 0.0)),
                3 => {
                    let place = [read(0, &at[0]), read(1, &at[2]), read(2, &at[3])];
                    prim::ne(mask.at(&place), prim::constant(mask.dtype(), 0.0))
                }
                _ => {
                    let place: Vec<PrimExpr> = at.iter().enumerate().map(|(i, at)| read(i, at)).collect();
                    prim::ne(mask.at(&place), prim::constant(mask.dtype(), 0.0))
                }
            };
            prim::select(seen, prim::constant(dtype, 0.0), prim::constant(dtype, fill))
        })]
    })?;
    scope.call("add", [scores, hidden])
}

/// Hides keys behind each query, which is the last of those before it.
fn causal(scope: &mut Scope, scores: Expr) -> Result<Expr> {
    let dims = scope.dims(&scores)?;
    let (ahead, dtype) = (&dims[3] - &dims[2], scope.dtype(&scores));
    scope.te("causal", vec![scores], |inputs| {
        let scores = inputs[0].clone();
        vec![te::compute("causal", dims, |at: &[PrimExpr]| {
            prim::select(prim::le(at[3].clone(), &at[2] + &ahead), scores.at(at), prim::lowest(dtype))
        })]
    })
}

/// The weighted values of every query, heads joined.
fn attend(scope: &mut Scope, node: &Node, heads: Heads, masks: Masks) -> Result<Expr> {
    let size = scope.dims(&heads.q)?[3].as_int();
    let scale = match node.float("scale")?.filter(|s| *s != 0.0) {
        Some(scale) => scale,
        None => {
            let size = size.ok_or_else(|| NodeError::unsupported("the size of a head is not fixed"))?;
            1.0 / (size as f64).sqrt()
        }
    };
    let q = with_number(scope, "multiply", heads.q, scale)?;
    let k = scope.transpose(heads.k, &[0, 1, 3, 2])?;
    let mut scores = product(scope, node, q, k)?;
    if let Some(bias) = masks.bias {
        scores = broadcast_call(scope, "add", [scores, bias])?;
    }
    if let Some(mask) = masks.mask {
        scores = masked(scope, scores, mask, masks.fill)?;
    }
    if masks.causal {
        scores = causal(scope, scores)?;
    }
    let weights = scope.op("nn.softmax", [scores], Attrs::new().with("axis", -1i64))?;
    let y = product(scope, node, weights, heads.v)?;
    join_heads(scope, y)
}

fn optional(scope: &mut Scope, node: &Node, i: usize) -> Result<Option<Expr>> {
    node.optional(i).map(|value| scope.tensor(value)).transpose()
}

/// `Attention`: queries, keys and values are one product of the input.
pub fn attention(scope: &mut Scope, node: &Node) -> Outputs {
    node.only_int("do_rotary", 0)?;
    node.only_int("past_present_share_buffer", 0)?;
    let count = count_of_heads(node)?;
    let (x, weights) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?);
    let mut all = product(scope, node, x, weights)?;
    if let Some(bias) = optional(scope, node, 2)? {
        all = broadcast_call(scope, "add", [all, bias])?;
    }
    let width = scope.dims(&all)?.last().cloned().unwrap_or_else(|| prim::int(0));
    let widths: Vec<PrimExpr> = match node.ints("qkv_hidden_sizes")? {
        Some(sizes) if sizes.len() == 3 => sizes.into_iter().map(prim::int).collect(),
        Some(sizes) => return Err(NodeError::invalid(format!("`qkv_hidden_sizes` is {sizes:?}, not three sizes"))),
        None => vec![dims::floor_div(&width, &prim::int(3)); 3],
    };
    let mut parts = Vec::new();
    let mut from = prim::int(0);
    for width in widths {
        let part = columns(scope, all.clone(), from.clone(), width.clone())?;
        parts.push(split_heads(scope, part, count)?);
        from = dims::simplify(&(from + width));
    }
    let (Some(v), Some(mut k), Some(q)) = (parts.pop(), parts.pop(), parts.pop()) else {
        return Err(NodeError::invalid("there are no parts"));
    };
    let mut v = v;
    if let Some(past) = optional(scope, node, 4)? {
        let old_k = crate::flow::rows::row(scope, past.clone(), 0, &prim::int(0))?;
        let old_v = crate::flow::rows::row(scope, past, 0, &prim::int(1))?;
        k = join(scope, [old_k, k], 2)?;
        v = join(scope, [old_v, v], 2)?;
    }
    let present = if node.outputs() > 1 { Some(stacked(scope, k.clone(), v.clone())?) } else { None };
    let masks = Masks {
        mask: optional(scope, node, 3)?,
        bias: optional(scope, node, 5)?,
        fill: node.float_or("mask_filter_value", -10000.0)?,
        causal: node.flag("unidirectional", false)?,
    };
    let y = attend(scope, node, Heads { q, k, v }, masks)?;
    Ok([Some(y), present].into_iter().flatten().map(Value::Computed).collect())
}

/// Keys and values as one tensor, as `Attention` keeps them.
fn stacked(scope: &mut Scope, k: Expr, v: Expr) -> Result<Expr> {
    let mut parts = Vec::new();
    for part in [k, v] {
        let mut dims = scope.dims(&part)?;
        dims.insert(0, prim::int(1));
        parts.push(scope.reshape(part, dims)?);
    }
    scope.op("concat", [Expr::tuple(parts)], Attrs::new().with("axis", 0i64))
}

/// `MultiHeadAttention`: queries, keys and values are given.
pub fn multi_head(scope: &mut Scope, node: &Node) -> Outputs {
    let count = count_of_heads(node)?;
    let mut query = scope.tensor(node.input(0)?)?;
    let help = "export the model with separate queries, keys and values";
    let (Some(mut key), Some(mut value)) = (optional(scope, node, 1)?, optional(scope, node, 2)?) else {
        return Err(NodeError::unsupported("packed queries, keys and values are not supported").help(help));
    };
    let width = scope.dims(&query)?.get(2).cloned().ok_or_else(|| NodeError::invalid("the query has not 3 axes"))?;
    let ready = scope.dims(&key)?.len() == 4;
    if let Some(bias) = optional(scope, node, 3)? {
        let total = scope.dims(&bias)?[0].clone();
        let own = columns(scope, bias.clone(), prim::int(0), width.clone())?;
        query = broadcast_call(scope, "add", [query, own])?;
        if !ready {
            let part = columns(scope, bias.clone(), width.clone(), width.clone())?;
            key = broadcast_call(scope, "add", [key, part])?;
            let rest = dims::simplify(&(&total - &width - &width));
            let part = columns(scope, bias, &width + &width, rest)?;
            value = broadcast_call(scope, "add", [value, part])?;
        }
    }
    let q = split_heads(scope, query, count)?;
    let (mut k, mut v) =
        if ready { (key, value) } else { (split_heads(scope, key, count)?, split_heads(scope, value, count)?) };
    if let (Some(old_k), Some(old_v)) = (optional(scope, node, 6)?, optional(scope, node, 7)?) {
        k = join(scope, [old_k, k], 2)?;
        v = join(scope, [old_v, v], 2)?;
    }
    let masks = Masks {
        mask: optional(scope, node, 4)?,
        bias: optional(scope, node, 5)?,
        fill: node.float_or("mask_filter_value", -10000.0)?,
        causal: node.flag("unidirectional", false)?,
    };
    let y = attend(scope, node, Heads { q, k: k.clone(), v: v.clone() }, masks)?;
    Ok([y, k, v].into_iter().map(Value::Computed).collect())
}

/// `RotaryEmbedding`: pairs of elements are turned by an angle that grows with the position.
pub fn rotary(scope: &mut Scope, node: &Node) -> Outputs {
    let given = scope.tensor(node.input(0)?)?;
    let rank = scope.dims(&given)?.len();
    let (cos, sin) = (scope.tensor(node.input(2)?)?, scope.tensor(node.input(3)?)?);
    let half = scope.dims(&cos)?.last().and_then(PrimExpr::as_int);
    let half = half.ok_or_else(|| NodeError::unsupported("the size of the tables is not fixed"))?;
    let x = match (rank, node.int_or("num_heads", 0)?) {
        (4, _) => given,
        (3, count @ 1..) => split_heads(scope, given, count)?,
        (3, _) => {
            let width = scope.dims(&given)?[2].clone();
            let count = dims::floor_div(&width, &prim::int(2 * half)).as_int();
            split_heads(scope, given, count.ok_or_else(|| NodeError::unsupported("the number of heads is not known"))?)?
        }
        _ => return Err(NodeError::invalid(format!("the input has {rank} axes, not 3 or 4"))),
    };
    let positions = scope.tensor(node.input(1)?)?;
    let (shape, from_one) = (scope.dims(&x)?, scope.dims(&positions)?.len() == 1);
    let (interleaved, turned) = (node.flag("interleaved", false)?, 2 * half);
    let y = scope.te("rotary", vec![x, positions, cos, sin], |inputs| {
        let (x, positions, cos, sin) = (&inputs[0], &inputs[1], &inputs[2], &inputs[3]);
        vec![te::compute("rotary", shape, |at: &[PrimExpr]| {
            let (batch, step, j) = (&at[0], &at[2], &at[3]);
            let position = if from_one {
                prim::cast(DataType::int(64), positions.at(&[prim::int(0)])) + step
            } else {
                prim::cast(DataType::int(64), positions.at(&[batch.clone(), step.clone()]))
            };
            // Which angle, the other of the pair, and whether this is the pair's first.
            let (angle, other, first) = if interleaved {
                let odd = prim::floormod(j, prim::int(2));
                (prim::floordiv(j, prim::int(2)), j + 1 - &odd * 2, prim::eq(odd, prim::int(0)))
            } else {
                let first = prim::lt(j.clone(), prim::int(half));
                let other = prim::select(first.clone(), j + half, j - half);
                (prim::floormod(j, prim::int(half)), other, first)
            };
            let inside = |e: PrimExpr| prim::min(prim::max(e, prim::int(0)), prim::int(turned - 1));
            let angle = prim::min(angle, prim::int(half - 1));
            let (cos, sin) = (cos.at(&[position.clone(), angle.clone()]), sin.at(&[position, angle]));
            let mut place = at.to_vec();
            place[3] = inside(other);
            let across = x.at(&place) * sin;
            let along = x.at(at) * cos;
            let value = prim::select(first, along.clone() - across.clone(), along + across);
            prim::if_then_else(prim::lt(j.clone(), prim::int(turned)), value, x.at(at))
        })]
    })?;
    one(if rank == 3 { join_heads(scope, y)? } else { y })
}
