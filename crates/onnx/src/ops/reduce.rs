//! Reductions over axes.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_relax::Expr;

use super::{Outputs, one};
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;

type Result<T> = std::result::Result<T, NodeError>;

/// Axes and `keepdims` of a node as attributes; `None` where nothing is to be reduced.
///
/// The axes are an attribute in older versions and an input in newer ones. None given means all, unless the node says that
/// it means none.
fn reduction(node: &Node) -> Result<Option<Attrs>> {
    let axes = node.ints_attr_or_input("axes", 1)?.filter(|axes| !axes.is_empty());
    if axes.is_none() && node.flag("noop_with_empty_axes", false)? {
        return Ok(None);
    }
    let keep = node.flag("keepdims", true)?;
    let attrs = Attrs::new().with("keepdims", keep);
    Ok(Some(match axes {
        Some(axes) => attrs.with("axis", axes),
        None => attrs,
    }))
}

fn reduce(scope: &mut Scope, node: &Node, name: &str, x: Expr) -> Result<Expr> {
    match reduction(node)? {
        Some(attrs) => scope.op(name, [x], attrs),
        None => Ok(x),
    }
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

fn square_sum(scope: &mut Scope, node: &Node) -> Result<Expr> {
    let x = scope.tensor(node.input(0)?)?;
    let square = scope.call("multiply", [x.clone(), x])?;
    reduce(scope, node, "sum", square)
}

/// `ReduceSumSquare`.
pub fn sum_square(scope: &mut Scope, node: &Node) -> Outputs {
    one(square_sum(scope, node)?)
}

/// `ReduceL2`: the root of the sum of squares.
pub fn l2(scope: &mut Scope, node: &Node) -> Outputs {
    let sum = square_sum(scope, node)?;
    one(scope.call("sqrt", [sum])?)
}

/// `ReduceLogSum`.
pub fn log_sum(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let sum = reduce(scope, node, "sum", x)?;
    one(scope.call("log", [sum])?)
}

/// `ReduceLogSumExp`, shifted by the maximum so that it does not overflow.
pub fn log_sum_exp(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let Some(attrs) = reduction(node)? else {
        return one(x);
    };
    let kept = attrs.clone().with("keepdims", true);
    let top = scope.op("max", [x.clone()], kept)?;
    let shifted = scope.call("subtract", [x.clone(), top])?;
    let power = scope.call("exp", [shifted])?;
    let sum = scope.op("sum", [power], attrs.clone())?;
    let log = scope.call("log", [sum])?;
    let top = scope.op("max", [x], attrs)?;
    one(scope.call("add", [log, top])?)
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
    node.only_int("select_last_index", 0)?;
    let x = scope.tensor(node.input(0)?)?;
    let attrs = Attrs::new().with("axis", node.int_or("axis", 0)?).with("keepdims", node.flag("keepdims", true)?);
    let index = scope.op(name, [x], attrs)?;
    one(scope.cast(index, DataType::int(64))?)
}
