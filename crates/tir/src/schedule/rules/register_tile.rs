//! The inner kernel of contractions: a tile of the output in registers, one broadcast and a few vectors a step.
//!
//! ```text
//! acc[rows][vectors] = 0                          # registers: a local buffer at constant offsets
//! for k in …:                                     # reduction loops, their last taps unrolled
//!     b[0 .. vectors] = B(k, x .. )               # vectors along the row of the output
//!     for i in 0 .. rows:  a = A(m + i, k);  acc[i][..] += a * b[..]
//! C(m + i, x ..) = epilogue(acc[i][..])             # masked at the row's end
//! ```
//!
//! Where rows may be missing, or where `epilogue` is long, the accumulators go through memory to a loop over the rows, so that
//! `epilogue` is code once and not once an accumulator. Missing rows read what the last row reads and store nothing.
//!
//! The tile is chosen by [`shape`]: as many accumulators as registers allow beside the operands, at least eight to cover
//! the latency of multiply-add, rows and vectors that divide the output. Roof: two multiply-adds a cycle.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{
    PrimExpr, VarMap, add, call, cast, constant, floordiv, floormod, ge, gt, int, load, min, mul, ramp, sub,
};
use relaxide_ir::{Buffer, Var};

use super::super::affine::{ceil_div, cost};
use super::super::lanes::{Lanes, Mask, multiply_add, splat};
use super::super::nest::Tile;
use super::super::parameters::{Choices, Domain, Guess};
use super::super::{Axis, Cx, Machine, Reduce, Refusal, nest};
use super::contraction::words;
use crate::Stmt;

/// Tiles from which the one at the edge does not count.
const MANY: i64 = 16;

/// Rows that a tile has at most: as many as registers have room for.
pub const MOST_ROWS: i64 = 14;

/// The same of matrix products. Each step reads all of them, often a power of two apart: then their lines share one set of
/// the first-level cache, which has room for eight.
pub const MOST_ROWS_OF_PRODUCT: i64 = 8;

/// Registers from which tiles leave instructions free for other things.
pub const FULL_REGISTERS: i64 = 32;

/// Vectors of a tile of one row: as many accumulators as cover the latency of multiply-adds.
pub const ONE_ROW_VECTORS: i64 = 8;

/// Vectors that a tile of several rows has at most.
const MOST_VECTORS: i64 = 4;

/// Cost of an epilogue from which it is a loop over the rows: it holds a function such as `exp`.
pub(super) const LONG: i64 = 16;

/// Instructions of a step that only count and jump.
const LOOP: f64 = 3.0;

/// What a vector of an image costs, in loads of whole lines from the first-level cache.
const IMAGE_LOAD: f64 = 3.0;

/// Vectors that a row of unknown length is taken to have.
const USUAL_VECTORS: f64 = 12.0;

/// Rows and vectors of a register tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows: broadcasts of the row operand.
    pub rows: i64,
    /// Vectors along the output's row.
    pub vectors: i64,
}

/// The best tile for an output of so many rows and so many vectors a row, where they are known.
///
/// Of all tiles that fit the registers (accumulators, one row of vectors, one broadcast), the one that wastes least on
/// edges; a tile with fewer than eight accumulators or more loads than multiply-adds / 1.4 loses in proportion. No tile has
/// more than `most_rows` rows.
pub fn shape(machine: &Machine, most_rows: i64, rows: Option<i64>, vectors: Option<i64>) -> Shape {
    best(machine, most_rows, rows, vectors, |_| 1.0)
}

/// The same for long rows: where registers abound, the tile that needs fewest instructions for a multiply-add.
///
/// A core begins four instructions a cycle, or two for each of two threads that share it; two of them are to be multiply-adds.
/// Rows whose length is not known end in single vectors, the more of them the wider the tile is.
pub fn lean_shape(machine: &Machine, most_rows: i64, rows: Option<i64>, vectors: Option<i64>) -> Shape {
    leanest(machine, most_rows, rows, vectors, 1.0)
}

/// Columns of the tile of a product with many rows and columns.
pub fn tile_columns(machine: &Machine, dtype: DataType) -> i64 {
    let shape = lean_shape(machine, MOST_ROWS_OF_PRODUCT, None, Some(MANY * MOST_VECTORS));
    shape.vectors * machine.lanes(dtype)
}

