//! Depthwise convolution: every output channel slides its own kernel over its own image.
//!
//! Matches windowed contractions without an axis of the weights alone.
//!
//! ```text
//! parallel p over (n, c, blocks of output rows):
//!     S = workspace of the block's image rows              # zero borders, phases; see `window`
//!     for tile of 4 output rows, for tile of 2 vectors:    # 8 accumulators
//!         for rx:                                          # a loop where the stride is 1, else unrolled by phase
//!             w[0 .. kh] = W[c, .., rx]
//!             for each of the tile's image rows:           # one load serves all output rows under it
//!                 acc[i][..] += w[ry] * S[row][x + rx ..]  where row == i * stride + ry
//! ```
//!
//! Rows whose length is not known and turns out to be shorter than a vector have vectors along channels (`channel_lanes`).
//!
//! Without reuse across output rows each multiply-add would load its image vector; four rows bring loads down to about half
//! of the multiply-adds. Parameters: rows as registers allow beside `kh` weights; a block of image rows that fits the
//! first-level cache. Roof: two multiply-adds a cycle, then loads.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{PrimExpr, VarMap, add, constant, floordiv, int, load, min, mul, ramp, sub, substitute};
use relaxide_ir::{Buffer, Var};

use super::super::affine::product;
use super::super::inline::freshen_lets;
use super::super::lanes::{multiply_add, splat};
use super::super::nest::Tile;
use super::super::parameters::{Choices, Domain, Guess};
use super::super::{Axis, Cx, Machine, Program, Reduce, Refusal, Work, group, inline, nest};
use super::channel_lanes::{self, ChannelLanes};
use super::contraction::Contraction;
use super::register_tile::{self, RegisterTile, Rows, Shape};
use super::rule::{self, Rule};
use super::window::{Windowed, Workspace, least_rows, rows_per_block};
use crate::{PrimFunc, Stmt};

/// Pixels of a row of an unknown length below which vectors lie along channels.
const SHORT_ROW: i64 = 32;

/// Output rows of a block at least, so that the halo is a small part of it.
const LEAST_ROWS: i64 = 8;

/// The rule.
pub struct Depthwise;

/// A depthwise convolution.
pub struct Found<'w> {
    reduce: &'w Reduce,
    window: Windowed,
}

/// What the rule decides.
#[derive(Clone, Copy)]
pub struct Decided {
    /// Lanes of a vector.
    lanes: i64,
    /// Output rows and vectors of a tile.
    tile: Shape,
    /// Bytes of the image rows of a block.
    image_bytes: i64,
    /// Output rows of a block at least.
    least_rows: i64,
    /// Rows of fewer pixels than this have vectors along channels, and how.
    short_rows: Option<(i64, channel_lanes::Shape)>,
}

impl Rule for Depthwise {
    type Work = Reduce;
    type Found<'w> = Found<'w>;
    type Decided = Decided;

    fn find<'w>(_: &Machine, reduce: &'w Reduce) -> Result<Found<'w>, Refusal> {
        let contraction = Contraction::of(reduce)?;
        if !contraction.rows.is_empty() {
            return Err(Refusal::new("an axis belongs to the weights alone"));
        }
        Ok(Found { reduce, window: Windowed::of(contraction)? })
    }

    fn decide(machine: &Machine, found: &Found<'_>, choices: &mut Choices<'_>) -> Result<Decided, Refusal> {
        let lanes = rule::lanes(choices, machine.lanes(found.reduce.stage.output.dtype));
        let guess = tile_shape(machine, &found.window);
        let rows = choices.choose(Guess {
            name: "rows",
            value: guess.rows,
            domain: Domain::range(1, if found.window.y.is_some() { 8 } else { 1 }),
            reason: "so many rows of accumulators leave registers for a column of weights and a row of the image",
            limit: "accumulators of more rows have no registers; an output that is one row has one",
        });
        let vectors = choices.choose(Guess {
            name: "vectors",
            value: guess.vectors,
            domain: Domain::range(1, 4),
            reason: "with the rows they are enough accumulators to cover the latency of multiply-add",
            limit: "accumulators of more have no registers",
        });
        let image_bytes = choices.choose(Guess {
            name: "image_bytes",
            value: machine.l1_block(),
            domain: Domain::powers_of_two(4 << 10, 1 << 20),
            reason: "the image rows of a block stay in the first-level cache",
            limit: "less holds no rows of usual images, and more leaves all caches of a core",
        });
        let least_rows = least_rows(choices, LEAST_ROWS);
        let short_rows = short_rows(machine, &found.window, lanes, choices);
        Ok(Decided { lanes, tile: Shape { rows, vectors }, image_bytes, least_rows, short_rows })
    }

    fn emit(cx: &mut Cx, found: &Found<'_>, decided: &Decided) -> Result<Stmt, Refusal> {
        let rows = emit(cx, found, decided)?;
        let Some((pixels, shape)) = decided.short_rows else { return Ok(rows) };
        let channels = ChannelLanes::of(&found.window)?;
        Ok(Stmt::if_else(channels.is_short(decided.lanes, pixels), channels.emit(cx, shape)?, rows))
    }
}

