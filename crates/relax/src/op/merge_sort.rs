//! A stable merge sort of ranks, with the place of each beside it.
//!
//! A rank is an integer that says where an element comes: of two elements, the one with the larger rank comes first. Ranks are computed
//! once, lie beside each other, and are compared by one instruction, whatever the elements are; a step of a merge chooses between
//! two of them without a branch, which no processor could foresee. Long rows are sorted by the digits of their ranks ([`radix_sort`]).

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{self, PrimExpr, cast};
use relaxide_ir::{Attrs, Buffer, Var};
use relaxide_tir::schedule::SORTS_RANKS;
use relaxide_tir::{For, ForKind, Stmt};

use super::loops::Cell;
use super::radix_sort::{self, DIGITS};

/// The type of places.
pub const PLACE: DataType = DataType::int(64);

/// The type of the ranks of elements.
pub fn rank_type(dtype: DataType) -> DataType {
    let is_wide = if dtype.is_uint() { dtype.bits >= 32 } else { dtype.bits > 32 };
    DataType::int(if is_wide { 64 } else { 32 })
}

/// The rank of an element. Both zeros have the same, and NaN counts as larger than every number.
pub fn rank(element: &PrimExpr, descending: bool) -> PrimExpr {
    let dtype = element.dtype();
    let ty = rank_type(dtype);
    let largest = if ty.bits == 64 { i64::MAX } else { i64::from(i32::MAX) };
    let constant = |value: i64| prim::int_of(ty, value);
    let flipped = |bits: PrimExpr, by: i64| prim::call(ty, "tirx.bitwise_xor", vec![bits, constant(by)]);
    let ascending = if dtype.is_float() {
        let value = cast(DataType::float(ty.bits), element.clone());
        let bits = prim::call(ty, "tirx.reinterpret", vec![value.clone()]);
        // Of negative numbers, the one with the larger magnitude is the smaller.
        let ordered = prim::select(prim::lt(&bits, constant(0)), flipped(bits.clone(), largest), bits.clone());
        let is_zero = prim::eq(&value, prim::constant(value.dtype(), 0.0));
        let is_nan = prim::call(DataType::bool(), "tirx.isnan", vec![value]);
        prim::select(is_nan, constant(largest), prim::select(is_zero, constant(0), ordered))
    } else if dtype.is_uint() && dtype.bits == 64 {
        flipped(cast(ty, element.clone()), i64::MIN)
    } else {
        cast(ty, element.clone())
    };
    if descending { ascending } else { constant(-1) - ascending }
}

/// The memory of a sort.
pub struct Sorting {
    pub ranks: Ref<Buffer>,
    pub places: Ref<Buffer>,
    spare_ranks: Ref<Buffer>,
    spare_places: Ref<Buffer>,
    state: Ref<Buffer>,
    digits: Ref<Buffer>,
}

impl Sorting {
    /// How many buffers that are.
    pub const BUFFERS: usize = 6;

    /// Their names, shapes and types, for rows of elements of a type.
    pub fn buffers(size: &PrimExpr, dtype: DataType) -> [(String, Vec<PrimExpr>, DataType); Self::BUFFERS] {
        let row = |name: &str, dtype| (name.to_string(), vec![size.clone()], dtype);
        let rank = rank_type(dtype);
        [
            row("ranks", rank),
            row("at", PLACE),
            row("spare_ranks", rank),
            row("spare_at", PLACE),
            ("state".to_string(), vec![PrimExpr::from(2)], PLACE),
            ("digits".to_string(), vec![PrimExpr::from(DIGITS)], PLACE),
        ]
    }

    /// Of the buffers that were made for it.
    pub fn of(buffers: &[Ref<Buffer>]) -> Option<Sorting> {
        let [ranks, places, spare_ranks, spare_places, state, digits] = buffers else { return None };
        let [ranks, places, spare_ranks, spare_places, state, digits] =
            [ranks, places, spare_ranks, spare_places, state, digits].map(Clone::clone);
        Some(Sorting { ranks, places, spare_ranks, spare_places, state, digits })
    }

    /// Gives a place its rank.
    pub fn set(&self, at: &PrimExpr, rank: PrimExpr, place: PrimExpr) -> Stmt {
        Stmt::seq([Stmt::store(&self.ranks, [at.clone()], rank), Stmt::store(&self.places, [at.clone()], place)])
    }

