//! Operators of images beside convolution: sampling, regions, boxes, columns.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_relax::op::window::all;
use relaxide_tir::te;

use super::computed::Ints;
use super::{Outputs, one};
use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;

type Result<T> = std::result::Result<T, NodeError>;

/// `GridSample`: elements of an image at the places of a grid.
pub fn grid_sample(scope: &mut Scope, node: &Node) -> Outputs {
    let (x, grid) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?);
    let rank = scope.dims(&x)?.len();
    let (layout, order): (&str, &[usize]) = match rank {
        4 => ("NCHW", &[0, 3, 1, 2]),
        5 => ("NCDHW", &[0, 4, 1, 2, 3]),
        _ => {
            return Err(NodeError::unsupported(format!("inputs of {rank} axes are not supported; of 4 or 5 they are")));
        }
    };
    let grid = scope.transpose(grid, order)?;
    let method = match node.str_or("mode", "linear")? {
        "linear" | "bilinear" => "bilinear",
        "cubic" | "bicubic" => "bicubic",
        "nearest" => "nearest",
        other => return Err(NodeError::invalid(format!("`mode` is \"{other}\""))),
    };
    let attrs = Attrs::new()
        .with("method", method)
        .with("layout", layout)
        .with("padding_mode", node.str_or("padding_mode", "zeros")?)
        .with("align_corners", node.flag("align_corners", false)?);
    one(scope.op("image.grid_sample", [x, grid], attrs)?)
}

/// `AffineGrid`: the places that affine maps send a grid to.
pub fn affine_grid(scope: &mut Scope, node: &Node) -> Outputs {
    let theta = scope.tensor(node.input(0)?)?;
    let dtype = scope.dtype(&theta);
    let size = Ints::of(scope, node.input(1)?)?;
    let rank = size.count();
    let spatial = rank.checked_sub(2).filter(|n| (2..=3).contains(n));
    let spatial = spatial.ok_or_else(|| NodeError::invalid(format!("the size has {rank} numbers, not 4 or 5")))?;
    let mut args = super::computed::Args::default();
    let size = args.ints(size);
    let bound = super::computed::ShapePlan::bind(scope, "affine_grid", &args, |inputs| super::computed::ShapePlan {
        dims: size.all(inputs).into_iter().map(|d| prim::max(d, 0)).collect(),
        ..super::computed::ShapePlan::default()
    })?;
    let align = node.flag("align_corners", false)?;
    let mut out = vec![bound[0].clone()];
    out.extend(bound[2..].iter().cloned());
    out.push(prim::int(spatial as i64));
    let theta = scope.agree(theta, &[bound[0].clone(), prim::int(spatial as i64), prim::int(spatial as i64 + 1)])?;
    let number = |v: f64| prim::constant(dtype, v);
    one(scope.te("affine_grid", vec![theta], |inputs| {
        vec![te::compute("grid", &out, |at| {
            // Coordinates are those of the last axis first.
            let place = |j: usize| {
                let axis = spatial - 1 - j;
                let (i, n) = (prim::cast(dtype, at[axis + 1].clone()), prim::cast(dtype, bound[axis + 2].clone()));
                if align {
                    let span = prim::max(n - number(1.0), number(1.0));
                    return prim::div(i * number(2.0), span) - number(1.0);
                }
                prim::div(i * number(2.0) + number(1.0), n) - number(1.0)
            };
            let map = |j: usize| inputs[0].at(&[at[0].clone(), at[spatial + 1].clone(), prim::int(j as i64)]);
            (0..spatial).fold(map(spatial), |sum, j| sum + map(j) * place(j))
        })]
    })?)
}

