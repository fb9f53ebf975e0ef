//! Convolutions over one, two and three dimensions, and their transposes, in every layout.

use relaxide_ffi::DataType;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, PrimExpr, cast};
use relaxide_ir::{Attrs, Type};
use relaxide_tir::te;

use super::window::{Image, Partial, Window, all, compute, layout_of, out_layout_of, packed, unpacked, windows};
use super::*;
use crate::BlockBuilder;
use crate::shape::prove_equal;

const ARGS: &[ArgDef] =
    &[ArgDef::tensor("data", "The image."), ArgDef::tensor("weight", "For each output channel, a window.")];
const TRANSPOSE_ARGS: &[ArgDef] =
    &[ArgDef::tensor("data", "The image."), ArgDef::tensor("weight", "For each input channel, a window.")];
const GROUPS: AttrDef =
    AttrDef::int("groups", 1, "Into how many parts channels are divided, each convolved on its own.");
const OUT_LAYOUT: AttrDef = AttrDef::new(
    "out_layout",
    AttrKind::Str,
    AttrDefault::Same("data_layout"),
    "Order of the result's axes; the image's if absent.",
);
const OUT_DTYPE: AttrDef = AttrDef::dtype("out_dtype", "Element type of the result and of the sums.");

const fn strides(n: usize) -> AttrDef {
    AttrDef::ints_of("strides", n, ones(n), "Step of the window along each dimension.")
}

const fn dilation(n: usize) -> AttrDef {
    AttrDef::ints_of("dilation", n, ones(n), "Distance of neighbours in the window along each dimension.")
}

const fn padding(n: usize) -> AttrDef {
    AttrDef::ints_of(
        "padding",
        2 * n,
        zeros(2 * n),
        "Zeros around the image: in front along each dimension, then behind; half as many serve both sides.",
    )
}

const fn output_padding(n: usize) -> AttrDef {
    AttrDef::ints_of("output_padding", n, zeros(n), "Elements added to the result's end along each dimension.")
}

const fn data_layout(default: &'static str) -> AttrDef {
    AttrDef::str(
        "data_layout",
        default,
        "Order of the image's axes; a number and a small letter split one, as in `NCHW4c`.",
    )
}

const fn kernel_layout(default: &'static str) -> AttrDef {
    AttrDef::str("kernel_layout", default, "Order of the weight's axes, which may be split too, as in `OIHW4o`.")
}

const fn ones(n: usize) -> &'static [i64] {
    const ONES: [i64; 3] = [1; 3];
    ONES.split_at(n).0
}

const fn zeros(n: usize) -> &'static [i64] {
    const ZEROS: [i64; 6] = [0; 6];
    ZEROS.split_at(n).0
}

const fn row(
    name: &'static str,
    attrs: &'static [AttrDef],
    infer: fn(&CallCx) -> Result<Type, OpError>,
    doc: &'static str,
) -> OpDef {
    OpDef {
        name,
        doc,
        args: ARGS,
        attrs,
        infer,
        lengths: |cx| channels_agree(cx, "OI"),
        lower: Lowering::Compute(convolve::convolve),
        instead: Some(|cx| {
            for way in [pixel::as_product, patches::as_product, idle_taps::without] {
                if let Some(other) = way(cx)? {
                    return Ok(Some(other));
                }
            }
            distant_taps::as_products(cx)
        }),
        pattern: OpPattern::OutFusable,
        mixed_precision: MixedPrecision::Always(Some("out_dtype")),
        layout: Some(layout::convolution),
        ..OpDef::BASE
    }
}

const fn transposed(name: &'static str, attrs: &'static [AttrDef]) -> OpDef {
    let doc = "Each element of an image spreads over a window of the result, weighted; the gradient of a convolution. \
               ONNX: ConvTranspose; ATen: convolution with transposed=True.";
    OpDef {
        args: TRANSPOSE_ARGS,
        lengths: |cx| channels_agree(cx, "IO"),
        lower: Lowering::Compute(transpose),
        instead: Some(polyphase::as_convolution),
        ..row(name, attrs, transpose_type, doc)
    }
}

