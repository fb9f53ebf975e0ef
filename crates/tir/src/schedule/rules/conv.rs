//! Direct convolution of images in planes (NCHW), any stride, dilation, padding and rank.
//!
//! Matches windowed contractions whose output channels are rows of the register tile (all but depthwise).
//!
//! ```text
//! parallel p over (n, blocks of output rows, parts of the channels):
//!     S = workspace of the block's image rows           # zero borders, phases; see `window`
//!     for tile of 6 channels, for some rows of the block:        # its weights stay in the first-level cache
//!         for tile of 4 vectors at f, through all of the rows:
//!             for c, ry: for rx (unrolled):  acc[6][4] += W[m.., c, ry, rx] * S[c][ry % s][rx % s][ry/s*pitch + rx/s + f ..]
//!             R[6][f ..] = acc
//!         for y in the rows, for vector of x:  C[n, m.., y, x..] = finish(R[m..][y*pitch + x ..])
//! ```
//!
//! A plane of the workspace is read as one long row: vectors go on from the end of one row of the image to the beginning of
//! the next, and compute as many numbers between them as the kernel reaches beyond a pixel, which nobody looks at. A row of 7
//! would fill less than half of a vector of 16; so 49 of 64 lanes count. Sums of few terms are finished in registers instead,
//! row by row.
//!
//! Weights are read in their natural order: each of the six rows is one stream over `c, ry, rx`. Parameters: rows a block
//! such that the workspace fits half of the second-level cache, at least four. Channels are divided where rows give too
//! few tasks (signals of one dimension) or where every further block of rows would read weights that no cache keeps; each
//! part fills a workspace of its own, which costs little beside the products of enough channels. Roof: two multiply-adds a cycle.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{PrimExpr, VarMap, add, floordiv, int, load, max, min, mul, ramp, sub, substitute};
use relaxide_ir::{Buffer, Var};

use super::super::affine::{ceil_div, product};
use super::super::inline::freshen_lets;
use super::super::nest::Tile;
use super::super::{Axis, Cx, Reduce, Refusal, nest};
use super::contraction::Contraction;
use super::register_tile::{self, MOST_ROWS, RegisterTile, Rows};
use super::window::{Window, Windowed, Workspace, rows_per_block};
use crate::Stmt;

/// Output rows below which a block's halo costs too much.
const LEAST_ROWS: i64 = 4;
/// Blocks of rows that an image has at least, for threads to share.
const BLOCKS: i64 = 4;
/// Numbers of parts into which channels may be divided, the best first.
const PARTS: [i64; 3] = [8, 4, 2];
/// Channels below which a part does not pay for its workspace, which takes longer to fill where columns are strided.
const LEAST_CHANNELS: i64 = 32;
/// Elements of the sums that wait to be finished, for all rows of a register tile: they stay in the first-level cache.
const SUMS: i64 = 12 << 10;
/// Terms of a sum from which its way through memory costs little.
const MANY_TERMS: i64 = 128;
/// Vectors of a register tile at most.
const MOST_VECTORS: i64 = 4;

/// Taps of a kernel's row that are unrolled at most: machine code, and the time to make it, grow with them.
const MOST_TAPS: i64 = 16;

