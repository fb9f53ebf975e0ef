//! Resizing of images in planes (NCHW).
//!
//! Positions of nearest neighbours are computed in integers, exactly: `x * in / out` as a floor division. Where the new size
//! is a whole multiple of the old, also a symbolic one, that is a division by a literal.

use relaxide_ffi::DataType;
use relaxide_ir::Type;
use relaxide_ir::prim::{self, PrimExpr, cast, constant, float_of, math};
use relaxide_tir::te;

use super::*;
use crate::shape::prove_equal;

/// The rows.
pub static TABLE: &[OpDef] = &[OpDef {
    name: "image.resize2d",
    doc: "An image at another height and width. ONNX: Resize; ATen: upsample_nearest2d, upsample_bilinear2d and their like.",
    args: &[ArgDef::tensor("data", "The image."), ArgDef::shape("size", "Height and width of the result.")],
    attrs: &[
        AttrDef::new(
            "roi",
            AttrKind::Any,
            AttrDefault::None,
            "The region that is resized; only the whole image is implemented.",
        ),
        AttrDef::str("layout", "NCHW", "Order of the image's axes."),
        AttrDef::str("method", "linear", "nearest_neighbor, linear or cubic."),
        AttrDef::str(
            "coordinate_transformation_mode",
            "half_pixel",
            "half_pixel, align_corners, asymmetric, pytorch_half_pixel or tf_half_pixel_for_nn.",
        ),
        AttrDef::str(
            "rounding_method",
            "round",
            "For nearest_neighbor: round, floor, ceil, round_prefer_floor or round_prefer_ceil.",
        ),
        AttrDef::float("cubic_alpha", -0.75, "The parameter of the cubic."),
        AttrDef::int("cubic_exclude", 0, "Whether elements outside the image have no weight in the cubic."),
        AttrDef::float(
            "extrapolation_value",
            0.0,
            "The value outside a region; there is none outside the whole image.",
        ),
        AttrDef::dtype("out_dtype", "Element type of the result."),
    ],
    infer: resize_type,
    lower: Lowering::Compute(resize2d),
    pattern: OpPattern::Injective,
    mixed_precision: MixedPrecision::Follow,
    layout: Some(layout::windowed),
    ..OpDef::BASE
}];

fn resize_type(cx: &CallCx) -> Result<Type, OpError> {
    cx.layout("layout", &["NCHW"])?;
    let data = cx.tensor(0)?;
    let dtype = cx.dtype("out_dtype").unwrap_or(data.dtype);
    let size = match cx.shape_arg(1)? {
        Ok(size) => size,
        Err(_) => return Ok(tensor_type(None, Some(4), dtype)),
    };
    let [height, width] = &size[..] else { return cx.invalid(format!("`size` has {} dimensions, not 2", size.len())) };
    match data.dims.as_deref() {
        None => Ok(tensor_type(None, Some(4), dtype)),
        Some([n, c, _, _]) => Ok(Type::tensor([n, c, height, width], dtype)),
        Some(dims) => cx.invalid(format!("`data` has {} dimensions, not 4", dims.len())),
    }
}

/// How positions in the result become positions in the image.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Coordinates {
    HalfPixel,
    TorchHalfPixel,
    TfHalfPixel,
    AlignCorners,
    Asymmetric,
}

fn coordinates(cx: &CallCx) -> Result<Coordinates, OpError> {
    Ok(match cx.str("coordinate_transformation_mode")? {
        "half_pixel" => Coordinates::HalfPixel,
        "pytorch_half_pixel" => Coordinates::TorchHalfPixel,
        "tf_half_pixel_for_nn" => Coordinates::TfHalfPixel,
        "align_corners" => Coordinates::AlignCorners,
        "asymmetric" => Coordinates::Asymmetric,
        other => return cx.unsupported(format!("coordinate_transformation_mode \"{other}\" is not implemented")),
    })
}

fn resize2d(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let [data] = inputs else { return cx.invalid("needs an image") };
    let size = cx.known_shape(1)?;
    let ([n, c, h, w], [height, width]) = (data.shape(), &size[..]) else {
        return cx.invalid("needs an image of 4 dimensions");
    };
    let axes = [
        Axis { from: h.clone(), to: height.clone(), coordinates: coordinates(cx)? },
        Axis { from: w.clone(), to: width.clone(), coordinates: coordinates(cx)? },
    ];
    let dims = [n.clone(), c.clone(), height.clone(), width.clone()];
    let dtype = cx.dtype("out_dtype").unwrap_or(data.dtype());
    let image = Image { data, axes, dtype };
    let result = match cx.str("method")? {
        "nearest_neighbor" => {
            let rounding = rounding(cx)?;
            te::compute("resize", dims, |at| image.nearest(at, rounding))
        }
        "linear" => te::compute("resize", dims, |at| image.linear(at)),
        "cubic" => {
            let (alpha, exclude) = (cx.float("cubic_alpha")?, cx.int("cubic_exclude")? != 0);
            te::compute("resize", dims, |at| image.cubic(at, alpha, exclude))
        }
        other => return cx.invalid(format!("there is no method \"{other}\"")),
    };
    Ok(vec![result])
}

