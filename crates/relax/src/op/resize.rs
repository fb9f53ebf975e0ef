//! Resizing of images and volumes, in every layout.
//!
//! Positions of nearest neighbours are computed in integers, exactly: `x * in / out` as a floor division. Where the new size
//! is a whole multiple of the old, also a symbolic one, that is a division by a literal.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr, cast, constant, float_of, math};
use relaxide_ir::{AttrValue, Type};
use relaxide_tir::te;

use super::window::{layout_of, packed, unpacked};
use super::*;
use crate::shape::prove_equal;

const DATA: ArgDef = ArgDef::tensor("data", "The image.");
const MODE: AttrDef = AttrDef::str(
    "coordinate_transformation_mode",
    "half_pixel",
    "half_pixel, align_corners, asymmetric, pytorch_half_pixel or tf_half_pixel_for_nn.",
);
const fn roi_attr(bounds: usize) -> AttrDef {
    let doc = "The region that is resized; only the whole image, which zeros stand for, is implemented.";
    AttrDef::new("roi", AttrKind::Any, AttrDefault::Zeros(bounds), doc)
}
const METHOD: AttrDef = AttrDef::str("method", "linear", "nearest_neighbor, linear or cubic.");
const ALPHA: AttrDef = AttrDef::float("cubic_alpha", -0.75, "The parameter of the cubic.");
const EXCLUDE: AttrDef =
    AttrDef::int("cubic_exclude", 0, "Whether elements outside the image have no weight in the cubic.");
const EXTRAPOLATION: AttrDef =
    AttrDef::float("extrapolation_value", 0.0, "The value outside a region; there is none outside the whole image.");
const OUT_DTYPE: AttrDef = AttrDef::dtype("out_dtype", "Element type of the result.");

const fn layout_attr(default: &'static str) -> AttrDef {
    AttrDef::str("layout", default, "Order of the image's axes; a number and a small letter split one, as in `NCHW4c`.")
}

const fn rounding_attr(default: &'static str) -> AttrDef {
    AttrDef::str(
        "rounding_method",
        default,
        "For nearest_neighbor: round, floor, ceil, round_prefer_floor or round_prefer_ceil; empty is round where corners are \
         aligned, else floor.",
    )
}

/// The rows.
pub static TABLE: &[OpDef] = &[
    OpDef::compute(
        "image.resize2d",
        &[DATA, ArgDef::shape("size", "Height and width of the result.")],
        &[roi_attr(4), layout_attr("NCHW"), METHOD, MODE, rounding_attr("round"), ALPHA, EXCLUDE, EXTRAPOLATION, OUT_DTYPE],
        |cx| resize_type(cx, "NCHW"),
        |cx, t| resize(cx, t, "NCHW"),
        "An image at another height and width. ONNX: Resize; ATen: upsample_nearest2d, upsample_bilinear2d and their like.",
    )
    .pattern(OpPattern::Injective)
    .follow()
    .layout(layout::windowed),
    OpDef::compute(
        "image.resize3d",
        &[DATA, ArgDef::shape("size", "Depth, height and width of the result.")],
        &[roi_attr(6), layout_attr("NCDHW"), METHOD, MODE, rounding_attr(""), ALPHA, EXCLUDE, EXTRAPOLATION, OUT_DTYPE],
        |cx| resize_type(cx, "NCDHW"),
        |cx, t| resize(cx, t, "NCDHW"),
        "A volume at another depth, height and width. ONNX: Resize; ATen: upsample_trilinear3d and its like.",
    )
    .pattern(OpPattern::Injective)
    .follow()
    .layout(layout::windowed),
];