/// Makes the nest of a convolution.
pub fn apply(cx: &mut Cx, reduce: &Reduce) -> Result<Stmt, Refusal> {
    let mut contraction = Contraction::of(reduce)?;
    let Some(channel) = contraction.rows.pop() else {
        return Err(Refusal::new("no axis belongs to the weights alone"));
    };
    if !contraction.rows.is_empty() {
        return Err(Refusal::new("several axes belong to the weights alone"));
    }
    let dtype = reduce.stage.output.dtype;
    let lanes = cx.machine.lanes(dtype);
    let window = Windowed::of(contraction)?;
    if let Some(taps) = window.x.tap.as_ref().and_then(|tap| tap.extent.as_int()).filter(|n| *n > MOST_TAPS) {
        return Err(Refusal::new(format!(
            "a row of the kernel has {taps} taps, and more than {MOST_TAPS} are too many to unroll"
        )));
    }
    let pitch = Var::dim("pitch");
    let pitch_value = window.pitch();
    let block = Var::dim("rows");
    let weights = product(reduce.stage.reduce.iter().map(|a| &a.extent).chain([&channel.extent])).as_int();
    let heavy = weights.is_some_and(|n| n * i64::from(dtype.bits / 8) > cx.machine.l2);
    let parts = if heavy || window.y.is_none() { parts_of(&channel, window.x.stride) } else { 1 };
    let blocks_to_share = |height: &PrimExpr| ceil_div(height, if parts > 1 { 1 } else { BLOCKS });
    let budget = cx.machine.l2 / 2;
    let known = |e: &PrimExpr, var| if e.as_int().is_some() { e.clone() } else { PrimExpr::from(var) };
    let pitch_name = known(&pitch_value, &pitch);
    let height = window.y.as_ref().map_or(int(1), |y| y.axis.extent.clone());
    let block_value = rows_per_block(&window, &pitch_name, budget, LEAST_ROWS, blocks_to_share);
    let block_value = even(&block_value, &height);
    let block_name = known(&block_value, &block);

    let space = Workspace::new(&window, dtype, (lanes, MOST_VECTORS), &block_name, pitch_name);
    let (p, block_axis, y0, count) = (Var::dim("p"), Var::dim("block"), Var::dim("y0"), Var::dim("count"));
    let blocks = floordiv(add(&height, sub(block_name.clone(), int(1))), block_name.clone());
    let mut axes = window.outer.clone();
    axes.push(Axis { var: block_axis.clone(), extent: blocks });
    let part = Part::of(&channel, parts);
    if parts > 1 {
        axes.push(Axis { var: part.var.clone(), extent: int(parts) });
    }
    let (tasks, binds) = nest::fuse(&axes, &p);
    let (y0_name, count_name) = (PrimExpr::from(&y0), PrimExpr::from(&count));
    let mut body = binds;
    body.push(Stmt::bind(y0.clone(), mul(PrimExpr::from(&block_axis), block_name.clone())));
    let lines = match block_name.as_int().zip(height.as_int()) {
        Some((rows, height)) if height % rows == 0 => int(rows),
        _ => min(block_name.clone(), sub(&height, &y0_name)),
    };
    let count_name = lines.as_int().map_or(count_name, int);
    body.push(Stmt::bind(count.clone(), lines));
    body.push(Stmt::alloc(&space.buffer));
    body.push(window.fill(cx, &space, &y0_name, &count_name)?);
    let of_block =
        Block { window: &window, part: &part, space: &space, y0: &y0_name, count: &count_name, most: &block_name };
    body.push(of_block.emit(cx)?);
    let extents = reduce.stage.spatial.iter().chain(&reduce.stage.reduce).map(|a| &a.extent);
    let work = floordiv(product(extents), int(4));
    let parallel = nest::parallel(&cx.machine, p, tasks, work, Stmt::seq(body));
    Ok(Stmt::seq([Stmt::bind(pitch, pitch_value), Stmt::bind(block, block_value), parallel]))
}

/// Rows a block such that all blocks are equal, where that takes no more than twice as many: then all share one kernel.
fn even(rows: &PrimExpr, height: &PrimExpr) -> PrimExpr {
    match rows.as_int().zip(height.as_int()) {
        Some((rows, height)) => int((rows / 2 + 1..=rows).rev().find(|r| height % r == 0).unwrap_or(rows)),
        None => rows.clone(),
    }
}

/// Into how many parts the channels are divided: equal ones, so that all share one kernel.
fn parts_of(channel: &Axis, stride: i64) -> i64 {
    let Some(channels) = channel.extent.as_int() else { return 1 };
    let least = LEAST_CHANNELS * stride.min(2);
    PARTS.into_iter().find(|parts| channels % parts == 0 && channels / parts >= least).unwrap_or(1)
}

/// The channels of one task.
struct Part<'a> {
    channel: &'a Axis,
    /// The number of the part, where there are several.
    var: Ref<Var>,
    first: PrimExpr,
    count: PrimExpr,
}

impl<'a> Part<'a> {
    fn of(channel: &'a Axis, parts: i64) -> Self {
        let var = Var::dim("part");
        match channel.extent.as_int() {
            Some(channels) if parts > 1 => {
                let count = channels / parts;
                Self { channel, first: mul(PrimExpr::from(&var), int(count)), count: int(count), var }
            }
            _ => Self { channel, first: int(0), count: channel.extent.clone(), var },
        }
    }
}

