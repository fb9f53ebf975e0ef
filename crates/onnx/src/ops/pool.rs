//! Pooling.
//!
//! Where an image is smaller than the window, but by less than a stride, the text of ONNX has no position for the window
//! and ONNX Runtime, which rounds the count of steps towards zero, has one. Models that people use rely on the latter, so
//! such images are extended ([`extended`]), or the window has a position that reaches beyond them ([`WindowIndices`]); whether they are so
//! small is often known at run time only.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_relax::op::window::{Partial, all};
use relaxide_tir::schedule::separates;
use relaxide_tir::te;

use super::conv::{Window, as_2d, from_2d, lift, lift_pads};
use super::elementwise::with_number;
use super::wide::widened;
use super::{Outputs, one};
use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;
use crate::value::Value;

/// `MaxPool`. The indices of the maxima are the second output.
pub fn max(scope: &mut Scope, node: &Node) -> Outputs {
    if node.outputs() > 1 {
        return with_indices(scope, node);
    }
    let (x, window) = image(scope, node)?;
    let shape = scope.dims(&x)?;
    // Without padding nothing else asks whether an element is there: that takes longer than a copy, unless columns are reduced first.
    let in_place = window.pads.iter().any(|pad| *pad > 0) || is_separated(&window);
    if in_place && !node.flag("ceil_mode", false)? && window.may_grow(&shape) {
        return maximum(scope, node, x, window, shape);
    }
    windowed(scope, node, "nn.max_pool", Attrs::new())
}

/// The maximum of images that may be too small: their elements are read where they lie, as extending them would copy all of each.
fn maximum(scope: &mut Scope, node: &Node, x: Expr, window: Window, shape: Vec<PrimExpr>) -> Outputs {
    let dtype = scope.dtype(&x);
    let places = WindowIndices::new(node, window, shape)?;
    one(scope.te("max_pool", vec![x], |inputs| {
        vec![te::compute("max_pool", &places.dims, |at| {
            let taps = places.taps();
            let lowest = || prim::lowest(dtype);
            let value = match places.is_padded() {
                true => {
                    let (index, inside) = places.element(at, &taps);
                    prim::if_then_else(inside, inputs[0].at(&index), lowest())
                }
                false => {
                    let (index, inside) = places.held(at, &taps);
                    let value = inputs[0].at(&index);
                    inside.map_or(value.clone(), |inside| prim::if_then_else(inside, value, lowest()))
                }
            };
            te::max(value, &taps)
        })]
    })?)
}

/// `AveragePool`.
///
/// What an image that may be too small is extended with counts as a part of it. Where the padding is not counted, the mean of a
/// window is therefore taken of the image and of ones, over all of the window both times, and one divided by the other.
pub fn average(scope: &mut Scope, node: &Node) -> Outputs {
    let counted = node.flag("count_include_pad", false)?;
    let (x, window) = image(scope, node)?;
    let shape = scope.dims(&x)?;
    let is_open = !node.flag("ceil_mode", false)? && window.may_grow(&shape);
    let attrs = Attrs::new().with("count_include_pad", counted || is_open);
    if counted || !is_open {
        return windowed(scope, node, "nn.avg_pool", attrs);
    }
    let (x, own) = widened(scope, x)?;
    let dtype = scope.dtype(&x);
    let plane = [1, 1].map(prim::int).into_iter().chain(shape[2..].iter().cloned());
    let ones = [Expr::shape(plane), scope.scalar(1.0, dtype)?];
    let ones = scope.op("full", ones, Attrs::new().with("dtype", dtype))?;
    let mut mean = |image: Expr| pooled(scope, node, image, &window, "nn.avg_pool", attrs.clone());
    let (sum, share) = (mean(x)?, mean(ones)?);
    let average = scope.call("divide", [sum, share])?;
    one(scope.cast(average, own)?)
}

/// The input and the window of a node.
fn image(scope: &mut Scope, node: &Node) -> Result<(Expr, Window), NodeError> {
    let x = scope.tensor(node.input(0)?)?;
    let dims = scope.dims(&x)?;
    if dims.len() < 3 {
        return Err(NodeError::invalid(format!("the input has {} axes; it needs at least 3", dims.len())));
    }
    let kernel = node.ints("kernel_shape")?.ok_or_else(|| NodeError::invalid("attribute `kernel_shape` is missing"))?;
    let window = Window::read(node, kernel, &dims[2..])?;
    Ok((x, window))
}

