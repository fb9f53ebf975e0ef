//! Loops whose iterations follow from each other, around loops whose iterations do not: the threads of a block go through the outer ones together.
//!
//! ```text
//! for i:                                                 # rows
//!     for j: B[i, j] = A[i, order[i, j]]
//!     kept[0] = 0
//!     for j in range(n[i]):
//!         if B[i, j] > 0 and kept[0] < most:
//!             kept[0] += 1
//!             for k in range(n[i]): if k > j and f(B[i, j], B[i, k]): B[i, k] = -1
//!   ->  B[i, j] = A[i, order[i, j]]                      an element a thread
//!       block i, 256 threads:  kept is shared
//!           thread 0: kept[0] = 0;  sync
//!           for j in range(n[i]):
//!               stays = B[i, j] > 0 and kept[0] < most   all threads
//!               sync
//!               if stays: thread 0: kept[0] += 1
//!               if stays: k = thread, thread + 256, …: if k > j and f(B[i, j], B[i, k]): B[i, k] = -1
//!               sync
//! ```
//!
//! Suppression of boxes is such. Iterations do not depend on each other where each element that they write has their number as an index, and what
//! they read of others' is one that none of them writes: the conditions around all stores say that they are not that iteration. A barrier stands
//! where threads come to a buffer that others have written, or write one that others have read, since the last one. What no threads share is
//! the first thread's. Conditions and lengths that come from memory are read by all threads between two barriers, and so are the same.
//!
//! What stands in a row is cut where nothing of a row's own numbers goes on: parts whose iterations do not depend on each other are an element a
//! thread, others a row a thread. Indices that are data are checked there alone, since a check ends a thread for which others would wait.
//! Parameters: 256 threads, or fewer for shorter inner loops. Roof: a barrier or two an iteration.

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::prim::{
    PrimExpr, add, boolean, call, constant, floordiv, if_then_else, int, is_data, lt, mul, not, sub,
};
use relaxide_ir::{BinaryOp, Buffer, DataType, Var};

use super::super::super::affine::{loads, same, uses_any};
use super::super::super::parameters::Choices;
use super::super::super::threads::launch;
use super::super::super::{Axis, Cx, Refusal, nest};
use super::super::independent::{Accesses, Assigned, Rename, is_own};
use super::scan::loops;
use super::team::{over_points, power_of_two};
use super::{limits, threads};
use crate::lower::stores_packed;
use crate::stmt::{For, IfThenElse, is_barrier};
use crate::{ForKind, Stmt, StmtMutator};

/// Threads of a block.
const THREADS: i64 = 256;
/// Iterations of an inner loop from which threads share them.
const FEW: i64 = 16;
/// Threads of a block at least: those that a device runs in step.
const FEWEST: i64 = 32;

/// Makes the nest.
pub fn apply(cx: &mut Cx, stmt: &Stmt, choices: &mut Choices<'_>) -> Result<Stmt, Refusal> {
    let limits = limits(cx)?;
    let found = Rows::read(cx, stmt)?;
    let guess = found.longest.map_or(THREADS, |n| power_of_two(2 * n - 1).clamp(FEWEST, THREADS));
    let threads = threads(
        choices,
        limits,
        guess,
        "the longest inner loop has as many iterations or more, or nobody knows how many",
    );
    let parts = found.parts.iter().map(|part| found.emit(part, threads));
    Ok(Stmt::seq(parts.collect::<Result<Vec<_>, _>>()?))
}

/// Rows that have nothing to do with each other.
struct Rows {
    axes: Vec<Axis>,
    parts: Vec<Part>,
    /// Numbers that each row has for itself.
    own: Vec<Ref<Buffer>>,
    /// Iterations of the longest loop that threads share, if they are known.
    longest: Option<i64>,
}

/// A part of a row.
enum Part {
    /// Iterations of a loop, a thread each.
    Elements(Axis, Stmt),
    /// What the threads of a block do together.
    Cooperative(Stmt),
    /// What one thread does.
    Alone(Stmt),
}

