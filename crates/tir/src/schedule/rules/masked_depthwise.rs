//! Depthwise convolution of small or strided images whose sizes are known: vectors of the image itself, in the lanes of masks.
//!
//! ```text
//! parallel p over (n, c):
//!     acc[0 .. vectors] = 0
//!     for ry, rx (unrolled):                           # constant masks: which lanes have a pixel under this tap
//!         w = W[c, ry, rx]
//!         acc[j] += w * X[c, j*16 + ry*width + rx - padding ..]    where mask[ry, rx, j]
//!     C[c, j*16 ..] = epilogue(acc[j])
//! ```
//!
//! A workspace with zero borders, as the rule `depthwise` has it, costs more than the products of an image of 7×7 or 14×14. Here padding is
//! in the masks. Where the output has as many columns as the image, a plane is one long row: a vector goes on from row to row, and what a tap
//! would take from the row's other end is masked; everything is unrolled. Otherwise a vector is a part of a row of the output, and strided loads
//! pick its columns, also in larger images: there a loop goes over the rows that have no padding above and below. Processors without masked
//! loads keep the workspace. Roof: two multiply-adds a cycle, then loads.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{
    BinaryOp, BufferLoad, PrimExpr, VarMap, add, binary, broadcast, constant, floordiv, ge, int, int_of, load, lt, mul,
    ramp, substitute,
};
use relaxide_ir::{Buffer, DataType, Var};

use super::super::affine::{coefficient, product, uses};
use super::super::inline::freshen_lets;
use super::super::lanes::{Mask, multiply_add, splat};
use super::super::nest::Tile;
use super::super::parameters::{Choices, Domain, Guess};
use super::super::{Cx, Machine, Reduce, Refusal, nest};
use super::contraction::Contraction;
use super::register_tile::{RegisterTile, Rows};
use super::rule::{self, Rule};
use super::window::{Window, Windowed};
use crate::Stmt;

/// Vectors times taps that are unrolled at most: machine code, and the time to make it, grow with them.
const MOST_STEPS: i64 = 450;
/// Taps from which one load should serve several rows of the output, as the workspace has it, and vectors up to which it matters less.
const MANY_TAPS: i64 = 16;
const FEW_VECTORS: i64 = 8;
/// Bytes of a vector from which on processors load in the lanes of a mask at once, and store so.
const MASKED_LOADS: i64 = 32;
const MASKED_STORES: i64 = 64;

/// The rule.
pub struct MaskedDepthwise;

/// A depthwise convolution of known size.
pub struct Found<'w> {
    reduce: &'w Reduce,
    window: Windowed,
    y: Window,
    image: Image,
    /// Rows and columns of the output.
    height: i64,
    width: i64,
}

/// Where pixels come from.
struct Image {
    buffer: Ref<Buffer>,
    /// The flat index of the pixel at the first row and column, which may lie in the padding.
    start: PrimExpr,
    /// Elements from a row to the next.
    pitch: i64,
    /// Which rows and columns are no padding.
    rows: Vec<bool>,
    columns: Vec<bool>,
}

/// What a vector of the output is.
#[derive(Clone, Copy, PartialEq)]
enum Layout {
    /// A part of the plane, which is one long row.
    Plane,
    /// A part of a row of the output.
    Row,
}

/// What the rule decides.
pub struct Decided {
    lanes: i64,
    layout: Layout,
    /// Vectors that are summed at once.
    accumulators: i64,
    /// Whether the whole plane is unrolled.
    unrolls: bool,
}

impl Rule for MaskedDepthwise {
    type Work = Reduce;
    type Found<'w> = Found<'w>;
    type Decided = Decided;

