//! The first elements of each row in an order, without sorting the others.
//!
//! A few: the elements pass by once. Those that come before the last of the `k` first ones so far take their place among them, which is
//! rare in a long row: of `n` elements in random order about `k ln(n / k)`. A long row passes by in blocks, which are asked in vectors
//! whether they have such an element at all.
//!
//! Many: the rank of the last one is found bit by bit, each by counting the elements whose rank is at least a number, in
//! vectors, until exactly as many reach it as are wanted; then the elements that are not behind it are sorted. They are taken block by block, of
//! which those without any are left out.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{self, PrimExpr, cast};
use relaxide_ir::{Buffer, Var};
use relaxide_tir::{Stmt, te};

use super::loops::{Cell, axes, nest};
use super::merge_sort::{Sorting, rank, rank_type};
use super::sort::before;

/// Elements of a block of a long row.
const BLOCK: i64 = 32;

/// The shortest row that passes by in blocks.
const LONG: i64 = 512;

/// The elements that are counted in 32 bits at a time, where a row may have more than 32 bits can count.
const COUNTED: i64 = 1 << 16;

/// Values and places (as int64) of the `k` first elements along an axis, in order. Equal elements keep their order, and NaN counts as
/// larger than every number. There must be as many elements.
pub fn first_in_order(x: &te::Tensor, axis: usize, k: i64, descending: bool) -> [te::Tensor; 2] {
    let wide = DataType::int(64);
    let mut rows = x.shape().to_vec();
    let size = rows.remove(axis);
    let mut dims = x.shape().to_vec();
    dims[axis] = PrimExpr::from(k);
    let in_blocks = axis + 1 == x.ndim() && size.as_int().is_none_or(|size| size >= LONG);
    let outs = [("first".to_string(), dims.clone(), x.dtype()), ("places".to_string(), dims, wide)];
    let found = ("found".to_string(), vec![PrimExpr::from(1)], DataType::int(32));
    let outs = outs.into_iter().chain(in_blocks.then_some(found));
    let outs = te::extern_stage("select", std::slice::from_ref(x), outs, |source, target| {
        let [first, places, rest @ ..] = target else { return Stmt::nop() };
        let (vars, row) = axes(&rows, "i");
        let at = |k: &PrimExpr| {
            let mut index = row.clone();
            index.insert(axis, k.clone());
            index
        };
        let put = |to: &PrimExpr, value: PrimExpr, from: PrimExpr| {
            Stmt::seq([Stmt::store(first, at(to), value), Stmt::store(places, at(to), from)])
        };
        // Puts an element last, and then in front of its neighbour as long as it comes before that.
        let enter = |t: &PrimExpr, last: PrimExpr| {
            let value = prim::load(&source[0], at(t));
            let ascent = Stmt::each("step", last.clone(), |step| {
                let place = &last - step;
                let above = &place - 1;
                let neighbour = prim::load(first, at(&above));
                let swap = Stmt::seq([
                    put(&place, neighbour.clone(), prim::load(places, at(&above))),
                    put(&above, value.clone(), t.clone()),
                ]);
                Stmt::if_else(before(&value, &neighbour, descending), swap, Stmt::break_loop())
            });
            Stmt::seq([put(&last, value.clone(), t.clone()), ascent])
        };
        let filled = Stmt::each("t", PrimExpr::from(k), |t| enter(t, t.clone()));
        let last = || prim::load(first, at(&(k - 1).into()));
        let pass = |from: PrimExpr, count: PrimExpr| {
            Stmt::each("t", count, |t| {
                let t = t + &from;
                let comes_before = before(&prim::load(&source[0], at(&t)), &last(), descending);
                Stmt::when(comes_before, enter(&t, (k - 1).into()))
            })
        };
        let passed = match rest {
            [found] => {
                let found = Cell::new(found, 0);
                let blocks = prim::floordiv(size.clone() - k, BLOCK);
                let whole = Stmt::each("block", blocks.clone(), |block| {
                    let from = block * BLOCK + k;
                    let limit = Var::prim("limit", x.dtype());
                    let element = |t: PrimExpr| prim::load(&source[0], at(&(t + &from)));
                    let asked = count_block(&found, |t| may_come_before(&element(t), &limit, descending));
                    let pass = Stmt::when(prim::gt(found.get(), 0), pass(from.clone(), BLOCK.into()));
                    Stmt::seq([Stmt::bind(limit.clone(), last()), asked, pass])
                });
                let done = blocks * BLOCK + k;
                Stmt::seq([whole, pass(done.clone(), size.clone() - done)])
            }
            _ => pass(k.into(), size.clone() - k),
        };
        nest(&vars, &rows, Stmt::seq([filled, passed]))
    });
    [outs[0].clone(), outs[1].clone()]
}

