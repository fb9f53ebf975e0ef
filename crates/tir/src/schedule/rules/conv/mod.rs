//! Direct convolution of images in planes (NCHW), any stride, dilation, padding and rank.
//!
//! Matches windowed contractions whose output channels are rows of the register tile (all but depthwise).
//!
//! ```text
//! parallel p over (n, blocks of output rows, parts of the channels):
//!     S = workspace of the block's image rows           # zero borders, a plane for each remainder of strides; see `window`
//!     products of the block                             # see `block`
//! ```
//!
//! Weights are read in their natural order: each of the six rows is one stream over `c, ry, rx`; or in panels of channels, and then vectors
//! lie along those (see `panels`). Parameters: rows a block
//! such that the workspace fits half of the second-level cache, at least four. Channels are divided where rows give too
//! few tasks (signals of one dimension) or where every further block of rows would read weights that no cache keeps. Then the
//! blocks follow each other, and threads share one workspace: they fill it together, and each computes a part. Panels are few parts, and
//! pixels are divided beside them (see `chunks`). Four images or groups of channels are tasks enough. Long signals are cut
//! into pieces first. Roof: two multiply-adds a cycle.

mod block;
mod chunks;
mod decide;
mod panels;
mod pieces;
mod tiles;

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::prim::{PrimExpr, floordiv, int, min, mul, sub};

use super::super::affine::{ceil_div_by, product};
use super::super::parameters::Choices;
use super::super::{Axis, Cx, Machine, Reduce, Refusal, nest};
use super::contraction::Contraction;
use super::rule::Rule;
use super::window::{Windowed, Workspace};
use crate::Stmt;
use block::{Block, MOST_VECTORS};
use chunks::ChunkNumber;
use decide::{Decided, Nest};

/// Taps of a kernel's row that are unrolled at most: machine code, and the time to make it, grow with them.
const MOST_TAPS: i64 = 16;

/// The rule.
pub struct Convolution;

/// A convolution.
pub struct Found<'w> {
    reduce: &'w Reduce,
    channel: Axis,
    window: Windowed,
}

impl Rule for Convolution {
    type Work = Reduce;
    type Found<'w> = Found<'w>;
    type Decided = Decided;

    fn find<'w>(_: &Machine, reduce: &'w Reduce) -> Result<Found<'w>, Refusal> {
        let (channel, window) = windowed(reduce)?;
        Ok(Found { reduce, channel, window })
    }

    fn decide(machine: &Machine, found: &Found<'_>, choices: &mut Choices<'_>) -> Result<Decided, Refusal> {
        Decided::of(machine, found, choices)
    }

    fn emit(cx: &mut Cx, found: &Found<'_>, decided: &Decided) -> Result<Stmt, Refusal> {
        match decided.piece {
            Some(length) => pieces::emit(cx, found.reduce, &found.window.x.axis, length, decided),
            None => whole(cx, found.reduce, &decided.whole),
        }
    }
}

/// The channels of the output, and the window.
fn windowed(reduce: &Reduce) -> Result<(Axis, Windowed), Refusal> {
    let mut contraction = Contraction::of_numbers_or_words(reduce)?;
    let Some(channel) = contraction.rows.pop() else {
        return Err(Refusal::new("no axis belongs to the weights alone"));
    };
    if !contraction.rows.is_empty() {
        return Err(Refusal::new("several axes belong to the weights alone"));
    }
    let window = Windowed::of_any(contraction)?;
    if !window.slides() && panels::width(&window, &channel).is_none() {
        return Err(Refusal::new("no window slides"));
    }
    if let Some(taps) = window.x.tap.as_ref().and_then(|tap| tap.extent.as_int()).filter(|n| *n > MOST_TAPS) {
        return Err(Refusal::new(format!(
            "a row of the kernel has {taps} taps, and more than {MOST_TAPS} are too many to unroll"
        )));
    }
    Ok((channel, window))
}

/// The nest of all of it.
fn whole(cx: &mut Cx, reduce: &Reduce, decided: &Nest) -> Result<Stmt, Refusal> {
    let (channel, window) = windowed(reduce)?;
    let dtype = window.c.column.dtype();
    let (pitch, block) = (Var::dim("pitch"), Var::dim("rows"));
    let name_of = |e: &PrimExpr, var| if e.as_int().is_some() { e.clone() } else { PrimExpr::from(var) };
    let (pitch_value, height) = (window.pitch(), height_of(&window));
    let pitch_name = name_of(&pitch_value, &pitch);
    let rows = decided.block.rows(&window, &pitch_name);
    let most = name_of(&rows, &block);
    // Long rows of unknown length end in whole tiles.
    let known = [&most, &height, &pitch_name].iter().all(|e| e.as_int().is_some()) && divides(&most, &height);
    let vectors = if known { 1 } else { MOST_VECTORS };
    let space = Workspace::new(&window, dtype, decided.lanes, vectors, &most, pitch_name);
    let part = Part::of(&channel, decided.parts, decided.width);
    let chunks = Var::dim("chunks");
    let number_of_chunks = chunks::number(&window, decided.block, decided.chunks);
    let chunks_name = name_of(&number_of_chunks, &chunks);
    let blocks =
        Blocks { reduce, window: &window, space: &space, part: &part, most: &most, chunks: &chunks_name, decided };
    let nest = blocks.emit(cx)?;
    Ok(Stmt::seq([Stmt::bind(pitch, pitch_value), Stmt::bind(block, rows), Stmt::bind(chunks, number_of_chunks), nest]))
}

/// Whether all blocks of so many rows have as many.
fn divides(rows: &PrimExpr, height: &PrimExpr) -> bool {
    rows.as_int().zip(height.as_int()).is_some_and(|(rows, height)| height % rows == 0)
}

