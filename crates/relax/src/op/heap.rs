//! A binary heap in the memory of a kernel: for those who want the first elements in an order, and do not know how many.
//!
//! An entry is a rank and a place. Larger ranks come first, and of equal ones smaller places. To fill it takes as long as to look at
//! every entry, and to take the first one away as many steps as its number of entries has bits.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{self, PrimExpr, cast};
use relaxide_ir::{Buffer, Var};
use relaxide_tir::Stmt;

use super::loops::Cell;
use super::merge_sort::{PLACE, levels, rank, rank_type};

/// The memory of a heap.
pub struct Heap {
    ranks: Ref<Buffer>,
    places: Ref<Buffer>,
    length: Cell,
    hole: Cell,
    /// How many entries there may be.
    most: PrimExpr,
}

/// A rank and a place.
type RankedPlace = (PrimExpr, PrimExpr);

impl Heap {
    /// How many buffers it has.
    pub const BUFFERS: usize = 3;

    /// Its buffers, for at most `most` elements of a type.
    pub fn buffers(most: &PrimExpr, dtype: DataType) -> [(String, Vec<PrimExpr>, DataType); Self::BUFFERS] {
        [
            ("heap_ranks".to_string(), vec![most.clone()], rank_type(dtype)),
            ("heap_places".to_string(), vec![most.clone()], PLACE),
            ("heap_state".to_string(), vec![PrimExpr::from(2)], PLACE),
        ]
    }

    /// Of the buffers that were made for it.
    pub fn of(buffers: &[Ref<Buffer>]) -> Option<Heap> {
        let [ranks, places, state] = buffers else { return None };
        let most = ranks.shape.first()?.clone();
        let [length, hole] = [0, 1].map(|at| Cell::new(state, at));
        Some(Heap { ranks: ranks.clone(), places: places.clone(), length, hole, most })
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> PrimExpr {
        prim::le(self.length.get(), 0)
    }

    /// The place of the first one.
    pub fn first(&self) -> PrimExpr {
        prim::load(&self.places, [0])
    }

    /// Holds those of `most` elements that count, the larger ones first.
    pub fn fill(&self, element: impl Fn(&PrimExpr) -> PrimExpr, counts: impl Fn(&PrimExpr) -> PrimExpr) -> Stmt {
        // Each is written, and the next one over it where it does not count: a jump would be guessed wrong half of the time.
        let collect = Stmt::each("j", self.most.clone(), |j| {
            let entry = (rank(&element(j), true), cast(PLACE, j.clone()));
            let length = self.length.get() + cast(PLACE, counts(j));
            Stmt::seq([self.put(&self.length.get(), entry), self.length.set(length)])
        });
        let arrange = Stmt::each("t", prim::floordiv(self.length.get(), 2), |t| {
            self.descend(prim::floordiv(self.length.get(), 2) - 1 - t, |at| self.entry(at))
        });
        Stmt::seq([self.length.set(0), collect, arrange])
    }

    /// Takes the first one away.
    pub fn remove_first(&self) -> Stmt {
        Stmt::seq([
            self.length.set(self.length.get() - 1),
            self.descend(PrimExpr::from(0), |_| self.entry(&self.length.get())),
        ])
    }

    fn entry(&self, at: &PrimExpr) -> RankedPlace {
        (prim::load(&self.ranks, [at]), prim::load(&self.places, [at]))
    }

    fn put(&self, at: &PrimExpr, entry: RankedPlace) -> Stmt {
        Stmt::seq([Stmt::store(&self.ranks, [at], entry.0), Stmt::store(&self.places, [at], entry.1)])
    }

    /// Puts an entry where a hole is, or below: what comes before it moves up.
    fn descend(&self, hole: PrimExpr, entry: impl Fn(&PrimExpr) -> RankedPlace) -> Stmt {
        let (rank, place) = (Var::prim("rank", self.ranks.dtype), Var::prim("place", PLACE));
        let own = (PrimExpr::from(&rank), PrimExpr::from(&place));
        let value = entry(&self.hole.get());
        let sink = Stmt::each("level", levels(&self.most), |_| {
            let [left, right, child] = ["left", "right", "child"].map(|name| Var::prim(name, PLACE));
            let [at_left, at_right, at_child] = [&left, &right, &child].map(PrimExpr::from);
            let first = prim::select(
                is_before(&self.entry(&at_right), &self.entry(&at_left)),
                at_right.clone(),
                at_left.clone(),
            );
            Stmt::seq([
                Stmt::bind(left, self.hole.get() * 2 + 1),
                Stmt::when(prim::ge(&at_left, self.length.get()), Stmt::break_loop()),
                Stmt::bind(right, prim::min(&at_left + 1, self.length.get() - 1)),
                Stmt::bind(child, first),
                Stmt::when(prim::not(is_before(&self.entry(&at_child), &own)), Stmt::break_loop()),
                self.put(&self.hole.get(), self.entry(&at_child)),
                self.hole.set(at_child),
            ])
        });
        Stmt::seq([
            self.hole.set(hole),
            Stmt::bind(rank, value.0),
            Stmt::bind(place, value.1),
            sink,
            self.put(&self.hole.get(), own.clone()),
        ])
    }
}

fn is_before(a: &RankedPlace, b: &RankedPlace) -> PrimExpr {
    prim::or(prim::gt(&a.0, &b.0), prim::and(prim::eq(&a.0, &b.0), prim::lt(&a.1, &b.1)))
}