/// The pooling of a node's input, where the image is long enough or its size is not known.
fn windowed(scope: &mut Scope, node: &Node, name: &str, attrs: Attrs) -> Outputs {
    let (x, window) = image(scope, node)?;
    let shape = scope.dims(&x)?;
    let small = |axis: usize| window.grown(axis, &shape[axis + 2]).is_some() && shape[axis + 2].as_int().is_some();
    if name == "nn.avg_pool" && (window.same.is_some() || (0..window.kernel.len()).any(small)) {
        return averaged(scope, node, x, window);
    }
    let own = scope.dtype(&x);
    let x = window.filled(scope, x, prim::lowest(own))?;
    let x = if name == "nn.avg_pool" { widened(scope, x)?.0 } else { x };
    let y = pooled(scope, node, x, &window, name, attrs)?;
    one(scope.cast(y, own)?)
}

/// Relax's pooling of an image that is extended until the window fits into it.
fn pooled(
    scope: &mut Scope,
    node: &Node,
    x: Expr,
    window: &Window,
    name: &str,
    attrs: Attrs,
) -> Result<Expr, NodeError> {
    let rank = window.kernel.len();
    if rank > 3 {
        return Err(NodeError::unsupported(format!("{rank} spatial axes are not supported; 1 to 3 are")));
    }
    let dtype = scope.dtype(&x);
    let ceil_mode = node.flag("ceil_mode", false)?;
    let fill = if name == "nn.avg_pool" { prim::constant(dtype, 0.0) } else { prim::lowest(dtype) };
    let x = if ceil_mode { x } else { extended(scope, x, window, fill)? };
    let x = as_2d(scope, x)?;
    let attrs = attrs
        .with("pool_size", lift(&window.kernel, 1))
        .with("strides", lift(&window.strides, 1))
        .with("padding", lift_pads(&window.pads))
        .with("dilation", lift(&window.dilations, 1))
        .with("ceil_mode", ceil_mode);
    let y = scope.op(&format!("{name}{}d", rank.max(2)), [x], attrs)?;
    from_2d(scope, y, rank)
}

impl Window {
    /// How long an axis must be for one position of the window, and whether it is shorter, but by less than a stride; none where it is
    /// known to be long enough.
    fn grown(&self, axis: usize, dim: &PrimExpr) -> Option<(i64, PrimExpr)> {
        let dilated_extent = (self.kernel[axis] - 1) * self.dilations[axis] + 1;
        let needed = dilated_extent - self.pads[axis] - self.pads[axis + self.kernel.len()];
        let too_short = prim::and(prim::lt(dim, needed), prim::gt(dim, needed - self.strides[axis]));
        let may_be = self.same.is_none() && self.strides[axis] > 1 && !dims::at_least(dim, needed);
        may_be.then_some((needed, too_short))
    }

    /// Whether an axis of a shape may turn out to be so short when the program runs.
    fn may_grow(&self, shape: &[PrimExpr]) -> bool {
        let of_axis = |axis: usize| shape[axis + 2].as_int().is_none() && self.grown(axis, &shape[axis + 2]).is_some();
        (0..self.kernel.len()).any(of_axis)
    }
}

/// The average of what automatic padding surrounds, where that depends on dimensions that are not fixed, or of images that are known
/// to be smaller than the window.
fn averaged(scope: &mut Scope, node: &Node, x: Expr, window: Window) -> Outputs {
    let counted = node.flag("count_include_pad", false)?;
    let (x, own) = widened(scope, x)?;
    let (shape, dtype) = (scope.dims(&x)?, scope.dtype(&x));
    let places = WindowIndices::new(node, window, shape)?;
    let sums = |name: &'static str, value: fn(&te::Tensor, &[PrimExpr]) -> PrimExpr| {
        let places = &places;
        move |inputs: &[te::Tensor]| {
            vec![te::compute(name, &places.dims, |at| {
                let taps = places.taps();
                let (index, inside) = places.element(at, &taps);
                te::sum(prim::if_then_else(inside, value(&inputs[0], &index), prim::constant(dtype, 0.0)), &taps)
            })]
        }
    };
    let total = scope.te("sum_pool", vec![x.clone()], sums("sums", |x, index| x.at(index)))?;
    let average = if counted {
        with_number(scope, "divide", total, places.window.kernel.iter().product::<i64>() as f64)?
    } else {
        let count = scope.te("count_pool", vec![x], sums("counts", |x, _| prim::constant(x.dtype(), 1.0)))?;
        scope.call("divide", [total, count])?
    };
    one(scope.cast(average, own)?)
}