/// Whether a kernel ends in a depthwise convolution, whose workspace holds each element of its image once: the image may be what is
/// computed as it is copied.
pub fn copies_image(func: &PrimFunc) -> bool {
    let mut program = Program::read(func);
    inline::run(&mut program);
    let work = group::plan(&program);
    let [Work::Reduce(reduce)] = work.as_slice() else { return false };
    let Ok(contraction) = Contraction::of(reduce) else { return false };
    contraction.rows.is_empty() && Windowed::of(contraction).is_ok_and(|window| window.channels.is_empty())
}

/// Which rows have vectors along channels, where their length is not known: code for both is there, and the length chooses.
fn short_rows(
    machine: &Machine,
    window: &Windowed,
    lanes: i64,
    choices: &mut Choices<'_>,
) -> Option<(i64, channel_lanes::Shape)> {
    if window.x.axis.extent.as_int().is_some() || ChannelLanes::of(window).is_err() {
        return None;
    }
    let pixels = choices.choose(Guess {
        name: "short_rows",
        value: SHORT_ROW.min(4 * lanes),
        domain: Domain::list([0, lanes / 2, lanes, 2 * lanes, 4 * lanes]),
        reason: "shorter rows do not fill vectors, or few, and strides cost nothing along channels",
        limit: "rows of fewer pixels have vectors along channels; of fewer than none are none",
    });
    (pixels > 0).then(|| (pixels, channel_lanes::Shape::decide(machine, window, lanes, choices)))
}

/// The nest of a depthwise convolution.
fn emit(cx: &mut Cx, Found { reduce, window }: &Found<'_>, decided: &Decided) -> Result<Stmt, Refusal> {
    let (dtype, Decided { lanes, tile, image_bytes, least_rows, .. }) = (reduce.stage.output.dtype, *decided);
    let (pitch, block) = (Var::dim("pitch"), Var::dim("rows"));
    let pitch_value = window.pitch_in_vectors(lanes);
    let block_value = rows_per_block(window, &PrimExpr::from(&pitch), image_bytes, least_rows, |height| height.clone());
    let space = Workspace::new(window, dtype, lanes, 0, &PrimExpr::from(&block), PrimExpr::from(&pitch));
    let (p, block_axis, y0, count) = (Var::dim("p"), Var::dim("block"), Var::dim("y0"), Var::dim("count"));
    let height = window.y.as_ref().map_or(int(1), |y| y.axis.extent.clone());
    let rows = PrimExpr::from(&block);
    let blocks = floordiv(add(&height, sub(&rows, int(1))), &rows);
    let mut axes = window.outer.clone();
    axes.push(Axis { var: block_axis.clone(), extent: blocks });
    let (tasks, binds) = nest::fuse(&axes, &p);
    let (y0_name, count_name) = (PrimExpr::from(&y0), PrimExpr::from(&count));
    let mut body = binds;
    body.push(Stmt::bind(y0.clone(), mul(PrimExpr::from(&block_axis), &rows)));
    body.push(Stmt::bind(count.clone(), min(rows, sub(&height, &y0_name))));
    body.push(Stmt::alloc(&space.buffer));
    body.push(window.fill(cx, &space, &y0_name, &count_name, nest::serial)?);
    body.push(block_of(cx, window, &space, tile, &y0_name, &count_name)?);
    let extents = reduce.stage.spatial.iter().chain(&reduce.stage.reduce).map(|a| &a.extent);
    let work = floordiv(product(extents), int(4));
    let parallel = nest::parallel(&cx.machine, p, tasks, work, Stmt::seq(body));
    Ok(Stmt::seq([Stmt::bind(pitch, pitch_value), Stmt::bind(block, block_value), parallel]))
}

