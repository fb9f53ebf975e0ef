//! Attention: the products of queries with keys, a bias of what may be seen, softmax, the product with the values.
//!
//! Written out in operators, so that fusion and the products' own schedules serve it. Groups of query heads that share a key
//! head are rows of one product: nothing is repeated.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::Outputs;
use super::elementwise::with_number;
use super::matmul::product;
use crate::constant;
use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

/// What each query may see, apart from the mask.
struct Visibility {
    causal: bool,
    left: i64,
    right: i64,
}

/// Queries, keys and values by head, and how many keys come from earlier calls.
struct AttentionInputs {
    q: Expr,
    k: Expr,
    v: Expr,
    past: PrimExpr,
}

/// The inputs of a node, keys and values behind those of earlier calls.
fn parts(scope: &mut Scope, node: &Node) -> Result<AttentionInputs> {
    let heads = (node.int("q_num_heads")?, node.int("kv_num_heads")?);
    let q = by_head(scope, node, 0, heads.0)?;
    let (mut k, mut v) = (by_head(scope, node, 1, heads.1)?, by_head(scope, node, 2, heads.1)?);
    let mut past = prim::int(0);
    if let (Some(key), Some(value)) = (node.optional(4), node.optional(5)) {
        let (key, value) = (scope.tensor(key)?, scope.tensor(value)?);
        let [_, _, rows, _] = four(scope, &key)?;
        past = rows;
        k = joined(scope, key, k)?;
        v = joined(scope, value, v)?;
    }
    Ok(AttentionInputs { q, k, v, past })
}

/// The products of queries with keys, scaled: queries alone, where a step has one of them and many keys; both by the root, as the standard
/// says, where products of narrow floats would leave their range.
pub fn scores(scope: &mut Scope, node: &Node, q: Expr, k: Expr) -> Result<Expr> {
    let [batch, q_heads, rows, size] = four(scope, &q)?;
    let [_, kv_heads, columns, _] = four(scope, &k)?;
    let scale = match node.float("scale")? {
        Some(scale) => scale,
        None => 1.0 / size.as_int().map(|n| n as f64).ok_or_else(|| not_fixed("the size of a head"))?.sqrt(),
    };
    let (mut q, mut k) = (q, k);
    if scope.dtype(&q).bits >= 32 {
        q = with_number(scope, "multiply", q, scale)?;
    } else {
        let root = scale.abs().sqrt();
        q = with_number(scope, "multiply", q, root)?;
        k = with_number(scope, "multiply", k, if scale < 0.0 { -root } else { root })?;
    }
    let grouped = dims::simplify(&(dims::floor_div(&q_heads, &kv_heads) * &rows));
    let q = scope.reshape(q, vec![batch.clone(), kv_heads, grouped, size])?;
    let transposed = scope.transpose(k, &[0, 1, 3, 2])?;
    let scores = product(scope, [q, transposed])?;
    scope.reshape(scores, vec![batch, q_heads, rows, columns])
}

/// `cap * tanh(x / cap)`, where a cap is given.
fn capped(scope: &mut Scope, node: &Node, scores: Expr) -> Result<Expr> {
    match node.float_or("softcap", 0.0)? {
        cap if cap > 0.0 => {
            let small = with_number(scope, "divide", scores, cap)?;
            let bent = scope.call("tanh", [small])?;
            with_number(scope, "multiply", bent, cap)
        }
        _ => Ok(scores),
    }
}

/// The values mixed by weights, heads of queries in groups.
pub fn mixed(scope: &mut Scope, weights: Expr, v: Expr) -> Result<Expr> {
    let [batch, q_heads, rows, columns] = four(scope, &weights)?;
    let [_, kv_heads, _, width] = four(scope, &v)?;
    let grouped = dims::simplify(&(dims::floor_div(&q_heads, &kv_heads) * &rows));
    let weights = scope.reshape(weights, vec![batch.clone(), kv_heads, grouped, columns])?;
    let mixed = product(scope, [weights, v])?;
    scope.reshape(mixed, vec![batch, q_heads, rows, width])
}

