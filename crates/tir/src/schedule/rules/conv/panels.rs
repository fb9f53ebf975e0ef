//! The products of one block of a convolution whose weights lie in panels of channels: vectors along channels.
//!
//! ```text
//! for panel of 64 channels:
//!     sums[pixel][64] = 0
//!     for some channels of the image:                           # their weights stay in the first-level cache
//!         for tile of 6 pixels of a row:                        # so that all tiles of a row have about as many
//!             for c, (taps, unrolled):  acc[6][4] += S[c][.., pixel] * W[panel, c, ry, rx, 0 .. 64]
//!                                       asks for the tile's share of the weights that come next
//!             sums[tile] += acc
//!     for 16 channels:
//!         transposed[16][pixel] = sums[pixel][16]                   # squares of vectors, transposed in registers
//!         C[n, channel, y, x..] = epilogue(transposed[channel][.. x ..])
//! ```
//!
//! Vectors are full whatever the length of the rows is, begin where lines of the cache do, and come from one place that is read from its
//! beginning to its end. Rows of the image are read one element at a time, so that a stride costs nothing; a window of one pixel reads the image
//! where it lies, or from a copy tile by tile (`tiles`). Sums of few terms do not pay for their way through memory: who lays weights out decides that (`PackWeights`).

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{
    BufferLoad, PrimExpr, VarMap, add, constant, floordiv, int, load, max, min, mul, ramp, sub, substitute,
};
use relaxide_ir::{Buffer, Var};

use super::block::Block;
use super::chunks::{Chunk, RowsOfBlock};
use super::tiles::Tiles;
use crate::Stmt;
use crate::schedule::affine::{ceil_div, coefficient, flat_index, loads, product, same, uses};
use crate::schedule::lanes::{Lanes, splat};
use crate::schedule::machine::elements_in_line;
use crate::schedule::nest::{self, Tile};
use crate::schedule::parameters::{Choices, Domain, Guess};
use crate::schedule::prefetch::request;
use crate::schedule::quotients::Quotients;
use crate::schedule::rules::register_tile::{FULL_REGISTERS, RegisterTile, Rows, apart_if_long};
use crate::schedule::rules::row::{choice, conjuncts, interval};
use crate::schedule::rules::window::{Window, Windowed};
use crate::schedule::{Axis, Cx, Machine, Refusal, square};

/// Taps that are unrolled at most, together; of more, those of a row are.
const MOST_TAPS: i64 = 16;
/// Vectors of a register tile at most.
const MOST_VECTORS: i64 = 4;

/// How many channels of the image ahead pixels are asked for: a line that another core has written takes as long.
const CHANNELS_AHEAD: i64 = 24;

/// What is decided.
pub struct Decided {
    /// Channels of a panel.
    pub(super) width: i64,
    /// Vectors of a register tile.
    vectors: i64,
    /// Pixels of a register tile at most.
    pub(super) pixels: i64,
    /// Channels of the image whose weights are used for all pixels before the next ones.
    depth: i64,
    /// How the image is read.
    pub(super) image: ImageForm,
    /// Whether the weights that come next are asked for.
    asks: bool,
}

/// How the image is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ImageForm {
    /// Where it lies.
    InPlace,
    /// From a copy of a block's rows.
    Copied,
    /// From a copy of a chunk, tile by tile.
    InTiles,
}

/// Registers that weights and pixels of a window's next tap are loaded into before those of the last one are done with.
const LOADED_AHEAD: i64 = 6;

/// Panels that share a chunk's tiles at least: fewer do not pay for the copy. Tiles in many registers have more to do for each pixel that they
/// read, and wait less for it.
const LEAST_PANELS: i64 = 4;

/// Weights in panels: the operand over the number of a panel and a channel of it.
struct Weights {
    operand: PrimExpr,
    panel: Ref<Var>,
    channel: Ref<Var>,
}

impl Weights {
    /// Those of a convolution, and how many channels a panel has.
    fn of(window: &Windowed, channel: &Axis) -> Option<(Weights, i64)> {
        let quotients = Quotients::of(&window.c.row, &channel.var, "panel", true)?;
        let width = quotients.by()?;
        let (operand, panel, channel) = quotients.parts(&window.c.row)?;
        let is_contiguous = match loads(&operand).as_slice() {
            [one] => coefficient(&flat_index(&one.buffer, &one.indices), &channel) == Some(1),
            _ => false,
        };
        is_contiguous.then_some((Weights { operand, panel, channel }, width))
    }
}