/// Whether an element may come before another: always where it does, and where one of them is NaN.
fn may_come_before(a: &PrimExpr, limit: &Ref<Var>, descending: bool) -> PrimExpr {
    let limit = PrimExpr::from(limit);
    prim::not(if descending { prim::le(a, limit) } else { prim::ge(a, limit) })
}

/// Counts the elements of a block for which something holds.
fn count_block(count: &Cell, holds: impl Fn(PrimExpr) -> PrimExpr) -> Stmt {
    let each = Stmt::each("t", BLOCK, |t| count.set(count.get() + cast(count.get().dtype(), holds(t.clone()))));
    Stmt::seq([count.set(0), each])
}

/// The same for a large `k`.
pub fn first_by_counting(x: &te::Tensor, axis: usize, k: i64, descending: bool) -> [te::Tensor; 2] {
    let (wide, ranked) = (DataType::int(64), rank_type(x.dtype()));
    let mut rows = x.shape().to_vec();
    let size = rows.remove(axis);
    let mut dims = x.shape().to_vec();
    dims[axis] = PrimExpr::from(k);
    let pair = |name: &str, dtype| (name.to_string(), vec![PrimExpr::from(2)], dtype);
    // Numbers as wide as ranks are counted in the fewest instructions.
    let fits = size.as_int().is_some_and(|size| size <= i64::from(i32::MAX));
    let counted = if fits { ranked } else { wide };
    let outs = [
        ("first".to_string(), dims.clone(), x.dtype()),
        ("places".to_string(), dims, wide),
        ("all_ranks".to_string(), vec![size.clone()], ranked),
        pair("bounds", ranked),
        pair("counts", counted),
        ("few".to_string(), vec![PrimExpr::from(1)], ranked),
    ];
    // One more: what does not count is written behind those that do.
    let outs = outs.into_iter().chain(Sorting::buffers(&PrimExpr::from(k + 1), x.dtype()));
    let outs = te::extern_stage("select", std::slice::from_ref(x), outs, |source, target| {
        let [first, places, ranks, bounds, counts, few, rest @ ..] = target else { return Stmt::nop() };
        let Some(sorting) = Sorting::of(rest) else { return Stmt::nop() };
        let (vars, row) = axes(&rows, "i");
        let at = |k: &PrimExpr| {
            let mut index = row.clone();
            index.insert(axis, k.clone());
            index
        };
        let start = Stmt::each("t", size.clone(), |t| {
            Stmt::store(ranks, [t], rank(&prim::load(&source[0], at(t)), descending))
        });
        let (last, count) = (Cell::new(bounds, 0), Cell::new(counts, 0));
        let row_of_ranks = Ranks { ranks, size: &size, count: &count, few: (!fits).then(|| Cell::new(few, 0)) };
        let find = rank_of_last(&row_of_ranks, bounds, k);
        // Of those with the rank of the last, as many as are left over by those before.
        let ties = Cell::new(counts, 1);
        let ahead = row_of_ranks.count(|rank| prim::gt(rank, last.get()));
        let (zero, all) = (prim::int_of(counted, 0), prim::int_of(counted, k));
        let take = |t: &PrimExpr| {
            let rank = prim::load(ranks, [t]);
            let is_tie = prim::and(prim::eq(&rank, last.get()), prim::gt(ties.get(), zero.clone()));
            let (tie, takes) = (Var::prim("tie", counted), Var::prim("takes", counted));
            let counts_for = prim::max(cast(counted, prim::gt(&rank, last.get())), PrimExpr::from(&tie));
            Stmt::seq([
                Stmt::bind(tie.clone(), cast(counted, is_tie)),
                Stmt::bind(takes.clone(), counts_for),
                sorting.set(&cast(wide, count.get()), rank, t.clone()),
                count.set(count.get() + PrimExpr::from(&takes)),
                ties.set(ties.get() - PrimExpr::from(&tie)),
            ])
        };
        let in_block = Cell::new(few, 0);
        let blocks = prim::floordiv(size.clone(), BLOCK);
        let whole = Stmt::each("block", blocks.clone(), |block| {
            let from = block * BLOCK;
            let asked = count_block(&in_block, |t| prim::ge(prim::load(ranks, [t + &from]), last.get()));
            let each = Stmt::each("t", BLOCK, |t| take(&(t + &from)));
            Stmt::seq([asked, Stmt::when(prim::gt(in_block.get(), prim::int_of(ranked, 0)), each)])
        });
        let done = blocks * BLOCK;
        let rest = Stmt::each("t", size.clone() - &done, |t| take(&(t + &done)));
        let take = Stmt::seq([ahead, ties.set(all - count.get()), count.set(0), whole, rest]);
        let end = Stmt::each("t", PrimExpr::from(k), |t| {
            let place = prim::load(&sorting.places, [t]);
            let value = prim::load(&source[0], at(&place));
            Stmt::seq([Stmt::store(places, at(t), place), Stmt::store(first, at(t), value)])
        });
        let k = PrimExpr::from(k);
        nest(&vars, &rows, Stmt::seq([start, find, take, sorting.sort(&k, &k), end]))
    });
    [outs[0].clone(), outs[1].clone()]
}

