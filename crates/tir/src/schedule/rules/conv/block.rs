//! The products of one block of a convolution.
//!
//! ```text
//! for tile of 6 channels, for some rows of the block:            # its weights stay in the first-level cache
//!     for tile of 4 vectors at f, through all of the rows:
//!         for c, ry: for rx (unrolled):  acc[6][4] += W[m.., c, ry, rx] * S[c][ry % s][rx % s][ry/s*pitch + rx/s + f ..]
//!         R[6][f ..] = acc
//!     for y in the rows, for vector of x:  C[n, m.., y, x..] = epilogue(R[m..][y*pitch + x ..])
//! ```
//!
//! A plane of the workspace is read as one long row: vectors go on from the end of one row of the image to the beginning of
//! the next, and compute as many numbers between them as the kernel reaches beyond a pixel, which nobody looks at. A row of 7
//! would fill less than half of a vector of 16; so 49 of 64 lanes count. Sums of few terms, in rows that fill their vectors, are
//! finished in registers instead, row by row.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{BufferLoad, PrimExpr, VarMap, add, floordiv, int, load, max, min, mul, ramp, sub, substitute};
use relaxide_ir::{Buffer, Var};

use super::super::super::affine::{ceil_div, product};
use super::super::super::inline::freshen_lets;
use super::super::super::nest::Tile;
use super::super::super::{Axis, Cx, Refusal, nest};
use super::super::register_tile::{self, MOST_ROWS, RegisterTile, Rows, Shape, apart_if_long};
use super::super::window::{Window, Windowed, Workspace};
use super::chunks::ChunkNumber;
use super::decide::{Nest, Products};
use super::panels;
use super::{Part, divides};
use crate::Stmt;

/// Terms of a sum from which its way through memory costs little.
const MANY_TERMS: i64 = 128;
/// Vectors of a register tile at most.
pub(super) const MOST_VECTORS: i64 = 4;

/// The output rows of one block.
pub(super) struct Block<'a> {
    pub(super) window: &'a Windowed,
    pub(super) part: &'a Part<'a>,
    pub(super) space: &'a Workspace,
    /// The first.
    pub(super) y0: &'a PrimExpr,
    /// How many there are, and how many a block has at most.
    pub(super) count: &'a PrimExpr,
    pub(super) most: &'a PrimExpr,
    /// How many chunks its pixels are divided into, and the number of the one at hand.
    pub(super) chunk: ChunkNumber<'a>,
    pub(super) decided: &'a Nest,
}

/// Whether vectors go on from row to row: where rows fill vectors badly, or are not known, and where sums have enough terms
/// to pay for their way through memory.
pub(super) fn goes_on(window: &Windowed, lanes: i64) -> bool {
    let inner = product(window.c.inner.iter().map(|a| &a.extent));
    let ragged = |n: i64| 5 * n < 4 * ((n + lanes - 1) / lanes * lanes);
    window.y.is_some()
        && (inner.as_int().is_none_or(|terms| terms >= MANY_TERMS) || window.x.axis.extent.as_int().is_some_and(ragged))
}

/// Rows of a block of `most` that are taken at once, where `count` are there: so many that their sums fit.
pub(super) fn lines_at_once(most: &PrimExpr, count: &PrimExpr, pitch: &PrimExpr, sums: i64) -> PrimExpr {
    let fitting = max(floordiv(int(sums / MOST_ROWS), pitch), int(1));
    divisor(min(most.clone(), fitting), count)
}

/// Vectors of so many rows as one long row, where they are known and always as many.
pub(super) fn long_vectors(
    window: &Windowed,
    pitch: &PrimExpr,
    lines: &PrimExpr,
    count: &PrimExpr,
    lanes: i64,
) -> Option<i64> {
    let elements = long_row(window, pitch, lines).as_int().filter(|_| divides(lines, count))?;
    Some((elements + lanes - 1) / lanes)
}

/// Elements of so many output rows as one long row; behind the last one nothing follows.
fn long_row(window: &Windowed, pitch: &PrimExpr, lines: &PrimExpr) -> PrimExpr {
    add(mul(sub(lines, int(1)), pitch), &window.x.axis.extent)
}

/// So many rows at most that all groups have as many, where both numbers are known.
fn divisor(most: PrimExpr, rows: &PrimExpr) -> PrimExpr {
    match most.as_int().zip(rows.as_int()) {
        Some((most, rows)) => int((1..=most).rev().find(|n| rows % n == 0).unwrap_or(1)),
        None => most,
    }
}

/// The weight of a row of a register tile.
type Weight<'a> = Box<dyn Fn(i64, &VarMap) -> PrimExpr + 'a>;
/// The image under a vector of a register tile.
type Pixels<'a> = Box<dyn Fn(i64, &VarMap) -> Result<PrimExpr, Refusal> + 'a>;

