//! AdjustMatmulOrder, ExpandMatmulOfSum, ReorderPermuteDimsAfterConcat, ReorderTakeAfterMatmul: matrix products in the order
//! that costs least, as adapters of low rank need it.
//!
//! ```text
//! ExpandMatmulOfSum               x @ (w + a @ b)                     →   x @ w + x @ (a @ b)
//! AdjustMatmulOrder               x @ (a @ b), or (x @ a) @ b         →   whichever takes fewer multiplications;
//!                                 x @ permute(a @ b)                      of a transposed product the same
//! ReorderTakeAfterMatmul          x @ take(w, i, axis=1)              →   take(x @ w, i, axis=-1)
//! ReorderPermuteDimsAfterConcat   concat(permute(a), permute(b))      →   permute(concat(a, b))
//! ```
//!
//! What depends on weights only (`num_input`) costs nothing where the program runs: a sum of weights is not expanded unless
//! one of them is a product, and two weights are multiplied with each other first.

use relaxide_ffi::Ref;
use relaxide_ir::Attrs;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::PrimExpr;

use super::rules::{Known, apply};
use crate::*;

pub(super) const ADJUST: PassInfo =
    PassInfo::new("AdjustMatmulOrder", "Products of three matrices are taken in the cheaper order.", |module, _, _| {
        apply(ADJUST.name, module, adjust)
    })
    .opt_level(1);

pub(super) const EXPAND: PassInfo =
    PassInfo::new("ExpandMatmulOfSum", "A product with a sum becomes a sum of products.", |module, _, _| {
        apply(EXPAND.name, module, expand)
    })
    .opt_level(1);

pub(super) const PERMUTE: PassInfo = PassInfo::new(
    "ReorderPermuteDimsAfterConcat",
    "Axes are permuted once, behind a concatenation.",
    |module, _, _| apply(PERMUTE.name, module, permute),
)
.opt_level(1);

pub(super) const TAKE: PassInfo =
    PassInfo::new("ReorderTakeAfterMatmul", "Columns are chosen behind a product.", |module, _, _| {
        apply(TAKE.name, module, take)
    })
    .opt_level(1);

/// The two factors of a product.
fn factors(call: &Ref<Call>) -> Option<(&Expr, &Expr)> {
    match (call.op_name(), call.args.as_slice()) {
        (Some("matmul"), [a, b]) => Some((a, b)),
        _ => None,
    }
}

fn product(like: &Call, a: Expr, b: Expr) -> Result<Expr, BuildError> {
    Ok(op::call("matmul", [a, b], like.attrs.clone())?)
}

fn matrix(e: &Expr) -> Option<Vec<PrimExpr>> {
    let ty = e.ty();
    let dims = ty.as_tensor()?.shape.clone()?;
    (dims.len() == 2).then_some(dims)
}

/// Rows and columns of a right factor. A vector is a column.
fn columns(e: &Expr) -> Option<Vec<PrimExpr>> {
    let ty = e.ty();
    match ty.as_tensor()?.shape.as_deref()? {
        [rows] => Some(vec![rows.clone(), 1.into()]),
        _ => matrix(e),
    }
}

fn adjust(known: &Known, call: &Ref<Call>, _: &mut BlockBuilder) -> Result<Option<Expr>, BuildError> {
    let Some((left, right)) = factors(call) else { return Ok(None) };
    // (a @ b) @ c: the pieces, and whether they are grouped from the left.
    let pieces = match pieces(known, left)? {
        Some([a, b]) => Some((a, b, Piece::of(known, right), true)),
        None => pieces(known, right)?.map(|[b, c]| (Piece::of(known, left), b, c, false)),
    };
    let Some((a, b, c, from_left)) = pieces else { return Ok(None) };
    let (Some(da), Some(db), Some(dc)) = (dims_of_left(&a.value), matrix(&b.value), columns(&c.value)) else {
        return Ok(None);
    };
    let better_left = match (a.is_known, b.is_known, c.is_known) {
        (_, true, true) => false,
        (true, true, _) => true,
        _ => match prefers_left(&da, &db, &dc) {
            Some(left) => left,
            None => return Ok(None),
        },
    };
    if better_left == from_left {
        return Ok(None);
    }
    let (a, b, c) = (a.value, b.value, c.value);
    Ok(Some(match better_left {
        true => product(call, product(call, a, b)?, c)?,
        false => product(call, a, product(call, b, c)?)?,
    }))
}

/// A factor, and whether it is known when the program is compiled.
struct Piece {
    value: Expr,
    is_known: bool,
}

impl Piece {
    fn of(known: &Known, value: &Expr) -> Piece {
        Piece { value: value.clone(), is_known: known.is_compile_time(value) }
    }
}

/// The factors of a product; those of a transposed one are transposed and change places.
fn pieces(known: &Known, e: &Expr) -> Result<Option<[Piece; 2]>, BuildError> {
    if let Some((a, b)) = known.op(e, "matmul").and_then(factors) {
        return Ok(Some([Piece::of(known, a), Piece::of(known, b)]));
    }
    let Some(permuted) = known.op(e, "permute_dims") else { return Ok(None) };
    let inner = permuted.args.first().and_then(|inner| known.op(inner, "matmul")).and_then(factors);
    let Some((a, b)) = inner.filter(|(a, b)| matrix(a).is_some() && matrix(b).is_some()) else { return Ok(None) };
    if permuted.attrs.ints("axes").is_some_and(|axes| axes.iter().map(|axis| axis.rem_euclid(2)).ne([1, 0])) {
        return Ok(None);
    }
    let transposed = |x: &Expr| -> Result<Piece, BuildError> {
        let value = op::call("permute_dims", [x.clone()], Attrs::new())?;
        Ok(Piece { value, is_known: known.is_compile_time(x) })
    };
    Ok(Some([transposed(b)?, transposed(a)?]))
}