/// The same where vectors begin at any element and a second-level cache holds them, as those of an image: one is two lines, which
/// come from afar, so that it is worth more broadcasts.
pub fn image_shape(machine: &Machine, most_rows: i64, rows: Option<i64>, vectors: Option<i64>) -> Shape {
    leanest(machine, most_rows, rows, vectors, IMAGE_LOAD)
}

/// The leanest tile where a load of a vector counts as so many instructions.
fn leanest(machine: &Machine, most_rows: i64, rows: Option<i64>, vectors: Option<i64>, load: f64) -> Shape {
    let ends = |tile: &Shape| match vectors {
        Some(_) => 1.0,
        None => USUAL_VECTORS / (USUAL_VECTORS + (tile.vectors - 1) as f64 / 2.0),
    };
    let part = |tile: &Shape| {
        let (rows, vectors) = (tile.rows as f64, tile.vectors as f64);
        rows * vectors / (rows * vectors + rows + load * vectors + LOOP)
    };
    match machine.vector_registers {
        ..FULL_REGISTERS => shape(machine, most_rows, rows, vectors),
        _ => best(machine, most_rows, rows, vectors, |tile| part(tile) * ends(tile)),
    }
}

/// A guess of a tile.
pub struct TileGuess {
    /// The tile.
    pub shape: Shape,
    /// Rows that a tile may have.
    pub most_rows: i64,
    /// Why.
    pub reason: &'static str,
}

impl TileGuess {
    /// Asks for the tile's rows and vectors.
    pub fn decide(self, machine: &Machine, choices: &mut Choices<'_>) -> Shape {
        let TileGuess { shape, most_rows, reason } = self;
        let rows = choices.choose(Guess {
            name: "rows",
            value: shape.rows,
            domain: Domain::range(1, most_rows),
            reason,
            limit: "a tile has no more rows than the output, and no more than registers or the ways of a cache have room for",
        });
        // A row of vectors and a broadcast have registers beside the accumulators.
        let fitting = ((machine.vector_registers - 1) / (rows + 1)).clamp(1, MOST_VECTORS);
        let vectors = choices.choose(Guess {
            name: "vectors",
            value: shape.vectors.min(fitting),
            domain: Domain::range(1, fitting),
            reason,
            limit: "accumulators, a row of vectors and a broadcast have to fit the registers, and a row has four vectors at most",
        });
        Shape { rows, vectors }
    }
}

fn best(
    machine: &Machine,
    most_rows: i64,
    rows: Option<i64>,
    vectors: Option<i64>,
    weight: impl Fn(&Shape) -> f64,
) -> Shape {
    let fill = |extent: Option<i64>, tile: i64| match extent {
        Some(n) if n > 0 && n < MANY * tile => n as f64 / (((n + tile - 1) / tile) * tile) as f64,
        _ => 1.0,
    };
    let mut best = (0.0, Shape { rows: 1, vectors: 1 });
    for v in 1..=MOST_VECTORS {
        for r in 1..=most_rows {
            if r * v + v + 1 > machine.vector_registers || rows.is_some_and(|m| r > m) || vectors.is_some_and(|n| v > n)
            {
                continue;
            }
            let (accumulators, loads) = ((r * v) as f64, (r + v) as f64);
            let rate = (accumulators / loads / 1.4).min(1.0) * (accumulators / 8.0).min(1.0);
            let tile = Shape { rows: r, vectors: v };
            let score = rate * fill(rows, r) * fill(vectors, v) * weight(&tile);
            // Among equals the one with fewer vectors: rows' ends are more often ragged than their number.
            if score > best.0 + 1e-9 || (score > best.0 - 1e-9 && v == best.1.vectors) {
                best = (score, tile);
            }
        }
    }
    best.1
}

/// Rows of a register tile.
#[derive(Clone, Debug)]
pub struct Rows {
    /// The first.
    pub first: PrimExpr,
    /// What the first would be if no tile were moved back: where the tile's own memory begins.
    pub place: PrimExpr,
    /// How many the tile has room for.
    pub count: i64,
    /// How many there are, where some may be missing.
    pub present: Option<PrimExpr>,
}

impl Rows {
    /// As many rows as the tile has room for.
    pub fn full(first: PrimExpr, count: i64) -> Rows {
        Rows { place: first.clone(), first, count, present: None }
    }