/// What the products of a register tile are made of: loops, the unrolled taps inside of them, both factors.
struct Operands<'a> {
    loops: Vec<Axis>,
    taps: Vec<VarMap>,
    row: Weight<'a>,
    column: Pixels<'a>,
}

/// Some rows of a block.
struct Lines {
    /// The first, counted from the block's.
    first: PrimExpr,
    count: PrimExpr,
}

/// Sums of some rows of a block for some channels, each channel as one long row.
struct Sums {
    buffer: Ref<Buffer>,
    /// Elements from a channel to the next.
    pitch: PrimExpr,
}

impl Block<'_> {
    /// Its nest.
    pub(super) fn emit(&self, cx: &mut Cx) -> Result<Stmt, Refusal> {
        match &self.decided.products {
            Products::RowByRow(tile) => self.row_by_row(cx, *tile),
            Products::LongRows { sums, tile } => self.in_long_rows(cx, *sums, *tile),
            Products::InPanels(decided) => panels::emit(cx, self, decided),
        }
    }

    /// Register tiles along each row, which are finished where they are computed.
    fn row_by_row(&self, cx: &mut Cx, shape: Shape) -> Result<Stmt, Refusal> {
        let (x, lanes) = (&self.window.x.axis.extent, self.space.lanes);
        register_tile::rows(&self.part.first, &self.part.count, shape.rows, |rows| {
            let var = Var::dim("line");
            let line = PrimExpr::from(&var);
            let at = self.at_row(&line);
            let tiles = nest::tiles(int(0), x, lanes, shape.vectors, |tile| {
                let operands = self.operands(&line, rows, &tile);
                let (loops, taps) = (&operands.loops, &operands.taps);
                self.register_tile(rows, &tile, &at)
                    .emit(cx, loops, taps, &operands.row, &mut |_, j, map| (operands.column)(j, map))
            })?;
            Ok(Stmt::serial(var, self.count.clone(), tiles))
        })
    }

    /// Register tiles along all of some rows, finished afterwards.
    fn in_long_rows(&self, cx: &mut Cx, sums: i64, shape: Shape) -> Result<Stmt, Refusal> {
        let (lanes, name) = (self.space.lanes, Var::dim("lines"));
        let most = lines_at_once(self.most, self.count, &self.space.pitch, sums);
        let (lines, bind) = match most.as_int() {
            Some(n) => (int(n), None),
            None => (PrimExpr::from(&name), Some(Stmt::bind(name, most))),
        };
        let whole = divides(&lines, self.count);
        let pitch = add(self.extent(&lines), int(shape.vectors * lanes));
        let dtype = self.window.c.reduce.stage.output.dtype;
        let sums = Sums { buffer: Buffer::new("sums", dtype, [mul(&pitch, int(shape.rows))]), pitch };
        let tiles = register_tile::rows(&self.part.first, &self.part.count, shape.rows, |rows| {
            self.groups(&lines, whole, |group| {
                let products = self.tiles(&self.extent(&group.count), shape.vectors, |tile| {
                    self.products(cx, &sums, group, rows, &tile)
                })?;
                Ok(Stmt::seq([products, self.emit_epilogue(cx, &sums, group, rows)?]))
            })
        })?;
        Ok(Stmt::seq(bind.into_iter().chain([Stmt::alloc(&sums.buffer), tiles])))
    }

    /// A loop over the block's rows, so many at a time; `whole` says that there are always as many.
    fn groups(
        &self,
        lines: &PrimExpr,
        whole: bool,
        body: impl FnOnce(&Lines) -> Result<Stmt, Refusal>,
    ) -> Result<Stmt, Refusal> {
        let (group, here) = (Var::dim("group"), Var::dim("here"));
        let first = mul(PrimExpr::from(&group), lines);
        let (count, bind) = match whole {
            true => (lines.clone(), None),
            false => {
                let left = min(lines.clone(), sub(self.count, &first));
                (PrimExpr::from(&here), Some(Stmt::bind(here, left)))
            }
        };
        let body = body(&Lines { first, count })?;
        let groups = floordiv(add(self.count, sub(lines, int(1))), lines);
        Ok(Stmt::serial(group, groups, Stmt::seq(bind.into_iter().chain([body]))))
    }

    /// Elements of so many output rows as one long row.
    fn extent(&self, lines: &PrimExpr) -> PrimExpr {
        long_row(self.window, &self.space.pitch, lines)
    }

    /// A loop over the long row. Nothing has to be masked: what is computed behind its end is not looked at. Where that end is
    /// not known, the last tile is as wide as the others.
    fn tiles(
        &self,
        extent: &PrimExpr,
        vectors: i64,
        mut body: impl FnMut(Tile) -> Result<Stmt, Refusal>,
    ) -> Result<Stmt, Refusal> {
        let step = self.space.lanes * vectors;
        let (full, rest) = match extent.as_int() {
            Some(n) => (int(n / step), (n % step + self.space.lanes - 1) / self.space.lanes),
            None => (ceil_div(extent, step), 0),
        };
        let t = Var::dim("t");
        let mut list = Vec::new();
        if !full.is_int(0) {
            let tile = body(Tile { base: mul(PrimExpr::from(&t), int(step)), vectors, mask: None })?;
            list.push(Stmt::serial(t, full.clone(), tile));
        }
        if rest > 0 {
            list.push(body(Tile { base: mul(full, int(step)), vectors: rest, mask: None })?);
        }
        Ok(Stmt::seq(list))
    }

    /// A register tile, stored to the sums.
    fn products(&self, cx: &mut Cx, sums: &Sums, lines: &Lines, rows: &Rows, tile: &Tile) -> Result<Stmt, Refusal> {
        let (at, operands) = (VarMap::new(), self.operands(&lines.first, rows, tile));
        let kernel = self.register_tile(rows, tile, &at);
        let (loops, taps) = (&operands.loops, &operands.taps);
        let mut column = |_: &mut Cx, j: i64, map: &VarMap| (operands.column)(j, map);
        let (acc, mut list) = kernel.accumulate(cx, loops, taps, &operands.row, &mut column, &|_, _| None)?;
        list.extend(kernel.cells().map(|(i, j)| {
            let place = add(mul(&sums.pitch, int(i)), tile.at(j, self.space.lanes));
            Stmt::store(&sums.buffer, [ramp(place, int(1), self.space.lanes)], load(&acc, [kernel.cell(i, j)]))
        }));
        Ok(Stmt::seq(list))
    }

    /// The output's rows of the sums' channels.
    fn emit_epilogue(&self, cx: &mut Cx, sums: &Sums, lines: &Lines, rows: &Rows) -> Result<Stmt, Refusal> {
        let (i, line) = (Var::dim("i"), Var::dim("line"));
        let at = self.at_row(&add(&lines.first, PrimExpr::from(&line)));
        let start = add(mul(&sums.pitch, PrimExpr::from(&i)), mul(&self.space.pitch, PrimExpr::from(&line)));
        let lanes = self.space.lanes;
        let row = nest::tiles(int(0), &self.window.x.axis.extent, lanes, 1, |tile| {
            let indices = vec![ramp(add(&start, &tile.base), int(1), lanes)];
            let predicate = tile.mask_of(0).map(|mask| mask.vector(lanes));
            let sum = Ref::new(BufferLoad { buffer: sums.buffer.clone(), indices, predicate }).into();
            self.register_tile(rows, &tile, &at).emit_epilogue(cx, PrimExpr::from(&i), 0, sum)
        })?;
        let rows = Stmt::serial(i, int(rows.count), Stmt::serial(line, lines.count.clone(), row));
        Ok(apart_if_long(&self.window.c.reduce.epilogue, rows))
    }

    /// What the axis across rows stands for in a row of the block.
    pub(super) fn at_row(&self, line: &PrimExpr) -> VarMap {
        self.window.y.iter().map(|y| (y.axis.var.clone(), add(self.y0, line))).collect()
    }

    /// What the products of a tile are made of, from a row of the block on.
    fn operands<'a>(&'a self, line: &'a PrimExpr, rows: &'a Rows, tile: &'a Tile) -> Operands<'a> {
        let (window, space, channel) = (self.window, self.space, self.part.channel);
        let mut loops = window.channels.clone();
        loops.extend(window.y.as_ref().and_then(|y| y.tap.clone()));
        let taps = match &window.x.tap {
            Some(tap) => (0..tap.extent.as_int().unwrap_or(0)).map(|r| [(tap.var.clone(), int(r))].into()).collect(),
            None => vec![VarMap::new()],
        };
        let row = move |i: i64, map: &VarMap| {
            let mut map = map.clone();
            map.insert(channel.var.clone(), rows.read(i));
            freshen_lets(&substitute(&window.c.row, &map))
        };
        let column = move |j: i64, map: &VarMap| {
            let tap = |w: &Window| {
                w.tap.as_ref().map_or(int(0), |t| mul(substitute(&PrimExpr::from(&t.var), map), int(w.dilation)))
            };
            let below = window.y.as_ref().map_or(int(0), tap);
            let Some(offset) = tap(&window.x).as_int() else {
                return Err(Refusal::new("a tap of the row is not unrolled"));
            };
            let of = substitute(&window.channel_index(), map);
            Ok(window.vector(space, &of, line, &below, offset, &tile.at(j, space.lanes)))
        };
        Operands { loops, taps, row: Box::new(row), column: Box::new(column) }
    }

    pub(super) fn register_tile<'a>(&'a self, rows: &'a Rows, tile: &'a Tile, at: &'a VarMap) -> RegisterTile<'a> {
        RegisterTile {
            reduce: &self.window.c.reduce,
            row_axis: Some(&self.part.channel.var),
            column_axis: &self.window.x.axis.var,
            lanes: self.space.lanes,
            rows,
            tile,
            at,
            sums: None,
            by_row: false,
            beside: None,
        }
    }
}
