//! FuseTransposeMatmul: a product with a transposed matrix is one kernel that reads the matrix as it lies.
//!
//! ```text
//! lv = R.permute_dims(w)           gv = R.call_tir(cls.NT_matmul, (x, w), out_ty=…)
//! gv = R.matmul(x, lv)       →
//! ```
//!
//! The right factor must be a transposition of its last two axes.

use relaxide_ffi::Ref;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{PrimExpr, cast};
use relaxide_ir::{DataType, Type};
use relaxide_tir::te;

use super::broadcast_index;
use super::rules::{Known, apply};
use crate::shape::{Broadcast, broadcast};
use crate::*;

pub(super) const PASS: PassInfo = PassInfo::new(
    "FuseTransposeMatmul",
    "A product with a transposed matrix reads the matrix as it lies.",
    |module, _, _| apply(PASS.name, module, transposed),
);

fn transposed(known: &Known, call: &Ref<Call>, b: &mut BlockBuilder) -> Result<Option<Expr>, BuildError> {
    let (Some("matmul"), [x, right]) = (call.op_name(), call.args.as_slice()) else { return Ok(None) };
    let Some(permute) = known.op(right, "permute_dims") else { return Ok(None) };
    let [w] = permute.args.as_slice() else { return Ok(None) };
    let dims = |e: &Expr| e.ty().as_tensor().and_then(|t| t.shape.clone());
    let (Some(left), Some(matrix)) = (dims(x), dims(w)) else { return Ok(None) };
    let Type::Tensor(out) = &call.ty else { return Ok(None) };
    let n = matrix.len();
    if left.len() < 2 || n < 2 || !swaps_last_two(permute, n) {
        return Ok(None);
    }
    let (batch, dtype) = (broadcast(&left[..left.len() - 2], &matrix[..n - 2]), out.dtype);
    let Broadcast::Known(batch) = batch else { return Ok(None) };
    let args = vec![x.clone(), w.clone()];
    let new = b.call_te("NT_matmul", args, |inputs| match inputs {
        [x, w] => vec![product(x, w, &batch, dtype)],
        _ => Vec::new(),
    })?;
    Ok(Some(new))
}

/// Whether a permutation of `n` axes swaps the last two.
fn swaps_last_two(permute: &Call, n: usize) -> bool {
    let n = n as i64;
    let wanted: Vec<i64> = (0..n - 2).chain([n - 1, n - 2]).collect();
    match permute.attrs.ints("axes") {
        Some(axes) => axes.iter().map(|a| a.rem_euclid(n)).collect::<Vec<_>>() == wanted,
        None => n == 2,
    }
}

/// `sum over k of x[…, i, k] * w[…, j, k]`.
fn product(x: &te::Tensor, w: &te::Tensor, batch: &[PrimExpr], dtype: DataType) -> te::Tensor {
    let (left, right) = (x.shape(), w.shape());
    let one = PrimExpr::from(1);
    let from_end =
        |dims: &[PrimExpr], i: usize| dims.len().checked_sub(i).and_then(|i| dims.get(i)).unwrap_or(&one).clone();
    let dims: Vec<PrimExpr> = batch.iter().cloned().chain([from_end(left, 2), from_end(right, 2)]).collect();
    let k = te::reduce_axis(from_end(left, 1));
    te::compute("NT_matmul", &dims, |out| {
        let (at, last) = out.split_at(batch.len());
        let index = |t: &te::Tensor, row: Option<&PrimExpr>| {
            let outer = &t.shape()[..t.ndim().saturating_sub(2)];
            let mut index = broadcast_index(outer, at, batch);
            index.extend(row.cloned());
            index.push(k.var());
            index
        };
        let (a, b) = (x.at(&index(x, last.first())), w.at(&index(w, last.get(1))));
        te::sum(cast(dtype, a) * cast(dtype, b), [&k])
    })
}
