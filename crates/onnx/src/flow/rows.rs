//! Rows: what loops read from tensors one by one, and the tensors that they make of rows.

use relaxide_ir::Type;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::{BlockBuilder, Expr};
use relaxide_tir::te;

use super::carried;
use crate::error::NodeError;
use crate::scope::Scope;
use crate::text::Texts;
use crate::value::Value;
use relaxide_frontend::runtime_call;

type Result<T> = std::result::Result<T, NodeError>;

/// The function of the runtime that adds a row.
pub const APPEND: &str = "vm.builtin.rows_append";

/// Adds what keeps rows, without any.
pub fn new(builder: &mut BlockBuilder) -> Result<Expr> {
    runtime_call(builder, "vm.builtin.rows_new", Vec::new(), Type::any())
}

/// Row `index` of a tensor of numbers or texts along an axis, which goes away.
pub fn row_of(scope: &mut Scope, value: &Value, axis: usize, index: &PrimExpr) -> Result<Value> {
    match value {
        Value::Texts(texts) => {
            let index = row(scope, texts.index.clone(), axis, index)?;
            Ok(Value::Texts(Texts { index, table: texts.table.clone() }))
        }
        numbers => {
            let tensor = scope.tensor(numbers)?;
            row(scope, tensor, axis, index).map(Value::Computed)
        }
    }
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
}

/// Rows of numbers or texts as one tensor.
pub fn stack_values(
    builder: &mut BlockBuilder,
    list: Expr,
    ty: &Type,
    count: Option<PrimExpr>,
    along: Along,
) -> Result<Value> {
    let Some(row) = ty.as_tensor().filter(|_| carried::is_text(ty)) else {
        return stack(builder, list, ty, count, along).map(Value::Computed);
    };
    let rank = usize::try_from(row.ndim).map_err(|_| NodeError::unsupported("the rank of a row is not known"))?;
    let dims = row.shape.clone();
    let shape = Expr::shape(dims.clone().unwrap_or_else(|| vec![prim::int(0); rank]));
    let args = vec![list, shape, Expr::prim(prim::boolean(along.order == Order::Backward))];
    let object = runtime_call(builder, "relaxide.vm.text_stack", args, Type::any())?;
    let mut known = vec![count];
    known.extend(dims.map_or_else(|| vec![None; rank], |dims| dims.into_iter().map(Some).collect()));
    let mut scope = Scope::new(builder);
    let Texts { index, table } = Texts::unpack(&mut scope, object, known)?;
    let index = if along.axis == 0 { index } else { scope.transpose(index, &behind(along.axis, rank))? };
    Ok(Value::Texts(Texts { index, table }))
}

/// The order of axes that puts the first behind `axis` others, of `rank`.
fn behind(axis: usize, rank: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (1..=rank).collect();
    order.insert(axis.min(rank), 0);
    order
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
    if along.axis == 0 {
        return Ok(stacked);
    }
    scope.transpose(stacked, &behind(along.axis, rank))
}
