//! Rows of numbers or texts, which the [front ends' rows](relaxide_frontend::rows) are without texts.

use relaxide_ir::Type;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::{BlockBuilder, Expr};

use super::carried;
use crate::error::NodeError;
use crate::scope::Scope;
use crate::text::Texts;
use crate::value::Value;
use relaxide_frontend::runtime_call;

pub use relaxide_frontend::rows::{APPEND, Along, Order, new, row, stack};

type Result<T> = std::result::Result<T, NodeError>;

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
    Ok(Value::Texts(Texts { index: along.placed(&mut scope, index)?, table }))
}
