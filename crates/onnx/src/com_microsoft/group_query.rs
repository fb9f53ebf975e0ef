//! `GroupQueryAttention`: several heads of queries share one of keys and values, and past ones are kept in a buffer.
//!
//! Of row `b`, `total = seqlens_k[b] + 1` keys are known behind the node, the last `length` of them new (in a first prompt,
//! where all are new, `length` of them). What is kept is as long as the buffer that is given, or as `total_sequence_length`:
//!
//! ```text
//! past[b]          = total - length, or 0 in a first prompt
//! present[b, j]    = past_key[b, j] if j < past[b], key[b, j - past[b]] if j < past[b] + length, else 0
//! score[b, s, j]   = q[b, s] · present[b, j] * scale    for j <= past[b] + s, within the window
//! ```
//!
//! What the numbers of keys say is kept inside of the buffers: one that does not fit gives other numbers, not other memory.
//! Not here: quantized caches, sinks of heads (`smooth_softmax`, `head_sink`), biases and scores as an output.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::attention::{Angles, Heads, join_heads, optional, product, rotated_pairs, side_by_side, split_heads};
use crate::dims;
use crate::error::NodeError;
use crate::flow::loops::whole;
use crate::node::Node;
use crate::ops::Outputs;
use crate::ops::elementwise::with_number;
use crate::scope::Scope;
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

const INDEX: DataType = DataType::int(64);

/// What a node says.
struct Query {
    heads: i64,
    kv_heads: i64,
    /// Extents of the new part and of what is kept.
    batch: PrimExpr,
    length: PrimExpr,
    kept: PrimExpr,
    /// How many old keys each row has.
    past: Expr,
    softcap: f64,
    /// How many keys a query sees, itself included; all if negative.
    window: i64,
}

fn refuse_what_is_missing(node: &Node) -> Result<()> {
    node.only_int("smooth_softmax", 0)?;
    node.only_int("qk_output", 0)?;
    node.only_int("kv_cache_bit_width", 0)?;
    for (i, name) in [(10, "attention_bias"), (11, "head_sink"), (12, "k_scale"), (13, "v_scale")] {
        if node.optional(i).is_some() {
            return Err(NodeError::unsupported(format!("`{name}` is not supported")));
        }
    }
    Ok(())
}

/// `GroupQueryAttention`.
pub fn group_query(scope: &mut Scope, node: &Node) -> Outputs {
    refuse_what_is_missing(node)?;
    let count = |name: &str| {
        node.int(name)?.filter(|n| *n > 0).ok_or_else(|| NodeError::invalid(format!("`{name}` is missing")))
    };
    let (heads, kv_heads) = (count("num_heads")?, count("kv_num_heads")?);
    if heads % kv_heads != 0 {
        return Err(NodeError::invalid(format!("{heads} heads of queries are no multiple of {kv_heads}")));
    }
    let [mut q, mut k, v] = parts(scope, node, heads, kv_heads)?;
    let (old_k, old_v) = (optional(scope, node, 3)?, optional(scope, node, 4)?);
    let query = query(scope, node, [&q, &k], old_k.as_ref(), [heads, kv_heads])?;
    if node.flag("do_rotary", false)? {
        let angles = Angles::of(scope, node, 7)?;
        let positions = match optional(scope, node, 9)? {
            Some(positions) => positions,
            None => query.positions(scope)?,
        };
        let interleaved = node.flag("rotary_interleaved", false)?;
        q = rotated_pairs(scope, q, positions.clone(), angles.clone(), interleaved)?;
        k = rotated_pairs(scope, k, positions, angles, interleaved)?;
    }
    let k = query.present(scope, k, old_k)?;
    let v = query.present(scope, v, old_v)?;
    let size = scope.dims(&q)?[3].as_int();
    let scale = match (node.float("scale")?.filter(|s| *s != 0.0), size) {
        (Some(scale), _) => scale,
        (None, Some(size)) => 1.0 / (size as f64).sqrt(),
        (None, None) => return Err(NodeError::unsupported("the size of a head is not fixed")),
    };
    let q = with_number(scope, "multiply", q, scale)?;
    let y = query.attend(scope, node, Heads { q, k: k.clone(), v: v.clone() })?;
    Ok([y, k, v].into_iter().map(Value::Computed).collect())
}

/// Queries, keys and values in heads: given apart, or side by side.
fn parts(scope: &mut Scope, node: &Node, heads: i64, kv_heads: i64) -> Result<[Expr; 3]> {
    let query = scope.tensor(node.input(0)?)?;
    match (optional(scope, node, 1)?, optional(scope, node, 2)?) {
        (Some(key), Some(value)) => Ok([
            split_heads(scope, query, heads)?,
            split_heads(scope, key, kv_heads)?,
            split_heads(scope, value, kv_heads)?,
        ]),
        (None, None) => {
            let width = scope.dims(&query)?.last().cloned().unwrap_or_else(|| prim::int(0));
            let size = dims::floor_div(&width, &prim::int(heads + 2 * kv_heads));
            let widths = [heads, kv_heads, kv_heads].map(|n| dims::simplify(&(&size * n)));
            side_by_side(scope, query, widths, [heads, kv_heads, kv_heads])
        }
        _ => Err(NodeError::invalid("keys and values are given together or not at all")),
    }
}

