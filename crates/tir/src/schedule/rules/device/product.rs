//! Products: tiles of both operands in shared memory, a tile of the result in the registers of each thread.
//!
//! ```text
//! C[b, m, n] = sum over k of A(b, m, k) * B(b, k, n)
//!   ->  block (b, 128 m, 128 n), 256 threads:
//!           for k0 in steps of 8:
//!               a[k, m] = A(…), b[k, n] = B(…)        # each thread four elements of each, along the memory of the operand
//!               sync
//!               for k in range(8):  acc[8 x 8] += a[k, 8 rows] * b[k, 8 columns]
//!               sync
//!           C = epilogue(acc), where it lies inside
//! ```
//!
//! Tiles of 64 of products of matrices are there twice, where shared memory allows it: what the next step multiplies is on its way into registers while this
//! one multiplies, and goes into the other pair of tiles, so that a step has one barrier and waits for no memory:
//!
//! ```text
//! own = A(…), B(…) of step 0; a[0], b[0] = own; sync
//! for each two steps:
//!     own = A(…), B(…) of the next;  acc += a[0] * b[0];  a[1], b[1] = own;  sync
//!     own = A(…), B(…) of the one behind;  acc += a[1] * b[1];  a[0], b[0] = own;  sync
//! ```
//!
//! Threads with 64 results, or with eight elements to load, or with the many axes of a convolution to find them by, have no registers left for
//! that. Beyond the ends of rows, columns and sums the tiles hold zeros, so that the loop asks nothing: lengths may be names. Several axes
//! of a kind are counted as one, which makes a convolution such a product, its borders included. Where the number of rows is a name, few of
//! them are left to the rules that follow.
//!
//! Parameters: tiles of 128 x 128 in steps of 8 where both sides are long and there are blocks enough for the device, else of 64 x 64 or
//! 32 x 32 in steps of 16; a row of a tile has four elements more than it needs, so that threads that write a column meet different
//! banks. A thread's rows and columns are groups of four neighbours, which are one access. Roof: the multiply-add units of single
//! precision.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{
    BinaryOp, PrimExpr, VarMap, add, and, binary, call, constant, floordiv, floormod, ge, if_then_else, int, load, lt,
    mul, substitute,
};
use relaxide_ir::{Buffer, DataType, Var};

use super::super::super::affine::{ceil_div, cost, product};
use super::super::super::inline::freshen_lets;
use super::super::super::parameters::{Choices, Domain, Guess};
use super::super::super::threads::launch;
use super::super::super::{Axis, Cx, Reduce, Refusal, nest};
use super::super::contraction::{Contraction, step};
use super::super::fallback;
use super::team::refuse_checks;
use super::{limits, reduction};
use crate::stmt::For;
use crate::{ForKind, Stmt};

/// Rows, columns or terms below which tiles would be empty for the most part.
const FEW: i64 = 8;
/// Elements that a thread loads at once.
const GROUP: i64 = 4;
/// Elements by which a row of a tile is longer than the tile.
const PAD: i64 = 4;
/// Blocks of large tiles from which a device is busy.
const BUSY: i64 = 64;
/// Rows and columns of a thread, and elements that it loads, beside which there are registers for what comes next.
const MOST_OWN: i64 = 4;
/// Cost of what is done to a result from which it is written down for few results of a thread only.
const DEAR: i64 = 40;

/// How large tiles are.
#[derive(Clone, Copy)]
struct Shape {
    /// Rows and columns of a block.
    side: i64,
    /// Terms of a step.
    depth: i64,
    /// Rows and columns of a thread.
    own: i64,
}

const LARGE: Shape = Shape { side: 128, depth: 8, own: 8 };
const MIDDLE: Shape = Shape { side: 64, depth: 16, own: 4 };
const SMALL: Shape = Shape { side: 32, depth: 16, own: 4 };

impl Shape {
    /// Threads along a side.
    fn across(self) -> i64 {
        self.side / self.own
    }

    fn threads(self) -> i64 {
        self.across() * self.across()
    }

    fn bytes(self, dtype: DataType) -> i64 {
        2 * self.depth * (self.side + PAD) * dtype.bytes() as i64
    }

