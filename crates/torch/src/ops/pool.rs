//! Pooling.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::Table;
use crate::error::NodeError;
use crate::rule::{Cx, Outputs, Result, one};
use crate::value::Value;

pub const TABLE: Table = &[
    ("aten.max_pool1d", |cx| max_pool(cx, 1)),
    ("aten.max_pool2d", |cx| max_pool(cx, 2)),
    ("aten.max_pool3d", |cx| max_pool(cx, 3)),
    ("aten.max_pool1d_with_indices", |cx| max_pool(cx, 1)),
    ("aten.max_pool2d_with_indices", |cx| max_pool(cx, 2)),
    ("aten.max_pool3d_with_indices", |cx| max_pool(cx, 3)),
    ("aten.avg_pool1d", |cx| avg_pool(cx, 1)),
    ("aten.avg_pool2d", |cx| avg_pool(cx, 2)),
    ("aten.avg_pool3d", |cx| avg_pool(cx, 3)),
    ("aten.adaptive_avg_pool1d", |cx| adaptive_avg(cx, 1)),
    ("aten.adaptive_avg_pool2d", |cx| adaptive_avg(cx, 2)),
    ("aten.adaptive_avg_pool3d", |cx| adaptive_avg(cx, 3)),
    ("aten._adaptive_avg_pool2d", |cx| adaptive_avg(cx, 2)),
    ("aten._adaptive_avg_pool3d", |cx| adaptive_avg(cx, 3)),
    ("aten.adaptive_max_pool1d", |cx| adaptive_max(cx, 1)),
    ("aten.adaptive_max_pool2d", |cx| adaptive_max(cx, 2)),
    ("aten.adaptive_max_pool3d", |cx| adaptive_max(cx, 3)),
];

/// How many elements a window may have whose maximum's place is asked for.
const MAX_STEPS: i64 = 256;

/// The window of a pooling along each spatial axis.
struct Window {
    kernel: Vec<i64>,
    strides: Vec<i64>,
    pads: Vec<i64>,
    dilation: Vec<i64>,
    ceil: bool,
}

impl Window {
    fn read(cx: &Cx<'_>, count: usize) -> Result<Window> {
        let kernel = cx.window("kernel_size", count, &[])?;
        Ok(Window {
            strides: cx.window("stride", count, &kernel)?,
            pads: cx.window("padding", count, &[0])?,
            dilation: cx.window("dilation", count, &[1])?,
            ceil: cx.flag("ceil_mode", false)?,
            kernel,
        })
    }

    fn attrs(&self) -> Attrs {
        Attrs::new()
            .with("pool_size", self.kernel.clone())
            .with("strides", self.strides.clone())
            .with("dilation", self.dilation.clone())
            .with("padding", [self.pads.clone(), self.pads.clone()].concat())
            .with("ceil_mode", self.ceil)
    }
}

/// The image with a batch, and whether it had none.
fn batched(cx: &mut Cx<'_>, x: Expr, count: usize) -> Result<(Expr, bool)> {
    if cx.rank(&x)? != count + 1 {
        return Ok((x, false));
    }
    Ok((cx.op("expand_dims", [x], Attrs::new().with("axis", vec![0i64]))?, true))
}

fn unbatched(cx: &mut Cx<'_>, y: Expr, bare: bool) -> Result<Expr> {
    if !bare {
        return Ok(y);
    }
    cx.op("squeeze", [y], Attrs::new().with("axis", vec![0i64]))
}

fn max_pool(cx: &mut Cx<'_>, count: usize) -> Outputs {
    let window = Window::read(cx, count)?;
    let (x, bare) = batched_input(cx, count)?;
    // With rounding up, the declared length says whether a window that lies in the padding counts.
    let mut attrs = window.attrs();
    if window.ceil
        && let Some(pads) = pads_of(cx, &x, &window, count)?
    {
        attrs = attrs.with("padding", pads).with("ceil_mode", false);
    }
    let y = cx.op(&format!("nn.max_pool{count}d"), [x.clone()], attrs)?;
    let y = unbatched(cx, y, bare)?;
    if !cx.node.target.contains("with_indices") {
        return one(y);
    }
    let places = places(cx, x, &window, bare)?;
    Ok(vec![Value::Tensor(y), Value::Tensor(places)])
}

fn batched_input(cx: &mut Cx<'_>, count: usize) -> Result<(Expr, bool)> {
    let x = cx.tensor("self")?;
    batched(cx, x, count)
}

/// Padding with which windows that are wholly filled come to the declared length; `None` where lengths are not known.
fn pads_of(cx: &Cx<'_>, x: &Expr, window: &Window, count: usize) -> Result<Option<Vec<i64>>> {
    let (own, declared) = (cx.shape(x)?, &cx.result()?.dims);
    let own = own[own.len() - count..].iter().map(PrimExpr::as_int).collect::<Option<Vec<i64>>>();
    let declared = declared[declared.len() - count..].iter().map(PrimExpr::as_int).collect::<Option<Vec<i64>>>();
    let (Some(own), Some(declared)) = (own, declared) else { return Ok(None) };
    let behind = (0..count).map(|i| {
        let dilated_extent = (window.kernel[i] - 1) * window.dilation[i] + 1;
        ((declared[i] - 1) * window.strides[i] + dilated_extent - own[i] - window.pads[i]).max(0)
    });
    Ok(Some(window.pads.iter().copied().chain(behind).collect()))
}

