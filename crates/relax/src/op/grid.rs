//! Sampling of images at places that a grid names, and grids made by affine maps.
//!
//! Places are given as numbers from -1 to 1 across the image: to the centres of its corner elements with `align_corners`, else
//! to its edges. The coordinates of a place lie in the grid's second dimension, that of the last axis first.

use relaxide_ffi::DataType;
use relaxide_ir::Type;
use relaxide_ir::prim::{self, PrimExpr, cast, constant, math};
use relaxide_tir::te;

use super::manipulate::{input, result_dims};
use super::names::Names;
use super::window::{Image, all, compute, layout_of, packed, unpacked};
use super::*;

/// The rows.
pub static TABLE: &[OpDef] = &[
    OpDef::compute(
        "image.affine_grid",
        &[
            ArgDef::tensor("data", "The maps: (N, 2, 3) for images, (N, 3, 4) for volumes."),
            ArgDef::shape("size", "The grid's spatial dimensions."),
        ],
        &[AttrDef::bool("align_corners", true, "Whether -1 and 1 are the centres of the corner elements.")],
        affine_type,
        affine_grid,
        "For each element of the grid the place that an affine map sends it to. ONNX: AffineGrid; ATen: affine_grid_generator.",
    )
    .follow(),
    OpDef::compute(
        "image.grid_sample",
        &[ArgDef::tensor("data", "The image."), ArgDef::tensor("grid", "The places: (N, 2, H, W), or (N, 3, D, H, W).")],
        &[
            AttrDef::str("method", "bilinear", "How elements are mixed: bilinear, nearest, bicubic (images only)."),
            AttrDef::str("layout", "NCHW", "Order of the image's axes; a number and a small letter split one, as in `NCHW4c`."),
            AttrDef::str("padding_mode", "zeros", "What lies outside: zeros, border, reflection."),
            AttrDef::bool("align_corners", false, "Whether -1 and 1 are the centres of the corner elements."),
        ],
        sample_type,
        grid_sample,
        "The image's elements at the places of a grid. ONNX: GridSample; ATen: grid_sampler.",
    )
    .lengths(|cx| match cx.str("layout")?.starts_with('N') {
        true => Ok(lengths::equal_dims(cx, &[(0, 0), (1, 0)])),
        false => Ok(Vec::new()),
    })
    .follow(),
];

fn affine_type(cx: &CallCx) -> Result<Type, OpError> {
    let data = cx.tensor(0)?;
    if let Some(n) = data.ndim.filter(|n| *n != 3) {
        return cx.invalid(format!("`data` has {n} dimensions, not 3"));
    }
    let size = match cx.shape_arg(1)? {
        Ok(size) => size,
        Err(n) => return Ok(tensor_type(None, n.map(|n| n + 2), data.dtype)),
    };
    let n = size.len();
    if !matches!(n, 2 | 3) {
        return cx.invalid(format!("the grid has {n} spatial dimensions, not 2 or 3"));
    }
    let Some(dims) = data.dims else { return Ok(tensor_type(None, Some(n + 2), data.dtype)) };
    for (dim, want) in dims[1..].iter().zip([n as i64, n as i64 + 1]) {
        if dim.as_int().is_some_and(|d| d != want) {
            return cx.invalid(format!("the maps of a grid of {n} dimensions are {n} by {}", n + 1));
        }
    }
    let front = [dims[0].clone(), PrimExpr::from(n as i64)];
    Ok(Type::tensor(front.into_iter().chain(size).collect::<Vec<_>>(), data.dtype))
}

fn affine_grid(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let maps = input(cx, inputs, 0)?;
    let size = cx.known_shape(1)?;
    let (n, dtype, align) = (size.len(), maps.dtype(), cx.bool("align_corners")?);
    Ok(vec![te::compute("T_affine_grid", result_dims(cx)?, |at| {
        let entry = |column: usize| maps.at(&[at[0].clone(), at[1].clone(), PrimExpr::from(column as i64)]);
        (0..n).fold(entry(n), |sum, axis| {
            let (place, size) = (&at[axis + 2], &size[axis]);
            let (above, below) =
                if align { (place * 2, prim::max(size - 1, 1)) } else { (place * 2 + 1, size.clone()) };
            let coordinate = prim::div(cast(dtype, above), cast(dtype, below)) - constant(dtype, 1.0);
            sum + entry(n - 1 - axis) * coordinate
        })
    })])
}

