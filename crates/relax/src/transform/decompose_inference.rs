//! DecomposeOpsForInference: normalizations with fixed statistics become arithmetic.
//!
//! ```text
//! bn = R.nn.batch_norm(x, gamma, beta, mean, var, axis=1, training=False)
//! y = bn[0]
//!         →
//! scale = gamma / R.sqrt(var + epsilon)
//! shift = beta - mean * scale
//! y = x * R.expand_dims(scale, …) + R.expand_dims(shift, …)
//! ```
//!
//! Scale and shift depend on parameters only; once these are constants, constant folding computes them and one multiplication
//! and one addition are left, which fusion puts behind the convolution in front. `nn.dropout` becomes its input.
//!
//! **Leaves alone** a `batch_norm` in training, whose statistics are the batch's.

use relaxide_ir::Attrs;
use relaxide_ir::pass::{ParamKind, PassInfo, PassParam};
use relaxide_ir::prim::constant;

use crate::rewrite::{Action, Rewrite, rewrite_named};
use crate::*;

pub(super) const PASS: PassInfo = PassInfo::new(
    "DecomposeOpsForInference",
    "Normalizations with fixed statistics become arithmetic.",
    |module, _, args| rewrite_named("DecomposeOpsForInference", module, args.str("func_name"), &mut Decompose),
)
.params(&[PassParam::optional("func_name", ParamKind::Str, "The function; all, where nothing is said.")]);

struct Decompose;

impl Rewrite for Decompose {
    fn value(&mut self, b: &mut BlockBuilder, _: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let new = match value.as_op_call() {
            Some((call, "nn.batch_norm")) if call.attrs.bool("training") == Some(false) => batch_norm(b, call)?,
            Some((call, "nn.dropout")) => dropout(call)?,
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

/// The tuple that a `batch_norm` with fixed statistics gives; `None` where its rank or dtype is not known.
fn batch_norm(b: &mut BlockBuilder, bn: &Call) -> Result<Option<Expr>, BuildError> {
    let [data, gamma, beta, mean, variance] = bn.args.as_slice() else { return Ok(None) };
    let ty = data.ty();
    let Some(tensor) = ty.as_tensor().filter(|t| t.ndim > 0 && t.dtype.is_float()) else { return Ok(None) };
    let (dtype, ndim) = (tensor.dtype, tensor.ndim);
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
