//! FoldBatchnormToConv2D and FoldScaleToConv2D: what scales and shifts the channels of a convolution goes into its weight.
//!
//! ```text
//! c = R.nn.conv2d(x, W)                                           c = R.nn.conv2d(x, W * s)
//! y = R.nn.batch_norm(c, gamma, beta, mean, var)[0]       →       y = c + (beta - mean * s)
//!                                                                 s = gamma / sqrt(var + epsilon), for each output channel
//!
//! y = (R.nn.conv2d(x, W) + b) * s + t                     →       y = R.nn.conv2d(x, W * s) + (b * s + t)
//! ```
//!
//! The first pass looks for normalizations, the second for the multiplications and additions of constants that some exporters
//! write in their place. Products are computed here, in double precision, and rounded once.
//!
//! **Refuses**, and leaves the program as it is, if the weight or a parameter is no float32 constant, if something else uses
//! the convolution's result, or if channels are not dimension 1. The convolution that is replaced stays behind without a use; dead
//! code elimination drops it.
//!
//! **In training** a normalization has the batch's own statistics. Whoever asks for the first pass has a program for inference, as TVM
//! takes it; `keep_training`, which the compiler's pipelines ask for, leaves such normalizations alone.

use std::collections::HashMap;

use relaxide_ffi::{Ref, Tensor};
use relaxide_ir::pass::{ParamDefault, ParamKind, PassInfo, PassParam, PassResult};
use relaxide_ir::{Attrs, IRModule};

use crate::constant::as_floats;
use crate::functor::ExprVisitor;
use crate::rewrite::{Action, ExprMap, Rewrite, in_function, rewrite_function};
use crate::*;

pub(super) const BATCHNORM: PassInfo = PassInfo::new(
    "FoldBatchnormToConv2D",
    "A normalization behind a convolution of constant weight goes into the weight.",
    |module, _, args| {
        let keep = args.bool("keep_training") == Some(true);
        run("FoldBatchnormToConv2D", module, if keep { Fold::batch_norm_of_inference } else { Fold::batch_norm })
    },
)
.params(&[PassParam::new(
    "keep_training",
    ParamKind::Bool,
    ParamDefault::Bool(false),
    "Whether a batch_norm in training stays.",
)]);

pub(super) const SCALE: PassInfo = PassInfo::new(
    "FoldScaleToConv2D",
    "Constants that scale and shift a convolution's channels go into its weight and one addition.",
    |module, _, _| run("FoldScaleToConv2D", module, Fold::scale),
);

/// A rule: the value that takes the place of a call, if it applies.
type FoldRule = fn(&mut Fold, &mut BlockBuilder, &Call) -> Result<Option<Expr>, BuildError>;

fn run(pass: &str, module: IRModule, rule: FoldRule) -> PassResult {
    let mut b = BlockBuilder::with_module(module);
    let functions: Vec<_> = b.module().functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    for (name, func) in functions {
        let mut uses = Uses::default();
        uses.visit_seq(&func.body);
        let mut fold = Fold { uses: uses.0, values: ExprMap::new(), rule };
        let new = rewrite_function(&mut b, &func, &mut fold).map_err(|e| in_function(pass, &name, e))?;
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
    rule: FoldRule,
}

impl Rewrite for Fold {
    fn value(&mut self, b: &mut BlockBuilder, var: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let folded = match value.as_op_call() {
            Some((call, _)) => (self.rule)(self, b, call)?,
            None => None,
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
                let bias = add.args.get(1).filter(|b| is_per_channel(b)).and_then(floats)?;
                let conv = self.conv(add.args.first()?)?;
                conv.bias.is_none().then_some(Conv { bias: Some(bias), ..conv })
            }
            _ => None,
        }
    }

    /// A normalization behind a convolution that is not in training.
    fn batch_norm_of_inference(&mut self, b: &mut BlockBuilder, bn: &Call) -> Result<Option<Expr>, BuildError> {
        if bn.attrs.bool("training") == Some(false) { self.batch_norm(b, bn) } else { Ok(None) }
    }

    /// A normalization behind a convolution.
    fn batch_norm(&mut self, b: &mut BlockBuilder, bn: &Call) -> Result<Option<Expr>, BuildError> {
        let [data, gamma, beta, mean, variance] = bn.args.as_slice() else { return Ok(None) };
        let set = |name: &str| bn.attrs.bool(name) != Some(false);
        if bn.op_name() != Some("nn.batch_norm") || bn.attrs.int("axis") != Some(1) || !set("scale") || !set("center") {
            return Ok(None);
        }
        let parameters = (floats(gamma), floats(beta), floats(mean), floats(variance));
        let (Some(conv), (Some(gamma), Some(beta), Some(average), Some(spread))) = (self.conv(data), parameters) else {
            return Ok(None);
        };
        let epsilon = bn.attrs.float("epsilon").unwrap_or(1e-5);
        let scale: Vec<f64> = gamma.iter().zip(&spread).map(|(g, v)| g / (v + epsilon).sqrt()).collect();
        let shift: Vec<f64> = beta.iter().zip(&average).zip(&scale).map(|((b, m), s)| b - m * s).collect();
        let folded = self.transformed(b, &conv, &scale, &shift)?;
        Ok(folded.map(|result| Expr::tuple([result, mean.clone(), variance.clone()])))
    }

    /// A multiplication by, or a second addition of, one constant a channel behind a convolution.
    fn scale(&mut self, b: &mut BlockBuilder, call: &Call) -> Result<Option<Expr>, BuildError> {
        let [left, right] = call.args.as_slice() else { return Ok(None) };
        let (data, constant) = if matches!(left, Expr::Constant(_)) { (right, left) } else { (left, right) };
        let Some(values) = Some(constant).filter(|c| is_per_channel(c)).and_then(floats) else { return Ok(None) };
        let Some(conv) = self.conv(data) else { return Ok(None) };
        match call.op_name() {
            Some("multiply") => self.transformed(b, &conv, &values, &[0.0]),
            Some("add") if conv.bias.is_some() => self.transformed(b, &conv, &[1.0], &values),
            _ => Ok(None),
        }
    }
}

