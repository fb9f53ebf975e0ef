//! Pooling over windows of sequences, images and volumes, in every layout.

use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{Attrs, Type};
use relaxide_tir::schedule::separates;
use relaxide_tir::te;

use super::window::{
    Image, Partial, Window, all, compute, compute_by_rule, layout_of, out_layout_of, packed, unpacked, windows,
};
use super::*;
use crate::{BlockBuilder, Expr};

const DATA: &[ArgDef] = &[ArgDef::tensor("data", "The image.")];

macro_rules! attrs {
    ($n:literal, $ones:expr, $zeros:expr, $with_padding:literal, $layout:literal) => {
        &[
            AttrDef::ints_of("pool_size", $n, $ones, "Extents of the window."),
            AttrDef::ints_of("strides", $n, $ones, "Step of the window along each dimension."),
            AttrDef::ints_of(
                "padding",
                2 * $n,
                $zeros,
                "Elements around the image: in front along each dimension, then behind; half as many serve both sides.",
            ),
            AttrDef::ints_of("dilation", $n, $ones, "Distance of neighbours in the window."),
            AttrDef::bool("ceil_mode", false, "Whether a last window that is only partly filled counts."),
            AttrDef::bool("count_include_pad", $with_padding, "Whether padding counts in an average."),
            AttrDef::str(
                "layout",
                $layout,
                "Order of the image's axes; a number and a small letter split one, as in `NCHW4c`.",
            ),
            AttrDef::new(
                "out_layout",
                AttrKind::Str,
                AttrDefault::Same("layout"),
                "Order of the result's axes; the image's if absent.",
            ),
        ]
    };
}

/// The attributes of a pooling over images, which that of its gradient has too.
pub const ATTRS_2D: &[AttrDef] = attrs!(2, &[1, 1], &[0; 4], false, "NCHW");

const fn pooling(name: &'static str, attrs: &'static [AttrDef], lower: Compute, doc: &'static str) -> OpDef {
    OpDef {
        name,
        doc,
        args: DATA,
        attrs,
        infer: pool_type,
        lower: Lowering::Compute(lower),
        pattern: OpPattern::OutFusable,
        mixed_precision: MixedPrecision::Follow,
        layout: Some(layout::windowed),
        ..OpDef::BASE
    }
}

const fn averaging(name: &'static str, attrs: &'static [AttrDef]) -> OpDef {
    OpDef { instead: Some(padded_first), ..pooling(name, attrs, avg_pool, MEAN) }
}

const MAX: &str = "The largest element under a window that slides over an image. ONNX: MaxPool.";
const MEAN: &str = "The mean of the elements under a window that slides over an image. ONNX: AveragePool.";

/// The rows.
pub static TABLE: &[OpDef] = &[
    pooling("nn.max_pool1d", attrs!(1, &[1], &[0; 2], false, "NCW"), max_pool, MAX),
    pooling("nn.max_pool2d", ATTRS_2D, max_pool, MAX).gradient(gradient::max_pool2d),
    pooling("nn.max_pool3d", attrs!(3, &[1, 1, 1], &[0; 6], false, "NCDHW"), max_pool, MAX),
    averaging("nn.avg_pool1d", attrs!(1, &[1], &[0; 2], true, "NCW")),
    averaging("nn.avg_pool2d", ATTRS_2D).gradient(gradient::avg_pool2d),
    averaging("nn.avg_pool3d", attrs!(3, &[1, 1, 1], &[0; 6], true, "NCDHW")),
];

/// What a pooling's attributes say.
pub(super) struct Pool {
    /// The windows of the spatial axes.
    pub windows: Vec<Window>,
    /// How the image's axes lie.
    pub data: Packing,
    out: Packing,
    partial: Partial,
    with_padding: bool,
}

