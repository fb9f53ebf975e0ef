//! Running sums and products: the threads of a block go along a row together.
//!
//! ```text
//! for i, k: B[i, k] = A[i, 0] if k == 0 else B[i, k - 1] + A[i, k]
//!   ->  block i, 256 threads:  carry = 0
//!           for each 1024 elements of the row:
//!               part[4] = running sums of the thread's own four elements; s[t] = part[3];  sync
//!               s[t] += s[t - 1];  sync;  … t - 2, t - 4, … 128         # Hillis and Steele
//!               B[i, k] = carry + s[t - 1] + part[…];  carry += s[255];  sync
//! ```
//!
//! Few long rows are cut into pieces, a block for each. Blocks know nothing of each other, so that there are three launches: pieces by
//! themselves with their totals, the running sums of the totals, and what comes before a piece onto its elements.
//!
//! Matches perfect nests whose one store puts together the element in front along one axis and something new, by an operator that may be
//! executed in any order; what the first element is does not matter. Parameters: 256 threads, four elements each; pieces of 4096 elements
//! from 16384 in a row, where rows are fewer than 64. Roof: memory bandwidth, twice over for pieces.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{
    BinaryOp, PrimExpr, VarMap, add, binary, eq, floordiv, ge, gt, if_then_else, int, load, lt, min, mul, sub,
    substitute,
};
use relaxide_ir::{Buffer, DataType, Var};

use super::super::super::affine::{ceil_div, loads, product, same, uses_any};
use super::super::super::inline::freshen_lets;
use super::super::super::parameters::{Choices, Domain, Guess};
use super::super::super::threads::launch;
use super::super::super::{Axis, Cx, Refusal, nest};
use super::team::{ends_threads, identity, power_of_two};
use super::{limits, threads};
use crate::lower::DeviceLimits;
use crate::{ForKind, Stmt};

/// Threads of a block.
const THREADS: i64 = 256;
/// Elements of a thread at a time.
const OWN: i64 = 4;
/// Elements of a piece of a long row.
const PIECE: i64 = 4096;
/// From how many pieces on a row is cut into them.
const LONG: i64 = 4;
/// Rows from which there are blocks enough without pieces.
const MANY: i64 = 64;
/// Rows side by side from which a thread each is better: neighbours read neighbours then.
const BESIDE: i64 = 1024;
/// Elements below which a row is a thread's.
const FEW: i64 = 32;

/// What the rule decides.
#[derive(Clone, Copy)]
struct Decided {
    /// Threads of a block.
    threads: i64,
    /// Elements of a thread at a time.
    elements: i64,
    /// Elements of a piece.
    piece: i64,
    /// Elements from which a row is cut into pieces.
    long: i64,
}

impl Decided {
    fn of(choices: &mut Choices<'_>, limits: DeviceLimits) -> Decided {
        let guess = THREADS.min(power_of_two(limits.threads));
        let threads =
            threads(choices, limits, guess, "they put their sums together in as many steps as that is doubled");
        let elements = choices.choose(Guess {
            name: "elements",
            value: OWN,
            domain: Domain::powers_of_two(1, 16),
            reason: "a thread adds so many by itself before threads wait for each other",
            limit: "they are kept in registers",
        });
        let piece = choices.choose(Guess {
            name: "piece",
            value: PIECE,
            domain: Domain::powers_of_two(256, 1 << 16),
            reason: "a block goes through so many elements of a long row, a few at a time for each thread",
            limit: "a shorter piece is no work for a block, and a longer one leaves others without",
        });
        let pieces = choices.choose(Guess {
            name: "pieces_from",
            value: LONG,
            domain: Domain::powers_of_two(2, 64),
            reason: "from so many pieces in a row on blocks share it, for which everything is read twice",
            limit: "one piece is no cut",
        });
        Decided { threads, elements, piece, long: pieces * piece }
    }
}

