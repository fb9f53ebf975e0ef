//! `LabelEncoder`: numbers mapped to numbers; and what maps texts or is a map, which is refused.
//!
//! Keys are sorted at import, and each element is looked up by a binary search.

use relaxide_ffi::{DataType, Tensor};
use relaxide_ir::Attrs;
use relaxide_relax::Expr;

use super::score::whole;
use crate::constant;
use crate::error::NodeError;
use crate::node::Node;
use crate::ops::elementwise::{broadcast_call, clip_between};
use crate::ops::{Outputs, one};
use crate::scope::Scope;

type Result<T> = std::result::Result<T, NodeError>;

/// What is about texts.
pub fn text(_: &mut Scope, _: &Node) -> Outputs {
    Err(NodeError::unsupported("it is about texts, and tensors of texts are not supported")
        .help("map texts to numbers before the model, and numbers to texts behind it"))
}

/// What takes or gives a map.
pub fn dictionary(_: &mut Scope, node: &Node) -> Outputs {
    let help = match node.op() {
        "ZipMap" => {
            "convert the model without it (`options={\"zipmap\": False}` in sklearn-onnx): its input are the scores"
        }
        _ => "give the model a tensor of features instead",
    };
    Err(NodeError::unsupported("maps are no tensors, and are not supported").help(help))
}

/// Elements of a list attribute as a vector.
struct List {
    tensor: Tensor,
    /// As they are compared; integers exactly.
    keys: Vec<Key>,
}

#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum Key {
    Int(i64),
    Float(f64),
}

impl Key {
    fn is_nan(self) -> bool {
        matches!(self, Key::Float(v) if v.is_nan())
    }
}

/// The attribute `prefix_int64s`, `prefix_floats` or `prefix_tensor`, whichever is there.
fn list(node: &Node, prefix: &str) -> Result<List> {
    let bad = |e: crate::error::TensorError| NodeError::invalid(format!("attribute `{prefix}_tensor`: {e}"));
    if node.strings(&format!("{prefix}_strings"))?.is_some_and(|texts| !texts.is_empty()) {
        return Err(NodeError::unsupported(format!("its {prefix} are texts, and tensors of texts are not supported")));
    }
    let tensor = if let Some(values) = node.ints(&format!("{prefix}_int64s"))?.filter(|v| !v.is_empty()) {
        whole(&values)?
    } else if let Some(values) = node.floats(&format!("{prefix}_floats"))?.filter(|v| !v.is_empty()) {
        let values: Vec<f64> = values.into_iter().map(f64::from).collect();
        constant::filled(&values, &[values.len() as i64], DataType::float(32)).map_err(bad)?
    } else if let Some(proto) = node.tensor(&format!("{prefix}_tensor"))? {
        let tensor = constant::from_proto(proto, None).map_err(bad)?;
        let count = tensor.numel() as i64;
        tensor.reshape(&[count]).map_err(|e| NodeError::invalid(e.to_string()))?
    } else {
        return Err(NodeError::invalid(format!("it has no {prefix}")));
    };
    let keys = if tensor.dtype().is_float() {
        constant::floats(&tensor).map_err(bad)?.into_iter().map(Key::Float).collect()
    } else {
        constant::ints(&tensor).map_err(bad)?.into_iter().map(Key::Int).collect()
    };
    Ok(List { tensor, keys })
}

/// What elements without a key become, as a vector of one.
fn default(node: &Node, dtype: DataType) -> Result<Expr> {
    let bad = |e: crate::error::TensorError| NodeError::invalid(format!("the default: {e}"));
    let tensor = match node.tensor("default_tensor")? {
        Some(proto) => constant::from_proto(proto, None).map_err(bad)?,
        None if dtype.is_float() => {
            constant::filled(&[node.float_or("default_float", -0.0)?], &[1], dtype).map_err(bad)?
        }
        None => whole(&[node.int_or("default_int64", -1)?])?,
    };
    if tensor.numel() != 1 {
        return Err(NodeError::invalid(format!("the default has {} elements, not one", tensor.numel())));
    }
    Ok(Expr::constant(tensor.reshape(&[1]).map_err(|e| NodeError::invalid(e.to_string()))?))
}

/// Elements of a vector in another order.
fn picked(scope: &mut Scope, tensor: &Tensor, order: &[usize]) -> Result<Expr> {
    let places: Vec<i64> = order.iter().map(|&i| i as i64).collect();
    look_up(scope, Expr::constant(tensor.clone()), Expr::constant(whole(&places)?))
}

fn look_up(scope: &mut Scope, table: Expr, places: Expr) -> Result<Expr> {
    scope.op("take", [table, places], Attrs::new().with("axis", 0i64))
}

/// `LabelEncoder` since version 2. Of equal keys the last one counts.
pub fn encode(scope: &mut Scope, node: &Node) -> Outputs {
    let (keys, values) = (list(node, "keys")?, list(node, "values")?);
    let (given, needed) = (values.keys.len(), keys.keys.len());
    if given != needed || needed == 0 {
        return Err(NodeError::invalid(format!("{given} values are given for {needed} keys")));
    }
    let x = scope.tensor(node.input(0)?)?;
    let dtype = scope.dtype(&x);
    if dtype.is_float() != keys.tensor.dtype().is_float() {
        let kind = keys.tensor.dtype();
        return Err(NodeError::invalid(format!("the keys are {kind}, the input is {dtype}")));
    }
    let to = values.tensor.dtype();
    let default = default(node, to)?;
    let mut y = scope.cast(default, to)?;
    let mut order: Vec<usize> = (0..needed).filter(|&i| !keys.keys[i].is_nan()).collect();
    order.sort_by(|&i, &j| {
        let by_key = keys.keys[i].partial_cmp(&keys.keys[j]).unwrap_or(std::cmp::Ordering::Equal);
        by_key.then(j.cmp(&i))
    });
    order.dedup_by(|next, kept| keys.keys[*next] == keys.keys[*kept]);
    let dims = scope.dims(&x)?;
    if !order.is_empty() {
        let sorted = picked(scope, &keys.tensor, &order)?;
        let sorted = scope.cast(sorted, dtype)?;
        let found = scope.op("bucketize", [x.clone(), sorted.clone()], Attrs::new())?;
        let place = clip_between(scope, found, Some(0.0), Some(order.len() as f64 - 1.0))?;
        let key = look_up(scope, sorted, place.clone())?;
        let same = scope.call("equal", [key, x.clone()])?;
        let table = picked(scope, &values.tensor, &order)?;
        let value = look_up(scope, table, place)?;
        y = broadcast_call(scope, "where", [same, value, y])?;
    }
    if let Some(last) = (0..needed).rev().find(|&i| keys.keys[i].is_nan()) {
        let missing = scope.call("isnan", [x.clone()])?;
        let value = picked(scope, &values.tensor, &[last])?;
        y = broadcast_call(scope, "where", [missing, value, y])?;
    }
    // A scalar meets vectors of one on the way.
    one(scope.reshape(y, dims)?)
}