    /// The row that the tile's row `i` reads: the last one for those that are missing.
    pub fn read(&self, i: i64) -> PrimExpr {
        match &self.present {
            Some(present) if i > 0 => add(&self.first, min(int(i), sub(present, int(1)))),
            _ => add(&self.first, int(i)),
        }
    }
}

/// One register tile.
pub struct RegisterTile<'a> {
    /// The contraction.
    pub reduce: &'a Reduce,
    /// The axis of the rows, if the output has one.
    pub row_axis: Option<&'a Ref<Var>>,
    /// The axis of the vectors.
    pub column_axis: &'a Ref<Var>,
    /// Lanes of a vector.
    pub lanes: i64,
    /// Rows.
    pub rows: &'a Rows,
    /// Columns.
    pub tile: &'a Tile,
    /// What other axes of the output stand for.
    pub at: &'a VarMap,
    /// Where the sums are kept between blocks of the depth; `None` where the tile computes whole sums, and finishes them.
    pub sums: Option<&'a Sums>,
    /// Whether the epilogue is a loop over the rows even where it is short and all rows are there: less code.
    pub by_row: bool,
    /// What each step does besides, with the reduction axes replaced as the map says.
    pub beside: Option<&'a dyn Fn(&VarMap) -> Stmt>,
}

/// Sums that wait for their other terms, laid out as tiles: row by row, each as wide as the tile.
#[derive(Clone, Debug)]
pub struct Sums {
    /// The memory.
    pub buffer: Ref<Buffer>,
    /// Where the tile begins.
    pub start: PrimExpr,
}

