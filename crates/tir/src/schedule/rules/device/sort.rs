//! Sorts of rows by ranks: blocks sort pieces in shared memory, then all threads merge the pieces.
//!
//! A loop that says that it sorts ranks ([`SORTS_RANKS`]) stands between one that gives each place its rank, and one that uses the places in
//! order:
//!
//! ```text
//! for i:                                                  # rows
//!     for k: ranks[k] = rank(A[i, k]); places[k] = k
//!     for level … "relaxide.sorts_ranks": …               # how a processor does it: dropped
//!     for k: order[i, k] = places[k]
//!   ->  block (i, 1024 places):  ranks and places into shared memory; sync
//!                                runs of 1, 2, 4 … 512 merged; sync after each
//!       if n > 1024:  runs of 1024, 2048, … merged, an element a thread
//!       order[i, k] = places[i, k], an element a thread
//! ```
//!
//! Runs are merged by counting: where an element goes is its place in its own run, and how many of the other run come before it, which it
//! finds by halving. No element waits for another, nothing has to be padded, and equal ranks keep their order, since those of the left run
//! come first. `n log² n` steps over all threads. Ranks behind a row's length are taken as the least, so that they stay where they are.
//!
//! Parameters: pieces of 1024 elements, four for each of 256 threads; smaller ones for shorter rows and for less shared memory. Roof: shared
//! memory; for long rows the caches.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{
    PrimExpr, PrimMutator, VarMap, add, and, cast, floordiv, ge, gt, if_then_else, int, is_data, le, load, lowest, lt,
    min, mul, not, or, select, sub, substitute,
};
use relaxide_ir::{BinaryOp, Buffer, DataType, Var};

use super::super::super::affine::{ceil_div, loads};
use super::super::super::inline::freshen_lets;
use super::super::super::parameters::{Choices, Domain, Guess};
use super::super::super::threads::launch;
use super::super::super::{Axis, Cx, Refusal, nest};
use super::limits;
use super::scan::loops;
use super::team::{ends_threads, over_points, power_of_two};
use crate::stmt::{AssertStmt, For};
use crate::{Stmt, StmtMutator};

/// The annotation of a loop over levels of a merge sort: it puts the first of some ranks in order, larger ones first, and their places with
/// them, and equal ones keep their order. Its body is a choice `if width < length:` around the merges and a loop that gives ranks and places
/// their elements.
pub const SORTS_RANKS: &str = "relaxide.sorts_ranks";

/// Elements of a piece.
const PIECE: i64 = 1024;
/// Elements of a thread in a piece.
const OWN: i64 = 4;
/// Elements below which a row is a thread's.
const FEW: i64 = 16;
/// Pairs of passes over a row whose length nobody knows.
const PAIRS: i64 = 24;

const PLACE: DataType = DataType::int(64);
const WITHIN: DataType = DataType::int(32);

/// What the rule decides.
struct Decided {
    /// Elements of a piece.
    piece: i64,
    /// Threads of the block that sorts one.
    threads: i64,
}

/// Makes the nest of a sort.
pub fn apply(cx: &mut Cx, stmt: &Stmt, choices: &mut Choices<'_>) -> Result<Stmt, Refusal> {
    let sort = Sort::read(stmt)?;
    let limits = limits(cx)?;
    let size = sort.size.as_int();
    if size.is_some_and(|n| n < FEW) {
        return Err(Refusal::new("rows are short"));
    }
    let elements = choices.choose(Guess {
        name: "elements",
        value: OWN,
        domain: Domain::powers_of_two(1, 16),
        reason: "a thread finds the places of so many, one after the other",
        limit: "with more of them a block has too few threads",
    });
    let bytes = 2 * (sort.ranks.dtype.bytes() + WITHIN.bytes()) as i64;
    let most = power_of_two((limits.shared_bytes / bytes).min(limits.threads * elements));
    if most < FEW {
        return Err(Refusal::new("a block has too few threads or too little shared memory"));
    }
    let guess = size.map_or(PIECE, |n| PIECE.min(power_of_two(2 * n - 1)));
    let piece = choices.choose(Guess {
        name: "piece",
        value: guess.min(most),
        domain: Domain::powers_of_two(FEW, most),
        reason: "a block sorts so many elements in shared memory, or a whole row; longer ones take passes over all elements",
        limit: "so many have room in the shared memory of a block and threads to sort them",
    });
    Ok(sort.emit(&Decided { piece, threads: (piece / elements).max(1) }))
}