/// Channels of a panel, where weights lie in panels.
pub(super) fn width(window: &Windowed, channel: &Axis) -> Option<i64> {
    Weights::of(window, channel).map(|(_, width)| width)
}

/// Whether vectors lie along channels, and how; `is_heavy` says that the second-level cache does not keep the weights.
pub(super) fn decide(
    machine: &Machine,
    channel: &Axis,
    window: &Windowed,
    is_heavy: bool,
    choices: &mut Choices<'_>,
) -> Option<Decided> {
    let dtype = window.c.reduce.stage.output.dtype;
    let lanes = machine.lanes(dtype);
    let (_, width) = Weights::of(window, channel)?;
    if window.channels.is_empty() || width % lanes != 0 {
        return None;
    }
    let is_asked = choices.choose(Guess {
        name: "panels",
        value: 1,
        domain: Domain::flag(),
        reason: "weights lie in panels of channels",
        limit: "vectors lie along rows (0), or along the channels of a panel (1)",
    });
    if is_asked == 0 {
        return None;
    }
    let fitting = |vectors: i64| ((machine.vector_registers - 1 - vectors) / vectors).max(1);
    // Multiply-adds for each thousand loads, of a row of weights and an element of each pixel.
    let rate = |vectors: &i64| vectors * fitting(*vectors) * 1000 / (vectors + fitting(*vectors));
    let divisors = (1..=MOST_VECTORS).filter(|vectors| width / lanes % vectors == 0);
    let vectors = divisors.max_by_key(rate).unwrap_or(1);
    let fitting = fitting(vectors);
    let taps = product(window.taps().map(|tap| &tap.extent)).as_int().unwrap_or(1);
    let leaves_room = taps > 1 && machine.vector_registers >= FULL_REGISTERS;
    let pixels = choices.choose(Guess {
        name: "pixels",
        value: if leaves_room { (fitting - LOADED_AHEAD / vectors).max(1) } else { fitting },
        domain: Domain::range(1, fitting),
        reason: match leaves_room {
            true => {
                "so many sums of a pixel's channels fit the registers beside rows of weights for two taps of the window"
            }
            false => "so many sums of a pixel's channels fit the registers beside a row of weights",
        },
        limit: "a tile has a pixel, and no more than registers have room for",
    });
    let image = image_form(machine, channel, window, width, choices);
    // Of an image that is read where it lies, each channel has a line of the cache.
    let line = if image == ImageForm::InPlace { elements_in_line(dtype) } else { 0 };
    let bytes = (taps * width + line) * i64::from(dtype.bits / 8);
    let fitting = (machine.l1_block() * 3 / 4 / bytes.max(1)).max(1);
    let depth = choices.choose(Guess {
        name: "depth",
        value: fitting,
        domain: Domain::range(1, 4096),
        reason: "the weights of so many channels of the image stay in the first-level cache beside pixels and sums",
        limit: "less than a channel is no sum, and weights of more leave the caches",
    });
    let pays = machine.vector_registers >= FULL_REGISTERS || is_heavy;
    let asks = choices.choose(Guess {
        name: "ahead",
        value: i64::from(pays),
        domain: Domain::flag(),
        reason: match pays {
            true => "weights come from memory when a network runs, which takes as long as a few tiles",
            false => {
                "the second-level cache keeps the weights, and tiles in few registers leave no instructions free to ask for those that \
                 come next"
            }
        },
        limit: "the weights that come next are asked for with those at hand (1), or come when they are read (0)",
    });
    Some(Decided { width, vectors, pixels, depth, image, asks: asks == 1 })
}

