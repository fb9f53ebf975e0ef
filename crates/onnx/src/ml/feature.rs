//! `ArrayFeatureExtractor`, `FeatureVectorizer` and `OneHotEncoder`: features picked, joined and spread out.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::score::whole;
use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::ops::{Outputs, one};
use crate::scope::Scope;
use crate::{text, text_ops};
use relaxide_frontend::Check;

/// `ArrayFeatureExtractor`: columns that indices name; a vector is one row.
pub fn extract(scope: &mut Scope, node: &Node) -> Outputs {
    let (x, indices) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?);
    let shape = scope.dims(&x)?;
    let count = dims::product(&scope.dims(&indices)?);
    let indices = scope.reshape(indices, vec![count.clone()])?;
    let Some((_, front)) = shape.split_last() else {
        return Err(NodeError::invalid("the input has no axes"));
    };
    let mut out = if front.is_empty() { vec![prim::int(1)] } else { front.to_vec() };
    out.push(count);
    let rank = front.len();
    one(scope.te("extract", vec![x, indices], |inputs| {
        vec![te::compute("extract", &out, |at: &[PrimExpr]| {
            let column = prim::cast(DataType::int(64), inputs[1].at(&at[at.len() - 1..]));
            let place: Vec<PrimExpr> = at.iter().take(rank).cloned().chain([column]).collect();
            inputs[0].at(&place)
        })]
    })?)
}

/// `FeatureVectorizer`: inputs side by side, each cut or filled up with zeros to its width. The result is float32.
pub fn join(scope: &mut Scope, node: &Node) -> Outputs {
    let widths = node.ints("inputdimensions")?.unwrap_or_default();
    if widths.len() != node.inputs.len() {
        let (given, needed) = (widths.len(), node.inputs.len());
        return Err(NodeError::invalid(format!("`inputdimensions` has {given} widths for {needed} inputs")));
    }
    let mut parts = Vec::new();
    for (i, width) in widths.into_iter().enumerate() {
        let x = scope.tensor(node.input(i)?)?;
        let x = scope.cast(x, DataType::float(32))?;
        let (rows, own) = match &scope.dims(&x)?[..] {
            [] => return Err(NodeError::invalid(format!("input {i} has no axes"))),
            [own] => (prim::int(1), own.clone()),
            [rows, own @ ..] => (rows.clone(), dims::product(own)),
        };
        if width < 0 {
            return Err(NodeError::invalid(format!("input {i} has the width {width}")));
        }
        let x = scope.reshape(x, vec![rows.clone(), own.clone()])?;
        if own.is_int(width) {
            parts.push(x);
            continue;
        }
        parts.push(scope.te("fit", vec![x], |inputs| {
            vec![te::compute("fit", vec![rows, prim::int(width)], |at: &[PrimExpr]| {
                let zero = prim::constant(DataType::float(32), 0.0);
                prim::if_then_else(prim::lt(&at[1], &own), inputs[0].at(at), zero)
            })]
        })?);
    }
    let axes = vec![0; parts.len()];
    scope.agree_on(&mut parts, &axes)?;
    if parts.len() == 1 {
        return one(parts.remove(0));
    }
    one(scope.op("concat", [Expr::tuple(parts)], Attrs::new().with("axis", 1i64))?)
}

/// `OneHotEncoder`: a vector for each element with a one at the place of its category. The result is float32.
pub fn one_hot(scope: &mut Scope, node: &Node) -> Outputs {
    let words = text::attribute(node, "cats_strings")?;
    let categories = match &words {
        Some(words) => (0..words.len() as i64).collect(),
        None => node.ints("cats_int64s")?.unwrap_or_default(),
    };
    if categories.is_empty() {
        return Err(NodeError::invalid("it has neither `cats_int64s` nor `cats_strings`"));
    }
    let x = text_ops::items(scope, node, words.as_deref())?;
    let mut out = scope.dims(&x)?;
    let rank = out.len();
    out.push(prim::int(categories.len() as i64));
    let table = Expr::constant(whole(&categories)?);
    let float = DataType::float(32);
    let y = scope.te("one_hot", vec![x, table], |inputs| {
        vec![te::compute("one_hot", &out, |at: &[PrimExpr]| {
            let same = prim::eq(inputs[0].at(&at[..rank]), inputs[1].at(&at[rank..]));
            prim::select(same, prim::constant(float, 1.0), prim::constant(float, 0.0))
        })]
    })?;
    if !node.flag("zeros", true)? {
        // Every element must have a category: the least number of ones is 1.
        let count = scope.op("sum", [y.clone()], Attrs::new().with("axis", vec![-1i64]))?;
        let least = scope.op("min", [count], Attrs::new())?;
        let least = scope.cast(least, DataType::int(64))?;
        let least = scope.reshape(least, vec![prim::int(1)])?;
        let checked = scope.call("tensor_to_shape", [least])?;
        let least = scope.bind_shape(checked, 1)?;
        scope
            .require(&[Check::new(prim::eq(&least[0], 1), "an element is in none of the categories (`zeros` is 0)")])?;
    }
    one(y)
}