    fn find<'w>(machine: &Machine, reduce: &'w Reduce) -> Result<Found<'w>, Refusal> {
        if machine.vector_bytes < MASKED_LOADS {
            return Err(Refusal::new("the processor has no masked loads"));
        }
        let contraction = Contraction::of(reduce)?;
        if !contraction.rows.is_empty() {
            return Err(Refusal::new("an axis belongs to the weights alone"));
        }
        let window = Windowed::of(contraction)?;
        let Some(y) = window.y.clone() else { return Err(Refusal::new("the output is one row")) };
        if !window.channels.is_empty() {
            return Err(Refusal::new("several channels are summed"));
        }
        let (Some(height), Some(width)) = (y.axis.extent.as_int(), window.x.axis.extent.as_int()) else {
            return Err(Refusal::new("the size of the image is not known"));
        };
        let image = Image::of(&window, &y, height, width)?;
        Ok(Found { reduce, window, y, image, height, width })
    }

    fn decide(machine: &Machine, found: &Found<'_>, choices: &mut Choices<'_>) -> Result<Decided, Refusal> {
        let lanes = rule::lanes(choices, machine.lanes(found.reduce.stage.output.dtype));
        let layout = found.layout(machine, lanes)?;
        let taps = found.window.count_taps();
        let in_row = (found.width + lanes - 1) / lanes;
        let vectors = match layout {
            Layout::Plane => (found.height * found.width + lanes - 1) / lanes,
            Layout::Row => found.height * in_row,
        };
        let unrolls = vectors * taps <= MOST_STEPS;
        if taps >= MANY_TAPS && vectors > FEW_VECTORS {
            return Err(Refusal::new("one load is to serve several rows of the output"));
        }
        if !unrolls && (layout == Layout::Plane || 4 * in_row * taps > MOST_STEPS) {
            return Err(Refusal::new("the image is too large to unroll"));
        }
        let vectors = if unrolls { vectors } else { in_row };
        // Beside them a weight and a vector of pixels.
        let most = machine.vector_registers - 2;
        let groups = (vectors + most - 1) / most;
        let accumulators = choices.choose(Guess {
            name: "accumulators",
            value: (vectors + groups - 1) / groups,
            domain: Domain::range(1, most),
            reason: "so many vectors of the plane use one weight, as evenly as registers allow",
            limit: "accumulators of more have no registers",
        });
        Ok(Decided { lanes, layout, accumulators, unrolls })
    }

    fn emit(cx: &mut Cx, found: &Found<'_>, decided: &Decided) -> Result<Stmt, Refusal> {
        let p = Var::dim("p");
        let (tasks, mut body) = nest::fuse(&found.window.outer, &p);
        match decided.layout {
            Layout::Plane => found.plane(cx, decided, &mut body)?,
            Layout::Row => found.rows(cx, decided, &mut body)?,
        }
        let extents = found.reduce.stage.spatial.iter().chain(&found.reduce.stage.reduce).map(|a| &a.extent);
        let work = floordiv(product(extents), int(4));
        Ok(nest::parallel(&cx.machine, p, tasks, work, Stmt::seq(body)))
    }
}

impl Image {
    /// The image of a window: one tensor, with zeros around it.
    fn of(window: &Windowed, y: &Window, height: i64, width: i64) -> Result<Image, Refusal> {
        let ((_, image_x, image_y), (guard, n, flat)) = (window.image(), window.pixel()?);
        let Some(pitch) = coefficient(&flat, image_y) else {
            return Err(Refusal::new("rows of the image are not contiguous"));
        };
        let first = VarMap::from([(image_x.clone(), int(0)), (image_y.clone(), int(0))]);
        let covered = |window: &Window, extent: i64| (extent - 1) * window.stride + window.dilated_extent;
        let rows = inside(&guard, image_y, image_x, covered(y, height))?;
        let columns = inside(&guard, image_x, image_y, covered(&window.x, width))?;
        Ok(Image { buffer: n.buffer.clone(), start: substitute(&flat, &first), pitch, rows, columns })
    }
}