/// `Attention`.
pub fn attention(scope: &mut Scope, node: &Node) -> Outputs {
    let packed = scope.value_dims(node.input(0)?)?.len() == 3;
    let AttentionInputs { q, k, v, past } = parts(scope, node)?;
    let dtype = scope.dtype(&q);
    let raw = scores(scope, node, q, k.clone())?;
    let capped = capped(scope, node, raw.clone())?;
    let (biased, bias) = biased(scope, node, capped.clone(), past)?;
    let work = match node.int("softmax_precision")? {
        Some(number) => constant::dtype_of(number).map_err(|e| NodeError::unsupported(e.to_string()))?,
        None => dtype,
    };
    let probabilities = probabilities(scope, biased.clone(), bias, work)?;
    let weights = scope.cast(probabilities, dtype)?;
    let shown = match node.int_or("qk_matmul_output_mode", 0)? {
        0 => raw,
        1 => capped,
        2 => biased,
        3 => weights.clone(),
        other => return Err(NodeError::invalid(format!("`qk_matmul_output_mode` is {other}"))),
    };
    let mut y = mixed(scope, weights, v.clone())?;
    if packed {
        let [batch, heads, rows, width] = four(scope, &y)?;
        y = scope.transpose(y, &[0, 2, 1, 3])?;
        y = scope.reshape(y, vec![batch, rows, dims::simplify(&(heads * width))])?;
    }
    Ok([y, k, v, shown].map(Value::Computed).into())
}

fn not_fixed(what: &str) -> NodeError {
    NodeError::unsupported(format!("{what} is not fixed")).help("give the input a fixed shape (`shape_dict`)")
}

fn four(scope: &Scope, x: &Expr) -> Result<[PrimExpr; 4]> {
    let dims = scope.dims(x)?;
    let n = dims.len();
    dims.try_into().map_err(|_| NodeError::invalid(format!("an input has {n} axes, not 4")))
}

/// An input as batch, heads, sequence, elements.
pub fn by_head(scope: &mut Scope, node: &Node, i: usize, heads: Option<i64>) -> Result<Expr> {
    let x = scope.tensor(node.input(i)?)?;
    match &scope.dims(&x)?[..] {
        [_, _, _, _] => Ok(x),
        [batch, rows, width] => {
            let heads = heads.filter(|h| *h > 0).ok_or_else(|| NodeError::invalid("the number of heads is missing"))?;
            let size = dims::floor_div(width, &prim::int(heads));
            let split = scope.reshape(x, vec![batch.clone(), rows.clone(), prim::int(heads), size])?;
            scope.transpose(split, &[0, 2, 1, 3])
        }
        other => Err(NodeError::invalid(format!("input {i} has {} axes, not 3 or 4", other.len()))),
    }
}

fn joined(scope: &mut Scope, past: Expr, new: Expr) -> Result<Expr> {
    let mut both = [past, new];
    for axis in [0, 1, 3] {
        scope.agree_on(&mut both, &[axis, axis])?;
    }
    scope.op("concat", [Expr::tuple(both.to_vec())], Attrs::new().with("axis", 2i64))
}

/// Scores with their bias, and the bias alone if there is one: nothing is seen where it is minus infinity.
fn biased(scope: &mut Scope, node: &Node, scores: Expr, past: PrimExpr) -> Result<(Expr, Option<Expr>)> {
    let window = |name| node.int_or(name, -1);
    let visibility = Visibility {
        causal: node.flag("is_causal", false)?,
        left: window("left_window_size")?,
        right: window("right_window_size")?,
    };
    let mask = node.optional(3).map(|v| scope.tensor(v)).transpose()?;
    let lengths = node.optional(6).map(|v| scope.tensor(v)).transpose()?;
    if mask.is_none() && lengths.is_none() && !visibility.causal && visibility.left < 0 && visibility.right < 0 {
        return Ok((scores, None));
    }
    let full = scope.dims(&scores)?;
    let dtype = scope.dtype(&scores);
    let mut args = Vec::new();
    if let Some(mask) = mask {
        let mask = if scope.dtype(&mask).is_bool() { mask } else { scope.cast(mask, dtype)? };
        let own = scope.dims(&mask)?;
        let front = own.len().saturating_sub(1);
        let odd = |(n, m): (&PrimExpr, &PrimExpr)| !n.is_int(1) && dims::differ(n, m);
        if own.is_empty() || own.len() > 4 || own[..front].iter().zip(&full[4 - own.len()..]).any(odd) {
            return Err(NodeError::invalid("the mask does not fit the scores"));
        }
        args.push(mask);
    }
    let has_mask = !args.is_empty();
    if let Some(lengths) = lengths {
        let batch = full[0].clone();
        let lengths = scope.cast(lengths, DataType::int(64))?;
        args.push(scope.agree(lengths, &[batch])?);
    }
    let (has_lengths, rows) = (args.len() > usize::from(has_mask), full[2].clone());
    let hidden = prim::lowest(dtype);
    let bias = scope.te("attention_bias", args, |inputs| {
        let mask = inputs.first().filter(|_| has_mask);
        let lengths = inputs.last().filter(|_| has_lengths);
        vec![te::compute("bias", &full, |at| {
            let (row, column) = (&at[2], &at[3]);
            let own = mask.map_or(prim::constant(dtype, 0.0), |mask| mask_at(mask, at, &hidden));
            let offset = match lengths {
                Some(lengths) => lengths.at(&at[..1]) - &rows,
                None => past.clone(),
            };
            let place = row + offset;
            let mut seen = prim::boolean(true);
            if visibility.causal {
                seen = prim::and(seen, prim::le(column, &place));
            }
            if visibility.left >= 0 {
                seen = prim::and(seen, prim::ge(column, &place - visibility.left));
            }
            if visibility.right >= 0 {
                seen = prim::and(seen, prim::le(column, &place + visibility.right));
            }
            if let Some(lengths) = lengths {
                seen = prim::and(seen, prim::lt(column, lengths.at(&at[..1])));
            }
            prim::if_then_else(seen, own, hidden.clone())
        })]
    })?;
    let sum = scope.call("add", [scores, bias.clone()])?;
    Ok((sum, Some(bias)))
}