/// The rows.
pub static TABLE: &[OpDef] = &[
    OpDef {
        instead: Some(|cx| Ok(Some(Box::new(move |b| as_2d(cx, b))))),
        ..row(
            "nn.conv1d",
            &[
                strides(1),
                padding(1),
                dilation(1),
                GROUPS,
                data_layout("NCW"),
                kernel_layout("OIW"),
                OUT_LAYOUT,
                OUT_DTYPE,
            ],
            convolution_type,
            "Sums of products of a window that slides over a sequence. ONNX: Conv; ATen: convolution.",
        )
    },
    row(
        "nn.conv2d",
        &[
            strides(2),
            padding(2),
            dilation(2),
            GROUPS,
            data_layout("NCHW"),
            kernel_layout("OIHW"),
            OUT_LAYOUT,
            OUT_DTYPE,
        ],
        convolution_type,
        "Sums of products of a window that slides over an image. ONNX: Conv; ATen: convolution.",
    )
    .gradient(gradient::conv2d)
    .algorithms(),
    row(
        "nn.conv3d",
        &[
            strides(3),
            padding(3),
            dilation(3),
            GROUPS,
            data_layout("NCDHW"),
            kernel_layout("OIDHW"),
            OUT_LAYOUT,
            OUT_DTYPE,
        ],
        convolution_type,
        "Sums of products of a window that slides over a volume. ONNX: Conv; ATen: convolution.",
    ),
    transposed(
        "nn.conv1d_transpose",
        &[
            strides(1),
            padding(1),
            output_padding(1),
            dilation(1),
            GROUPS,
            data_layout("NCW"),
            kernel_layout("IOW"),
            OUT_LAYOUT,
            OUT_DTYPE,
        ],
    ),
    transposed(
        "nn.conv2d_transpose",
        &[
            strides(2),
            padding(2),
            output_padding(2),
            dilation(2),
            GROUPS,
            data_layout("NCHW"),
            kernel_layout("IOHW"),
            OUT_LAYOUT,
            OUT_DTYPE,
        ],
    ),
    transposed(
        "nn.conv3d_transpose",
        &[
            strides(3),
            padding(3),
            output_padding(3),
            dilation(3),
            GROUPS,
            data_layout("NCDHW"),
            kernel_layout("IODHW"),
            OUT_LAYOUT,
            OUT_DTYPE,
        ],
    ),
];

/// The letters of the spatial axes.
fn space(n: usize) -> &'static str {
    match n {
        1 => "W",
        2 => "HW",
        _ => "DHW",
    }
}

/// The orders of axes of image, weight and result. Computes see `N C …`, and weights as `first` says.
pub(super) struct Orders {
    pub data: Packing,
    pub weight: Packing,
    pub out: Packing,
}

fn orders(cx: &CallCx, weight: &str) -> Result<Orders, OpError> {
    let spatial = space(cx.ints("strides")?.len());
    let letters = format!("NC{spatial}");
    let data = layout_of(cx, "data_layout", &letters)?;
    let weight = layout_of(cx, "kernel_layout", &format!("{weight}{spatial}"))?;
    let out = out_layout_of(cx, &letters, &data)?;
    Ok(Orders { data, weight, out })
}

/// What a convolution's arguments and attributes say, once they fit. Dimensions are in the order of the computes.
pub(super) struct Geometry {
    pub data: Vec<PrimExpr>,
    pub weight: Vec<PrimExpr>,
    pub groups: i64,
    pub windows: Vec<Window>,
    pub orders: Orders,
    pub dtype: DataType,
}

impl Geometry {
    /// Whether image, weight and result have their axes in the order of the computes.
    pub fn are_orders_plain(&self) -> bool {
        [&self.orders.data, &self.orders.weight, &self.orders.out].iter().all(|order| order.is_plain())
    }
}

/// Reads the call; the type alone where dimensions are not known.
fn geometry(cx: &CallCx, letters: &str) -> Result<Result<Geometry, Type>, OpError> {
    let orders = orders(cx, letters)?;
    let (data, weight) = (cx.tensor(0)?, cx.tensor(1)?);
    for (info, name, ndim) in [(&data, "data", orders.data.rank()), (&weight, "weight", orders.weight.rank())] {
        if let Some(n) = info.ndim.filter(|n| *n != ndim) {
            return cx.invalid(format!("`{name}` has {n} dimensions, not {ndim}"));
        }
    }
    let dtype = match cx.dtype("out_dtype") {
        Some(dtype) => dtype,
        None if data.dtype == weight.dtype || data.dtype.is_void() || weight.dtype.is_void() => {
            if weight.dtype.is_void() { weight.dtype } else { data.dtype }
        }
        None => {
            return cx
                .wrong_dtype(format!("`data` is {}, `weight` {}; convert one with astype", data.dtype, weight.dtype));
        }
    };
    let groups = cx.int("groups")?;
    if groups < 1 {
        return cx.invalid(format!("`groups` is {groups}"));
    }
    let (Some(data), Some(weight)) = (data.dims, weight.dims) else {
        return Ok(Err(tensor_type(None, Some(orders.out.rank()), dtype)));
    };
    let data = unpacked(cx, "data", &orders.data, &data)?;
    let weight = unpacked(cx, "weight", &orders.weight, &weight)?;
    let windows = windows(cx, &weight[2..])?;
    Ok(Ok(Geometry { data, weight, groups, windows, orders, dtype }))
}

