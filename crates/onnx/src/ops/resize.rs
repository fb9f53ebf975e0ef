//! Resizing of images.
//!
//! ONNX maps coordinates by the scale that the model gives, Relax by the quotient of the sizes. The two are the same where
//! size times scale is whole: images of which that is known go to Relax's operator, all else to [`super::interpolate`].

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::conv::{as_2d, from_2d};
use super::interpolate::{self, Along, Extent, Filter, Region};
use super::{Outputs, one};
use crate::constant;
use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;
use crate::symbolic::{Ratio, Symbolic};
use crate::value::Value;
use relaxide_frontend::Check;

type Result<T> = std::result::Result<T, NodeError>;

/// How positions and values are computed.
struct Method<'a> {
    method: &'a str,
    coordinates: &'a str,
    rounding: &'a str,
    cubic_alpha: f64,
    cubic_exclude: bool,
}

/// `Upsample`, which `Resize` has replaced: scales are attributes, later an input.
pub fn upsample(scope: &mut Scope, node: &Node) -> Outputs {
    let given = match (node.floats("scales")?, node.float("height_scale")?, node.float("width_scale")?) {
        (Some(list), ..) => Some(list.into_iter().map(f64::from).collect()),
        (None, Some(height), Some(width)) => Some(vec![1.0, 1.0, height, width]),
        _ => None,
    };
    let value = match given {
        Some(list) => {
            let count = list.len() as i64;
            let tensor = relaxide_frontend::constant::filled(&list, &[count], DataType::float(32));
            Value::Constant(tensor?)
        }
        None => node.input(1)?.clone(),
    };
    by_scales(scope, node, &value)
}

/// `Resize` of opset 10: scales only.
pub fn resize_v10(scope: &mut Scope, node: &Node) -> Outputs {
    by_scales(scope, node, node.input(1)?)
}

fn by_scales(scope: &mut Scope, node: &Node, scales: &Value) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let shape = scope.dims(&x)?;
    let sizes = ratios(scales).map(|scales| scaled(&shape, &scales));
    if let (Some(Ok(sizes)), 3..=4) = (sizes, shape.len())
        && shape.iter().zip(&sizes).take(2).all(|(old, new)| dims::equal(old, new))
    {
        let method = Method {
            method: mode(node)?,
            coordinates: "asymmetric",
            rounding: "floor",
            cubic_alpha: -0.75,
            cubic_exclude: false,
        };
        return resized(scope, x, sizes, &method);
    }
    let filter = Filter {
        mode: if mode(node)? == "nearest_neighbor" { "nearest" } else { "linear" }.to_string(),
        coordinates: "asymmetric".to_string(),
        rounding: "floor".to_string(),
        cubic_a: -0.75,
        exclude_outside: false,
        antialias: false,
        extrapolation: 0.0,
    };
    let tensor = scope.tensor(scales)?;
    let tensor = scope.agree(tensor, &[prim::int(shape.len() as i64)])?;
    let mut result = x;
    for (axis, dim) in shape.iter().enumerate() {
        if !unchanged(Some(scales), None, axis, dim) {
            let extent = Extent::Scale(tensor.clone(), axis);
            let how = Along { axis, extent, scale: None, region: None };
            result = interpolate::along(scope, result, &how, &filter)?;
        }
    }
    one(result)
}

/// `Resize` since opset 11: by scales or to sizes.
pub fn resize(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let shape = scope.dims(&x)?;
    let axes = match node.ints("axes")? {
        Some(axes) => axes.into_iter().map(|a| dims::axis(a, shape.len())).collect::<Option<Vec<_>>>(),
        None => Some((0..shape.len()).collect()),
    };
    let axes = axes.ok_or_else(|| NodeError::invalid("`axes` names an axis that the input does not have"))?;
    let (scales, sizes) = (given(scope, node, 2), given(scope, node, 3));
    if scales.is_none() && sizes.is_none() {
        return Err(NodeError::invalid("neither scales nor sizes are given"));
    }
    if let Some(sizes) = plain_sizes(node, &shape, &axes, scales, sizes)? {
        let method = Method {
            method: mode(node)?,
            coordinates: coordinates(node)?,
            rounding: node.str_or("nearest_mode", "round_prefer_floor")?,
            cubic_alpha: node.float_or("cubic_coeff_a", -0.75)?,
            cubic_exclude: node.flag("exclude_outside", false)?,
        };
        return resized(scope, x, sizes, &method);
    }
    general(scope, node, x, &axes)
}

