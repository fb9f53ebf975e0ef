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
//! few tasks (signals of one dimension) or where every further block of rows would read weights that no cache keeps; each
//! part fills a workspace of its own, which costs little beside the products of enough channels. Roof: two multiply-adds a cycle.

mod block;

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::prim::{PrimExpr, add, floordiv, int, min, mul, sub};

use super::super::affine::{ceil_div, product};
use super::super::{Axis, Cx, Reduce, Refusal, nest};
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
/// Channels below which a part does not pay for its workspace, which takes longer to fill where columns are strided.
const LEAST_CHANNELS: i64 = 32;
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