/// Asks how the image is read.
fn image_form(
    machine: &Machine,
    channel: &Axis,
    window: &Windowed,
    width: i64,
    choices: &mut Choices<'_>,
) -> ImageForm {
    let is_plain = matches!(window.c.column, PrimExpr::Load(_));
    let has_tiles = Tiles::can_be(window);
    let panels = channel.extent.as_int().map_or(0, |filters| (filters + width - 1) / width);
    let pay = panels >= LEAST_PANELS && machine.vector_registers < FULL_REGISTERS;
    let (value, reason) = match () {
        () if has_tiles && pay => (2, "a tile's pixels lie side by side for all panels that read them"),
        () if window.count_taps() > 1 || !is_plain => {
            (1, "windows read each pixel several times, or it has to be computed first")
        }
        () => (0, "each pixel is read once for each panel"),
    };
    let forms = [(0, is_plain), (1, true), (2, has_tiles)];
    let chosen = choices.choose(Guess {
        name: "copied",
        value,
        domain: Domain::list(forms.into_iter().filter(|(_, can)| *can).map(|(form, _)| form)),
        reason,
        limit: "pixels are read where they are (0), if they are elements of memory, from a copy (1), or from one tile by tile (2)",
    });
    match chosen {
        0 => ImageForm::InPlace,
        1 => ImageForm::Copied,
        _ => ImageForm::InTiles,
    }
}

/// The nest of a block.
pub(super) fn emit(cx: &mut Cx, block: &Block<'_>, decided: &Decided) -> Result<Stmt, Refusal> {
    let (window, part) = (block.window, block.part);
    let Some(((weights, _), depth)) = Weights::of(window, part.channel).zip(window.channels.first()) else {
        return Err(Refusal::new("weights do not lie in panels"));
    };
    let (mut list, chunk) =
        Chunk::of(window, RowsOfBlock { count: block.count, most: block.most }, decided.pixels, block.chunk);
    let width = decided.width;
    let sums = Buffer::new("sums", window.c.reduce.stage.output.dtype, [mul(chunk.most(), int(width))]);
    let tiles = (decided.image == ImageForm::InTiles).then(|| Tiles::of(window, depth, &chunk));
    if let Some(tiles) = &tiles {
        list.extend([Stmt::alloc(&tiles.buffer), tiles.fill(cx, block, depth, &chunk, decided.pixels)?]);
    }
    let panels = Panels { block, decided, weights, depth, chunk, tiles, sums: sums.clone(), width };
    let panel = Var::dim("panel");
    let nest = panels.emit(cx, &PrimExpr::from(&panel))?;
    list.push(Stmt::alloc(&sums));
    list.push(Stmt::serial(panel, ceil_div(&part.count, width), nest));
    Ok(Stmt::seq(list))
}

/// The panels of a block.
struct Panels<'a> {
    block: &'a Block<'a>,
    decided: &'a Decided,
    weights: Weights,
    /// The axis of the image's channels that is divided.
    depth: &'a Axis,
    /// The pixels.
    chunk: Chunk,
    /// Them tile by tile, if they are copied so.
    tiles: Option<Tiles>,
    /// The sums, pixel by pixel.
    sums: Ref<Buffer>,
    width: i64,
}

/// What a step over the image's channels asks for.
type Asked = Box<dyn Fn(&VarMap) -> Stmt>;

/// Some of the image's channels.
struct Depth {
    first: PrimExpr,
    count: PrimExpr,
    /// Whether they are the only ones.
    is_all: bool,
}