/// For each place along an axis whether all the conditions on it hold.
fn inside(guard: &[PrimExpr], axis: &Ref<Var>, other: &Ref<Var>, extent: i64) -> Result<Vec<bool>, Refusal> {
    let own: Vec<&PrimExpr> = guard.iter().filter(|c| uses(c, axis)).collect();
    if own.iter().any(|c| uses(c, other)) || guard.iter().any(|c| !uses(c, axis) && !uses(c, other)) {
        return Err(Refusal::new("the padding is no frame"));
    }
    let holds = |condition: &PrimExpr, at: i64| {
        let decided = substitute(condition, &VarMap::from([(axis.clone(), int(at))])).as_int();
        decided.map(|truth| truth != 0).ok_or_else(|| Refusal::new("the padding is not known"))
    };
    (0..extent).map(|at| own.iter().try_fold(true, |all, c| Ok(all && holds(c, at)?))).collect()
}

impl Found<'_> {
    fn layout(&self, machine: &Machine, lanes: i64) -> Result<Layout, Refusal> {
        let stride = self.window.x.stride;
        if stride == 1 && self.y.stride == 1 && self.image.pitch == self.width && self.window.is_one_row(&self.y) {
            return Ok(Layout::Plane);
        }
        if stride > 2 || 2 * self.width < lanes - 2 || stride == 1 && self.width > lanes {
            return Err(Refusal::new("a row of the output is no vector"));
        }
        if machine.vector_bytes < MASKED_STORES && self.width < lanes {
            return Err(Refusal::new("masked stores are slow"));
        }
        Ok(Layout::Row)
    }

    /// The plane as one long row, some vectors at once. The last one is moved back to end with the plane.
    fn plane(&self, cx: &mut Cx, decided: &Decided, body: &mut Vec<Stmt>) -> Result<(), Refusal> {
        let (lanes, all) = (decided.lanes, self.height * self.width);
        let at = VarMap::from([(self.y.axis.var.clone(), int(0))]);
        let mut group = |base: i64, vectors: i64, mask: Option<Mask>| -> Result<(), Refusal> {
            let (tile, rows) = (Tile { base: int(base), vectors, mask }, Rows::full(int(0), 1));
            let tile = self.tile(lanes, None, &rows, &tile, &at);
            let place = |_, j: i64, lane: i64| {
                let at = base + j * lanes + lane;
                (at < all).then_some((at / self.width, at % self.width))
            };
            body.push(self.sums(cx, &tile, None, &place)?);
            Ok(())
        };
        let whole = all / lanes;
        for first in (0..whole).step_by(decided.accumulators as usize) {
            group(first * lanes, decided.accumulators.min(whole - first), None)?;
        }
        match all % lanes {
            0 => Ok(()),
            _ if whole > 0 => group(all - lanes, 1, None),
            rest => group(0, 1, Some(Mask::first(int(rest)))),
        }
    }

    /// Each row of the output as vectors, the last one moved back to end with it; some rows at once where all of them are unrolled.
    fn rows(&self, cx: &mut Cx, decided: &Decided, body: &mut Vec<Stmt>) -> Result<(), Refusal> {
        let lanes = decided.lanes;
        let whole = self.width / lanes;
        let mut parts = Vec::new();
        if whole > 0 {
            parts.push(Tile { base: int(0), vectors: whole, mask: None });
        }
        if self.width < lanes {
            parts.push(Tile { base: int(0), vectors: 1, mask: Some(Mask::first(int(self.width))) });
        } else if self.width % lanes > 0 {
            parts.push(Tile { base: int(self.width - lanes), vectors: 1, mask: None });
        }
        for tile in &parts {
            if decided.unrolls {
                let at_once = (decided.accumulators / tile.vectors).max(1);
                for first in (0..self.height).step_by(at_once as usize) {
                    body.push(self.lines(cx, lanes, tile, first, at_once.min(self.height - first))?);
                }
            } else {
                body.push(self.all_lines(cx, lanes, tile)?);
            }
        }
        Ok(())
    }

    /// A part of all rows: a loop over those under which no row is padding, and the others one by one.
    fn all_lines(&self, cx: &mut Cx, lanes: i64, tile: &Tile) -> Result<Stmt, Refusal> {
        let inside = |y: &i64| self.y.offsets().all(|below| self.image.rows[(y * self.y.stride + below) as usize]);
        let low = (0..self.height).find(inside).unwrap_or(self.height);
        let high = (low..self.height).find(|y| !inside(y)).unwrap_or(self.height);
        let mut list = Vec::new();
        for y in (0..low).chain(high..self.height) {
            list.push(self.lines(cx, lanes, tile, y, 1)?);
        }
        if high > low {
            let (t, none) = (Var::dim("line"), VarMap::new());
            let line = add(PrimExpr::from(&t), int(low));
            let rows = Rows::full(line.clone(), 1);
            let kernel = self.tile(lanes, Some(&self.y.axis.var), &rows, tile, &none);
            let base = tile.base.as_int().unwrap_or(0);
            let place = |_, j: i64, lane: i64| self.column(base + j * lanes + lane).map(|x| (0, x));
            let inner = self.sums(cx, &kernel, Some(&line), &place)?;
            list.push(Stmt::serial(t, int(high - low), inner));
        }
        Ok(Stmt::seq(list))
    }

    /// A part of some rows.
    fn lines(&self, cx: &mut Cx, lanes: i64, tile: &Tile, first: i64, count: i64) -> Result<Stmt, Refusal> {
        let (rows, none) = (Rows::full(int(first), count), VarMap::new());
        let kernel = self.tile(lanes, Some(&self.y.axis.var), &rows, tile, &none);
        let base = tile.base.as_int().unwrap_or(0);
        let place = |i: i64, j: i64, lane: i64| self.column(base + j * lanes + lane).map(|x| (first + i, x));
        self.sums(cx, &kernel, None, &place)
    }

    /// A column of the output, if there is one at a place.
    fn column(&self, x: i64) -> Option<i64> {
        (x < self.width).then_some(x)
    }

    /// A register tile of the output; `at` is what other axes than those of its rows and columns stand for.
    fn tile<'a>(
        &'a self,
        lanes: i64,
        row_axis: Option<&'a Ref<Var>>,
        rows: &'a Rows,
        tile: &'a Tile,
        at: &'a VarMap,
    ) -> RegisterTile<'a> {
        let (reduce, column_axis) = (&self.window.c.reduce, &self.window.x.axis.var);
        RegisterTile { reduce, row_axis, column_axis, lanes, rows, tile, at, sums: None, by_row: false, beside: None }
    }

    /// The sums of a tile, and their epilogue. `place` is the row and the column of a lane of an accumulator, if it has one; rows are
    /// counted from `line` where that is known at run time, and then none under it is padding.
    fn sums(
        &self,
        cx: &mut Cx,
        tile: &RegisterTile<'_>,
        line: Option<&PrimExpr>,
        place: &dyn Fn(i64, i64, i64) -> Option<(i64, i64)>,
    ) -> Result<Stmt, Refusal> {
        let (dtype, lanes) = (self.reduce.stage.output.dtype, tile.lanes);
        let acc = Buffer::scoped("acc", dtype, [int(tile.rows.count * tile.tile.vectors * lanes)], "local");
        let zero = splat(constant(dtype, 0.0), lanes);
        let mut list = vec![Stmt::alloc(&acc)];
        list.extend(tile.cells().map(|(i, j)| Stmt::store(&acc, [tile.cell(i, j)], zero.clone())));
        for ((ry, below), (rx, right)) in self.taps(cx.machine.deterministic) {
            let weight = Var::prim("w", dtype.with_lanes(lanes as u16));
            list.push(Stmt::bind(weight.clone(), splat(self.weight(ry, rx), lanes)));
            for (i, j) in tile.cells() {
                let pixels = (0..lanes).map(|lane| {
                    let (y, x) = place(i, j, lane)?;
                    Some((y * self.y.stride + below, x * self.window.x.stride + right))
                });
                let first = line.map(|line| mul(line.clone(), int(self.y.stride)));
                let pixels: Vec<_> = pixels.collect();
                let Some(pixels) = self.image.vector(cx, &pixels, first, self.window.x.stride) else { continue };
                let so_far = load(&acc, [tile.cell(i, j)]);
                let sum = multiply_add(cx.machine.fma, PrimExpr::from(&weight), pixels, so_far);
                list.push(Stmt::store(&acc, [tile.cell(i, j)], sum));
            }
        }
        list.extend(tile.emit_epilogues(cx, &acc)?);
        Ok(Stmt::seq(list))
    }

    /// The taps with their offsets, row by row, or column by column, which is the order of [`depthwise`](super::depthwise).
    fn taps(&self, by_column: bool) -> Vec<((i64, i64), (i64, i64))> {
        let by_row = (0..).zip(self.y.offsets()).flat_map(|y| (0..).zip(self.window.x.offsets()).map(move |x| (y, x)));
        let mut taps: Vec<_> = by_row.collect();
        if by_column {
            taps.sort_by_key(|(_, x)| *x);
        }
        taps
    }

    /// The weight of a tap.
    fn weight(&self, ry: i64, rx: i64) -> PrimExpr {
        let taps = [(&self.y.tap, ry), (&self.window.x.tap, rx)];
        let map: VarMap = taps.into_iter().filter_map(|(tap, at)| Some((tap.as_ref()?.var.clone(), int(at)))).collect();
        freshen_lets(&substitute(&self.window.c.row, &map))
    }
}

