//! DecomposeOpsForInference: normalizations with fixed statistics become arithmetic.
//!
//! ```text
//! bn = R.nn.batch_norm(x, gamma, beta, mean, var, axis=1)
//! y = bn[0]
//!         →
//! y = (x - R.expand_dims(mean, …)) / R.sqrt(R.expand_dims(var, …) + epsilon) * R.expand_dims(gamma, …) + R.expand_dims(beta, …)
//!         → with `scale_first`
//! scale = gamma / R.sqrt(var + epsilon)
//! shift = beta - mean * scale
//! y = x * R.expand_dims(scale, …) + R.expand_dims(shift, …)
//! ```
//!
//! Scale and shift depend on parameters only; once these are constants, constant folding computes them and one multiplication
//! and one addition are left, which fusion puts behind the convolution in front. `nn.dropout` becomes its input, and a shape
//! that a tensor holds has dimensions with names.
//!
//! **In training**, a `batch_norm` has the batch's own statistics, and `scale_first`, which the compiler's pipelines ask for,
//! leaves it alone. Without, the pass does what it is called for, as TVM's: it takes the running ones.

use relaxide_ir::pass::{ParamDefault, ParamKind, PassInfo, PassParam};
use relaxide_ir::prim::{PrimExpr, constant};
use relaxide_ir::{Attrs, Type, Var};

use super::decompose_training::{FloatTensor, batch_normalized, known};
use crate::rewrite::{Action, Rewrite, rewrite_named};
use crate::*;

pub(super) const PASS: PassInfo = PassInfo::new(
    "DecomposeOpsForInference",
    "Normalizations with fixed statistics become arithmetic.",
    |module, _, args| {
        let scale_first = args.bool("scale_first") == Some(true);
        rewrite_named("DecomposeOpsForInference", module, args.str("func_name"), &mut Decompose { scale_first })
    },
)
.params(&[
    PassParam::optional("func_name", ParamKind::Str, "The function; all, where nothing is said."),
    PassParam::new(
        "scale_first",
        ParamKind::Bool,
        ParamDefault::Bool(false),
        "Whether statistics become one scale and one shift, and a batch_norm in training stays.",
    ),
]);

struct Decompose {
    scale_first: bool,
}

impl Rewrite for Decompose {
    fn value(&mut self, b: &mut BlockBuilder, _: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let new = match value.as_op_call() {
            Some((call, "nn.batch_norm")) if !self.scale_first => step_by_step(b, call)?,
            Some((call, "nn.batch_norm")) if call.attrs.bool("training") == Some(false) => scale_and_shift(b, call)?,
            Some((call, "nn.dropout")) => dropout(call)?,
            Some((call, "tensor_to_shape")) if !self.scale_first => named_dims(b, call)?,
            _ => None,
        };
        Ok(Action::Bind(new.unwrap_or(value)))
    }
}

fn dropout(call: &Call) -> Result<Option<Expr>, BuildError> {
    let Some(data) = call.args.first() else { return Ok(None) };
    let mask = op::call("ones_like", [data.clone()], Attrs::new())?;
    Ok(Some(Expr::tuple([data.clone(), mask])))
}

fn step_by_step(b: &mut BlockBuilder, bn: &Call) -> Result<Option<Expr>, BuildError> {
    let Ok(args) = <&[Expr; 5]>::try_from(bn.args.as_slice()) else { return Ok(None) };
    let [data, _, _, mean, variance] = args;
    let Some(known) = known(data) else { return Ok(None) };
    let result = batch_normalized(b, bn, known, args)?;
    Ok(Some(Expr::tuple([result, mean.clone(), variance.clone()])))
}

/// The shape that a tensor holds, its dimensions under names, where their number is known.
pub(super) fn named_dims(b: &mut BlockBuilder, call: &Call) -> Result<Option<Expr>, BuildError> {
    let ([tensor], Type::Shape(ty)) = (call.args.as_slice(), &call.ty) else { return Ok(None) };
    if ty.ndim < 0 || b.in_dataflow() {
        return Ok(None);
    }
    let open = Type::shape_ndim(ty.ndim);
    let args = [Expr::external("vm.builtin.tensor_to_shape"), tensor.clone()];
    let shape = b.emit(op::call_typed("call_pure_packed", args, Attrs::new(), vec![open])?)?;
    let dims: Vec<PrimExpr> =
        (0..ty.ndim).map(|_| PrimExpr::from(&Var::prim("x", relaxide_ir::DataType::int(64)))).collect();
    b.match_cast(shape, Type::shape(dims.clone()))?;
    Ok(Some(Expr::shape(dims)))
}

/// The tuple that a `batch_norm` with fixed statistics gives; `None` where its rank or dtype is not known.
fn scale_and_shift(b: &mut BlockBuilder, bn: &Call) -> Result<Option<Expr>, BuildError> {
    let [data, gamma, beta, mean, variance] = bn.args.as_slice() else { return Ok(None) };
    let Some(FloatTensor { ndim, dtype }) = known(data) else { return Ok(None) };
    let axis = bn.attrs.int("axis").unwrap_or(1).rem_euclid(ndim);
    let number = |v: f64| Expr::prim(constant(dtype, v));
    let flag = |name: &str| bn.attrs.bool(name) != Some(false);
    let shifted = b.op("add", [variance.clone(), number(bn.attrs.float("epsilon").unwrap_or(1e-5))], Attrs::new())?;
    let spread = b.op("sqrt", [shifted], Attrs::new())?;
    let numerator = if flag("scale") { gamma.clone() } else { b.op("ones_like", [gamma.clone()], Attrs::new())? };
    let scale = b.op("divide", [numerator, spread], Attrs::new())?;
    let moved = b.op("multiply", [mean.clone(), scale.clone()], Attrs::new())?;
    let shift = if flag("center") {
        b.op("subtract", [beta.clone(), moved], Attrs::new())?
    } else {
        b.op("negative", [moved], Attrs::new())?
    };
    let others: Vec<i64> = (0..ndim).filter(|i| *i != axis).collect();
    let mut spread_out = |v: Expr| b.op("expand_dims", [v], Attrs::new().with("axis", others.clone()));
    let (scale, shift) = (spread_out(scale)?, spread_out(shift)?);
    let product = b.op("multiply", [data.clone(), scale], Attrs::new())?;
    let result = b.op("add", [product, shift], Attrs::new())?;
    Ok(Some(Expr::tuple([result, mean.clone(), variance.clone()])))
}