impl Rows {
    fn read(cx: &Cx, stmt: &Stmt) -> Result<Rows, Refusal> {
        let accesses = Accesses::with_checks(stmt).ok_or_else(|| Refusal::new("it does more than loops and stores"))?;
        if stores_packed(stmt) {
            return Err(Refusal::new("elements share bytes"));
        }
        let own: Vec<Ref<Buffer>> = accesses.written.iter().filter(|b| is_own(cx, b, stmt, stmt)).cloned().collect();
        let (mut axes, _) = loops(stmt);
        let rows = axes.iter().take_while(|axis| accesses.is_row(&axis.var, &own)).count();
        axes.truncate(rows);
        let body = (0..rows).fold(stmt, |body, _| if let Stmt::For(n) = body { &n.body } else { body });
        let parts: Vec<Part> = parts(body, &own).into_iter().map(part).collect();
        let mut shared =
            parts.iter().filter_map(|part| if let Part::Cooperative(stmt) = part { Some(stmt) } else { None });
        let iterations: Vec<Option<i64>> = shared.by_ref().flat_map(|stmt| shared_loops(stmt, false)).collect();
        if iterations.is_empty() || iterations.iter().all(|n| n.is_some_and(|n| n < FEW)) {
            return Err(Refusal::new(
                "no loop whose iterations follow from each other has one inside whose iterations do not",
            ));
        }
        let longest = iterations.into_iter().try_fold(1, |longest, n| Some(n?.max(longest)));
        let of_part = |part: &Part| match part {
            Part::Elements(_, stmt) | Part::Cooperative(stmt) | Part::Alone(stmt) => {
                own.iter().all(|b| Assigned::before_read(b, stmt))
            }
        };
        if !parts.iter().all(of_part) {
            return Err(Refusal::new("what is kept from row to row is read before it is written"));
        }
        Ok(Rows { axes, parts, own, longest })
    }

    fn emit(&self, part: &Part, threads: i64) -> Result<Stmt, Refusal> {
        match part {
            Part::Elements(axis, body) => {
                let axes: Vec<Axis> = self.axes.iter().chain([axis]).cloned().collect();
                Ok(over_points(&axes, body.clone()))
            }
            Part::Alone(body) => Ok(over_points(&self.axes, self.with_own(body, "local"))),
            Part::Cooperative(body) => self.cooperative(&self.with_own(body, "shared"), threads),
        }
    }

    /// A part with memory for the row's own numbers.
    fn with_own(&self, body: &Stmt, scope: &str) -> Stmt {
        let Some(accesses) = Accesses::with_checks(body) else { return body.clone() };
        let used = self.own.iter().filter(|own| accesses.places.iter().any(|(buffer, _)| buffer == *own));
        let fresh = used.map(|b| (b.clone(), Buffer::scoped(b.name.clone(), b.dtype, b.shape.clone(), scope)));
        let mut rename = Rename(fresh.collect());
        let body = rename.mutate_stmt(body);
        let mut own: Vec<&Ref<Buffer>> = rename.0.values().collect();
        own.sort_by(|a, b| a.name.cmp(&b.name));
        Stmt::seq(own.into_iter().map(Stmt::alloc).chain([body]))
    }

    /// A block for each row.
    fn cooperative(&self, body: &Stmt, threads: i64) -> Result<Stmt, Refusal> {
        let [block, thread, row] = ["block", "thread", "row"].map(Var::dim);
        let (count, binds) = nest::fuse(&self.axes, &row);
        let mut team = Cooperative { thread: PrimExpr::from(&thread), threads, since: Since::default() };
        let mut list = vec![Stmt::bind(row, PrimExpr::from(&block))];
        list.extend(if self.axes.is_empty() { Vec::new() } else { binds });
        team.all(body, None, &mut list)?;
        Ok(launch(&block, count, &thread, threads, Stmt::seq(list)))
    }
}

/// The parts of a row: what comes behind a cut reads none of the row's own numbers before it has written them.
fn parts(body: &Stmt, own: &[Ref<Buffer>]) -> Vec<Stmt> {
    let Stmt::Seq(list) = body else { return vec![body.clone()] };
    if list.seq.iter().any(|stmt| matches!(stmt, Stmt::Bind(_) | Stmt::Alloc(_))) {
        return vec![body.clone()];
    }
    let mut parts = vec![Vec::new()];
    for (at, stmt) in list.seq.iter().enumerate() {
        let rest = Stmt::seq(list.seq[at..].iter().cloned());
        if at > 0 && own.iter().all(|b| Assigned::before_read(b, &rest)) {
            parts.push(Vec::new());
        }
        parts.last_mut().into_iter().for_each(|part| part.push(stmt.clone()));
    }
    parts.into_iter().map(Stmt::seq).collect()
}