/// Makes the nest of a scan.
pub fn apply(cx: &mut Cx, stmt: &Stmt, choices: &mut Choices<'_>) -> Result<Stmt, Refusal> {
    let decided = Decided::of(choices, limits(cx)?);
    let scan = Scan::read(stmt, decided)?;
    let Decided { threads, long, .. } = decided;
    let (rows, length) = (product(scan.rows.iter().map(|a| &a.extent)), scan.along.extent.clone());
    if length.as_int().is_some_and(|n| n < FEW) {
        return Err(Refusal::new("rows are short"));
    }
    let is_last = scan.indices.last().and_then(PrimExpr::as_var) == Some(&scan.along.var);
    if !is_last && rows.as_int().is_some_and(|n| n >= BESIDE) {
        return Err(Refusal::new("there are rows enough side by side for a thread each"));
    }
    let whole = || scan.whole(threads);
    if rows.as_int().is_none_or(|n| n >= MANY) {
        return whole();
    }
    match length.as_int() {
        Some(n) if n < long => whole(),
        Some(_) => scan.in_pieces(threads),
        None => Ok(Stmt::if_else(ge(length, int(long)), scan.in_pieces(threads)?, whole()?)),
    }
}

/// A scan.
struct Scan {
    rows: Vec<Axis>,
    along: Axis,
    output: Ref<Buffer>,
    indices: Vec<PrimExpr>,
    op: BinaryOp,
    /// What is added at a place.
    element: PrimExpr,
    decided: Decided,
}

/// Loops around one statement, which count from zero and know nothing of each other.
pub fn loops(stmt: &Stmt) -> (Vec<Axis>, &Stmt) {
    let (mut axes, mut inner): (Vec<Axis>, &Stmt) = (Vec::new(), stmt);
    while let Stmt::For(n) = inner {
        let counts = n.min.is_int(0) && n.kind == ForKind::Serial && n.annotations.0.is_empty();
        if !counts || n.var.dtype() != DataType::int(64) || uses_any(&n.extent, axes.iter().map(|a| &a.var)) {
            break;
        }
        axes.push(Axis { var: n.var.clone(), extent: n.extent.clone() });
        inner = &n.body;
    }
    (axes, inner)
}

impl Scan {
    fn read(stmt: &Stmt, decided: Decided) -> Result<Scan, Refusal> {
        let no = || Refusal::new("it is no scan");
        let (mut axes, inner) = loops(stmt);
        let Stmt::Store(store) = inner else { return Err(no()) };
        let (first, next, along) = match &store.value {
            PrimExpr::Call(n) if n.op == "tirx.if_then_else" && store.predicate.is_none() => match n.args.as_slice() {
                [PrimExpr::Binary(asked), first, next] if asked.op == BinaryOp::Eq && asked.b.is_int(0) => {
                    (first, next, asked.a.as_var().ok_or_else(no)?)
                }
                _ => return Err(no()),
            },
            _ => return Err(no()),
        };
        let at = axes.iter().position(|axis| axis.var == *along).ok_or_else(no)?;
        let along = axes.remove(at);
        let places: Vec<&Ref<Var>> = store.indices.iter().filter_map(PrimExpr::as_var).collect();
        let each_once = |axis: &Axis| places.iter().filter(|var| **var == &axis.var).count() == 1;
        if places.len() != axes.len() + 1
            || store.indices.len() != places.len()
            || !axes.iter().chain([&along]).all(each_once)
        {
            return Err(no());
        }
        let before = |e: &PrimExpr| {
            let PrimExpr::Load(n) = e else { return false };
            let steps = |(own, theirs): (&PrimExpr, &PrimExpr)| match own.as_var() == Some(&along.var) {
                true => same(theirs, &sub(own.clone(), int(1))),
                false => same(own, theirs),
            };
            n.buffer == store.buffer && n.predicate.is_none() && store.indices.iter().zip(&n.indices).all(steps)
        };
        let (op, own) = match next {
            PrimExpr::Binary(n) if before(&n.a) => (n.op, &n.b),
            PrimExpr::Binary(n) if before(&n.b) => (n.op, &n.a),
            _ => return Err(no()),
        };
        identity(op, store.buffer.dtype)?;
        if loads(own).iter().chain(&loads(first)).any(|load| load.buffer.data == store.buffer.data) {
            return Err(Refusal::new("what is added depends on what comes before"));
        }
        if store.buffer.dtype.is_packed() || loads(own).iter().any(|load| load.buffer.dtype.is_packed()) {
            return Err(Refusal::new("elements share bytes"));
        }
        if ends_threads(own) || ends_threads(first) {
            return Err(Refusal::new("an index that is data may end a thread that others wait for"));
        }
        let element = match same(first, own) {
            true => own.clone(),
            false => if_then_else(eq(PrimExpr::from(&along.var), int(0)), first.clone(), own.clone()),
        };
        let (output, indices) = (store.buffer.clone(), store.indices.clone());
        Ok(Scan { rows: axes, along, output, indices, op, element, decided })
    }

