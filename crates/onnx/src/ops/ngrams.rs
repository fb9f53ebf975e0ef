//! `TfIdfVectorizer`: how often each of a list of n-grams occurs in a row, with gaps allowed.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::{Outputs, one};
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;
use crate::{text, text_ops};

type Result<T> = std::result::Result<T, NodeError>;

/// The most outputs; the coordinates of a model may be anything.
const MAX_OUTPUTS: i64 = 1 << 24;

/// The most items of all n-grams together, which a small file could otherwise make of one pool.
const MAX_ITEMS: usize = 1 << 24;

/// An n-gram of the pool: its items, and the output that counts it.
struct Gram {
    items: Vec<i64>,
    output: i64,
    weight: f32,
}

/// `TfIdfVectorizer`.
pub fn tf_idf(scope: &mut Scope, node: &Node) -> Outputs {
    // Texts are computed with as places among the different items of the pool.
    let words = text::attribute(node, "pool_strings")?;
    let pool = match &words {
        Some(words) => {
            let places: HashMap<&str, i64> = words.iter().enumerate().map(|(i, w)| (w.as_str(), i as i64)).collect();
            words.iter().map(|word| places.get(word.as_str()).copied().unwrap_or(-1)).collect()
        }
        None => node.ints("pool_int64s")?.ok_or_else(|| NodeError::invalid("it has no pool"))?,
    };
    let grams = grams(node, &pool)?;
    let outputs = grams.iter().map(|g| g.output + 1).max().unwrap_or(0);
    let mode = node.str_or("mode", "TF")?;
    if !matches!(mode, "TF" | "IDF" | "TFIDF") {
        return Err(NodeError::invalid(format!("`mode` is \"{mode}\"")));
    }
    let skips = node.int_or("max_skip_count", 0)?.clamp(0, 1 << 20);
    let lengths = node.int_or("min_gram_length", 1)?..=node.int_or("max_gram_length", 1)?;
    let x = text_ops::items(scope, node, words.as_deref())?;
    let shape = scope.dims(&x)?;
    let (rows, row, flat) = match &shape[..] {
        [n] => (prim::int(1), n.clone(), true),
        [rows, n] => (rows.clone(), n.clone(), false),
        other => return Err(NodeError::invalid(format!("the input has {} axes, not 1 or 2", other.len()))),
    };
    let x = scope.reshape(x, vec![rows.clone(), row.clone()])?;
    let counts = counted(scope, x, &grams, outputs, skips, lengths)?;
    let weights = weighed(&grams, outputs);
    let weights = scope.constant(&weights, &[outputs], DataType::float(32))?;
    let result = match mode {
        "TF" => counts,
        "IDF" => {
            let some = super::elementwise::with_number(scope, "minimum", counts, 1.0)?;
            scope.call("multiply", [some, weights])?
        }
        _ => scope.call("multiply", [counts, weights])?,
    };
    let dims = if flat { vec![prim::int(outputs)] } else { vec![rows, prim::int(outputs)] };
    one(scope.reshape(result, dims)?)
}

fn weighed(grams: &[Gram], outputs: i64) -> Vec<f64> {
    let mut weights = vec![1.0; usize::try_from(outputs).unwrap_or(0)];
    for gram in grams {
        if let Some(weight) = usize::try_from(gram.output).ok().and_then(|i| weights.get_mut(i)) {
            *weight = f64::from(gram.weight);
        }
    }
    weights
}

