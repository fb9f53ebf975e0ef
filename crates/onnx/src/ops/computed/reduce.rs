//! Reductions over axes that are computed.
//!
//! With `m[i]` saying whether axis `i` is reduced, the result has `m[i] ? 1 : n[i]` elements along it and each combines
//! `m[i] ? n[i] : 1`; the two products are the input's, so one loop nest serves every choice of axes:
//!
//! ```text
//! y[o0, o1] = combine over k0, k1 of x[o0 + k0, o1 + k1]
//! ```

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::{Args, ShapePlan, from_front};
use crate::error::NodeError;
use crate::scope::Scope;
use relaxide_frontend::Check;

type Result<T> = std::result::Result<T, NodeError>;

/// Axes as a program computes them.
pub struct Axes {
    /// An int64 tensor of one axis.
    pub tensor: Expr,
    /// Whether no axes at all mean that nothing is reduced, rather than everything.
    pub empty_is_none: bool,
    /// Whether reduced axes stay, with extent 1.
    pub keep: bool,
}

/// Dimensions of a result, and how many elements are combined along each axis.
struct Extents {
    kept: Vec<PrimExpr>,
    reduced: Vec<PrimExpr>,
}

/// For each axis 1 where it is reduced, else 0; behind them 1 if some axis is none of the tensor's.
fn mask(scope: &mut Scope, axes: &Axes, rank: usize) -> Result<Expr> {
    let wide = DataType::int(64);
    let empty_is_all = !axes.empty_is_none;
    scope.te("reduced_axes", vec![axes.tensor.clone()], |inputs| {
        let list = &inputs[0];
        let count = list.shape()[0].clone();
        let named = te::compute("named", [rank as i64 + 1], |at| {
            let k = te::reduce_axis(count.clone());
            let axis = from_front(&list.at(&[k.var()]), rank as i64);
            // Axes that are none count for the place behind the last.
            let outside = prim::or(prim::lt(&axis, 0), prim::ge(&axis, rank as i64));
            let place = prim::select(outside, prim::int(rank as i64), axis);
            te::sum(prim::cast(wide, prim::eq(place, &at[0])), [&k])
        });
        vec![te::compute("mask", [rank as i64 + 1], |at| {
            let own = prim::min(named.at(at), 1);
            if !empty_is_all {
                return own;
            }
            let all = prim::and(prim::eq(&count, 0), prim::lt(&at[0], rank as i64));
            prim::select(all, prim::int(1), own)
        })]
    })
}

fn extents(scope: &mut Scope, mask: &Expr, shape: &[PrimExpr]) -> Result<Extents> {
    let mut args = Args::default();
    let at = args.tensor(mask.clone());
    let rank = shape.len();
    let both = ShapePlan::bind(scope, "reduction", &args, |inputs| {
        let chosen = |axis: usize| prim::ne(inputs[at].at(&[prim::int(axis as i64)]), 0);
        let kept = (0..rank).map(|i| prim::select(chosen(i), prim::int(1), shape[i].clone()));
        let reduced = (0..rank).map(|i| prim::select(chosen(i), shape[i].clone(), prim::int(1)));
        let within = Check::new(prim::not(chosen(rank)), format!("axes must lie within {rank} dimensions"));
        ShapePlan { dims: kept.chain(reduced).collect(), checks: vec![within] }
    })?;
    let (kept, reduced) = both.split_at(rank);
    Ok(Extents { kept: kept.to_vec(), reduced: reduced.to_vec() })
}