/// The letters of the image's axes, and how many of them are spatial.
fn letters(cx: &CallCx) -> Result<(&'static str, usize), OpError> {
    Ok(if cx.str("layout")?.contains('D') { ("NCDHW", 3) } else { ("NCHW", 2) })
}

fn sample_type(cx: &CallCx) -> Result<Type, OpError> {
    let (data, grid) = (cx.tensor(0)?, cx.tensor(1)?);
    let (letters, n) = letters(cx)?;
    let order = layout_of(cx, "layout", letters)?;
    for (info, name, ndim) in [(&data, "data", order.rank()), (&grid, "grid", n + 2)] {
        if let Some(have) = info.ndim.filter(|have| *have != ndim) {
            return cx.invalid(format!("`{name}` has {have} dimensions, not {ndim}"));
        }
    }
    let Some((image, grid)) = data.dims.zip(grid.dims) else {
        return Ok(tensor_type(None, Some(order.rank()), data.dtype));
    };
    let image = unpacked(cx, "data", &order, &image)?;
    let dims: Vec<PrimExpr> = image[..2].iter().chain(&grid[2..]).cloned().collect();
    Ok(Type::tensor(packed(cx, &order, &dims)?, data.dtype))
}

/// What lies outside of the image.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outside {
    Zeros,
    Border,
    Reflection,
}

fn outside(cx: &CallCx) -> Result<Outside, OpError> {
    Ok(match cx.str("padding_mode")? {
        "zeros" => Outside::Zeros,
        "border" => Outside::Border,
        "reflection" => Outside::Reflection,
        other => return cx.invalid(format!("padding_mode is {other}; there are zeros, border, reflection")),
    })
}

/// An element along an axis.
struct GridElement {
    index: PrimExpr,
    /// Whether it lies in the image.
    within: PrimExpr,
}

/// An image that is sampled.
///
/// Where a place lies does not depend on the channel, so which elements it is mixed from and how much of each is computed once for all of
/// them, into tables that are as large as a plane of the result.
struct Sampled<'a> {
    image: Image,
    grid: &'a te::Tensor,
    sizes: Vec<PrimExpr>,
    outside: Outside,
    align: bool,
    /// The type that places and mixtures are computed in.
    dtype: DataType,
}

/// Tables along one axis, over batch, tap and place.
struct Tables {
    /// Elements that a place is mixed from, or the first of them.
    index: te::Tensor,
    /// How much of each, or how far the place lies behind the first.
    weight: Option<te::Tensor>,
}

fn grid_sample(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let (data, grid) = (input(cx, inputs, 0)?, input(cx, inputs, 1)?);
    let (letters, n) = letters(cx)?;
    let order = layout_of(cx, "layout", letters)?;
    let image = Image::new(cx, "data", data, &order)?;
    let sizes = image.dims().split_off(2);
    let dtype = if grid.dtype() == DataType::float(64) { DataType::float(64) } else { DataType::float(32) };
    let sampled = Sampled { image, grid, sizes, outside: outside(cx)?, align: cx.bool("align_corners")?, dtype };
    let dims: Vec<PrimExpr> = sampled.image.dims()[..2].iter().chain(&grid.shape()[2..]).cloned().collect();
    type Tabulate = fn(&Sampled, usize) -> Tables;
    type Mix = fn(&Sampled, &mut Names, &[Tables], &[PrimExpr]) -> PrimExpr;
    let (tabulate, mix): (Tabulate, Mix) = match (cx.str("method")?, n) {
        ("bilinear" | "linear", _) => {
            (|s, axis| s.linear_tables(axis), |s, names, tables, at| s.linear(names, tables, at))
        }
        ("nearest", _) => (|s, axis| s.nearest_tables(axis), |s, names, tables, at| s.nearest(names, tables, at)),
        ("bicubic" | "cubic", 2) => (|s, axis| s.cubic_tables(axis), |s, names, tables, at| s.cubic(names, tables, at)),
        (other, n) => return cx.invalid(format!("there is no method {other} over {n} dimensions")),
    };
    let tables: Vec<Tables> = (0..n).map(|axis| tabulate(&sampled, axis)).collect();
    let element = |at: &[PrimExpr]| {
        let mut names = Names::default();
        let mixed = mix(&sampled, &mut names, &tables, at);
        names.around(cast(data.dtype(), mixed))
    };
    Ok(vec![compute(cx, "T_grid_sample", &dims, &order, element)?])
}

