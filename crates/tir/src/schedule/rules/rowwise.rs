//! Pieces of work that share rows: one row through all pieces, then the next.
//!
//! Matches what [`rows::join`](super::super::rows::join) has joined: softmax, the norms, and what is fused with them.
//!
//! ```text
//! parallel p in range(ceil(rows / 16)):            # as many rows as make 16384 elements
//!     allocate M[1], E[n], S[1]
//!     for r in range(16):                          # no further than the last row
//!         the nest of each piece over one row, by the rule that takes it
//! ```
//!
//! Parameters: elements of a task, which hide its start and the allocation. Roof: memory bandwidth, reading the input once
//! and writing the output once, where the functions in between are not dearer than that.

use relaxide_ir::Var;
use relaxide_ir::prim::{PrimExpr, PrimMutator, add, floordiv, int, max, min, mul, sub};

use super::super::affine::{cost, product};
use super::super::read_ahead::ReadAhead;
use super::super::rows::Rows;
use super::super::{Axis, Cx, Note, ScheduleError, Work, nest};
use crate::functor::StmtMutator;
use crate::{ForKind, Stmt};

/// Elements that one task takes.
const TASK: i64 = 16 << 10;
/// Vectors of a row up to which its loops are written out.
const UNROLLED: i64 = 12;

/// Makes the nest.
pub fn apply(cx: &mut Cx, rows: &Rows, notes: &mut Vec<Note>) -> Result<Stmt, ScheduleError> {
    let row = Var::dim("row");
    let (count, binds) = nest::fuse(&rows.axes, &row);
    let (ahead, next) = match ReadAhead::in_rows(rows, &row, &count) {
        Some((piece, ahead, binds)) => (Some((piece, ahead)), binds),
        None => (None, Vec::new()),
    };
    let machine = cx.machine.clone();
    cx.machine = machine.one_thread();
    let mut pieces = Vec::new();
    for (at, piece) in rows.pieces.iter().enumerate() {
        cx.read_ahead = ahead.as_ref().filter(|(piece, _)| *piece == at).map(|(_, ahead)| ahead.clone());
        pieces.push(super::schedule(cx, piece, notes)?);
    }
    cx.read_ahead = None;
    cx.machine = machine;
    let body = unroll_short(Stmt::seq(binds.into_iter().chain(next).chain(pieces)));
    // The longest row decides, the cost of all of them whether threads pay.
    let elements = rows.pieces.iter().map(elements).reduce(max).unwrap_or_else(|| int(1));
    let work = rows.pieces.iter().map(work).fold(int(0), add);
    let each = Var::dim("each");
    let bind = Stmt::bind(each.clone(), max(int(1), floordiv(int(TASK), max(int(1), elements))));
    let each = PrimExpr::from(&each);
    let task = Var::dim("task");
    let first = mul(PrimExpr::from(&task), &each);
    let many = min(each.clone(), sub(&count, &first));
    let inner = Var::dim("r");
    let body = Stmt::seq([Stmt::bind(row, add(first, PrimExpr::from(&inner))), body]);
    let body = Stmt::seq(rows.scratch.iter().map(Stmt::alloc).chain([Stmt::serial(inner, many, body)]));
    let tasks = floordiv(add(&count, sub(&each, int(1))), each);
    Ok(Stmt::seq([bind, nest::parallel(&cx.machine, task, tasks, mul(count, work), body)]))
}

fn axes(work: &Work) -> Vec<&Axis> {
    match work {
        Work::Map(stage) => stage.spatial.iter().collect(),
        Work::Reduce(reduce) => reduce.stage.spatial.iter().chain(&reduce.stage.reduce).collect(),
        Work::Rows(_) | Work::Opaque(_) => Vec::new(),
    }
}

fn elements(work: &Work) -> PrimExpr {
    product(axes(work).into_iter().map(|a| &a.extent))
}

fn work(work: &Work) -> PrimExpr {
    let each = match work {
        Work::Map(stage) => cost(&stage.value),
        Work::Reduce(reduce) => cost(&reduce.stage.value),
        Work::Rows(_) | Work::Opaque(_) => 0,
    };
    mul(elements(work), int(each + 1))
}

/// Writes out loops over a few vectors, so that what one piece makes of a short row reaches the next in registers.
fn unroll_short(body: Stmt) -> Stmt {
    struct Unroll;
    impl PrimMutator for Unroll {}
    impl StmtMutator for Unroll {
        fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
            match stmt {
                Stmt::For(n) if n.kind == ForKind::Serial => {
                    let is_short = n.min.is_int(0) && n.extent.as_int().is_some_and(|n| n <= UNROLLED);
                    let stores = matches!(n.body, Stmt::Store(_));
                    if is_short && stores {
                        let body = n.body.clone();
                        return Stmt::for_loop(ForKind::Unrolled, n.var.clone(), n.extent.clone(), body);
                    }
                    self.remake_stmt(stmt)
                }
                _ => self.remake_stmt(stmt),
            }
        }
    }
    Unroll.mutate_stmt(&body)
}