/// What remains of a shape when the axes of a mask, `count` of them, are dropped: entry `j` is the dimension of the `j`th
/// axis that is not in the mask.
fn remaining(scope: &mut Scope, mask: &Expr, shape: &[PrimExpr], count: usize) -> Result<Vec<PrimExpr>> {
    let mut args = Args::default();
    let at = args.tensor(mask.clone());
    let rank = shape.len();
    ShapePlan::bind(scope, "remaining", &args, |inputs| {
        let gone = |axis: usize| inputs[at].at(&[prim::int(axis as i64)]);
        let before: Vec<PrimExpr> =
            (0..rank).map(|axis| (0..axis).fold(prim::int(0), |n, i| n + (prim::int(1) - gone(i)))).collect();
        let dim = |j: usize| {
            (0..rank).rev().fold(prim::int(1), |other, axis| {
                let here = prim::and(prim::eq(&before[axis], j as i64), prim::eq(gone(axis), 0));
                prim::select(here, shape[axis].clone(), other)
            })
        };
        let total = (0..rank).fold(prim::int(0), |n, axis| n + gone(axis));
        ShapePlan {
            dims: (0..rank - count).map(dim).collect(),
            checks: vec![Check::new(prim::eq(&total, count as i64), "axes must be different").with([
                ("the number of axes".to_owned(), prim::int(count as i64)),
                ("that of different ones".to_owned(), total.clone()),
            ])],
        }
    })
}

/// Computed axes and what they make of a shape.
pub struct Resolved {
    axes: Axes,
    mask: Expr,
    shape: Vec<PrimExpr>,
    kept: Vec<PrimExpr>,
    reduced: Vec<PrimExpr>,
}

impl Resolved {
    /// What axes make of the shape of a tensor.
    pub fn new(scope: &mut Scope, axes: Axes, x: &Expr) -> Result<Resolved> {
        let shape = scope.dims(x)?;
        let mask = mask(scope, &axes, shape.len())?;
        let Extents { kept, reduced } = extents(scope, &mask, &shape)?;
        Ok(Resolved { axes, mask, shape, kept, reduced })
    }

    /// A reduction of a tensor of that shape by `sum`, `mean`, `max`, `min` or `prod`; every axis stays, with extent 1.
    pub fn reduce(&self, scope: &mut Scope, name: &str, x: Expr) -> Result<Expr> {
        let dtype = scope.dtype(&x);
        let combined = scope.te(&format!("reduce_{name}"), vec![x], |inputs| {
            vec![te::compute("combined", &self.kept, |at| {
                let over: Vec<te::ReduceAxis> = self.reduced.iter().map(|n| te::reduce_axis(n.clone())).collect();
                let index: Vec<PrimExpr> = at.iter().zip(&over).map(|(i, k)| i + k.var()).collect();
                let element = inputs[0].at(&index);
                match name {
                    "max" => te::max(element, &over),
                    "min" => te::min(element, &over),
                    "prod" => te::prod(element, &over),
                    _ => te::sum(element, &over),
                }
            })]
        })?;
        if name != "mean" {
            return Ok(combined);
        }
        let count = scope.dim_tensor(&super::product(self.reduced.iter().cloned()), dtype)?;
        scope.call("divide", [combined, count])
    }

    /// The result with the axes that `keepdims` asks for.
    pub fn finish(&self, scope: &mut Scope, result: Expr) -> Result<Expr> {
        if self.axes.keep {
            return Ok(result);
        }
        let count = match &scope.dims(&self.axes.tensor)?[..] {
            [n] => n.as_int().and_then(|n| usize::try_from(n).ok()),
            _ => None,
        };
        let rank = self.shape.len();
        // No axes mean all of them, or none.
        let count = match count {
            Some(0) if self.axes.empty_is_none => 0,
            Some(0) => rank,
            Some(n) if n <= rank => n,
            Some(n) => return Err(NodeError::invalid(format!("{n} axes are given for an input of {rank}"))),
            None => {
                return Err(NodeError::unsupported(
                    "how many axes are reduced is not known, and so is the result's rank",
                )
                .help("give the input `axes` a fixed shape (`shape_dict`), or set `keepdims`"));
            }
        };
        let dims = remaining(scope, &self.mask, &self.shape, count)?;
        scope.reshape_known(result, dims)
    }
}