/// Ranks, and where the elements that have them were.
struct Ranked {
    ranks: Ref<Buffer>,
    at: Ref<Buffer>,
}

/// A sort of rows.
struct Sort<'a> {
    rows: Vec<Axis>,
    /// The loop that gives places their ranks.
    start: &'a For,
    rank: PrimExpr,
    place: PrimExpr,
    /// How many of a row's ranks are sorted.
    length: PrimExpr,
    size: PrimExpr,
    /// The loop that uses the places.
    end: &'a For,
    ranks: Ref<Buffer>,
    places: Ref<Buffer>,
}

/// The buffers that two stores of a loop write.
fn written(n: &For) -> Option<[&Ref<Buffer>; 2]> {
    let Stmt::Seq(list) = &n.body else { return None };
    let [Stmt::Store(a), Stmt::Store(b)] = list.seq.as_slice() else { return None };
    Some([&a.buffer, &b.buffer])
}

/// The values that two stores of a loop give to the elements that the loop counts.
fn pair(n: &For) -> Option<[(&Ref<Buffer>, &PrimExpr); 2]> {
    let Stmt::Seq(list) = &n.body else { return None };
    let [Stmt::Store(a), Stmt::Store(b)] = list.seq.as_slice() else { return None };
    let own = |indices: &[PrimExpr]| matches!(indices, [index] if index.as_var() == Some(&n.var));
    let plain = n.min.is_int(0) && own(&a.indices) && own(&b.indices) && a.predicate.is_none() && b.predicate.is_none();
    plain.then_some([(&a.buffer, &a.value), (&b.buffer, &b.value)])
}