fn resize_type(cx: &CallCx, letters: &str) -> Result<Type, OpError> {
    let order = layout_of(cx, "layout", letters)?;
    let (ndim, rank) = (letters.len(), order.rank());
    let data = cx.tensor(0)?;
    if let Some(n) = data.ndim.filter(|n| *n != rank) {
        return cx.invalid(format!("`data` has {n} dimensions, not {rank}"));
    }
    let dtype = cx.dtype("out_dtype").unwrap_or(data.dtype);
    let size = match cx.shape_arg(1)? {
        Ok(size) => size,
        Err(Some(n)) if n != ndim - 2 => return cx.invalid(format!("`size` has {n} dimensions, not {}", ndim - 2)),
        Err(_) => return Ok(tensor_type(None, Some(rank), dtype)),
    };
    if size.len() != ndim - 2 {
        return cx.invalid(format!("`size` has {} dimensions, not {}", size.len(), ndim - 2));
    }
    let Some(image) = data.dims else { return Ok(tensor_type(None, Some(rank), dtype)) };
    let image = unpacked(cx, "data", &order, &image)?;
    let dims: Vec<PrimExpr> = image[..2].iter().cloned().chain(size).collect();
    Ok(Type::tensor(packed(cx, &order, &dims)?, dtype))
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

fn resize(cx: &CallCx, inputs: &[te::Tensor], letters: &str) -> Result<Vec<te::Tensor>, OpError> {
    let [data] = inputs else { return cx.invalid("needs an image") };
    if !whole_region(cx) {
        return cx.unsupported("only the whole image is resized; `roi` must be absent or zeros");
    }
    let order = layout_of(cx, "layout", letters)?;
    let source = window::Image::new(cx, "data", data, &order)?;
    let (size, from) = (cx.known_shape(1)?, source.dims());
    let mode = coordinates(cx)?;
    let axis =
        |(from, to): (&PrimExpr, &PrimExpr)| ResizedAxis { from: from.clone(), to: to.clone(), coordinates: mode };
    let axes: Vec<ResizedAxis> = from[2..].iter().zip(&size).map(axis).collect();
    let dims: Vec<PrimExpr> = from[..2].iter().chain(&size).cloned().collect();
    let dtype = cx.dtype("out_dtype").unwrap_or(data.dtype());
    let image = Image { data: source, axes, dtype };
    let compute = |f: &dyn Fn(&[PrimExpr]) -> PrimExpr| window::compute(cx, "resize", &dims, &order, f);
    let result = match cx.str("method")? {
        "nearest_neighbor" => {
            let rounding = rounding(cx)?;
            let columns = image.nearest_columns(rounding);
            compute(&|at| image.nearest(at, rounding, columns.as_ref()))
        }
        "linear" if order.is_plain() => {
            let columns = Columns::of(&image);
            let lines = columns.rows().map(|rows| columns.lines(&dims, rows));
            compute(&|at| columns.linear(lines.as_ref(), at))
        }
        "linear" => compute(&|at| image.linear(at)),
        "cubic" => {
            let (alpha, exclude) = (cx.float("cubic_alpha")?, cx.int("cubic_exclude")? != 0);
            compute(&|at| image.cubic(at, alpha, exclude))
        }
        other => return cx.invalid(format!("there is no method \"{other}\"")),
    };
    Ok(vec![result?])
}

/// Whether the region is absent or says nothing.
fn whole_region(cx: &CallCx) -> bool {
    let zero = |v: &AttrValue| match v {
        AttrValue::Float(v) => *v == 0.0,
        AttrValue::Int(v) => *v == 0,
        AttrValue::Prim(PrimExpr::Float(f)) => f.value == 0.0,
        _ => false,
    };
    match cx.attrs.get("roi") {
        None => true,
        Some(AttrValue::List(list)) => list.iter().all(zero),
        Some(_) => false,
    }
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
        "" if coordinates(cx)? == Coordinates::AlignCorners => Rounding::HalfEven,
        "" => Rounding::Floor,
        other => return cx.invalid(format!("there is no rounding_method \"{other}\"")),
    })
}

/// One axis that changes its size.
struct ResizedAxis {
    from: PrimExpr,
    to: PrimExpr,
    coordinates: Coordinates,
}

