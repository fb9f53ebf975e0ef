//! `Normalizer`, `Scaler`, `Imputer` and `Binarizer`: features made comparable, one by one or by rows.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_relax::Expr;

use super::score::whole;
use crate::error::NodeError;
use crate::node::Node;
use crate::ops::elementwise::{broadcast_call, with_number};
use crate::ops::{Outputs, one};
use crate::scope::Scope;

type Result<T> = std::result::Result<T, NodeError>;

/// `Normalizer`: rows divided by their largest element, the sum of absolute values, or their length. The result is float32.
pub fn normalizer(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let x = scope.cast(x, DataType::float(32))?;
    let axis = i64::from(scope.dims(&x)?.len() > 1);
    let along = || Attrs::new().with("axis", vec![axis]).with("keepdims", true);
    let divisor = match node.str_or("norm", "MAX")? {
        "MAX" => scope.op("max", [x.clone()], along())?,
        "L1" => {
            let size = scope.call("abs", [x.clone()])?;
            scope.op("sum", [size], along())?
        }
        "L2" => {
            let square = scope.call("multiply", [x.clone(), x.clone()])?;
            let sum = scope.op("sum", [square], along())?;
            scope.call("sqrt", [sum])?
        }
        other => return Err(NodeError::invalid(format!("`norm` is \"{other}\", not \"MAX\", \"L1\" or \"L2\""))),
    };
    let empty = with_number(scope, "equal", divisor.clone(), 0.0)?;
    let unit = scope.scalar(1.0, DataType::float(32))?;
    let divisor = scope.call("where", [empty, unit, divisor])?;
    one(scope.call("divide", [x, divisor])?)
}

/// Numbers for each feature, or one for all: features are the last axis of one or two.
fn per_feature(scope: &Scope, x: &Expr, values: Vec<f64>, name: &str) -> Result<Expr> {
    let dims = scope.dims(x)?;
    if values.len() == 1 {
        return scope.scalar(values[0], scope.dtype(x));
    }
    let features = dims.last().and_then(|d| d.as_int());
    let known = values.len() as i64;
    if dims.is_empty() || dims.len() > 2 || features.is_some_and(|n| n != known) {
        return Err(NodeError::invalid(format!("`{name}` has {known} numbers for an input of {} axes", dims.len())));
    }
    scope.constant(&values, &[known], scope.dtype(x))
}

/// `Scaler`: `(x - offset) * scale`. The result is float32.
pub fn scaler(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let mut y = scope.cast(x, DataType::float(32))?;
    for (name, op) in [("offset", "subtract"), ("scale", "multiply")] {
        let values = node.floats(name)?.unwrap_or_default();
        if values.is_empty() {
            continue;
        }
        let values = per_feature(scope, &y, values.into_iter().map(f64::from).collect(), name)?;
        y = broadcast_call(scope, op, [y, values])?;
    }
    one(y)
}

/// `Imputer`: elements of one value, or those that are no number, are replaced.
pub fn imputer(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let dtype = scope.dtype(&x);
    let (missing, values) = if dtype.is_float() {
        let values = node.floats("imputed_value_floats")?.unwrap_or_default();
        let replaced = node.float_or("replaced_value_float", 0.0)?;
        let missing = if replaced.is_nan() {
            scope.call("isnan", [x.clone()])?
        } else {
            with_number(scope, "equal", x.clone(), replaced)?
        };
        if values.is_empty() {
            return Err(NodeError::invalid("attribute `imputed_value_floats` is missing"));
        }
        (missing, per_feature(scope, &x, values.into_iter().map(f64::from).collect(), "imputed_value_floats")?)
    } else {
        let values = node.ints("imputed_value_int64s")?.unwrap_or_default();
        if values.is_empty() {
            return Err(NodeError::invalid("attribute `imputed_value_int64s` is missing"));
        }
        let replaced = scope.cast(Expr::constant(whole(&[node.int_or("replaced_value_int64", 0)?])?), dtype)?;
        let missing = broadcast_call(scope, "equal", [x.clone(), replaced])?;
        // What the numbers are does not matter for the check of their count.
        per_feature(scope, &x, vec![0.0; values.len()], "imputed_value_int64s")?;
        (missing, scope.cast(Expr::constant(whole(&values)?), dtype)?)
    };
    one(broadcast_call(scope, "where", [missing, values, x])?)
}

/// `Binarizer`: 1 above a threshold, 0 elsewhere.
pub fn binarizer(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let dtype = scope.dtype(&x);
    let threshold = node.float_or("threshold", 0.0)?;
    let threshold = if dtype.is_float() { threshold } else { threshold.floor() };
    let above = with_number(scope, "greater", x, threshold)?;
    one(scope.cast(above, dtype)?)
}
