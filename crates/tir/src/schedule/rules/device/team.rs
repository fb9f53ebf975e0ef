//! Threads of a block that share the terms of reductions.
//!
//! A block has `groups * terms` threads. Each group makes a result of its own: its threads go through the terms alternately, and what they
//! have is put together by a tree in shared memory, half as many threads in each step.
//!
//! ```text
//! acc = identity
//! for k in range(n // terms):  acc = acc op value(k * terms + term)        # neighbours read neighbours
//! if n // terms * terms + term < n:  acc = acc op value(…)
//! red[thread] = acc
//! sync
//! if term < 64: red[thread] = red[thread] op red[thread + 64];  sync;  … 32, 16, 8, 4, 2, 1
//! ```
//!
//! Where the threads of a warp can give each other values, and neighbours of a team are neighbours in warps, each warp puts its own together
//! first, without memory or barriers; the tree is about warps then:
//!
//! ```text
//! acc = acc op shuffle_down(acc, 16);  … 8, 4, 2, 1
//! if term % 32 == 0: red[thread] = acc
//! sync
//! if term < 64 and term % 32 == 0: red[thread] = red[thread] op red[thread + 64];  sync;  … 32
//! ```

use relaxide_ffi::Ref;
use relaxide_ir::prim::{
    BinaryOp, PrimExpr, VarMap, add, and, binary, call, constant, eq, floordiv, floormod, highest, int, int_of, load,
    lowest, lt, mul, substitute,
};
use relaxide_ir::{Buffer, DataType, Var};

use super::super::super::affine::{ceil_div, product};
use super::super::super::inline::freshen_lets;
use super::super::super::threads::{THREADS as ALONE, launch};
use super::super::super::{Axis, Reduce, Refusal, nest};
use crate::stmt::For;
use crate::warp::WARP;
use crate::{ForKind, Stmt};

/// How often the loop over the terms of one thread is unrolled, so that several loads are under way.
const UNROLL: i64 = 4;

/// The threads that make one result.
pub struct Team {
    /// How many: a power of two.
    pub terms: i64,
    /// Which of them this thread is.
    pub term: PrimExpr,
    /// The number of this thread in its block.
    pub thread: PrimExpr,
    /// By how much the numbers of neighbours in a team differ.
    pub stride: i64,
    /// Whether the threads of a warp can give each other values.
    pub shuffles: bool,
}

/// What a reduction starts from if it is to change nothing.
pub fn identity(op: BinaryOp, dtype: DataType) -> Result<PrimExpr, Refusal> {
    match op {
        BinaryOp::Add => Ok(constant(dtype, 0.0)),
        BinaryOp::Mul => Ok(constant(dtype, 1.0)),
        BinaryOp::Max => Ok(lowest(dtype)),
        BinaryOp::Min => Ok(highest(dtype)),
        _ => Err(Refusal::new("its parts cannot be put together")),
    }
}

/// Whether something may end a thread, for which others would wait then.
pub fn ends_threads(e: &PrimExpr) -> bool {
    relaxide_ir::prim::any(e, |e| matches!(e, PrimExpr::Call(n) if n.op == "tirx.checked_index"))
}

/// Refuses a reduction whose terms or result may end a thread.
pub fn refuse_checks(reduce: &Reduce) -> Result<(), Refusal> {
    let init = reduce.stage.reduction.iter().map(|r| &r.init);
    let mut parts = init.chain([&reduce.stage.value, &reduce.epilogue]).chain(&reduce.indices);
    if parts.any(ends_threads) {
        return Err(Refusal::new("an index that is data may end a thread that others wait for"));
    }
    Ok(())
}

/// The largest power of two that is no larger.
pub fn power_of_two(n: i64) -> i64 {
    if n < 1 { 1 } else { 1 << n.ilog2() }
}

impl Team {
    /// This thread's part of the points of some axes: `body` once for each, with the axes bound.
    pub fn each(&self, axes: &[Axis], mut body: impl FnMut() -> Stmt) -> Stmt {
        let count = product(axes.iter().map(|a| &a.extent));
        let at = |iteration: &PrimExpr| add(mul(iteration, int(self.terms)), &self.term);
        let point = |number: PrimExpr, body: Stmt| match axes {
            [] => body,
            _ => {
                let var = Var::dim("at");
                let (_, binds) = nest::fuse(axes, &var);
                Stmt::seq([Stmt::bind(var, number)].into_iter().chain(binds).chain([body]))
            }
        };
        let full = floordiv(&count, int(self.terms));
        let iteration = Var::dim("iteration");
        let loop_ = match full.as_int() {
            Some(0) => Stmt::nop(),
            _ => {
                let body = point(at(&PrimExpr::from(&iteration)), body());
                let annotations = relaxide_ir::Attrs::new().with(crate::schedule::nest::UNROLL_COUNT, UNROLL);
                let (min, extent, kind) = (int(0), full.clone(), ForKind::Serial);
                Ref::new(For { annotations, ..For::new(kind, iteration, min, extent, body) }).into()
            }
        };
        let rest = match count.as_int() {
            Some(n) if n % self.terms == 0 => Stmt::nop(),
            _ => {
                let number = at(&full);
                Stmt::when(lt(number.clone(), count), point(number, body()))
            }
        };
        Stmt::seq([loop_, rest])
    }

