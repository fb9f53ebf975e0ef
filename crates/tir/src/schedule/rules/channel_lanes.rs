//! Depthwise convolution of images whose rows fill no vectors: vectors along channels.
//!
//! ```text
//! parallel p over (n, blocks of 16 channels):
//!     W'[tap][16]   = W[c .. c + 16, tap]              # squares of vectors, transposed in registers
//!     S[pixel][16]  = D[c .. c + 16, pixel]            # likewise, with zeros to the left and the right of each row
//!     for row of the output, for tile of 8 pixels:
//!         for ry under which the image has a row, rx (unrolled):
//!             acc[0 .. 8] += W'[ry, rx] * S[row * stride + ry][x * stride + rx ..]
//!     C[c .. c + 16, pixels] = epilogue(squares of acc, transposed)
//! ```
//!
//! Lanes are full whatever the row's length is, and a stride costs nothing. What it costs is to transpose the image and the result, which are
//! read and written as planes without gaps: a sixteenth of the shuffles of a pixel by pixel copy. Roof: two multiply-adds a cycle.

use relaxide_ffi::Ref;
use relaxide_ir::arith::dims;
use relaxide_ir::prim::{
    BinaryOp, BufferLoad, PrimExpr, VarMap, add, binary, constant, floordiv, floormod, ge, if_then_else, int, le, load,
    lt, max, min, mul, ramp, sub, substitute,
};
use relaxide_ir::{Buffer, DataType, Var};

use super::super::affine::{ceil_div, coefficient, cost, flat_index, linear, product, uses};
use super::super::lanes::{multiply_add, splat};
use super::super::nest::Tile;
use super::super::parameters::{Choices, Domain, Guess};
use super::super::{Axis, Cx, Machine, Reduce, Refusal, nest, square};
use super::contraction::Contraction;
use super::register_tile::{LONG, RegisterTile, Rows};
use super::rule::{self, Rule};
use super::window::{Window, Windowed};
use crate::Stmt;

/// Elements of the copy of a block's image at most: more leave the second-level cache.
const MOST_ELEMENTS: i64 = 1 << 17;
/// Taps from which on it pays to transpose an image of known size, or one whose rows fill a vector and leave a part of another.
const MANY_TAPS: i64 = 16;
/// Pixels of a tile at most, and of one in rows whose length is not known.
const MOST_PIXELS: i64 = 14;
const USUAL_PIXELS: i64 = 8;

/// The rule, for rows whose length is known.
pub struct ShortRows;

impl Rule for ShortRows {
    type Work = Reduce;
    type Found<'w> = Windowed;
    type Decided = Shape;

    fn find(machine: &Machine, reduce: &Reduce) -> Result<Windowed, Refusal> {
        let contraction = Contraction::of(reduce)?;
        if !contraction.rows.is_empty() {
            return Err(Refusal::new("an axis belongs to the weights alone"));
        }
        let window = Windowed::of(contraction)?;
        let lanes = machine.lanes(reduce.stage.output.dtype);
        if window.count_taps() < MANY_TAPS {
            return Err(Refusal::new("to transpose an image costs more than few taps"));
        }
        if window.x.axis.extent.as_int().is_none_or(|width| width >= shorter_than(&window, lanes)) {
            return Err(Refusal::new("rows of the output are long, or their length is not known"));
        }
        let elements = ChannelLanes::of(&window)?.elements(lanes).as_int();
        if elements.is_none_or(|elements| elements > MOST_ELEMENTS) {
            return Err(Refusal::new("the image is too large, or is not known"));
        }
        Ok(window)
    }

    fn decide(machine: &Machine, window: &Windowed, choices: &mut Choices<'_>) -> Result<Shape, Refusal> {
        let lanes = rule::lanes(choices, machine.lanes(window.c.reduce.stage.output.dtype));
        Ok(Shape::decide(machine, window, lanes, choices))
    }

    fn emit(cx: &mut Cx, window: &Windowed, shape: &Shape) -> Result<Stmt, Refusal> {
        ChannelLanes::of(window)?.emit(cx, *shape)
    }
}

/// A depthwise convolution whose vectors can lie along channels.
pub struct ChannelLanes<'w> {
    window: &'w Windowed,
    y: &'w Window,
    /// The axis of the channels.
    channel: &'w Axis,
    weights: Weights,
    image: Plane,
}