    /// One of a thread's rows or columns: groups of neighbours, as far apart as all threads of the block have groups.
    fn place(self, thread: &PrimExpr, i: i64) -> PrimExpr {
        let first = add(mul(thread, int(GROUP)), int(i % GROUP));
        add(first, int(i / GROUP * GROUP * self.across()))
    }
}

/// Makes the nest of a product.
pub fn apply(cx: &mut Cx, reduce: &Reduce, choices: &mut Choices<'_>) -> Result<Stmt, Refusal> {
    refuse_checks(reduce)?;
    let limits = limits(cx)?;
    let c = Contraction::of(reduce)?;
    let fits = |shape: Shape, dtype| shape.threads() <= limits.threads && shape.bytes(dtype) <= limits.shared_bytes;
    let mut tiled = Tiled::of(&c, fits, choices)?;
    let twice = 2 * tiled.shape.bytes(reduce.stage.output.dtype);
    let can_be_double = tiled.has_registers() && twice <= limits.shared_bytes;
    let is_double = choices.choose(Guess {
        name: "double_buffer",
        value: i64::from(can_be_double),
        domain: if can_be_double { Domain::flag() } else { Domain::list([0]) },
        reason: "what comes next is loaded meanwhile where there are registers for it",
        limit: "tiles are there twice where they fit into shared memory twice, and a thread has few results and elements",
    });
    tiled.is_double = is_double == 1;
    if tiled.rows.as_int().is_some() {
        return tiled.emit();
    }
    let few = choices.within("few_rows", |choices| reduction::apply(cx, reduce, choices));
    let few = few.or_else(|_| fallback::reduce(cx, reduce))?;
    Ok(Stmt::if_else(ge(tiled.rows.clone(), int(FEW)), tiled.emit()?, few))
}

/// A tile of either operand, in shared memory.
struct Tiles {
    a: Ref<Buffer>,
    b: Ref<Buffer>,
}

/// A product to be cut into tiles.
struct Tiled<'a> {
    c: &'a Contraction,
    shape: Shape,
    /// Whether tiles are there twice.
    is_double: bool,
    /// Axes of columns, the contiguous one last.
    column_axes: Vec<Axis>,
    rows: PrimExpr,
    columns: PrimExpr,
    terms: PrimExpr,
}

/// Where a thread's results are: the first row and column of its block's tile, and its row and column among the block's threads.
struct Place {
    m0: Ref<Var>,
    n0: Ref<Var>,
    ty: Ref<Var>,
    tx: Ref<Var>,
}

impl Place {
    fn new() -> Place {
        let [m0, n0, ty, tx] = ["m0", "n0", "ty", "tx"].map(Var::dim);
        Place { m0, n0, ty, tx }
    }
}