    /// One result in `red[thread]` of the team's first thread, behind a barrier. All threads of the block come here; those that are not
    /// `wanted` have no terms.
    pub fn reduce(&self, reduce: &Reduce, red: &Ref<Buffer>, wanted: Option<&PrimExpr>) -> Result<Stmt, Refusal> {
        let stage = &reduce.stage;
        let Some(reduction) = &stage.reduction else { return Err(Refusal::new("it does not reduce")) };
        let dtype = stage.output.dtype;
        let acc = Buffer::scoped("acc", dtype, [int(1)], "local");
        let own = || load(&acc, [int(0)]);
        let terms = self.each(&stage.reduce, || {
            Stmt::store(&acc, [int(0)], binary(reduction.op, own(), freshen_lets(&stage.value)))
        });
        let terms = wanted.map_or(terms.clone(), |wanted| Stmt::when(wanted.clone(), terms));
        let by_warps = self.shuffles && self.stride == 1 && self.terms % WARP == 0 && can_be_shuffled(dtype);
        let mut list = vec![Stmt::alloc(&acc), Stmt::store(&acc, [int(0)], identity(reduction.op, dtype)?), terms];
        let is_first = eq(floormod(&self.term, int(WARP)), int(0));
        let keep = Stmt::store(red, [self.thread.clone()], own());
        if by_warps {
            list.extend(self.shuffled(reduction.op, &acc));
            list.push(Stmt::when(is_first.clone(), keep));
        } else {
            list.push(keep);
        }
        list.push(Stmt::barrier());
        let (mut half, last) = (self.terms / 2, if by_warps { WARP } else { 1 });
        while half >= last {
            let other = load(red, [add(&self.thread, int(half * self.stride))]);
            let both = binary(reduction.op, load(red, [self.thread.clone()]), other);
            let step = Stmt::store(red, [self.thread.clone()], both);
            let takes_part = lt(&self.term, int(half));
            let takes_part = if by_warps { and(takes_part, is_first.clone()) } else { takes_part };
            list.push(Stmt::when(takes_part, step));
            list.push(Stmt::barrier());
            half /= 2;
        }
        Ok(Stmt::seq(list))
    }

    /// What the first thread of each warp has is put together from what all of its threads have.
    fn shuffled(&self, op: BinaryOp, acc: &Ref<Buffer>) -> Vec<Stmt> {
        let dtype = acc.dtype;
        let other = Buffer::scoped("other", dtype, [int(1)], "local");
        let own = || load(acc, [int(0)]);
        let u32 = |value: i64| int_of(DataType::uint(32), value);
        let i32 = |value: i64| int_of(DataType::int(32), value);
        let mut list = vec![Stmt::alloc(&other)];
        let mut half = WARP / 2;
        while half > 0 {
            let args = vec![u32(0xffff_ffff), own(), i32(half), i32(WARP), i32(WARP)];
            list.push(Stmt::store(&other, [int(0)], call(dtype, "tirx.tvm_warp_shuffle_down", args)));
            list.push(Stmt::store(acc, [int(0)], binary(op, own(), load(&other, [int(0)]))));
            half /= 2;
        }
        list
    }

    /// What the team's first thread stores.
    pub fn emit_epilogue(&self, reduce: &Reduce, red: &Ref<Buffer>) -> Result<Stmt, Refusal> {
        let Some(reduction) = &reduce.stage.reduction else { return Err(Refusal::new("it does not reduce")) };
        let total = load(red, [self.thread.clone()]);
        let total = match is_identity(reduction.op, &reduction.init) {
            true => total,
            false => binary(reduction.op, reduction.init.clone(), total),
        };
        let acc = Var::prim("total", reduce.stage.output.dtype);
        let epilogue = substitute(&reduce.epilogue, &VarMap::from([(reduce.acc.clone(), PrimExpr::from(&acc))]));
        Ok(Stmt::seq([
            Stmt::bind(acc, total),
            Stmt::store(&reduce.output, reduce.indices.clone(), freshen_lets(&epilogue)),
        ]))
    }
}

/// A point a thread, where threads do not work together. Without axes there is one.
pub fn over_points(axes: &[Axis], body: Stmt) -> Stmt {
    let [block, thread, point] = ["block", "thread", "point"].map(Var::dim);
    let binds = if axes.is_empty() { Vec::new() } else { nest::fuse(axes, &point).1 };
    let count = product(axes.iter().map(|axis| &axis.extent));
    let inside = Stmt::seq(binds.into_iter().chain([body]));
    let inside = Stmt::seq([
        Stmt::bind(point.clone(), add(mul(PrimExpr::from(&block), int(ALONE)), PrimExpr::from(&thread))),
        Stmt::when(lt(PrimExpr::from(&point), count.clone()), inside),
    ]);
    launch(&block, ceil_div(&count, ALONE), &thread, ALONE, inside)
}

/// Whether a thread can give another an element.
fn can_be_shuffled(dtype: DataType) -> bool {
    dtype.bits == 32 && dtype.lanes == 1 && !dtype.is_handle()
}

fn is_identity(op: BinaryOp, init: &PrimExpr) -> bool {
    identity(op, init.dtype()).is_ok_and(|identity| super::super::super::affine::same(&identity, init))
}
