//! Maps: `ZipMap`, which makes one of each row of scores, and `DictVectorizer`, which makes a row of one.
//!
//! A map is a value of the program, not a tensor; kernels see the rows only.

use relaxide_ffi::DataType;
use relaxide_ir::Type;
use relaxide_relax::Expr;

use crate::error::NodeError;
use crate::node::Node;
use crate::ops::{Outputs, one};
use crate::scope::Scope;
use crate::text::{self, builtin, packed};
use crate::value::{Maps, Value};

/// The keys of an attribute of texts or of integers.
fn keys(scope: &Scope, node: &Node, strings: &str, ints: &str) -> Result<(Expr, usize), NodeError> {
    if let Some(texts) = text::attribute(node, strings)? {
        return Ok((packed(&texts)?, texts.len()));
    }
    match node.ints(ints)?.filter(|keys| !keys.is_empty()) {
        Some(keys) => Ok((text::whole(scope, &keys)?, keys.len())),
        None => Err(NodeError::invalid(format!("it has neither `{strings}` nor `{ints}`"))),
    }
}

/// `ZipMap`: for each row a map from labels to scores.
pub fn zip(scope: &mut Scope, node: &Node) -> Outputs {
    let scores = scope.tensor(node.input(0)?)?;
    let (keys, count) = keys(scope, node, "classlabels_strings", "classlabels_int64s")?;
    let mut dims = scope.dims(&scores)?;
    let dtype = scope.dtype(&scores);
    match dims.last_mut() {
        Some(last) if dims_fit(last, count) => {}
        Some(last) => *last = relaxide_ir::prim::int(count as i64),
        None => return Err(NodeError::invalid("the scores have no axes")),
    }
    let scores = scope.agree(scores, &dims)?;
    let object = builtin(scope, "relaxide.vm.zip_map", vec![scores, keys], Type::any())?;
    Ok(vec![Value::Maps(Maps { object, dtype })])
}

fn dims_fit(dim: &relaxide_ir::prim::PrimExpr, count: usize) -> bool {
    dim.is_int(count as i64)
}

/// `DictVectorizer`: the values of a map's keys, zero where it has none.
pub fn vectorize(scope: &mut Scope, node: &Node) -> Outputs {
    let Value::Maps(Maps { object, dtype }) = node.input(0)? else {
        return Err(NodeError::invalid("the input is not a map"));
    };
    let numbers = [DataType::float(32), DataType::float(64), DataType::int(64)];
    if !numbers.contains(dtype) {
        return Err(NodeError::unsupported("maps to other values than float32, float64 and int64 are not supported"));
    }
    let (keys, count) = keys(scope, node, "string_vocabulary", "int64_vocabulary")?;
    let args = vec![object.clone(), keys, Expr::dtype(*dtype)];
    let row = builtin(scope, "relaxide.vm.map_values", args, Type::tensor_ndim(2, *dtype))?;
    one(scope.bind_type(row, Type::tensor([1, count as i64], *dtype))?)
}