/// Output rows and vectors of a tile: accumulators, one column of weights, one row of vectors.
fn tile_shape(machine: &Machine, window: &Windowed) -> Shape {
    let Some(y) = &window.y else { return Shape { rows: 1, vectors: 4 } };
    let (registers, weights) = (machine.vector_registers, y.offsets().count() as i64);
    let vectors = if registers >= 32 { 3 } else { 2 };
    let fitting = (registers - 1 - vectors - weights) / vectors;
    Shape { rows: fitting.clamp(2, 4), vectors }
}

/// The output rows of one block.
fn block_of(
    cx: &mut Cx,
    window: &Windowed,
    space: &Workspace,
    Shape { rows, vectors }: Shape,
    y0: &PrimExpr,
    count: &PrimExpr,
) -> Result<Stmt, Refusal> {
    register_tile::rows(&int(0), count, rows, |rows| {
        nest::overlapping_tiles(&window.x.axis.extent, space.lanes, vectors, |tile| {
            kernel(cx, window, space, &Lines { y0, rows }, &tile)
        })
    })
}

/// Which output rows a tile has.
struct Lines<'a> {
    y0: &'a PrimExpr,
    rows: &'a Rows,
}

fn kernel(cx: &mut Cx, window: &Windowed, space: &Workspace, lines: &Lines<'_>, tile: &Tile) -> Result<Stmt, Refusal> {
    let reduce = &window.c.reduce;
    let dtype = reduce.stage.output.dtype;
    let lanes = space.lanes;
    let acc = Buffer::scoped("acc", dtype, [int(lines.rows.count * tile.vectors * lanes)], "local");
    let at = |i: i64, j: i64| ramp(int((i * tile.vectors + j) * lanes), int(1), lanes);
    let cells = || (0..lines.rows.count).flat_map(|i| (0..tile.vectors).map(move |j| (i, j)));
    let fresh: Vec<Axis> =
        window.channels.iter().map(|a| Axis { var: Var::dim(a.var.name.clone()), ..a.clone() }).collect();
    let channels: VarMap =
        window.channels.iter().zip(&fresh).map(|(a, f)| (a.var.clone(), PrimExpr::from(&f.var))).collect();

    let sums = Sums { acc: &acc, channels: &channels };
    let body = match &window.x.tap {
        Some(tap) if window.x.stride == 1 => {
            let rx = Var::dim(tap.var.name.clone());
            let steps = column_of_taps(cx, window, space, lines, tile, &sums, Some(&PrimExpr::from(&rx)));
            Stmt::serial(rx, tap.extent.clone(), Stmt::seq(steps))
        }
        Some(tap) => {
            let taps = (0..tap.extent.as_int().unwrap_or(0)).map(int);
            Stmt::seq(
                taps.flat_map(|rx| column_of_taps(cx, window, space, lines, tile, &sums, Some(&rx)))
                    .collect::<Vec<_>>(),
            )
        }
        None => Stmt::seq(column_of_taps(cx, window, space, lines, tile, &sums, None)),
    };
    let zero = splat(constant(dtype, 0.0), lanes);
    let mut list = vec![Stmt::alloc(&acc)];
    list.extend(cells().map(|(i, j)| Stmt::store(&acc, [at(i, j)], zero.clone())));
    list.push(nest::serial(&fresh, body));
    let none = VarMap::new();
    let rows = Rows { first: add(lines.y0, &lines.rows.first), ..lines.rows.clone() };
    let tile = RegisterTile {
        reduce,
        row_axis: window.y.as_ref().map(|y| &y.axis.var),
        column_axis: &window.x.axis.var,
        lanes,
        rows: &rows,
        tile,
        at: &none,
        sums: None,
        by_row: false,
        beside: None,
    };
    list.extend(tile.emit_epilogues(cx, &acc)?);
    Ok(Stmt::seq(list))
}