    /// Gives a place of the spare memory its rank.
    pub fn set_spare(&self, at: &PrimExpr, rank: PrimExpr, place: PrimExpr) -> Stmt {
        let [ranks, places] = [&self.spare_ranks, &self.spare_places];
        Stmt::seq([Stmt::store(ranks, [at.clone()], rank), Stmt::store(places, [at.clone()], place)])
    }

    /// Two numbers that steps change.
    pub fn state(&self) -> &Ref<Buffer> {
        &self.state
    }

    /// Takes the first `length` ranks and places back from the spare memory.
    pub fn back(&self, length: &PrimExpr) -> Stmt {
        Stmt::each("k", length.clone(), |k| {
            self.set(k, prim::load(&self.spare_ranks, [k]), prim::load(&self.spare_places, [k]))
        })
    }

    /// Puts the first `length` ranks in order, larger ones first, and their places with them. Equal ones keep their order. There are at
    /// most `most`.
    pub fn sort(&self, length: &PrimExpr, most: &PrimExpr) -> Stmt {
        let (level, min, extent) = (Var::dim("level"), PrimExpr::from(0), PrimExpr::from(levels(most)));
        let body = {
            let level = PrimExpr::from(&level);
            let width = prim::call(PLACE, "tirx.shift_left", vec![PrimExpr::from(1), level]);
            let double = &width * 2;
            let runs = Stmt::each("run", prim::floordiv(length + (&double - 1), &double), |run| {
                let low = run * &double;
                let end = |e: PrimExpr| prim::min(e, length);
                self.merge(&low, &end(&low + &width), &end(&low + &double))
            });
            let sorted = Stmt::seq([radix_sort::by_digits(self, &self.digits, length), Stmt::break_loop()]);
            let is_long = most.as_int().is_none_or(|most| most >= radix_sort::SHORTEST);
            let at_once = Stmt::when(prim::ge(length, radix_sort::SHORTEST), sorted);
            let at_once = if is_long { at_once } else { Stmt::nop() };
            Stmt::when(prim::lt(&width, length), Stmt::seq([at_once, runs, self.back(length)]))
        };
        // Devices have another way to the same order.
        let annotations = Attrs::new().with(SORTS_RANKS, true);
        Ref::new(For { annotations, ..For::new(ForKind::Serial, level, min, extent, body) }).into()
    }

    /// Merges two neighbouring runs into the spare memory. The first is not empty.
    fn merge(&self, low: &PrimExpr, middle: &PrimExpr, high: &PrimExpr) -> Stmt {
        let (left, right) = (Cell::new(&self.state, 0), Cell::new(&self.state, 1));
        let step = Stmt::each("t", high - low, |t| {
            let k = low + t;
            let number = |name: &str| Var::prim(name, PLACE);
            let (a, b, from_right) = (number("a"), number("b"), Var::prim("from_right", DataType::bool()));
            let [at_a, at_b] = [&a, &b].map(PrimExpr::from);
            let rank = |at: &PrimExpr| prim::load(&self.ranks, [at]);
            let place = |at: &PrimExpr| prim::load(&self.places, [at]);
            let is_right = prim::or(prim::ge(left.get(), middle), prim::gt(rank(&at_b), rank(&at_a)));
            let chosen = PrimExpr::from(&from_right);
            Stmt::seq([
                Stmt::bind(a.clone(), prim::min(left.get(), middle - 1)),
                Stmt::bind(b.clone(), prim::min(right.get(), high - 1)),
                Stmt::bind(from_right.clone(), prim::and(prim::lt(right.get(), high), is_right)),
                Stmt::store(&self.spare_ranks, [&k], prim::select(chosen.clone(), rank(&at_b), rank(&at_a))),
                Stmt::store(&self.spare_places, [&k], prim::select(chosen.clone(), place(&at_b), place(&at_a))),
                left.set(left.get() + cast(PLACE, prim::not(chosen.clone()))),
                right.set(right.get() + cast(PLACE, chosen)),
            ])
        });
        Stmt::seq([left.set(low), right.set(middle), step])
    }
}

/// How often a run of one element must be doubled to be as long as a row, at most.
pub fn levels(size: &PrimExpr) -> i64 {
    match size.as_int() {
        Some(size) => i64::from(64 - (size - 1).max(0).leading_zeros()),
        None => 62,
    }
}