impl Fold {
    /// The convolution whose channels are multiplied by `scale` and shifted by `shift`.
    fn transformed(
        &mut self,
        b: &mut BlockBuilder,
        conv: &Conv,
        scale: &[f64],
        shift: &[f64],
    ) -> Result<Option<Expr>, BuildError> {
        let (Some(data), Some(Expr::Constant(weight))) = (conv.call.args.first(), conv.call.args.get(1)) else {
            return Ok(None);
        };
        let channels = weight.value.shape().first().map_or(0, |c| usize::try_from(*c).unwrap_or(0));
        let bias = spread(conv.bias.as_deref().unwrap_or(&[0.0]), channels);
        let (scale, shift) = (spread(scale, channels), spread(shift, channels));
        let fits = [bias.len(), scale.len(), shift.len()].iter().all(|n| *n == channels);
        if channels == 0 || !fits || weight.value.dtype() != relaxide_ffi::DataType::float(32) {
            return Ok(None);
        }
        let Some(weight) = scaled(&weight.value, &scale)? else { return Ok(None) };
        let shifted: Vec<f32> = bias.iter().zip(&scale).zip(&shift).map(|((b, s), t)| (b * s + t) as f32).collect();
        let value = op::call("nn.conv2d", [data.clone(), weight], conv.call.attrs.clone())?;
        if shifted.iter().all(|v| *v == 0.0) {
            return Ok(Some(value));
        }
        let folded = b.emit(value.clone())?;
        if let Some(var) = folded.as_var() {
            self.uses.insert(var.clone(), 1);
            self.values.insert(var, value);
        }
        let shift = constant(&shifted, &[1, channels as i64, 1, 1])?;
        Ok(Some(op::call("add", [folded, shift], Attrs::new())?))
    }
}

/// A weight whose filters are multiplied by a number each.
fn scaled(weight: &Tensor, scale: &[f64]) -> Result<Option<Expr>, BuildError> {
    if scale.iter().all(|s| *s == 1.0) {
        return Ok(Some(Expr::constant(weight.clone())));
    }
    let Some(values) = as_floats(weight) else { return Ok(None) };
    let filter = (values.len() / scale.len().max(1)).max(1);
    let scaled: Vec<f32> =
        values.chunks(filter).zip(scale).flat_map(|(w, s)| w.iter().map(move |w| (w * s) as f32)).collect();
    constant(&scaled, weight.shape()).map(Some)
}

/// The numbers of a float32 constant.
fn floats(e: &Expr) -> Option<Vec<f64>> {
    let Expr::Constant(c) = e else { return None };
    (c.value.dtype() == relaxide_ffi::DataType::float(32)).then(|| as_floats(&c.value))?
}

/// Whether a constant has one number for each channel of an image, shape `(C, 1, 1)` or `(1, C, 1, 1)`, or one for all.
fn is_per_channel(e: &Expr) -> bool {
    let Expr::Constant(c) = e else { return false };
    matches!(c.value.shape(), [_, 1, 1] | [1, _, 1, 1]) || (c.value.numel() == 1 && c.value.ndim() <= 4)
}

/// A list with one number for each channel, where one may stand for all.
fn spread(list: &[f64], channels: usize) -> Vec<f64> {
    if let [one] = list { vec![*one; channels] } else { list.to_vec() }
}

fn constant(values: &[f32], shape: &[i64]) -> Result<Expr, BuildError> {
    let tensor = Tensor::from_slice(values, shape).map_err(|e| BuildError::Program(e.to_string()))?;
    Ok(Expr::constant(tensor))
}
