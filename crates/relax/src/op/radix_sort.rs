//! A stable sort of ranks by their digits, the last one first (LSD radix sort), with the place of each rank beside it.
//!
//! Each digit has eight bits. A pass counts how often each digit occurs, and then puts the ranks where those with the same digit begin: a few
//! instructions for each rank and pass, none of which waits for a comparison. A pass in which all ranks have one digit, as in the upper bytes
//! of small integers, moves nothing. Rows of fewer than [`SHORTEST`] ranks are merged ([`super::merge_sort`]).

use relaxide_ffi::Ref;
use relaxide_ir::prim::{self, PrimExpr, cast};
use relaxide_ir::{Buffer, Var};
use relaxide_tir::Stmt;

use super::loops::Cell;
use super::merge_sort::{PLACE, Sorting};

/// Values of a digit.
pub const DIGITS: i64 = 256;

/// The shortest row whose ranks are sorted by digits: of 256 ranks a merge takes eight passes.
pub const SHORTEST: i64 = 256;

/// Puts the first `length` ranks in order, larger ones first, and their places with them.
pub fn by_digits(sorting: &Sorting, digits: &Ref<Buffer>, length: &PrimExpr) -> Stmt {
    let bits = i64::from(sorting.ranks.dtype.bits);
    Stmt::each("digit", bits / 8, |number| pass(sorting, digits, length, &(number * 8)))
}

/// Where ranks with the digit of a rank go, of those from a bit on. Larger digits come first, and the sign is the highest bit of the last one.
fn digit_of(rank: PrimExpr, bit: &PrimExpr) -> PrimExpr {
    let ty = rank.dtype();
    let largest = if ty.bits == 64 { i64::MAX } else { i64::from(i32::MAX) };
    let ascending = prim::call(ty, "tirx.bitwise_xor", vec![rank, prim::int_of(ty, largest)]);
    let shifted = prim::call(ty, "tirx.shift_right", vec![ascending, cast(ty, bit.clone())]);
    cast(PLACE, prim::call(ty, "tirx.bitwise_and", vec![shifted, prim::int_of(ty, DIGITS - 1)]))
}

/// One pass: ranks and places into the spare memory by one digit, and back.
fn pass(sorting: &Sorting, digits: &Ref<Buffer>, length: &PrimExpr, bit: &PrimExpr) -> Stmt {
    let digit = |k: &PrimExpr| digit_of(prim::load(&sorting.ranks, [k]), bit);
    let number = |name: &str| Var::prim(name, PLACE);
    let cleared = Stmt::each("d", DIGITS, |d| Stmt::store(digits, [d], prim::int_of(PLACE, 0)));
    let counted = Stmt::each("k", length.clone(), |k| {
        let own = number("own");
        let at = PrimExpr::from(&own);
        Stmt::seq([Stmt::bind(own.clone(), digit(k)), Stmt::store(digits, [&at], prim::load(digits, [&at]) + 1)])
    });
    let moves = prim::lt(prim::load(digits, [digit(&PrimExpr::from(0))]), length);
    // From how many ranks have a digit to where the first of them goes.
    let so_far = Cell::new(sorting.state(), 0);
    let starts = Stmt::each("d", DIGITS, |d| {
        let (count, start) = (number("count"), number("start"));
        Stmt::seq([
            Stmt::bind(count.clone(), prim::load(digits, [d])),
            Stmt::bind(start.clone(), so_far.get()),
            Stmt::store(digits, [d], PrimExpr::from(&start)),
            so_far.set(PrimExpr::from(&start) + PrimExpr::from(&count)),
        ])
    });
    let placed = Stmt::each("k", length.clone(), |k| {
        let (own, to) = (number("own"), number("to"));
        let (at, put) = (PrimExpr::from(&own), PrimExpr::from(&to));
        Stmt::seq([
            Stmt::bind(own.clone(), digit(k)),
            Stmt::bind(to.clone(), prim::load(digits, [&at])),
            Stmt::store(digits, [&at], &put + 1),
            sorting.set_spare(&put, prim::load(&sorting.ranks, [k]), prim::load(&sorting.places, [k])),
        ])
    });
    let moved = Stmt::seq([so_far.set(0), starts, placed, sorting.back(length)]);
    Stmt::seq([cleared, counted, Stmt::when(moves, moved)])
}
