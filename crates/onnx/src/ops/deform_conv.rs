//! `DeformConv`: a convolution whose taps read between elements, each moved by an offset that is data.
//!
//! What the taps read is a tensor of its own; the rest is a sum over it. Where a tap reads does not depend on the channel, so its row and
//! column are tables, and so are the parts between two elements. Where channels fill vectors and are in one group, the image is transposed so
//! that they lie side by side, and the sum is a matrix product; else elements are gathered.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_relax::op::names::Names;
use relaxide_relax::op::window::all;
use relaxide_tir::te;

use super::conv::Window;
use super::{Outputs, one};
use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;

type Result<T> = std::result::Result<T, NodeError>;

/// What is read of the image: its dimensions, the window, and the result's height and width.
struct Sampling {
    image: Vec<PrimExpr>,
    window: Window,
    offset_group: i64,
    places: Vec<PrimExpr>,
    dtype: DataType,
}

/// Tables of what the taps read: the element in front of each along both axes, and how far behind that it reads.
struct Tables {
    whole: [te::Tensor; 2],
    part: [te::Tensor; 2],
}

/// Channels below which a vector is not full.
const LEAST_CHANNELS: i64 = 8;

/// `DeformConv`: a convolution whose taps are moved by offsets, over two spatial axes.
pub fn deform_conv(scope: &mut Scope, node: &Node) -> Outputs {
    let (x, w) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?);
    let offset = scope.tensor(node.input(2)?)?;
    let (shape, w_dims, places) = (scope.dims(&x)?, scope.dims(&w)?, scope.dims(&offset)?);
    if shape.len() != 4 || w_dims.len() != 4 || places.len() != 4 {
        return Err(NodeError::unsupported(format!("inputs of {} axes are not supported; of 4 they are", shape.len())));
    }
    let window = window(node, &shape, &w_dims)?;
    let positive = |name: &str| match node.int_or(name, 1)? {
        n @ 1.. => Ok(n),
        n => Err(NodeError::invalid(format!("`{name}` is {n}"))),
    };
    let (group, offset_group) = (positive("group")?, positive("offset_group")?);
    let (kh, kw) = (window.kernel[0], window.kernel[1]);
    let w = scope.agree(w, &[w_dims[0].clone(), w_dims[1].clone(), prim::int(kh), prim::int(kw)])?;
    let dtype = scope.dtype(&x);
    let sampling = Sampling { image: shape.clone(), window, offset_group, places: places.clone(), dtype };
    let mut wanted = shape.clone();
    wanted[1] = dims::simplify(&(&w_dims[1] * group));
    let x = scope.agree(x, &wanted)?;
    let offset = scope.agree(offset, &sampling.at_each(sampling.taps().saturating_mul(2)))?;
    let mask = match node.optional(4) {
        Some(mask) => {
            let mask = scope.tensor(mask)?;
            Some(scope.agree(mask, &sampling.at_each(sampling.taps()))?)
        }
        None => None,
    };
    let bias = node.optional(3).map(|bias| scope.tensor(bias)).transpose()?;
    if group == 1 && sampling.has_wide_channels() {
        let sampled = sampling.sampled_by_channels(scope, x, offset, mask)?;
        return one(sampling.product(scope, sampled, w, bias)?);
    }
    let sampled = sampling.sampled(scope, x, offset, mask)?;
    let (out_channels, own) = (&w_dims[0], &w_dims[1]);
    let out = vec![shape[0].clone(), out_channels.clone(), places[2].clone(), places[3].clone()];
    let per_group = dims::simplify(&prim::max(prim::floordiv(out_channels, group), 1));
    let mut y = scope.te("deform_conv", vec![sampled, w], |inputs| {
        vec![te::compute("deform_conv", &out, |at| {
            let over = [own.clone(), prim::int(kh), prim::int(kw)].map(te::reduce_axis);
            let channel = prim::floordiv(&at[1], &per_group) * own + over[0].var();
            let element =
                inputs[0].at(&[at[0].clone(), channel, over[1].var(), over[2].var(), at[2].clone(), at[3].clone()]);
            te::sum(element * inputs[1].at(&[at[1].clone(), over[0].var(), over[1].var(), over[2].var()]), &over)
        })]
    })?;
    if let Some(bias) = bias {
        let bias = scope.reshape(bias, vec![prim::int(1), out_channels.clone(), prim::int(1), prim::int(1)])?;
        y = scope.call("add", [y, bias])?;
    }
    one(y)
}

