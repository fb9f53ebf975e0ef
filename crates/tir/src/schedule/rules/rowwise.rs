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
//! Short rows go in groups of 1024 elements, and each piece through a whole group: `M[13], E[13, n], S[13]`. At the end of
//! a row's sum the lanes of a vector become one number, on which the rest of the row waits; the next row does not. A row of
//! `E` has room for whole vectors, so that none needs a masked store. Where the length is known only when the work runs,
//! there are two nests, and it decides between them.
//!
//! Parameters: elements of a task, which hide its start and the allocation. Roof: memory bandwidth, reading the input once
//! and writing the output once, where the functions in between are not dearer than that.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::prim::{PrimExpr, PrimMutator, add, floordiv, int, le, max, min, mul, sub};

use super::super::affine::{cost, product};
use super::super::parameters::Choices;
use super::super::prefetch::Prefetch;
use super::super::record::Record;
use super::super::rows::{Decided, RowBatch, Rows};
use super::super::{Axis, Cx, Machine, Reduce, ScheduleError, Stage, Work, nest};
use super::{cached_row, rule};
use crate::functor::{StmtMutator, fresh_copy};
use crate::{ForKind, Stmt};

/// Makes the nest.
pub fn apply(cx: &mut Cx, rows: &Rows, decided: &Decided, record: &mut Record<'_>) -> Result<Stmt, ScheduleError> {
    // The longest row decides, the cost of all of them whether threads pay.
    let elements = rows.pieces.iter().map(elements).reduce(max).unwrap_or_else(|| int(1));
    let count = product(rows.axes.iter().map(|a| &a.extent));
    let work = mul(&count, rows.pieces.iter().map(work).fold(int(0), add));
    let (each, task) = (Var::dim("each"), Var::dim("task"));
    let bind = Stmt::bind(each.clone(), max(int(1), floordiv(int(decided.task), max(int(1), &elements))));
    let each = PrimExpr::from(&each);
    let first = mul(PrimExpr::from(&task), &each);
    let task_rows =
        TaskRows { many: min(each.clone(), sub(&count, &first)), first, elements: elements.clone(), decided };
    let tasks = floordiv(add(count, sub(&each, int(1))), each);
    let machine = Machine { parallel_threshold: decided.threads_from, ..cx.machine.clone() };
    let over = |body| nest::parallel(&machine, task.clone(), tasks.clone(), work.clone(), body);
    let mut all = over(task_rows.nest(cx, rows, record)?);
    if let Some((most, short)) = &rows.short {
        // The same rules serve the same pieces. A function for each way keeps their registers apart.
        let body = record.of_short_rows(|record| task_rows.nest(cx, short, record))?;
        all = Stmt::if_else(le(elements, int(*most)), fresh_copy(&over(body)), all);
    }
    Ok(Stmt::seq([bind, all]))
}

/// The rows of one task.
struct TaskRows<'a> {
    decided: &'a Decided,
    first: PrimExpr,
    many: PrimExpr,
    /// Elements of a row, of the piece that has most.
    elements: PrimExpr,
}

impl TaskRows<'_> {
    /// All pieces over these rows, with the memory between them.
    fn nest(&self, cx: &mut Cx, rows: &Rows, record: &mut Record<'_>) -> Result<Stmt, ScheduleError> {
        let row = Var::dim("row");
        let (count, binds) = nest::fuse(&rows.axes, &row);
        let mut asking = rows.pieces.clone();
        let mut before = binds;
        let step = rows.together.as_ref().map_or_else(|| int(1), |t| PrimExpr::from(&t.count));
        let next = Prefetch::in_rows(rows, &row, step, &count).filter(|_| self.decided.ask_next);
        if let Some((pieces, ahead, next)) = next {
            for piece in pieces {
                if let Some(stage) = asking.get_mut(piece).and_then(Work::stage_mut) {
                    stage.ahead = Some(Box::new(ahead.clone().with(stage.ahead.take())));
                }
            }
            before.extend(next);
        }
        let machine = cx.machine.clone();
        cx.machine = machine.one_thread();
        let pieces = in_row(cx, &asking, record)?;
        let pieces: Vec<Stmt> = pieces.iter().map(|piece| unroll_short(piece, self.decided.unrolled)).collect();
        cx.machine = machine;
        let (together, body) = match &rows.together {
            None => {
                let inner = Var::dim("r");
                let at = Stmt::bind(row, add(&self.first, PrimExpr::from(&inner)));
                let body = Stmt::seq([at].into_iter().chain(before).chain(pieces));
                (Stmt::nop(), Stmt::serial(inner, self.many.clone(), body))
            }
            Some(together) => {
                let fitting = min(int(together.most), floordiv(int(together.elements), max(int(1), &self.elements)));
                let body = in_groups(together, &row, &self.first, &self.many, before, pieces);
                (Stmt::bind(together.count.clone(), fitting), body)
            }
        };
        let scratch = rows.scratch.iter().map(Stmt::alloc);
        Ok(Stmt::seq([together].into_iter().chain(scratch).chain([body])))
    }
}