impl<'a> Sort<'a> {
    fn read(stmt: &'a Stmt) -> Result<Sort<'a>, Refusal> {
        let no = || Refusal::new("it is no sort of ranks");
        let (rows, body) = loops(stmt);
        let Stmt::Seq(list) = body else { return Err(no()) };
        let [Stmt::For(start), Stmt::For(sort), Stmt::For(end)] = list.seq.as_slice() else { return Err(no()) };
        if !sort.annotations.0.contains_key(SORTS_RANKS) {
            return Err(no());
        }
        let Stmt::If(asks) = &sort.body else { return Err(no()) };
        let PrimExpr::Binary(asked) = &asks.condition else { return Err(no()) };
        let Stmt::Seq(passes) = &asks.then_case else { return Err(no()) };
        let Some(Stmt::For(back)) = passes.seq.last() else { return Err(no()) };
        let [(ranks, rank), (places, place)] = pair(start).ok_or_else(no)?;
        let [sorted, sorted_places] = written(back).ok_or_else(no)?;
        if asked.op != BinaryOp::Lt || sorted != ranks || sorted_places != places || places.dtype != PLACE {
            return Err(no());
        }
        // What uses the places asks for nothing else of the sort, and its iterations never meet.
        let Stmt::Store(store) = &end.body else { return Err(Refusal::new("what uses the order is no element")) };
        let along = store.indices.iter().filter(|index| index.as_var() == Some(&end.var)).count();
        let own = |load: &Ref<relaxide_ir::prim::BufferLoad>| {
            load.buffer == *places && matches!(load.indices.as_slice(), [at] if at.as_var() == Some(&end.var))
        };
        let read = loads(&store.value);
        let is_element = read.iter().all(|load| own(load) || ![ranks, places, &store.buffer].contains(&&load.buffer));
        let each_row = |axis: &Axis| store.indices.iter().any(|index| index.as_var() == Some(&axis.var));
        if along != 1 || !is_element || !rows.iter().all(each_row) || !end.min.is_int(0) {
            return Err(Refusal::new("what uses the order is no element"));
        }
        let parts = [rank, place, &asked.b, &store.value];
        if parts.iter().any(|e| ends_threads(e)) || store.indices.iter().any(ends_threads) {
            return Err(Refusal::new("an index that is data may end a thread that others wait for"));
        }
        let packed = |e: &PrimExpr| loads(e).iter().any(|load| load.buffer.dtype.is_packed());
        if parts.iter().any(|e| packed(e)) || store.buffer.dtype.is_packed() {
            return Err(Refusal::new("elements share bytes"));
        }
        if super::super::super::affine::uses(&asked.b, &sort.var) {
            return Err(no());
        }
        Ok(Sort {
            rows,
            start,
            rank: rank.clone(),
            place: place.clone(),
            length: asked.b.clone(),
            size: start.extent.clone(),
            end,
            ranks: ranks.clone(),
            places: places.clone(),
        })
    }

    fn emit(&self, decided: &Decided) -> Stmt {
        let piece = decided.piece;
        let dims: Vec<PrimExpr> = self.rows.iter().map(|axis| &axis.extent).chain([&self.size]).cloned().collect();
        let ranks = |name: &str| Buffer::new(name, self.ranks.dtype, &dims);
        let places = |name: &str| Buffer::new(name, PLACE, &dims);
        let sorted = Ranked { ranks: ranks("ranks"), at: places("places") };
        let spare = Ranked { ranks: ranks("spare_ranks"), at: places("spare_places") };
        let mut list = vec![Stmt::alloc(&sorted.ranks), Stmt::alloc(&sorted.at)];
        list.extend(is_data(&self.length).then(|| self.check_lengths()));
        let is_one_piece = self.size.as_int().is_some_and(|n| n <= piece);
        if !is_one_piece {
            list.extend([Stmt::alloc(&spare.ranks), Stmt::alloc(&spare.at)]);
        }
        list.push(self.sort_pieces(decided, &sorted));
        if !is_one_piece {
            let pairs = match self.size.as_int() {
                Some(n) => (i64::from((n - 1).ilog2()) + 2 - i64::from(piece.ilog2())) / 2,
                None => PAIRS,
            };
            let pass = |pair: &PrimExpr, level: i64| add(mul(pair, int(2)), int(level + i64::from(piece.ilog2())));
            list.push(Stmt::each("pair", pairs, |pair| {
                let there = self.merge_pass(&pass(pair, 0), &sorted, &spare);
                let back = self.merge_pass(&pass(pair, 1), &spare, &sorted);
                let both = Stmt::seq([there, back]);
                match self.size.as_int() {
                    Some(_) => both,
                    None => Stmt::when(lt(shifted(&pass(pair, 0)), self.size.clone()), both),
                }
            }));
        }
        list.push(self.use_places(&sorted.at));
        Stmt::seq(list)
    }

    /// A row a thread: what is sorted lies inside of it. Where threads wait for each other there are no checks.
    fn check_lengths(&self) -> Stmt {
        let check = AssertStmt {
            condition: le(self.length.clone(), self.size.clone()),
            error_kind: "IndexError".into(),
            message: "as many elements of a row are to be sorted as it does not have".into(),
            numbers: Vec::new(),
        };
        over_points(&self.rows, Ref::new(check).into())
    }

    fn row(&self, k: &PrimExpr) -> Vec<PrimExpr> {
        self.rows.iter().map(|axis| PrimExpr::from(&axis.var)).chain([k.clone()]).collect()
    }

    /// Blocks sort pieces of rows.
    fn sort_pieces(&self, decided: &Decided, sorted: &Ranked) -> Stmt {
        let &Decided { piece, threads } = decided;
        let [block, thread, number, part, start, count] =
            ["block", "thread", "number", "piece", "start", "count"].map(Var::dim);
        let mut axes = self.rows.clone();
        axes.push(Axis { var: part.clone(), extent: ceil_div(&self.size, piece) });
        let (blocks, binds) = nest::fuse(&axes, &number);
        let shared = |name: &str, dtype| Buffer::scoped(name, dtype, [int(piece)], "shared");
        let rank = self.ranks.dtype;
        let here = Ranked { ranks: shared("rank", rank), at: shared("at", WITHIN) };
        let there = Ranked { ranks: shared("next_rank", rank), at: shared("next_at", WITHIN) };
        let (first, most) = (PrimExpr::from(&start), PrimExpr::from(&count));
        // The thread's elements of the piece.
        let own = |body: &dyn Fn(&PrimExpr) -> Stmt| {
            Stmt::each("iteration", piece / threads, |iteration| {
                let i = Var::dim("i");
                let at = PrimExpr::from(&i);
                Stmt::seq([
                    Stmt::bind(i.clone(), add(mul(iteration, int(threads)), PrimExpr::from(&thread))),
                    Stmt::when(lt(at.clone(), most.clone()), body(&at)),
                ])
            })
        };
        let fill = own(&|i| {
            let k = Var::dim("k");
            let at = VarMap::from([(self.start.var.clone(), PrimExpr::from(&k))]);
            let value = freshen_lets(&substitute(&self.rank, &at));
            let counts = lt(PrimExpr::from(&k), freshen_lets(&self.length));
            Stmt::seq([
                Stmt::bind(k.clone(), add(&first, i)),
                Stmt::store(&here.ranks, [i.clone()], if_then_else(counts, value, lowest(rank))),
                Stmt::store(&here.at, [i.clone()], cast(WITHIN, i.clone())),
            ])
        });
        let merge = |level: &PrimExpr, from: &Ranked, to: &Ranked| {
            let pass = own(&|i| {
                let element = |buffer: &Ref<Buffer>, at: &PrimExpr| load(buffer, [at.clone()]);
                let merge = Merge { level, i, end: &most, ranks: &|at| element(&from.ranks, at) };
                merge.emit(&|to_, own_rank| {
                    Stmt::seq([
                        Stmt::store(&to.ranks, [to_.clone()], own_rank),
                        Stmt::store(&to.at, [to_.clone()], element(&from.at, i)),
                    ])
                })
            });
            Stmt::seq([pass, Stmt::barrier()])
        };
        // An even number of passes ends where it began; one that has nothing to merge copies.
        let pairs = (i64::from(piece.ilog2()) + 1) / 2;
        let passes = Stmt::each("pair", pairs, |pair| {
            let level = |more: i64| add(mul(pair, int(2)), int(more));
            Stmt::seq([merge(&level(0), &here, &there), merge(&level(1), &there, &here)])
        });
        let store = own(&|i| {
            let at = add(&first, cast(PLACE, load(&here.at, [i.clone()])));
            let place = substitute(&self.place, &VarMap::from([(self.start.var.clone(), at)]));
            let k = add(&first, i);
            Stmt::seq([
                Stmt::store(&sorted.ranks, self.row(&k), load(&here.ranks, [i.clone()])),
                Stmt::store(&sorted.at, self.row(&k), place),
            ])
        });
        let mut body: Vec<Stmt> = [&here.ranks, &here.at, &there.ranks, &there.at].map(Stmt::alloc).into();
        body.push(Stmt::bind(number, PrimExpr::from(&block)));
        body.extend(binds);
        body.extend([
            Stmt::bind(start.clone(), mul(PrimExpr::from(&part), int(piece))),
            Stmt::bind(count.clone(), min(sub(self.size.clone(), first.clone()), int(piece))),
            fill,
            Stmt::barrier(),
            passes,
            store,
        ]);
        launch(&block, blocks, &thread, threads, Stmt::seq(body))
    }

    /// An element a thread, over all places of all rows.
    fn each_place(&self, extent: &PrimExpr, body: impl FnOnce(&PrimExpr) -> Stmt) -> Stmt {
        let place = Var::dim("place");
        let mut axes = self.rows.clone();
        axes.push(Axis { var: place.clone(), extent: extent.clone() });
        over_points(&axes, body(&PrimExpr::from(&place)))
    }

    /// All runs of a level merged in pairs.
    fn merge_pass(&self, level: &PrimExpr, from: &Ranked, to: &Ranked) -> Stmt {
        self.each_place(&self.size, |i| {
            let merge = Merge { level, i, end: &self.size, ranks: &|at| load(&from.ranks, self.row(at)) };
            merge.emit(&|place, rank| {
                Stmt::seq([
                    Stmt::store(&to.ranks, self.row(place), rank),
                    Stmt::store(&to.at, self.row(place), load(&from.at, self.row(i))),
                ])
            })
        })
    }

    fn use_places(&self, places: &Ref<Buffer>) -> Stmt {
        struct Moved<'a>(&'a Sort<'a>, &'a Ref<Buffer>);
        impl PrimMutator for Moved<'_> {
            fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
                match e {
                    PrimExpr::Load(n) if n.buffer == self.0.places => match n.indices.as_slice() {
                        [at] => load(self.1, self.0.row(at)),
                        _ => e.clone(),
                    },
                    _ => self.remake_prim(e),
                }
            }
        }
        impl StmtMutator for Moved<'_> {}
        self.each_place(&self.end.extent, |k| {
            let body = Moved(self, places).mutate_stmt(&self.end.body);
            Stmt::seq([Stmt::bind(self.end.var.clone(), k.clone()), body])
        })
    }
}