/// `RoiAlign`.
pub fn roi_align(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let (rois, images) = (scope.tensor(node.input(1)?)?, scope.tensor(node.input(2)?)?);
    let dtype = scope.dtype(&x);
    let default = if node.opset < 16 { "output_half_pixel" } else { "half_pixel" };
    let aligned = match node.str_or("coordinate_transformation_mode", default)? {
        "half_pixel" => true,
        "output_half_pixel" => false,
        other => return Err(NodeError::invalid(format!("`coordinate_transformation_mode` is \"{other}\""))),
    };
    let mode = match node.str_or("mode", "avg")? {
        "avg" => "avg",
        "max" => "max_corner",
        other => return Err(NodeError::invalid(format!("`mode` is \"{other}\", neither avg nor max"))),
    };
    let rows = scope.dims(&rois)?[0].clone();
    let rois = scope.agree(rois, &[rows.clone(), prim::int(4)])?;
    let images = scope.cast(images, dtype)?;
    let images = scope.reshape(images, vec![rows, prim::int(1)])?;
    let mut rois = scope.cast(rois, dtype)?;
    if aligned {
        // Places are counted from the centres of elements: half an element less, in the regions' own units.
        let half = scope.scalar(0.5 / node.float_or("spatial_scale", 1.0)?, dtype)?;
        rois = scope.call("subtract", [rois, half])?;
    }
    let regions = scope.op("concat", [Expr::tuple([images, rois])], Attrs::new().with("axis", 1i64))?;
    let attrs = Attrs::new()
        .with("pooled_size", vec![node.int_or("output_height", 1)?, node.int_or("output_width", 1)?])
        .with("spatial_scale", node.float_or("spatial_scale", 1.0)?)
        .with("sample_ratio", node.int_or("sampling_ratio", 0)?)
        .with("aligned", aligned)
        .with("layout", "NCHW")
        .with("mode", mode);
    one(scope.op("vision.roi_align", [x, regions], attrs)?)
}

/// `MaxRoiPool`.
pub fn max_roi_pool(scope: &mut Scope, node: &Node) -> Outputs {
    let (x, rois) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?);
    let rows = scope.dims(&rois)?[0].clone();
    let rois = scope.agree(rois, &[rows, prim::int(5)])?;
    let size = node.ints("pooled_shape")?.filter(|s| s.len() == 2 && s.iter().all(|n| *n > 0));
    let size = size.ok_or_else(|| NodeError::invalid("`pooled_shape` must be two positive numbers"))?;
    let attrs = Attrs::new()
        .with("pooled_size", size)
        .with("spatial_scale", node.float_or("spatial_scale", 1.0)?)
        .with("layout", "NCHW");
    one(scope.op("vision.roi_pool", [x, rois], attrs)?)
}

/// `NonMaxSuppression`: rows of image, class and box. Limits that are left out keep everything, or nothing.
pub fn non_max_suppression(scope: &mut Scope, node: &Node) -> Outputs {
    let (mut boxes, mut scores) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?);
    if let ([batch, count, _], [_, classes, _]) = (&scope.dims(&boxes)?[..], &scope.dims(&scores)?[..]) {
        scores = scope.agree(scores, &[batch.clone(), classes.clone(), count.clone()])?;
        boxes = scope.agree(boxes, &[batch.clone(), count.clone(), prim::int(4)])?;
    }
    if node.flag("center_point_box", false)? {
        boxes = corners(scope, boxes)?;
    }
    let dtype = scope.dtype(&scores);
    let limit = |scope: &mut Scope, i: usize, default: f64, dtype: DataType| -> Result<Expr> {
        let given = match node.optional(i) {
            Some(value) => scope.tensor(value)?,
            None => scope.scalar(default, dtype)?,
        };
        let given = scope.cast(given, dtype)?;
        scope.reshape(given, vec![prim::int(1)])
    };
    let most = limit(scope, 2, 0.0, DataType::int(64))?;
    let overlap = limit(scope, 3, 0.0, DataType::float(32))?;
    // A box is dropped whose overlap is larger; Relax drops at the limit too, so that moves to the next number.
    let overlap = scope.te("beyond", vec![overlap], |inputs| {
        vec![te::compute("beyond", [1i64], |at| {
            let bits = prim::call(
                DataType::int(32),
                "tirx.reinterpret",
                vec![prim::max(inputs[0].at(at), prim::float_of(DataType::float(32), 0.0))],
            );
            prim::call(DataType::float(32), "tirx.reinterpret", vec![bits + prim::int_of(DataType::int(32), 1)])
        })]
    })?;
    let least = limit(scope, 4, f64::NEG_INFINITY, dtype)?;
    let attrs = Attrs::new().with("output_format", "onnx");
    let found = scope.op("vision.all_class_non_max_suppression", [boxes, scores, most, overlap, least], attrs)?;
    let rows = scope.emit(Expr::field(found, 0))?;
    one(scope.bind_dims(rows, vec![None, Some(prim::int(3))], DataType::int(64))?)
}