impl Pool {
    /// Reads the attributes.
    pub fn of(cx: &CallCx) -> Result<Pool, OpError> {
        let kernel: Vec<PrimExpr> = cx.ints("pool_size")?.into_iter().map(PrimExpr::from).collect();
        let letters = match kernel.len() {
            1 => "NCW",
            2 => "NCHW",
            _ => "NCDHW",
        };
        let data = layout_of(cx, "layout", letters)?;
        let out = out_layout_of(cx, letters, &data)?;
        let partial = if cx.bool("ceil_mode")? { Partial::Counted } else { Partial::Dropped };
        Ok(Pool { windows: windows(cx, &kernel)?, data, out, partial, with_padding: cx.bool("count_include_pad")? })
    }

    /// How the result's axes lie.
    pub fn out_packing(&self) -> &Packing {
        &self.out
    }

    /// The result's dimensions for an image's, both in the order of the computes.
    pub fn dims(&self, image: &[PrimExpr]) -> Vec<PrimExpr> {
        let sizes = self.windows.iter().zip(&image[2..]).map(|(w, size)| w.positions(size, self.partial));
        image[..2].iter().cloned().chain(sizes).collect()
    }

    /// Whether windows are reduced in two steps.
    fn is_separated(&self) -> bool {
        let Some((along, others)) = self.windows.split_last() else { return false };
        let down = others.iter().map(|w| w.kernel.as_int()).try_fold(1i64, |n, k| n.checked_mul(k?));
        let (Some(down), Some(across)) = (down, along.kernel.as_int()) else { return false };
        separates(down, across, along.stride, (across - 1) * along.dilation + 1)
    }

    /// Whether a window may reach beyond the image.
    fn beyond(&self) -> bool {
        self.windows.iter().any(Window::padded) || self.partial == Partial::Counted
    }

    /// How many elements of the window at `at` count in an average; `None` where all do, always.
    pub fn count(&self, at: &[PrimExpr], image: &[PrimExpr]) -> Option<PrimExpr> {
        if !self.beyond() || (self.with_padding && self.partial == Partial::Dropped) {
            return None;
        }
        let covered =
            self.windows.iter().enumerate().map(|(i, w)| covered(w, &at[i + 2], &image[i + 2], self.with_padding));
        Some(prim::max(covered.reduce(|a, b| a * b).unwrap_or_else(|| PrimExpr::from(1)), 1))
    }

    /// How many elements a window has.
    pub fn volume(&self) -> i64 {
        self.windows.iter().filter_map(|w| w.kernel.as_int()).product()
    }

    /// The axes over the window.
    pub fn taps(&self) -> Vec<te::ReduceAxis> {
        let names = ["rz", "ry", "rx"].into_iter().skip(3 - self.windows.len());
        names.zip(&self.windows).map(|(name, w)| te::reduce_axis_named(name, w.kernel.clone())).collect()
    }

    /// The windows with the padding that a last, partly filled one needs.
    fn padding(&self) -> Vec<Window> {
        let spare = |w: &Window| if self.partial == Partial::Counted { w.stride - 1 } else { 0 };
        self.windows.iter().map(|w| Window { after: w.after + spare(w), ..w.clone() }).collect()
    }

    /// The element of the padded image under a tap of the window at `at`.
    fn place(&self, at: &[PrimExpr], taps: &[te::ReduceAxis]) -> Vec<PrimExpr> {
        let along = self.windows.iter().zip(taps).zip(&at[2..]).map(|((w, tap), at)| w.element(at, &tap.var()));
        at[..2].iter().cloned().chain(along).collect()
    }

    /// How many elements of the window at `at` count in an average, as TVM counts them.
    fn elements(&self, at: &[PrimExpr], image: &[PrimExpr]) -> PrimExpr {
        let along = self.windows.iter().zip(&at[2..]).zip(&image[2..]).map(|((w, at), size)| {
            let start = at * w.stride - w.before;
            let last = &start + (&w.kernel - 1) * w.dilation;
            if self.with_padding {
                let last = prim::min(last, size + (w.after - 1));
                return prim::floordiv(last - start, w.dilation) + 1;
            }
            let skipped = prim::max(prim::floordiv(PrimExpr::from(w.dilation - 1) - &start, w.dilation), 0);
            let last = prim::min(last, size - 1);
            prim::floordiv(last - (start + skipped * w.dilation), w.dilation) + 1
        });
        let count = along.reduce(|a, b| a * b).unwrap_or_else(|| PrimExpr::from(1));
        if self.with_padding { count } else { prim::max(count, 1) }
    }