fn shifted(level: &PrimExpr) -> PrimExpr {
    relaxide_ir::prim::call(PLACE, "tirx.shift_left", vec![int(1), level.clone()])
}

/// Where an element goes when two neighbouring runs become one.
struct Merge<'a> {
    /// Runs have `1 << level` elements.
    level: &'a PrimExpr,
    /// The element.
    i: &'a PrimExpr,
    /// Where the last run ends.
    end: &'a PrimExpr,
    ranks: &'a dyn Fn(&PrimExpr) -> PrimExpr,
}

impl Merge<'_> {
    fn emit(&self, store: &dyn Fn(&PrimExpr, PrimExpr) -> Stmt) -> Stmt {
        let [width, low, middle, high, other, to] = ["width", "low", "middle", "high", "other", "to"].map(Var::dim);
        let is_left = Var::prim("is_left", DataType::bool());
        let of = |var: &Ref<Var>| PrimExpr::from(var);
        let i = self.i.clone();
        let rank = (self.ranks)(&i);
        let own = Var::prim("own", rank.dtype());
        let bounds = Buffer::scoped("bounds", PLACE, [int(2)], "local");
        let (from, until) = (load(&bounds, [int(0)]), load(&bounds, [int(1)]));
        let end = |e: PrimExpr| min(e, self.end.clone());
        let probe = Var::dim("probe");
        let theirs = (self.ranks)(&of(&probe));
        // Those of the left run come first where ranks are equal.
        let before = or(gt(theirs.clone(), of(&own)), and(not(of(&is_left)), ge(theirs, of(&own))));
        let halve = Stmt::seq([
            Stmt::bind(probe.clone(), floordiv(add(from.clone(), until.clone()), int(2))),
            Stmt::if_else(
                before,
                Stmt::store(&bounds, [int(0)], add(of(&probe), int(1))),
                Stmt::store(&bounds, [int(1)], of(&probe)),
            ),
        ]);
        let steps = add(self.level.clone(), int(1));
        let search = Stmt::each("step", steps, |_| Stmt::when(lt(from.clone(), until.clone()), halve));
        let start_of_own = select(of(&is_left), of(&low), of(&middle));
        let rest = sub(i.clone(), start_of_own);
        Stmt::seq([
            Stmt::bind(width.clone(), shifted(self.level)),
            Stmt::bind(low.clone(), mul(floordiv(i.clone(), mul(of(&width), int(2))), mul(of(&width), int(2)))),
            Stmt::bind(middle.clone(), end(add(of(&low), of(&width)))),
            Stmt::bind(high.clone(), end(add(of(&low), mul(of(&width), int(2))))),
            Stmt::bind(is_left.clone(), lt(i, of(&middle))),
            Stmt::bind(own.clone(), rank),
            Stmt::bind(other.clone(), select(of(&is_left), of(&middle), of(&low))),
            Stmt::alloc(&bounds),
            Stmt::store(&bounds, [int(0)], of(&other)),
            Stmt::store(&bounds, [int(1)], select(of(&is_left), of(&high), of(&middle))),
            search,
            Stmt::bind(to.clone(), add(add(of(&low), rest), sub(from, of(&other)))),
            store(&of(&to), of(&own)),
        ])
    }
}
