//! FoldBatchnormToConv2D: a normalization behind a convolution of constant weight goes into the weight.
//!
//! ```text
//! c = R.nn.conv2d(x, W)                                           c = R.nn.conv2d(x, W * s)
//! y = R.nn.batch_norm(c, gamma, beta, mean, var)[0]       →       y = c + (beta - mean * s)
//!                                                                 s = gamma / sqrt(var + epsilon), for each output channel
//! ```
//!
//! The product is computed here, in double precision, and rounded once. A constant bias between the two is scaled too.
//!
//! **Refuses**, and leaves the program as it is, if the weight or a parameter is no float32 constant, if something else uses
//! the convolution's result, if channels are not dimension 1, or if the normalization is in training.

use std::collections::HashMap;

use relaxide_ffi::{Ref, Tensor};
use relaxide_ir::pass::{PassInfo, PassResult};
use relaxide_ir::{Attrs, IRModule};

use crate::constant::as_floats;
use crate::functor::ExprVisitor;
use crate::rewrite::{Action, ExprMap, Rewrite, in_function, rewrite_function};
use crate::*;

pub(super) const PASS: PassInfo = PassInfo {
    name: "FoldBatchnormToConv2D",
    doc: "A normalization behind a convolution of constant weight goes into the weight.",
    run: |module, _| run(module),
};

fn run(module: IRModule) -> PassResult {
    let mut b = BlockBuilder::with_module(module);
    let functions: Vec<_> = b.module().functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    for (name, func) in functions {
        let mut uses = Uses::default();
        uses.visit_seq(&func.body);
        let mut fold = Fold { uses: uses.0, values: ExprMap::new() };
        let new = rewrite_function(&mut b, &func, &mut fold).map_err(|e| in_function(PASS.name, &name, e))?;
        b.module_mut().insert(name, new);
    }
    Ok(b.finish())
}

/// How often each variable is used.
#[derive(Default)]
struct Uses(HashMap<AnyVar, usize>);

impl ExprVisitor for Uses {
    fn visit_expr(&mut self, e: &Expr) {
        match e.as_var() {
            Some(var) => *self.0.entry(var).or_default() += 1,
            None => self.walk_expr(e),
        }
    }
}

struct Fold {
    uses: HashMap<AnyVar, usize>,
    values: ExprMap,
}

impl Rewrite for Fold {
    fn value(&mut self, b: &mut BlockBuilder, var: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let folded = match value.as_op_call() {
            Some((call, "nn.batch_norm")) if call.attrs.bool("training") == Some(false) => self.fold(b, call)?,
            _ => None,
        };
        let value = folded.unwrap_or(value);
        self.values.insert(var.clone(), value.clone());
        Ok(Action::Bind(value))
    }
}

/// A convolution, perhaps with a bias behind it.
struct Conv {
    call: Ref<Call>,
    bias: Option<Vec<f64>>,
}

impl Fold {
    /// The value of a variable that nothing else uses.
    fn sole_value(&self, e: &Expr) -> Option<&Expr> {
        let var = e.as_var()?;
        (self.uses.get(&var) == Some(&1)).then(|| self.values.get(&var))?
    }

    fn conv(&self, e: &Expr) -> Option<Conv> {
        match self.sole_value(e)?.as_op_call()? {
            (call, "nn.conv2d") => Some(Conv { call: call.clone(), bias: None }),
            (add, "add") => {
                let (conv, bias) = (self.conv(add.args.first()?)?, floats(add.args.get(1)?)?);
                if conv.bias.is_some() || !is_per_channel(add.args.get(1)?) {
                    return None;
                }
                Some(Conv { bias: Some(bias), ..conv })
            }
            _ => None,
        }
    }

    fn fold(&self, b: &mut BlockBuilder, bn: &Call) -> Result<Option<Expr>, BuildError> {
        let [data, gamma, beta, mean, variance] = bn.args.as_slice() else { return Ok(None) };
        let plain = |name: &str| bn.attrs.bool(name) != Some(false);
        if bn.attrs.int("axis") != Some(1) || !plain("scale") || !plain("center") {
            return Ok(None);
        }
        let parameters = (floats(gamma), floats(beta), floats(mean), floats(variance));
        let (Some(conv), (Some(gamma), Some(beta), Some(average), Some(spread))) = (self.conv(data), parameters) else {
            return Ok(None);
        };
        let Some(Expr::Constant(weight)) = conv.call.args.get(1) else { return Ok(None) };
        let Some(values) = floats(&conv.call.args[1]) else { return Ok(None) };
        let channels = gamma.len();
        let bias = conv.bias.unwrap_or_else(|| vec![0.0; channels]);
        let of_channels = [beta.len(), average.len(), spread.len(), bias.len()].iter().all(|n| *n == channels);
        if channels == 0 || !of_channels || weight.value.shape().first() != Some(&(channels as i64)) {
            return Ok(None);
        }
        let epsilon = bn.attrs.float("epsilon").unwrap_or(1e-5);
        let scale: Vec<f64> = gamma.iter().zip(&spread).map(|(g, v)| g / (v + epsilon).sqrt()).collect();
        let per_channel = values.len() / channels;
        let scaled: Vec<f32> =
            values.iter().enumerate().map(|(i, w)| (w * scale[i / per_channel.max(1)]) as f32).collect();
        let shift: Vec<f32> = (0..channels).map(|c| (beta[c] + (bias[c] - average[c]) * scale[c]) as f32).collect();
        let weight = constant(&scaled, weight.value.shape())?;
        let shift = constant(&shift, &[1, channels as i64, 1, 1])?;
        let data = conv.call.args.first().cloned().unwrap_or(Expr::tuple([]));
        let conv = b.op("nn.conv2d", [data, weight], conv.call.attrs.clone())?;
        let sum = b.op("add", [conv, shift], Attrs::new())?;
        Ok(Some(Expr::tuple([sum, mean.clone(), variance.clone()])))
    }
}

/// The numbers of a float32 constant.
fn floats(e: &Expr) -> Option<Vec<f64>> {
    let Expr::Constant(c) = e else { return None };
    (c.value.dtype() == relaxide_ffi::DataType::float(32)).then(|| as_floats(&c.value))?
}

/// Whether a constant has one number for each channel of an image: shape `(C, 1, 1)` or `(1, C, 1, 1)`.
fn is_per_channel(e: &Expr) -> bool {
    let Expr::Constant(c) = e else { return false };
    matches!(c.value.shape(), [_, 1, 1] | [1, _, 1, 1])
}

fn constant(values: &[f32], shape: &[i64]) -> Result<Expr, BuildError> {
    let tensor = Tensor::from_slice(values, shape).map_err(|e| BuildError::Program(e.to_string()))?;
    Ok(Expr::constant(tensor))
}