    /// The element under a tap of the window at `at`, or `outside` where that is padding.
    fn element(&self, image: &Image, at: &[PrimExpr], taps: &[te::ReduceAxis], outside: PrimExpr) -> PrimExpr {
        let dims = image.dims();
        let mut index = at[..2].to_vec();
        let mut within = Vec::new();
        for (i, (w, tap)) in self.windows.iter().zip(taps).enumerate() {
            let place = w.element(&at[i + 2], &tap.var()) - w.before;
            within.extend([prim::ge(&place, 0), prim::lt(&place, &dims[i + 2])]);
            index.push(place);
        }
        let value = image.at(&index);
        if self.beyond() { prim::if_then_else(all(within), value, outside) } else { value }
    }
}

fn pool_type(cx: &CallCx) -> Result<Type, OpError> {
    let data = cx.tensor(0)?;
    let pool = Pool::of(cx)?;
    let ndim = pool.data.rank();
    if let Some(n) = data.ndim.filter(|n| *n != ndim) {
        return cx.invalid(format!("`data` has {n} dimensions, not {ndim}"));
    }
    let Some(dims) = data.dims else { return Ok(tensor_type(None, Some(pool.out.rank()), data.dtype)) };
    let dims = pool.dims(&unpacked(cx, "data", &pool.data, &dims)?);
    Ok(Type::tensor(packed(cx, &pool.out, &dims)?, data.dtype))
}

fn pool_and_image(cx: &CallCx, inputs: &[te::Tensor]) -> Result<(Pool, Image), OpError> {
    let [data] = inputs else { return cx.invalid("needs an image") };
    let pool = Pool::of(cx)?;
    let image = Image::new(cx, "data", data, &pool.data)?;
    Ok((pool, image))
}

/// The name of the compute: the operator's own.
fn kernel_name(cx: &CallCx) -> &'static str {
    cx.name().trim_start_matches("nn.")
}

fn max_pool(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let (pool, image) = pool_and_image(cx, inputs)?;
    let taps = pool.taps();
    if cx.form == KernelForm::Plain {
        let lowest = cx.lowest(image.dtype());
        let padded = image.padded(&pool.padding(), lowest.clone());
        let result = compute_by_rule(cx, "pool_max", &pool.dims(&image.dims()), &pool.out, |at| {
            te::max(padded.at(&pool.place(at, &taps)), &taps).starting_with([lowest])
        });
        return Ok(vec![result?]);
    }
    let result = compute(cx, kernel_name(cx), &pool.dims(&image.dims()), &pool.out, |at| {
        te::max(pool.element(&image, at, &taps, prim::lowest(image.dtype())), &taps)
    });
    Ok(vec![result?])
}

fn avg_pool(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let (pool, image) = pool_and_image(cx, inputs)?;
    let (dtype, dims, taps) = (image.dtype(), pool.dims(&image.dims()), pool.taps());
    if cx.form == KernelForm::Plain {
        let padded = image.padded(&pool.padding(), prim::constant(dtype, 0.0));
        let total = compute(cx, "pool_sum", &dims, &pool.out, |at| te::sum(padded.at(&pool.place(at, &taps)), &taps))?;
        let total = Image::new(cx, "data", &total, &pool.out)?;
        let result = compute_by_rule(cx, "pool_avg", &dims, &pool.out, |at| {
            prim::div(total.at(at), prim::cast(dtype, pool.elements(at, &image.dims())))
        });
        return Ok(vec![result?]);
    }
    let total = compute(cx, "pool_sum", &dims, &pool.out, |at| {
        te::sum(pool.element(&image, at, &taps, prim::constant(dtype, 0.0)), &taps)
    })?;
    let total = Image::new(cx, "data", &total, &pool.out)?;
    let result = compute(cx, kernel_name(cx), &dims, &pool.out, |at| match pool.count(at, &image.dims()) {
        Some(count) => prim::div(total.at(at), prim::cast(dtype, count)),
        None if dtype.is_float() => total.at(at) * prim::constant(dtype, 1.0 / pool.volume() as f64),
        None => prim::div(total.at(at), prim::constant(dtype, pool.volume() as f64)),
    });
    Ok(vec![result?])
}

