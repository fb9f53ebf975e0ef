//! Contractions whose column operand slides a window over an image: convolutions.
//!
//! ```text
//! C[n, m, y, x] = sum over c, ry, rx of  W[m, c, ry, rx] * D(n, c, y*sy + ry*dy, x*sx + rx*dx)
//! ```
//!
//! `D` may be any expression: a load guarded by its padding, a scale on top. It is evaluated once for each of its elements,
//! into a *workspace* that later reads only whole vectors from:
//!
//! ```text
//! S[c][below][phase][row][column] = D(n, c, (y0 + row)*sy + below, column*sx + phase)
//! ```
//!
//! Padding is in it as zeros, strides are in it as `sy * sx` planes a channel, so that neighbours of the output are neighbours
//! in the workspace whatever the stride, along a row and across rows.

use relaxide_ffi::Ref;
use relaxide_ir::arith::{dims, gcd};
use relaxide_ir::prim::{
    BinaryOp, BufferLoad, PrimExpr, PrimMutator, PrimVisitor, VarMap, add, binary, constant, floordiv, floormod,
    if_then_else, int, lt, max, min, mul, ramp, sub, substitute,
};
use relaxide_ir::{Buffer, DataType, Var};

use super::super::affine::{ceil_div, coefficient, flat_index, linear, loads, product, same, uses};
use super::super::lanes::splat;
use super::super::nest::Tail;
use super::super::parameters::{Choices, Domain, Guess};
use super::super::{Axis, Cx, Refusal};
use super::contraction::{Contraction, is_zero};
use super::row::{Row, choice, conjuncts};
use crate::Stmt;

/// How an axis of the output moves over an axis of the image.
#[derive(Clone, Debug)]
pub struct Window {
    /// The axis of the output.
    pub axis: Axis,
    /// The axis of the kernel, if it has more than one element.
    pub tap: Option<Axis>,
    /// Elements of the image a step of the output.
    pub stride: i64,
    /// Elements of the image a step of the kernel.
    pub dilation: i64,
    /// Elements of the image under the kernel.
    pub dilated_extent: i64,
}

/// A contraction as a window that slides over an image.
#[derive(Clone, Debug)]
pub struct Windowed {
    /// The contraction.
    pub c: Contraction,
    /// Along the output's row.
    pub x: Window,
    /// Across rows; absent where the output is one row.
    pub y: Option<Window>,
    /// The image over `image_x`, `image_y` and all other axes.
    image: PrimExpr,
    image_x: Ref<Var>,
    image_y: Ref<Var>,
    /// Reduction axes that are no taps.
    pub channels: Vec<Axis>,
    /// Axes of the output that neither the window nor the row operand moves alone.
    pub outer: Vec<Axis>,
    /// The remainders of `x`'s taps by its stride, ascending.
    phases: Vec<i64>,
    /// What the remainders of `y`'s taps by its stride are multiples of.
    row_step: i64,
    /// Those remainders, each with how many strides its last tap lies below the first row.
    row_phases: Vec<(i64, Option<i64>)>,
}

impl Windowed {
    /// Reads a contraction as a sliding window.
    pub fn of(c: Contraction) -> Result<Windowed, Refusal> {
        let window = Windowed::of_any(c)?;
        if window.slides() { Ok(window) } else { Err(Refusal::new("no window slides")) }
    }