/// Boxes given by centre, width and height, as corners (top, left, bottom, right).
fn corners(scope: &mut Scope, boxes: Expr) -> Result<Expr> {
    let (mut shape, dtype) = (scope.dims(&boxes)?, scope.dtype(&boxes));
    if shape.len() != 3 {
        return Err(NodeError::invalid(format!("the boxes have {} axes, not 3", shape.len())));
    }
    shape[2] = prim::int(4);
    let boxes = scope.agree(boxes, &shape)?;
    let half = prim::constant(dtype, 0.5);
    scope.te("corners", vec![boxes], |inputs| {
        vec![te::compute("corners", &shape, |at| {
            let part = |k: i64| inputs[0].at(&[at[0].clone(), at[1].clone(), prim::int(k)]);
            let (x, y, w, h) = (part(0), part(1), part(2) * half.clone(), part(3) * half.clone());
            let corners = [y.clone() - h.clone(), x.clone() - w.clone(), y + h, x + w];
            super::computed::choose(&at[2], &corners)
        })]
    })
}

/// `Col2Im`: columns of windows added up in the image that they were taken from.
pub fn col_to_im(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let (shape, dtype) = (scope.dims(&x)?, scope.dtype(&x));
    let (image, block) = (Ints::of(scope, node.input(1)?)?, Ints::of(scope, node.input(2)?)?);
    let rank = image.count();
    if shape.len() != 3 || block.count() != rank || rank == 0 {
        return Err(NodeError::invalid(
            "the columns need 3 axes, the image and the block as many numbers as each other",
        ));
    }
    let list = |name: &str, default: i64, count: usize| -> Result<Vec<i64>> {
        let list = node.ints(name)?.unwrap_or_else(|| vec![default; count]);
        let right = list.len() == count && list.iter().all(|v| (0..1 << 31).contains(v));
        if right { Ok(list) } else { Err(NodeError::invalid(format!("`{name}` is {list:?}, not {count} numbers"))) }
    };
    let (strides, dilations) = (list("strides", 1, rank)?, list("dilations", 1, rank)?);
    let pads = list("pads", 0, 2 * rank)?;
    if strides.iter().chain(&dilations).any(|v| *v < 1) {
        return Err(NodeError::invalid("strides and dilations must be positive"));
    }
    let mut args = super::computed::Args::default();
    let (image, block) = (args.ints(image), args.ints(block));
    let bound = super::computed::ShapePlan::bind(scope, "col2im", &args, |inputs| super::computed::ShapePlan {
        dims: image.all(inputs).into_iter().chain(block.all(inputs)).map(|d| prim::max(d, 1)).collect(),
        ..super::computed::ShapePlan::default()
    })?;
    let (image, block) = bound.split_at(rank);
    let positions: Vec<PrimExpr> = (0..rank)
        .map(|i| {
            let spare = pads[i] + pads[i + rank] - 1;
            let covered = (&block[i] - 1) * dilations[i];
            prim::floordiv(&image[i] + spare - covered, strides[i]) + 1
        })
        .collect();
    let taps = super::computed::product(block.iter().cloned());
    let columns = dims::simplify(&super::computed::product(positions.iter().cloned()));
    let x = scope.agree(x, &[shape[0].clone(), shape[1].clone(), columns])?;
    let mut out = vec![shape[0].clone(), dims::floor_div(&shape[1], &taps)];
    out.extend(image.iter().cloned());
    one(scope.te("col2im", vec![x], |inputs| {
        vec![te::compute("image", &out, |at| {
            let over: Vec<te::ReduceAxis> = block.iter().map(|n| te::reduce_axis(n.clone())).collect();
            let mut inside = Vec::new();
            let (mut row, mut column) = (at[1].clone(), prim::int(0));
            for i in 0..rank {
                // The window that has this element under its tap begins so far in front of it.
                let start = &at[i + 2] + pads[i] - over[i].var() * dilations[i];
                let place = prim::floordiv(&start, strides[i]);
                inside.push(prim::eq(prim::floormod(&start, strides[i]), 0));
                inside.push(prim::ge(&start, 0));
                inside.push(prim::lt(&place, &positions[i]));
                row = row * &block[i] + over[i].var();
                column = column * &positions[i] + place;
            }
            let element = inputs[0].at(&[at[0].clone(), row, column]);
            te::sum(prim::if_then_else(all(inside), element, prim::constant(dtype, 0.0)), &over)
        })]
    })?)
}