/// As [`geometry`], for lowering.
pub(super) fn known(cx: &CallCx, letters: &str) -> Result<Geometry, OpError> {
    match geometry(cx, letters)? {
        Ok(geometry) => Ok(geometry),
        Err(_) => {
            cx.unsupported("the shapes of its arguments are not known to the compiler; give them with match_cast")
        }
    }
}

fn check_channels(cx: &CallCx, have: &PrimExpr, need: &PrimExpr) -> Result<(), OpError> {
    match (have.as_int(), need.as_int()) {
        (Some(have), Some(need)) if have != need => {
            cx.invalid(format!("the image has {have} channels, the weight is for {need}"))
        }
        _ => Ok(()),
    }
}

fn check_groups(cx: &CallCx, channels: &PrimExpr, groups: i64) -> Result<(), OpError> {
    match channels.as_int() {
        Some(channels) if channels % groups != 0 => {
            cx.invalid(format!("{channels} channels cannot be divided into {groups} groups"))
        }
        _ => Ok(()),
    }
}

fn typed(cx: &CallCx, g: &Geometry, dims: &[PrimExpr]) -> Result<Type, OpError> {
    Ok(Type::tensor(packed(cx, &g.orders.out, dims)?, g.dtype))
}

/// The image has the channels that the weight is for.
fn channels_agree(cx: &CallCx, letters: &str) -> Result<Vec<lengths::Lengths>, OpError> {
    let Ok(g) = geometry(cx, letters)? else { return Ok(Vec::new()) };
    let need = if letters == "OI" { &g.weight[1] * g.groups } else { g.weight[0].clone() };
    let mut all = vec![lengths::Lengths {
        left: ("the number of the image's channels".to_string(), g.data[1].clone()),
        relation: lengths::Relation::Equal,
        right: ("that of the channels that the weight is for".to_string(), need),
    }];
    if g.groups > 1 && g.weight[0].as_int().is_none() {
        // Nothing of a group is left out, and no group is empty.
        let whole = prim::max(prim::floordiv(&g.weight[0], g.groups), 1) * g.groups;
        all.push(lengths::Lengths {
            left: (format!("the first length of a weight for {} groups", g.groups), g.weight[0].clone()),
            relation: lengths::Relation::Equal,
            right: ("what is divided into so many equal ones".to_string(), whole),
        });
    }
    Ok(all)
}

// Convolution.

fn convolution_type(cx: &CallCx) -> Result<Type, OpError> {
    match geometry(cx, "OI")? {
        Ok(g) => typed(cx, &g, &convolution_dims(cx, &g)?),
        Err(ty) => Ok(ty),
    }
}

pub(super) fn convolution_dims(cx: &CallCx, g: &Geometry) -> Result<Vec<PrimExpr>, OpError> {
    let (out, per_group) = (&g.weight[0], &g.weight[1]);
    check_channels(cx, &g.data[1], &(per_group * g.groups))?;
    check_groups(cx, out, g.groups)?;
    let sizes = g.windows.iter().zip(&g.data[2..]).map(|(w, size)| w.positions(size, Partial::Dropped));
    Ok([g.data[0].clone(), out.clone()].into_iter().chain(sizes).collect())
}

/// The name of the compute: the operator's own.
pub(super) fn kernel_name(cx: &CallCx) -> &'static str {
    cx.name().trim_start_matches("nn.")
}

/// The axes over the window.
pub(super) fn taps(extents: impl Iterator<Item = PrimExpr>) -> Vec<te::ReduceAxis> {
    let extents: Vec<PrimExpr> = extents.collect();
    let names = ["rz", "ry", "rx"].into_iter().skip(3 - extents.len());
    names.zip(extents).map(|(name, extent)| te::reduce_axis_named(name, extent)).collect()
}

