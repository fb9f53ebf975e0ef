//! DecomposeOpsForTraining: normalizations become arithmetic that has derivatives.
//!
//! ```text
//! lv = R.nn.batch_norm(x, gamma, beta, mean, var, training=True)
//!     →  the batch's own mean and variance normalize x; the running ones move towards them by `momentum`
//! gv = R.nn.layer_norm(x, gamma, beta)
//!     →  (x - mean(x)) / sqrt(variance(x) + epsilon) * gamma + beta
//! ```
//!
//! A shape that a tensor holds has dimensions with names, as for inference. A `batch_norm` with `training=False` is left to `DecomposeOpsForInference`. (TVM takes every `batch_norm` for one in training.)

use relaxide_ir::pass::{ParamKind, PassInfo, PassParam};
use relaxide_ir::prim::constant;
use relaxide_ir::{Attrs, DataType};

use super::decompose_inference::named_dims;
use crate::constant::scalar_constant;
use crate::rewrite::{Action, Rewrite, rewrite_named};
use crate::*;

const NAME: &str = "DecomposeOpsForTraining";

pub(super) const PASS: PassInfo =
    PassInfo::new(NAME, "Normalizations become arithmetic that has derivatives.", |module, _, args| {
        rewrite_named(NAME, module, args.str("func_name"), &mut Decompose)
    })
    .params(&[PassParam::optional("func_name", ParamKind::Str, "The function; all, where nothing is said.")]);

struct Decompose;

impl Rewrite for Decompose {
    fn value(&mut self, b: &mut BlockBuilder, _: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let new = match value.as_op_call() {
            Some((call, "nn.batch_norm")) if call.attrs.bool("training") != Some(false) => batch_norm(b, call)?,
            Some((call, "nn.layer_norm")) => layer_norm(b, call)?,
            Some((call, "tensor_to_shape")) => named_dims(b, call)?,
            _ => None,
        };
        Ok(Action::Bind(new.unwrap_or(value)))
    }
}

/// Rank and element type of a floating-point tensor.
#[derive(Clone, Copy)]
pub(super) struct FloatTensor {
    pub(super) ndim: i64,
    pub(super) dtype: DataType,
}

/// What is known of a tensor, if it is one of floating-point numbers.
pub(super) fn known(data: &Expr) -> Option<FloatTensor> {
    let ty = data.ty();
    let tensor = ty.as_tensor().filter(|t| t.ndim > 0 && t.dtype.is_float())?;
    Some(FloatTensor { ndim: tensor.ndim, dtype: tensor.dtype })
}

fn number(dtype: DataType, value: f64) -> Result<Expr, BuildError> {
    Ok(scalar_constant(dtype, value).unwrap_or_else(|| Expr::prim(constant(dtype, value))))
}

fn batch_norm(b: &mut BlockBuilder, bn: &Call) -> Result<Option<Expr>, BuildError> {
    let [data, gamma, beta, mean, variance] = bn.args.as_slice() else { return Ok(None) };
    let Some(tensor) = known(data) else { return Ok(None) };
    let FloatTensor { ndim, dtype } = tensor;
    let over = || Attrs::new().with("axis", other_axes(bn, ndim)).with("keepdims", false);
    let own_mean = b.op("mean", [data.clone()], over())?;
    let own_variance = b.op("variance", [data.clone()], over())?;
    let own = [data, gamma, beta, &own_mean, &own_variance].map(Expr::clone);
    let result = batch_normalized(b, bn, tensor, &own)?;
    let inner = b.emit(Expr::tuple([result, own_mean.clone(), own_variance.clone()]))?;
    let result = b.emit(Expr::field(inner, 0))?;
    let momentum = bn.attrs.float("momentum").unwrap_or(0.1);
    let mut moved = |old: &Expr, new: Expr| {
        let old = b.op("multiply", [number(dtype, 1.0 - momentum)?, old.clone()], Attrs::new())?;
        let new = b.op("multiply", [number(dtype, momentum)?, new], Attrs::new())?;
        b.op("add", [old, new], Attrs::new())
    };
    let (new_mean, new_variance) = (moved(mean, own_mean)?, moved(variance, own_variance)?);
    Ok(Some(Expr::tuple([result, new_mean, new_variance])))
}

/// The axes over which a `batch_norm` has its statistics.
fn other_axes(bn: &Call, ndim: i64) -> Vec<i64> {
    let axis = bn.attrs.int("axis").unwrap_or(1).rem_euclid(ndim);
    (0..ndim).filter(|i| *i != axis).collect()
}

/// `(data - mean) / sqrt(variance + epsilon) * gamma + beta` along the axis of a `batch_norm`.
pub(super) fn batch_normalized(
    b: &mut BlockBuilder,
    bn: &Call,
    tensor: FloatTensor,
    [data, gamma, beta, mean, variance]: &[Expr; 5],
) -> Result<Expr, BuildError> {
    let FloatTensor { ndim, dtype } = tensor;
    let others = other_axes(bn, ndim);
    let spread =
        |b: &mut BlockBuilder, v: &Expr| b.op("expand_dims", [v.clone()], Attrs::new().with("axis", others.clone()));
    let mean = spread(b, mean)?;
    let centred = b.op("subtract", [data.clone(), mean], Attrs::new())?;
    let variance = spread(b, variance)?;
    let mut out = over_deviation(b, bn, dtype, centred, variance)?;
    if is_on(bn, "scale") {
        let gamma = spread(b, gamma)?;
        out = b.op("multiply", [out, gamma], Attrs::new())?;
    }
    if is_on(bn, "center") {
        let beta = spread(b, beta)?;
        out = b.op("add", [out, beta], Attrs::new())?;
    }
    Ok(out)
}

/// Whether a normalization has not switched off a part of it.
fn is_on(call: &Call, flag: &str) -> bool {
    call.attrs.bool(flag) != Some(false)
}

/// `centred / sqrt(variance + epsilon)`.
fn over_deviation(
    b: &mut BlockBuilder,
    call: &Call,
    dtype: DataType,
    centred: Expr,
    variance: Expr,
) -> Result<Expr, BuildError> {
    let epsilon = number(dtype, call.attrs.float("epsilon").unwrap_or(1e-5))?;
    let shifted = b.op("add", [variance, epsilon], Attrs::new())?;
    let spread = b.op("sqrt", [shifted], Attrs::new())?;
    b.op("divide", [centred, spread], Attrs::new())
}

fn layer_norm(b: &mut BlockBuilder, call: &Call) -> Result<Option<Expr>, BuildError> {
    let [data, gamma, beta] = call.args.as_slice() else { return Ok(None) };
    let Some(FloatTensor { dtype, .. }) = known(data) else { return Ok(None) };
    let axes = call.attrs.ints("axes").unwrap_or_else(|| vec![-1]);
    let over = || Attrs::new().with("axis", axes.clone()).with("keepdims", true);
    let mean = b.op("mean", [data.clone()], over())?;
    let centred = b.op("subtract", [data.clone(), mean], Attrs::new())?;
    let variance = b.op("variance", [data.clone()], over())?;
    let mut out = over_deviation(b, call, dtype, centred, variance)?;
    // The last step has the name of the call.
    let (scaled, centred) = (is_on(call, "scale"), is_on(call, "center"));
    if scaled {
        let product = op::call("multiply", [out, gamma.clone()], Attrs::new())?;
        out = if centred { b.emit(product)? } else { product };
    }
    if centred {
        out = op::call("add", [out, beta.clone()], Attrs::new())?;
    }
    Ok(Some(out))
}
