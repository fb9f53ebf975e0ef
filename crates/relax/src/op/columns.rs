//! A convolution with distant taps as a product with the columns of its windows.
//!
//! ```text
//! R[n, m, y, x] = sum over c, ky, kx of W[m, c, ky, kx] * D[n, c, y + ky*d, x + kx*d]
//!     ->  C[n, (c, ky, kx), (y, x)] = D[n, c, y + ky*d, x + kx*d], zero in the padding
//!         R[n, m, (y, x)] = W[m, (c, ky, kx)] @ C[n]
//! ```
//!
//! The rule for convolutions keeps rows of an image with their padding and computes across it: where taps are about as far apart as the
//! image is wide, as in atrous pyramids, half of a row is padding, and a block of rows needs rows that exceed the caches. Columns
//! take as many elements as the image has, for each tap, which are written and read once.

use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_tir::te;

use super::conv::known;
use super::window::{Partial, Window, all};
use super::*;
use crate::BlockBuilder;

/// Filters from which the products outweigh the columns.
const LEAST_FILTERS: i64 = 32;
/// Terms of a sum from which it is worth a product of its own.
const LEAST_TERMS: i64 = 128;
/// Padding beside a row of unknown length from which it is much: images of such networks have rows of 30 to 100.
const MUCH: i64 = 16;

/// Whether taps are so far apart that a row of the image is much longer than one of the result.
fn is_distant(window: &Window, size: &PrimExpr) -> bool {
    let Some(reach) = window.reach().as_int().filter(|_| window.dilation > 1) else { return false };
    match window.positions(size, Partial::Dropped).as_int() {
        Some(places) => 4 * (reach - 1) >= places,
        None => reach > MUCH,
    }
}

/// The product, where taps are distant along the rows.
pub fn as_product(cx: &CallCx, b: &mut BlockBuilder) -> Result<Option<Expr>, OpError> {
    let Ok(g) = known(cx, "OI") else { return Ok(None) };
    let Some((row, length)) = g.windows.last().zip(g.data.last()) else { return Ok(None) };
    let filters = g.weight[0].as_int().is_some_and(|n| n >= LEAST_FILTERS);
    let terms = g.weight[1..].iter().map(PrimExpr::as_int).try_fold(1i64, |n, dim| n.checked_mul(dim?));
    let Some(terms) = terms.filter(|n| *n >= LEAST_TERMS && filters) else { return Ok(None) };
    let dtype = cx.tensor(0)?.dtype;
    let is_wide = dtype.is_float() && dtype.bits >= 32;
    if g.groups != 1 || !g.are_orders_plain() || dtype != g.dtype || !is_wide || !is_distant(row, length) {
        return Ok(None);
    }
    let failed = |error| OpError::of_build(cx.name(), error);
    let places: Vec<PrimExpr> =
        g.windows.iter().zip(&g.data[2..]).map(|(w, size)| w.positions(size, Partial::Dropped)).collect();
    let n = places.len();
    let dims: Vec<PrimExpr> = g.data[..2].iter().chain(&g.weight[2..]).chain(&places).cloned().collect();
    let columns = b.emit_te("columns", vec![cx.arg(0)?.clone()], |inputs| {
        vec![te::compute("columns", &dims, |at| {
            let (mut index, mut inside) = (at[..2].to_vec(), Vec::new());
            for (axis, window) in g.windows.iter().enumerate() {
                let place = window.element(&at[2 + n + axis], &at[2 + axis]) - window.before;
                if window.padded() {
                    inside.extend([prim::ge(&place, 0), prim::lt(&place, &g.data[2 + axis])]);
                }
                index.push(place);
            }
            let element = inputs[0].at(&index);
            match inside.is_empty() {
                true => element,
                false => prim::if_then_else(all(inside), element, prim::constant(dtype, 0.0)),
            }
        })]
    });
    let columns = columns.map_err(failed)?;
    let pixels = places.iter().cloned().reduce(|a, b| a * b).unwrap_or_else(|| PrimExpr::from(1));
    let (batch, filters) = (&g.data[0], &g.weight[0]);
    let mut op = |name: &str, args: Vec<Expr>, attrs: Attrs| b.op(name, args, attrs).map_err(failed);
    let flat = Expr::shape([batch.clone(), terms.into(), pixels]);
    let columns = op("reshape", vec![columns, flat], Attrs::new())?;
    let flat = Expr::shape([filters.clone(), terms.into()]);
    let weight = op("reshape", vec![cx.arg(1)?.clone(), flat], Attrs::new())?;
    let product = op("matmul", vec![weight, columns], Attrs::new().with("out_dtype", g.dtype))?;
    let whole = Expr::shape([batch.clone(), filters.clone()].into_iter().chain(places));
    op("reshape", vec![product, whole], Attrs::new()).map(Some)
}
