//! Reductions over axes.

use relaxide_ffi::DataType;
use relaxide_ir::{Attrs, prim};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::computed::{Axes, Resolved};
use super::wide::widened;
use super::{Outputs, one};
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;

type Result<T> = std::result::Result<T, NodeError>;

/// What is to be reduced.
enum Reduction {
    /// Nothing.
    Nothing,
    /// Known axes, and `keepdims`, as attributes.
    Known(Attrs),
    /// Axes that the program computes.
    Computed(Box<Resolved>),
}

/// Axes and `keepdims` of a node.
///
/// The axes are an attribute in older versions and an input in newer ones. None given means all, unless the node says that
/// it means none.
fn reduction(scope: &mut Scope, node: &Node, x: &Expr) -> Result<Reduction> {
    let keep = node.flag("keepdims", true)?;
    let empty_is_none = node.flag("noop_with_empty_axes", false)?;
    let axes = match (node.ints("axes")?, node.optional(1)) {
        (Some(axes), _) => Some(axes),
        (None, None) => None,
        (None, Some(value)) => match value.symbolic().and_then(|s| s.literals()) {
            Some(axes) => Some(axes),
            None => {
                let tensor = scope.tensor(value)?;
                let tensor = scope.cast(tensor, DataType::int(64))?;
                let axes = Axes { tensor, empty_is_none, keep };
                return Ok(Reduction::Computed(Box::new(Resolved::new(scope, axes, x)?)));
            }
        },
    };
    let attrs = Attrs::new().with("keepdims", keep);
    Ok(match axes.filter(|axes| !axes.is_empty()) {
        Some(axes) => Reduction::Known(attrs.with("axis", axes)),
        None if empty_is_none => Reduction::Nothing,
        None => Reduction::Known(attrs),
    })
}

fn reduce(scope: &mut Scope, node: &Node, name: &str, x: Expr) -> Result<Expr> {
    let reduction = reduction(scope, node, &x)?;
    carry_out(scope, &reduction, name, x)
}

/// Reduces by `sum`, `mean`, `max`, `min` or `prod`. Bools are compared as bytes, of which a reduction may be made.
fn carry_out(scope: &mut Scope, reduction: &Reduction, name: &str, x: Expr) -> Result<Expr> {
    if scope.dtype(&x).is_bool() {
        let bytes = scope.cast(x, DataType::uint(8))?;
        let result = carry_out(scope, reduction, name, bytes)?;
        return scope.cast(result, DataType::bool());
    }
    let own = scope.dtype(&x);
    let compares = matches!(name, "max" | "min");
    let result = match reduction {
        Reduction::Nothing => return Ok(x),
        Reduction::Known(attrs) => {
            let x = if compares { x } else { widened(scope, x)?.0 };
            scope.op(name, [x], attrs.clone())?
        }
        Reduction::Computed(axes) => {
            let x = if compares { x } else { widened(scope, x)?.0 };
            let result = axes.reduce(scope, name, x)?;
            axes.finish(scope, result)?
        }
    };
    scope.cast(result, own)
}

fn plain(scope: &mut Scope, node: &Node, name: &str) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    one(reduce(scope, node, name, x)?)
}

/// `ReduceSum`.
pub fn sum(scope: &mut Scope, node: &Node) -> Outputs {
    plain(scope, node, "sum")
}

/// `ReduceMean`.
pub fn mean(scope: &mut Scope, node: &Node) -> Outputs {
    plain(scope, node, "mean")
}

/// `ReduceMax`.
pub fn max(scope: &mut Scope, node: &Node) -> Outputs {
    plain(scope, node, "max")
}

/// `ReduceMin`.
pub fn min(scope: &mut Scope, node: &Node) -> Outputs {
    plain(scope, node, "min")
}

/// `ReduceProd`.
pub fn prod(scope: &mut Scope, node: &Node) -> Outputs {
    plain(scope, node, "prod")
}

/// `ReduceL1`: the sum of absolute values.
pub fn l1(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let size = scope.call("abs", [x])?;
    one(reduce(scope, node, "sum", size)?)
}

/// The sum of squares, in 32 bits at least, and the type of what is squared.
fn square_sum(scope: &mut Scope, node: &Node) -> Result<(Expr, DataType)> {
    let x = scope.tensor(node.input(0)?)?;
    let (x, own) = widened(scope, x)?;
    let square = scope.call("multiply", [x.clone(), x])?;
    Ok((reduce(scope, node, "sum", square)?, own))
}