/// Weights, tap by tap for each channel.
struct Weights {
    buffer: Ref<Buffer>,
    /// The flat index of a channel's first.
    first: PrimExpr,
    /// Taps of a row of the kernel, and of all.
    across: i64,
    all: i64,
}

/// The image of a channel: rows that follow each other without gaps.
struct Plane {
    buffer: Ref<Buffer>,
    /// The flat index of its first pixel.
    first: PrimExpr,
    /// Rows, columns, and columns that count in the last row.
    rows: PrimExpr,
    columns: PrimExpr,
    last: PrimExpr,
    /// Padding above and to the left.
    top: PrimExpr,
    left: PrimExpr,
    /// Whether rows under the kernel may be missing.
    is_padded: bool,
}

/// What is decided.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Lanes of a vector.
    pub lanes: i64,
    /// Pixels of a tile.
    pub pixels: i64,
}

/// Of how many pixels a row of the output, whose length is known, has fewer where it pays to have vectors along channels.
fn shorter_than(window: &Windowed, lanes: i64) -> i64 {
    if window.count_taps() < MANY_TAPS { lanes } else { 2 * lanes }
}

impl Shape {
    /// As many pixels as registers allow beside a weight and a pixel, in equal tiles where the row is known.
    pub fn decide(machine: &Machine, window: &Windowed, lanes: i64, choices: &mut Choices<'_>) -> Shape {
        let most = MOST_PIXELS.min(machine.vector_registers - 2);
        let value = match window.x.axis.extent.as_int() {
            Some(width) => {
                let tiles = (width + most - 1) / most;
                (width + tiles - 1) / tiles
            }
            None => USUAL_PIXELS.min(most),
        };
        let pixels = choices.choose(Guess {
            name: "pixels",
            value,
            domain: Domain::range(1, most),
            reason: "so many sums of channels use one vector of weights, and a row is few tiles",
            limit: "sums of more pixels have no registers",
        });
        Shape { lanes, pixels }
    }
}

impl<'w> ChannelLanes<'w> {
    /// Whether rows are shorter than so many pixels, and the copy of a block's image stays in the caches.
    pub fn is_short(&self, lanes: i64, pixels: i64) -> PrimExpr {
        let fits = le(self.elements(lanes), int(MOST_ELEMENTS));
        binary(BinaryOp::And, lt(&self.window.x.axis.extent, int(pixels)), fits)
    }