/// `Einsum`. Of dimensions of one letter some may be 1 when the model runs; the others are one.
pub fn einsum(scope: &mut Scope, node: &Node) -> Outputs {
    let mut parts = node.inputs.iter().flatten().map(|v| scope.tensor(v)).collect::<Result<Vec<_>>>()?;
    let equation = node.str_or("equation", "")?;
    let left = equation.split("->").next().unwrap_or_default();
    let shapes = parts.iter().map(|part| scope.dims(part)).collect::<Result<Vec<_>>>()?;
    let letters: Vec<Vec<String>> =
        left.split(',').zip(&shapes).map(|(part, shape)| subscripts(part, shape.len())).collect();
    let mut spread = shapes.clone();
    let mut seen: Vec<&String> = Vec::new();
    for letter in letters.iter().flatten() {
        if seen.contains(&letter) {
            continue;
        }
        seen.push(letter);
        let all = letters.iter().enumerate().flat_map(|(i, own)| {
            own.iter().enumerate().filter(|(_, other)| *other == letter).map(move |(axis, _)| (i, axis))
        });
        let places: Vec<(usize, usize)> = all.filter(|(i, axis)| *axis < shapes[*i].len()).collect();
        let open: Vec<PrimExpr> =
            places.iter().map(|(i, axis)| shapes[*i][*axis].clone()).filter(|d| !d.is_int(1)).collect();
        let named: Vec<(String, PrimExpr)> = places
            .iter()
            .map(|(i, axis)| (scope.named_dim(&parts[*i], *axis), shapes[*i][*axis].clone()))
            .filter(|(_, d)| !d.is_int(1))
            .collect();
        let Some(first) = open.first().filter(|first| !open.iter().all(|d| dims::equal(d, first))) else { continue };
        let apart = open.iter().any(|d| dims::relation(d, first) == dims::Relation::Apart);
        let common = if apart { continue } else { scope.common_dim(&named)? };
        for (i, axis) in places.into_iter().filter(|(i, axis)| !shapes[*i][*axis].is_int(1)) {
            spread[i][axis] = common.clone();
        }
    }
    for (part, (own, wanted)) in parts.iter_mut().zip(shapes.iter().zip(&spread)) {
        if !own.iter().zip(wanted).all(|(a, b)| dims::equal(a, b)) {
            *part = scope.spread(part.clone(), wanted.clone())?;
        }
    }
    one(scope.op("einsum", [Expr::tuple(parts)], Attrs::new().with("subscripts", equation))?)
}