    /// A block for each row.
    fn whole(&self, threads: i64) -> Result<Stmt, Refusal> {
        let [block, thread] = ["block", "thread"].map(Var::dim);
        let row = Var::dim("row");
        let (count, binds) = nest::fuse(&self.rows, &row);
        let (body, _) = self.span(&thread, threads, &int(0), &self.along.extent)?;
        let mut all = vec![Stmt::bind(row, PrimExpr::from(&block))];
        all.extend(if self.rows.is_empty() { Vec::new() } else { binds });
        all.push(body);
        Ok(launch(&block, count, &thread, threads, Stmt::seq(all)))
    }

    /// A block for each piece of a row; then what comes before each piece.
    fn in_pieces(&self, threads: i64) -> Result<Stmt, Refusal> {
        let length = &self.along.extent;
        let pieces = ceil_div(length, self.decided.piece);
        let dims = self.rows.iter().map(|axis| axis.extent.clone()).chain([pieces.clone()]);
        let totals = Buffer::new("totals", self.output.dtype, dims.collect::<Vec<_>>());
        let before = Buffer::new("before", self.output.dtype, &totals.shape);
        let at = |piece: &PrimExpr| -> Vec<PrimExpr> {
            self.rows.iter().map(|axis| PrimExpr::from(&axis.var)).chain([piece.clone()]).collect()
        };
        let [block, thread, number, piece] = ["block", "thread", "number", "piece"].map(Var::dim);
        let mut axes = self.rows.clone();
        axes.push(Axis { var: piece.clone(), extent: pieces.clone() });
        let (count, binds) = nest::fuse(&axes, &number);
        let start = mul(PrimExpr::from(&piece), int(self.decided.piece));
        let end = min(add(&start, int(self.decided.piece)), length);
        let (body, carry) = self.span(&thread, threads, &start, &end)?;
        let total = Stmt::store(&totals, at(&PrimExpr::from(&piece)), carry);
        let mut all = vec![Stmt::bind(number.clone(), PrimExpr::from(&block))];
        all.extend(binds.iter().cloned());
        all.extend([body, Stmt::when(lt(PrimExpr::from(&thread), int(1)), total)]);
        let alone = launch(&block, count, &thread, threads, Stmt::seq(all));
        // The totals are a row as well.
        let inner = Var::dim("piece");
        let of_totals = Scan {
            rows: self.rows.clone(),
            along: Axis { var: inner.clone(), extent: pieces },
            output: before.clone(),
            indices: at(&PrimExpr::from(&inner)),
            op: self.op,
            element: load(&totals, at(&PrimExpr::from(&inner))),
            decided: self.decided,
        };
        let added = self.add_before(threads, &before, &at);
        Ok(Stmt::seq([Stmt::alloc(&totals), Stmt::alloc(&before), alone, of_totals.whole(threads)?, added]))
    }

    /// An element a thread: what comes before its piece.
    fn add_before(&self, threads: i64, before: &Ref<Buffer>, at: &dyn Fn(&PrimExpr) -> Vec<PrimExpr>) -> Stmt {
        let [block, thread, point] = ["block", "thread", "point"].map(Var::dim);
        let mut axes = self.rows.clone();
        axes.push(self.along.clone());
        let (count, binds) = nest::fuse(&axes, &point);
        let k = PrimExpr::from(&self.along.var);
        let carried = load(before, at(&sub(floordiv(&k, int(self.decided.piece)), int(1))));
        let both = binary(self.op, carried, load(&self.output, self.indices.clone()));
        let store = Stmt::when(ge(&k, int(self.decided.piece)), Stmt::store(&self.output, self.indices.clone(), both));
        let inside = Stmt::seq(binds.into_iter().chain([store]));
        let body = Stmt::seq([
            Stmt::bind(point.clone(), add(mul(PrimExpr::from(&block), int(threads)), PrimExpr::from(&thread))),
            Stmt::when(lt(PrimExpr::from(&point), count.clone()), inside),
        ]);
        launch(&block, ceil_div(&count, threads), &thread, threads, body)
    }