/// The ranks of a row, and what counts them.
struct Ranks<'a> {
    ranks: &'a Ref<Buffer>,
    size: &'a PrimExpr,
    count: &'a Cell,
    /// What counts a part of them, as wide as they are, where the other counter is wider.
    few: Option<Cell>,
}

impl Ranks<'_> {
    /// Counts the ranks for which something holds.
    fn count(&self, holds: impl Fn(PrimExpr) -> PrimExpr) -> Stmt {
        let part = |count: &Cell, from: PrimExpr, size: PrimExpr| {
            let each = Stmt::each("t", size, |t| {
                let so_far = count.get();
                count.set(&so_far + cast(so_far.dtype(), holds(prim::load(self.ranks, [t + &from]))))
            });
            Stmt::seq([count.set(0), each])
        };
        let Some(few) = &self.few else { return part(self.count, 0.into(), self.size.clone()) };
        let parts = prim::floordiv(self.size + (COUNTED - 1), COUNTED);
        let each = Stmt::each("part", parts, |i| {
            let from = i * COUNTED;
            let counted = part(few, from.clone(), prim::min(self.size - from, COUNTED));
            Stmt::seq([counted, self.count.set(self.count.get() + cast(DataType::int(64), few.get()))])
        });
        Stmt::seq([self.count.set(0), each])
    }
}

/// Finds a number that the `k` first ranks reach and, but for those that are equal to the last of them, no others, into the first of the bounds: the
/// rank of the last, or less where no other rank lies between.
fn rank_of_last(ranks: &Ranks<'_>, bounds: &Ref<Buffer>, k: i64) -> Stmt {
    let count = ranks.count;
    let ty = bounds.dtype;
    let (last, bit) = (Cell::new(bounds, 0), Cell::new(bounds, 1));
    let least = if ty.bits == 64 { i64::MIN } else { i64::from(i32::MIN) };
    let constant = |value: i64| prim::int_of(ty, value);
    let wanted = prim::int_of(count.get().dtype(), k);
    // The highest bit is the sign: with it the smallest number becomes zero.
    let bits = Stmt::each("b", PrimExpr::from(i64::from(ty.bits)), |_| {
        let tried = Var::prim("tried", ty);
        let next = prim::select(
            prim::lt(bit.get(), constant(0)),
            constant(1 << (ty.bits - 2)),
            prim::floordiv(bit.get(), constant(2)),
        );
        Stmt::seq([
            Stmt::bind(tried.clone(), prim::call(ty, "tirx.bitwise_xor", vec![last.get(), bit.get()])),
            ranks.count(|rank| prim::ge(rank, PrimExpr::from(&tried))),
            Stmt::when(prim::ge(count.get(), wanted.clone()), last.set(PrimExpr::from(&tried))),
            Stmt::when(prim::eq(count.get(), wanted.clone()), Stmt::break_loop()),
            bit.set(next),
        ])
    });
    Stmt::seq([last.set(constant(least)), bit.set(constant(least)), bits])
}