/// `ReduceSumSquare`.
pub fn sum_square(scope: &mut Scope, node: &Node) -> Outputs {
    let (sum, own) = square_sum(scope, node)?;
    one(scope.cast(sum, own)?)
}

/// `ReduceL2`: the root of the sum of squares.
pub fn l2(scope: &mut Scope, node: &Node) -> Outputs {
    let (sum, own) = square_sum(scope, node)?;
    let (sum, _) = real(scope, sum)?;
    let root = scope.call("sqrt", [sum])?;
    one(scope.cast(root, own)?)
}

/// `ReduceLogSum`.
pub fn log_sum(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let (x, own) = real(scope, x)?;
    let sum = reduce(scope, node, "sum", x)?;
    let log = scope.call("log", [sum])?;
    one(scope.cast(log, own)?)
}

/// `ReduceLogSumExp`, shifted by the maximum so that it does not overflow. An infinite maximum does not shift.
pub fn log_sum_exp(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let (x, own) = real(scope, x)?;
    let result = match reduction(scope, node, &x)? {
        // The logarithm of an exponential is what it was.
        Reduction::Nothing => x,
        Reduction::Known(attrs) => {
            let kept = attrs.clone().with("keepdims", true);
            let top = scope.op("max", [x.clone()], kept)?;
            let top = finite(scope, top)?;
            let shifted = scope.call("subtract", [x.clone(), top])?;
            let power = scope.call("exp", [shifted])?;
            let sum = scope.op("sum", [power], attrs.clone())?;
            let log = scope.call("log", [sum])?;
            let top = scope.op("max", [x], attrs)?;
            let top = finite(scope, top)?;
            scope.call("add", [log, top])?
        }
        Reduction::Computed(axes) => {
            let top = axes.reduce(scope, "max", x.clone())?;
            let top = finite(scope, top)?;
            let shape = scope.dims(&x)?;
            let over = scope.spread(top.clone(), shape)?;
            let shifted = scope.call("subtract", [x, over])?;
            let power = scope.call("exp", [shifted])?;
            let sum = axes.reduce(scope, "sum", power)?;
            let log = scope.call("log", [sum])?;
            let result = scope.call("add", [log, top])?;
            axes.finish(scope, result)?
        }
    };
    one(scope.cast(result, own)?)
}

/// What roots, exponentials and logarithms are taken of: integers become floats of 64 bits; and the type that it was.
fn real(scope: &mut Scope, x: Expr) -> Result<(Expr, DataType)> {
    let own = scope.dtype(&x);
    match own.is_float() {
        true => widened(scope, x),
        false => Ok((scope.cast(x, DataType::float(64))?, own)),
    }
}

/// Zero in the place of what is infinite.
fn finite(scope: &mut Scope, x: Expr) -> Result<Expr> {
    let infinite = scope.call("isinf", [x.clone()])?;
    let zero = scope.scalar(0.0, scope.dtype(&x))?;
    scope.call("where", [infinite, zero, x])
}

/// `ArgMax`: the position of the first maximum.
pub fn arg_max(scope: &mut Scope, node: &Node) -> Outputs {
    position(scope, node, "argmax")
}

/// `ArgMin`: the position of the first minimum.
pub fn arg_min(scope: &mut Scope, node: &Node) -> Outputs {
    position(scope, node, "argmin")
}

fn position(scope: &mut Scope, node: &Node, name: &str) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    if node.flag("select_last_index", false)? {
        let axis = super::gather_scatter::axis_of(scope, node, &x, 0)?;
        return one(super::order::last_position(scope, x, name, axis, node.flag("keepdims", true)?)?);
    }
    let attrs = Attrs::new().with("axis", node.int_or("axis", 0)?).with("keepdims", node.flag("keepdims", true)?);
    one(position_in_row(scope, x, name, attrs)?)
}

/// The position that `argmax` or `argmin` finds. In a row of NaN alone no element is better than another, and it is the first's.
pub fn position_in_row(scope: &mut Scope, x: Expr, name: &str, attrs: Attrs) -> Result<Expr> {
    let has_nan = scope.dtype(&x).is_float();
    let index = scope.op(name, [x], attrs)?;
    let index = scope.cast(index, DataType::int(64))?;
    if !has_nan {
        return Ok(index);
    }
    let shape = scope.dims(&index)?;
    scope.te("position", vec![index], |inputs| {
        vec![te::compute("position", &shape, |at| {
            let found = inputs[0].at(at);
            prim::select(prim::eq(&found, prim::highest(DataType::int(64))), prim::int(0), found)
        })]
    })
}