    /// What a block does with the elements from a place to another, and what all of them make together, which each of its threads has.
    fn span(
        &self,
        thread: &Ref<Var>,
        threads: i64,
        start: &PrimExpr,
        end: &PrimExpr,
    ) -> Result<(Stmt, PrimExpr), Refusal> {
        let dtype = self.output.dtype;
        let (neutral, own) = (identity(self.op, dtype)?, self.decided.elements);
        let op = |a: PrimExpr, b: PrimExpr| binary(self.op, a, b);
        let shared = |name: &str| Buffer::scoped(name, dtype, [int(threads)], "shared");
        let sums = [shared("sums"), shared("more")];
        let (carry, part) =
            (Buffer::scoped("carry", dtype, [int(1)], "local"), Buffer::scoped("part", dtype, [int(own)], "local"));
        let (t, carried) = (PrimExpr::from(thread), load(&carry, [int(0)]));
        let iteration = Var::dim("iteration");
        let first = Var::dim("first");
        let of_iteration = mul(PrimExpr::from(&iteration), int(threads * own));
        let place = |v: i64| add(PrimExpr::from(&first), int(v));
        let mut body = vec![Stmt::bind(first.clone(), add(add(start.clone(), of_iteration), mul(t.clone(), int(own))))];
        for v in 0..own {
            let k = Var::dim("k");
            let term =
                freshen_lets(&substitute(&self.element, &VarMap::from([(self.along.var.clone(), PrimExpr::from(&k))])));
            let term = if_then_else(lt(PrimExpr::from(&k), end.clone()), term, neutral.clone());
            let sum = if v == 0 { term } else { op(load(&part, [int(v - 1)]), term) };
            body.extend([Stmt::bind(k, place(v)), Stmt::store(&part, [int(v)], sum)]);
        }
        body.extend([Stmt::store(&sums[0], [t.clone()], load(&part, [int(own - 1)])), Stmt::barrier()]);
        let (mut step, mut from) = (1, 0);
        while step < threads {
            let (old, new) = (&sums[from], &sums[1 - from]);
            let alone = load(old, [t.clone()]);
            let both = op(load(old, [sub(t.clone(), int(step))]), alone.clone());
            let sum = if_then_else(ge(t.clone(), int(step)), both, alone);
            body.extend([Stmt::store(new, [t.clone()], sum), Stmt::barrier()]);
            (step, from) = (2 * step, 1 - from);
        }
        let sums_of_all = &sums[from];
        let ahead = op(carried.clone(), load(sums_of_all, [sub(t.clone(), int(1))]));
        let before = Var::prim("before", dtype);
        body.push(Stmt::bind(before.clone(), if_then_else(gt(t.clone(), int(0)), ahead, carried.clone())));
        for v in 0..own {
            let k = Var::dim("k");
            let at = VarMap::from([(self.along.var.clone(), PrimExpr::from(&k))]);
            let at: Vec<PrimExpr> = self.indices.iter().map(|index| substitute(index, &at)).collect();
            let sum = op(PrimExpr::from(&before), load(&part, [int(v)]));
            let store = Stmt::when(lt(PrimExpr::from(&k), end.clone()), Stmt::store(&self.output, at, sum));
            body.extend([Stmt::bind(k, place(v)), store]);
        }
        let all = op(carried.clone(), load(sums_of_all, [int(threads - 1)]));
        body.extend([Stmt::store(&carry, [int(0)], all), Stmt::barrier()]);
        let iterations = ceil_div(&sub(end.clone(), start.clone()), threads * own);
        let span = Stmt::seq([
            Stmt::alloc(&sums[0]),
            Stmt::alloc(&sums[1]),
            Stmt::alloc(&carry),
            Stmt::alloc(&part),
            Stmt::store(&carry, [int(0)], neutral.clone()),
            Stmt::serial(iteration, iterations, Stmt::seq(body)),
        ]);
        Ok((span, carried))
    }
}