impl<'a> Tiled<'a> {
    fn of(
        c: &'a Contraction,
        fits: impl Fn(Shape, DataType) -> bool,
        choices: &mut Choices<'_>,
    ) -> Result<Tiled<'a>, Refusal> {
        let dtype = c.reduce.stage.output.dtype;
        if c.row.dtype() != dtype || c.column.dtype() != dtype || dtype.lanes != 1 || dtype.is_packed() {
            return Err(Refusal::new("factors and sums differ in type"));
        }
        let column_axes: Vec<Axis> = c.columns.iter().chain([&c.x]).cloned().collect();
        let extent = |axes: &[Axis]| product(axes.iter().map(|a| &a.extent));
        let (rows, columns, terms) = (extent(&c.rows), extent(&column_axes), extent(&c.inner));
        for (what, extent) in [("rows", &rows), ("columns", &columns), ("terms", &terms)] {
            if extent.as_int().is_some_and(|n| n < FEW) {
                return Err(Refusal::new(format!("few {what}")));
            }
        }
        let (m, n) = (rows.as_int(), columns.as_int());
        let blocks = |side: i64| Some(((m? + side - 1) / side) * ((n? + side - 1) / side) * extent(&c.batch).as_int()?);
        let is_small = [m, n].into_iter().flatten().any(|n| n <= SMALL.side);
        let is_large = blocks(LARGE.side).is_some_and(|n| n >= BUSY) && cost(&c.reduce.epilogue) < DEAR;
        let wanted = match (is_small, is_large) {
            (true, _) => [SMALL, SMALL, SMALL],
            (_, true) => [LARGE, MIDDLE, SMALL],
            _ => [MIDDLE, MIDDLE, SMALL],
        };
        let shape = wanted.into_iter().find(|shape| fits(*shape, dtype));
        let shape = shape.ok_or_else(|| Refusal::new("a block has too few threads or too little shared memory"))?;
        let all = [SMALL, MIDDLE, LARGE].into_iter().filter(|shape| fits(*shape, dtype));
        let side = choices.choose(Guess {
            name: "side",
            value: shape.side,
            domain: Domain::list(all.map(|shape| shape.side)),
            reason: "the largest tiles of which there are blocks enough for the device",
            limit: "tiles have 32, 64 or 128 rows and columns, as far as threads and shared memory allow",
        });
        let shape = [SMALL, MIDDLE, LARGE].into_iter().find(|shape| shape.side == side).unwrap_or(shape);
        Ok(Tiled { c, shape, is_double: false, column_axes, rows, columns, terms })
    }

    /// Whether a thread can have a step's elements in registers beside its results.
    fn has_registers(&self) -> bool {
        let elements = self.shape.side * self.shape.depth / self.shape.threads();
        self.shape.own <= MOST_OWN && elements <= MOST_OWN && self.c.inner.len() == 1
    }

    fn emit(&self) -> Result<Stmt, Refusal> {
        let Shape { side, depth, own } = self.shape;
        let dtype = self.c.reduce.stage.output.dtype;
        let [block, thread, row_block, column_block] = ["block", "thread", "rows", "columns"].map(Var::dim);
        let mut axes = self.c.batch.clone();
        axes.push(Axis { var: row_block.clone(), extent: ceil_div(&self.rows, side) });
        axes.push(Axis { var: column_block.clone(), extent: ceil_div(&self.columns, side) });
        let (blocks, binds) = nest::fuse(&axes, &block);
        let tile = |name: &str| Buffer::scoped(name, dtype, [int(depth), int(side + PAD)], "shared");
        let tiles = Tiles { a: tile("a"), b: tile("b") };
        let acc = Buffer::scoped("acc", dtype, [int(own * own)], "local");
        let k0 = Var::dim("k0");
        let place = Place::new();
        let number = PrimExpr::from(&thread);
        let mut body = binds;
        body.extend([Stmt::alloc(&tiles.a), Stmt::alloc(&tiles.b), Stmt::alloc(&acc)]);
        body.extend([
            Stmt::bind(place.m0.clone(), mul(PrimExpr::from(&row_block), int(side))),
            Stmt::bind(place.n0.clone(), mul(PrimExpr::from(&column_block), int(side))),
            Stmt::bind(place.ty.clone(), floordiv(&number, int(self.shape.across()))),
            Stmt::bind(place.tx.clone(), floormod(&number, int(self.shape.across()))),
        ]);
        body.extend((0..own * own).map(|i| Stmt::store(&acc, [int(i)], constant(dtype, 0.0))));
        if self.is_double {
            let more = Tiles { a: tile("next_a"), b: tile("next_b") };
            body.extend([Stmt::alloc(&more.a), Stmt::alloc(&more.b)]);
            body.extend(self.double_steps([tiles, more], &acc, &thread, &place));
            body.extend(in_place(&acc, own * own));
            body.push(self.store(&acc, &place));
            return Ok(launch(&block, blocks, &thread, self.shape.threads(), Stmt::seq(body)));
        }
        let step_ = Var::dim("step");
        let inside = Stmt::seq([
            Stmt::bind(k0.clone(), mul(PrimExpr::from(&step_), int(depth))),
            self.fill(&Operand::rows(self, &place.m0), &tiles.a, &thread, &k0),
            self.fill(&Operand::columns(self, &place.n0), &tiles.b, &thread, &k0),
            Stmt::barrier(),
            self.multiply(&tiles, &acc, &place),
            Stmt::barrier(),
        ]);
        body.push(Stmt::serial(step_, ceil_div(&self.terms, depth), inside));
        body.extend(in_place(&acc, own * own));
        body.push(self.store(&acc, &place));
        Ok(launch(&block, blocks, &thread, self.shape.threads(), Stmt::seq(body)))
    }

    /// All steps, with two pairs of tiles.
    fn double_steps(&self, tiles: [Tiles; 2], acc: &Ref<Buffer>, thread: &Ref<Var>, place: &Place) -> Vec<Stmt> {
        let Shape { side, depth, .. } = self.shape;
        let iterations = side * depth / self.shape.threads();
        let own = |name: &str| Buffer::scoped(name, acc.dtype, [int(iterations)], "local");
        let (own_a, own_b) = (own("own_a"), own("own_b"));
        let (of_rows, of_columns) = (Operand::rows(self, &place.m0), Operand::columns(self, &place.n0));
        let fetch = |step: PrimExpr| {
            let k0 = Var::dim("k0");
            Stmt::seq([
                Stmt::bind(k0.clone(), mul(step, int(depth))),
                self.fetch(&of_rows, &own_a, thread, &k0),
                self.fetch(&of_columns, &own_b, thread, &k0),
            ])
        };
        let put = |tiles: &Tiles| {
            [
                self.put(&of_rows, &own_a, &tiles.a, thread),
                self.put(&of_columns, &own_b, &tiles.b, thread),
                Stmt::barrier(),
            ]
        };
        let pair = Var::dim("pair");
        let mut inside = Vec::new();
        for (here, there) in [(0, 1), (1, 0)] {
            let next = add(mul(PrimExpr::from(&pair), int(2)), int(here as i64 + 1));
            inside.push(fetch(next));
            inside.push(self.multiply(&tiles[here], acc, place));
            inside.extend(put(&tiles[there]));
        }
        let mut list = vec![Stmt::alloc(&own_a), Stmt::alloc(&own_b), fetch(int(0))];
        list.extend(put(&tiles[0]));
        list.push(Stmt::serial(pair, ceil_div(&self.terms, 2 * depth), Stmt::seq(inside)));
        list
    }

    /// A thread's elements of a tile of an operand, into registers; zero beyond the ends.
    fn fetch(&self, operand: &Operand<'_>, own: &Ref<Buffer>, thread: &Ref<Var>, k0: &Ref<Var>) -> Stmt {
        self.each_element(operand, thread, |iteration, (k, place)| {
            let (binds, value) = self.element(operand, own.dtype, k0, k, place, true);
            Stmt::seq(binds.into_iter().chain([Stmt::store(own, [int(iteration)], value)]))
        })
    }

    /// The same elements into the tile.
    fn put(&self, operand: &Operand<'_>, own: &Ref<Buffer>, tile: &Ref<Buffer>, thread: &Ref<Var>) -> Stmt {
        self.each_element(operand, thread, |iteration, (k, place)| {
            Stmt::store(tile, [PrimExpr::from(k), PrimExpr::from(place)], load(own, [int(iteration)]))
        })
    }

    fn each_element(
        &self,
        operand: &Operand<'_>,
        thread: &Ref<Var>,
        body: impl Fn(i64, (&Ref<Var>, &Ref<Var>)) -> Stmt,
    ) -> Stmt {
        let iterations = self.shape.side * self.shape.depth / self.shape.threads();
        Stmt::seq((0..iterations).map(|iteration| {
            let [at, k, place] = ["at", "k", "place"].map(Var::dim);
            let (of_k, of_place) = self.within(operand, &PrimExpr::from(&at));
            Stmt::seq([
                Stmt::bind(at, add(int(iteration * self.shape.threads()), PrimExpr::from(thread))),
                Stmt::bind(k.clone(), of_k),
                Stmt::bind(place.clone(), of_place),
                body(iteration, (&k, &place)),
            ])
        }))
    }

    /// Where the number of an element lies in a tile: which term, and which row or column.
    fn within(&self, operand: &Operand<'_>, number: &PrimExpr) -> (PrimExpr, PrimExpr) {
        let Shape { side, depth, .. } = self.shape;
        match operand.is_along_terms {
            true => (floormod(number, int(depth)), floordiv(number, int(depth))),
            false => (floordiv(number, int(side)), floormod(number, int(side))),
        }
    }

    /// An element of an operand: the names that it needs, and its value. `beyond` if the step may lie behind the last.
    fn element(
        &self,
        operand: &Operand<'_>,
        dtype: DataType,
        k0: &Ref<Var>,
        k: &Ref<Var>,
        place: &Ref<Var>,
        beyond: bool,
    ) -> (Vec<Stmt>, PrimExpr) {
        let Shape { side, depth, .. } = self.shape;
        let [term, line] = ["term", "line"].map(Var::dim);
        let whole = |extent: &PrimExpr, by: i64| extent.as_int().is_some_and(|n| n % by == 0);
        let (_, line_binds) = nest::fuse(operand.axes, &line);
        let (_, term_binds) = nest::fuse(&self.c.inner, &term);
        let mut inside = None;
        let is_whole = [whole(operand.extent, side), whole(&self.terms, depth) && !beyond];
        for (var, extent, is_whole) in [(&line, operand.extent, is_whole[0]), (&term, &self.terms, is_whole[1])] {
            if !is_whole {
                let condition = lt(PrimExpr::from(var), extent.clone());
                inside = Some(inside.map_or(condition.clone(), |before: PrimExpr| and(before, condition)));
            }
        }
        let value = freshen_lets(operand.value);
        let value = match inside {
            Some(inside) => if_then_else(inside, value, constant(dtype, 0.0)),
            None => value,
        };
        let mut binds = vec![
            Stmt::bind(term, add(PrimExpr::from(k0), PrimExpr::from(k))),
            Stmt::bind(line, add(PrimExpr::from(operand.first), PrimExpr::from(place))),
        ];
        binds.extend(line_binds.into_iter().chain(term_binds));
        (binds, value)
    }

    /// Each thread's part of a tile of an operand, zero beyond its ends.
    fn fill(&self, operand: &Operand<'_>, tile: &Ref<Buffer>, thread: &Ref<Var>, k0: &Ref<Var>) -> Stmt {
        let iterations = self.shape.side * self.shape.depth / self.shape.threads();
        let [iteration, at, k, place] = ["iteration", "at", "k", "place"].map(Var::dim);
        let (of_k, of_place) = self.within(operand, &PrimExpr::from(&at));
        let (binds, value) = self.element(operand, tile.dtype, k0, &k, &place, false);
        let mut body = vec![
            Stmt::bind(at, add(mul(PrimExpr::from(&iteration), int(self.shape.threads())), PrimExpr::from(thread))),
            Stmt::bind(k.clone(), of_k),
            Stmt::bind(place.clone(), of_place),
        ];
        body.extend(binds);
        body.push(Stmt::store(tile, [PrimExpr::from(&k), PrimExpr::from(&place)], value));
        unrolled(iteration, iterations, Stmt::seq(body))
    }

    fn multiply(&self, tiles: &Tiles, acc: &Ref<Buffer>, place: &Place) -> Stmt {
        let own = self.shape.own;
        let k = Var::dim("k");
        let mut body = Vec::new();
        let mut taken = |tile: &Ref<Buffer>, thread: &Ref<Var>| -> Vec<PrimExpr> {
            let one = |i: i64| {
                let var = Var::prim(format!("{}{i}", tile.name), tile.dtype);
                let place = self.shape.place(&PrimExpr::from(thread), i);
                body.push(Stmt::bind(var.clone(), load(tile, [PrimExpr::from(&k), place])));
                PrimExpr::from(&var)
            };
            (0..own).map(one).collect()
        };
        let (rows, columns) = (taken(&tiles.a, &place.ty), taken(&tiles.b, &place.tx));
        for (i, row) in rows.iter().enumerate() {
            for (j, column) in columns.iter().enumerate() {
                let at = int(i as i64 * own + j as i64);
                let term = binary(BinaryOp::Mul, row.clone(), column.clone());
                body.push(Stmt::store(acc, [at.clone()], binary(BinaryOp::Add, load(acc, [at]), term)));
            }
        }
        unrolled(k, self.shape.depth, Stmt::seq(body))
    }

    /// The thread's results, where they lie inside.
    fn store(&self, acc: &Ref<Buffer>, place: &Place) -> Stmt {
        let Place { m0, n0, ty, tx } = place;
        let Shape { side, own, .. } = self.shape;
        let reduce = &self.c.reduce;
        let line = |name: &str, first: &Ref<Var>, thread: &Ref<Var>, i: i64, (axes, extent): (&[Axis], &PrimExpr)| {
            let var = Var::dim(name);
            let place = add(PrimExpr::from(first), self.shape.place(&PrimExpr::from(thread), i));
            let (_, binds) = nest::fuse(axes, &var);
            let whole = extent.as_int().is_some_and(|n| n % side == 0);
            let inside = (!whole).then(|| lt(PrimExpr::from(&var), extent.clone()));
            let binds: Vec<Stmt> = [Stmt::bind(var, place)].into_iter().chain(binds).collect();
            (binds, inside)
        };
        let under =
            |inside: Option<PrimExpr>, body: Stmt| inside.map_or(body.clone(), |inside| Stmt::when(inside, body));
        let mut list = Vec::new();
        for i in 0..own {
            let (row_binds, row_inside) = line("m", m0, ty, i, (&self.c.rows, &self.rows));
            let mut of_row = Vec::new();
            for j in 0..own {
                let (binds, inside) = line("n", n0, tx, j, (&self.column_axes, &self.columns));
                let total = VarMap::from([(reduce.acc.clone(), load(acc, [int(i * own + j)]))]);
                let epilogue = freshen_lets(&substitute(&reduce.epilogue, &total));
                let store = Stmt::store(&reduce.output, reduce.indices.clone(), epilogue);
                let (first, rest) = binds.split_at(1);
                let store = Stmt::seq(rest.iter().cloned().chain([store]));
                of_row.extend(first.iter().cloned().chain([under(inside, store)]));
            }
            let (first, rest) = row_binds.split_at(1);
            let of_row = Stmt::seq(rest.iter().cloned().chain(of_row));
            list.extend(first.iter().cloned().chain([under(row_inside, of_row)]));
        }
        Stmt::seq(list)
    }
}