/// Whether windows are reduced down their columns first.
fn is_separated(window: &Window) -> bool {
    let Some((across, down)) = window.kernel.split_last() else { return false };
    let last = down.len();
    separates(down.iter().product(), *across, window.strides[last], (across - 1) * window.dilations[last] + 1)
}

/// The output's dimensions and, for an output element, a window's elements: their index in the image, and whether it is inside.
struct WindowIndices {
    dims: Vec<PrimExpr>,
    window: Window,
    image: Vec<PrimExpr>,
}

impl WindowIndices {
    fn new(node: &Node, window: Window, image: Vec<PrimExpr>) -> Result<WindowIndices, NodeError> {
        let rank = window.kernel.len();
        let partial = if node.flag("ceil_mode", false)? { Partial::Counted } else { Partial::Dropped };
        let along = |i: usize| {
            if let Some(same) = &window.same {
                return same[i].positions.clone();
            }
            let own = relaxide_relax::op::window::Window {
                kernel: prim::int(window.kernel[i]),
                stride: window.strides[i],
                dilation: window.dilations[i],
                before: window.pads[i],
                after: window.pads[i + rank],
            };
            let count = own.positions(&image[i + 2], partial);
            match window.grown(i, &image[i + 2]).filter(|_| partial == Partial::Dropped) {
                Some((_, too_short)) => dims::simplify(&prim::select(too_short, prim::int(1), count)),
                None => count,
            }
        };
        let spatial: Vec<PrimExpr> = (0..rank).map(along).collect();
        let dims = image[..2].iter().cloned().chain(spatial).collect();
        Ok(WindowIndices { dims, window, image })
    }

    fn is_padded(&self) -> bool {
        self.window.pads.iter().any(|pad| *pad > 0) || self.window.same.is_some()
    }

    /// The same for a maximum without padding, whose columns are reduced first. An image that is too low has one row of windows, and a tap that
    /// finds no element there may as well meet the window's first: which tap does is the same for all windows. Columns have to be
    /// neighbours, and those that are not there are left out.
    fn held(&self, at: &[PrimExpr], taps: &[te::ReduceAxis]) -> (Vec<PrimExpr>, Option<PrimExpr>) {
        let mut index = at[..2].to_vec();
        let mut inside = None;
        for (i, tap) in taps.iter().enumerate() {
            let (offset, dim) = (tap.var() * self.window.dilations[i], &self.image[i + 2]);
            let start = &at[i + 2] * self.window.strides[i];
            index.push(match self.window.grown(i, dim).is_some() {
                true if i + 1 == taps.len() => {
                    let place = start + offset;
                    inside = Some(prim::lt(place.clone(), dim));
                    place
                }
                true => start + prim::select(prim::lt(&offset, dim), offset.clone(), prim::int(0)),
                false => start + offset,
            });
        }
        (index, inside)
    }

    fn taps(&self) -> Vec<te::ReduceAxis> {
        self.window.kernel.iter().map(|n| te::reduce_axis(*n)).collect()
    }

    fn element(&self, at: &[PrimExpr], taps: &[te::ReduceAxis]) -> (Vec<PrimExpr>, PrimExpr) {
        let mut index = at[..2].to_vec();
        let mut inside = Vec::new();
        for (i, tap) in taps.iter().enumerate() {
            let front = self.window.same.as_ref().map_or(prim::int(self.window.pads[i]), |same| same[i].front.clone());
            let place = &at[i + 2] * self.window.strides[i] + tap.var() * self.window.dilations[i] - front;
            inside.push(prim::and(prim::ge(&place, 0), prim::lt(&place, &self.image[i + 2])));
            index.push(place);
        }
        (index, all(inside))
    }
}