/// The n-grams that a node lists, each length from its own place on.
fn grams(node: &Node, pool: &[i64]) -> Result<Vec<Gram>> {
    let invalid = |why: &str| NodeError::invalid(why.to_string());
    let starts = node.ints("ngram_counts")?.ok_or_else(|| invalid("`ngram_counts` is missing"))?;
    let indexes = node.ints("ngram_indexes")?.ok_or_else(|| invalid("`ngram_indexes` is missing"))?;
    let weights = node.floats("weights")?.unwrap_or_else(|| vec![1.0; indexes.len()]);
    let mut grams = Vec::new();
    let mut total = 0usize;
    for (n, &start) in starts.iter().enumerate() {
        let end = starts.get(n + 1).copied().unwrap_or(pool.len() as i64);
        let part = usize::try_from(start).ok().zip(usize::try_from(end).ok()).and_then(|(a, b)| pool.get(a..b));
        let part = part.ok_or_else(|| invalid("`ngram_counts` does not fit the pool"))?;
        for items in part.chunks_exact(n + 1) {
            let at = grams.len();
            total += items.len();
            if total > MAX_ITEMS {
                return Err(NodeError::unsupported(format!("the n-grams have more than {MAX_ITEMS} items")));
            }
            let output = indexes.get(at).copied().filter(|i| (0..MAX_OUTPUTS).contains(i));
            let output = output.ok_or_else(|| invalid("`ngram_indexes` does not fit the pool"))?;
            let weight = weights.get(at).copied().ok_or_else(|| invalid("`weights` does not fit the pool"))?;
            grams.push(Gram { items: items.to_vec(), output, weight });
        }
    }
    Ok(grams)
}

/// How often each output's n-gram occurs in each row: a sum over places, gaps and n-grams of one length.
fn counted(
    scope: &mut Scope,
    x: Expr,
    grams: &[Gram],
    outputs: i64,
    skips: i64,
    lengths: RangeInclusive<i64>,
) -> Result<Expr> {
    let shape = scope.dims(&x)?;
    let real = DataType::float(32);
    let dims = [shape[0].clone(), prim::int(outputs)];
    let zero = scope.scalar(0.0, real)?;
    let mut total =
        scope.op("full", [Expr::shape(dims.to_vec()), zero], relaxide_ir::Attrs::new().with("dtype", real))?;
    for n in (*lengths.start()).max(1)..=(*lengths.end()).min(64) {
        let own: Vec<&Gram> = grams.iter().filter(|g| g.items.len() as i64 == n).collect();
        if own.is_empty() {
            continue;
        }
        let wide = DataType::int(64);
        let items = own.iter().flat_map(|g| g.items.iter().flat_map(|v| v.to_le_bytes())).collect::<Vec<u8>>();
        let places = own.iter().flat_map(|g| g.output.to_le_bytes()).collect::<Vec<u8>>();
        let tensor =
            |bytes: &[u8], dims: &[i64]| relaxide_frontend::constant::from_bytes(bytes, dims, wide).map(Expr::constant);
        let count = own.len() as i64;
        let (items, places) = (tensor(&items, &[count, n])?, tensor(&places, &[count])?);
        // Without a second item there is no gap.
        let gaps = if n == 1 { 1 } else { skips + 1 };
        let size = shape[1].clone();
        let part = scope.te("ngrams", vec![x.clone(), items, places], |inputs| {
            vec![te::compute("counts", &dims, |at| {
                let over = [te::reduce_axis(size.clone()), te::reduce_axis(gaps), te::reduce_axis(count)];
                let [start, gap, gram] = [over[0].var(), over[1].var(), over[2].var()];
                let place = |k: i64| &start + (&gap + 1) * k;
                let same = |k: i64| {
                    prim::eq(inputs[0].at(&[at[0].clone(), place(k)]), inputs[1].at(&[gram.clone(), prim::int(k)]))
                };
                let mine = prim::eq(inputs[2].at(std::slice::from_ref(&gram)), &at[1]);
                let inside = prim::and(mine, prim::lt(place(n - 1), &size));
                let all = (0..n).map(same).fold(prim::boolean(true), prim::and);
                let found: PrimExpr = prim::if_then_else(inside, prim::cast(real, all), prim::constant(real, 0.0));
                te::sum(found, &over)
            })]
        })?;
        total = scope.call("add", [total, part])?;
    }
    Ok(total)
}
