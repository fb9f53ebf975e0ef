//! The first elements of each row in an order, without sorting the others.
//!
//! A few: the elements pass by once. Those that come before the last of the `k` first ones so far take their place among them, which is
//! rare in a long row: of `n` elements in random order about `k ln(n / k)`.
//!
//! Many: the rank of the last one is found bit by bit, each by counting the elements whose rank is at least a number, in
//! vectors; then the elements that are not behind it are sorted.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{self, PrimExpr, cast};
use relaxide_ir::{Buffer, Var};
use relaxide_tir::{Stmt, te};

use super::loops::{Cell, axes, nest};
use super::merge_sort::{Sorting, rank, rank_type};
use super::sort::before;

/// Values and places (as int64) of the `k` first elements along an axis, in order. Equal elements keep their order, and NaN counts as
/// larger than every number. There must be as many elements.
pub fn first_in_order(x: &te::Tensor, axis: usize, k: i64, descending: bool) -> [te::Tensor; 2] {
    let wide = DataType::int(64);
    let mut rows = x.shape().to_vec();
    let size = rows.remove(axis);
    let mut dims = x.shape().to_vec();
    dims[axis] = PrimExpr::from(k);
    let outs = [("first".to_string(), dims.clone(), x.dtype()), ("places".to_string(), dims, wide)];
    let outs = te::extern_stage("select", std::slice::from_ref(x), outs, |source, target| {
        let [first, places] = target else { return Stmt::nop() };
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
        let passed = Stmt::each("t", size.clone() - k, |t| {
            let t = t + k;
            let comes_before =
                before(&prim::load(&source[0], at(&t)), &prim::load(first, at(&(k - 1).into())), descending);
            Stmt::when(comes_before, enter(&t, (k - 1).into()))
        });
        nest(&vars, &rows, Stmt::seq([filled, passed]))
    });
    [outs[0].clone(), outs[1].clone()]
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
    ];
    // One more: what does not count is written behind those that do.
    let outs = outs.into_iter().chain(Sorting::buffers(&PrimExpr::from(k + 1), x.dtype()));
    let outs = te::extern_stage("select", std::slice::from_ref(x), outs, |source, target| {
        let [first, places, ranks, bounds, counts, rest @ ..] = target else { return Stmt::nop() };
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
        let find = rank_of_last(ranks, &size, bounds, &count, k);
        // Of those with the rank of the last, as many as are left over by those before.
        let ties = Cell::new(counts, 1);
        let ahead = count_ranks(ranks, &size, &count, |rank| prim::gt(rank, last.get()));
        let (zero, all) = (prim::int_of(counted, 0), prim::int_of(counted, k));
        let taken = Stmt::each("t", size.clone(), |t| {
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
        });
        let take = Stmt::seq([ahead, ties.set(all - count.get()), count.set(0), taken]);
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

/// Counts the ranks of a row for which something holds.
fn count_ranks(ranks: &Ref<Buffer>, size: &PrimExpr, count: &Cell, holds: impl Fn(PrimExpr) -> PrimExpr) -> Stmt {
    let each = Stmt::each("t", size.clone(), |t| {
        let so_far = count.get();
        count.set(&so_far + cast(so_far.dtype(), holds(prim::load(ranks, [t]))))
    });
    Stmt::seq([count.set(0), each])
}

/// Finds the largest number that at least `k` ranks reach, which is the rank of the last of the `k` first ones, into the first of the bounds.
fn rank_of_last(ranks: &Ref<Buffer>, size: &PrimExpr, bounds: &Ref<Buffer>, count: &Cell, k: i64) -> Stmt {
    let ty = bounds.dtype;
    let (last, bit) = (Cell::new(bounds, 0), Cell::new(bounds, 1));
    let least = if ty.bits == 64 { i64::MIN } else { i64::from(i32::MIN) };
    let constant = |value: i64| prim::int_of(ty, value);
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
            count_ranks(ranks, size, count, |rank| prim::ge(rank, PrimExpr::from(&tried))),
            Stmt::when(prim::ge(count.get(), prim::int_of(count.get().dtype(), k)), last.set(PrimExpr::from(&tried))),
            bit.set(next),
        ])
    });
    Stmt::seq([last.set(constant(least)), bit.set(constant(least)), bits])
}