impl RegisterTile<'_> {
    /// The tile's statements.
    ///
    /// `loops` are the reduction axes that stay loops; `taps` are the values of the unrolled ones. `row` gives the scalar of
    /// a row, `column` the vector of a column, both with reduction axes replaced as the map says.
    pub fn emit(
        &self,
        cx: &mut Cx,
        loops: &[Axis],
        taps: &[VarMap],
        row: &dyn Fn(i64, &VarMap) -> PrimExpr,
        column: &mut dyn FnMut(&mut Cx, i64, &VarMap) -> Result<PrimExpr, Refusal>,
    ) -> Result<Stmt, Refusal> {
        let kept = |sums: &Sums, i: i64, j: i64| {
            ramp(add(&sums.start, int((i * self.tile.vectors + j) * self.lanes)), int(1), self.lanes)
        };
        let start = |i: i64, j: i64| Some(load(&self.sums?.buffer, [kept(self.sums?, i, j)]));
        let (acc, mut list) = self.accumulate(cx, loops, taps, row, column, &start)?;
        match self.sums {
            Some(s) => {
                let store = |(i, j)| Stmt::store(&s.buffer, [kept(s, i, j)], load(&acc, [self.cell(i, j)]));
                list.extend(self.cells().map(store));
            }
            None => list.extend(self.emit_epilogues(cx, &acc)?),
        }
        Ok(Stmt::seq(list))
    }

    /// The tile's sums, in a buffer whose vectors are [`Self::cell`]s, and the statements that compute them. They begin at
    /// zero, or with what `start` says.
    pub fn accumulate(
        &self,
        cx: &mut Cx,
        loops: &[Axis],
        taps: &[VarMap],
        row: &dyn Fn(i64, &VarMap) -> PrimExpr,
        column: &mut dyn FnMut(&mut Cx, i64, &VarMap) -> Result<PrimExpr, Refusal>,
        start: &dyn Fn(i64, i64) -> Option<PrimExpr>,
    ) -> Result<(Ref<Buffer>, Vec<Stmt>), Refusal> {
        let dtype = self.reduce.stage.output.dtype;
        let lanes = self.lanes;
        let acc = Buffer::scoped("acc", dtype, [int(self.rows.count * self.tile.vectors * lanes)], "local");
        let zero = splat(constant(dtype, 0.0), lanes);
        let of_words = words(&self.reduce.stage.value).map(|(function, ..)| function);
        let fresh: Vec<Axis> = loops.iter().map(|a| Axis { var: Var::dim(a.var.name.clone()), ..a.clone() }).collect();
        let renamed: VarMap =
            loops.iter().zip(&fresh).map(|(old, new)| (old.var.clone(), PrimExpr::from(&new.var))).collect();
        let mut steps = Vec::new();
        for tap in taps {
            let map: VarMap = renamed.iter().chain(tap).map(|(v, e)| (v.clone(), e.clone())).collect();
            steps.extend(self.beside.map(|beside| beside(&map)));
            let mut columns: Vec<Ref<Var>> = Vec::new();
            for j in 0..self.tile.vectors {
                let (var, bind) = named(format!("b{j}"), splat(column(cx, j, &map)?, lanes));
                columns.push(var);
                steps.push(bind);
            }
            for i in 0..self.rows.count {
                let (a, bind) = named(format!("a{i}"), splat(row(i, &map), lanes));
                steps.push(bind);
                for (j, b) in columns.iter().enumerate() {
                    let index = self.cell(i, j as i64);
                    let (a, b, so_far) = (PrimExpr::from(&a), PrimExpr::from(b), load(&acc, [index.clone()]));
                    let sum = match of_words {
                        Some(function) => call(so_far.dtype(), function, vec![a, b, so_far]),
                        None => multiply_add(cx.machine.fma, a, b, so_far),
                    };
                    steps.push(Stmt::store(&acc, [index], sum));
                }
            }
        }
        let mut list = vec![Stmt::alloc(&acc)];
        let first = |(i, j)| Stmt::store(&acc, [self.cell(i, j)], start(i, j).unwrap_or_else(|| zero.clone()));
        list.extend(self.cells().map(first));
        list.push(nest::serial(&fresh, Stmt::seq(steps)));
        Ok((acc, list))
    }

    /// Row and vector of every accumulator.
    pub fn cells(&self) -> impl Iterator<Item = (i64, i64)> + use<> {
        let vectors = self.tile.vectors;
        (0..self.rows.count).flat_map(move |i| (0..vectors).map(move |j| (i, j)))
    }

    /// Where an accumulator lies in their buffer.
    pub fn cell(&self, i: i64, j: i64) -> PrimExpr {
        ramp(int((i * self.tile.vectors + j) * self.lanes), int(1), self.lanes)
    }

    /// The epilogue and the stores of all accumulators.
    pub fn emit_epilogues(&self, cx: &mut Cx, acc: &Ref<Buffer>) -> Result<Vec<Stmt>, Refusal> {
        if self.rows.present.is_none() && !self.by_row && cost(&self.reduce.epilogue) < LONG {
            return self
                .cells()
                .map(|(i, j)| self.emit_epilogue(cx, int(i), j, load(acc, [self.cell(i, j)])))
                .collect();
        }
        let done = Buffer::scoped("done", acc.dtype, acc.shape.clone(), "local");
        let copies = self.cells().map(|(i, j)| Stmt::store(&done, [self.cell(i, j)], load(acc, [self.cell(i, j)])));
        let mut list: Vec<Stmt> = [Stmt::alloc(&done)].into_iter().chain(copies).collect();
        list.push(self.emit_epilogue_by_row(cx, &Sums { buffer: done, start: int(0) })?);
        Ok(list)
    }

    /// A loop over the rows that are there: the epilogue and the store of each. A long epilogue is a loop over the vectors, too.
    pub fn emit_epilogue_by_row(&self, cx: &mut Cx, sums: &Sums) -> Result<Stmt, Refusal> {
        let i = Var::dim("i");
        let row = add(&sums.start, mul(PrimExpr::from(&i), int(self.tile.vectors * self.lanes)));
        let mut store = |j: PrimExpr, mask| {
            let sum = load(&sums.buffer, [ramp(add(&row, mul(&j, int(self.lanes))), int(1), self.lanes)]);
            self.emit_epilogue_at(cx, PrimExpr::from(&i), j, mask, sum)
        };
        let whole = self.tile.vectors - i64::from(self.tile.mask.is_some());
        let mut stores = Vec::new();
        if whole > 1 && cost(&self.reduce.epilogue) >= LONG {
            let j = Var::dim("j");
            stores.push(Stmt::serial(j.clone(), int(whole), store(PrimExpr::from(&j), None)?));
        } else {
            for j in 0..whole {
                stores.push(store(int(j), None)?);
            }
        }
        for j in whole..self.tile.vectors {
            stores.push(store(int(j), self.tile.mask.as_ref())?);
        }
        let rows = self.rows.present.clone().unwrap_or_else(|| int(self.rows.count));
        Ok(apart_if_long(&self.reduce.epilogue, Stmt::serial(i, rows, Stmt::seq(stores))))
    }

    /// The epilogue and the store of one vector.
    pub fn emit_epilogue(&self, cx: &mut Cx, i: PrimExpr, j: i64, sum: PrimExpr) -> Result<Stmt, Refusal> {
        self.emit_epilogue_at(cx, i, int(j), self.tile.mask_of(j), sum)
    }

    fn emit_epilogue_at(
        &self,
        cx: &mut Cx,
        i: PrimExpr,
        j: PrimExpr,
        mask: Option<&Mask>,
        sum: PrimExpr,
    ) -> Result<Stmt, Refusal> {
        let mut map = self.at.clone();
        map.insert(self.reduce.acc.clone(), sum);
        if let Some(axis) = self.row_axis {
            map.insert(axis.clone(), add(&self.rows.first, cast(axis.dtype(), i)));
        }
        let base = add(&self.tile.base, mul(j, int(self.lanes)));
        Lanes::new(&mut cx.views, self.column_axis, base, self.lanes, mask, &map).store(
            &self.reduce.output,
            &self.reduce.indices,
            &self.reduce.epilogue,
        )
    }
}