    /// Reads a sliding window as one whose channels have their own weights and planes.
    pub fn of(window: &'w Windowed) -> Result<ChannelLanes<'w>, Refusal> {
        let Some(y) = &window.y else { return Err(Refusal::new("the output is one row")) };
        if !window.channels.is_empty() {
            return Err(Refusal::new("several channels are summed"));
        }
        let PrimExpr::Load(of) = &window.c.row else { return Err(Refusal::new("weights are computed")) };
        let flat = flat_index(&of.buffer, &of.indices);
        let Some(channel) = window.outer.iter().rev().find(|axis| uses(&flat, &axis.var)) else {
            return Err(Refusal::new("channels share their weights"));
        };
        if !window.is_one_row(y) {
            return Err(Refusal::new("the output's rows do not follow each other"));
        }
        let (weights, image) = (Weights::of(window, y, &of.buffer, &flat)?, Plane::of(window, y)?);
        Ok(ChannelLanes { window, y, channel, weights, image })
    }

    /// Elements of memory that a block of channels takes.
    fn elements(&self, lanes: i64) -> PrimExpr {
        mul(mul(&self.image.rows, self.pitch()), int(lanes))
    }

    /// The nest.
    pub fn emit(&self, cx: &mut Cx, shape: Shape) -> Result<Stmt, Refusal> {
        let Shape { lanes, pixels } = shape;
        let (p, block, first) = (Var::dim("p"), Var::dim("block"), Var::dim("channel"));
        let of_block = |axis: &Axis| match axis.var == self.channel.var {
            true => Axis { var: block.clone(), extent: ceil_div(&axis.extent, lanes) },
            false => axis.clone(),
        };
        let axes: Vec<Axis> = self.window.outer.iter().map(of_block).collect();
        let (tasks, mut body) = nest::fuse(&axes, &p);
        body.push(Stmt::bind(first.clone(), mul(PrimExpr::from(&block), int(lanes))));
        let dtype = self.window.c.reduce.stage.output.dtype;
        let pitch = Var::dim("pitch");
        let room = |name, pixels: PrimExpr| Buffer::new(name, dtype, [mul(pixels, int(lanes))]);
        let inside = mul(&self.image.rows, PrimExpr::from(&pitch));
        // A tile reads behind the last row, and a square writes there.
        let behind = pixels * self.window.x.stride + self.window.x.dilated_extent + lanes;
        let outputs = mul(&self.y.axis.extent, &self.window.x.axis.extent);
        let taps = (self.weights.all + lanes - 1) / lanes * lanes;
        let block = Block {
            of: self,
            shape,
            first: PrimExpr::from(&first),
            pitch: PrimExpr::from(&pitch),
            places: Buffer::new("places", DataType::int(64), [mul(ceil_div(&self.image.pixels(), lanes), int(lanes))]),
            weights: room("weights", int(taps)),
            image: room("image", add(&inside, int(behind))),
            sums: room("sums", add(&outputs, int(pixels.max(lanes)))),
            inside,
            behind,
            outputs,
        };
        body.extend([&block.weights, &block.image, &block.sums].map(Stmt::alloc));
        body.extend([block.turn_weights(cx)?, block.turn_image(cx)?, block.sum(cx)?, block.store(cx)?]);
        let reduce = &self.window.c.reduce;
        let extents = reduce.stage.spatial.iter().chain(&reduce.stage.reduce).map(|axis| &axis.extent);
        let work = floordiv(product(extents), int(4));
        let nest = nest::parallel(&cx.machine, p, tasks, work, Stmt::seq(body));
        Ok(Stmt::seq([Stmt::bind(pitch, self.pitch()), Stmt::alloc(&block.places), block.place(), nest]))
    }

    /// Pixels from a row of the copy to the next: padding and the image's columns, and what a window reaches.
    fn pitch(&self) -> PrimExpr {
        let x = &self.window.x;
        let under = add(mul(sub(&x.axis.extent, int(1)), int(x.stride)), int(x.dilated_extent));
        max(add(&self.image.left, &self.image.columns), under)
    }
}

impl Weights {
    fn of(window: &Windowed, y: &Window, buffer: &Ref<Buffer>, flat: &PrimExpr) -> Result<Weights, Refusal> {
        let mut first = VarMap::new();
        let mut step = 1;
        for axis in [&window.x, y] {
            let Some(tap) = &axis.tap else { continue };
            if coefficient(flat, &tap.var) != Some(step) {
                return Err(Refusal::new("a channel's weights do not follow each other"));
            }
            step *= axis.offsets().count() as i64;
            first.insert(tap.var.clone(), int(0));
        }
        let across = window.x.offsets().count() as i64;
        Ok(Weights { buffer: buffer.clone(), first: substitute(flat, &first), across, all: step })
    }
}

impl Plane {
    fn of(window: &Windowed, y: &Window) -> Result<Plane, Refusal> {
        let ((_, image_x, image_y), (guard, of, flat)) = (window.image(), window.pixel()?);
        let Some((columns, _)) = linear(&flat, image_y) else {
            return Err(Refusal::new("rows of the image are not contiguous"));
        };
        let mut frame = [Side::default(), Side::default()];
        for condition in &guard {
            let side = match (uses(condition, image_y), uses(condition, image_x)) {
                (true, false) => frame[0].narrow(condition, image_y),
                (false, true) => frame[1].narrow(condition, image_x),
                _ => None,
            };
            side.ok_or_else(|| Refusal::new("the padding is no frame"))?;
        }
        let [rows, inside] = frame;
        let under = |w: &Window| add(mul(sub(&w.axis.extent, int(1)), int(w.stride)), int(w.dilated_extent));
        if inside.end.as_ref().is_some_and(|end| !dims::equal(&columns, &sub(end, inside.first()))) {
            return Err(Refusal::new("rows of the image do not follow each other"));
        }
        let (top, left) = (rows.first(), inside.first());
        let last = sub(inside.end.clone().unwrap_or_else(|| under(&window.x)), &left);
        let count = sub(rows.end.clone().unwrap_or_else(|| under(y)), &top);
        let first = VarMap::from([(image_x.clone(), left.clone()), (image_y.clone(), top.clone())]);
        let first = substitute(&flat, &first);
        let is_padded = rows.start.is_some() || rows.end.is_some();
        Ok(Plane { buffer: of.buffer.clone(), first, rows: count, columns, last, top, left, is_padded })
    }

