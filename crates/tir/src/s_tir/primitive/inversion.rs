//! From the part of a buffer that is needed to the values of a block's axes that touch it.
//!
//! ```text
//! B[v0 * 8 + v1]  with 40 to 47 needed and v1 below 8    ->   v0 is 5, v1 from 0 to 7
//! B[v // 16, v % 16]  with 2 and 4 to 7 needed           ->   v from 36 to 39
//! B[v * 2 + 1]  with 5 to 9 needed                       ->   v from 2 to 4
//! ```
//!
//! What is found may hold more values than are needed, never fewer. An axis that an index does not tell is left out: it keeps
//! its whole range.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, BinaryOp, PrimExpr};

use crate::analysis::interval::Interval;
use crate::stmt::*;

/// The ranges of axes at which `range`, over the axes, touches the needed part of a dimension. Axes of which it does not
/// tell are left out.
pub(super) fn inverted(
    range: &Range,
    needed: &Interval,
    block: &SBlock,
    analyzer: &mut Analyzer,
) -> Vec<(Ref<Var>, Interval)> {
    let index = analyzer.simplify_as_tvm(&range.min);
    let width = &range.extent - prim::int_of(range.extent.dtype(), 1);
    let is_axis = |v: &Ref<Var>| block.iter_vars.iter().any(|i| i.var == *v);
    let used: Vec<Ref<Var>> = prim::free_vars(&index).into_iter().filter(is_axis).collect();
    let [var] = used.as_slice() else { return digits(&index, needed, width, block, analyzer).unwrap_or_default() };
    solve(&index, var, Interval { min: &needed.min - width, max: needed.max.clone() }, analyzer)
        .map(|part| (var.clone(), part))
        .into_iter()
        .collect()
}

/// Axes that a region tells by both a quotient and a remainder: `v // 16` in one dimension and `v % 16` in another.
pub(super) fn quotients(
    region: &[Ref<Range>],
    dims: &[Interval],
    analyzer: &mut Analyzer,
) -> Vec<(Ref<Var>, Interval)> {
    let part = |range: &Range, op: BinaryOp| match &range.min {
        PrimExpr::Binary(n) if n.op == op && range.extent.is_int(1) => Some((n.a.as_var()?.clone(), n.b.as_int()?)),
        _ => None,
    };
    let mut found = Vec::new();
    for (high, above) in region.iter().zip(dims) {
        let Some((var, by)) = part(high, BinaryOp::FloorDiv) else { continue };
        let low = region.iter().zip(dims).find(|(r, _)| part(r, BinaryOp::FloorMod) == Some((var.clone(), by)));
        let Some((_, below)) = low.filter(|_| analyzer.can_prove_equal(&above.min, &above.max)) else { continue };
        let first = &above.min * prim::int_of(above.min.dtype(), by);
        let (min, max) =
            (analyzer.simplify_as_tvm(&(&first + &below.min)), analyzer.simplify_as_tvm(&(&first + &below.max)));
        found.push((var, Interval { min, max }));
    }
    found
}

/// The same for an index that is a sum of axes by weights, each as heavy as all that the lighter ones come to: `v0 * 8 + v1`
/// with `v1` below 8. Axes below one of which several values are needed keep their whole range.
fn digits(
    index: &PrimExpr,
    needed: &Interval,
    width: PrimExpr,
    block: &SBlock,
    analyzer: &mut Analyzer,
) -> Option<Vec<(Ref<Var>, Interval)>> {
    let mut terms: Vec<(Ref<IterVar>, i64)> = Vec::new();
    let mut rest = prim::int_of(index.dtype(), 0);
    let mut open = vec![index.clone()];
    while let Some(e) = open.pop() {
        if let PrimExpr::Binary(n) = &e
            && n.op == BinaryOp::Add
        {
            open.extend([n.a.clone(), n.b.clone()]);
            continue;
        }
        let (factor, weight) = match &e {
            PrimExpr::Binary(n) if n.op == BinaryOp::Mul => (&n.a, n.b.as_int()?),
            other => (other, 1),
        };
        match block.iter_vars.iter().find(|i| factor.as_var() == Some(&i.var)) {
            Some(iter) => terms.push((iter.clone(), weight)),
            None if prim::free_vars(&e).iter().any(|v| block.iter_vars.iter().any(|i| i.var == *v)) => return None,
            None => rest = prim::add(rest, e),
        }
    }
    terms.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
    for pair in terms.windows(2) {
        let [(_, heavy), (light, weight)] = pair else { return None };
        if *weight <= 0 || !light.min.is_int(0) || light.extent.as_int()?.checked_mul(*weight)? > *heavy {
            return None;
        }
    }
    let (mut min, mut max) = (&needed.min - width - &rest, &needed.max - rest);
    let mut found = Vec::new();
    for (iter, weight) in terms {
        let by = prim::int_of(min.dtype(), weight);
        let part = |e: &PrimExpr, analyzer: &mut Analyzer| analyzer.simplify_as_tvm(&prim::floordiv(e, by.clone()));
        let (low, high) = (part(&min, analyzer), part(&max, analyzer));
        let same = analyzer.can_prove_equal(&low, &high);
        found.push((iter.var.clone(), Interval { min: low, max: high }));
        if !same {
            break;
        }
        min = analyzer.simplify_as_tvm(&prim::floormod(min, by.clone()));
        max = analyzer.simplify_as_tvm(&prim::floormod(max, by.clone()));
    }
    Some(found)
}

/// The values of a variable at which an expression lies in an interval.
fn solve(e: &PrimExpr, var: &Ref<Var>, target: Interval, analyzer: &mut Analyzer) -> Option<Interval> {
    if e.as_var() == Some(var) {
        let (min, max) = (analyzer.simplify_as_tvm(&target.min), analyzer.simplify_as_tvm(&target.max));
        return Some(Interval { min, max });
    }
    let PrimExpr::Binary(n) = e else { return None };
    let (inside_a, inside_b) = (prim::free_vars(&n.a).contains(var), prim::free_vars(&n.b).contains(var));
    let Interval { min, max } = target;
    match (n.op, inside_a, inside_b) {
        (BinaryOp::Add, true, false) => solve(&n.a, var, Interval { min: min - &n.b, max: max - &n.b }, analyzer),
        (BinaryOp::Add, false, true) => solve(&n.b, var, Interval { min: min - &n.a, max: max - &n.a }, analyzer),
        (BinaryOp::Sub, true, false) => solve(&n.a, var, Interval { min: min + &n.b, max: max + &n.b }, analyzer),
        (BinaryOp::Sub, false, true) => solve(&n.b, var, Interval { min: &n.a - max, max: &n.a - min }, analyzer),
        (BinaryOp::Mul, true, false) if n.b.as_int().is_some_and(|c| c > 0) => {
            let c = &n.b;
            let low = prim::floordiv(min + c - prim::int_of(c.dtype(), 1), c.clone());
            solve(&n.a, var, Interval { min: low, max: prim::floordiv(max, c.clone()) }, analyzer)
        }
        (BinaryOp::FloorDiv, true, false) if n.b.as_int().is_some_and(|c| c > 0) => {
            let c = &n.b;
            solve(&n.a, var, Interval { min: min * c, max: max * c + (c - prim::int_of(c.dtype(), 1)) }, analyzer)
        }
        _ => None,
    }
}