/// The window: of known extents, with pads that are known too.
fn window(node: &Node, shape: &[PrimExpr], w_dims: &[PrimExpr]) -> Result<Window> {
    let taps = match node.ints("kernel_shape")? {
        Some(taps) if taps.len() == 2 => taps,
        Some(taps) => return Err(NodeError::invalid(format!("`kernel_shape` is {taps:?}, not 2 numbers"))),
        None => w_dims[2..].iter().map(PrimExpr::as_int).collect::<Option<_>>().ok_or_else(|| {
            NodeError::unsupported("the weight's height and width are not fixed")
                .help("give the weight a fixed shape, or the node `kernel_shape`")
        })?,
    };
    let window = Window::read(node, taps, &shape[2..])?;
    if window.same.is_some() {
        return Err(NodeError::unsupported("`auto_pad` with a stride depends on a dimension that is not fixed")
            .help("give the input a fixed shape, or export the model with explicit `pads`"));
    }
    Ok(window)
}

impl Sampling {
    /// How many taps all groups have.
    fn taps(&self) -> i64 {
        self.window.kernel[0].saturating_mul(self.window.kernel[1]).saturating_mul(self.offset_group)
    }

    /// The dimensions of a tensor that has some numbers at each place of the result.
    fn at_each(&self, count: i64) -> Vec<PrimExpr> {
        vec![self.image[0].clone(), prim::int(count), self.places[2].clone(), self.places[3].clone()]
    }

    fn number(&self, value: f64) -> PrimExpr {
        prim::constant(self.dtype, value)
    }

    /// The type of indices: as wide as the numbers that they are made of.
    fn index(&self) -> DataType {
        DataType::int(if self.dtype == DataType::float(64) { 64 } else { 32 })
    }

    /// Whether all places without their offsets fit 32 bits.
    fn fits(&self) -> bool {
        let window = &self.window;
        let farthest = |axis: usize| {
            let span = self.places[2 + axis].as_int()?.saturating_mul(window.strides[axis]);
            Some(span.saturating_add(window.kernel[axis].saturating_mul(window.dilations[axis])))
        };
        (0..2).all(|axis| farthest(axis).is_some_and(|n| n.saturating_add(window.pads[axis].abs()) < 1 << 31))
    }

    /// Where a tap reads along an axis.
    fn place(&self, offsets: &te::Tensor, at: &[PrimExpr], axis: usize) -> PrimExpr {
        let (window, kw) = (&self.window, self.window.kernel[1]);
        let tap = prim::floormod(&at[1], (window.kernel[0] * kw).max(1));
        let tap = if axis == 0 { prim::floordiv(tap, kw.max(1)) } else { prim::floormod(tap, kw.max(1)) };
        let base = &at[2 + axis] * window.strides[axis] + tap * window.dilations[axis] - window.pads[axis];
        let offset = offsets.at(&[at[0].clone(), &at[1] * 2 + axis as i64, at[2].clone(), at[3].clone()]);
        // Vectors have no instruction for integers of 64 bits.
        let base = if self.fits() { prim::cast(DataType::int(32), base) } else { base };
        prim::cast(self.dtype, base) + offset
    }

    /// The element in front of where each tap reads along an axis, as a table.
    fn whole(&self, offsets: &te::Tensor, axis: usize) -> te::Tensor {
        let index = self.index();
        te::compute("whole", self.at_each(self.taps()), |at| {
            // Beyond the image, but not so far that the next element has no number.
            let last = self.number((1i64 << (index.bits - 2)) as f64);
            let size = prim::min(prim::cast(self.dtype, &self.image[2 + axis]), last);
            let near = prim::min(prim::math("floor", self.place(offsets, at, axis)), size);
            prim::cast(index, prim::max(near, self.number(-2.0)))
        })
    }

    /// How far behind that element it reads, as a table.
    fn part(&self, offsets: &te::Tensor, axis: usize) -> te::Tensor {
        te::compute("part", self.at_each(self.taps()), |at| {
            let place = || self.place(offsets, at, axis);
            place() - prim::math("floor", place())
        })
    }

    /// What the taps read, as `[batch, channel, tap row, tap column, row, column]`.
    fn sampled(&self, scope: &mut Scope, x: Expr, offset: Expr, mask: Option<Expr>) -> Result<Expr> {
        let [kh, kw] = [0, 1].map(|axis| prim::int(self.window.kernel[axis]));
        let (image, channels) = (&self.image, &self.image[1]);
        let out = vec![image[0].clone(), channels.clone(), kh, kw, self.places[2].clone(), self.places[3].clone()];
        let args: Vec<Expr> = [x, offset].into_iter().chain(mask).collect();
        scope.te("deformed", args, |inputs| {
            let tables = self.tables(&inputs[1]);
            vec![te::compute("deformed", &out, |at| {
                let group = dims::simplify(&prim::floordiv(&at[1] * self.offset_group, channels));
                let tap = (group * self.window.kernel[0] + &at[2]) * self.window.kernel[1] + &at[3];
                let tap = [at[0].clone(), tap, at[4].clone(), at[5].clone()];
                let element =
                    |r: &PrimExpr, c: &PrimExpr| inputs[0].at(&[at[0].clone(), at[1].clone(), r.clone(), c.clone()]);
                self.mixed(&tables, &tap, inputs.get(2), &element)
            })]
        })
    }

