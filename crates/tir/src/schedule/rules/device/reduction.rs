//! Reductions of many terms: the threads of a block share them.
//!
//! ```text
//! B[i] = sum over k of A[i, k]                       # terms lie side by side: neighbours take neighbouring terms
//!   ->  block i:  256 threads, each every 256th term; then a tree in shared memory
//! B[j] = sum over k of A[k, j]                       # results lie side by side: neighbours make neighbouring results
//!   ->  block j:  32 results, 8 threads for each
//! ```
//!
//! Also one-row products, where the vector is read from the cache. Parameters: 256 threads a block; as many of them for one result as there
//! are terms, or 8 where results lie side by side. Few terms, and many results that lie side by side, are left to the fallback, where each
//! thread makes a result: its neighbours read neighbours as well. Roof: memory bandwidth.

use relaxide_ir::Var;
use relaxide_ir::prim::{PrimExpr, add, floordiv, floormod, int, lt, mul};
use relaxide_ir::{BinaryOp, Buffer};

use super::super::super::affine::{ceil_div, coefficient, flat_index, loads, product};
use super::super::super::threads::launch;
use super::super::super::{Axis, Cx, Reduce, Refusal, nest};
use super::limits;
use super::team::{Team, power_of_two, refuse_checks};
use crate::Stmt;

/// Threads of a block.
const THREADS: i64 = 256;
/// Threads for one result where nobody knows how many terms there are.
const UNKNOWN: i64 = 128;
/// Terms below which one thread makes a result.
const FEW: i64 = 32;
/// Results side by side that a block makes together: what one access of neighbouring threads brings.
const COLUMNS: i64 = 32;
/// Results side by side from which there are enough for a thread each.
const MANY: i64 = 64 << 10;

/// How the threads of a block are shared out.
struct Shape {
    /// Threads for one result.
    terms: i64,
    /// Results of a block.
    groups: i64,
    /// The axis along which results lie side by side, if neighbours make neighbouring results.
    column: Option<usize>,
}

/// Makes the nest of a reduction of many terms.
pub fn apply(cx: &mut Cx, reduce: &Reduce) -> Result<Stmt, Refusal> {
    refuse_checks(reduce)?;
    let shape = shape(reduce, power_of_two(limits(cx)?.threads.min(THREADS)))?;
    let Shape { terms, groups, column } = shape;
    let mut axes: Vec<Axis> = reduce.stage.spatial.clone();
    if let Some(column) = column {
        let column = axes.remove(column);
        axes.push(column);
    }
    let [block, thread, point] = ["block", "thread", "point"].map(Var::dim);
    let (results, binds) = nest::fuse(&axes, &point);
    let (number, block_number) = (PrimExpr::from(&thread), PrimExpr::from(&block));
    let [group, term] = ["group", "term"].map(Var::dim);
    let (group_of, term_of, stride) = match column {
        Some(_) => (floormod(&number, int(groups)), floordiv(&number, int(groups)), groups),
        None => (floordiv(&number, int(terms)), floormod(&number, int(terms)), 1),
    };
    let team = Team { terms, term: PrimExpr::from(&term), thread: number, stride };
    let red = Buffer::scoped("red", reduce.stage.output.dtype, [int(terms * groups)], "shared");
    let at = add(mul(block_number, int(groups)), PrimExpr::from(&group));
    let whole = results.as_int().is_some_and(|n| n % groups == 0);
    let wanted = (!whole).then(|| lt(PrimExpr::from(&point), results.clone()));
    let mut body = vec![Stmt::alloc(&red), Stmt::bind(group, group_of), Stmt::bind(term, term_of)];
    body.push(Stmt::bind(point.clone(), if axes.is_empty() { int(0) } else { at }));
    if !axes.is_empty() {
        body.extend(binds);
    }
    body.push(team.reduce(reduce, &red, wanted.as_ref())?);
    let finish = Stmt::when(lt(&team.term, int(1)), team.finish(reduce, &red)?);
    body.push(wanted.map_or(finish.clone(), |wanted| Stmt::when(wanted, finish)));
    Ok(launch(&block, ceil_div(&results, groups), &thread, terms * groups, Stmt::seq(body)))
}

fn shape(reduce: &Reduce, threads: i64) -> Result<Shape, Refusal> {
    let stage = &reduce.stage;
    let op = stage.reduction.as_ref().map(|r| r.op);
    if !matches!(op, Some(BinaryOp::Add | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max)) {
        return Err(Refusal::new("its parts cannot be put together"));
    }
    let terms = product(stage.reduce.iter().map(|a| &a.extent)).as_int();
    if terms.is_some_and(|n| n < FEW) {
        return Err(Refusal::new("few terms"));
    }
    let reads = loads(&stage.value);
    let along =
        |axis: &Axis| reads.iter().any(|l| coefficient(&flat_index(&l.buffer, &l.indices), &axis.var) == Some(1));
    let for_one = || match terms {
        Some(n) => power_of_two(n).min(threads),
        None => UNKNOWN.min(threads),
    };
    if stage.reduce.last().is_some_and(&along) {
        let terms = for_one();
        return Ok(Shape { terms, groups: threads / terms, column: None });
    }
    let results = product(stage.spatial.iter().map(|a| &a.extent)).as_int();
    let Some(column) = stage.spatial.iter().rposition(&along) else {
        if terms.is_some_and(|n| n < threads) || results.is_none_or(|n| n >= threads) {
            return Err(Refusal::new("terms lie apart, and there are threads enough"));
        }
        return Ok(Shape { terms: for_one(), groups: 1, column: None });
    };
    if results.is_some_and(|n| n >= MANY) {
        return Err(Refusal::new("there are enough results side by side for a thread each"));
    }
    let groups = stage.spatial[column].extent.as_int().map_or(COLUMNS, |n| power_of_two(n).min(COLUMNS)).min(threads);
    let most = terms.map_or(threads, power_of_two);
    Ok(Shape { terms: (threads / groups).min(most), groups, column: Some(column) })
}