/// Which neighbour is the nearest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rounding {
    Floor,
    Ceil,
    HalfDown,
    HalfUp,
    HalfEven,
}

fn rounding(cx: &CallCx) -> Result<Rounding, OpError> {
    Ok(match cx.str("rounding_method")? {
        "floor" => Rounding::Floor,
        "ceil" => Rounding::Ceil,
        "round_prefer_floor" => Rounding::HalfDown,
        "round_prefer_ceil" => Rounding::HalfUp,
        "round" => Rounding::HalfEven,
        "" if coordinates(cx)? == Coordinates::HalfPixel => Rounding::HalfEven,
        "" => Rounding::Floor,
        other => return cx.invalid(format!("there is no rounding_method \"{other}\"")),
    })
}

/// One axis that changes its size.
struct Axis {
    from: PrimExpr,
    to: PrimExpr,
    coordinates: Coordinates,
}

impl Axis {
    /// Old over new size as a fraction in small numbers, where the compiler can tell.
    fn ratio(&self) -> (PrimExpr, PrimExpr) {
        const LARGEST: i64 = 16;
        for k in 1..=LARGEST {
            if prove_equal(&self.to, &(&self.from * k)) {
                return (prim::int(1), prim::int(k));
            }
            if prove_equal(&self.from, &(&self.to * k)) {
                return (prim::int(k), prim::int(1));
            }
        }
        (self.from.clone(), self.to.clone())
    }

    /// The position in the image as a fraction of two integers.
    fn fraction(&self, at: &PrimExpr) -> (PrimExpr, PrimExpr) {
        let (from, to) = self.ratio();
        let centre = at * 2 + 1;
        match self.coordinates {
            Coordinates::Asymmetric => (at * from, to),
            Coordinates::HalfPixel => (centre * from - &to, to * 2),
            Coordinates::TfHalfPixel => (centre * from, to * 2),
            Coordinates::TorchHalfPixel => {
                let single = prim::le(&self.to, 1);
                (prim::select(single, prim::int(0), centre * from - &to), to * 2)
            }
            Coordinates::AlignCorners => (at * (&self.from - 1), prim::max(&self.to - 1, 1)),
        }
    }

    /// The index of the nearest neighbour, inside the image.
    fn nearest(&self, at: &PrimExpr, rounding: Rounding) -> PrimExpr {
        let (num, den) = self.fraction(at);
        let index = match rounding {
            Rounding::Floor => prim::floordiv(&num, &den),
            Rounding::Ceil => prim::floordiv(num + &den - 1, &den),
            Rounding::HalfDown => prim::floordiv(num * 2 + &den - 1, den * 2),
            Rounding::HalfUp => prim::floordiv(num * 2 + &den, den * 2),
            Rounding::HalfEven => {
                let (shifted, whole) = (num * 2 + &den, den * 2);
                let up = prim::floordiv(&shifted, &whole);
                let tie = prim::eq(prim::floormod(shifted, whole), 0);
                let odd = prim::eq(prim::floormod(&up, 2), 1);
                prim::select(prim::and(tie, odd), &up - 1, &up)
            }
        };
        // Growing by a whole factor and rounding down never leaves the image.
        let inside =
            rounding == Rounding::Floor && self.coordinates == Coordinates::Asymmetric && self.ratio().0.is_int(1);
        if inside { index } else { self.clamp(index) }
    }

    fn clamp(&self, index: PrimExpr) -> PrimExpr {
        prim::max(prim::min(index, &self.from - 1), 0)
    }