/// The output rows of one block.
struct Block<'a> {
    window: &'a Windowed,
    part: &'a Part<'a>,
    space: &'a Workspace,
    /// The first.
    y0: &'a PrimExpr,
    /// How many there are, and how many a block has at most.
    count: &'a PrimExpr,
    most: &'a PrimExpr,
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
    fn emit(&self, cx: &mut Cx) -> Result<Stmt, Refusal> {
        if self.goes_on() { self.in_long_rows(cx) } else { self.row_by_row(cx) }
    }

    /// Whether vectors go on from row to row: where rows fill vectors badly, or are not known, and where sums have enough terms
    /// to pay for their way through memory.
    fn goes_on(&self) -> bool {
        let inner = product(self.window.c.inner.iter().map(|a| &a.extent));
        let lanes = self.space.lanes;
        let ragged = |n: i64| 5 * n < 4 * ((n + lanes - 1) / lanes * lanes);
        self.window.y.is_some()
            && (inner.as_int().is_none_or(|terms| terms >= MANY_TERMS)
                || self.window.x.axis.extent.as_int().is_some_and(ragged))
    }

    /// Register tiles along each row, which are finished where they are computed.
    fn row_by_row(&self, cx: &mut Cx) -> Result<Stmt, Refusal> {
        let (x, lanes) = (&self.window.x.axis.extent, self.space.lanes);
        let width = x.as_int().map(|n| (n + lanes - 1) / lanes);
        let shape = register_tile::shape(&cx.machine, MOST_ROWS, self.part.count.as_int(), width);
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
    fn in_long_rows(&self, cx: &mut Cx) -> Result<Stmt, Refusal> {
        let lanes = self.space.lanes;
        let fitting = max(floordiv(int(SUMS / MOST_ROWS), &self.space.pitch), int(1));
        let (most, name) = (even(&min(self.most.clone(), fitting), self.count), Var::dim("lines"));
        let (lines, bind) = match most.as_int() {
            Some(n) => (int(n), None),
            None => (PrimExpr::from(&name), Some(Stmt::bind(name, most))),
        };
        let whole = self.count.as_int().zip(lines.as_int()).is_some_and(|(count, lines)| count % lines == 0);
        let vectors = self.extent(&lines).as_int().filter(|_| whole).map(|n| (n + lanes - 1) / lanes);
        let shape = register_tile::lean_shape(&cx.machine, MOST_ROWS, self.part.count.as_int(), vectors);
        let pitch = add(self.extent(&lines), int(shape.vectors * lanes));
        let dtype = self.window.c.reduce.stage.output.dtype;
        let sums = Sums { buffer: Buffer::new("sums", dtype, [mul(&pitch, int(shape.rows))]), pitch };
        let tiles = register_tile::rows(&self.part.first, &self.part.count, shape.rows, |rows| {
            self.groups(&lines, whole, |group| {
                let products = self.tiles(&self.extent(&group.count), shape.vectors, |tile| {
                    self.products(cx, &sums, group, rows, &tile)
                })?;
                Ok(Stmt::seq([products, self.finish(cx, &sums, group, rows)?]))
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

    /// Elements of so many output rows as one long row; behind the last one nothing follows.
    fn extent(&self, lines: &PrimExpr) -> PrimExpr {
        add(mul(sub(lines, int(1)), &self.space.pitch), &self.window.x.axis.extent)
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
    fn finish(&self, cx: &mut Cx, sums: &Sums, lines: &Lines, rows: &Rows) -> Result<Stmt, Refusal> {
        let (i, line) = (Var::dim("i"), Var::dim("line"));
        let at = self.at_row(&add(&lines.first, PrimExpr::from(&line)));
        let start = add(mul(&sums.pitch, PrimExpr::from(&i)), mul(&self.space.pitch, PrimExpr::from(&line)));
        let lanes = self.space.lanes;
        let row = nest::tiles(int(0), &self.window.x.axis.extent, lanes, 1, |tile| {
            let sum = load(&sums.buffer, [ramp(add(&start, &tile.base), int(1), lanes)]);
            self.register_tile(rows, &tile, &at).finish(cx, PrimExpr::from(&i), 0, sum)
        })?;
        Ok(Stmt::serial(i, int(rows.count), Stmt::serial(line, lines.count.clone(), row)))
    }

    /// What the axis across rows stands for in a row of the block.
    fn at_row(&self, line: &PrimExpr) -> VarMap {
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
            Ok(window.vector(space, &of, (line, &below), offset, &tile.at(j, space.lanes)))
        };
        Operands { loops, taps, row: Box::new(row), column: Box::new(column) }
    }

    fn register_tile<'a>(&'a self, rows: &'a Rows, tile: &'a Tile, at: &'a VarMap) -> RegisterTile<'a> {
        RegisterTile {
            reduce: &self.window.c.reduce,
            row_axis: Some(&self.part.channel.var),
            column_axis: &self.window.x.axis.var,
            lanes: self.space.lanes,
            rows,
            tile,
            at,
            sums: None,
        }
    }
}
