//! `LabelEncoder` and `CategoryMapper`: numbers and texts mapped to numbers and texts.
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
use crate::text::{self, Table, Texts, look_up};
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

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
    let tensor = if let Some(values) = node.ints(&format!("{prefix}_int64s"))?.filter(|v| !v.is_empty()) {
        whole(&values)?
    } else if let Some(values) = node.floats(&format!("{prefix}_floats"))?.filter(|v| !v.is_empty()) {
        let values: Vec<f64> = values.into_iter().map(f64::from).collect();
        relaxide_frontend::constant::filled(&values, &[values.len() as i64], DataType::float(32))?
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
            relaxide_frontend::constant::filled(&[node.float_or("default_float", -0.0)?], &[1], dtype)?
        }
        None => whole(&[node.int_or("default_int64", -1)?])?,
    };
    if tensor.numel() != 1 {
        return Err(NodeError::invalid(format!("the default has {} elements, not one", tensor.numel())));
    }
    Ok(Expr::constant(tensor.reshape(&[1]).map_err(|e| NodeError::invalid(e.to_string()))?))
}

/// Elements of a vector in another order.
fn reordered(scope: &mut Scope, tensor: &Tensor, order: &[usize]) -> Result<Expr> {
    let places: Vec<i64> = order.iter().map(|&i| i as i64).collect();
    look_up(scope, Expr::constant(tensor.clone()), Expr::constant(whole(&places)?))
}

/// `LabelEncoder` since version 2. Of equal keys the last one counts.
///
/// Texts are mapped by their places among the keys. Numbers that are mapped to texts are mapped to places in the table of those.
pub fn encode(scope: &mut Scope, node: &Node) -> Outputs {
    let default_text = node.str_or("default_string", "_Unused")?;
    if let Some(Value::Texts(texts)) = node.optional(0) {
        let keys = text_list(node, "keys")?.ok_or_else(|| NodeError::invalid("the input is text, its keys are not"))?;
        if let Some(values) = text_list(node, "values")? {
            return text_to_text(scope, texts, &keys, values, default_text);
        }
        let values = list(node, "values")?;
        let default = default(node, values.tensor.dtype())?;
        return text_to_number(scope, texts, &keys, values, default);
    }
    if text_list(node, "keys")?.is_some() {
        return Err(NodeError::invalid("its keys are texts, the input is not"));
    }
    let Some(table) = text_list(node, "values")? else {
        let (keys, values) = (list(node, "keys")?, list(node, "values")?);
        let default = default(node, values.tensor.dtype())?;
        return one(by_key(scope, node, keys, values, default)?);
    };
    let keys = list(node, "keys")?;
    number_to_text(scope, node, keys, table, default_text)
}

/// `LabelEncoder` of version 1: places of a list, and texts of it.
pub fn encode_by_place(scope: &mut Scope, node: &Node) -> Outputs {
    let classes = node.strings("classes_strings")?.unwrap_or_default();
    let places: Vec<i64> = (0..classes.len() as i64).collect();
    by_pairs(scope, node, classes, &places)
}

/// `CategoryMapper`: texts by numbers, or numbers by texts.
pub fn categories(scope: &mut Scope, node: &Node) -> Outputs {
    let texts = node.strings("cats_strings")?.unwrap_or_default();
    let numbers = node.ints("cats_int64s")?.unwrap_or_default();
    if texts.len() != numbers.len() {
        let (t, n) = (texts.len(), numbers.len());
        return Err(NodeError::invalid(format!("{t} `cats_strings` are given for {n} `cats_int64s`")));
    }
    by_pairs(scope, node, texts, &numbers)
}