impl ResizedAxis {
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

    /// The position in the image: the whole part as an index, and what is beyond it.
    fn position(&self, at: &PrimExpr) -> (PrimExpr, PrimExpr) {
        let position = self.place(at);
        let whole = math("floor", position.clone());
        (cast(DataType::int(64), whole.clone()), position - whole)
    }

    /// The position in the image, as a float.
    fn place(&self, at: &PrimExpr) -> PrimExpr {
        let float = |e: PrimExpr| cast(DataType::float(32), e);
        let half = || float_of(DataType::float(32), 0.5);
        let scale = || prim::div(float(self.from.clone()), float(self.to.clone()));
        let x = float(at.clone());
        match self.coordinates {
            Coordinates::Asymmetric => x * scale(),
            Coordinates::HalfPixel => (x + half()) * scale() - half(),
            Coordinates::TfHalfPixel => (x + half()) * scale(),
            Coordinates::TorchHalfPixel => {
                let zero = float_of(DataType::float(32), 0.0);
                prim::select(prim::le(&self.to, 1), zero, (x + half()) * scale() - half())
            }
            Coordinates::AlignCorners => x * prim::div(float(&self.from - 1), float(prim::max(&self.to - 1, 1))),
        }
    }
}

/// An image that is resized linearly, whose rows lie in memory.
///
/// Where an element of a row lies between two of the image is the same for all rows: tables say it. Elements along a row are picked one
/// by one, those across rows are neighbours; so rows of the image are resized first, where they are not more than those picked otherwise.
struct Columns<'a> {
    image: &'a Image,
    /// The axis along the rows, and its place among those that are resized.
    axis: &'a ResizedAxis,
    last: usize,
    /// For each element of a row the one below its place, and how far behind it the place lies.
    below: te::Tensor,
    part: te::Tensor,
}

