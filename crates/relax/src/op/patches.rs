//! A convolution of patches that lie side by side as a product: what vision transformers begin with.
//!
//! ```text
//! R[n, m, y, x] = sum over c, i, j of W[m, c, i, j] * D[n, c, y*k + i, x*k + j]
//!     ->  P[n, y x, c i j] = D[n, c, y*k + i, x*k + j]
//!         R[n, m, y x]     = sum over c i j of P[n, y x, c i j] * W[m, c i j]
//! ```
//!
//! Each element belongs to one patch, so that all patches together are as large as the image. The rule for convolutions unrolls the taps of a
//! window: a product of 16×16 has none, and is compiled in a hundredth of the time.

use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_tir::te;

use super::conv::{Geometry, known};
use super::window::Partial;
use super::*;
use crate::BlockBuilder;

/// Taps of a window and filters from which the product gains.
const LEAST_TAPS: i64 = 64;
const LEAST_FILTERS: i64 = 32;

/// The product, where windows lie side by side.
pub fn as_product<'c>(cx: &'c CallCx<'c>) -> Result<Option<Emission<'c>>, OpError> {
    let Ok(g) = known(cx, "OI") else { return Ok(None) };
    let numbers = g.weight.iter().map(PrimExpr::as_int).collect::<Option<Vec<_>>>();
    let Some(&[filters, _, height, width]) = numbers.as_deref() else { return Ok(None) };
    let lies_beside = |(w, size): (&window::Window, i64)| (w.stride, w.dilation, w.before, w.after) == (size, 1, 0, 0);
    let are_patches = g.groups == 1 && g.are_orders_plain() && g.windows.iter().zip([height, width]).all(lies_beside);
    let pays = height.saturating_mul(width) >= LEAST_TAPS && filters >= LEAST_FILTERS;
    if !are_patches || !pays || cx.tensor(0)?.dtype != g.dtype {
        return Ok(None);
    }
    Ok(Some(Box::new(move |b| product(cx, &g, [height, width], b))))
}

fn product(cx: &CallCx, g: &Geometry, size: [i64; 2], b: &mut BlockBuilder) -> Result<Expr, OpError> {
    let failed = |error| OpError::of_build(cx.name(), error);
    let (batch, filters, channels) = (&g.data[0], &g.weight[0], &g.weight[1]);
    let [down, along] = [0, 1].map(|axis| g.windows[axis].positions(&g.data[2 + axis], Partial::Dropped));
    let [height, width] = size.map(PrimExpr::from);
    let dims = [batch.clone(), down.clone(), along.clone(), channels.clone(), height, width];
    let patches = b
        .emit_te("patches", vec![cx.arg(0)?.clone()], |inputs| {
            vec![te::compute("T_patches", &dims, |at| {
                let (y, x) = (&at[1] * size[0] + &at[4], &at[2] * size[1] + &at[5]);
                inputs[0].at(&[at[0].clone(), at[3].clone(), y, x])
            })]
        })
        .map_err(failed)?;
    let mut op = |name: &str, args: Vec<Expr>, attrs: Attrs| b.op(name, args, attrs).map_err(failed);
    let terms = prim::mul(channels, size[0] * size[1]);
    let count = prim::mul(&down, &along);
    let rows = Expr::shape([batch.clone(), count, terms.clone()]);
    let rows = op("reshape", vec![patches, rows], Attrs::new())?;
    let weight = op("reshape", vec![cx.arg(1)?.clone(), Expr::shape([filters.clone(), terms])], Attrs::new())?;
    let weight = op("permute_dims", vec![weight], Attrs::new())?;
    let product = op("matmul", vec![rows, weight], Attrs::new().with("out_dtype", g.dtype))?;
    let product = op("permute_dims", vec![product], Attrs::new().with("axes", vec![0i64, 2, 1]))?;
    op("reshape", vec![product, Expr::shape([batch.clone(), filters.clone(), down, along])], Attrs::new())
}