/// A convolution over a sequence as one over an image of height one.
fn as_2d(cx: &CallCx, b: &mut BlockBuilder) -> Result<Expr, OpError> {
    let plain = |e| OpError::of_build(cx.name(), e);
    let (data_layout, kernel_layout) = (cx.str("data_layout")?, cx.str("kernel_layout")?);
    let out_layout = cx.attrs.str("out_layout").filter(|l| !l.is_empty()).unwrap_or(data_layout);
    let wide = |layout: &str| layout.replace('W', "HW");
    let place = |layout: &str| layout.chars().filter(char::is_ascii_alphabetic).position(|c| c == 'W').unwrap_or(0);
    let height = |layout: &str| Attrs::new().with("axis", vec![place(layout) as i64]);
    let mut raise = |i: usize, layout: &str| -> Result<Expr, OpError> {
        if let Expr::Constant(c) = cx.arg(i)? {
            let mut shape = c.value.shape().to_vec();
            shape.insert(place(layout).min(shape.len()), 1);
            if let Ok(raised) = c.value.reshape(&shape) {
                return Ok(Expr::constant(raised));
            }
        }
        b.op("expand_dims", [cx.arg(i)?.clone()], height(layout)).map_err(plain)
    };
    let (data, weight) = (raise(0, data_layout)?, raise(1, kernel_layout)?);
    let (strides, padding, dilation) = (cx.ints("strides")?, cx.ints("padding")?, cx.ints("dilation")?);
    let (&[stride], &[front, behind], &[dilation]) = (&strides[..], &padding[..], &dilation[..]) else {
        return cx.invalid("needs one stride, two paddings and one dilation");
    };
    let attrs = Attrs::new()
        .with("strides", vec![1, stride])
        .with("padding", vec![0, front, 0, behind])
        .with("dilation", vec![1, dilation])
        .with("groups", cx.int("groups")?)
        .with("data_layout", wide(data_layout))
        .with("kernel_layout", wide(kernel_layout))
        .with("out_layout", wide(out_layout));
    let attrs = match cx.dtype("out_dtype") {
        Some(dtype) => attrs.with("out_dtype", dtype),
        None => attrs,
    };
    let image = b.op("nn.conv2d", [data, weight], attrs).map_err(plain)?;
    call("squeeze", [image], height(out_layout))
}

// Transposed convolution.

fn transpose_type(cx: &CallCx) -> Result<Type, OpError> {
    match geometry(cx, "IO")? {
        Ok(g) => typed(cx, &g, &transpose_dims(cx, &g)?),
        Err(ty) => Ok(ty),
    }
}

pub(super) fn transpose_dims(cx: &CallCx, g: &Geometry) -> Result<Vec<PrimExpr>, OpError> {
    let (channels, per_group) = (&g.weight[0], &g.weight[1]);
    check_channels(cx, &g.data[1], channels)?;
    check_groups(cx, channels, g.groups)?;
    let extra = cx.ints("output_padding")?;
    if g.windows.iter().zip(&extra).any(|(w, extra)| *extra < 0 || *extra >= w.stride) {
        return cx.invalid("output_padding must be less than the strides");
    }
    let sizes = g.windows.iter().zip(&extra).zip(&g.data[2..]).map(|((w, extra), dim)| {
        let spread = (dim - 1) * w.stride + (w.dilated_extent() + (extra - w.before - w.after));
        Analyzer::new().simplify(&spread)
    });
    let out = Analyzer::new().simplify(&(per_group * g.groups));
    Ok([g.data[0].clone(), out].into_iter().chain(sizes).collect())
}

fn transpose(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let g = known(cx, "IO")?;
    let [data, weight] = inputs else { return cx.invalid("needs an image and a weight") };
    let dims = transpose_dims(cx, &g)?;
    if cx.form == KernelForm::Plain && spread::serves(&g) {
        return Ok(vec![spread::convolve_spread(cx, &g, data, weight, &dims)?]);
    }
    let data = Image::new(cx, "data", data, &g.orders.data)?;
    let weight = Image::new(cx, "weight", weight, &g.orders.weight)?;
    let tiles = |w: &Window| w.kernel.is_int(w.stride) && w.dilation == 1 && w.before == 0;
    let exact =
        g.windows.iter().zip(&g.data[2..]).zip(&dims[2..]).all(|((w, from), to)| prove_equal(to, &(from * w.stride)));
    if g.groups == 1 && g.windows.iter().all(tiles) && exact {
        return Ok(vec![disjoint(cx, &g, &data, &weight, &dims)?]);
    }
    Ok(vec![overlapping(cx, &g, &data, &weight, &dims)?])
}

