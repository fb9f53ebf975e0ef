//! Rows: what loops read from tensors turn by turn, and the tensors that they make of rows.

use relaxide_ir::Type;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::{BlockBuilder, Expr};
use relaxide_tir::te;

use super::turns::runtime;
use crate::error::NodeError;
use crate::scope::Scope;

type Result<T> = std::result::Result<T, NodeError>;

/// Adds an empty list for rows.
pub fn new_list(builder: &mut BlockBuilder) -> Result<Expr> {
    runtime(builder, "vm.builtin.list_new", Vec::new(), Type::any())
}

/// Row `index` of a tensor along an axis, which goes away.
pub fn row(scope: &mut Scope, tensor: Expr, axis: usize, index: &PrimExpr) -> Result<Expr> {
    let dims = scope.dims(&tensor)?;
    let kept: Vec<PrimExpr> = dims.iter().enumerate().filter(|(a, _)| *a != axis).map(|(_, d)| d.clone()).collect();
    scope.te("row", vec![tensor], |inputs| {
        let x = inputs[0].clone();
        let row = te::compute("row", kept, |at: &[PrimExpr]| {
            let mut place = at.to_vec();
            place.insert(axis.min(place.len()), index.clone());
            x.at(&place)
        });
        vec![row]
    })
}

/// The order in which rows are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As they were added.
    Forward,
    /// The last first.
    Backward,
}

/// The rows of a list as one tensor, along a new axis. `ty` is what is known of a row, `count` of their number.
pub fn stack(
    builder: &mut BlockBuilder,
    list: Expr,
    ty: &Type,
    count: Option<PrimExpr>,
    (axis, order): (usize, Order),
) -> Result<Expr> {
    let Type::Tensor(row) = ty else { return Err(NodeError::invalid("a row is not a tensor")) };
    let rank = usize::try_from(row.ndim).map_err(|_| NodeError::unsupported("the rank of a row is not known"))?;
    let dims = row.shape.clone();
    let shape = Expr::shape(dims.clone().unwrap_or_else(|| vec![prim::int(0); rank]));
    let from_end = Expr::prim(prim::boolean(order == Order::Backward));
    let args = vec![list, Expr::dtype(row.dtype), shape, from_end];
    let stacked = runtime(builder, "vm.builtin.list_stack", args, Type::tensor_ndim(row.ndim + 1, row.dtype))?;
    let mut known = vec![count];
    known.extend(dims.map_or_else(|| vec![None; rank], |dims| dims.into_iter().map(Some).collect()));
    let mut scope = Scope::new(builder);
    let stacked = scope.bind_dims(stacked, known, row.dtype)?;
    if axis == 0 {
        return Ok(stacked);
    }
    let mut order: Vec<usize> = (1..=rank).collect();
    order.insert(axis.min(rank), 0);
    scope.transpose(stacked, &order)
}
