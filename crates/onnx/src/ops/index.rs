//! Picking elements by index.

use relaxide_ir::Attrs;

use super::{Outputs, one};
use crate::constant;
use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;
use crate::value::Value;

/// `Gather`: indices may count from the back.
pub fn gather(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let shape = scope.dims(&x)?;
    let axis = node.int_or("axis", 0)?;
    let rank = shape.len();
    let at =
        dims::axis(axis, rank).ok_or_else(|| NodeError::invalid(format!("axis {axis} is not one of {rank} axes")))?;
    // What lies outside is an error when the model runs; of constants it is known now.
    if let (Value::Constant(tensor), Some(n)) = (node.input(1)?, shape[at].as_int()) {
        let indices = constant::ints(tensor).map_err(|e| NodeError::invalid(e.to_string()))?;
        if let Some(i) = indices.iter().find(|i| !(n.saturating_neg()..n).contains(i)) {
            return Err(NodeError::invalid(format!("index {i} is outside of axis {at}, which has {n} elements")));
        }
    }
    let indices = scope.tensor(node.input(1)?)?;
    one(scope.op("take", [x, indices], Attrs::new().with("axis", at as i64))?)
}