    /// The tables of where the taps read.
    fn tables(&self, offsets: &te::Tensor) -> Tables {
        Tables {
            whole: [0, 1].map(|axis| self.whole(offsets, axis)),
            part: [0, 1].map(|axis| self.part(offsets, axis)),
        }
    }

    /// Four elements, by how near they are, times the mask. `tap` is a place in the tables.
    fn mixed(
        &self,
        tables: &Tables,
        tap: &[PrimExpr],
        mask: Option<&te::Tensor>,
        element: &dyn Fn(&PrimExpr, &PrimExpr) -> PrimExpr,
    ) -> PrimExpr {
        let image = &self.image;
        let mut names = Names::default();
        let [row, column] = [("row", 0), ("column", 1)].map(|(hint, axis)| names.of(hint, tables.whole[axis].at(tap)));
        let [dy, dx] = [("down", 0), ("across", 1)].map(|(hint, axis)| names.of(hint, tables.part[axis].at(tap)));
        let mut next = |e: &PrimExpr| {
            let first = names.of("index", prim::cast(DataType::int(64), e.clone()));
            let second = names.of("index", &first + 1);
            [first, second]
        };
        let (row, column) = (next(&row), next(&column));
        let corner = |i: usize, j: usize| {
            let (r, c) = (&row[i], &column[j]);
            let inside = [prim::ge(r, 0), prim::lt(r, &image[2]), prim::ge(c, 0), prim::lt(c, &image[3])];
            let weight = |upper: usize, part: &PrimExpr| match upper {
                1 => part.clone(),
                _ => self.number(1.0) - part,
            };
            prim::if_then_else(all(inside), element(r, c), self.number(0.0)) * weight(i, &dy) * weight(j, &dx)
        };
        let value = corner(0, 0) + corner(0, 1) + corner(1, 0) + corner(1, 1);
        names.around(match mask {
            Some(mask) => value * mask.at(tap),
            None => value,
        })
    }

    /// Whether the channels that share their offsets fill vectors.
    fn has_wide_channels(&self) -> bool {
        let fills = |channels: i64| channels % self.offset_group == 0 && channels / self.offset_group >= LEAST_CHANNELS;
        self.dtype.is_float() && self.dtype.bits >= 32 && self.image[1].as_int().is_some_and(fills)
    }

    /// What the taps read of an image whose channels are transposed to lie side by side, so that none is gathered:
    /// `[batch, row, column, tap row, tap column, offset group, channel]`.
    fn sampled_by_channels(&self, scope: &mut Scope, x: Expr, offset: Expr, mask: Option<Expr>) -> Result<Expr> {
        let [kh, kw] = [0, 1].map(|axis| prim::int(self.window.kernel[axis]));
        let own = dims::simplify(&prim::floordiv(&self.image[1], self.offset_group));
        let [rows, columns] = [2, 3].map(|axis| self.places[axis].clone());
        let out = vec![self.image[0].clone(), rows, columns, kh, kw, prim::int(self.offset_group), own.clone()];
        let x = scope.transpose(x, &[0, 2, 3, 1])?;
        let args: Vec<Expr> = [x, offset].into_iter().chain(mask).collect();
        scope.te("deformed", args, |inputs| {
            let tables = self.tables(&inputs[1]);
            vec![te::compute("deformed", &out, |at| {
                let tap = (&at[5] * self.window.kernel[0] + &at[3]) * self.window.kernel[1] + &at[4];
                let tap = [at[0].clone(), tap, at[1].clone(), at[2].clone()];
                let channel = &at[5] * &own + &at[6];
                let element =
                    |r: &PrimExpr, c: &PrimExpr| inputs[0].at(&[at[0].clone(), r.clone(), c.clone(), channel.clone()]);
                self.mixed(&tables, &tap, inputs.get(2), &element)
            })]
        })
    }

    /// The sum over taps and channels, as a matrix product: a row of it is what the taps of a place read.
    fn product(&self, scope: &mut Scope, sampled: Expr, w: Expr, bias: Option<Expr>) -> Result<Expr> {
        let out_channels = scope.dims(&w)?[0].clone();
        let terms = dims::simplify(&(&self.image[1] * self.window.kernel[0] * self.window.kernel[1]));
        let [batch, rows, columns] = [&self.image[0], &self.places[2], &self.places[3]].map(PrimExpr::clone);
        let places = dims::simplify(&(&batch * &rows * &columns));
        let sampled = scope.reshape_known(sampled, vec![places, terms.clone()])?;
        let w = scope.transpose(w, &[2, 3, 1, 0])?;
        let w = scope.reshape_known(w, vec![terms, out_channels.clone()])?;
        let mut y = scope.call("matmul", [sampled, w])?;
        if let Some(bias) = bias {
            y = scope.call("add", [y, bias])?;
        }
        let y = scope.reshape_known(y, vec![batch, rows, columns, out_channels])?;
        scope.transpose(y, &[0, 3, 1, 2])
    }
}