/// An input that is there and has elements.
fn given<'n>(scope: &Scope, node: &'n Node, i: usize) -> Option<&'n Value> {
    node.optional(i).filter(|v| scope.value_dims(v).is_ok_and(|d| !d.iter().any(|d| d.is_int(0))))
}

/// The new dimensions, where Relax's operator for images does what the node asks for.
fn plain_sizes(
    node: &Node,
    shape: &[PrimExpr],
    axes: &[usize],
    scales: Option<&Value>,
    sizes: Option<&Value>,
) -> Result<Option<Vec<PrimExpr>>> {
    let special = node.flag("antialias", false)?
        || node.str_or("keep_aspect_ratio_policy", "stretch")? != "stretch"
        || coordinates(node).is_err();
    let sizes = match (sizes, scales) {
        (Some(sizes), _) => sizes.symbolic().and_then(|s| s.ints()).map(|sizes| spread(shape, axes, sizes)),
        (None, Some(scales)) => ratios(scales).map(|scales| {
            let scales = spread(&vec![Ratio::int(1); shape.len()], axes, scales)?;
            scaled(shape, &scales)
        }),
        (None, None) => None,
    };
    let Some(Ok(sizes)) = sizes else { return Ok(None) };
    let image = (3..=4).contains(&shape.len()) && sizes.len() == shape.len();
    let kept = shape.iter().zip(&sizes).take(2).all(|(old, new)| dims::equal(old, new));
    Ok((image && kept && !special).then_some(sizes))
}

/// Axis by axis, with scales and sizes read when the program runs.
fn general(scope: &mut Scope, node: &Node, mut x: Expr, axes: &[usize]) -> Outputs {
    let filter = Filter {
        mode: match node.str_or("mode", "nearest")? {
            known @ ("nearest" | "linear" | "cubic") => known.to_string(),
            other => return Err(NodeError::invalid(format!("`mode` is \"{other}\""))),
        },
        coordinates: node.str_or("coordinate_transformation_mode", "half_pixel")?.to_string(),
        rounding: node.str_or("nearest_mode", "round_prefer_floor")?.to_string(),
        cubic_a: node.float_or("cubic_coeff_a", -0.75)?,
        exclude_outside: node.flag("exclude_outside", false)?,
        antialias: node.flag("antialias", false)?,
        extrapolation: node.float_or("extrapolation_value", 0.0)?,
    };
    let narrow = DataType::float(32);
    let shape = scope.dims(&x)?;
    let vector = |scope: &mut Scope, value: &Value, dtype: DataType, count: usize| -> Result<Expr> {
        let tensor = scope.tensor(value)?;
        let tensor = scope.cast(tensor, dtype)?;
        scope.agree(tensor, &[prim::int(count as i64)])
    };
    let (scales, sizes) = (given(scope, node, 2), given(scope, node, 3));
    let region = match given(scope, node, 1) {
        Some(roi) if filter.coordinates == "tf_crop_and_resize" => Some(vector(scope, roi, narrow, 2 * axes.len())?),
        _ => None,
    };
    let (mut tensor, mut by_scale, mut common) = match (sizes, scales) {
        (Some(sizes), _) => (vector(scope, sizes, DataType::int(64), axes.len())?, false, None),
        (None, Some(scales)) => (vector(scope, scales, narrow, axes.len())?, true, None),
        (None, None) => return Err(NodeError::invalid("neither scales nor sizes are given")),
    };
    if by_scale && scales.is_some_and(|scales| scales.constant().is_none()) {
        super::computed::require(scope, tensor.clone(), |scales| {
            let scale = |i: usize| scales.at(&[prim::int(i as i64)]);
            let positive = |i| {
                prim::and(
                    prim::gt(scale(i), prim::constant(narrow, 0.0)),
                    prim::lt(scale(i), prim::constant(narrow, 2e9)),
                )
            };
            Check::new(super::computed::all((0..axes.len()).map(positive)), "scales must be positive numbers below 2e9")
        })?;
    } else if !by_scale && sizes.is_some_and(|sizes| sizes.constant().is_none()) {
        super::computed::require(scope, tensor.clone(), |sizes| {
            let size = |i: usize| sizes.at(&[prim::int(i as i64)]);
            let values = (0..axes.len()).map(|i| (format!("size {i}"), size(i)));
            let natural = super::computed::all((0..axes.len()).map(|i| prim::ge(size(i), 0)));
            Check::new(natural, "sizes must not be negative").with(values)
        })?;
    }
    let policy = node.str_or("keep_aspect_ratio_policy", "stretch")?;
    if policy != "stretch" && !by_scale {
        let (scale, kept) = keep_aspect(scope, tensor, &shape, axes, policy)?;
        (tensor, by_scale, common) = (kept, false, Some(scale));
    }
    for (i, &axis) in axes.iter().enumerate() {
        let extent = if by_scale { Extent::Scale(tensor.clone(), i) } else { Extent::Size(tensor.clone(), i) };
        let region = region.clone().map(|tensor| Region { tensor, start: i, end: i + axes.len() });
        if unchanged(scales.filter(|_| by_scale), sizes.filter(|_| common.is_none()), i, &shape[axis])
            && region.is_none()
        {
            continue;
        }
        x = interpolate::along(scope, x, &Along { axis, extent, scale: common.clone(), region }, &filter)?;
    }
    one(x)
}

