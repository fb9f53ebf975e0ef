//! `LabelEncoder`: numbers mapped to numbers or texts, and texts to numbers; `ZipMap`; and what takes a map, which is refused.
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
use crate::text::{self, Texts};
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

/// What is about texts.
pub fn of_text(_: &mut Scope, _: &Node) -> Outputs {
    Err(NodeError::unsupported("it is about texts, and tensors of texts are not supported")
        .help("map texts to numbers before the model, and numbers to texts behind it"))
}

/// What takes a map.
pub fn dictionary(_: &mut Scope, _: &Node) -> Outputs {
    Err(NodeError::unsupported("maps are no tensors, and are not supported")
        .help("give the model a tensor of features instead"))
}

/// `ZipMap`: for each row a map from labels to scores. The scores themselves stand for it, a column for each label.
pub fn zip_map(scope: &mut Scope, node: &Node) -> Outputs {
    one(scope.tensor(node.input(0)?)?)
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
///
/// Texts that the model holds are known now, so what they are mapped to is another table for the same indices. Numbers that
/// are mapped to texts are mapped to places in the table of those.
pub fn encode(scope: &mut Scope, node: &Node) -> Outputs {
    if let Some(Value::Texts(texts)) = node.optional(0) {
        return of_texts(scope, node, texts);
    }
    let Some(mut table) = text_list(node, "values")? else {
        let values = list(node, "values")?;
        let default = default(node, values.tensor.dtype())?;
        return one(by_key(scope, node, values, default)?);
    };
    let places: Vec<i64> = (0..table.len() as i64).collect();
    let values = List { tensor: whole(&places)?, keys: places.iter().copied().map(Key::Int).collect() };
    let default = Expr::constant(whole(&[table.len() as i64])?);
    table.push(node.str_or("default_string", "_Unused")?.to_string());
    let index = by_key(scope, node, values, default)?;
    Ok(vec![Value::Texts(Texts { index, table })])
}

/// The attribute `prefix_strings`, or `prefix_tensor` of texts, if it is there.
fn text_list(node: &Node, prefix: &str) -> Result<Option<Vec<String>>> {
    if let Some(list) = text::attribute(node, &format!("{prefix}_strings"))? {
        return Ok(Some(list));
    }
    let proto = node.tensor(&format!("{prefix}_tensor"))?.filter(|proto| text::is_text(proto));
    proto.map(|proto| text::texts(&proto.string_data)).transpose()
}

/// Texts of the model, each mapped by the keys.
fn of_texts(scope: &mut Scope, node: &Node, texts: &Texts) -> Outputs {
    let keys = text_list(node, "keys")?.ok_or_else(|| NodeError::invalid("the input is text, its keys are not"))?;
    let place = |text: &String| keys.iter().rposition(|key| key == text);
    if let Some(values) = text_list(node, "values")? {
        if values.len() != keys.len() {
            return Err(NodeError::invalid(format!("{} values are given for {} keys", values.len(), keys.len())));
        }
        let default = node.str_or("default_string", "_Unused")?.to_string();
        let mapped = |text: &String| place(text).map_or(default.clone(), |i| values[i].clone());
        let table = texts.table.iter().map(mapped).collect();
        return Ok(vec![Value::Texts(Texts { index: texts.index.clone(), table })]);
    }
    let values = list(node, "values")?;
    if values.keys.len() != keys.len() {
        return Err(NodeError::invalid(format!("{} values are given for {} keys", values.keys.len(), keys.len())));
    }
    let dtype = values.tensor.dtype();
    let default = default(node, dtype)?;
    let default = scope.cast(default, dtype)?;
    let all = Expr::tuple([Expr::constant(values.tensor.clone()), default]);
    let all = scope.op("concat", [all], Attrs::new().with("axis", 0i64))?;
    let places: Vec<i64> = texts.table.iter().map(|text| place(text).unwrap_or(keys.len()) as i64).collect();
    let table = look_up(scope, all, Expr::constant(whole(&places)?))?;
    one(look_up(scope, table, texts.index.clone())?)
}

/// The values of elements by their keys, and the default, a vector of one, for those without.
fn by_key(scope: &mut Scope, node: &Node, values: List, default: Expr) -> Result<Expr> {
    let keys = list(node, "keys")?;
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
    scope.reshape(y, dims)
}
