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
//! Weights are read in their natural order: each of the six rows is one stream over `c, ry, rx`. Parameters: rows a block
//! such that the workspace fits half of the second-level cache, at least four. Channels are divided where rows give too
//! few tasks (signals of one dimension) or where every further block of rows would read weights that no cache keeps. Then the
//! blocks follow each other, and threads share one workspace: they fill it together, and each computes a part. Long signals are cut
//! into pieces first. Roof: two multiply-adds a cycle.

mod block;
mod pieces;

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::prim::{PrimExpr, add, floordiv, int, min, mul, sub};

use super::super::affine::{ceil_div, product};
use super::super::{Axis, Cx, Machine, Reduce, Refusal, nest};
use super::contraction::Contraction;
use super::window::{Windowed, Workspace, rows_per_block};
use crate::Stmt;
use block::{Block, MOST_VECTORS};

/// Output rows below which a block's halo costs too much.
const LEAST_ROWS: i64 = 4;
/// Blocks of rows that an image has at least, for threads to share.
const BLOCKS: i64 = 4;
/// Numbers of parts into which channels may be divided, the best first.
const PARTS: [i64; 3] = [8, 4, 2];
/// Channels of a part at least.
const LEAST_CHANNELS: i64 = 32;
/// Taps of a kernel's row that are unrolled at most: machine code, and the time to make it, grow with them.
const MOST_TAPS: i64 = 16;

/// Makes the nest of a convolution.
pub fn apply(cx: &mut Cx, reduce: &Reduce) -> Result<Stmt, Refusal> {
    let (_, window) = windowed(reduce)?;
    match pieces::length(cx, &window) {
        Some(length) => pieces::cut(cx, reduce, &window.x.axis, length, whole),
        None => whole(cx, reduce),
    }
}

/// The channels of the output, and the window.
fn windowed(reduce: &Reduce) -> Result<(Axis, Windowed), Refusal> {
    let mut contraction = Contraction::of(reduce)?;
    let Some(channel) = contraction.rows.pop() else {
        return Err(Refusal::new("no axis belongs to the weights alone"));
    };
    if !contraction.rows.is_empty() {
        return Err(Refusal::new("several axes belong to the weights alone"));
    }
    let window = Windowed::of(contraction)?;
    if let Some(taps) = window.x.tap.as_ref().and_then(|tap| tap.extent.as_int()).filter(|n| *n > MOST_TAPS) {
        return Err(Refusal::new(format!(
            "a row of the kernel has {taps} taps, and more than {MOST_TAPS} are too many to unroll"
        )));
    }
    Ok((channel, window))
}

/// The nest of all of it.
fn whole(cx: &mut Cx, reduce: &Reduce) -> Result<Stmt, Refusal> {
    let (channel, window) = windowed(reduce)?;
    let dtype = reduce.stage.output.dtype;
    let weights = product(reduce.stage.reduce.iter().map(|a| &a.extent).chain([&channel.extent])).as_int();
    let heavy = weights.is_some_and(|n| n * i64::from(dtype.bits / 8) > cx.machine.l2);
    let parts = if heavy || window.y.is_none() { parts_of(&channel) } else { 1 };
    let (pitch, block) = (Var::dim("pitch"), Var::dim("rows"));
    let known = |e: &PrimExpr, var| if e.as_int().is_some() { e.clone() } else { PrimExpr::from(var) };
    let (pitch_value, height) = (window.pitch(), height_of(&window));
    let pitch_name = known(&pitch_value, &pitch);
    let blocks_to_share = |height: &PrimExpr| ceil_div(height, if parts > 1 { 1 } else { BLOCKS });
    let rows = rows_per_block(&window, &pitch_name, cx.machine.l2 / 2, LEAST_ROWS, blocks_to_share);
    let rows = even(&rows, &height);
    let most = known(&rows, &block);
    // Long rows of unknown length end in whole tiles.
    let known = [&most, &height, &pitch_name].iter().all(|e| e.as_int().is_some()) && divides(&most, &height);
    let vectors = if known { 1 } else { MOST_VECTORS };
    let space = Workspace::new(&window, dtype, (cx.machine.lanes(dtype), vectors), &most, pitch_name);
    let part = Part::of(&channel, parts);
    let nest = Blocks { reduce, window: &window, space: &space, part: &part, most: &most }.emit(cx, heavy)?;
    Ok(Stmt::seq([Stmt::bind(pitch, pitch_value), Stmt::bind(block, rows), nest]))
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
}

impl Blocks<'_> {
    /// Their nest. With `shared`, parts of the channels share a workspace.
    fn emit(&self, cx: &mut Cx, shared: bool) -> Result<Stmt, Refusal> {
        let (window, part, most, height) = (self.window, self.part, self.most, height_of(self.window));
        let (p, block, y0, count) = (Var::dim("p"), Var::dim("block"), Var::dim("y0"), Var::dim("count"));
        let mut axes = window.outer.clone();
        axes.push(Axis { var: block.clone(), extent: floordiv(add(&height, sub(most, int(1))), most) });
        let shared = shared && part.of > 1;
        if part.of > 1 && !shared {
            axes.push(Axis { var: part.var.clone(), extent: int(part.of) });
        }
        let (tasks, mut body) = nest::fuse(&axes, &p);
        let first = PrimExpr::from(&y0);
        let lines = if divides(most, &height) { most.clone() } else { min(most.clone(), sub(&height, &first)) };
        let count_name = lines.as_int().map_or(PrimExpr::from(&count), int);
        body.push(Stmt::bind(y0, mul(PrimExpr::from(&block), most)));
        body.push(Stmt::bind(count, lines));
        let products = Block { window, part, space: self.space, y0: &first, count: &count_name, most }.emit(cx)?;
        let (machine, image) = (cx.machine.clone(), (&first, &count_name));
        let alloc = Stmt::alloc(&self.space.buffer);
        let stage = &self.reduce.stage;
        if shared {
            let pixels = product([&window.depth(), &self.space.pitch, &height]);
            let fill =
                window.fill(cx, self.space, image, |channels, row| in_parallel(&machine, channels, pixels, row))?;
            let sums = product(stage.reduce.iter().chain([part.channel, &window.x.axis]).map(|a| &a.extent));
            let work = floordiv(mul(sums, height), int(4));
            body.extend([fill, nest::parallel(&machine, part.var.clone(), int(part.of), work, products)]);
            return Ok(Stmt::seq([alloc, Stmt::serial(p, tasks, Stmt::seq(body))]));
        }
        body.extend([alloc, window.fill(cx, self.space, image, nest::serial)?, products]);
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

/// Into how many parts the channels are divided: equal ones, so that all share one kernel.
fn parts_of(channel: &Axis) -> i64 {
    let Some(channels) = channel.extent.as_int() else { return 1 };
    PARTS.into_iter().find(|parts| channels % parts == 0 && channels / parts >= LEAST_CHANNELS).unwrap_or(1)
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
    fn of(channel: &'a Axis, parts: i64) -> Self {
        let var = Var::dim("part");
        match channel.extent.as_int() {
            Some(channels) if parts > 1 => {
                let count = channels / parts;
                Self { channel, first: mul(PrimExpr::from(&var), int(count)), count: int(count), of: parts, var }
            }
            _ => Self { channel, first: int(0), count: channel.extent.clone(), of: 1, var },
        }
    }
}