/// The maximum under each window, and where in the whole input it is: by rows, or with `storage_order` 1 by columns.
fn with_indices(scope: &mut Scope, node: &Node) -> Outputs {
    let (x, window) = image(scope, node)?;
    let (shape, dtype) = (scope.dims(&x)?, scope.dtype(&x));
    let by_columns = node.flag("storage_order", false)?;
    let places = WindowIndices::new(node, window, shape.clone())?;
    let wide = DataType::int(64);
    let pair = scope.te("max_pool_with_indices", vec![x], |inputs| {
        te::compute_multi("pooled", &places.dims, |at| {
            let taps = places.taps();
            let (index, inside) = places.element(at, &taps);
            let spatial = index.len() - 2;
            let image = &index[0] * &shape[1] + &index[1];
            let order: Vec<usize> =
                if by_columns { (2..2 + spatial).rev().collect() } else { (2..2 + spatial).collect() };
            let flat = order.iter().fold(image, |n, &i| n * &shape[i] + &index[i]);
            let value = prim::if_then_else(inside.clone(), inputs[0].at(&index), prim::lowest(dtype));
            let place = prim::select(inside, prim::cast(wide, flat), prim::highest(wide));
            te::combine([prim::lowest(dtype), prim::highest(wide)], [value, place], &taps, |best, new| {
                let same = prim::eq(&new[0], &best[0]);
                let earlier = prim::and(same, prim::lt(&new[1], &best[1]));
                let better = prim::or(prim::gt(&new[0], &best[0]), earlier);
                let choose = |i: usize| prim::select(better.clone(), new[i].clone(), best[i].clone());
                vec![choose(0), choose(1)]
            })
        })
    })?;
    (0..2).map(|i| scope.emit(Expr::field(pair.clone(), i)).map(Value::Computed)).collect()
}

/// `LpPool`: the norm of what is under each window.
pub fn lp(scope: &mut Scope, node: &Node) -> Outputs {
    let (x, window) = image(scope, node)?;
    let (x, own) = widened(scope, x)?;
    let (shape, dtype) = (scope.dims(&x)?, scope.dtype(&x));
    let p = norm_order(node)?;
    let places = WindowIndices::new(node, window, shape)?;
    let size = scope.call("abs", [x])?;
    let power = with_number(scope, "power", size, p)?;
    let sum = scope.te("lp_pool", vec![power], |inputs| {
        vec![te::compute("sums", &places.dims, |at| {
            let taps = places.taps();
            let (index, inside) = places.element(at, &taps);
            te::sum(prim::if_then_else(inside, inputs[0].at(&index), prim::constant(dtype, 0.0)), &taps)
        })]
    })?;
    let norm = with_number(scope, "power", sum, 1.0 / p)?;
    one(scope.cast(norm, own)?)
}

/// The order of a norm: a float in opset 1, an integer after.
fn norm_order(node: &Node) -> Result<f64, NodeError> {
    let p = if node.opset < 2 { node.float_or("p", 2.0)? } else { node.int_or("p", 2)? as f64 };
    if p > 0.0 { Ok(p) } else { Err(NodeError::invalid(format!("`p` is {p}, not a positive number"))) }
}

/// `GlobalLpPool`.
pub fn global_lp(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let p = norm_order(node)?;
    let rank = scope.dims(&x)?.len() as i64;
    let (x, own) = widened(scope, x)?;
    let size = scope.call("abs", [x])?;
    let power = with_number(scope, "power", size, p)?;
    let attrs = Attrs::new().with("axis", (2..rank).collect::<Vec<_>>()).with("keepdims", true);
    let sum = scope.op("sum", [power], attrs)?;
    let norm = with_number(scope, "power", sum, 1.0 / p)?;
    one(scope.cast(norm, own)?)
}

