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
//! S[c][row][phase][column] = D(n, c, y0*sy + row, column*sx + phase)
//! ```
//!
//! Padding is in it as zeros, a stride of `sx` is in it as `sx` phases a row, so that neighbours of the output are
//! neighbours in the workspace whatever the stride; rows end in a slack of zeros, so that only stores need masks.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{
    BinaryOp, PrimExpr, PrimMutator, VarMap, add, binary, constant, floordiv, if_then_else, int, lt, max, min, mul,
    ramp, sub, substitute,
};
use relaxide_ir::{Buffer, DataType, Var};

use super::super::affine::{ceil_div, linear, loads, product, same, uses};
use super::super::{Axis, Cx, Refusal, nest};
use super::contraction::Contraction;
use super::row::{Row, Tail};
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
    pub reach: i64,
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
}

impl Windowed {
    /// Reads a contraction as a sliding window.
    pub fn of(c: Contraction) -> Result<Windowed, Refusal> {
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
        if taps.is_empty() && x.stride == 1 {
            return Err(Refusal::new("no window slides"));
        }
        let channels = c.inner.iter().filter(|r| taps.iter().all(|t| t.var != r.var)).cloned().collect();
        let mut phases: Vec<i64> = x.offsets().map(|o| o % x.stride).collect();
        phases.sort_unstable();
        phases.dedup();
        Ok(Windowed { x, y, image, image_x, image_y, channels, outer, phases, c })
    }

    /// Elements of a workspace row, one phase of it: the output's row in whole vectors, and the kernel's reach.
    pub fn pitch(&self, lanes: i64) -> PrimExpr {
        let vectors = mul(ceil_div(&self.x.axis.extent, lanes), int(lanes));
        add(vectors, int((self.x.reach - 1) / self.x.stride))
    }

    /// Phases a row.
    pub fn phases(&self) -> i64 {
        self.phases.len() as i64
    }

    /// Rows of the image under some rows of the output.
    pub fn image_rows(&self, rows: &PrimExpr) -> PrimExpr {
        match &self.y {
            Some(y) => add(mul(sub(rows, int(1)), int(y.stride)), int(y.reach)),
            None => int(1),
        }
    }

    /// How many channels (points of the other reduction axes) there are.
    pub fn depth(&self) -> PrimExpr {
        product(self.channels.iter().map(|a| &a.extent))
    }

    /// Fills a workspace with the image rows under the output rows `y0 .. y0 + rows`.
    pub fn fill(&self, cx: &mut Cx, space: &Workspace, y0: &PrimExpr, rows: &PrimExpr) -> Result<Stmt, Refusal> {
        let (row, column) = (Var::dim("row"), Var::dim("column"));
        let fresh: Vec<Axis> =
            self.channels.iter().map(|a| Axis { var: Var::dim(a.var.name.clone()), ..a.clone() }).collect();
        let mut map: VarMap =
            self.channels.iter().zip(&fresh).map(|(a, f)| (a.var.clone(), PrimExpr::from(&f.var))).collect();
        let channel = substitute(&self.channel_index(), &map);
        if let Some(y) = &self.y {
            map.insert(self.image_y.clone(), add(mul(y0, int(y.stride)), PrimExpr::from(&row)));
        }
        let mut stores = Vec::new();
        for (place, phase) in self.phases.iter().enumerate() {
            let x = add(mul(PrimExpr::from(&column), int(self.x.stride)), int(*phase));
            let mut at = map.clone();
            at.insert(self.image_x.clone(), x);
            let value = substitute(&self.image, &at);
            let offset = space.index(&channel, &PrimExpr::from(&row), place as i64, int(0));
            // As far as the last output element reaches, in this phase.
            let reach = add(mul(sub(&self.x.axis.extent, int(1)), int(self.x.stride)), int(self.x.reach - phase));
            let count = ceil_div(&reach, self.x.stride);
            let inside = lt(PrimExpr::from(&column), count);
            let value = bounded(inside, value, self.c.reduce.stage.output.dtype);
            let indices = [add(offset, PrimExpr::from(&column))];
            let none = VarMap::new();
            let line = Row {
                axis: &column,
                lanes: space.lanes,
                buffer: &space.buffer,
                indices: &indices,
                map: &none,
                tail: Tail::Spilled,
                ahead: None,
            };
            stores.push(line.emit(cx, &int(0), &space.pitch, &value)?);
        }
        let body = Stmt::serial(row, self.image_rows(rows), Stmt::seq(stores));
        Ok(nest::serial(&fresh, body))
    }