/// Rows (all dimensions but the last, multiplied) and columns of a left factor. A vector is a row.
fn dims_of_left(e: &Expr) -> Option<Vec<PrimExpr>> {
    let ty = e.ty();
    let dims = ty.as_tensor()?.shape.clone()?;
    let (last, rows) = dims.split_last()?;
    let rows = rows.iter().fold(PrimExpr::from(1), |n, d| n * d.clone());
    Some(vec![rows, last.clone()])
}

/// Whether `(a @ b) @ c` takes fewer multiplications than `a @ (b @ c)`; `None` where neither can be proved.
fn prefers_left(a: &[PrimExpr], b: &[PrimExpr], c: &[PrimExpr]) -> Option<bool> {
    let ([n, m], [_, k], [_, l]) = (a, b, c) else { return None };
    let left = n.clone() * m * k + n.clone() * k * l;
    let right = m.clone() * k * l + n.clone() * m * l;
    let mut analyzer = Analyzer::new();
    analyzer.mark_dims(a.iter().chain(b).chain(c));
    if analyzer.can_prove(&relaxide_ir::prim::lt(left.clone(), right.clone())) {
        return Some(true);
    }
    analyzer.can_prove(&relaxide_ir::prim::lt(right, left)).then_some(false)
}

fn expand(known: &Known, call: &Ref<Call>, _: &mut BlockBuilder) -> Result<Option<Expr>, BuildError> {
    let Some((x, right)) = factors(call) else { return Ok(None) };
    // A sum of permuted matrices is taken apart too.
    let permuted = known.op(right, "permute_dims");
    let inner = permuted.and_then(|p| p.args.first()).unwrap_or(right);
    let Some(sum) = known.op(inner, "add") else { return Ok(None) };
    let [a, b] = sum.args.as_slice() else { return Ok(None) };
    let is_product = |e: &Expr| known.op(e, "matmul").is_some();
    let is_known = known.is_compile_time(a) && known.is_compile_time(b);
    let same_shape = match (matrix(a), matrix(b)) {
        (Some(a), Some(b)) => crate::shape::same_dims(&a, &b),
        _ => false,
    };
    if !same_shape || (is_known && !is_product(a) && !is_product(b)) {
        return Ok(None);
    }
    let part = |e: &Expr| match permuted {
        Some(p) => Ok(op::call("permute_dims", [e.clone()], p.attrs.clone())?),
        None => Ok::<Expr, BuildError>(e.clone()),
    };
    let (left, right) = (product(call, x.clone(), part(a)?)?, product(call, x.clone(), part(b)?)?);
    Ok(Some(op::call("add", [left, right], Attrs::new())?))
}

fn permute(known: &Known, call: &Ref<Call>, _: &mut BlockBuilder) -> Result<Option<Expr>, BuildError> {
    let (Some("concat"), [parts]) = (call.op_name(), call.args.as_slice()) else { return Ok(None) };
    let Expr::Tuple(parts) = known.value(parts) else { return Ok(None) };
    let permutes: Option<Vec<&Ref<Call>>> = parts.fields.iter().map(|p| known.op(p, "permute_dims")).collect();
    let Some([first, rest @ ..]) = permutes.as_deref().filter(|list| list.len() > 1) else { return Ok(None) };
    let ndim = call.ty.as_tensor().map_or(-1, |t| t.ndim);
    let axes = |p: &Call| p.attrs.ints("axes").unwrap_or_else(|| (0..ndim).rev().collect());
    let alike = rest.iter().all(|p| axes(p) == axes(first));
    let axis = call.attrs.int("axis").unwrap_or(0);
    let Some(inner) = usize::try_from(axis.rem_euclid(ndim.max(1))).ok().and_then(|i| axes(first).get(i).copied())
    else {
        return Ok(None);
    };
    if !alike || ndim <= 0 {
        return Ok(None);
    }
    let parts: Vec<Expr> = std::iter::once(first).chain(rest).filter_map(|p| p.args.first().cloned()).collect();
    let joined = op::call("concat", [Expr::tuple(parts)], Attrs::new().with("axis", inner.rem_euclid(ndim)))?;
    Ok(Some(op::call("permute_dims", [joined], first.attrs.clone())?))
}

fn take(known: &Known, call: &Ref<Call>, _: &mut BlockBuilder) -> Result<Option<Expr>, BuildError> {
    let Some((x, right)) = factors(call) else { return Ok(None) };
    let Some(take) = known.op(right, "take") else { return Ok(None) };
    let [weights, indices] = take.args.as_slice() else { return Ok(None) };
    let is_matrix = matrix(weights).is_some()
        && matches!(take.attrs.int("axis"), Some(1 | -1))
        && indices.ty().as_tensor().is_some_and(|t| t.ndim == 1);
    let Some(ndim) = x.ty().as_tensor().map(|t| t.ndim).filter(|n| is_matrix && *n >= 2) else { return Ok(None) };
    let whole = product(call, x.clone(), weights.clone())?;
    let attrs = take.attrs.clone().with("axis", ndim - 1);
    Ok(Some(op::call("take", [whole, indices.clone()], attrs)?))
}