/// `MaxUnpool`: each element at the place that its index names, zero elsewhere. Indices count in the output that the window
/// gives; a larger output is that one with zeros behind it.
pub fn max_unpool(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let indices = scope.tensor(node.input(1)?)?;
    let shape = scope.dims(&x)?;
    let kernel = node.ints("kernel_shape")?.ok_or_else(|| NodeError::invalid("attribute `kernel_shape` is missing"))?;
    if shape.len() < 3 || kernel.len() != shape.len() - 2 {
        return Err(NodeError::invalid(format!("a window of {} axes does not fit {} axes", kernel.len(), shape.len())));
    }
    let window = Window::read(node, kernel, &shape[2..])?;
    let rank = window.kernel.len();
    let along = |i: usize| {
        let margin = window.kernel[i] - window.pads[i] - window.pads[i + rank];
        dims::simplify(&((&shape[i + 2] - 1) * window.strides[i] + margin))
    };
    let natural: Vec<PrimExpr> = shape[..2].iter().cloned().chain((0..rank).map(along)).collect();
    let dtype = scope.dtype(&x);
    let (count, total) = (dims::product(&shape), dims::product(&natural));
    let zero = scope.scalar(0.0, dtype)?;
    let blank = scope.op("full", [Expr::shape([total]), zero.clone()], Attrs::new().with("dtype", dtype))?;
    let (x, indices) = (scope.reshape(x, vec![count.clone()])?, scope.reshape(indices, vec![count])?);
    let attrs = Attrs::new().with("axis", 0i64).with("reduction", "update");
    let filled = scope.op("scatter_elements", [blank, indices, x], attrs)?;
    let filled = scope.reshape(filled, natural.clone())?;
    let Some(target) = node.optional(2) else { return one(filled) };
    let target = super::computed::Ints::of_length(scope, target, natural.len())?;
    if target.count() != natural.len() {
        return Err(NodeError::invalid(format!(
            "`output_shape` has {} numbers, not {}",
            target.count(),
            natural.len()
        )));
    }
    let mut args = super::computed::Args::default();
    let target = args.ints(target);
    let out = super::computed::ShapePlan::bind(scope, "unpool", &args, |inputs| super::computed::ShapePlan {
        dims: target.all(inputs).into_iter().map(|d| prim::max(d, 0)).collect(),
        ..super::computed::ShapePlan::default()
    })?;
    one(scope.te("unpool", vec![filled], |inputs| {
        vec![te::compute("unpooled", &out, |at| {
            let inside = all(at.iter().zip(&natural).map(|(i, n)| prim::lt(i, n)));
            prim::if_then_else(inside, inputs[0].at(at), prim::constant(dtype, 0.0))
        })]
    })?)
}

/// An image with elements added behind an axis that is too short for one position of the window and long enough for a step of the
/// count that is rounded towards zero.
fn extended(scope: &mut Scope, x: Expr, window: &Window, fill: PrimExpr) -> Result<Expr, NodeError> {
    let old = scope.dims(&x)?;
    let rank = window.kernel.len();
    let mut new = old.clone();
    for axis in 0..rank {
        let dim = &old[axis + 2];
        if let Some((needed, too_short)) = window.grown(axis, dim) {
            let grown = prim::max(dim, prim::int(needed));
            let always = window.strides[axis] >= needed;
            new[axis + 2] = dims::simplify(&if always { grown } else { prim::select(too_short, grown, dim.clone()) });
        }
    }
    if old.iter().zip(&new).all(|(a, b)| dims::equal(a, b)) {
        return Ok(x);
    }
    scope.te("extend", vec![x], |inputs| {
        let image = &inputs[0];
        vec![te::compute("extend", new, |at| {
            let within = at.iter().zip(image.shape()).skip(2).map(|(i, n)| prim::lt(i.clone(), n.clone()));
            prim::if_then_else(all(within), image.at(at), fill.clone())
        })]
    })
}

/// `GlobalAveragePool`: the mean over all spatial axes.
pub fn global_average(scope: &mut Scope, node: &Node) -> Outputs {
    global(scope, node, "mean")
}

/// `GlobalMaxPool`: the maximum over all spatial axes.
pub fn global_max(scope: &mut Scope, node: &Node) -> Outputs {
    global(scope, node, "max")
}

fn global(scope: &mut Scope, node: &Node, name: &str) -> Outputs {
    let x: Expr = scope.tensor(node.input(0)?)?;
    let rank = scope.dims(&x)?.len() as i64;
    if rank < 3 {
        return Err(NodeError::invalid(format!("the input has {rank} axes; it needs at least 3")));
    }
    let attrs = Attrs::new().with("axis", (2..rank).collect::<Vec<_>>()).with("keepdims", true);
    let own = scope.dtype(&x);
    let x = if name == "mean" { widened(scope, x)?.0 } else { x };
    let result = scope.op(name, [x], attrs)?;
    one(scope.cast(result, own)?)
}