/// Texts to numbers or numbers to texts, whichever the input is.
fn by_pairs(scope: &mut Scope, node: &Node, texts: Vec<String>, numbers: &[i64]) -> Outputs {
    if texts.is_empty() {
        return Err(NodeError::invalid("it has no texts"));
    }
    let pairs = integers(numbers)?;
    if let Some(Value::Texts(input)) = node.optional(0) {
        let default = Expr::constant(whole(&[node.int_or("default_int64", -1)?])?);
        return text_to_number(scope, input, &texts, pairs, default);
    }
    let default = node.str_or("default_string", "_Unused")?;
    number_to_text(scope, node, pairs, texts, default)
}

fn integers(numbers: &[i64]) -> Result<List> {
    Ok(List { tensor: whole(numbers)?, keys: numbers.iter().copied().map(Key::Int).collect() })
}

fn as_many(values: usize, keys: usize) -> Result<()> {
    match values == keys {
        true => Ok(()),
        false => Err(NodeError::invalid(format!("{values} values are given for {keys} keys"))),
    }
}

/// Numbers to texts: to places in the list of those, behind which the default is.
fn number_to_text(scope: &mut Scope, node: &Node, keys: List, mut table: Vec<String>, default: &str) -> Outputs {
    let places: Vec<i64> = (0..table.len() as i64).collect();
    let last = Expr::constant(whole(&[table.len() as i64])?);
    table.push(default.to_string());
    let index = by_key(scope, node, keys, integers(&places)?, last)?;
    Ok(vec![Value::Texts(Texts { index, table: Table::Known(table) })])
}

fn text_to_text(scope: &mut Scope, texts: &Texts, keys: &[String], mut values: Vec<String>, default: &str) -> Outputs {
    as_many(values.len(), keys.len())?;
    let places = texts.table.places(scope, keys)?;
    values.push(default.to_string());
    let index = texts.spread(scope, places)?;
    Ok(vec![Value::Texts(Texts { index, table: Table::Known(values) })])
}

fn text_to_number(scope: &mut Scope, texts: &Texts, keys: &[String], values: List, default: Expr) -> Outputs {
    as_many(values.keys.len(), keys.len())?;
    let default = scope.cast(default, values.tensor.dtype())?;
    let all = Expr::tuple([Expr::constant(values.tensor.clone()), default]);
    let all = scope.op("concat", [all], Attrs::new().with("axis", 0i64))?;
    let places = texts.table.places(scope, keys)?;
    let of_texts = look_up(scope, all, places)?;
    one(texts.spread(scope, of_texts)?)
}

/// The attribute `prefix_strings`, or `prefix_tensor` of texts, if it is there.
fn text_list(node: &Node, prefix: &str) -> Result<Option<Vec<String>>> {
    if let Some(list) = text::attribute(node, &format!("{prefix}_strings"))? {
        return Ok(Some(list));
    }
    let proto = node.tensor(&format!("{prefix}_tensor"))?.filter(|proto| text::is_text(proto));
    proto.map(|proto| text::texts(&proto.string_data)).transpose()
}

/// The values of elements by their keys, and the default, a vector of one, for those without.
fn by_key(scope: &mut Scope, node: &Node, keys: List, values: List, default: Expr) -> Result<Expr> {
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
        let sorted = reordered(scope, &keys.tensor, &order)?;
        let sorted = scope.cast(sorted, dtype)?;
        let found = scope.op("bucketize", [x.clone(), sorted.clone()], Attrs::new())?;
        let place = clip_between(scope, found, Some(0.0), Some(order.len() as f64 - 1.0))?;
        let key = look_up(scope, sorted, place.clone())?;
        let same = scope.call("equal", [key, x.clone()])?;
        let table = reordered(scope, &values.tensor, &order)?;
        let value = look_up(scope, table, place)?;
        y = broadcast_call(scope, "where", [same, value, y])?;
    }
    if let Some(last) = (0..needed).rev().find(|&i| keys.keys[i].is_nan()) {
        let missing = scope.call("isnan", [x.clone()])?;
        let value = reordered(scope, &values.tensor, &[last])?;
        y = broadcast_call(scope, "where", [missing, value, y])?;
    }
    // A scalar meets vectors of one on the way.
    scope.reshape(y, dims)
}