impl<'a> Columns<'a> {
    fn of(image: &'a Image) -> Columns<'a> {
        let last = image.axes.len() - 1;
        let axis = &image.axes[last];
        let number = |v: f64| float_of(DataType::float(32), v);
        let below = te::compute("below", [axis.to.clone()], |at| {
            // An index of 32 bits, whose neighbour has a number too.
            let whole = math("floor", axis.place(&at[0]));
            let near = prim::max(prim::min(whole, number(f64::from(1 << 30))), number(-1.0));
            cast(DataType::int(32), near)
        });
        let part = te::compute("part", [axis.to.clone()], |at| {
            let place = axis.place(&at[0]);
            &place - math("floor", place.clone())
        });
        Columns { image, axis, last, below, part }
    }

    /// How many times smaller the result is, where that is an even number: then each of its elements lies in the middle between the two
    /// in the middle of those that it covers, seen from the centres of elements. Places that are known need no tables.
    fn shrunk(axis: &ResizedAxis) -> Option<i64> {
        let (from, to) = axis.ratio();
        from.as_int().filter(|n| to.is_int(1) && n % 2 == 0 && axis.coordinates == Coordinates::HalfPixel)
    }

    /// Which rows are resized before they are mixed; none where elements are picked from the image itself.
    fn rows(&self) -> Option<ResizedRows> {
        if Self::shrunk(self.axis).is_some() || self.last == 0 {
            return None;
        }
        let count = |dim: fn(&ResizedAxis) -> &PrimExpr| {
            let dims = self.image.axes[..self.last].iter().map(|axis| dim(axis).as_int());
            dims.into_iter().try_fold(1i64, |n, dim| n.checked_mul(dim?))
        };
        match count(|axis| &axis.from).zip(count(|axis| &axis.to)) {
            // The image has no more rows than the result picks elements from, and they are picked one by one.
            Some((from, to)) => (from <= to.saturating_mul(1 << self.last.min(8))).then_some(ResizedRows::All),
            None => Some(ResizedRows::WhereFewer),
        }
    }

    /// Rows in the result's length.
    fn lines(&self, dims: &[PrimExpr], rows: ResizedRows) -> Lines {
        let mut shape = self.image.data.dims();
        if let (Some(length), Some(wanted)) = (shape.last_mut(), dims.last()) {
            *length = wanted.clone();
        }
        if rows == ResizedRows::WhereFewer {
            // None are resized where they are too many.
            let is_few = self.has_few_rows();
            shape[2..2 + self.last]
                .iter_mut()
                .for_each(|count| *count = prim::select(is_few.clone(), count.clone(), prim::int(0)));
        }
        let tensor = te::compute("resized_rows", &shape, |at| {
            self.paired(|neighbours| self.across(&at[..at.len() - 1], at, neighbours))
        });
        Lines { tensor, rows }
    }

    /// Whether the image has so few rows that to resize them all first is less than to pick the elements of each of the result's.
    fn has_few_rows(&self) -> PrimExpr {
        let above = self.image.axes[..self.last].iter();
        // Beside picking there is the writing of rows, and their reading.
        above
            .map(|axis| prim::le(&axis.from * 2, &axis.to * 3))
            .reduce(prim::and)
            .unwrap_or_else(|| prim::boolean(false))
    }

    /// What is made of pairs of neighbours, where rows have two elements, and of single ones elsewhere: the same choice for all elements.
    fn paired(&self, value: impl Fn(Neighbours) -> PrimExpr) -> PrimExpr {
        match self.axis.from.as_int() {
            Some(1) => value(Neighbours::None),
            None if Self::shrunk(self.axis).is_none() => {
                prim::if_then_else(prim::ge(&self.axis.from, 2), value(Neighbours::Two), value(Neighbours::None))
            }
            _ => value(Neighbours::Two),
        }
    }

    /// The element of a row of the image at a place of the result.
    fn across(&self, row: &[PrimExpr], at: &[PrimExpr], neighbours: Neighbours) -> PrimExpr {
        let place = &at[2 + self.last..];
        let at_column = |column: PrimExpr| {
            let index: Vec<PrimExpr> = row.iter().cloned().chain([column]).collect();
            cast(self.image.accumulator(), self.image.data.at(&index))
        };
        if let Some(times) = Self::shrunk(self.axis) {
            let column = &place[0] * times + (times / 2 - 1);
            let low = at_column(column.clone());
            let half = constant(self.image.accumulator(), 0.5);
            return &low + (at_column(column + 1) - &low) * half;
        }
        let (low, high) = match neighbours {
            Neighbours::Two => {
                let below = self.below.at(place);
                let last = cast(DataType::int(32), &self.axis.from - 1);
                let first = prim::max(prim::min(&below, &last - 1), 0);
                let first = cast(DataType::int(64), first);
                let (first, second) = (at_column(first.clone()), at_column(first + 1));
                // In front of the row both are its first element, and behind it its last.
                let low = prim::select(prim::ge(&below, last), second.clone(), first.clone());
                (low, prim::select(prim::lt(below, 0), first, second))
            }
            Neighbours::None => (at_column(prim::int(0)), at_column(prim::int(0))),
        };
        &low + (high - &low) * cast(self.image.accumulator(), self.part.at(place))
    }

    /// An element of the result, from rows that were resized or from the image's own.
    fn linear(&self, lines: Option<&Lines>, at: &[PrimExpr]) -> PrimExpr {
        let above = self.image.axes[..self.last].iter().zip(&at[2..]);
        let positions: Vec<_> = above.map(|(axis, at)| axis.position(at)).collect();
        let value = |lines: Option<&te::Tensor>| match lines {
            Some(_) => self.between(lines, at, &positions, &mut at[..2].to_vec(), Neighbours::Two),
            None => self.paired(|neighbours| self.between(lines, at, &positions, &mut at[..2].to_vec(), neighbours)),
        };
        let mixed = match lines {
            Some(Lines { tensor, rows: ResizedRows::WhereFewer }) => {
                prim::if_then_else(self.has_few_rows(), value(Some(tensor)), value(None))
            }
            Some(Lines { tensor, rows: ResizedRows::All }) => value(Some(tensor)),
            None => value(None),
        };
        cast(self.image.dtype, mixed)
    }

    /// The mixture along the axes behind those that have a place.
    fn between(
        &self,
        lines: Option<&te::Tensor>,
        at: &[PrimExpr],
        positions: &[(PrimExpr, PrimExpr)],
        row: &mut Vec<PrimExpr>,
        neighbours: Neighbours,
    ) -> PrimExpr {
        let number = row.len() - 2;
        let Some((whole, part)) = positions.get(number) else {
            return match lines {
                Some(lines) => lines.at(&row.iter().chain(at.last()).cloned().collect::<Vec<_>>()),
                None => self.across(row, at, neighbours),
            };
        };
        let mut side = |place: PrimExpr| {
            row.push(self.image.axes[number].clamp(place));
            let value = self.between(lines, at, positions, row, neighbours);
            row.pop();
            value
        };
        let (low, high) = (side(whole.clone()), side(whole + 1));
        &low + (high - &low) * cast(self.image.accumulator(), part)
    }
}

/// Whether rows have two elements that lie side by side, and are read as a pair.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Neighbours {
    Two,
    None,
}

