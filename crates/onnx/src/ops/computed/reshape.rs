//! Shapes, repeats and sizes that are computed.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::{Args, Ints, ShapePlan, all, from_front, of_axis, product};
use crate::error::NodeError;
use crate::scope::Scope;
use relaxide_frontend::Check;

type Result<T> = std::result::Result<T, NodeError>;

/// `Reshape` to a computed shape: 0 copies the input's dimension (unless it is allowed), -1 is what remains.
pub fn reshaped(scope: &mut Scope, x: Expr, target: Ints, zero_is_zero: bool) -> Result<Expr> {
    let own = scope.dims(&x)?;
    let mut args = Args::default();
    let target = args.ints(target);
    let dims = ShapePlan::bind(scope, "reshape", &args, |inputs| {
        let asked = target.all(inputs);
        let copied = |(i, t): (usize, &PrimExpr)| match own.get(i) {
            Some(dim) if !zero_is_zero => prim::select(prim::eq(t, 0), dim.clone(), t.clone()),
            _ => t.clone(),
        };
        let asked: Vec<PrimExpr> = asked.iter().enumerate().map(copied).collect();
        let count = product(own.iter().cloned());
        let known = asked.iter().map(|t| prim::select(prim::lt(t, 0), prim::int(1), t.clone()));
        let rest = prim::floordiv(&count, prim::max(product(known), 1));
        let dims: Vec<PrimExpr> = asked.iter().map(|t| prim::select(prim::lt(t, 0), rest.clone(), t.clone())).collect();
        let open = asked.iter().fold(prim::int(0), |n, t| n + prim::cast(DataType::int(64), prim::lt(t, 0)));
        let one =
            Check::new(prim::le(&open, 1), "one size at most may be -1").with([("the number of those".into(), open)]);
        let sizes = target.all(inputs);
        let natural = all(sizes.iter().map(|size| prim::ge(size, -1)));
        let given = sizes.iter().enumerate().map(|(i, size)| (format!("size {i}"), size.clone()));
        let natural = Check::new(natural, "sizes must be -1 or more").with(given);
        let elements = product(dims.iter().cloned());
        let as_many = Check::equal(
            ("the product of the new sizes", elements),
            ("the number of elements", count),
            "the new shape must have as many elements as the tensor",
        );
        ShapePlan { dims, checks: vec![natural, one, as_many] }
    })?;
    scope.reshape_known(x, dims)
}

/// `Expand` to a computed shape.
pub fn expanded(scope: &mut Scope, x: Expr, target: Ints) -> Result<Expr> {
    let own = scope.dims(&x)?;
    let rank = own.len().max(target.count());
    let lead = rank - own.len();
    let before = rank - target.count();
    let mut args = Args::default();
    let target = args.ints(target);
    let dims = ShapePlan::bind(scope, "expand", &args, |inputs| {
        let asked = target.all(inputs);
        let mut plan = ShapePlan::default();
        for i in 0..rank {
            let from = i.checked_sub(lead).map(|i| own[i].clone());
            let to = i.checked_sub(before).map(|i| asked[i].clone());
            plan.dims.push(match (from, to) {
                (Some(from), Some(to)) => {
                    let fits = [prim::eq(&from, 1), prim::eq(&to, 1), prim::eq(&from, &to)];
                    let fits = prim::and(prim::ge(&to, 0), fits.into_iter().fold(prim::boolean(false), prim::or));
                    let values =
                        [(format!("dimension {i}"), from.clone()), (format!("size {i} of the new shape"), to.clone())];
                    plan.checks.push(Check::new(fits, "lengths must be the same, or 1").with(values));
                    prim::select(prim::eq(&from, 1), prim::max(to, 0), from)
                }
                (Some(from), None) => from,
                (None, Some(to)) => {
                    let values = [(format!("size {i} of the new shape"), to.clone())];
                    plan.checks.push(Check::new(prim::ge(&to, 0), "sizes must not be negative").with(values));
                    prim::max(to, 0)
                }
                (None, None) => prim::int(1),
            });
        }
        plan
    })?;
    scope.spread(x, dims)
}