    /// The same of one whose window may be a single pixel next to the last one.
    pub fn of_any(c: Contraction) -> Result<Windowed, Refusal> {
        let (image_x, image_y) = (Var::dim("image_x"), Var::dim("image_y"));
        let (x, image) = slide(&c.column, &c.x, &c.inner, &image_x)?;
        let mut outer: Vec<Axis> = c.batch.iter().chain(&c.columns).cloned().collect();
        let mut image = image;
        let mut y = None;
        // The innermost of the column operand's axes runs across rows, where its access is that of a window.
        let candidates = c.columns.iter().chain(&c.batch).rev().cloned().collect::<Vec<_>>();
        for axis in candidates {
            let inner: Vec<Axis> =
                c.inner.iter().filter(|r| x.tap.as_ref().is_none_or(|t| t.var != r.var)).cloned().collect();
            if uses(&c.row, &axis.var) || !uses(&image, &axis.var) {
                continue;
            }
            if let Ok((window, moved)) = slide(&image, &axis, &inner, &image_y) {
                outer.retain(|a| a.var != axis.var);
                (y, image) = (Some(window), moved);
                break;
            }
        }
        let taps: Vec<&Axis> = [Some(&x), y.as_ref()].into_iter().flatten().filter_map(|w| w.tap.as_ref()).collect();
        let channels = c.inner.iter().filter(|r| taps.iter().all(|t| t.var != r.var)).cloned().collect();
        let mut phases: Vec<i64> = x.offsets().map(|o| o % x.stride).collect();
        phases.sort_unstable();
        phases.dedup();
        let (row_step, row_phases) = y.as_ref().map_or((1, vec![(0, Some(0))]), Window::phases_of_a_loop);
        Ok(Windowed { x, y, image, image_x, image_y, channels, outer, phases, row_step, row_phases, c })
    }

    /// Whether windows have more than a pixel, or leave some out between them.
    pub fn slides(&self) -> bool {
        self.x.stride != 1 || self.taps().next().is_some()
    }

    /// Whether there are rows that blocks and chunks may be made of: rows under a window, or as many images as are known. Images of which
    /// nobody knows how many there are, one as a rule, are divided by their pixels.
    pub fn has_rows_to_divide(&self) -> bool {
        self.y.as_ref().is_some_and(|y| y.tap.is_some() || y.stride != 1 || y.axis.extent.as_int().is_some())
    }

    /// The image over its column and its row, the two variables, and all other axes.
    pub fn image(&self) -> (&PrimExpr, &Ref<Var>, &Ref<Var>) {
        (&self.image, &self.image_x, &self.image_y)
    }

    /// Whether the output's rows, and those of all that its epilogue reads, follow each other: then a plane is one long row.
    pub fn is_one_row(&self, y: &Window) -> bool {
        let (x, y) = (&self.x.axis, &y.axis.var);
        let reduce = &self.c.reduce;
        let follows = |flat: PrimExpr| match (linear(&flat, &x.var), linear(&flat, y)) {
            (Some((step, _)), Some((pitch, _))) => dims::equal(&pitch, &mul(step, &x.extent)),
            _ => false,
        };
        let read = loads(&reduce.epilogue).into_iter().all(|n| follows(flat_index(&n.buffer, &n.indices)));
        read && follows(flat_index(&reduce.output, &reduce.indices)) && !counts(&reduce.epilogue, [&x.var, y])
    }

    /// The image as one tensor with zeros around it: the conditions under which a pixel is there, its load, and the load's flat index, which moves
    /// by one element with the column.
    pub fn pixel(&self) -> Result<(Vec<PrimExpr>, Ref<BufferLoad>, PrimExpr), Refusal> {
        let (guard, pixel) = match choice(&self.image) {
            Some((guard, pixel, zero)) if is_zero(zero) => (conjuncts(guard), pixel),
            Some(_) => return Err(Refusal::new("the padding is not zero")),
            None => (Vec::new(), &self.image),
        };
        let PrimExpr::Load(of) = pixel else { return Err(Refusal::new("pixels are computed")) };
        let flat = flat_index(&of.buffer, &of.indices);
        if coefficient(&flat, &self.image_x) != Some(1) {
            return Err(Refusal::new("rows of the image are not contiguous"));
        }
        if !loads(&flat).is_empty() {
            return Err(Refusal::new("pixels are gathered"));
        }
        Ok((guard, of.clone(), flat))
    }