    /// The flat number of a channel.
    pub fn channel_index(&self) -> PrimExpr {
        self.channels.iter().fold(int(0), |k, a| add(mul(k, &a.extent), PrimExpr::from(&a.var)))
    }

    /// The vector of the workspace under a tap of the row, at the output's column `x`.
    pub fn vector(
        &self,
        space: &Workspace,
        channel: &PrimExpr,
        image_row: &PrimExpr,
        offset: i64,
        x: &PrimExpr,
    ) -> PrimExpr {
        let phase = self.phases.iter().position(|p| *p == offset % self.x.stride).unwrap_or(0);
        let index = space.index(channel, image_row, phase as i64, add(x, int(offset / self.x.stride)));
        relaxide_ir::prim::load(&space.buffer, [ramp(index, int(1), space.lanes)])
    }
}

impl Window {
    /// The kernel's elements along this axis, as offsets in the image.
    pub fn offsets(&self) -> impl Iterator<Item = i64> + '_ {
        let taps = self.tap.as_ref().and_then(|t| t.extent.as_int()).unwrap_or(1);
        (0..taps).map(|t| t * self.dilation)
    }
}

/// The memory of a window's image rows.
pub struct Workspace {
    /// The memory, flat.
    pub buffer: Ref<Buffer>,
    /// Lanes of a vector.
    pub lanes: i64,
    /// Rows a channel.
    rows: PrimExpr,
    phases: i64,
    pitch: PrimExpr,
}

impl Workspace {
    /// Room for so many image rows of every channel.
    pub fn new(window: &Windowed, dtype: DataType, lanes: i64, rows: PrimExpr, pitch: PrimExpr) -> Workspace {
        let phases = window.phases();
        let size = mul(mul(window.depth(), &rows), mul(&pitch, int(phases)));
        // A row's last vector may reach into the next row, which is filled after it, and beyond the last one.
        let buffer = Buffer::new("image", dtype, [add(size, int(lanes))]);
        Workspace { buffer, lanes, rows, phases, pitch }
    }

    /// The flat index of an element.
    pub fn index(&self, channel: &PrimExpr, row: &PrimExpr, phase: i64, column: PrimExpr) -> PrimExpr {
        let line = add(mul(channel, &self.rows), row);
        add(mul(add(mul(line, int(self.phases)), int(phase)), &self.pitch), column)
    }
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
fn slide(e: &PrimExpr, axis: &Axis, inner: &[Axis], image: &Ref<Var>) -> Result<(Window, PrimExpr), Refusal> {
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
    let (dilation, reach) = match &tap {
        None => (1, 1),
        Some(t) => {
            let dilation = step(&t.var).filter(|d| *d > 0);
            match (dilation, t.extent.as_int()) {
                (Some(d), Some(n)) if n > 0 => (d, (n - 1) * d + 1),
                _ => return Err(Refusal::new("a tap has no constant extent and step")),
            }
        }
    };
    let window = Window { axis: axis.clone(), tap, stride, dilation, reach };
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
    let row = mul(mul(window.depth(), pitch), int(window.phases() * y.stride));
    let fitting = max(floordiv(int(budget / bytes), max(row, int(1))), int(least));
    max(min(fitting, at_most(&y.axis.extent)), int(1))
}
