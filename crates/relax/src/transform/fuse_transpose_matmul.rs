//! FuseTransposeMatmul: a product with a transposed matrix is one kernel that reads the matrix as it lies.
//!
//! ```text
//! lv = R.permute_dims(w)           gv = R.call_tir(cls.NT_matmul, (x, w), out_ty=…)
//! gv = R.matmul(x, lv)       →
//! ```
//!
//! The right factor must be a transposition of its last two axes. `ReadPermutedMatrix` does the same for any order of the axes, where
//! the matrix is computed when the program runs: one that is known is laid out once, at compile time, as its product reads it best.

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{PrimExpr, cast};
use relaxide_ir::{DataType, Type};
use relaxide_tir::te;

use super::rules::{Known, apply};
use crate::shape::broadcast_index;
use crate::shape::{Broadcast, broadcast};
use crate::*;

pub(super) const PASS: PassInfo = PassInfo::new(
    "FuseTransposeMatmul",
    "A product with a transposed matrix reads the matrix as it lies.",
    |module, _, _| apply(PASS.name, module, |known, call, b| fuse(known, call, b, false)),
);

pub(super) const READ_PERMUTED: PassInfo = PassInfo::new(
    "ReadPermutedMatrix",
    "A product of few rows with a matrix that is computed, and whose axes are put in another order, reads the matrix as it lies.",
    |module, _, _| apply(READ_PERMUTED.name, module, |known, call, b| fuse(known, call, b, true)),
);

/// Rows of the left factor up to which a computed matrix is read as it lies. More rows pack it in parts, some of them again and again,
/// which is dearer from an order of axes that is not theirs. Rows of an unknown number may be one, as those of a decoder are.
const FEW_ROWS: i64 = 256;
/// Values behind a matrix that are looked at to find out whether all of them are constants.
const LOOKED_AT: usize = 64;

fn fuse(known: &Known, call: &Ref<Call>, b: &mut BlockBuilder, computed: bool) -> Result<Option<Expr>, BuildError> {
    let (Some("matmul"), [x, right]) = (call.op_name(), call.args.as_slice()) else { return Ok(None) };
    let Some(permute) = known.op(right, "permute_dims") else { return Ok(None) };
    let [w] = permute.args.as_slice() else { return Ok(None) };
    let dims = |e: &Expr| e.ty().as_tensor().and_then(|t| t.shape.clone());
    let (Some(left), Some(matrix)) = (dims(x), dims(w)) else { return Ok(None) };
    let Type::Tensor(out) = &call.ty else { return Ok(None) };
    let n = matrix.len();
    if left.len() < 2 || n < 2 {
        return Ok(None);
    }
    let axes = axes_of(permute, n);
    let swaps = swaps_last_two(&axes);
    let wanted = match computed {
        true => left[left.len() - 2].as_int().is_none_or(|rows| rows <= FEW_ROWS) && !is_constant(known, w),
        false => swaps,
    };
    let outer: Vec<PrimExpr> = axes.iter().take(n - 2).filter_map(|&a| matrix.get(a).cloned()).collect();
    let Broadcast::Known(batch) = broadcast(&left[..left.len() - 2], &outer) else { return Ok(None) };
    if !wanted {
        return Ok(None);
    }
    let name = if swaps { "NT_matmul" } else { "permuted_matmul" };
    let args = vec![x.clone(), w.clone()];
    let new = b.call_te(name, args, |inputs| match inputs {
        [x, w] => vec![product(name, x, w, &axes, &batch, out.dtype)],
        _ => Vec::new(),
    })?;
    Ok(Some(new))
}

/// Whether a value is made of constants and weights alone. One behind which much stands is none.
fn is_constant(known: &Known, e: &Expr) -> bool {
    let (mut seen, mut rest) = (HashSet::new(), vec![e]);
    while let Some(e) = rest.pop() {
        if known.is_compile_time(e) || e.as_var().is_some_and(|v| !seen.insert(v)) {
            continue;
        }
        match known.value(e) {
            Expr::Constant(_) => {}
            Expr::Call(call) if call.op_name().is_some() && seen.len() <= LOOKED_AT => rest.extend(&call.args),
            _ => return false,
        }
    }
    true
}

/// Where each axis of a permuted tensor of `n` axes comes from.
fn axes_of(permute: &Call, n: usize) -> Vec<usize> {
    match permute.attrs.ints("axes") {
        Some(axes) => axes.iter().map(|a| a.rem_euclid(n as i64) as usize).collect(),
        None => (0..n).rev().collect(),
    }
}

/// Whether a permutation swaps the last two axes and no others.
fn swaps_last_two(axes: &[usize]) -> bool {
    let n = axes.len();
    (0..n - 2).chain([n - 1, n - 2]).eq(axes.iter().copied())
}

/// `sum over k of x[…, i, k] * w'[…, k, j]`, where `w'` is `w` with its axes in another order.
fn product(
    name: &str,
    x: &te::Tensor,
    w: &te::Tensor,
    axes: &[usize],
    batch: &[PrimExpr],
    dtype: DataType,
) -> te::Tensor {
    let one = PrimExpr::from(1);
    let right: Vec<PrimExpr> = axes.iter().map(|&a| w.shape().get(a).unwrap_or(&one).clone()).collect();
    let left = x.shape();
    let from_end =
        |dims: &[PrimExpr], i: usize| dims.len().checked_sub(i).and_then(|i| dims.get(i)).unwrap_or(&one).clone();
    let dims: Vec<PrimExpr> = batch.iter().cloned().chain([from_end(left, 2), from_end(&right, 1)]).collect();
    let k = te::reduce_axis(from_end(left, 1));
    te::compute(name, &dims, |out| {
        let (at, last) = out.split_at(batch.len());
        let outer = |dims: &[PrimExpr]| broadcast_index(&dims[..dims.len().saturating_sub(2)], at, batch);
        let mut row = outer(left);
        row.extend(last.first().cloned());
        row.push(k.var());
        let mut permuted = outer(&right);
        permuted.push(k.var());
        permuted.extend(last.get(1).cloned());
        let mut column = permuted.clone();
        for (&axis, index) in axes.iter().zip(permuted) {
            if let Some(place) = column.get_mut(axis) {
                *place = index;
            }
        }
        te::sum(cast(dtype, x.at(&row)) * cast(dtype, w.at(&column)), [&k])
    })
}