/// Whether a scale is known to be 1, or a size to be what it was.
fn unchanged(scales: Option<&Value>, sizes: Option<&Value>, i: usize, old: &PrimExpr) -> bool {
    let known = |value: &Value| value.symbolic().and_then(|s| s.elements.get(i).cloned());
    let by_scale = scales.and_then(known).is_some_and(|s| s.as_int() == Some(1));
    let by_size = sizes.and_then(known).and_then(|s| s.as_whole().cloned()).is_some_and(|s| dims::equal(&s, old));
    by_scale || by_size
}

/// One scale for all axes, with which none is larger (or smaller) than asked, and the sizes that it makes.
fn keep_aspect(
    scope: &mut Scope,
    sizes: Expr,
    shape: &[PrimExpr],
    axes: &[usize],
    policy: &str,
) -> Result<(Expr, Expr)> {
    let narrow = DataType::float(32);
    let larger = match policy {
        "not_larger" => false,
        "not_smaller" => true,
        other => return Err(NodeError::invalid(format!("`keep_aspect_ratio_policy` is \"{other}\""))),
    };
    let real = |e: PrimExpr| prim::cast(narrow, e);
    let scale = scope.te("common_scale", vec![sizes], |inputs| {
        let ratio = |i: usize| prim::div(real(inputs[0].at(&[prim::int(i as i64)])), real(shape[axes[i]].clone()));
        vec![te::compute("scale", [1i64], |_| {
            (1..axes.len()).map(ratio).fold(ratio(0), |a, b| if larger { prim::max(a, b) } else { prim::min(a, b) })
        })]
    })?;
    let own: Vec<PrimExpr> = axes.iter().map(|&a| shape[a].clone()).collect();
    let kept = scope.te("kept_sizes", vec![scale.clone()], |inputs| {
        vec![te::compute("sizes", [axes.len() as i64], |at| {
            let exact = real(super::computed::choose(&at[0], &own)) * inputs[0].at(&[prim::int(0)]);
            prim::cast(DataType::int(64), prim::math("floor", exact + prim::float_of(narrow, 0.5)))
        })]
    })?;
    Ok((scale, kept))
}