impl Sampled<'_> {
    fn number(&self, value: f64) -> PrimExpr {
        constant(self.dtype, value)
    }

    /// A table with an element for each tap of each place of the grid.
    fn table(&self, name: &str, taps: i64, element: impl Fn(&mut Names, &[PrimExpr]) -> PrimExpr) -> te::Tensor {
        let dims = self.grid.shape();
        let dims: Vec<PrimExpr> = [dims[0].clone(), taps.into()].into_iter().chain(dims[2..].iter().cloned()).collect();
        te::compute(name, &dims, |at| {
            let mut names = Names::default();
            let value = element(&mut names, at);
            names.around(value)
        })
    }

    /// What a table has for a tap of an element of the result.
    fn entry(&self, table: &te::Tensor, at: &[PrimExpr], tap: i64) -> PrimExpr {
        let index: Vec<PrimExpr> = [at[0].clone(), tap.into()].into_iter().chain(at[2..].iter().cloned()).collect();
        table.at(&index)
    }

    /// The place along an axis, in elements.
    fn place(&self, at: &[PrimExpr], axis: usize) -> PrimExpr {
        let coordinate = PrimExpr::from((self.sizes.len() - 1 - axis) as i64);
        let index: Vec<PrimExpr> = [at[0].clone(), coordinate].into_iter().chain(at[2..].iter().cloned()).collect();
        let raw = cast(self.dtype, self.grid.at(&index)) + self.number(1.0);
        let size = cast(self.dtype, &self.sizes[axis]);
        if self.align {
            return raw * ((size - self.number(1.0)) * self.number(0.5));
        }
        raw * (size * self.number(0.5)) - self.number(0.5)
    }

    /// A place brought into the image, where what lies outside is taken from inside.
    fn inside(&self, names: &mut Names, place: PrimExpr, axis: usize) -> PrimExpr {
        let last = cast(self.dtype, &self.sizes[axis] - 1);
        let clamp = |e: PrimExpr| prim::max(prim::min(e, &last), self.number(0.0));
        match self.outside {
            Outside::Zeros => place,
            Outside::Border => clamp(place),
            Outside::Reflection => clamp(self.reflected(names, place, axis)),
        }
    }

    /// A place mirrored at the edges until it lies between them.
    fn reflected(&self, names: &mut Names, place: PrimExpr, axis: usize) -> PrimExpr {
        let size = cast(self.dtype, &self.sizes[axis]);
        let (start, span) =
            if self.align { (self.number(0.0), size - self.number(1.0)) } else { (self.number(-0.5), size) };
        // An image of one element has no span to mirror in.
        let span = prim::max(span, self.number(if self.align { 1.0 } else { 0.5 }));
        let distance = names.of("distance", math("fabs", place - &start));
        let turns = names.of("turns", math("floor", prim::div(&distance, &span)));
        let rest = names.of("rest", &distance - &turns * &span);
        let half = self.number(0.5);
        let even = prim::eq(math("floor", &turns * &half) * self.number(2.0), &turns);
        prim::select(even, &rest + &start, span - rest + start)
    }

    /// A whole place as an index: of 32 bits, which vectors convert to, where places are no more exact. Beyond the image it stays close
    /// enough for the next element to have a number too.
    fn index(&self, place: PrimExpr, axis: usize) -> PrimExpr {
        let exact = self.dtype == DataType::float(64);
        let most = if exact { (1i64 << 62) as f64 } else { f64::from(1 << 30) };
        let size = prim::min(cast(self.dtype, &self.sizes[axis]), self.number(most));
        let near = prim::max(prim::min(place, size), self.number(-2.0));
        cast(DataType::int(if exact { 64 } else { 32 }), near)
    }

    fn nearest_tables(&self, axis: usize) -> Tables {
        let index = self.table("nearest", 1, |names, at| {
            let inside = self.inside(names, self.place(at, axis), axis);
            self.index(math("nearbyint", inside), axis)
        });
        Tables { index, weight: None }
    }

    fn nearest(&self, names: &mut Names, tables: &[Tables], at: &[PrimExpr]) -> PrimExpr {
        let step = |(axis, table): (usize, &Tables)| self.step(names, self.entry(&table.index, at, 0), axis);
        let steps: Vec<GridElement> = tables.iter().enumerate().map(step).collect();
        self.element(at, &steps.iter().collect::<Vec<_>>())
    }

    fn linear_tables(&self, axis: usize) -> Tables {
        let place = |names: &mut Names, at: &[PrimExpr]| {
            let inside = self.inside(names, self.place(at, axis), axis);
            names.of("place", inside)
        };
        let index = self.table("below", 1, |names, at| self.index(math("floor", place(names, at)), axis));
        let weight = self.table("part", 1, |names, at| {
            let place = place(names, at);
            &place - math("floor", place.clone())
        });
        Tables { index, weight: Some(weight) }
    }

    fn linear(&self, names: &mut Names, tables: &[Tables], at: &[PrimExpr]) -> PrimExpr {
        // Along each axis the elements below and above the place, and their weights.
        let mut pair_along = |(axis, table): (usize, &Tables)| {
            let below = self.step(names, self.entry(&table.index, at, 0), axis);
            let above = self.step(names, &below.index + 1, axis);
            let part = table.weight.as_ref().map_or_else(|| self.number(0.0), |part| self.entry(part, at, 0));
            let part = names.of("part", part);
            [(below, self.number(1.0) - &part), (above, part)]
        };
        let pairs: Vec<[(GridElement, PrimExpr); 2]> = tables.iter().enumerate().map(&mut pair_along).collect();
        let corner = |corner: usize| {
            let chosen: Vec<&(GridElement, PrimExpr)> =
                pairs.iter().enumerate().map(|(axis, pair)| &pair[corner >> axis & 1]).collect();
            let steps: Vec<&GridElement> = chosen.iter().map(|(step, _)| step).collect();
            chosen.iter().fold(self.element(at, &steps), |value, (_, weight)| value * weight)
        };
        (1..1usize << pairs.len()).fold(corner(0), |sum, c| sum + corner(c))
    }

    fn cubic_tables(&self, axis: usize) -> Tables {
        let place = |names: &mut Names, at: &[PrimExpr]| names.of("place", self.place(at, axis));
        let index = self.table("neighbour", 4, |names, at| {
            let below = math("floor", place(names, at));
            let inside = self.inside(names, below + (cast(self.dtype, &at[1]) - self.number(1.0)), axis);
            self.index(inside, axis)
        });
        let weight = self.table("weight", 4, |names, at| {
            let place = place(names, at);
            let part = &place - math("floor", place.clone());
            // The neighbours are 1 + part, part, 1 - part and 2 - part away.
            let distance = math("fabs", part + (self.number(1.0) - cast(self.dtype, &at[1])));
            let distance = names.of("distance", distance);
            let [near, far] = resize::cubic_weight(self.dtype, -0.75, &distance);
            prim::select(prim::and(prim::ge(&at[1], 1), prim::le(&at[1], 2)), near, far)
        });
        Tables { index, weight: Some(weight) }
    }

    fn cubic(&self, names: &mut Names, tables: &[Tables], at: &[PrimExpr]) -> PrimExpr {
        // Along each axis four elements and their weights.
        let mut four_along = |(axis, table): (usize, &Tables)| {
            let tap = |tap: i64| {
                let step = self.step(names, self.entry(&table.index, at, tap), axis);
                let weight = table.weight.as_ref().map_or_else(|| self.number(0.0), |w| self.entry(w, at, tap));
                (step, names.of("weight", weight))
            };
            (0..4).map(tap).collect::<Vec<_>>()
        };
        let taps: Vec<Vec<(GridElement, PrimExpr)>> = tables.iter().enumerate().map(&mut four_along).collect();
        let mut total = self.number(0.0);
        for (row, row_weight) in &taps[0] {
            let mut line = self.number(0.0);
            for (column, weight) in &taps[1] {
                line = line + self.element(at, &[row, column]) * weight;
            }
            total = total + line * row_weight;
        }
        total
    }

    /// The element at an index along an axis.
    fn step(&self, names: &mut Names, index: PrimExpr, axis: usize) -> GridElement {
        let index = names.of("index", cast(DataType::int(64), index));
        GridElement { within: prim::and(prim::ge(&index, 0), prim::lt(&index, &self.sizes[axis])), index }
    }

    /// The element at whole places, zero outside.
    fn element(&self, at: &[PrimExpr], steps: &[&GridElement]) -> PrimExpr {
        let index: Vec<PrimExpr> = at[..2].iter().chain(steps.iter().map(|s| &s.index)).cloned().collect();
        let value = cast(self.dtype, self.image.at(&index));
        prim::if_then_else(all(steps.iter().map(|s| s.within.clone())), value, self.number(0.0))
    }
}
