//! A convolution of one pixel as a product: what squeeze-and-excite blocks and heads behind global pooling have.
//!
//! The weight is transposed, once where it is a constant, so that the product reads it row by row.

use relaxide_ir::Attrs;
use relaxide_ir::prim::PrimExpr;

use super::conv::{Geometry, known};
use super::*;
use crate::BlockBuilder;

/// The product, where the image has one pixel and the window one tap.
pub fn as_product<'c>(cx: &'c CallCx<'c>) -> Result<Option<Emission<'c>>, OpError> {
    let Ok(g) = known(cx, "OI") else { return Ok(None) };
    let is_one = |dim: &PrimExpr| dim.is_int(1);
    let has_one_tap = g.windows.iter().all(|w| is_one(&w.kernel) && w.before == 0 && w.after == 0);
    if g.groups != 1 || !g.are_orders_plain() || !has_one_tap || !g.data[2..].iter().all(is_one) {
        return Ok(None);
    }
    Ok(Some(Box::new(move |b| product(cx, &g, b))))
}

fn product(cx: &CallCx, g: &Geometry, b: &mut BlockBuilder) -> Result<Expr, OpError> {
    let (batch, filters, channels) = (&g.data[0], &g.weight[0], &g.weight[1]);
    let mut op = |name: &str, args: Vec<Expr>, attrs: Attrs| {
        b.op(name, args, attrs).map_err(|e| OpError::of_build(cx.name(), e))
    };
    let image = op("reshape", vec![cx.arg(0)?.clone(), Expr::shape([batch.clone(), channels.clone()])], Attrs::new())?;
    let weight =
        op("reshape", vec![cx.arg(1)?.clone(), Expr::shape([filters.clone(), channels.clone()])], Attrs::new())?;
    let weight = op("permute_dims", vec![weight], Attrs::new())?;
    let product = op("matmul", vec![image, weight], Attrs::new().with("out_dtype", g.dtype))?;
    let dims = [batch.clone(), filters.clone()].into_iter().chain(g.windows.iter().map(|_| PrimExpr::from(1)));
    op("reshape", vec![product, Expr::shape(dims)], Attrs::new())
}