/// Rows of the output.
fn height_of(window: &Windowed) -> PrimExpr {
    window.y.as_ref().map_or(int(1), |y| y.axis.extent.clone())
}

/// All blocks of output rows.
struct Blocks<'a> {
    reduce: &'a Reduce,
    window: &'a Windowed,
    space: &'a Workspace,
    part: &'a Part<'a>,
    /// Rows of a block, of all but the last.
    most: &'a PrimExpr,
    /// Chunks of a block's pixels.
    chunks: &'a PrimExpr,
    decided: &'a Nest,
}

impl Blocks<'_> {
    /// Whether an image has more elements than all weights: then a thread is better off with some of its pixels than with some of the
    /// channels that are computed from all of them.
    fn image_is_larger(&self) -> bool {
        let (window, stage) = (self.window, &self.reduce.stage);
        let image = product([&window.depth(), &window.x.axis.extent, &height_of(window)]);
        let weights = product(stage.reduce.iter().map(|a| &a.extent).chain([&self.part.channel.extent]));
        image.as_int().zip(weights.as_int()).is_some_and(|(image, weights)| image > weights)
    }

    /// Their nest.
    fn emit(&self, cx: &mut Cx) -> Result<Stmt, Refusal> {
        let (window, part, most, height) = (self.window, self.part, self.most, height_of(self.window));
        let (p, block, y0, count) = (Var::dim("p"), Var::dim("block"), Var::dim("y0"), Var::dim("count"));
        let mut axes = window.outer.clone();
        axes.push(Axis { var: block.clone(), extent: ceil_div_by(&height, most) });
        // The tasks of a block.
        let chunk = Axis { var: Var::dim("chunk"), extent: self.chunks.clone() };
        let mut of_block = [Axis { var: part.var.clone(), extent: int(part.of) }, chunk.clone()];
        if self.image_is_larger() {
            of_block.reverse();
        }
        let of_block: Vec<Axis> = of_block.into_iter().filter(|axis| !axis.extent.is_int(1)).collect();
        let shared = self.decided.is_shared && !of_block.is_empty();
        if !shared {
            axes.extend(of_block.iter().cloned());
        }
        let (tasks, mut body) = nest::fuse(&axes, &p);
        let first = PrimExpr::from(&y0);
        let lines = if divides(most, &height) { most.clone() } else { min(most.clone(), sub(&height, &first)) };
        let count_name = lines.as_int().map_or(PrimExpr::from(&count), int);
        body.push(Stmt::bind(y0, mul(PrimExpr::from(&block), most)));
        body.push(Stmt::bind(count, lines));
        let (space, decided) = (self.space, self.decided);
        let chunk = ChunkNumber { chunks: self.chunks, number: &PrimExpr::from(&chunk.var) };
        let products = Block { window, part, space, y0: &first, count: &count_name, most, chunk, decided }.emit(cx)?;
        let (machine, image) = (cx.machine.clone(), (&first, &count_name));
        let alloc = Stmt::alloc(&self.space.buffer);
        let stage = &self.reduce.stage;
        let copies = decided.products.copy_image();
        if shared {
            let pixels = product([&window.depth(), &self.space.pitch, &height]);
            let sums = product(stage.reduce.iter().chain([part.channel, &window.x.axis]).map(|a| &a.extent));
            let work = floordiv(mul(sums, height), int(4));
            if copies {
                let fill = |channels: &[Axis], row| in_parallel(&machine, channels, pixels, row);
                body.push(window.fill(cx, self.space, image.0, image.1, fill)?);
            }
            body.push(in_parallel(&machine, &of_block, work, products));
            let blocks = Stmt::serial(p, tasks, Stmt::seq(body));
            return Ok(if copies { Stmt::seq([alloc, blocks]) } else { blocks });
        }
        if copies {
            body.extend([alloc, window.fill(cx, self.space, image.0, image.1, nest::serial)?]);
        }
        body.push(products);
        let work = floordiv(product(stage.spatial.iter().chain(&stage.reduce).map(|a| &a.extent)), int(4));
        Ok(nest::parallel(&machine, p, tasks, work, Stmt::seq(body)))
    }
}

/// Parallel loops over some axes.
fn in_parallel(machine: &Machine, axes: &[Axis], work: PrimExpr, body: Stmt) -> Stmt {
    let p = Var::dim("p");
    let (tasks, binds) = nest::fuse(axes, &p);
    nest::parallel(machine, p, tasks, work, Stmt::seq(binds.into_iter().chain([body])))
}

/// Rows a block such that all blocks are equal, where that takes no more than twice as many: then all share one kernel.
fn even(rows: &PrimExpr, height: &PrimExpr) -> PrimExpr {
    match rows.as_int().zip(height.as_int()) {
        Some((rows, height)) => int((rows / 2 + 1..=rows).rev().find(|r| height % r == 0).unwrap_or(rows)),
        None => rows.clone(),
    }
}

/// The channels of one task.
struct Part<'a> {
    channel: &'a Axis,
    /// How many parts there are.
    of: i64,
    /// The number of the part, where there are several.
    var: Ref<Var>,
    first: PrimExpr,
    count: PrimExpr,
}

impl<'a> Part<'a> {
    fn of(channel: &'a Axis, parts: i64, width: i64) -> Self {
        let var = Var::dim("part");
        match channel.extent.as_int() {
            Some(channels) if parts > 1 => {
                // The last panel of the last part may have fewer channels.
                let count = (channels + width - 1) / width / parts * width;
                Self { channel, first: mul(PrimExpr::from(&var), int(count)), count: int(count), of: parts, var }
            }
            _ => Self { channel, first: int(0), count: channel.extent.clone(), of: 1, var },
        }
    }
}