/// What computes an epilogue, as a function of its own where that is long: its constants would take the registers of the sums.
pub fn apart_if_long(epilogue: &PrimExpr, computes: Stmt) -> Stmt {
    if cost(epilogue) < LONG { computes } else { nest::outlined(computes) }
}

/// A value by a name of its own.
fn named(name: String, value: PrimExpr) -> (Ref<Var>, Stmt) {
    let var = Var::prim(name, value.dtype());
    (var.clone(), Stmt::bind(var, value))
}

/// A loop over rows in tiles: full tiles, then smaller ones for the rest.
///
/// A known rest is one tile; an unknown one is cut into powers of two, so that no row is computed twice or alone.
pub fn rows(
    start: &PrimExpr,
    extent: &PrimExpr,
    tile: i64,
    mut body: impl FnMut(&Rows) -> Result<Stmt, Refusal>,
) -> Result<Stmt, Refusal> {
    let full = floordiv(extent, int(tile));
    let mut list = Vec::new();
    if full.is_int(1) {
        list.push(body(&Rows::full(start.clone(), tile))?);
    } else if !full.is_int(0) {
        let t = Var::dim("row_tile");
        let inner = body(&Rows::full(add(start, mul(PrimExpr::from(&t), int(tile))), tile))?;
        list.push(Stmt::serial(t, full.clone(), inner));
    }
    let done = add(start, mul(&full, int(tile)));
    if let Some(extent) = extent.as_int() {
        if extent % tile > 0 {
            list.push(body(&Rows::full(done, extent % tile))?);
        }
        return Ok(Stmt::seq(list));
    }
    let rest = Var::dim("rest_rows");
    list.push(Stmt::bind(rest.clone(), sub(extent, mul(&full, int(tile)))));
    let rest = PrimExpr::from(&rest);
    let mut size = (tile.max(1) as u64).next_power_of_two() as i64 / 2;
    while size >= 1 {
        let before = mul(floordiv(&rest, int(2 * size)), int(2 * size));
        let tile = body(&Rows::full(add(&done, before), size))?;
        list.push(Stmt::when(ge(floormod(&rest, int(2 * size)), int(size)), tile));
        size /= 2;
    }
    Ok(Stmt::seq(list))
}

/// A loop over rows of which there are at least as many as a tile has, in one body: the last tile is moved back before `end`, so
/// that it is full, and computes some rows again.
pub fn overlapping_rows(
    start: &PrimExpr,
    extent: &PrimExpr,
    end: &PrimExpr,
    tile: i64,
    mut body: impl FnMut(&Rows) -> Result<Stmt, Refusal>,
) -> Result<Stmt, Refusal> {
    if extent.as_int().is_some() || tile < 2 {
        return rows(start, extent, tile, body);
    }
    let (t, first) = (Var::dim("row_tile"), Var::dim("first_row"));
    let place = add(start, mul(PrimExpr::from(&t), int(tile)));
    let bind = Stmt::bind(first.clone(), min(place.clone(), sub(end, int(tile))));
    let inner = body(&Rows { place, ..Rows::full(PrimExpr::from(&first), tile) })?;
    Ok(Stmt::serial(t, ceil_div(extent, tile), Stmt::seq([bind, inner])))
}