/// Where in its image the maximum of each window is, as PyTorch counts: row by row.
fn places(cx: &mut Cx<'_>, x: Expr, window: &Window, bare: bool) -> Result<Expr> {
    let declared = cx.result()?.clone();
    let mut dims = declared.dims;
    if bare {
        dims.insert(0, prim::int(1));
    }
    let own = cx.shape(&x)?;
    let dtype = cx.dtype(&x);
    let front = own.len() - window.kernel.len();
    let steps = window.kernel.iter().try_fold(1i64, |n, &k| n.checked_mul(k)).filter(|n| (1..=MAX_STEPS).contains(n));
    let steps = steps.ok_or_else(|| NodeError::unsupported(format!("places in windows of more than {MAX_STEPS}")))?;
    let found = cx.te("max_pool_places", vec![x], |inputs| {
        // The first of equal ones is told by its smaller index, so windows are walked as a chain of choices.
        vec![te::compute("places", &dims, |at| {
            let mut best = prim::lowest(dtype);
            let mut place = prim::int(0);
            for step in 0..steps {
                let (mut rest, mut index, mut flat) = (step, at.to_vec(), prim::int(0));
                let mut inside = prim::boolean(true);
                let mut offsets = vec![0; window.kernel.len()];
                for i in (0..window.kernel.len()).rev() {
                    offsets[i] = rest % window.kernel[i];
                    rest /= window.kernel[i];
                }
                for (i, offset) in offsets.into_iter().enumerate() {
                    let dim = &own[front + i];
                    let along = &at[front + i] * window.strides[i] + (offset * window.dilation[i] - window.pads[i]);
                    inside = prim::and(inside, prim::and(prim::ge(&along, 0), prim::lt(&along, dim)));
                    flat = flat * dim + &along;
                    index[front + i] = along;
                }
                let value = prim::if_then_else(inside, inputs[0].at(&index), prim::lowest(dtype));
                let higher = prim::gt(value.clone(), best.clone());
                place = prim::select(higher.clone(), flat, place);
                best = prim::select(higher, value, best);
            }
            prim::cast(DataType::int(64), place)
        })]
    })?;
    unbatched(cx, found, bare)
}

fn avg_pool(cx: &mut Cx<'_>, count: usize) -> Outputs {
    let window = Window::read(cx, count)?;
    let include = cx.flag("count_include_pad", true)?;
    let divisor = cx.int("divisor_override")?;
    let (x, bare) = batched_input(cx, count)?;
    let mut attrs = window.attrs().with("count_include_pad", include || divisor.is_some());
    if divisor.is_some() && window.ceil {
        return Err(NodeError::unsupported("`divisor_override` with `ceil_mode`"));
    }
    if count == 1 {
        attrs = attrs.with("layout", "NCW");
    }
    let mut y = cx.op(&format!("nn.avg_pool{count}d"), [x], attrs)?;
    if let Some(divisor) = divisor {
        let elements: i64 = window.kernel.iter().product();
        let factor = cx.number(elements as f64 / divisor as f64, cx.dtype(&y))?;
        y = cx.call("multiply", [y, factor])?;
    }
    one(unbatched(cx, y, bare)?)
}

fn adaptive_avg(cx: &mut Cx<'_>, count: usize) -> Outputs {
    let (x, bare) = batched_input(cx, count)?;
    let declared = cx.result()?.dims.clone();
    let size = declared[declared.len() - count..].iter().map(PrimExpr::as_int).collect::<Option<Vec<i64>>>();
    let size = size.ok_or_else(|| NodeError::unsupported("an output size that is not known at export"))?;
    let y = cx.op(&format!("nn.adaptive_avg_pool{count}d"), [x], Attrs::new().with("output_size", size))?;
    one(unbatched(cx, y, bare)?)
}

/// The maximum of parts, where each has the same number of elements.
fn adaptive_max(cx: &mut Cx<'_>, count: usize) -> Outputs {
    let (x, bare) = batched_input(cx, count)?;
    let (own, declared) = (cx.shape(&x)?, cx.result()?.dims.clone());
    let pairs = own[own.len() - count..].iter().zip(&declared[declared.len() - count..]);
    let kernel = pairs.map(|(own, out)| match (own.as_int(), out.as_int()) {
        (Some(own), Some(out)) if out > 0 && own % out == 0 => Ok(own / out),
        _ => Err(NodeError::unsupported("parts of different lengths")),
    });
    let kernel = kernel.collect::<Result<Vec<_>>>()?;
    let attrs = Attrs::new().with("pool_size", kernel.clone()).with("strides", kernel);
    let y = cx.op(&format!("nn.max_pool{count}d"), [x], attrs)?;
    one(unbatched(cx, y, bare)?)
}
