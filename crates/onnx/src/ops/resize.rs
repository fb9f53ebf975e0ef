//! Resizing of images.
//!
//! ONNX maps coordinates by the scale that the model gives, Relax by the quotient of the sizes. The two are the same where
//! size times scale is whole; other cases are refused rather than computed slightly differently.

use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;

use super::conv::{as_2d, from_2d};
use super::{Outputs, one};
use crate::constant;
use crate::dims;
use crate::error::NodeError;
use crate::node::{Node, depends_on_data};
use crate::scope::Scope;
use crate::symbolic::{Ratio, Symbolic};
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

/// How positions and values are computed.
struct Method<'a> {
    method: &'a str,
    coordinates: &'a str,
    rounding: &'a str,
    cubic_alpha: f64,
    cubic_exclude: bool,
}

/// `Upsample`, which `Resize` has replaced: scales are an attribute, later an input.
pub fn upsample(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let scales = match node.floats("scales")? {
        Some(list) => list.into_iter().map(|s| Ratio::float(f64::from(s))).collect::<Option<Vec<_>>>(),
        None => node.optional(1).and_then(ratios),
    };
    let scales = scales.ok_or_else(|| depends_on_data("the scale"))?;
    let method = Method {
        method: mode(node)?,
        coordinates: "asymmetric",
        rounding: "floor",
        cubic_alpha: -0.75,
        cubic_exclude: false,
    };
    let sizes = scaled(&scope.dims(&x)?, &scales)?;
    resized(scope, x, sizes, &method)
}

/// `Resize` of opset 10: scales only.
pub fn resize_v10(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let scales = node.optional(1).and_then(ratios).ok_or_else(|| depends_on_data("the scale"))?;
    let method = Method {
        method: mode(node)?,
        coordinates: "asymmetric",
        rounding: "floor",
        cubic_alpha: -0.75,
        cubic_exclude: false,
    };
    let sizes = scaled(&scope.dims(&x)?, &scales)?;
    resized(scope, x, sizes, &method)
}

/// `Resize` since opset 11: by scales or to sizes.
pub fn resize(scope: &mut Scope, node: &Node) -> Outputs {
    node.only_int("antialias", 0)?;
    if node.str_or("keep_aspect_ratio_policy", "stretch")? != "stretch" {
        return Err(NodeError::unsupported("only the policy \"stretch\" is supported"));
    }
    let x = scope.tensor(node.input(0)?)?;
    let shape = scope.dims(&x)?;
    let given =
        |i: usize| node.optional(i).filter(|v| scope.value_dims(v).is_ok_and(|d| !d.iter().any(|d| d.is_int(0))));
    let axes = match node.ints("axes")? {
        Some(axes) => axes.into_iter().map(|a| dims::axis(a, shape.len())).collect::<Option<Vec<_>>>(),
        None => Some((0..shape.len()).collect()),
    };
    let axes = axes.ok_or_else(|| NodeError::invalid("`axes` names an axis that the input does not have"))?;
    let sizes = match (given(3), given(2)) {
        (Some(sizes), _) => {
            let sizes = sizes.symbolic().and_then(|s| s.ints()).ok_or_else(|| depends_on_data("the new size"))?;
            spread(&shape, &axes, sizes)?
        }
        (None, Some(scales)) => {
            let scales = ratios(scales).ok_or_else(|| depends_on_data("the scale"))?;
            let scales = spread(&vec![Ratio::int(1); shape.len()], &axes, scales)?;
            scaled(&shape, &scales)?
        }
        (None, None) => return Err(NodeError::invalid("neither scales nor sizes are given")),
    };
    let method = Method {
        method: mode(node)?,
        coordinates: coordinates(node)?,
        rounding: node.str_or("nearest_mode", "round_prefer_floor")?,
        cubic_alpha: node.float_or("cubic_coeff_a", -0.75)?,
        cubic_exclude: node.flag("exclude_outside", false)?,
    };
    resized(scope, x, sizes, &method)
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