fn part(stmt: Stmt) -> Part {
    if let Stmt::For(n) = &stmt
        && is_parallel(n)
        && !is_data(&n.extent)
    {
        return Part::Elements(Axis { var: n.var.clone(), extent: n.extent.clone() }, n.body.clone());
    }
    let is_checked = Accesses::with_checks(&stmt).is_none_or(|accesses| accesses.checks);
    if is_checked || shared_loops(&stmt, false).is_empty() { Part::Alone(stmt) } else { Part::Cooperative(stmt) }
}

/// How many iterations loops have that threads can share, inside of loops whose iterations follow from each other.
fn shared_loops(stmt: &Stmt, is_inside: bool) -> Vec<Option<i64>> {
    match stmt {
        Stmt::For(n) if is_parallel(n) => is_inside.then(|| n.extent.as_int()).into_iter().collect(),
        Stmt::For(n) => shared_loops(&n.body, true),
        Stmt::Seq(n) => n.seq.iter().flat_map(|stmt| shared_loops(stmt, is_inside)).collect(),
        Stmt::If(n) => {
            let branches = [Some(&n.then_case), n.else_case.as_ref()];
            branches.into_iter().flatten().flat_map(|stmt| shared_loops(stmt, is_inside)).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether threads share something of a statement.
fn is_shared(stmt: &Stmt) -> bool {
    !shared_loops(stmt, true).is_empty()
}

/// Whether the iterations of a loop have nothing to do with each other.
fn is_parallel(n: &For) -> bool {
    let counts = n.min.is_int(0) && n.kind == ForKind::Serial && n.annotations.0.is_empty();
    let Some(accesses) = Accesses::with_checks(&n.body) else { return false };
    if !counts || n.var.dtype() != DataType::int(64) {
        return false;
    }
    let mut iteration = Iteration::default();
    iteration.inside.insert(n.var.clone());
    iteration.follow(&n.body, &mut Vec::new());
    accesses.written.iter().all(|buffer| {
        (0..buffer.ndim()).any(|dim| {
            let own = |index: Option<&PrimExpr>| index.and_then(PrimExpr::as_var) == Some(&n.var);
            let mut stores = iteration.stores.iter().filter(|(stored, ..)| stored == buffer);
            let mut places = accesses.places.iter().filter(|(used, _)| used == buffer);
            stores.all(|(_, indices, _)| own(indices.get(dim)))
                && places.all(|(_, indices)| {
                    let Some(index) = indices.get(dim) else { return false };
                    own(Some(index)) || iteration.is_apart(buffer, &PrimExpr::from(&n.var), index, &accesses.written)
                })
        })
    })
}

/// What an iteration stores, and the names that it makes.
#[derive(Default)]
struct Iteration {
    /// Buffers, indices, and the conditions around.
    stores: Vec<(Ref<Buffer>, Vec<PrimExpr>, Vec<PrimExpr>)>,
    inside: HashSet<Ref<Var>>,
}

impl Iteration {
    fn follow(&mut self, stmt: &Stmt, around: &mut Vec<PrimExpr>) {
        match stmt {
            Stmt::Store(n) => self.stores.push((n.buffer.clone(), n.indices.clone(), around.clone())),
            Stmt::Seq(n) => n.seq.iter().for_each(|stmt| self.follow(stmt, around)),
            Stmt::If(n) => {
                let outside = around.len();
                conditions(&n.condition, around);
                self.follow(&n.then_case, around);
                around.truncate(outside);
                n.else_case.iter().for_each(|stmt| self.follow(stmt, around));
            }
            Stmt::For(n) => {
                self.inside.insert(n.var.clone());
                self.follow(&n.body, around);
            }
            Stmt::While(n) => self.follow(&n.body, around),
            Stmt::Bind(n) => {
                self.inside.insert(n.var.clone());
            }
            _ => {}
        }
    }

    /// Whether an index is the same in all iterations, and no iteration that stores is that one.
    fn is_apart(
        &self,
        buffer: &Ref<Buffer>,
        iteration: &PrimExpr,
        index: &PrimExpr,
        written: &HashSet<Ref<Buffer>>,
    ) -> bool {
        let is_fixed =
            !uses_any(index, &self.inside) && loads(index).iter().all(|load| !written.contains(&load.buffer));
        let differs = |condition: &PrimExpr| {
            let PrimExpr::Binary(n) = condition else { return false };
            let compares = matches!(n.op, BinaryOp::Lt | BinaryOp::Gt | BinaryOp::Ne);
            compares && (same(&n.a, iteration) && same(&n.b, index) || same(&n.b, iteration) && same(&n.a, index))
        };
        let mut stores = self.stores.iter().filter(|(stored, ..)| stored == buffer);
        is_fixed && stores.all(|(.., around)| around.iter().any(differs))
    }
}

/// The conditions that hold together.
fn conditions(condition: &PrimExpr, out: &mut Vec<PrimExpr>) {
    match condition {
        PrimExpr::Binary(n) if n.op == BinaryOp::And => {
            conditions(&n.a, out);
            conditions(&n.b, out);
        }
        other => out.push(other.clone()),
    }
}

/// What the threads of a block have read and written since they last waited for each other.
#[derive(Clone, Default)]
struct Since {
    read: HashSet<Ref<Buffer>>,
    written: HashSet<Ref<Buffer>>,
}

impl Since {
    fn is_nothing(&self) -> bool {
        self.read.is_empty() && self.written.is_empty()
    }
}

/// Statements as the threads of a block execute them. Barriers stand in loops and in no choice, where PoCL 3.1 loses what threads keep in
/// registers: what a choice is about asks by itself.
struct Cooperative {
    thread: PrimExpr,
    threads: i64,
    since: Since,
}

impl Cooperative {
    /// A statement that all threads come to, and execute if a condition holds.
    fn all(&mut self, stmt: &Stmt, guard: Option<&PrimExpr>, out: &mut Vec<Stmt>) -> Result<(), Refusal> {
        match stmt {
            Stmt::Alloc(_) => out.push(stmt.clone()),
            Stmt::Bind(n) => {
                let value = self.common(&n.value, guard, out);
                out.push(Stmt::bind(n.var.clone(), value));
            }
            Stmt::Seq(n) => {
                let is_alone = |stmt: &Stmt| !matches!(stmt, Stmt::Alloc(_) | Stmt::Bind(_)) && !is_shared(stmt);
                for run in n.seq.chunk_by(|a, b| is_alone(a) && is_alone(b)) {
                    match run {
                        [one] => self.all(one, guard, out)?,
                        several => self.alone(&Stmt::seq(several.iter().cloned()), guard, out)?,
                    }
                }
            }
            _ if !is_shared(stmt) => self.alone(stmt, guard, out)?,
            Stmt::For(n) if is_parallel(n) => self.share(n, guard, out)?,
            Stmt::For(n) => self.iterations(n, guard, out)?,
            Stmt::If(n) => self.choose(n, guard, out)?,
            _ => return Err(Refusal::new("it does more than loops and stores")),
        }
        Ok(())
    }

    /// A barrier, where threads would come to what others use.
    fn order(&mut self, read: HashSet<Ref<Buffer>>, written: HashSet<Ref<Buffer>>, out: &mut Vec<Stmt>) {
        let meets = |a: &HashSet<Ref<Buffer>>, b: &HashSet<Ref<Buffer>>| !a.is_disjoint(b);
        let Since { read: was_read, written: was_written } = &self.since;
        if meets(&read, was_written) || meets(&written, was_written) || meets(&written, was_read) {
            self.wait(out);
        }
        self.since.read.extend(read);
        self.since.written.extend(written);
    }

    fn wait(&mut self, out: &mut Vec<Stmt>) {
        out.push(Stmt::barrier());
        self.since = Since::default();
    }

    fn order_stmt(&mut self, stmt: &Stmt, out: &mut Vec<Stmt>) -> Result<(), Refusal> {
        let accesses = Accesses::with_checks(stmt).ok_or_else(|| Refusal::new("it does more than loops and stores"))?;
        let read = accesses.places.into_iter().map(|(buffer, _)| buffer).filter(|b| !accesses.written.contains(b));
        self.order(read.collect(), accesses.written, out);
        Ok(())
    }

    /// A value that is the same in all threads, also where it comes from memory; nothing where it is not to be read.
    fn common(&mut self, value: &PrimExpr, guard: Option<&PrimExpr>, out: &mut Vec<Stmt>) -> PrimExpr {
        let read: HashSet<Ref<Buffer>> = loads(value).iter().map(|load| load.buffer.clone()).collect();
        if read.is_empty() {
            return value.clone();
        }
        self.order(read, HashSet::new(), out);
        let value = guarded(value, guard);
        call(value.dtype(), "tirx.tvm_thread_invariant", vec![value])
    }

    /// The same under a name, since what is read may change.
    fn named(&mut self, name: &str, value: &PrimExpr, guard: Option<&PrimExpr>, out: &mut Vec<Stmt>) -> PrimExpr {
        if loads(value).is_empty() {
            return guarded(value, guard);
        }
        let (value, var) = (self.common(value, guard, out), Var::prim(name, value.dtype()));
        out.push(Stmt::bind(var.clone(), value));
        PrimExpr::from(&var)
    }

    /// What the first thread does.
    fn alone(&mut self, stmt: &Stmt, guard: Option<&PrimExpr>, out: &mut Vec<Stmt>) -> Result<(), Refusal> {
        self.order_stmt(stmt, out)?;
        out.push(under(guard, Stmt::when(lt(self.thread.clone(), int(1)), stmt.clone())));
        Ok(())
    }

    /// Iterations that threads share.
    fn share(&mut self, n: &For, guard: Option<&PrimExpr>, out: &mut Vec<Stmt>) -> Result<(), Refusal> {
        let extent = match loads(&n.extent).is_empty() {
            true => n.extent.clone(),
            false => self.named("extent", &n.extent, guard, out),
        };
        self.order_stmt(&n.body, out)?;
        let thread = &self.thread;
        let shared = match extent.as_int() {
            Some(few) if few <= self.threads => Stmt::seq([
                Stmt::bind(n.var.clone(), thread.clone()),
                Stmt::when(lt(PrimExpr::from(&n.var), extent), n.body.clone()),
            ]),
            _ => {
                // So many iterations are this thread's.
                let iterations = floordiv(sub(add(extent, int(self.threads - 1)), thread.clone()), int(self.threads));
                Stmt::each("iteration", iterations, |iteration| {
                    let at = add(mul(iteration, int(self.threads)), thread.clone());
                    Stmt::seq([Stmt::bind(n.var.clone(), at), n.body.clone()])
                })
            }
        };
        out.push(under(guard, shared));
        Ok(())
    }

    /// Iterations that follow from each other.
    fn iterations(&mut self, n: &For, guard: Option<&PrimExpr>, out: &mut Vec<Stmt>) -> Result<(), Refusal> {
        if !n.min.is_int(0) || n.kind != ForKind::Serial {
            return Err(Refusal::new("a loop inside does not count from zero, one after the other"));
        }
        let extent = self.named("extent", &n.extent, guard, out);
        // The end of an iteration comes before the next one's beginning.
        if !self.since.is_nothing() {
            self.wait(out);
        }
        let mut body = Vec::new();
        self.all(&n.body, None, &mut body)?;
        if !self.since.is_nothing() {
            self.wait(&mut body);
        }
        out.push(Stmt::serial(n.var.clone(), extent, Stmt::seq(body)));
        Ok(())
    }

    /// Both sides of a choice beside each other: what stands between two barriers of one, with what does of the other.
    fn choose(&mut self, n: &IfThenElse, guard: Option<&PrimExpr>, out: &mut Vec<Stmt>) -> Result<(), Refusal> {
        let holds = self.named("holds", &n.condition, guard, out);
        let before = self.since.clone();
        let (mut then, mut other) = (Vec::new(), Vec::new());
        self.all(&n.then_case, Some(&holds), &mut then)?;
        let behind = std::mem::replace(&mut self.since, before);
        if let Some(stmt) = &n.else_case {
            let fails = guarded(&not(holds), guard);
            self.all(stmt, Some(&fails), &mut other)?;
        }
        self.since.read.extend(behind.read);
        self.since.written.extend(behind.written);
        let is_barrier = |stmt: &Stmt| matches!(stmt, Stmt::Evaluate(n) if is_barrier(&n.value));
        let (mut then, mut other) = (then.split(is_barrier), other.split(is_barrier));
        let mut is_first = true;
        loop {
            let (one, two) = (then.next(), other.next());
            if one.is_none() && two.is_none() {
                return Ok(());
            }
            if !std::mem::take(&mut is_first) {
                out.push(Stmt::barrier());
            }
            out.extend([one, two].into_iter().flatten().flatten().cloned());
        }
    }
}

/// A value, or nothing where a condition does not hold: no memory is read then.
fn guarded(value: &PrimExpr, guard: Option<&PrimExpr>) -> PrimExpr {
    guard.map_or_else(|| value.clone(), |guard| if_then_else(guard.clone(), value.clone(), zero(value.dtype())))
}

fn zero(dtype: DataType) -> PrimExpr {
    if dtype.is_bool() { boolean(false) } else { constant(dtype, 0.0) }
}

fn under(guard: Option<&PrimExpr>, stmt: Stmt) -> Stmt {
    match guard {
        Some(guard) => Stmt::when(guard.clone(), stmt),
        None => stmt,
    }
}
