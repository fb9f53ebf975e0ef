//! `FlexAttention` of the set `ai.onnx.preview`: attention whose scores and probabilities graphs of the model change.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_relax::{BlockBuilder, Expr};

use super::attention::{mixed, scores};
use super::{OpRow, Rule};
use crate::constant;
use crate::error::NodeError;
use crate::graph::{Graphs, Step};
use crate::names::Visibility;
use crate::node::Node;
use crate::scope::Scope;
use crate::value::Value;

/// The operators of the set `ai.onnx.preview`.
pub static TABLE: &[OpRow] = &[OpRow { name: "FlexAttention", versions: &[(1, Rule::Flow(attention))] }];

/// `FlexAttention`: softmax in float32, or in double for doubles, unless the node says otherwise.
fn attention(graphs: &mut Graphs, builder: &mut BlockBuilder, node: &Node) -> Result<Step, NodeError> {
    let mut scope = Scope::new(builder);
    let mut parts = Vec::new();
    for i in 0..3 {
        let part = scope.tensor(node.input(i)?)?;
        let rank = scope.dims(&part)?.len();
        if rank != 4 {
            return Err(NodeError::invalid(format!("input {i} has {rank} axes, not 4")));
        }
        parts.push(part);
    }
    let [q, k, v] = parts.try_into().map_err(|_| NodeError::invalid("3 inputs are needed"))?;
    let own = scope.dtype(&v);
    let work = match node.int("softmax_precision")? {
        Some(number) => constant::dtype_of(number).map_err(|e| NodeError::unsupported(e.to_string()))?,
        None if own.bits < 32 => DataType::float(32),
        None => own,
    };
    let raw = scores(&mut scope, node, q, k)?;
    let raw = scope.cast(raw, work)?;
    let Some(changed) = modified(graphs, builder, node, "score_mod", raw)? else { return Ok(Step::Noted) };
    let shares = Scope::new(builder).op("nn.softmax", [changed], Attrs::new().with("axis", -1i64))?;
    let Some(shares) = modified(graphs, builder, node, "prob_mod", shares)? else { return Ok(Step::Noted) };
    let mut scope = Scope::new(builder);
    let v = scope.cast(v, work)?;
    let y = mixed(&mut scope, shares, v)?;
    Ok(Step::Values(vec![Value::Computed(scope.cast(y, own)?)]))
}

/// What a graph of the node makes of a tensor, which keeps its shape and type; the tensor itself where there is no graph, and
/// `None` where problems inside are noted.
fn modified(
    graphs: &mut Graphs,
    builder: &mut BlockBuilder,
    node: &Node,
    name: &str,
    x: Expr,
) -> Result<Option<Expr>, NodeError> {
    if node.proto.attribute.iter().all(|a| a.name != name) {
        return Ok(Some(x));
    }
    let scope = Scope::new(builder);
    let (dims, dtype) = (scope.dims(&x)?, scope.dtype(&x));
    let Some(values) = graphs.inner(builder, node.graph(name)?, vec![Value::Computed(x)], Visibility::Open) else {
        return Ok(None);
    };
    let [value] = &values[..] else {
        return Err(NodeError::invalid(format!("`{name}` has {} outputs, not one", values.len())));
    };
    let mut scope = Scope::new(builder);
    let tensor = scope.tensor(value)?;
    let tensor = scope.cast(tensor, dtype)?;
    scope.agree(tensor, &dims).map(Some)
}