/// The nests of the pieces over one row.
fn in_row(cx: &mut Cx, work: &[Work], record: &mut Record<'_>) -> Result<Vec<Stmt>, ScheduleError> {
    let mut pieces = Vec::new();
    let mut rest = work;
    while let Some((piece, behind)) = rest.split_first() {
        if let (Work::Map(made), Some((Work::Reduce(reduce), further))) = (piece, behind.split_first())
            && let Some(nest) = kept(cx, made, reduce, record)?
        {
            pieces.push(nest);
            rest = further;
            continue;
        }
        pieces.push(super::schedule(cx, piece, record)?);
        rest = behind;
    }
    Ok(pieces)
}

/// One nest of a map and the reduction of its row, where that is possible and nothing is asked for one of them alone.
fn kept(cx: &mut Cx, made: &Stage, reduce: &Reduce, record: &mut Record<'_>) -> Result<Option<Stmt>, ScheduleError> {
    let stage = format!("{}, {}", made.name, reduce.stage.name);
    let asked = record.asked(&record.key(&stage));
    let is_alone = |name: &str| record.asked(&record.key(name)).is_some();
    if asked.is_none() && (is_alone(&made.name) || is_alone(&reduce.stage.name)) {
        return Ok(None);
    }
    let mut choices = Choices::of(asked);
    match rule::apply::<cached_row::Kept>(cx, &(made.clone(), reduce.clone()), &mut choices) {
        Ok(nest) => record.settle_with(stage, "cached_row", choices).map(|()| Some(nest)),
        Err(_) => Ok(None),
    }
}

/// Rows in groups, each piece through a whole group.
fn in_groups(
    together: &RowBatch,
    row: &Ref<Var>,
    first: &PrimExpr,
    many: &PrimExpr,
    before: Vec<Stmt>,
    pieces: Vec<Stmt>,
) -> Stmt {
    let (group, start) = (Var::dim("g"), Var::dim("start"));
    let done = mul(PrimExpr::from(&group), PrimExpr::from(&together.count));
    let left = Var::dim("left");
    let at = Stmt::bind(row.clone(), add(PrimExpr::from(&start), PrimExpr::from(&together.slot)));
    let over = |piece: Stmt| {
        let body = Stmt::seq([at.clone()].into_iter().chain(before.iter().cloned()).chain([piece]));
        fresh_copy(&Stmt::serial(together.slot.clone(), PrimExpr::from(&left), body))
    };
    let binds = [
        Stmt::bind(start.clone(), add(first, &done)),
        Stmt::bind(left.clone(), min(PrimExpr::from(&together.count), sub(many, done))),
    ];
    let groups = floordiv(add(many, sub(PrimExpr::from(&together.count), int(1))), PrimExpr::from(&together.count));
    Stmt::serial(group, groups, Stmt::seq(binds.into_iter().chain(pieces.into_iter().map(over))))
}

fn axes(work: &Work) -> Vec<&Axis> {
    match work {
        Work::Map(stage) => stage.spatial.iter().collect(),
        Work::Reduce(reduce) => reduce.stage.spatial.iter().chain(&reduce.stage.reduce).collect(),
        Work::Rows(_) | Work::BackToBack(_) | Work::Opaque(_) => Vec::new(),
    }
}

fn elements(work: &Work) -> PrimExpr {
    product(axes(work).into_iter().map(|a| &a.extent))
}

fn work(work: &Work) -> PrimExpr {
    let each = match work {
        Work::Map(stage) => cost(&stage.value),
        Work::Reduce(reduce) => cost(&reduce.stage.value),
        Work::Rows(_) | Work::BackToBack(_) | Work::Opaque(_) => 0,
    };
    mul(elements(work), int(each + 1))
}

/// Writes out loops over a few vectors, so that what one piece makes of a short row reaches the next in registers.
fn unroll_short(body: &Stmt, most: i64) -> Stmt {
    /// Up to how many vectors.
    struct Unroll(i64);
    impl PrimMutator for Unroll {}
    impl StmtMutator for Unroll {
        fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
            match stmt {
                Stmt::For(n) if n.kind == ForKind::Serial => {
                    let is_short = n.min.is_int(0) && n.extent.as_int().is_some_and(|n| n <= self.0);
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
    Unroll(most).mutate_stmt(body)
}
