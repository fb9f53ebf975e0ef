//! Picking elements by index.

use relaxide_ir::Attrs;
use relaxide_ir::prim::PrimExpr;
use relaxide_relax::Expr;

use super::elementwise::with_number;
use super::{Outputs, one};
use crate::constant;
use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

/// `Gather`: indices from the back are turned to indices from the front.
pub fn gather(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let shape = scope.dims(&x)?;
    let axis = node.int_or("axis", 0)?;
    let rank = shape.len();
    let at =
        dims::axis(axis, rank).ok_or_else(|| NodeError::invalid(format!("axis {axis} is not one of {rank} axes")))?;
    let indices = node.input(1)?;
    let (indices, mode) = match indices {
        Value::Constant(tensor) if shape[at].as_int().is_some() => (fixed_indices(tensor, &shape[at])?, "fast"),
        other => (computed_indices(scope, other, &shape[at])?, "clip"),
    };
    one(scope.op("take", [x, indices], Attrs::new().with("axis", at as i64).with("mode", mode))?)
}

/// Constant indices into a fixed dimension are checked here.
fn fixed_indices(tensor: &relaxide_ffi::Tensor, dim: &PrimExpr) -> Result<Expr> {
    let n = dim.as_int().unwrap_or(0);
    let indices = constant::ints(tensor).map_err(|e| NodeError::invalid(e.to_string()))?;
    let front = |i: i64| {
        let front = if i < 0 { i.saturating_add(n) } else { i };
        if (0..n).contains(&front) {
            Ok(front as f64)
        } else {
            Err(NodeError::invalid(format!("index {i} is out of {n}")))
        }
    };
    let indices = indices.into_iter().map(front).collect::<Result<Vec<_>>>()?;
    let tensor =
        constant::filled(&indices, tensor.shape(), tensor.dtype()).map_err(|e| NodeError::invalid(e.to_string()))?;
    Ok(Expr::constant(tensor))
}

fn computed_indices(scope: &mut Scope, value: &Value, dim: &PrimExpr) -> Result<Expr> {
    let indices = scope.tensor(value)?;
    let dtype = scope.dtype(&indices);
    if dtype.is_uint() {
        return Ok(indices);
    }
    let negative = with_number(scope, "less", indices.clone(), 0.0)?;
    let size = scope.dim_tensor(dim, dtype)?;
    let wrapped = scope.call("add", [indices.clone(), size])?;
    scope.call("where", [negative, wrapped, indices])
}