/// Windows that neither overlap nor leave gaps: a matrix product, whose rows are then put where they belong.
fn disjoint(cx: &CallCx, g: &Geometry, data: &Image, weight: &Image, dims: &[PrimExpr]) -> Result<te::Tensor, OpError> {
    let n = g.windows.len();
    let rc = te::reduce_axis_named("rc", g.weight[0].clone());
    let shape: Vec<PrimExpr> = std::iter::once(&g.data[0]).chain(&g.weight[1..]).chain(&g.data[2..]).cloned().collect();
    let spread = te::compute("spread", shape, |a| {
        let place: Vec<PrimExpr> = [a[0].clone(), rc.var()].into_iter().chain(a[2 + n..].iter().cloned()).collect();
        let filter: Vec<PrimExpr> = std::iter::once(rc.var()).chain(a[1..2 + n].iter().cloned()).collect();
        te::sum(cast(g.dtype, weight.at(&filter)) * cast(g.dtype, data.at(&place)), [&rc])
    });
    compute(cx, kernel_name(cx), dims, &g.orders.out, |a| {
        let (tiles, rests): (Vec<_>, Vec<_>) =
            g.windows.iter().zip(&a[2..]).map(|(w, at)| split(at, &PrimExpr::from(w.stride))).unzip();
        let index: Vec<PrimExpr> = a[..2].iter().cloned().chain(rests).chain(tiles).collect();
        spread.at(&index)
    })
}

fn split(e: &PrimExpr, by: &PrimExpr) -> (PrimExpr, PrimExpr) {
    (prim::floordiv(e, by), prim::floormod(e, by))
}

/// The general case: for each element of the result, the elements of the image whose windows cover it.
///
/// Those along one axis are a `stride` apart in the window, so that only `kernel / stride` taps (rounded up) are visited. With
/// dilation all taps are visited, and those that meet no element add nothing.
fn overlapping(
    cx: &CallCx,
    g: &Geometry,
    data: &Image,
    weight: &Image,
    dims: &[PrimExpr],
) -> Result<te::Tensor, OpError> {
    let (channels, out) = (&g.weight[0], &g.weight[1]);
    let per_group = prim::floordiv(channels, g.groups);
    let count = |w: &Window| match w.dilation {
        1 => prim::floordiv(&w.kernel + (w.stride - 1), w.stride),
        _ => w.kernel.clone(),
    };
    let rc = te::reduce_axis_named("rc", per_group.clone());
    let taps = taps(g.windows.iter().map(count));
    compute(cx, kernel_name(cx), dims, &g.orders.out, |a| {
        let (channel, filter) = if g.groups == 1 {
            (rc.var(), a[1].clone())
        } else {
            let (group, filter) = split(&a[1], out);
            (group * &per_group + rc.var(), filter)
        };
        let (mut place, mut factor, mut covers) =
            (vec![a[0].clone(), channel.clone()], vec![channel, filter], Vec::new());
        for (i, (w, tap)) in g.windows.iter().zip(&taps).enumerate() {
            let (element, tap, meets) = source(w, &a[i + 2], &tap.var(), &g.data[i + 2]);
            place.push(element);
            factor.push(tap);
            covers.push(meets);
        }
        let product = cast(g.dtype, data.at(&place)) * cast(g.dtype, weight.at(&factor));
        let zero = prim::constant(g.dtype, 0.0);
        te::sum(prim::if_then_else(all(covers), product, zero), std::iter::once(&rc).chain(&taps))
    })
}

/// The image's element and the window's tap that meet at an element of the result, and whether there are such.
fn source(w: &Window, at: &PrimExpr, step: &PrimExpr, size: &PrimExpr) -> (PrimExpr, PrimExpr, PrimExpr) {
    let place = at + w.before;
    let stride = PrimExpr::from(w.stride);
    if w.dilation == 1 {
        let (element, phase) = split(&place, &stride);
        let (element, tap) = (element - step, phase + step * w.stride);
        let covers = all([prim::lt(&tap, &w.kernel), prim::ge(&element, 0), prim::lt(&element, size)]);
        return (element, tap, covers);
    }
    let (element, rest) = split(&(place - step * w.dilation), &stride);
    let covers = all([prim::eq(rest, 0), prim::ge(&element, 0), prim::lt(&element, size)]);
    (element, step.clone(), covers)
}