    /// Elements of a workspace row, one phase of it, in which every row begins at a vector: the output's row in whole vectors,
    /// and the kernel's dilated extent.
    pub fn pitch_in_vectors(&self, lanes: i64) -> PrimExpr {
        add(mul(ceil_div(&self.x.axis.extent, lanes), int(lanes)), int(self.halo()))
    }

    /// Elements of a workspace row, one phase of it, without gaps: the output's row and the kernel's dilated extent.
    pub fn pitch(&self) -> PrimExpr {
        add(&self.x.axis.extent, int(self.halo()))
    }

    /// What a row of one phase has more than the output's.
    fn halo(&self) -> i64 {
        (self.x.dilated_extent - 1) / self.x.stride
    }

    /// Planes a channel.
    fn planes(&self) -> i64 {
        (self.phases.len() * self.row_phases.len()) as i64
    }

    /// Rows of a plane under some rows of the output.
    fn plane_rows(&self, rows: &PrimExpr) -> PrimExpr {
        match &self.y {
            Some(y) => add(rows, int((y.dilated_extent - 1) / y.stride)),
            None => int(1),
        }
    }

    /// The axes of the kernel.
    pub fn taps(&self) -> impl Iterator<Item = &Axis> {
        [Some(&self.x), self.y.as_ref()].into_iter().flatten().filter_map(|window| window.tap.as_ref())
    }

    /// Elements of the kernel.
    pub fn count_taps(&self) -> i64 {
        [Some(&self.x), self.y.as_ref()].into_iter().flatten().map(|window| window.offsets().count() as i64).product()
    }

    /// How many channels (points of the other reduction axes) there are.
    pub fn depth(&self) -> PrimExpr {
        product(self.channels.iter().map(|a| &a.extent))
    }

    /// Fills a workspace with the image rows under the output rows `y0 .. y0 + rows`.
    ///
    /// The planes of a channel follow in the order of memory, and each row by row: what one writes behind its end, another one
    /// overwrites. `loops` makes the loop over the channels, which do not touch each other.
    pub fn fill(
        &self,
        cx: &mut Cx,
        space: &Workspace,
        y0: &PrimExpr,
        rows: &PrimExpr,
        loops: impl FnOnce(&[Axis], Stmt) -> Stmt,
    ) -> Result<Stmt, Refusal> {
        let fresh: Vec<Axis> =
            self.channels.iter().map(|a| Axis { var: Var::dim(a.var.name.clone()), ..a.clone() }).collect();
        let map: VarMap =
            self.channels.iter().zip(&fresh).map(|(a, f)| (a.var.clone(), PrimExpr::from(&f.var))).collect();
        let channel = substitute(&self.channel_index(), &map);
        let mut planes = Vec::new();
        for (below, (first, last)) in self.row_phases.iter().enumerate() {
            let Some(last) = last else { continue };
            let count = self.y.as_ref().map_or(int(1), |_| add(rows, int(*last)));
            for (phase, offset) in self.phases.iter().enumerate() {
                let row = Var::dim("row");
                let mut at = map.clone();
                if let Some(y) = &self.y {
                    let line = mul(add(y0, PrimExpr::from(&row)), int(y.stride));
                    at.insert(self.image_y.clone(), add(line, int(*first)));
                }
                let start = space.index(&channel, &int(below as i64), phase as i64, &PrimExpr::from(&row), int(0));
                planes.push(Stmt::serial(row, count.clone(), self.fill_row(cx, space, at, *offset, &start)?));
                // What vectors may reach of what follows.
                let end = space.index(&channel, &int(below as i64), phase as i64, &count, int(0));
                let zero = splat(constant(space.buffer.dtype, 0.0), space.lanes);
                let behind = (0..space.vectors).map(|n| ramp(add(&end, int(n * space.lanes)), int(1), space.lanes));
                planes.extend(behind.map(|place| Stmt::store(&space.buffer, [place], zero.clone())));
            }
        }
        Ok(loops(&fresh, Stmt::seq(planes)))
    }