    /// How many pixels there are from the first to the last.
    fn pixels(&self) -> PrimExpr {
        add(mul(sub(&self.rows, int(1)), &self.columns), &self.last)
    }
}

/// Between which places of an axis the image lies, where there is padding beside them.
#[derive(Default, Clone)]
struct Side {
    start: Option<PrimExpr>,
    end: Option<PrimExpr>,
}

impl Side {
    fn first(&self) -> PrimExpr {
        self.start.clone().unwrap_or_else(|| int(0))
    }

    /// Takes in a condition on an axis, which is a bound on one side.
    fn narrow(&mut self, condition: &PrimExpr, axis: &Ref<Var>) -> Option<()> {
        let PrimExpr::Binary(n) = condition else { return None };
        // What must not be negative.
        let rest = match n.op {
            BinaryOp::Lt => sub(sub(&n.b, &n.a), int(1)),
            BinaryOp::Le => sub(&n.b, &n.a),
            BinaryOp::Gt => sub(sub(&n.a, &n.b), int(1)),
            BinaryOp::Ge => sub(&n.a, &n.b),
            _ => return None,
        };
        let (times, rest) = linear(&rest, axis)?;
        let (place, bound) = match times.as_int()? {
            1 => (&mut self.start, sub(int(0), rest)),
            -1 => (&mut self.end, add(rest, int(1))),
            _ => return None,
        };
        let bound = dims::simplify(&bound);
        if place.as_ref().is_some_and(|known| !dims::equal(known, &bound)) {
            return None;
        }
        *place = Some(bound);
        Some(())
    }
}

/// A block of channels of an image, and its memory: vectors of channels.
struct Block<'a> {
    of: &'a ChannelLanes<'a>,
    shape: Shape,
    /// The first channel.
    first: PrimExpr,
    /// Pixels from a row of the copy to the next.
    pitch: PrimExpr,
    /// Where each pixel of a plane lies in the copy.
    places: Ref<Buffer>,
    weights: Ref<Buffer>,
    image: Ref<Buffer>,
    sums: Ref<Buffer>,
    /// Pixels of the copy, and of the room behind it.
    inside: PrimExpr,
    behind: i64,
    /// Pixels of the output.
    outputs: PrimExpr,
}