/// Where the sums of a tile are, and of which channels they are.
struct Sums<'a> {
    acc: &'a Ref<Buffer>,
    channels: &'a VarMap,
}

/// All taps of one column of the kernel: its weights once, each image row once.
fn column_of_taps(
    cx: &Cx,
    window: &Windowed,
    space: &Workspace,
    lines: &Lines<'_>,
    tile: &Tile,
    sums: &Sums<'_>,
    rx: Option<&PrimExpr>,
) -> Vec<Stmt> {
    let Sums { acc, channels } = *sums;
    let dtype = acc.dtype.with_lanes(space.lanes as u16);
    let at = |i: i64, j: i64| ramp(int((i * tile.vectors + j) * space.lanes), int(1), space.lanes);
    let (stride, offsets) = match &window.y {
        Some(y) => (y.stride, y.offsets().collect::<Vec<_>>()),
        None => (1, vec![0]),
    };
    let mut map = channels.clone();
    if let (Some(tap), Some(rx)) = (&window.x.tap, rx) {
        map.insert(tap.var.clone(), rx.clone());
    }
    let channel = substitute(&window.channel_index(), channels);
    let mut steps = Vec::new();
    let mut weights = Vec::new();
    for ry in 0..offsets.len() {
        let mut map = map.clone();
        if let Some(tap) = window.y.as_ref().and_then(|y| y.tap.as_ref()) {
            map.insert(tap.var.clone(), int(ry as i64));
        }
        let weight = Var::prim(format!("w{ry}"), dtype);
        steps.push(Stmt::bind(weight.clone(), splat(freshen_lets(&substitute(&window.c.row, &map)), space.lanes)));
        weights.push(weight);
    }
    let dilated_extent = offsets.last().copied().unwrap_or(0) + 1;
    for line in 0..(lines.rows.count - 1) * stride + dilated_extent {
        let users: Vec<(i64, usize)> = (0..lines.rows.count)
            .filter_map(|i| Some((i, offsets.iter().position(|o| *o == line - i * stride)?)))
            .collect();
        if users.is_empty() {
            continue;
        }
        let image_row = (&lines.rows.first, &int(line));
        for j in 0..tile.vectors {
            let pixels = Var::prim(format!("p{j}"), dtype);
            let x = tile.at(j, space.lanes);
            steps.push(Stmt::bind(pixels.clone(), pixel_vector(window, space, &channel, image_row, &x, rx)));
            for (i, ry) in &users {
                let index = at(*i, j);
                let sum = multiply_add(
                    cx.machine.fma,
                    PrimExpr::from(&weights[*ry]),
                    PrimExpr::from(&pixels),
                    load(acc, [index.clone()]),
                );
                steps.push(Stmt::store(acc, [index], sum));
            }
        }
    }
    steps
}

/// The image's vector under one tap of the row, at output column `x`.
fn pixel_vector(
    window: &Windowed,
    space: &Workspace,
    channel: &PrimExpr,
    image_row: (&PrimExpr, &PrimExpr),
    x: &PrimExpr,
    rx: Option<&PrimExpr>,
) -> PrimExpr {
    let tap = mul(rx.cloned().unwrap_or_else(|| int(0)), int(window.x.dilation));
    match tap.as_int() {
        Some(offset) => window.vector(space, channel, image_row.0, image_row.1, offset, x),
        // A tap that is a loop counter: the stride is one, so there is one phase.
        None => window.load(space, channel, image_row.0, image_row.1, 0, add(x, tap)),
    }
}