    /// One phase of one image row, from where on in the workspace.
    fn fill_row(
        &self,
        cx: &mut Cx,
        space: &Workspace,
        mut at: VarMap,
        phase: i64,
        start: &PrimExpr,
    ) -> Result<Stmt, Refusal> {
        let column = Var::dim("column");
        at.insert(self.image_x.clone(), add(mul(PrimExpr::from(&column), int(self.x.stride)), int(phase)));
        let value = substitute(&self.image, &at);
        // As far as the last output element reaches, in this phase.
        let covered =
            add(mul(sub(&self.x.axis.extent, int(1)), int(self.x.stride)), int(self.x.dilated_extent - phase));
        let inside = lt(PrimExpr::from(&column), ceil_div(&covered, self.x.stride));
        let value = bounded(inside, value, space.buffer.dtype);
        let row = Row {
            axis: &column,
            length: &space.pitch,
            lanes: space.lanes,
            buffer: &space.buffer,
            indices: &[add(start, PrimExpr::from(&column))],
            map: &VarMap::new(),
            tail: Tail::Padded,
            ahead: None,
        };
        row.emit(cx, &int(0), &space.pitch, &value)
    }

    /// The flat number of a channel.
    pub fn channel_index(&self) -> PrimExpr {
        self.channels.iter().fold(int(0), |k, a| add(mul(k, &a.extent), PrimExpr::from(&a.var)))
    }

    /// The vector of the workspace under a tap: `below` image rows under those of the block's output row `line`, `offset`
    /// elements behind the output's column `x`, which may lie behind the row's end and then is one of the next row.
    pub fn vector(
        &self,
        space: &Workspace,
        channel: &PrimExpr,
        line: &PrimExpr,
        below: &PrimExpr,
        offset: i64,
        x: &PrimExpr,
    ) -> PrimExpr {
        let index = self.under(space, channel, line, below, offset, x);
        relaxide_ir::prim::load(&space.buffer, [ramp(index, int(1), space.lanes)])
    }

    /// The vector at a column of a phase.
    pub fn load(
        &self,
        space: &Workspace,
        channel: &PrimExpr,
        line: &PrimExpr,
        below: &PrimExpr,
        phase: i64,
        column: PrimExpr,
    ) -> PrimExpr {
        let index = self.place(space, channel, line, below, phase, column);
        relaxide_ir::prim::load(&space.buffer, [ramp(index, int(1), space.lanes)])
    }

    /// Where the element of the workspace is that lies under a tap.
    pub fn under(
        &self,
        space: &Workspace,
        channel: &PrimExpr,
        line: &PrimExpr,
        below: &PrimExpr,
        offset: i64,
        x: &PrimExpr,
    ) -> PrimExpr {
        let phase = self.phases.iter().position(|p| *p == offset % self.x.stride).unwrap_or(0);
        self.place(space, channel, line, below, phase as i64, add(x, int(offset / self.x.stride)))
    }

    /// Where the element of a phase is.
    fn place(
        &self,
        space: &Workspace,
        channel: &PrimExpr,
        line: &PrimExpr,
        below: &PrimExpr,
        phase: i64,
        column: PrimExpr,
    ) -> PrimExpr {
        let stride = int(self.y.as_ref().map_or(1, |y| y.stride));
        let plane = floordiv(floormod(below, &stride), int(self.row_step));
        space.index(channel, &plane, phase, &add(line, floordiv(below, stride)), column)
    }
}

impl Window {
    /// The kernel's elements along this axis, as offsets in the image.
    pub fn offsets(&self) -> impl Iterator<Item = i64> + '_ {
        let taps = self.tap.as_ref().and_then(|t| t.extent.as_int()).unwrap_or(1);
        (0..taps).map(|t| t * self.dilation)
    }

    /// The remainders of the taps by the stride where the tap is the counter of a loop: multiples of a number, which is
    /// returned, too. Each comes with how many strides its last tap lies behind the first element, if it has any.
    fn phases_of_a_loop(&self) -> (i64, Vec<(i64, Option<i64>)>) {
        let last = |phase: i64| self.offsets().filter(|o| o % self.stride == phase).map(|o| o / self.stride).max();
        let present = |phase: &i64| last(*phase).is_some();
        let step = (1..self.stride).find(present).map_or(self.stride, |_| gcd(self.dilation, self.stride));
        let end = (0..self.stride).rev().find(present).unwrap_or(0);
        (step, (0..=end).step_by(step as usize).map(|phase| (phase, last(phase))).collect())
    }
}