    /// The position in the image, as a float: the whole part as an index, and what is beyond it.
    fn position(&self, at: &PrimExpr) -> (PrimExpr, PrimExpr) {
        let float = |e: PrimExpr| cast(DataType::float(32), e);
        let half = || float_of(DataType::float(32), 0.5);
        let scale = || prim::div(float(self.from.clone()), float(self.to.clone()));
        let x = float(at.clone());
        let position = match self.coordinates {
            Coordinates::Asymmetric => x * scale(),
            Coordinates::HalfPixel => (x + half()) * scale() - half(),
            Coordinates::TfHalfPixel => (x + half()) * scale(),
            Coordinates::TorchHalfPixel => {
                let zero = float_of(DataType::float(32), 0.0);
                prim::select(prim::le(&self.to, 1), zero, (x + half()) * scale() - half())
            }
            Coordinates::AlignCorners => x * prim::div(float(&self.from - 1), float(prim::max(&self.to - 1, 1))),
        };
        let whole = math("floor", position.clone());
        (cast(DataType::int(64), whole.clone()), position - whole)
    }
}

/// An image that is resized.
struct Image<'a> {
    data: &'a te::Tensor,
    axes: [Axis; 2],
    dtype: DataType,
}

impl Image<'_> {
    fn nearest(&self, at: &[PrimExpr], rounding: Rounding) -> PrimExpr {
        let [y, x] = &self.axes;
        let index = [at[0].clone(), at[1].clone(), y.nearest(&at[2], rounding), x.nearest(&at[3], rounding)];
        cast(self.dtype, self.data.at(&index))
    }

    /// An element of the image, or the nearest in it, as a float.
    fn element(&self, at: &[PrimExpr], row: PrimExpr, column: PrimExpr) -> PrimExpr {
        let [y, x] = &self.axes;
        let value = self.data.at(&[at[0].clone(), at[1].clone(), y.clamp(row), x.clamp(column)]);
        cast(self.accumulator(), value)
    }

    /// The type that values are mixed in.
    fn accumulator(&self) -> DataType {
        if self.data.dtype() == DataType::float(64) { DataType::float(64) } else { DataType::float(32) }
    }

    fn linear(&self, at: &[PrimExpr]) -> PrimExpr {
        let [y, x] = &self.axes;
        let ((row, down), (column, right)) = (y.position(&at[2]), x.position(&at[3]));
        let mix = |a: PrimExpr, b: PrimExpr, part: &PrimExpr| {
            let part = cast(self.accumulator(), part);
            &a + (b - &a) * part
        };
        let line = |row: PrimExpr| {
            let (left, next) = (self.element(at, row.clone(), column.clone()), self.element(at, row, &column + 1));
            mix(left, next, &right)
        };
        cast(self.dtype, mix(line(row.clone()), line(&row + 1), &down))
    }

    fn cubic(&self, at: &[PrimExpr], alpha: f64, exclude: bool) -> PrimExpr {
        let [y, x] = &self.axes;
        let ((row, down), (column, right)) = (y.position(&at[2]), x.position(&at[3]));
        let rows = self.weights(y, &row, &down, alpha, exclude);
        let columns = self.weights(x, &column, &right, alpha, exclude);
        let mut total = constant(self.accumulator(), 0.0);
        for (i, row_weight) in rows.iter().enumerate() {
            let mut line = constant(self.accumulator(), 0.0);
            for (j, weight) in columns.iter().enumerate() {
                line = line + self.element(at, &row + (i as i64 - 1), &column + (j as i64 - 1)) * weight;
            }
            total = total + line * row_weight;
        }
        cast(self.dtype, total)
    }

    /// The weights of the four neighbours along an axis (Keys, 1981).
    fn weights(&self, axis: &Axis, whole: &PrimExpr, part: &PrimExpr, alpha: f64, exclude: bool) -> Vec<PrimExpr> {
        let dtype = self.accumulator();
        let number = |v: f64| constant(dtype, v);
        let t = cast(dtype, part);
        // Distances of the neighbours, from the left.
        let distances = [&t + number(1.0), t.clone(), number(1.0) - &t, number(2.0) - &t];
        let near = |d: &PrimExpr| ((number(alpha + 2.0) * d - number(alpha + 3.0)) * d * d) + number(1.0);
        let far = |d: &PrimExpr| {
            ((number(alpha) * d - number(5.0 * alpha)) * d + number(8.0 * alpha)) * d - number(4.0 * alpha)
        };
        let weights = [far(&distances[0]), near(&distances[1]), near(&distances[2]), far(&distances[3])];
        if !exclude {
            return weights.to_vec();
        }
        let inside = |i: usize| {
            let index = whole + (i as i64 - 1);
            prim::and(prim::ge(&index, 0), prim::lt(index, &axis.from))
        };
        let kept: Vec<PrimExpr> =
            weights.iter().enumerate().map(|(i, w)| prim::select(inside(i), w, number(0.0))).collect();
        let total = kept.iter().fold(number(0.0), |total, w| total + w);
        kept.iter().map(|w| prim::div(w, &total)).collect()
    }
}