/// Puts values for some axes among values for all.
fn spread<T: Clone>(all: &[T], axes: &[usize], values: Vec<T>) -> Result<Vec<T>> {
    if axes.len() != values.len() {
        return Err(NodeError::invalid(format!("{} values are given for {} axes", values.len(), axes.len())));
    }
    let mut result = all.to_vec();
    for (&axis, value) in axes.iter().zip(values) {
        result[axis] = value;
    }
    Ok(result)
}

/// The elements of a value as fractions. Scales that are not dyadic come from a constant, rounded.
fn ratios(value: &Value) -> Option<Vec<Ratio>> {
    match value {
        Value::Constant(tensor) => constant::floats(tensor).ok()?.into_iter().map(Ratio::float).collect(),
        other => other.symbolic().map(|s: Symbolic| s.elements),
    }
}

fn mode<'a>(node: &Node<'a>) -> Result<&'a str> {
    match node.str_or("mode", "nearest")? {
        "nearest" => Ok("nearest_neighbor"),
        "linear" | "bilinear" => Ok("linear"),
        "cubic" => Ok("cubic"),
        other => Err(NodeError::invalid(format!("`mode` is \"{other}\""))),
    }
}

fn coordinates<'a>(node: &Node<'a>) -> Result<&'a str> {
    match node.str_or("coordinate_transformation_mode", "half_pixel")? {
        known @ ("half_pixel" | "align_corners" | "asymmetric" | "pytorch_half_pixel") => Ok(known),
        other => Err(NodeError::unsupported(format!("`coordinate_transformation_mode` \"{other}\" is not supported"))),
    }
}

/// The new dimensions; each scale must make a whole number of its dimension.
fn scaled(shape: &[PrimExpr], scales: &[Ratio]) -> Result<Vec<PrimExpr>> {
    if shape.len() != scales.len() {
        return Err(NodeError::invalid(format!("{} scales are given for {} axes", scales.len(), shape.len())));
    }
    let scale = |(dim, scale): (&PrimExpr, &Ratio)| {
        let size = scale.mul(&Ratio::int(dim.clone()));
        match size.as_whole() {
            Some(size) => Ok(dims::simplify(size)),
            None => Err(NodeError::unsupported("a scale does not make a whole number of its dimension")
                .help("export the model with sizes in place of scales, or give the input a fixed shape")),
        }
    };
    shape.iter().zip(scales).map(scale).collect()
}

fn resized(scope: &mut Scope, x: Expr, sizes: Vec<PrimExpr>, method: &Method) -> Outputs {
    let shape = scope.dims(&x)?;
    let kept = shape.iter().zip(&sizes).take(2).all(|(old, new)| !dims::differ(old, new));
    if !(3..=4).contains(&shape.len()) || !kept {
        return Err(NodeError::unsupported("only the last one or two of 3 or 4 axes can be resized"));
    }
    // Batch and channels must keep their sizes, which is checked where it is not known.
    let wanted: Vec<PrimExpr> = sizes.iter().take(2).chain(&shape[2..]).cloned().collect();
    let x = scope.agree(x, &wanted)?;
    let same = |i: usize| dims::equal(&shape[i], &sizes[i]);
    if (2..shape.len()).all(same) {
        return one(x);
    }
    let image = as_2d(scope, x)?;
    let target = if sizes.len() == 3 { vec![prim::int(1), sizes[2].clone()] } else { sizes[2..].to_vec() };
    let attrs = Attrs::new()
        .with("layout", "NCHW")
        .with("method", method.method)
        .with("coordinate_transformation_mode", method.coordinates)
        .with("rounding_method", if method.method == "nearest_neighbor" { method.rounding } else { "" })
        .with("cubic_alpha", method.cubic_alpha)
        .with("cubic_exclude", i64::from(method.cubic_exclude));
    let y = scope.op("image.resize2d", [image, Expr::shape(target)], attrs)?;
    one(from_2d(scope, y, shape.len() - 2)?)
}