/// The memory of a window's image rows.
pub struct Workspace {
    /// The memory, flat.
    pub buffer: Ref<Buffer>,
    /// Lanes of a vector.
    pub lanes: i64,
    /// Elements from a row of a plane to the next.
    pub pitch: PrimExpr,
    /// Rows a plane.
    rows: PrimExpr,
    /// Planes a channel, and those of one remainder of the rows.
    planes: i64,
    phases: i64,
    /// Vectors that reads go on for behind a plane, and elements behind the planes of a channel.
    vectors: i64,
    gap: i64,
}

impl Workspace {
    /// Room for the image rows under so many output rows, of every channel. Reads may go on for so many vectors behind the
    /// last row.
    pub fn new(
        window: &Windowed,
        dtype: DataType,
        lanes: i64,
        vectors: i64,
        rows: &PrimExpr,
        pitch: PrimExpr,
    ) -> Workspace {
        let rows = window.plane_rows(rows);
        // A row's last vector may be written behind its end, too.
        let gap = lanes * vectors.max(1);
        let channel = add(mul(&rows, mul(&pitch, int(window.planes()))), int(gap));
        let buffer = Buffer::new("image", dtype, [mul(window.depth(), channel)]);
        let (planes, phases) = (window.planes(), window.phases.len() as i64);
        Workspace { buffer, lanes, pitch, rows, planes, phases, vectors, gap }
    }

    /// The flat index of an element; `below` is the number of the remainder of its row.
    fn index(&self, channel: &PrimExpr, below: &PrimExpr, phase: i64, row: &PrimExpr, column: PrimExpr) -> PrimExpr {
        let plane = add(add(mul(channel, int(self.planes)), mul(below, int(self.phases))), int(phase));
        let start = add(mul(add(mul(plane, &self.rows), row), &self.pitch), mul(channel, int(self.gap)));
        add(start, column)
    }
}

/// Whether a value depends on axes by more than what it loads.
fn counts(value: &PrimExpr, axes: [&Ref<Var>; 2]) -> bool {
    struct Outside<'a>([&'a Ref<Var>; 2], bool);
    impl PrimVisitor for Outside<'_> {
        fn visit_prim(&mut self, e: &PrimExpr) {
            match e {
                PrimExpr::Load(_) => {}
                PrimExpr::Var(var) => self.1 |= self.0.contains(&var),
                _ => self.walk_prim(e),
            }
        }
    }
    let mut outside = Outside(axes, false);
    outside.visit_prim(value);
    outside.1
}

/// A value inside a bound and zero outside; a guard of the value's own joins the bound.
fn bounded(inside: PrimExpr, value: PrimExpr, dtype: DataType) -> PrimExpr {
    let zero = constant(dtype, 0.0);
    if let PrimExpr::Call(n) = &value
        && let ("tirx.if_then_else", [condition, t, f]) = (n.op.as_str(), n.args.as_slice())
        && same(f, &zero)
    {
        return if_then_else(binary(BinaryOp::And, inside, condition.clone()), t.clone(), zero);
    }
    if_then_else(inside, value, zero)
}