/// Results that are computed before they are asked for. A compiler that knows how many steps there are moves the products of a result into the
/// branch that stores it, and then has the operands of all steps in registers at once.
fn in_place(acc: &Ref<Buffer>, count: i64) -> impl Iterator<Item = Stmt> {
    let one = |i: i64| {
        let sum = load(acc, [int(i)]);
        Stmt::store(acc, [int(i)], call(acc.dtype, "tirx.optimization_barrier", vec![sum]))
    };
    (0..count).map(one)
}

fn unrolled(var: Ref<Var>, count: i64, body: Stmt) -> Stmt {
    let (min, extent, kind) = (int(0), int(count), ForKind::Unrolled);
    Ref::new(For::new(kind, var, min, extent, body)).into()
}

/// One of the two factors.
struct Operand<'a> {
    value: &'a PrimExpr,
    /// Its axes beside the terms.
    axes: &'a [Axis],
    extent: &'a PrimExpr,
    /// Where the block begins along them.
    first: &'a Ref<Var>,
    /// Whether its memory runs along the terms.
    is_along_terms: bool,
}

impl<'a> Operand<'a> {
    fn rows(tiled: &'a Tiled<'_>, first: &'a Ref<Var>) -> Operand<'a> {
        let c = tiled.c;
        let along = |axis: Option<&Axis>| axis.is_some_and(|axis| step(&c.row, &axis.var) == Some(1));
        let is_along_terms = along(c.inner.last()) || !along(c.rows.last());
        Operand { value: &c.row, axes: &c.rows, extent: &tiled.rows, first, is_along_terms }
    }

    fn columns(tiled: &'a Tiled<'_>, first: &'a Ref<Var>) -> Operand<'a> {
        let c = tiled.c;
        let is_along_terms = step(&c.column, &c.x.var) != Some(1) && tiled.c.has_rows_of_terms(1);
        Operand { value: &c.column, axes: &tiled.column_axes, extent: &tiled.columns, first, is_along_terms }
    }
}