/// A name for each axis of an operand: its letter or, behind dots, its place counted from the last of those.
fn subscripts(part: &str, rank: usize) -> Vec<String> {
    let part: String = part.chars().filter(|c| !c.is_whitespace()).collect();
    let further = rank.saturating_sub(part.chars().filter(|c| *c != '.').count());
    let (front, back) = part.split_once("...").unwrap_or((&part, ""));
    let dots = if part.contains("...") { further } else { 0 };
    let letters = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
    letters(front).into_iter().chain((0..dots).rev().map(|i| format!("...{i}"))).chain(letters(back)).collect()
}

/// `Det`: determinants of matrices of fixed size, by elimination with the largest pivot of each column.
pub fn determinant(scope: &mut Scope, node: &Node) -> Outputs {
    let mut x = scope.tensor(node.input(0)?)?;
    let shape = scope.dims(&x)?;
    let dtype = scope.dtype(&x);
    let size = match &shape[..] {
        [.., rows, columns] if !dims::differ(rows, columns) => rows.as_int().or(columns.as_int()),
        _ => return Err(NodeError::invalid("the input is no square matrix")),
    };
    let size = size
        .filter(|n| (0..=64).contains(n))
        .ok_or_else(|| NodeError::unsupported("the size of the matrices is not fixed, or larger than 64"))?;
    let batch = dims::product(&shape[..shape.len() - 2]);
    let mut square = shape.clone();
    square.truncate(shape.len() - 2);
    square.extend([prim::int(size), prim::int(size)]);
    x = scope.agree(x, &square)?;
    x = scope.reshape(x, vec![batch.clone(), prim::int(size), prim::int(size)])?;
    let unit = scope.scalar(1.0, dtype)?;
    let mut result = scope.op("full", [Expr::shape([batch.clone()]), unit], Attrs::new().with("dtype", dtype))?;
    for step in 0..size {
        let left = size - step;
        let (pivot, next) = eliminate(scope, x, &batch, left, dtype)?;
        result = scope.call("multiply", [result, pivot])?;
        x = next;
    }
    one(scope.reshape(result, shape[..shape.len() - 2].to_vec())?)
}

/// One step: the pivot with its sign, and what is left of the matrices.
fn eliminate(scope: &mut Scope, x: Expr, batch: &PrimExpr, size: i64, dtype: DataType) -> Result<(Expr, Expr)> {
    let magnitude = scope.te("first_column", vec![x.clone()], |inputs| {
        vec![te::compute("column", [batch.clone(), prim::int(size)], |at| {
            prim::math("fabs", inputs[0].at(&[at[0].clone(), at[1].clone(), prim::int(0)]))
        })]
    })?;
    let best = scope.op("argmax", [magnitude], Attrs::new().with("axis", 1i64).with("keepdims", false))?;
    let best = scope.cast(best, DataType::int(64))?;
    let number = |v: f64| prim::constant(dtype, v);
    let pivot = scope.te("pivot", vec![x.clone(), best.clone()], |inputs| {
        vec![te::compute("pivot", [batch.clone()], |at| {
            let row = inputs[1].at(at);
            let value = inputs[0].at(&[at[0].clone(), row.clone(), prim::int(0)]);
            prim::select(prim::eq(&row, 0), value.clone(), number(0.0) - value)
        })]
    })?;
    let rest = [batch.clone(), prim::int(size - 1), prim::int(size - 1)];
    let next = scope.te("eliminated", vec![x, best], |inputs| {
        vec![te::compute("rest", &rest, |at| {
            let (matrix, best) = (&at[0], inputs[1].at(&at[..1]));
            // The first row takes the place of the pivot's.
            let row = prim::select(prim::eq(&at[1] + 1, &best), prim::int(0), &at[1] + 1);
            let element = |row: &PrimExpr, column: PrimExpr| inputs[0].at(&[matrix.clone(), row.clone(), column]);
            let pivot = element(&best, prim::int(0));
            let safe = prim::select(prim::eq(pivot.clone(), number(0.0)), number(1.0), pivot);
            let factor = prim::div(element(&row, prim::int(0)), safe);
            element(&row, &at[2] + 1) - factor * element(&best, &at[2] + 1)
        })]
    })?;
    Ok((pivot, next))
}