/// Rewrites an operand over `image = axis * stride + tap * dilation`, where all that depends on the axis does so that way.
pub(in super::super) fn slide(
    e: &PrimExpr,
    axis: &Axis,
    inner: &[Axis],
    image: &Ref<Var>,
) -> Result<(Window, PrimExpr), Refusal> {
    let indices =
        loads(e).into_iter().flat_map(|l| l.indices.clone()).filter(|i| uses(i, &axis.var)).collect::<Vec<_>>();
    let Some(index) = indices.first() else { return Err(Refusal::new(format!("{} moves nothing", axis.var.name))) };
    let step = |var: &Ref<Var>| linear(index, var).and_then(|(c, _)| c.as_int());
    let Some(stride) = step(&axis.var).filter(|s| *s > 0) else {
        return Err(Refusal::new(format!("the operand is not linear in {}", axis.var.name)));
    };
    let mut taps = inner.iter().filter(|r| uses(index, &r.var));
    let tap = taps.next().cloned();
    if taps.next().is_some() {
        return Err(Refusal::new("an index has several taps"));
    }
    let (dilation, dilated_extent) = match &tap {
        None => (1, 1),
        Some(t) => {
            let dilation = step(&t.var).filter(|d| *d > 0);
            match (dilation, t.extent.as_int()) {
                (Some(d), Some(n)) if n > 0 => (d, (n - 1) * d + 1),
                _ => return Err(Refusal::new("a tap has no constant extent and step")),
            }
        }
    };
    let window = Window { axis: axis.clone(), tap, stride, dilation, dilated_extent };
    let moved = Slide { window: &window, image }.mutate_prim(e);
    let left = uses(&moved, &axis.var) || window.tap.as_ref().is_some_and(|t| uses(&moved, &t.var));
    if left { Err(Refusal::new("the operand depends on more than the window")) } else { Ok((window, moved)) }
}

struct Slide<'a> {
    window: &'a Window,
    image: &'a Ref<Var>,
}

impl Slide<'_> {
    /// `t * (stride * axis + dilation * tap) + rest` as `t * image + rest`.
    fn replaced(&self, e: &PrimExpr) -> Option<PrimExpr> {
        let (moved, rest) = linear(e, &self.window.axis.var)?;
        let moved = moved.as_int()?;
        let (tapped, rest) = match &self.window.tap {
            Some(tap) => {
                let (tapped, rest) = linear(&rest, &tap.var)?;
                (tapped.as_int()?, rest)
            }
            None => (0, rest),
        };
        let times = moved / self.window.stride;
        let fits = moved != 0
            && times * self.window.stride == moved
            && (self.window.tap.is_none() || times * self.window.dilation == tapped);
        fits.then(|| add(mul(PrimExpr::from(self.image), int(times)), rest))
    }
}

impl PrimMutator for Slide<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        if matches!(e, PrimExpr::Binary(_) | PrimExpr::Var(_))
            && e.dtype().is_int()
            && uses(e, &self.window.axis.var)
            && let Some(replaced) = self.replaced(e)
        {
            return replaced;
        }
        self.remake_prim(e)
    }
}

/// Output rows a block: as many as a workspace of `budget` bytes holds, but no fewer than `least`, which keeps the halo from
/// dominating; `at_most` caps it.
pub fn rows_per_block(
    window: &Windowed,
    pitch: &PrimExpr,
    budget: i64,
    least: i64,
    at_most: impl FnOnce(&PrimExpr) -> PrimExpr,
) -> PrimExpr {
    let Some(y) = &window.y else { return int(1) };
    let bytes = i64::from(window.c.reduce.stage.output.dtype.bits / 8).max(1);
    let row = mul(mul(window.depth(), pitch), int(window.planes()));
    let fitting = max(floordiv(int(budget / bytes), max(row, int(1))), int(least));
    max(min(fitting, at_most(&y.axis.extent)), int(1))
}

/// How many output rows a block of images has at least, where blocks share image rows.
pub(super) fn least_rows(choices: &mut Choices<'_>, value: i64) -> i64 {
    choices.choose(Guess {
        name: "least_rows",
        value,
        domain: Domain::range(1, 64),
        reason: "with so many output rows a block, the image rows that two blocks share are a small part",
        limit: "a block has a row, and more than that leave no blocks to share",
    })
}
