//! Attention in heads: `Attention`, `QAttention`, `MultiHeadAttention`, `RotaryEmbedding`.
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
use crate::quantized::integer::{Integers, centred, only};
use crate::quantized::linear::zero_point;
use crate::quantized::words;
use crate::scope::Scope;
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

/// Queries, keys and values in heads.
pub(super) struct Heads {
    pub q: Expr,
    pub k: Expr,
    pub v: Expr,
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
pub(super) fn split_heads(scope: &mut Scope, x: Expr, heads: i64) -> Result<Expr> {
    let dims = scope.dims(&x)?;
    let [batch, length, width] = &dims[..] else {
        return Err(NodeError::unsupported(format!("a tensor of {} axes is not supported; of 3 it is", dims.len())));
    };
    let size = dims::floor_div(width, &prim::int(heads));
    let x = scope.reshape(x, vec![batch.clone(), length.clone(), prim::int(heads), size])?;
    scope.transpose(x, &[0, 2, 1, 3])
}

/// And back.
pub(super) fn join_heads(scope: &mut Scope, x: Expr) -> Result<Expr> {
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

pub(super) fn product(scope: &mut Scope, node: &Node, a: Expr, b: Expr) -> Result<Expr> {
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

pub(super) fn optional(scope: &mut Scope, node: &Node, i: usize) -> Result<Option<Expr>> {
    node.optional(i).map(|value| scope.tensor(value)).transpose()
}

/// `Attention`: queries, keys and values are one product of the input.
pub fn attention(scope: &mut Scope, node: &Node) -> Outputs {
    let (x, weights) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?);
    let mut all = product(scope, node, x, weights)?;
    if let Some(bias) = optional(scope, node, 2)? {
        all = broadcast_call(scope, "add", [all, bias])?;
    }
    let (mask, past, bias) = (optional(scope, node, 3)?, optional(scope, node, 4)?, optional(scope, node, 5)?);
    projected(scope, node, all, past, masks(node, mask, bias)?)
}

/// `QAttention`: the same with a product of integers.
pub fn quantized(scope: &mut Scope, node: &Node) -> Outputs {
    let (x, weights) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?);
    let (scale_x, scale_w) = (scope.tensor(node.input(3)?)?, scope.tensor(node.input(4)?)?);
    let (zero_x, zero_w) = (zero_point(scope, node, 6)?, zero_point(scope, node, 7)?);
    let x = Integers { values: x, zero: zero_x };
    let sum = match words::matmul(scope, node, &x, [1, 7])? {
        Some(sum) => sum,
        None => {
            let (x, weights) = (centred(scope, x.values, x.zero)?, centred(scope, weights, zero_w)?);
            product(scope, node, x, weights)?
        }
    };
    let real = scope.cast(sum, DataType::float(32))?;
    let scale = broadcast_call(scope, "multiply", [scale_x, scale_w])?;
    let mut all = broadcast_call(scope, "multiply", [real, scale])?;
    let bias = scope.tensor(node.input(2)?)?;
    all = broadcast_call(scope, "add", [all, bias])?;
    let (mask, past) = (optional(scope, node, 5)?, optional(scope, node, 8)?);
    projected(scope, node, all, past, masks(node, mask, None)?)
}

/// What a node says of the keys that queries do not see.
fn masks(node: &Node, mask: Option<Expr>, bias: Option<Expr>) -> Result<Masks> {
    let fill = node.float_or("mask_filter_value", -10000.0)?;
    Ok(Masks { mask, bias, fill, causal: node.flag("unidirectional", false)? })
}

/// Attention of queries, keys and values that lie side by side.
fn projected(scope: &mut Scope, node: &Node, all: Expr, past: Option<Expr>, masks: Masks) -> Outputs {
    node.only_int("do_rotary", 0)?;
    node.only_int("past_present_share_buffer", 0)?;
    let count = count_of_heads(node)?;
    let width = scope.dims(&all)?.last().cloned().unwrap_or_else(|| prim::int(0));
    let widths: Vec<PrimExpr> = match node.ints("qkv_hidden_sizes")? {
        Some(sizes) if sizes.len() == 3 => sizes.into_iter().map(prim::int).collect(),
        Some(sizes) => return Err(NodeError::invalid(format!("`qkv_hidden_sizes` is {sizes:?}, not three sizes"))),
        None => vec![dims::floor_div(&width, &prim::int(3)); 3],
    };
    let widths = <[PrimExpr; 3]>::try_from(widths).map_err(|_| NodeError::invalid("there are no parts"))?;
    let [q, mut k, mut v] = side_by_side(scope, all, widths, [count; 3])?;
    if let Some(past) = past {
        let old_k = crate::flow::rows::row(scope, past.clone(), 0, &prim::int(0))?;
        let old_v = crate::flow::rows::row(scope, past, 0, &prim::int(1))?;
        k = join(scope, [old_k, k], 2)?;
        v = join(scope, [old_v, v], 2)?;
    }
    let present = if node.outputs() > 1 { Some(stacked(scope, k.clone(), v.clone())?) } else { None };
    let y = attend(scope, node, Heads { q, k, v }, masks)?;
    Ok([Some(y), present].into_iter().flatten().map(Value::Computed).collect())
}

/// Queries, keys and values of given widths and numbers of heads, from columns that lie side by side.
pub(super) fn side_by_side(scope: &mut Scope, all: Expr, widths: [PrimExpr; 3], heads: [i64; 3]) -> Result<[Expr; 3]> {
    let [q, k, v] = widths;
    let from = [prim::int(0), q.clone(), dims::simplify(&(&q + &k))];
    let mut part = |i: usize, width: PrimExpr| {
        let columns = columns(scope, all.clone(), from[i].clone(), width)?;
        split_heads(scope, columns, heads[i])
    };
    Ok([part(0, q)?, part(1, k)?, part(2, v)?])
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

/// Part `i` of those that lie beside each other in each head: `[batch, length, heads, parts, size]`.
fn packed_part(scope: &mut Scope, x: Expr, i: i64) -> Result<Expr> {
    let dims = scope.dims(&x)?;
    let [batch, length, heads, _, size] = &dims[..] else {
        return Err(NodeError::invalid(format!("a packed tensor has 5 axes, not {}", dims.len())));
    };
    scope.te("part", vec![x], |inputs| {
        let shape = [batch, heads, length, size];
        vec![te::compute("part", shape, |at: &[PrimExpr]| {
            inputs[0].at(&[at[0].clone(), at[2].clone(), at[1].clone(), prim::int(i), at[3].clone()])
        })]
    })
}

/// Refuses a packed tensor that has not so many parts.
fn has_parts(scope: &Scope, x: &Expr, count: i64) -> Result<()> {
    match scope.dims(x)?.get(3).map(|parts| parts.is_int(count)) {
        Some(true) => Ok(()),
        _ => Err(NodeError::invalid(format!("a packed tensor must have {count} parts, known at import"))),
    }
}

/// The queries, keys and values of a `MultiHeadAttention`, whichever are packed, with their bias.
fn heads_of(scope: &mut Scope, node: &Node, count: i64) -> Result<Heads> {
    let query = scope.tensor(node.input(0)?)?;
    let (key, value) = (optional(scope, node, 1)?, optional(scope, node, 2)?);
    let rank = |scope: &Scope, x: &Expr| scope.dims(x).map(|dims| dims.len());
    let mut ready = false;
    let [q, k, v] = match (key, value) {
        (None, None) => {
            has_parts(scope, &query, 3)?;
            [0, 1, 2].map(|i| packed_part(scope, query.clone(), i))
        }
        (Some(key), None) => {
            has_parts(scope, &key, 2)?;
            let q = split_heads(scope, query, count);
            [q, packed_part(scope, key.clone(), 0), packed_part(scope, key, 1)]
        }
        (Some(key), Some(value)) if rank(scope, &key)? == 4 => {
            ready = true;
            [split_heads(scope, query, count), Ok(key), Ok(value)]
        }
        (Some(key), Some(value)) => [query, key, value].map(|x| split_heads(scope, x, count)),
        (None, Some(_)) => return Err(NodeError::invalid("there are values without keys")),
    };
    let mut parts = [q?, k?, v?];
    let Some(bias) = optional(scope, node, 3)? else {
        let [q, k, v] = parts;
        return Ok(Heads { q, k, v });
    };
    let mut from = prim::int(0);
    for part in parts.iter_mut().take(if ready { 1 } else { 3 }) {
        let (heads, size) = match &scope.dims(part)?[..] {
            [_, heads, _, size] => (heads.clone(), size.clone()),
            _ => return Err(NodeError::invalid("a part has not 4 axes")),
        };
        let width = dims::product([&heads, &size]);
        let own = columns(scope, bias.clone(), from.clone(), width.clone())?;
        let own = scope.reshape(own, vec![heads, prim::int(1), size])?;
        *part = broadcast_call(scope, "add", [part.clone(), own])?;
        from = dims::simplify(&(from + width));
    }
    let [q, k, v] = parts;
    Ok(Heads { q, k, v })
}

/// `MultiHeadAttention`: queries, keys and values are given, each on its own or packed.
pub fn multi_head(scope: &mut Scope, node: &Node) -> Outputs {
    let count = count_of_heads(node)?;
    let Heads { q, mut k, mut v } = heads_of(scope, node, count)?;
    if let (Some(old_k), Some(old_v)) = (optional(scope, node, 6)?, optional(scope, node, 7)?) {
        k = join(scope, [old_k, k], 2)?;
        v = join(scope, [old_v, v], 2)?;
    }
    let (mask, bias) = (optional(scope, node, 4)?, optional(scope, node, 5)?);
    let masks = masks(node, mask, bias)?;
    let y = attend(scope, node, Heads { q, k: k.clone(), v: v.clone() }, masks)?;
    Ok([y, k, v].into_iter().map(Value::Computed).collect())
}

/// `RotaryEmbedding`: pairs of elements are rotated by an angle that grows with the position.
pub fn rotary(scope: &mut Scope, node: &Node) -> Outputs {
    let given = scope.tensor(node.input(0)?)?;
    let rank = scope.dims(&given)?.len();
    let angles = Angles::of(scope, node, 2)?;
    let half = angles.half;
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
    let y = rotated_pairs(scope, x, positions, angles, node.flag("interleaved", false)?)?;
    one(if rank == 3 { join_heads(scope, y)? } else { y })
}

/// Tables of the angles of positions: `[positions, half]`.
#[derive(Clone)]
pub(super) struct Angles {
    cos: Expr,
    sin: Expr,
    half: i64,
}

impl Angles {
    /// Input `i` and the one behind it.
    pub fn of(scope: &mut Scope, node: &Node, i: usize) -> Result<Angles> {
        let (cos, sin) = (scope.tensor(node.input(i)?)?, scope.tensor(node.input(i + 1)?)?);
        let half = scope.dims(&cos)?.last().and_then(PrimExpr::as_int);
        let half = half.ok_or_else(|| NodeError::unsupported("the size of the tables is not fixed"))?;
        Ok(Angles { cos, sin, half })
    }
}

/// Heads whose first `2 * half` elements are rotated in pairs, by the angles of their positions: one for each row and step, or
/// that of the first step.
pub(super) fn rotated_pairs(
    scope: &mut Scope,
    x: Expr,
    positions: Expr,
    angles: Angles,
    interleaved: bool,
) -> Result<Expr> {
    let Angles { cos, sin, half } = angles;
    let shape = scope.dims(&x)?;
    let tables = scope.dims(&cos)?;
    let [steps, _] = &tables[..] else {
        return Err(NodeError::invalid(format!("the tables have {} axes, not 2", tables.len())));
    };
    let sin = scope.agree(sin, &tables)?;
    let (positions, from_one) = match scope.dims(&positions)?.len() {
        1 => (positions, true),
        2 => (scope.agree(positions, &[shape[0].clone(), shape[2].clone()])?, false),
        n => return Err(NodeError::invalid(format!("the positions have {n} axes, not 1 or 2"))),
    };
    let last = steps - 1;
    let rotated = 2 * half;
    scope.te("rotary", vec![x, positions, cos, sin], |inputs| {
        let (x, positions, cos, sin) = (&inputs[0], &inputs[1], &inputs[2], &inputs[3]);
        vec![te::compute("rotary", shape, |at: &[PrimExpr]| {
            let (batch, step, j) = (&at[0], &at[2], &at[3]);
            let position = if from_one {
                prim::cast(DataType::int(64), positions.at(&[prim::int(0)])) + step
            } else {
                prim::cast(DataType::int(64), positions.at(&[batch.clone(), step.clone()]))
            };
            // A position that the tables do not have is the caller's mistake, and must not read elsewhere.
            let position = prim::max(prim::min(position, last.clone()), prim::int(0));
            // An element and the other of its pair, each times its part of the angle.
            let parts = |angle: PrimExpr, other: PrimExpr| {
                let place = [at[0].clone(), at[1].clone(), step.clone(), other];
                let along = x.at(at) * cos.at(&[position.clone(), angle.clone()]);
                (along, x.at(&place) * sin.at(&[position.clone(), angle]))
            };
            let value = if interleaved {
                let odd = prim::floormod(j, prim::int(2));
                let inside = |e: PrimExpr| prim::min(prim::max(e, prim::int(0)), prim::int(rotated - 1));
                let angle = prim::min(prim::floordiv(j, prim::int(2)), prim::int(half - 1));
                let (along, across) = parts(angle, inside(j + 1 - &odd * 2));
                prim::select(prim::eq(odd, prim::int(0)), along.clone() - across.clone(), along + across)
            } else {
                // Each half of a row lies side by side.
                let (along, across) = parts(j.clone(), j + half);
                let first = along - across;
                let (along, across) = parts(j - half, j - half);
                prim::if_then_else(prim::lt(j.clone(), prim::int(half)), first, along + across)
            };
            prim::if_then_else(prim::lt(j.clone(), prim::int(rotated)), value, x.at(at))
        })]
    })
}
