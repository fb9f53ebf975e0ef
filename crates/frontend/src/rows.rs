//! Rows: what loops read from tensors one by one, and the tensors that they make of rows.

use relaxide_ir::Type;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::{BlockBuilder, Expr};
use relaxide_tir::te;

use crate::{NodeError, Result, Scope, runtime_call};

/// The function of the runtime that adds a row.
pub const APPEND: &str = "vm.builtin.rows_append";

/// Adds what keeps rows, without any.
pub fn new(builder: &mut BlockBuilder) -> Result<Expr> {
    runtime_call(builder, "vm.builtin.rows_new", Vec::new(), Type::any())
}

/// Row `index` of a tensor along an axis, which goes away.
pub fn row(scope: &mut Scope<'_>, tensor: Expr, axis: usize, index: &PrimExpr) -> Result<Expr> {
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

/// The order in which rows are read, or joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As they come.
    Forward,
    /// The last first.
    Backward,
}

/// How rows are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Along {
    /// The axis that they make.
    pub axis: usize,
    /// Their order.
    pub order: Order,
}

impl Along {
    /// Along the first axis, as they were added.
    pub const FIRST: Along = Along { axis: 0, order: Order::Forward };

    /// A tensor whose first axis is that of the rows, with that axis in its place.
    pub fn placed(self, scope: &mut Scope<'_>, stacked: Expr) -> Result<Expr> {
        if self.axis == 0 {
            return Ok(stacked);
        }
        let rank = scope.dims(&stacked)?.len().saturating_sub(1);
        let mut order: Vec<usize> = (1..=rank).collect();
        order.insert(self.axis.min(rank), 0);
        scope.transpose(stacked, &order)
    }
}

/// The rows of a list as one tensor, along a new axis. `ty` is what is known of a row, `count` of their number.
pub fn stack(builder: &mut BlockBuilder, list: Expr, ty: &Type, count: Option<PrimExpr>, along: Along) -> Result<Expr> {
    let Type::Tensor(row) = ty else { return Err(NodeError::invalid("a row is not a tensor")) };
    let rank = usize::try_from(row.ndim).map_err(|_| NodeError::unsupported("the rank of a row is not known"))?;
    let dims = row.shape.clone();
    let shape = Expr::shape(dims.clone().unwrap_or_else(|| vec![prim::int(0); rank]));
    let from_end = Expr::prim(prim::boolean(along.order == Order::Backward));
    let args = vec![list, Expr::dtype(row.dtype), shape, from_end];
    let stacked = runtime_call(builder, "vm.builtin.rows_stack", args, Type::tensor_ndim(row.ndim + 1, row.dtype))?;
    let mut known = vec![count];
    known.extend(dims.map_or_else(|| vec![None; rank], |dims| dims.into_iter().map(Some).collect()));
    let mut scope = Scope::new(builder);
    let stacked = scope.bind_dims(stacked, known, row.dtype)?;
    along.placed(&mut scope, stacked)
}
