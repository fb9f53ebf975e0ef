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
    entries: Entries,
    length: Cell,
    hole: Cell,
    /// How many entries there may be.
    most: PrimExpr,
}

/// What entries are. Their parts are compared from the first on, and the larger one comes first.
#[derive(Clone)]
enum Entries {
    /// A number whose upper half is a rank of 32 bits and whose lower half is the larger, the smaller a place is. It is compared at once.
    Numbers(Ref<Buffer>),
    /// A wide rank, and how far a place lies below zero.
    Pairs(Ref<Buffer>, Ref<Buffer>),
}

/// The parts of an entry.
type Entry = Vec<PrimExpr>;

/// Values of the lower half of a number. There are fewer places: so many scores take more memory than there is.
const PLACES: i64 = 1 << 32;

impl Heap {
    /// Its buffers, for at most `most` elements of a type.
    pub fn buffers(most: &PrimExpr, dtype: DataType) -> Vec<(String, Vec<PrimExpr>, DataType)> {
        let part = |name: &str| (name.to_string(), vec![most.clone()], PLACE);
        let state = ("heap_state".to_string(), vec![PrimExpr::from(2)], PLACE);
        match rank_type(dtype).bits {
            32 => vec![state, part("heap_numbers")],
            _ => vec![state, part("heap_ranks"), part("heap_places")],
        }
    }

    /// Of the buffers that were made for it.
    pub fn of(buffers: &[Ref<Buffer>]) -> Option<Heap> {
        let (state, entries) = match buffers {
            [state, numbers] => (state, Entries::Numbers(numbers.clone())),
            [state, ranks, places] => (state, Entries::Pairs(ranks.clone(), places.clone())),
            _ => return None,
        };
        let most = entries.buffers().first()?.shape.first()?.clone();
        let [length, hole] = [0, 1].map(|at| Cell::new(state, at));
        Some(Heap { entries, length, hole, most })
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> PrimExpr {
        prim::le(self.length.get(), 0)
    }

    /// The place of the first one.
    pub fn first(&self) -> PrimExpr {
        let first = PrimExpr::from(0);
        match &self.entries {
            Entries::Numbers(numbers) => behind_all(prim::floormod(prim::load(numbers, [&first]), PLACES)),
            Entries::Pairs(_, places) => below_zero(prim::load(places, [&first])),
        }
    }

    /// Holds those of `most` elements that count, the larger ones first.
    pub fn fill(&self, element: impl Fn(&PrimExpr) -> PrimExpr, counts: impl Fn(&PrimExpr) -> PrimExpr) -> Stmt {
        // Each is written, and the next one over it where it does not count: a jump would be guessed wrong half of the time.
        let collect = Stmt::each("j", self.most.clone(), |j| {
            let entry = self.entries.entry(rank(&element(j), true), cast(PLACE, j.clone()));
            let length = self.length.get() + cast(PLACE, counts(j));
            Stmt::seq([self.put(&self.length.get(), &entry), self.length.set(length)])
        });
        let arrange = Stmt::each("t", prim::floordiv(self.length.get(), 2), |t| {
            self.descend(prim::floordiv(self.length.get(), 2) - 1 - t, |at| self.entries.at(at))
        });
        Stmt::seq([self.length.set(0), collect, arrange])
    }

    /// Takes the first one away.
    pub fn remove_first(&self) -> Stmt {
        Stmt::seq([
            self.length.set(self.length.get() - 1),
            self.descend(PrimExpr::from(0), |_| self.entries.at(&self.length.get())),
        ])
    }

    fn put(&self, at: &PrimExpr, entry: &Entry) -> Stmt {
        let parts = self.entries.buffers().into_iter().zip(entry);
        Stmt::seq(parts.map(|(buffer, part)| Stmt::store(buffer, [at], part.clone())))
    }

    /// Puts an entry where a hole is, or below: what comes before it moves up.
    fn descend(&self, hole: PrimExpr, entry: impl Fn(&PrimExpr) -> Entry) -> Stmt {
        let (binds, own): (Vec<Stmt>, Entry) =
            entry(&self.hole.get()).into_iter().map(|part| named("own", part)).unzip();
        let sink = Stmt::each("level", levels(&self.most), |_| {
            let (bind_left, at_left) = named("left", self.hole.get() * 2 + 1);
            let (bind_right, at_right) = named("right", prim::min(&at_left + 1, self.length.get() - 1));
            let [left, right] = [&at_left, &at_right].map(|at| self.entries.at(at));
            let (bind_child, at_child) =
                named("child", prim::select(is_before(&right, &left), at_right.clone(), at_left.clone()));
            let child = self.entries.at(&at_child);
            Stmt::seq([
                bind_left,
                Stmt::when(prim::ge(&at_left, self.length.get()), Stmt::break_loop()),
                bind_right,
                bind_child,
                Stmt::when(prim::not(is_before(&child, &own)), Stmt::break_loop()),
                self.put(&self.hole.get(), &child),
                self.hole.set(at_child),
            ])
        });
        let end = self.put(&self.hole.get(), &own);
        Stmt::seq([self.hole.set(hole)].into_iter().chain(binds).chain([sink, end]))
    }
}

impl Entries {
    fn buffers(&self) -> Vec<&Ref<Buffer>> {
        match self {
            Entries::Numbers(numbers) => vec![numbers],
            Entries::Pairs(ranks, places) => vec![ranks, places],
        }
    }

    fn entry(&self, rank: PrimExpr, place: PrimExpr) -> Entry {
        let rank = cast(PLACE, rank);
        match self {
            Entries::Numbers(_) => vec![rank * PLACES + behind_all(place)],
            Entries::Pairs(..) => vec![rank, below_zero(place)],
        }
    }

    fn at(&self, place: &PrimExpr) -> Entry {
        self.buffers().into_iter().map(|buffer| prim::load(buffer, [place])).collect()
    }
}

/// How far a place lies before the end of all places, and the other way round.
fn behind_all(place: PrimExpr) -> PrimExpr {
    prim::int(PLACES - 1) - place
}

/// How far a place lies below zero, and the other way round.
fn below_zero(place: PrimExpr) -> PrimExpr {
    prim::int(0) - place
}

/// A value under a name.
fn named(name: &str, value: PrimExpr) -> (Stmt, PrimExpr) {
    let var = Var::prim(name, PLACE);
    (Stmt::bind(var.clone(), value), PrimExpr::from(&var))
}

/// Whether the first part in which two entries differ is larger.
fn is_before(a: &Entry, b: &Entry) -> PrimExpr {
    let parts = a.iter().zip(b).rev();
    let before = parts.fold(None, |behind: Option<PrimExpr>, (a, b)| {
        let larger = prim::gt(a, b);
        Some(match behind {
            Some(behind) => prim::or(larger, prim::and(prim::eq(a, b), behind)),
            None => larger,
        })
    });
    before.unwrap_or_else(|| prim::boolean(false))
}