/// Which rows of an image are resized.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ResizedRows {
    /// All of them.
    All,
    /// All where they are few, and none else: which, is found out when the kernel runs.
    WhereFewer,
}

/// Rows that were resized.
struct Lines {
    tensor: te::Tensor,
    rows: ResizedRows,
}

/// An image that is resized.
struct Image {
    data: window::Image,
    axes: Vec<ResizedAxis>,
    dtype: DataType,
}

impl Image {
    fn nearest(&self, at: &[PrimExpr], rounding: Rounding, columns: Option<&te::Tensor>) -> PrimExpr {
        let places = self.axes.iter().zip(&at[2..]).enumerate().map(|(i, (axis, at))| match columns {
            Some(columns) if i + 1 == self.axes.len() => {
                let (column, last) = (columns.at(std::slice::from_ref(at)), cast(DataType::int(32), &axis.from - 1));
                cast(DataType::int(64), prim::max(prim::min(column, last), 0))
            }
            _ => axis.nearest(at, rounding),
        });
        cast(self.dtype, self.data.at(&at[..2].iter().cloned().chain(places).collect::<Vec<_>>()))
    }

    /// The nearest element of a row for each of the result's, as a table, where neighbours are not a fixed step apart: vectors have no
    /// instruction that divides integers.
    fn nearest_columns(&self, rounding: Rounding) -> Option<te::Tensor> {
        let axis = self.axes.last()?;
        let (from, to) = axis.ratio();
        let is_step =
            axis.coordinates != Coordinates::AlignCorners && (from.is_int(1) && to.as_int().is_some() || to.is_int(1));
        let table =
            || te::compute("nearest", [axis.to.clone()], |at| cast(DataType::int(32), axis.nearest(&at[0], rounding)));
        (!is_step).then(table)
    }

    /// An element of the image, or the nearest in it, as a float.
    fn element(&self, at: &[PrimExpr], places: &[PrimExpr]) -> PrimExpr {
        let inside = self.axes.iter().zip(places).map(|(axis, place)| axis.clamp(place.clone()));
        cast(self.accumulator(), self.data.at(&at[..2].iter().cloned().chain(inside).collect::<Vec<_>>()))
    }

    /// The type that values are mixed in.
    fn accumulator(&self) -> DataType {
        if self.data.dtype() == DataType::float(64) { DataType::float(64) } else { DataType::float(32) }
    }

    fn linear(&self, at: &[PrimExpr]) -> PrimExpr {
        let positions: Vec<_> = self.axes.iter().zip(&at[2..]).map(|(axis, at)| axis.position(at)).collect();
        cast(self.dtype, self.between(at, &positions, &mut Vec::new()))
    }