/// The bias of a mask, which is broadcast and may be shorter than the keys.
fn mask_at(mask: &te::Tensor, at: &[PrimExpr], hidden: &PrimExpr) -> PrimExpr {
    let lead = at.len() - mask.ndim();
    let place = |(i, n): (&PrimExpr, &PrimExpr)| match n.as_int() {
        Some(1) => prim::int(0),
        Some(_) => i.clone(),
        // Either the axis is as long as the scores', or it has one element.
        None => prim::min(i.clone(), n - 1),
    };
    let mut index: Vec<PrimExpr> = at[lead..].iter().zip(mask.shape()).map(place).collect();
    let mut there = prim::boolean(true);
    if let (Some(last), Some(column), Some(size)) = (index.last_mut(), at.last(), mask.shape().last()) {
        // The last axis is not broadcast: what it lacks is hidden.
        *last = column.clone();
        there = prim::lt(column, size);
    }
    let element = mask.at(&index);
    let own = if mask.dtype().is_bool() {
        prim::select(element, prim::constant(hidden.dtype(), 0.0), hidden.clone())
    } else {
        element
    };
    prim::if_then_else(there, own, hidden.clone())
}

/// Softmax in an element type. A row in which nothing is seen is zero.
fn probabilities(scope: &mut Scope, scores: Expr, bias: Option<Expr>, work: DataType) -> Result<Expr> {
    let scores = scope.cast(scores, work)?;
    let Some(bias) = bias else {
        return if work.bits < 32 { narrow_softmax(scope, scores, -1) } else { softmax(scope, scores) };
    };
    let last = Attrs::new().with("axis", vec![-1i64]).with("keepdims", true);
    let best = scope.op("max", [bias], last)?;
    let nothing = with_number(scope, "equal", best, f64::NEG_INFINITY)?;
    let zero = scope.scalar(0.0, work)?;
    // Rows without anything to see would be NaN; they are computed of zeros and dropped.
    let scores = scope.call("where", [nothing.clone(), zero.clone(), scores])?;
    let shares = if work.bits < 32 { narrow_softmax(scope, scores, -1)? } else { softmax(scope, scores)? };
    scope.call("where", [nothing, zero, shares])
}

fn softmax(scope: &mut Scope, scores: Expr) -> Result<Expr> {
    scope.op("nn.softmax", [scores], Attrs::new().with("axis", -1i64))
}

/// Softmax of narrow floats, each step rounded to them but the sum.
pub fn narrow_softmax(scope: &mut Scope, scores: Expr, axis: i64) -> Result<Expr> {
    let dtype = scope.dtype(&scores);
    let last = Attrs::new().with("axis", vec![axis]).with("keepdims", true);
    let top = scope.op("max", [scores.clone()], last.clone())?;
    let shifted = scope.call("subtract", [scores, top])?;
    let power = scope.call("exp", [shifted])?;
    let wide = scope.cast(power.clone(), DataType::float(32))?;
    let sum = scope.op("sum", [wide], last)?;
    let sum = scope.cast(sum, dtype)?;
    scope.call("divide", [power, sum])
}