/// `Tile` by computed repeats.
pub fn tiled(scope: &mut Scope, x: Expr, repeats: Ints) -> Result<Expr> {
    let own = scope.dims(&x)?;
    if repeats.count() != own.len() {
        return Err(NodeError::invalid(format!("{} repeats are given for {} axes", repeats.count(), own.len())));
    }
    let mut args = Args::default();
    let repeats = args.ints(repeats);
    let dims = ShapePlan::bind(scope, "tile", &args, |inputs| {
        let dim = |(n, r): (&PrimExpr, PrimExpr)| n * prim::max(r, 0);
        let given = repeats.all(inputs);
        let natural = all(given.iter().map(|r| prim::ge(r, 0)));
        let values = given.iter().enumerate().map(|(i, r)| (format!("repeat {i}"), r.clone()));
        let natural = Check::new(natural, "repeats must not be negative").with(values);
        ShapePlan { dims: own.iter().zip(given).map(dim).collect(), checks: vec![natural] }
    })?;
    scope.te("tile", vec![x], |inputs| {
        vec![te::compute("tile", &dims, |at| {
            let index: Vec<PrimExpr> = at.iter().zip(&own).map(|(i, n)| prim::floormod(i, n)).collect();
            inputs[0].at(&index)
        })]
    })
}

/// `Split` into computed sizes, which must add up to the axis.
pub fn split(scope: &mut Scope, x: Expr, axis: usize, sizes: Ints) -> Result<Vec<Expr>> {
    let own = scope.dims(&x)?;
    let mut args = Args::default();
    let sizes = args.ints(sizes);
    let bound = ShapePlan::bind(scope, "split", &args, |inputs| {
        let sizes = sizes.all(inputs);
        let total = sizes.iter().fold(prim::int(0), |n, s| n + s);
        let natural = all(sizes.iter().map(|s| prim::ge(s, 0)));
        let given = sizes.iter().enumerate().map(|(i, size)| (format!("size {i}"), size.clone()));
        let natural = Check::new(natural, "sizes of parts must not be negative").with(given);
        let whole = Check::equal(
            ("their sum", total),
            (format!("dimension {axis}"), own[axis].clone()),
            "the sizes of parts must add up to the axis",
        );
        ShapePlan { dims: sizes.iter().map(|s| prim::max(s, 0)).collect(), checks: vec![natural, whole] }
    })?;
    parts(scope, x, axis, &bound)
}

/// The parts of an axis that have given sizes.
pub fn parts(scope: &mut Scope, x: Expr, axis: usize, sizes: &[PrimExpr]) -> Result<Vec<Expr>> {
    let own = scope.dims(&x)?;
    let mut start = prim::int(0);
    let mut result = Vec::new();
    for size in sizes {
        let mut dims = own.clone();
        dims[axis] = size.clone();
        let from = start.clone();
        result.push(scope.te("part", vec![x.clone()], |inputs| {
            vec![te::compute("part", &dims, |at| {
                let mut index = at.to_vec();
                index[axis] = &at[axis] + &from;
                inputs[0].at(&index)
            })]
        })?);
        start = start + size;
    }
    Ok(result)
}

/// `Squeeze` of computed axes.
pub fn squeezed(scope: &mut Scope, x: Expr, axes: Ints) -> Result<Expr> {
    let own = scope.dims(&x)?;
    let rank = own.len();
    let left =
        rank.checked_sub(axes.count()).ok_or_else(|| NodeError::invalid("there are fewer axes than it names"))?;
    let mut args = Args::default();
    let axes = args.ints(axes);
    let dims = ShapePlan::bind(scope, "squeeze", &args, |inputs| {
        let axes = axes.all(inputs);
        let ones = vec![prim::int(1); axes.len()];
        let gone: Vec<PrimExpr> = (0..rank).map(|i| of_axis(&axes, &ones, i, rank, prim::int(0))).collect();
        let before = |axis: usize| gone[..axis].iter().fold(prim::int(axis as i64), |n, g| n - g);
        let dim = |j: usize| {
            (0..rank).rev().fold(prim::int(1), |other, axis| {
                let here = prim::and(prim::eq(before(axis), j as i64), prim::eq(&gone[axis], 0));
                prim::select(here, own[axis].clone(), other)
            })
        };
        let single = all((0..rank).map(|i| prim::or(prim::eq(&gone[i], 0), prim::eq(&own[i], 1))));
        let sizes = own.iter().enumerate().map(|(i, size)| (format!("dimension {i}"), size.clone()));
        let named = axes.iter().enumerate().map(|(i, axis)| (format!("axis {i}"), axis.clone()));
        let single = Check::new(single, "an axis that goes away must have one element").with(named.chain(sizes));
        ShapePlan { dims: (0..left).map(dim).collect(), checks: vec![single, apart(&gone, &axes)] }
    })?;
    scope.reshape_known(x, dims)
}