impl Image {
    /// The pixels at some rows and columns, which follow each other by the stride; zero in the padding. `None` where all are in it.
    /// Rows that are counted from `line` are all there.
    fn vector(&self, cx: &mut Cx, at: &[Option<(i64, i64)>], line: Option<PrimExpr>, stride: i64) -> Option<PrimExpr> {
        let is_there = |(y, x): (i64, i64)| self.columns[x as usize] && (line.is_some() || self.rows[y as usize]);
        let there: Vec<bool> = at.iter().map(|at| at.is_some_and(is_there)).collect();
        let lane = there.iter().position(|there| *there)?;
        let (y, x) = at[lane]?;
        let first = y * self.pitch + x - lane as i64 * stride;
        let before = line.map_or_else(|| int(0), |line| mul(line, int(self.pitch)));
        let index = ramp(add(add(&self.start, before), int(first)), int(stride), at.len() as i64);
        let buffer = cx.views.flat(&self.buffer);
        Some(Ref::new(BufferLoad { buffer, indices: vec![index], predicate: lanes_where(&there) }).into())
    }
}

/// Some lanes as a vector of bools; `None` for all of them.
fn lanes_where(there: &[bool]) -> Option<PrimExpr> {
    let (i32, all) = (DataType::int(32), there.len() as i64);
    let lane = || ramp(int_of(i32, 0), int_of(i32, 1), all);
    let limit = |at: usize| broadcast(int_of(i32, at as i64), all);
    let mut run = None;
    let mut runs: Vec<PrimExpr> = Vec::new();
    for (at, there) in there.iter().copied().chain([false]).enumerate() {
        match (there, run) {
            (true, None) => run = Some(at),
            (false, Some(0)) if at as i64 == all => return None,
            (false, Some(from)) => {
                let (above, below) = (ge(lane(), limit(from)), lt(lane(), limit(at)));
                runs.push(binary(BinaryOp::And, above, below));
                run = None;
            }
            _ => {}
        }
    }
    runs.into_iter().reduce(|a, b| binary(BinaryOp::Or, a, b))
}
