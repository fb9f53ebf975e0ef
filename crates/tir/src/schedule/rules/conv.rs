//! Direct convolution of images in planes (NCHW), any stride, dilation, padding and rank.
//!
//! Matches windowed contractions whose output channels are rows of the register tile (all but depthwise).
//!
//! ```text
//! parallel p over (n, blocks of output rows, parts of the channels):
//!     S = workspace of the block's image rows           # zero borders, phases; see `window`
//!     for tile of 6 channels:                           # its weights stay in the first-level cache
//!         for y in the block, for tile of 2 vectors:
//!             for c, ry: for rx (unrolled):  acc[6][2] += W[m.., c, ry, rx] * S[c][y*s + ry][phase][x + rx/s ..]
//!             C[n, m.., y, x..] = finish(acc)
//! ```
//!
//! Weights are read in their natural order: each of the six rows is one stream over `c, ry, rx`. Parameters: rows a block
//! such that the workspace fits half of the second-level cache, at least four. Channels are divided where rows give too
//! few tasks (signals of one dimension) or where every further block of rows would read weights that no cache keeps; each
//! part fills a workspace of its own, which costs little beside its products. Roof: two multiply-adds a cycle.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::prim::{PrimExpr, VarMap, add, floordiv, int, min, mul, sub, substitute};

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
/// Channels below which a part does not pay for its workspace.
const LEAST_CHANNELS: i64 = 16;

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
    let pitch_value = window.pitch(lanes);
    let block = Var::dim("rows");
    let weights = product(reduce.stage.reduce.iter().map(|a| &a.extent).chain([&channel.extent])).as_int();
    let heavy = weights.is_some_and(|n| n * i64::from(dtype.bits / 8) > cx.machine.l2);
    let parts = if heavy || window.y.is_none() { parts_of(&channel) } else { 1 };
    let blocks_to_share = |height: &PrimExpr| ceil_div(height, if parts > 1 { 1 } else { BLOCKS });
    let budget = cx.machine.l2 / 2;
    let block_value = rows_per_block(&window, &PrimExpr::from(&pitch), budget, LEAST_ROWS, blocks_to_share);
    let known = |e: &PrimExpr, var| if e.as_int().is_some() { e.clone() } else { PrimExpr::from(var) };
    let (pitch_name, block_name) = (known(&pitch_value, &pitch), known(&block_value, &block));

    let image_rows = window.image_rows(&block_name);
    let space = Workspace::new(&window, dtype, lanes, image_rows, pitch_name);
    let (p, block_axis, y0, count) = (Var::dim("p"), Var::dim("block"), Var::dim("y0"), Var::dim("count"));
    let height = window.y.as_ref().map_or(int(1), |y| y.axis.extent.clone());
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
    body.push(Stmt::bind(count.clone(), min(block_name, sub(&height, &y0_name))));
    body.push(Stmt::alloc(&space.buffer));
    body.push(window.fill(cx, &space, &y0_name, &count_name)?);
    body.push(block_of(cx, &window, &part, &space, &y0_name, &count_name)?);
    let extents = reduce.stage.spatial.iter().chain(&reduce.stage.reduce).map(|a| &a.extent);
    let work = floordiv(product(extents), int(4));
    let parallel = nest::parallel(&cx.machine, p, tasks, work, Stmt::seq(body));
    Ok(Stmt::seq([Stmt::bind(pitch, pitch_value), Stmt::bind(block, block_value), parallel]))
}

/// Into how many parts the channels are divided: equal ones, so that all share one kernel.
fn parts_of(channel: &Axis) -> i64 {
    let Some(channels) = channel.extent.as_int() else { return 1 };
    PARTS.into_iter().find(|parts| channels % parts == 0 && channels / parts >= LEAST_CHANNELS).unwrap_or(1)
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
fn block_of(
    cx: &mut Cx,
    window: &Windowed,
    part: &Part<'_>,
    space: &Workspace,
    y0: &PrimExpr,
    count: &PrimExpr,
) -> Result<Stmt, Refusal> {
    let lanes = space.lanes;
    let width = window.x.axis.extent.as_int().map(|n| (n + lanes - 1) / lanes);
    let shape = register_tile::shape(&cx.machine, MOST_ROWS, part.count.as_int(), width);
    register_tile::rows(&part.first, &part.count, shape.rows, |rows| {
        let line = Var::dim("line");
        let place = Place { channel: part.channel, rows, y0, line: PrimExpr::from(&line) };
        let tiles = nest::tiles(int(0), &window.x.axis.extent, lanes, shape.vectors, |tile| {
            kernel(cx, window, space, &place, &tile)
        })?;
        Ok(Stmt::serial(line, count.clone(), tiles))
    })
}

/// Which channels and which row a register tile belongs to.
struct Place<'a> {
    channel: &'a Axis,
    rows: &'a Rows,
    y0: &'a PrimExpr,
    line: PrimExpr,
}

fn kernel(cx: &mut Cx, window: &Windowed, space: &Workspace, place: &Place<'_>, tile: &Tile) -> Result<Stmt, Refusal> {
    let mut at = VarMap::new();
    let mut first_row = int(0);
    let mut loops = window.channels.clone();
    if let Some(y) = &window.y {
        at.insert(y.axis.var.clone(), add(place.y0, &place.line));
        first_row = mul(&place.line, int(y.stride));
        loops.extend(y.tap.clone());
    }
    let taps: Vec<VarMap> = match &window.x.tap {
        Some(tap) => (0..tap.extent.as_int().unwrap_or(0)).map(|r| [(tap.var.clone(), int(r))].into()).collect(),
        None => vec![VarMap::new()],
    };
    let row = |i: i64, map: &VarMap| {
        let mut map = map.clone();
        map.insert(place.channel.var.clone(), place.rows.read(i));
        freshen_lets(&substitute(&substitute(&window.c.row, &map), &at))
    };
    let mut column = |_: &mut Cx, j: i64, map: &VarMap| {
        let tap = |w: &Window| {
            w.tap.as_ref().map_or(int(0), |t| mul(substitute(&PrimExpr::from(&t.var), map), int(w.dilation)))
        };
        let image_row = window.y.as_ref().map_or(int(0), |y| add(&first_row, tap(y)));
        let Some(offset) = tap(&window.x).as_int() else {
            return Err(Refusal::new("a tap of the row is not unrolled"));
        };
        let channel = substitute(&window.channel_index(), map);
        Ok(window.vector(space, &channel, &image_row, offset, &tile.at(j, space.lanes)))
    };
    let register_tile = RegisterTile {
        reduce: &window.c.reduce,
        row_axis: Some(&place.channel.var),
        column_axis: &window.x.axis.var,
        lanes: space.lanes,
        rows: place.rows,
        tile,
        at: &at,
        sums: None,
    };
    register_tile.emit(cx, &loops, &taps, &row, &mut column)
}