impl Block<'_> {
    /// The vector at a pixel, or a tap.
    fn at(&self, pixel: impl Into<PrimExpr>) -> PrimExpr {
        ramp(mul(pixel.into(), int(self.shape.lanes)), int(1), self.shape.lanes)
    }

    /// Whether all blocks have as many channels as lanes.
    fn is_full(&self) -> bool {
        self.of.channel.extent.as_int().is_some_and(|channels| channels % self.shape.lanes == 0)
    }

    /// A channel of the block; the last one for those that are missing.
    fn channel(&self, lane: i64) -> PrimExpr {
        let channel = add(&self.first, int(lane));
        if self.is_full() { channel } else { min(channel, sub(&self.of.channel.extent, int(1))) }
    }

    /// Fills the table of places: each row of the image begins behind its padding.
    fn place(&self) -> Stmt {
        let (image, at) = (&self.of.image, Var::dim("at"));
        let pixel = PrimExpr::from(&at);
        let (row, column) = (floordiv(&pixel, &image.columns), floormod(&pixel, &image.columns));
        let place = add(mul(row, &self.pitch), add(column, &image.left));
        // What a square has behind the last pixel goes behind the copy.
        let behind = add(&self.inside, int(self.behind - self.shape.lanes));
        let behind = add(behind, floormod(&pixel, int(self.shape.lanes)));
        let place = if_then_else(lt(&pixel, image.pixels()), place, behind);
        let extent = self.places.num_elements();
        Stmt::serial(at, extent, Stmt::store(&self.places, [pixel], place))
    }

    /// The columns of a square: of each channel so many elements that follow each other, as vectors of channels.
    fn square(&self, cx: &mut Cx, buffer: &Ref<Buffer>, first: &PrimExpr, tile: &Tile) -> (Vec<Stmt>, Vec<PrimExpr>) {
        let (buffer, lanes) = (cx.views.flat(buffer), self.shape.lanes);
        let row = |lane: i64| {
            let channel = VarMap::from([(self.of.channel.var.clone(), self.channel(lane))]);
            let index = ramp(add(substitute(first, &channel), &tile.base), int(1), lanes);
            let predicate = tile.mask_of(0).map(|mask| mask.vector(lanes));
            Ref::new(BufferLoad { buffer: buffer.clone(), indices: vec![index], predicate }).into()
        };
        square::columns((0..lanes).map(row).collect())
    }

    fn turn_weights(&self, cx: &mut Cx) -> Result<Stmt, Refusal> {
        let weights = &self.of.weights;
        nest::tiles(int(0), &int(weights.all), self.shape.lanes, 1, |tile| {
            let (mut list, columns) = self.square(cx, &weights.buffer, &weights.first, &tile);
            let store = |(tap, column)| Stmt::store(&self.weights, [self.at(add(&tile.base, int(tap)))], column);
            list.extend((0..).zip(columns).map(store));
            Ok(Stmt::seq(list))
        })
    }

    fn turn_image(&self, cx: &mut Cx) -> Result<Stmt, Refusal> {
        let image = &self.of.image;
        let zero = self.zero(&self.image, int(0), add(&self.inside, int(self.behind)));
        let transposed = nest::tiles(int(0), &image.pixels(), self.shape.lanes, 1, |tile| {
            let (mut list, columns) = self.square(cx, &image.buffer, &image.first, &tile);
            let store = |(pixel, column)| {
                let place = load(&self.places, [add(&tile.base, int(pixel))]);
                Stmt::store(&self.image, [self.at(place)], column)
            };
            list.extend((0..).zip(columns).map(store));
            Ok::<_, Refusal>(Stmt::seq(list))
        })?;
        Ok(Stmt::seq([zero, transposed]))
    }

    /// Some pixels of zeros.
    fn zero(&self, buffer: &Ref<Buffer>, first: PrimExpr, count: PrimExpr) -> Stmt {
        let at = Var::dim("at");
        let zero = splat(constant(buffer.dtype, 0.0), self.shape.lanes);
        let store = Stmt::store(buffer, [self.at(add(first, PrimExpr::from(&at)))], zero);
        Stmt::serial(at, count, store)
    }

    /// The sums of all pixels. A row's last tile goes on into the next row, which comes later.
    fn sum(&self, cx: &mut Cx) -> Result<Stmt, Refusal> {
        let (x, y) = (&self.of.window.x, self.of.y);
        let (line, tile) = (Var::dim("line"), Var::dim("tile"));
        let column = mul(PrimExpr::from(&tile), int(self.shape.pixels));
        let body = self.tile(cx, &PrimExpr::from(&line), &column);
        let row = Stmt::serial(tile, ceil_div(&x.axis.extent, self.shape.pixels), body);
        let behind = self.zero(&self.sums, self.outputs.clone(), int(self.shape.lanes));
        Ok(Stmt::seq([behind, Stmt::serial(line, y.axis.extent.clone(), row)]))
    }

    /// Some pixels of a row of the output, from a column on.
    fn tile(&self, cx: &Cx, line: &PrimExpr, column: &PrimExpr) -> Stmt {
        let (Shape { lanes, pixels }, dtype) = (self.shape, self.sums.dtype);
        let x = &self.of.window.x;
        let acc = Buffer::scoped("acc", dtype, [int(pixels * lanes)], "local");
        let zero = splat(constant(dtype, 0.0), lanes);
        let mut list = vec![Stmt::alloc(&acc)];
        list.extend((0..pixels).map(|t| Stmt::store(&acc, [self.at(int(t))], zero.clone())));
        let taps: Vec<(i64, i64)> = (0..).zip(x.offsets()).collect();
        // Column by column of taps is the order of `depthwise`.
        let at_once = if cx.machine.deterministic { 1 } else { taps.len().max(1) };
        list.extend(taps.chunks(at_once).map(|taps| self.rows_of_taps(cx, &acc, line, column, taps)));
        let first = add(mul(line, &x.axis.extent), column);
        let store = |t| Stmt::store(&self.sums, [self.at(add(&first, int(t)))], load(&acc, [self.at(int(t))]));
        list.extend((0..pixels).map(store));
        Stmt::seq(list)
    }

    /// The products of some columns of taps, with their offsets, row by row.
    fn rows_of_taps(
        &self,
        cx: &Cx,
        acc: &Ref<Buffer>,
        line: &PrimExpr,
        column: &PrimExpr,
        taps: &[(i64, i64)],
    ) -> Stmt {
        let (Shape { lanes, pixels }, dtype) = (self.shape, self.sums.dtype);
        let (x, y, image) = (&self.of.window.x, self.of.y, &self.of.image);
        let (tap, row, from) = (Var::dim("ry"), Var::dim("row"), Var::dim("from"));
        let below = add(mul(line, int(y.stride)), mul(PrimExpr::from(&tap), int(y.dilation)));
        let start = add(mul(PrimExpr::from(&row), &self.pitch), mul(column, int(x.stride)));
        let mut steps = vec![Stmt::bind(from.clone(), start)];
        for &(rx, right) in taps {
            let weight = Var::prim("w", dtype.with_lanes(lanes as u16));
            let at = add(mul(PrimExpr::from(&tap), int(self.of.weights.across)), int(rx));
            steps.push(Stmt::bind(weight.clone(), load(&self.weights, [self.at(at)])));
            for t in 0..pixels {
                let pixel = load(&self.image, [self.at(add(PrimExpr::from(&from), int(t * x.stride + right)))]);
                let so_far = load(acc, [self.at(int(t))]);
                let sum = multiply_add(cx.machine.fma, PrimExpr::from(&weight), pixel, so_far);
                steps.push(Stmt::store(acc, [self.at(int(t))], sum));
            }
        }
        let steps = match image.is_padded {
            true => {
                let there =
                    binary(BinaryOp::And, ge(PrimExpr::from(&row), int(0)), lt(PrimExpr::from(&row), &image.rows));
                Stmt::when(there, Stmt::seq(steps))
            }
            false => Stmt::seq(steps),
        };
        let body = Stmt::seq([Stmt::bind(row, sub(below, &image.top)), steps]);
        Stmt::serial(tap, int(y.offsets().count() as i64), body)
    }

    /// The output's planes: the sums transposed, and what follows them.
    fn store(&self, cx: &mut Cx) -> Result<Stmt, Refusal> {
        let (window, lanes) = (self.of.window, self.shape.lanes);
        let at = VarMap::from([(self.of.y.axis.var.clone(), int(0))]);
        let rows = Rows::full(self.first.clone(), lanes);
        let is_unrolled = self.is_full() && cost(&window.c.reduce.epilogue) < LONG;
        nest::tiles(int(0), &self.outputs, lanes, 1, |tile| {
            let sums = (0..lanes).map(|pixel| load(&self.sums, [self.at(add(&tile.base, int(pixel)))])).collect();
            let (mut list, columns) = square::columns(sums);
            let kernel = RegisterTile {
                reduce: &window.c.reduce,
                row_axis: Some(&self.of.channel.var),
                column_axis: &window.x.axis.var,
                lanes,
                rows: &rows,
                tile: &tile,
                at: &at,
                sums: None,
                by_row: false,
                beside: None,
            };
            if is_unrolled {
                for (lane, column) in (0..).zip(columns) {
                    list.push(kernel.emit_epilogue(cx, int(lane), 0, column)?);
                }
                return Ok(Stmt::seq(list));
            }
            let (transposed, i) = (Buffer::new("transposed", self.sums.dtype, [int(lanes * lanes)]), Var::dim("i"));
            list.push(Stmt::alloc(&transposed));
            list.extend(
                (0..).zip(columns).map(|(lane, column)| Stmt::store(&transposed, [self.at(int(lane))], column)),
            );
            let sum = load(&transposed, [self.at(PrimExpr::from(&i))]);
            let row = kernel.emit_epilogue(cx, PrimExpr::from(&i), 0, sum)?;
            let there = min(int(lanes), sub(&self.of.channel.extent, &self.first));
            list.push(Stmt::serial(i, there, row));
            Ok(Stmt::seq(list))
        })
    }
}
