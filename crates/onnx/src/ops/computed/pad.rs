//! Padding whose widths or value are computed, and padding that takes elements away.

use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::{Args, Ints, ShapePlan, all, of_axis};
use crate::error::NodeError;
use crate::scope::Scope;
use relaxide_frontend::Check;

/// Adds elements in front of and behind axes, or takes them away where a width is negative. `pads` are the fronts of `axes`,
/// then the backs; `value` has no axes.
pub fn padded(scope: &mut Scope, x: Expr, pads: Ints, axes: Ints, value: Expr, mode: &str) -> Result<Expr, NodeError> {
    let shape = scope.dims(&x)?;
    let rank = shape.len();
    let count = axes.count();
    if pads.count() != 2 * count {
        return Err(NodeError::invalid(format!("{} widths are no padding for {count} axes", pads.count())));
    }
    if !matches!(mode, "constant" | "edge" | "reflect" | "wrap") {
        return Err(NodeError::invalid(format!("`mode` is \"{mode}\"")));
    }
    let mut args = Args::default();
    let (pads, axes) = (args.ints(pads), args.ints(axes));
    let widths = |inputs: &[te::Tensor], axis: usize| {
        let (pads, axes) = (pads.all(inputs), axes.all(inputs));
        let of = |values: &[PrimExpr]| of_axis(&axes, values, axis, rank, prim::int(0));
        (of(&pads[..count]), of(&pads[count..]))
    };
    let dims = ShapePlan::bind(scope, "pad", &args, |inputs| {
        let dim = |axis: usize| {
            let (before, after) = widths(inputs, axis);
            &shape[axis] + before + after
        };
        let wanted: Vec<PrimExpr> = (0..rank).map(dim).collect();
        let dims: Vec<PrimExpr> = wanted.iter().map(|dim| prim::max(dim, 0)).collect();
        let left = |(axis, (old, new)): (usize, (&PrimExpr, &PrimExpr))| {
            let values = [(format!("dimension {axis}"), old.clone()), ("its padded size".to_owned(), new.clone())];
            Check::new(prim::ge(new, 0), "the widths take off more elements than there are").with(values)
        };
        let enough: Vec<Check> = shape.iter().zip(&wanted).enumerate().map(left).collect();
        // Other modes repeat elements, of which there must be some.
        let some = |(axis, (old, new)): (usize, (&PrimExpr, &PrimExpr))| {
            let fits = prim::or(prim::gt(old, 0), prim::eq(new, 0));
            let values = [(format!("dimension {axis}"), old.clone()), ("its padded size".to_owned(), new.clone())];
            Check::new(fits, "an axis without elements has none to repeat").with(values)
        };
        let repeats = mode != "constant";
        let some = shape.iter().zip(&dims).enumerate().filter(|_| repeats).map(some);
        ShapePlan { checks: enough.into_iter().chain(some).collect(), dims }
    })?;
    let mut inputs = args.inputs();
    inputs.extend([x, value]);
    scope.te("pad", inputs, |inputs| {
        let (data, value) = (&inputs[inputs.len() - 2], &inputs[inputs.len() - 1]);
        let before: Vec<PrimExpr> = (0..rank).map(|axis| widths(inputs, axis).0).collect();
        vec![te::compute("pad", &dims, |at| {
            let index: Vec<PrimExpr> = at.iter().zip(&before).map(|(i, b)| i - b).collect();
            let own: Vec<PrimExpr> = index.iter().zip(&shape).map(|(i, n)| source(i, n, mode)).collect();
            if mode != "constant" {
                return data.at(&own);
            }
            let within = index.iter().zip(&shape).map(|(i, n)| prim::and(prim::ge(i, 0), prim::lt(i, n)));
            prim::if_then_else(all(within), data.at(&own), value.at(&[]))
        })]
    })
}

/// The element that stands at a place before, in or behind an axis.
fn source(index: &PrimExpr, size: &PrimExpr, mode: &str) -> PrimExpr {
    match mode {
        "edge" => super::clamp(index.clone(), 0, size - 1),
        "wrap" => prim::floormod(index, size),
        "reflect" => {
            let period = prim::max((size - 1) * 2, 1);
            let within = prim::floormod(index, &period);
            prim::min(within.clone(), prim::max((size - 1) * 2, 0) - within)
        }
        _ => index.clone(),
    }
}