    /// The mixture along the axes behind those that have a place.
    fn between(&self, at: &[PrimExpr], positions: &[(PrimExpr, PrimExpr)], places: &mut Vec<PrimExpr>) -> PrimExpr {
        let Some((whole, part)) = positions.get(places.len()) else { return self.element(at, places) };
        let mut side = |place: PrimExpr| {
            places.push(place);
            let value = self.between(at, positions, places);
            places.pop();
            value
        };
        let (low, high) = (side(whole.clone()), side(whole + 1));
        &low + (high - &low) * cast(self.accumulator(), part)
    }

    fn cubic(&self, at: &[PrimExpr], alpha: f64, exclude: bool) -> PrimExpr {
        let along = |(axis, at): (&ResizedAxis, &PrimExpr)| {
            let (whole, part) = axis.position(at);
            let weights = self.weights(axis, &whole, &part, alpha, exclude);
            (whole, weights)
        };
        let taps: Vec<_> = self.axes.iter().zip(&at[2..]).map(along).collect();
        cast(self.dtype, self.weighted(at, &taps, &mut Vec::new()))
    }

    /// The weighted sum along the axes behind those that have a place.
    fn weighted(&self, at: &[PrimExpr], taps: &[(PrimExpr, Vec<PrimExpr>)], places: &mut Vec<PrimExpr>) -> PrimExpr {
        let Some((whole, weights)) = taps.get(places.len()) else { return self.element(at, places) };
        let mut total = constant(self.accumulator(), 0.0);
        for (i, weight) in weights.iter().enumerate() {
            places.push(whole + (i as i64 - 1));
            total = total + self.weighted(at, taps, places) * weight;
            places.pop();
        }
        total
    }

    /// The weights of the four neighbours along an axis.
    fn weights(
        &self,
        axis: &ResizedAxis,
        whole: &PrimExpr,
        part: &PrimExpr,
        alpha: f64,
        exclude: bool,
    ) -> Vec<PrimExpr> {
        let weights = cubic_weights(self.accumulator(), alpha, part);
        if !exclude {
            return weights.to_vec();
        }
        let zero = constant(self.accumulator(), 0.0);
        let inside = |i: usize| {
            let index = whole + (i as i64 - 1);
            prim::and(prim::ge(&index, 0), prim::lt(index, &axis.from))
        };
        let kept: Vec<PrimExpr> = weights.iter().enumerate().map(|(i, w)| prim::select(inside(i), w, &zero)).collect();
        let total = kept.iter().fold(zero, |total, w| total + w);
        kept.iter().map(|w| prim::div(w, &total)).collect()
    }
}

/// The weights of the four neighbours of a place that lies `part` behind the second of them (Keys, 1981).
pub fn cubic_weights(dtype: DataType, alpha: f64, part: &PrimExpr) -> [PrimExpr; 4] {
    let number = |v: f64| constant(dtype, v);
    let t = cast(dtype, part);
    // Distances of the neighbours, from the left.
    let distances = [&t + number(1.0), t.clone(), number(1.0) - &t, number(2.0) - &t];
    let [near, far] = [0, 1].map(|which| move |d: &PrimExpr| cubic_weight(dtype, alpha, d)[which].clone());
    [far(&distances[0]), near(&distances[1]), near(&distances[2]), far(&distances[3])]
}

/// The weight of a neighbour that lies so far away, if that is at most an element, and if it is more.
pub fn cubic_weight(dtype: DataType, alpha: f64, distance: &PrimExpr) -> [PrimExpr; 2] {
    let (number, d) = (|v: f64| constant(dtype, v), distance);
    let near = ((number(alpha + 2.0) * d - number(alpha + 3.0)) * d * d) + number(1.0);
    let far = ((number(alpha) * d - number(5.0 * alpha)) * d + number(8.0 * alpha)) * d - number(4.0 * alpha);
    [near, far]
}