/// Axes lie within the rank and are not the same: as many places are marked as there are axes.
pub fn apart(marks: &[PrimExpr], axes: &[PrimExpr]) -> Check {
    let total = marks.iter().fold(prim::int(0), |n, mark| n + mark);
    let named = axes.iter().enumerate().map(|(i, axis)| (format!("axis {i}"), axis.clone()));
    let text = format!("axes must be different and lie within {} dimensions", marks.len());
    Check::new(prim::eq(total, axes.len() as i64), text).with(named)
}

/// `Unsqueeze` at computed axes.
pub fn unsqueezed(scope: &mut Scope, x: Expr, axes: Ints) -> Result<Expr> {
    let own = scope.dims(&x)?;
    let rank = own.len() + axes.count();
    let mut args = Args::default();
    let axes = args.ints(axes);
    let dims = ShapePlan::bind(scope, "unsqueeze", &args, |inputs| {
        let axes: Vec<PrimExpr> = axes.all(inputs).iter().map(|a| from_front(a, rank as i64)).collect();
        let ones = vec![prim::int(1); axes.len()];
        let new: Vec<PrimExpr> = (0..rank).map(|i| of_axis(&axes, &ones, i, rank, prim::int(0))).collect();
        let dim = |i: usize| {
            let place = new[..i].iter().fold(prim::int(i as i64), |n, g| n - g);
            let old = own
                .iter()
                .enumerate()
                .fold(prim::int(1), |other, (j, d)| prim::select(prim::eq(&place, j as i64), d.clone(), other));
            prim::select(prim::ne(&new[i], 0), prim::int(1), old)
        };
        ShapePlan { dims: (0..rank).map(dim).collect(), checks: vec![apart(&new, &axes)] }
    })?;
    scope.reshape_known(x, dims)
}

/// `Range` between computed numbers of one type, each a tensor without axes.
pub fn ranged(scope: &mut Scope, start: Expr, limit: Expr, step: Expr) -> Result<Expr> {
    let dtype = scope.dtype(&start);
    let mut args = Args::default();
    for tensor in [start, limit, step] {
        args.tensor(tensor);
    }
    // Narrow floats are counted in float32, as the operator's text asks.
    let work = if dtype.is_float() && dtype.bits < 32 { DataType::float(32) } else { dtype };
    let number = |inputs: &[te::Tensor], i: usize| prim::cast(work, inputs[i].at(&[]));
    let dims = ShapePlan::bind(scope, "range", &args, |inputs| {
        let [start, limit, step] = [0, 1, 2].map(|i| number(inputs, i));
        let mut checks = vec![Check::new(prim::ne(&step, prim::constant(work, 0.0)), "the step must not be 0")];
        let count = if work.is_float() {
            prim::cast(DataType::int(64), prim::math("ceil", prim::div(limit - start, step)))
        } else {
            let wide = |e: PrimExpr| prim::cast(DataType::int(64), e);
            let (start, limit, step) = (wide(start), wide(limit), wide(step));
            let span = &limit - &start;
            // The difference of two numbers of 64 bits may need one more.
            let goes_up = prim::gt(&limit, &start);
            let holds = prim::select(goes_up, prim::gt(&span, 0), prim::le(&span, 0));
            let values = [("start", start), ("limit", limit)].map(|(name, value)| (name.to_owned(), value));
            checks.push(Check::new(holds, "there are more numbers than 64 bits count").with(values));
            prim::int(0) - prim::floordiv(prim::int(0) - span, step)
        };
        ShapePlan { dims: vec![prim::max(count, 0)], checks }
    })?;
    scope.te("range", args.inputs(), |inputs| {
        vec![te::compute("range", &dims, |at| {
            prim::cast(dtype, number(inputs, 0) + prim::cast(work, at[0].clone()) * number(inputs, 2))
        })]
    })
}