impl Panels<'_> {
    /// One panel of the block's part.
    fn emit(&self, cx: &mut Cx, panel: &PrimExpr) -> Result<Stmt, Refusal> {
        let (part, most, extent) = (self.block.part, self.decided.depth, &self.depth.extent);
        let number = add(floordiv(&part.first, int(self.width)), panel);
        let first = add(&part.first, mul(panel, int(self.width)));
        let at = Var::dim("depth");
        let (loops, zero) = match extent.as_int() {
            Some(n) if n <= most => {
                let depth = Depth { first: int(0), count: extent.clone(), is_all: true };
                (self.pixels(cx, &number, &depth)?, Stmt::nop())
            }
            _ => {
                let (blocks, most) = match extent.as_int() {
                    Some(n) => {
                        let blocks = (n + most - 1) / most;
                        (int(blocks), int((n + blocks - 1) / blocks))
                    }
                    None => (floordiv(add(extent, int(most - 1)), int(most)), int(most)),
                };
                let first = mul(PrimExpr::from(&at), &most);
                let divides = extent.as_int().zip(most.as_int()).is_some_and(|(n, most)| n % most == 0);
                let (bind, count) = match divides {
                    true => (Stmt::nop(), most),
                    false => {
                        let count = Var::dim("terms");
                        (Stmt::bind(count.clone(), min(most, sub(extent, &first))), PrimExpr::from(&count))
                    }
                };
                let body = self.pixels(cx, &number, &Depth { first, count, is_all: false })?;
                (Stmt::serial(at, blocks, Stmt::seq([bind, body])), self.zero()?)
            }
        };
        Ok(Stmt::seq([zero, loops, self.emit_epilogue(cx, &first)?]))
    }

    /// The sums begin at zero.
    fn zero(&self) -> Result<Stmt, Refusal> {
        let (lanes, dtype) = (self.block.space.lanes, self.sums.dtype);
        let elements = mul(self.chunk.count(), int(self.width));
        nest::tiles(int(0), &elements, lanes, MOST_VECTORS, |tile| {
            let zero = splat(relaxide_ir::prim::constant(dtype, 0.0), lanes);
            let places = (0..tile.vectors).map(|j| ramp(tile.at(j, lanes), int(1), lanes));
            Ok(Stmt::seq(places.map(|place| Stmt::store(&self.sums, [place], zero.clone()))))
        })
    }

    /// All pixels, with some of the image's channels.
    fn pixels(&self, cx: &mut Cx, panel: &PrimExpr, depth: &Depth) -> Result<Stmt, Refusal> {
        let (lanes, vectors) = (self.block.space.lanes, self.decided.vectors);
        let (line, slice) = (Var::dim("line"), Var::dim("slice"));
        let base = mul(PrimExpr::from(&slice), int(lanes * vectors));
        let tile = |pixels: &Rows| self.tile(cx, panel, depth, &PrimExpr::from(&line), pixels, &base);
        let row = self.chunk.row(self.decided.pixels, tile, &self.block.window.x.axis.extent)?;
        let lines = Stmt::serial(line, self.chunk.lines.clone(), row);
        let slices = self.width / (lanes * vectors);
        Ok(match slices {
            1 => Stmt::seq([Stmt::bind(slice, int(0)), lines]),
            _ => Stmt::serial(slice, int(slices), lines),
        })
    }

    /// A register tile: some pixels of a row, some vectors of a panel from `base` on.
    fn tile(
        &self,
        cx: &mut Cx,
        panel: &PrimExpr,
        depth: &Depth,
        line: &PrimExpr,
        pixels: &Rows,
        base: &PrimExpr,
    ) -> Result<Stmt, Refusal> {
        let (window, space) = (self.block.window, self.block.space);
        let (lanes, below_first) = (space.lanes, add(&self.chunk.first_line, line));
        let in_image = self.rows_in_image(&below_first);
        let (loops, taps) = self.terms(depth, in_image.as_ref());
        let moved = |map: &VarMap| {
            let mut map = map.clone();
            if let Some(c) = map.get_mut(&self.depth.var) {
                *c = add(&depth.first, c.clone());
            }
            if let Some((tap, first)) = &in_image
                && let Some(r) = map.get_mut(&tap.var)
            {
                *r = add(first, r.clone());
            }
            map
        };
        let tile = Tile { base: base.clone(), vectors: self.decided.vectors, mask: None };
        let none = VarMap::new();
        let kernel = RegisterTile { row_axis: None, ..self.block.register_tile(pixels, &tile, &none) };
        let element = |i: i64, map: &VarMap| {
            let mut map = moved(map);
            if let Some(tiles) = &self.tiles {
                let channel = substitute(&PrimExpr::from(&self.depth.var), &map);
                return tiles.element(&self.chunk, line, pixels, &channel, i);
            }
            if self.decided.image == ImageForm::InPlace {
                map.extend(self.block.at_row(&below_first));
                map.insert(window.x.axis.var.clone(), add(&pixels.first, int(i)));
                return substitute(&window.c.column, &map);
            }
            self.in_copy(&below_first, &add(&pixels.first, int(i)), &map)
        };
        let mut weight = |cx: &mut Cx, j: i64, map: &VarMap| {
            let mut map = moved(map);
            map.insert(self.weights.panel.clone(), panel.clone());
            Lanes::new(&mut cx.views, &self.weights.channel, tile.at(j, lanes), lanes, None, &map)
                .vector(&self.weights.operand)
        };
        let place = |i: i64, j: i64| {
            let pixel = self.chunk.pixel(line, &add(&pixels.first, int(i)));
            ramp(add(mul(pixel, int(self.width)), tile.at(j, lanes)), int(1), lanes)
        };
        let so_far = |i: i64, j: i64| (!depth.is_all).then(|| load(&self.sums, [place(i, j)]));
        let ahead = if self.decided.asks { self.ahead(cx, panel, depth, line, pixels) } else { None };
        let (start, asked) = ahead.unwrap_or_else(|| (Stmt::nop(), Box::new(|_: &VarMap| Stmt::nop())));
        let image = if self.decided.asks { self.image_ahead(cx, &below_first, pixels) } else { None };
        let first = taps.first().cloned().unwrap_or_default();
        let beside = |map: &VarMap| {
            let is_first = first.iter().all(|(tap, value)| map.get(tap).is_some_and(|at| same(at, value)));
            if !is_first {
                return Stmt::nop();
            }
            let map = moved(map);
            Stmt::seq([asked(&map)].into_iter().chain(image.as_ref().map(|image| image(&map))))
        };
        let kernel = RegisterTile { beside: Some(&beside), ..kernel };
        let (acc, mut list) = kernel.accumulate(cx, &loops, &taps, &element, &mut weight, &so_far)?;
        if self.has_signal() {
            list = list.into_iter().map(nest::kept).collect();
        }
        list.insert(0, start);
        list.extend(
            kernel.cells().map(|(i, j)| Stmt::store(&self.sums, [place(i, j)], load(&acc, [kernel.cell(i, j)]))),
        );
        Ok(Stmt::seq(list))
    }

    /// The element of the image's copy under a tap, for a pixel of a row.
    fn in_copy(&self, line: &PrimExpr, pixel: &PrimExpr, map: &VarMap) -> PrimExpr {
        let (window, space) = (self.block.window, self.block.space);
        let tap = |w: &Window| {
            w.tap.as_ref().map_or(int(0), |t| mul(substitute(&PrimExpr::from(&t.var), map), int(w.dilation)))
        };
        let below = window.y.as_ref().map_or(int(0), tap);
        let of = substitute(&window.channel_index(), map);
        let across = tap(&window.x);
        let (offset, pixel) = match across.as_int() {
            Some(offset) => (offset, pixel.clone()),
            None => (0, add(pixel, across)),
        };
        load(&space.buffer, [window.under(space, &of, line, &below, offset, &pixel)])
    }

    /// Requests of the weights that come next, in each step over the image's channels; the statement in front of them finds the tile's share.
    ///
    /// What lies behind the weights at hand comes next, and is asked for by all tiles in turn: tile for tile other lines of each channel.
    fn ahead(
        &self,
        cx: &mut Cx,
        panel: &PrimExpr,
        depth: &Depth,
        line: &PrimExpr,
        pixels: &Rows,
    ) -> Option<(Stmt, Asked)> {
        let of = loads(&self.weights.operand).into_iter().next()?;
        let in_line = elements_in_line(of.buffer.dtype);
        let taps: i64 = self.block.window.taps().map(|tap| tap.extent.as_int()).product::<Option<i64>>()?;
        let (channel, lines) = (taps * self.width, (taps * self.width + in_line - 1) / in_line);
        let all = self.chunk.most();
        let share = all.as_int().map_or(1, |all| (pixels.count * lines + all - 1) / all.max(1));
        let (name, buffer) = (Var::dim("asked"), cx.views.flat(&of.buffer));
        let done = mul(self.chunk.pixel(line, &pixels.first), int(lines));
        let start = Stmt::bind(name.clone(), mul(floordiv(done, max(all, int(1))), int(in_line)));
        let mut first: VarMap = self.block.window.taps().map(|tap| (tap.var.clone(), int(0))).collect();
        first.insert(self.weights.panel.clone(), panel.clone());
        first.insert(self.weights.channel.clone(), int(0));
        let place = substitute(&flat_index(&of.buffer, &of.indices), &first);
        let place = add(place, add(mul(&depth.count, int(channel)), PrimExpr::from(&name)));
        let last = sub(of.buffer.num_elements(), int(1));
        let asked = move |map: &VarMap| {
            let here = substitute(&place, map);
            let request = |i: i64| request("tirx.prefetch", &buffer, min(add(&here, int(i * in_line)), last.clone()));
            Stmt::seq((0..share).map(request))
        };
        Some((start, Box::new(asked)))
    }

    /// Requests of the tile's pixels in a channel of the image that comes soon, where they are read where they lie: each channel has them
    /// in another line, which another core may have written.
    fn image_ahead(&self, cx: &mut Cx, line: &PrimExpr, pixels: &Rows) -> Option<Asked> {
        let window = self.block.window;
        let of = loads(&window.c.column).into_iter().next().filter(|_| self.decided.image == ImageForm::InPlace)?;
        let place = flat_index(&of.buffer, &of.indices);
        let step = coefficient(&place, &self.depth.var)?;
        let buffer = cx.views.flat(&of.buffer);
        let last = sub(of.buffer.num_elements(), int(1));
        let (at, x) = (self.block.at_row(line), window.x.axis.var.clone());
        let (first, count) = (pixels.first.clone(), pixels.count);
        Some(Box::new(move |map: &VarMap| {
            let request = |pixel: i64| {
                let mut map: VarMap = map.iter().chain(&at).map(|(var, value)| (var.clone(), value.clone())).collect();
                map.insert(x.clone(), add(&first, int(pixel)));
                let soon = add(substitute(&place, &map), int(step * CHANNELS_AHEAD));
                request("tirx.prefetch", &buffer, min(soon, last.clone()))
            };
            Stmt::seq([request(0), request(count - 1)])
        }))
    }

    /// Whether taps are those of a signal without stride: a pixel of a tile is its neighbour's under the next tap. Taps of several rows are unrolled
    /// nevertheless, since they take as many loads more.
    fn has_signal(&self) -> bool {
        let window = self.block.window;
        let has_taps = |tap: &Axis| tap.extent.as_int() != Some(1);
        let down = window.y.as_ref().and_then(|y| y.tap.as_ref());
        window.x.stride == 1 && window.x.tap.as_ref().is_some_and(has_taps) && !down.is_some_and(has_taps)
    }

    /// The taps down a window that meet the image in a row of the output, as an axis and the first of them, where half of them or more lie in
    /// the padding around the first row: images of few rows under such windows, as transposed convolutions have them, are little else.
    fn rows_in_image(&self, line: &PrimExpr) -> Option<(Axis, PrimExpr)> {
        let window = self.block.window;
        let y = window.y.as_ref().filter(|_| self.decided.image == ImageForm::Copied)?;
        let (tap, (condition, _, outside)) = (y.tap.as_ref()?, choice(&window.c.column)?);
        if !same(outside, &constant(outside.dtype(), 0.0)) {
            return None;
        }
        let conditions: Vec<PrimExpr> = conjuncts(condition).into_iter().filter(|c| uses(c, &tap.var)).collect();
        let limits = interval(&tap.var, &conditions)?;
        let (low, high) = limits.low.zip(limits.high)?;
        let top: VarMap = [(y.axis.var.clone(), int(0))].into();
        let in_front = Analyzer::new().simplify(&substitute(&low, &top)).as_int()?;
        if 2 * in_front < tap.extent.as_int()? {
            return None;
        }
        let at = self.block.at_row(line);
        let within = |place: &PrimExpr| max(min(substitute(place, &at), tap.extent.clone()), int(0));
        let (first, behind) = (within(&low), within(&high));
        let count = max(sub(behind, &first), int(0));
        Some((Axis { extent: count, ..tap.clone() }, first))
    }

    /// The loops over the terms of a sum, and the unrolled taps inside of them.
    fn terms(&self, depth: &Depth, in_image: Option<&(Axis, PrimExpr)>) -> (Vec<Axis>, Vec<VarMap>) {
        let window = self.block.window;
        let along = |axis: &Axis| Axis { extent: depth.count.clone(), ..axis.clone() };
        let mut loops: Vec<Axis> = window.channels.to_vec();
        loops[0] = along(&loops[0]);
        let (down, across) = (window.y.as_ref().and_then(|y| y.tap.as_ref()), window.x.tap.as_ref());
        let extent = |tap: Option<&Axis>| tap.map_or(Some(1), |tap| tap.extent.as_int());
        let is_small = extent(down).zip(extent(across)).is_some_and(|(down, across)| down * across <= MOST_TAPS);
        let mut taps = vec![VarMap::new()];
        for (tap, unrolled) in [(down, is_small), (across, !self.has_signal())] {
            let Some(tap) = tap else { continue };
            if let Some((rows, _)) = in_image.filter(|(rows, _)| rows.var == tap.var) {
                loops.push(rows.clone());
                continue;
            }
            match tap.extent.as_int().filter(|_| unrolled) {
                Some(count) => {
                    let with = |map: &VarMap, r: i64| {
                        map.iter().map(|(v, e)| (v.clone(), e.clone())).chain([(tap.var.clone(), int(r))]).collect()
                    };
                    taps = taps.iter().flat_map(|map| (0..count).map(|r| with(map, r)).collect::<Vec<_>>()).collect();
                }
                None => loops.push(tap.clone()),
            }
        }
        (loops, taps)
    }

    /// The output's rows of the sums' channels, as many channels at a time as a vector has lanes.
    fn emit_epilogue(&self, cx: &mut Cx, first: &PrimExpr) -> Result<Stmt, Refusal> {
        let block = self.block;
        let (lanes, chunk) = (block.space.lanes, &self.chunk);
        let (slice, group) = (Var::dim("slice"), Var::dim("group"));
        let from = mul(PrimExpr::from(&slice), int(lanes));
        let pitch = mul(ceil_div(&chunk.most(), lanes), int(lanes));
        let transposed = Buffer::new("transposed", self.sums.dtype, [mul(&pitch, int(lanes))]);
        let pixels = chunk.count();
        // The last square reads its last pixel again where there are fewer.
        let is_whole = pixels.as_int().is_some_and(|pixels| pixels % lanes == 0);
        let square = |i: i64| {
            let pixel = add(mul(PrimExpr::from(&group), int(lanes)), int(i));
            let pixel = if is_whole { pixel } else { min(pixel, sub(&pixels, int(1))) };
            load(&self.sums, [ramp(add(mul(pixel, int(self.width)), &from), int(1), lanes)])
        };
        let (mut list, columns) = square::columns((0..lanes).map(square).collect());
        list.extend(columns.into_iter().enumerate().map(|(i, column)| {
            let place = add(mul(&pitch, int(i as i64)), mul(PrimExpr::from(&group), int(lanes)));
            Stmt::store(&transposed, [ramp(place, int(1), lanes)], column)
        }));
        let groups = ceil_div(&pixels, lanes);
        let transposition = Stmt::serial(group, groups, Stmt::seq(list));
        let (i, line) = (Var::dim("i"), Var::dim("line"));
        let rows = Rows::full(add(first, &from), lanes);
        let at = block.at_row(&add(&chunk.first_line, PrimExpr::from(&line)));
        let row = nest::tiles(chunk.first_pixel.clone(), &chunk.pixels, lanes, 1, |tile| {
            let place = add(mul(&pitch, PrimExpr::from(&i)), chunk.pixel(&PrimExpr::from(&line), &tile.base));
            let indices = vec![ramp(place, int(1), lanes)];
            let predicate = tile.mask_of(0).map(|mask| mask.vector(lanes));
            let sum = Ref::new(BufferLoad { buffer: transposed.clone(), indices, predicate }).into();
            block.register_tile(&rows, &tile, &at).emit_epilogue(cx, PrimExpr::from(&i), 0, sum)
        })?;
        // Behind the last channel a panel has nothing to store.
        let all = &block.part.channel.extent;
        let channels = match all.as_int() {
            Some(count) if count % self.width == 0 => int(lanes),
            _ => max(min(int(lanes), sub(all, add(first, &from))), int(0)),
        };
        let rows = Stmt::serial(i, channels, Stmt::serial(line, chunk.lines.clone(), row));
        let rows = apart_if_long(&block.window.c.reduce.epilogue, rows);
        let slices = Stmt::serial(slice, int(self.width / lanes), Stmt::seq([transposition, rows]));
        Ok(Stmt::seq([Stmt::alloc(&transposed), slices]))
    }
}
