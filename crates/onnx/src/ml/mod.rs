//! Operators of the set `ai.onnx.ml`: trees, linear models, support vectors, and what prepares their inputs.
//!
//! | file | operators |
//! | --- | --- |
//! | [`tree`], over [`forest`] | `TreeEnsemble`, `TreeEnsembleClassifier`, `TreeEnsembleRegressor` |
//! | [`linear`] | `LinearClassifier`, `LinearRegressor` |
//! | [`svm`], over [`coupling`] | `SVMClassifier`, `SVMRegressor` |
//! | [`scaling`] | `Binarizer`, `Imputer`, `Normalizer`, `Scaler` |
//! | [`feature`] | `ArrayFeatureExtractor`, `FeatureVectorizer`, `OneHotEncoder` |
//! | [`label`] | `CategoryMapper`, `LabelEncoder` |
//! | [`map`] | `DictVectorizer`, `ZipMap` |
//!
//! What a classifier makes of its scores is in [`score`], what texts are in [`crate::text`].

pub mod coupling;
pub mod feature;
pub mod forest;
pub mod label;
pub mod linear;
pub mod map;
pub mod scaling;
pub mod score;
pub mod svm;
pub mod tree;

use relaxide_ffi::DataType;
use relaxide_ir::prim;
use relaxide_relax::Expr;

use crate::error::NodeError;
use crate::node::Node;
use crate::ops::OpRow;
use crate::ops::Rule::Node as Plain;
use crate::scope::Scope;

/// Every operator of the set, by name; those that are refused say why.
pub static TABLE: &[OpRow] = &[
    OpRow { name: "ArrayFeatureExtractor", versions: &[(1, Plain(feature::extract))] },
    OpRow { name: "Binarizer", versions: &[(1, Plain(scaling::binarizer))] },
    OpRow { name: "CategoryMapper", versions: &[(1, Plain(label::categories))] },
    OpRow { name: "DictVectorizer", versions: &[(1, Plain(map::vectorize))] },
    OpRow { name: "FeatureVectorizer", versions: &[(1, Plain(feature::join))] },
    OpRow { name: "Imputer", versions: &[(1, Plain(scaling::imputer))] },
    OpRow { name: "LabelEncoder", versions: &[(1, Plain(label::encode_by_place)), (2, Plain(label::encode))] },
    OpRow { name: "LinearClassifier", versions: &[(1, Plain(linear::classifier))] },
    OpRow { name: "LinearRegressor", versions: &[(1, Plain(linear::regressor))] },
    OpRow { name: "Normalizer", versions: &[(1, Plain(scaling::normalizer))] },
    OpRow { name: "OneHotEncoder", versions: &[(1, Plain(feature::one_hot))] },
    OpRow { name: "SVMClassifier", versions: &[(1, Plain(svm::classifier))] },
    OpRow { name: "SVMRegressor", versions: &[(1, Plain(svm::regressor))] },
    OpRow { name: "Scaler", versions: &[(1, Plain(scaling::scaler))] },
    OpRow { name: "TreeEnsemble", versions: &[(5, Plain(tree::ensemble))] },
    OpRow { name: "TreeEnsembleClassifier", versions: &[(1, Plain(tree::classifier))] },
    OpRow { name: "TreeEnsembleRegressor", versions: &[(1, Plain(tree::regressor))] },
    OpRow { name: "ZipMap", versions: &[(1, Plain(map::zip))] },
];

/// The input of a model: rows of features, of which a vector is one, in the type that it is computed in.
fn rows(scope: &mut Scope, node: &Node) -> Result<Expr, NodeError> {
    let x = scope.tensor(node.input(0)?)?;
    let dtype = if scope.dtype(&x) == DataType::float(64) { DataType::float(64) } else { DataType::float(32) };
    let x = scope.cast(x, dtype)?;
    let dims = scope.dims(&x)?;
    match dims.len() {
        1 => scope.reshape(x, vec![prim::int(1), dims[0].clone()]),
        2 => Ok(x),
        n => Err(NodeError::invalid(format!("the input has {n} axes where 1 or 2 are needed"))),
    }
}

/// Rows of so many features, which the program checks where it is not known.
fn rows_of(scope: &mut Scope, node: &Node, features: usize) -> Result<Expr, NodeError> {
    let x = rows(scope, node)?;
    let count = scope.dims(&x)?.into_iter().next().ok_or_else(|| NodeError::invalid("the input has no rows"))?;
    scope.agree(x, &[count, prim::int(features as i64)])
}

/// A list attribute that must be there and have elements.
fn numbers(node: &Node, name: &str) -> Result<Vec<f64>, NodeError> {
    let list = node.floats(name)?.unwrap_or_default();
    if list.is_empty() {
        return Err(NodeError::invalid(format!("attribute `{name}` is missing")));
    }
    Ok(list.into_iter().map(f64::from).collect())
}

/// A list of numbers as a matrix with so many rows.
fn matrix(scope: &Scope, values: &[f64], rows: usize, dtype: DataType) -> Result<(Expr, usize), NodeError> {
    if rows == 0 || values.is_empty() || !values.len().is_multiple_of(rows) {
        let n = values.len();
        return Err(NodeError::invalid(format!("{n} coefficients cannot be divided among {rows} rows")));
    }
    let columns = values.len() / rows;
    Ok((scope.constant(values, &[rows as i64, columns as i64], dtype)?, columns))
}