/// An average of a padded image as one of the image with its padding, which is written once, unless windows are reduced in two steps
/// ([`separates`]): a window that asks of each element whether it is there takes six times as long. Where the padding does not count, the result is scaled by a plane of how much of each
/// window is image, which is the same for all images and channels.
fn padded_first<'c>(cx: &'c CallCx<'c>) -> Result<Option<Emission<'c>>, OpError> {
    let (pool, data) = (Pool::of(cx)?, cx.tensor(0)?);
    let layout = cx.str("layout")?;
    let is_plain =
        cx.attrs.str("out_layout").is_none_or(|out| out == layout) && matches!(layout, "NCW" | "NCHW" | "NCDHW");
    let is_wide = data.dtype.is_float() && data.dtype.bits >= 32;
    let Some(image) = data.dims.filter(|_| is_plain && is_wide && pool.partial == Partial::Dropped) else {
        return Ok(None);
    };
    let dtype = data.dtype;
    // Where all of the padding counts, two steps need no more than the operator says.
    let is_whole = pool.is_separated() && pool.with_padding;
    Ok((pool.beyond() && !is_whole)
        .then(|| -> Emission<'c> { Box::new(move |b| average_of_padded(cx, &pool, &image, dtype, b)) }))
}

fn average_of_padded(
    cx: &CallCx,
    pool: &Pool,
    image: &[PrimExpr],
    dtype: DataType,
    b: &mut BlockBuilder,
) -> Result<Expr, OpError> {
    let failed = |error| OpError::of_build(cx.def.name, error);
    let mean = if pool.is_separated() {
        call(cx.name(), [cx.arg(0)?.clone()], cx.attrs.clone().with("count_include_pad", true))?
    } else {
        let widths: Vec<i64> =
            [0; 4].into_iter().chain(pool.windows.iter().flat_map(|w| [w.before, w.after])).collect();
        let padded =
            b.emit(call("nn.pad", [cx.arg(0)?.clone()], Attrs::new().with("pad_width", widths))?).map_err(failed)?;
        call(cx.name(), [padded], cx.attrs.clone().with("padding", vec![0; 2 * pool.windows.len()]))?
    };
    if pool.with_padding {
        return Ok(mean);
    }
    let mut plane = pool.dims(image);
    plane[..2].fill(1.into());
    let share = |at: &[PrimExpr]| {
        let count = pool.count(at, image).unwrap_or_else(|| pool.volume().into());
        prim::div(prim::constant(dtype, pool.volume() as f64), prim::cast(dtype, count))
    };
    let plane = b.emit_te("pool_share", Vec::new(), |_| vec![te::compute("share", &plane, share)]).map_err(failed)?;
    let mean = b.emit(mean).map_err(failed)?;
    call("multiply", [mean, plane], Attrs::new())
}

/// How many taps of a window meet the image, or the image and its padding.
fn covered(w: &Window, position: &PrimExpr, size: &PrimExpr, with_padding: bool) -> PrimExpr {
    let start = position * w.stride - w.before;
    let (low, high) = if with_padding { (prim::int(-w.before), size + w.after) } else { (prim::int(0), size.clone()) };
    // Taps lie at start, start + dilation, …; those before `low` and from `high` on do not count.
    let taps_before = |limit: PrimExpr| prim::floordiv(limit - &start + (w.dilation - 1), w.dilation);
    let first = prim::max(taps_before(low), 0);
    let last = prim::min(taps_before(high), &w.kernel);
    prim::max(last - first, 0)
}