fn query(
    scope: &mut Scope,
    node: &Node,
    [q, k]: [&Expr; 2],
    old: Option<&Expr>,
    [heads, kv_heads]: [i64; 2],
) -> Result<Query> {
    let (batch, length) = match (&scope.dims(q)?[..], &scope.dims(k)?[..]) {
        ([batch, _, length, _], [_, _, other, _]) if !dims::differ(length, other) => (batch.clone(), length.clone()),
        _ => return Err(NodeError::invalid("there are not as many keys as queries")),
    };
    let total = whole(scope, node.input(6)?)?;
    let old = match old {
        None => prim::int(0),
        Some(old) => match &scope.dims(old)?[..] {
            [_, _, old, _] => old.clone(),
            dims => return Err(NodeError::invalid(format!("past keys have {} axes, not 4", dims.len()))),
        },
    };
    let kept = dims::simplify(&prim::max(&old, &total));
    let lengths = scope.tensor(node.input(5)?)?;
    let count = dims::product(&scope.dims(&lengths)?);
    let lengths = scope.reshape(lengths, vec![count])?;
    let lengths = scope.agree(lengths, std::slice::from_ref(&batch))?;
    let (rows, new) = (vec![batch.clone()], length.clone());
    let past = scope.te("past", vec![lengths], |inputs| {
        vec![te::compute("past", rows, |at: &[PrimExpr]| {
            let behind = prim::cast(INDEX, inputs[0].at(at)) + 1 - &new;
            let before = prim::select(prim::eq(&new, &total), prim::int(0), behind);
            prim::max(prim::min(before, old.clone()), prim::int(0))
        })]
    })?;
    let (softcap, window) = (node.float_or("softcap", 0.0)?, node.int_or("local_window_size", -1)?);
    Ok(Query { heads, kv_heads, batch, length, kept, past, softcap, window })
}

impl Query {
    /// The position of each new key.
    fn positions(&self, scope: &mut Scope) -> Result<Expr> {
        scope.te("positions", vec![self.past.clone()], |inputs| {
            vec![te::compute("positions", [&self.batch, &self.length], |at: &[PrimExpr]| {
                inputs[0].at(&at[..1]) + &at[1]
            })]
        })
    }

    /// Old and new keys, or values.
    fn present(&self, scope: &mut Scope, new: Expr, old: Option<Expr>) -> Result<Expr> {
        let mut dims = scope.dims(&new)?;
        (dims[0], dims[2]) = (self.batch.clone(), self.length.clone());
        let new = scope.agree(new, &dims)?;
        let shape = [&self.batch, &dims[1], &self.kept, &dims[3]];
        let dtype = scope.dtype(&new);
        let mut args = vec![self.past.clone(), new];
        if let Some(old) = old {
            let mut wanted = dims.clone();
            wanted[2] = scope.dims(&old)?[2].clone();
            args.push(scope.agree(old, &wanted)?);
        }
        scope.te("present", args, |inputs| {
            vec![te::compute("present", shape, |at: &[PrimExpr]| {
                let place = |j: PrimExpr| [at[0].clone(), at[1].clone(), j, at[3].clone()];
                let past = inputs[0].at(&at[..1]);
                let j = &at[2];
                let added = inputs[1].at(&place(j - &past));
                let fits = prim::lt(j, past.clone() + &self.length);
                let new = prim::if_then_else(fits, added, prim::constant(dtype, 0.0));
                match inputs.get(2) {
                    Some(old) => prim::if_then_else(prim::lt(j, past), old.at(&place(j.clone())), new),
                    None => new,
                }
            })]
        })
    }

    /// The weighted values of every query, heads joined.
    fn attend(&self, scope: &mut Scope, node: &Node, heads: Heads) -> Result<Expr> {
        let Heads { q, k, v } = heads;
        let size = scope.dims(&q)?[3].clone();
        let group = prim::int(self.heads / self.kv_heads);
        let rows = dims::product([&group, &self.length]);
        let shared = |last: &PrimExpr| vec![self.batch.clone(), prim::int(self.kv_heads), rows.clone(), last.clone()];
        let apart =
            |last: &PrimExpr| vec![self.batch.clone(), prim::int(self.heads), self.length.clone(), last.clone()];
        let q = scope.reshape(q, shared(&size))?;
        let transposed = scope.transpose(k, &[0, 1, 3, 2])?;
        let scores = product(scope, node, q, transposed)?;
        let mut scores = scope.reshape(scores, apart(&self.kept))?;
        if self.softcap > 0.0 {
            let narrowed = with_number(scope, "divide", scores, self.softcap)?;
            let capped = scope.call("tanh", [narrowed])?;
            scores = with_number(scope, "multiply", capped, self.softcap)?;
        }
        let scores = self.seen(scope, scores)?;
        let weights = scope.op("nn.softmax", [scores], Attrs::new().with("axis", -1i64))?;
        let weights = scope.reshape(weights, shared(&self.kept))?;
        let y = product(scope, node, weights, v)?;
        let y = scope.reshape(y, apart(&size))?;
        join_heads(scope, y)
    }

    /// Hides keys behind each query, and those before its window.
    fn seen(&self, scope: &mut Scope, scores: Expr) -> Result<Expr> {
        let (dims, dtype) = (scope.dims(&scores)?, scope.dtype(&scores));
        scope.te("seen", vec![scores, self.past.clone()], |inputs| {
            vec![te::compute("seen", dims, |at: &[PrimExpr]| {
                let place = inputs[1].at(&at[..1]) + &at[2];
                let mut seen = prim::le(at[3].clone(), place.clone());
                if self.window >= 0 {
                    seen = prim::and(seen, prim::gt(at[3].clone(), place - self.window));
                }
                prim::select(seen, inputs[0].at(at), prim::lowest(dtype))
            })]
        })
    }
}