/// A loop over rows whose number is not known, in few bodies: one tile takes what is left at the end, too.
///
/// Where `apart` says so, full tiles have a body of their own, which ends without a loop over the rows; else one body serves
/// all. The numbers of rows in `few`, from the smallest on, have bodies of their own, which take as many rows as have no smaller one.
pub fn ragged_rows(
    start: &PrimExpr,
    extent: &PrimExpr,
    tile: i64,
    apart: bool,
    few: &[i64],
    mut body: impl FnMut(&Rows) -> Result<Stmt, Refusal>,
) -> Result<Stmt, Refusal> {
    if extent.as_int().is_some() || tile < 2 {
        return rows(start, extent, tile, body);
    }
    let present = Var::dim("present");
    let left = PrimExpr::from(&present);
    let mut last = |first: &PrimExpr| -> Result<Stmt, Refusal> {
        let rows = Rows::full(first.clone(), tile);
        let whole = body(&Rows { present: Some(left.clone()), ..rows })?;
        (0..few.len()).rev().filter(|i| few[*i] < tile).try_fold(whole, |more, i| {
            let (count, smaller) = (few[i], i.checked_sub(1).map_or(0, |before| few[before]));
            let rows = Rows::full(first.clone(), count);
            let present = (smaller + 1 < count).then(|| left.clone());
            let own = body(&Rows { present, ..rows })?;
            Ok(Stmt::if_else(gt(&left, int(count)), more, own))
        })
    };
    let t = Var::dim("row_tile");
    if apart {
        let full = floordiv(extent, int(tile));
        let done = mul(&full, int(tile));
        let rest = last(&add(start, &done))?;
        let inner = body(&Rows::full(add(start, mul(PrimExpr::from(&t), int(tile))), tile))?;
        let rest = Stmt::when(gt(&left, int(0)), rest);
        return Ok(Stmt::seq([Stmt::serial(t, full, inner), Stmt::bind(present, sub(extent, done)), rest]));
    }
    let before = mul(PrimExpr::from(&t), int(tile));
    let inner = last(&add(start, &before))?;
    let bind = Stmt::bind(present, min(int(tile), sub(extent, before)));
    Ok(Stmt::serial(t, ceil_div(extent, tile), Stmt::seq([bind, inner])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn avx2() -> Machine {
        Machine::of(&relaxide_ir::Target::llvm("x86-64-v3"))
    }

    #[test]
    fn an_unknown_output_gets_six_rows_of_two_vectors() {
        assert_eq!(shape(&avx2(), MOST_ROWS, None, None), Shape { rows: 6, vectors: 2 });
    }

    #[test]
    fn with_many_registers_long_rows_get_tiles_of_few_instructions() {
        let avx512 = Machine::of(&relaxide_ir::Target::llvm("x86-64-v4"));
        assert_eq!(lean_shape(&avx512, 8, Some(512), Some(32)), Shape { rows: 6, vectors: 4 });
        assert_eq!(lean_shape(&avx512, 8, None, Some(48)), Shape { rows: 6, vectors: 4 });
        assert_eq!(lean_shape(&avx512, 8, None, None), Shape { rows: 8, vectors: 3 });
        assert_eq!(lean_shape(&avx2(), 8, None, None), shape(&avx2(), 8, None, None));
    }

    #[test]
    fn rows_that_four_divides_and_six_does_not_get_four_rows_of_three() {
        assert_eq!(shape(&avx2(), MOST_ROWS, Some(32), None), Shape { rows: 4, vectors: 3 });
        assert_eq!(shape(&avx2(), MOST_ROWS, Some(24), None), Shape { rows: 6, vectors: 2 });
    }

    #[test]
    fn a_narrow_output_gets_one_vector_and_many_rows() {
        let shape = shape(&avx2(), MOST_ROWS, None, Some(1));
        assert!(shape.vectors == 1 && shape.rows >= 8, "{shape:?}");
    }
}
