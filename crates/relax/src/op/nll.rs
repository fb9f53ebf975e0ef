//! The negative log-likelihood of classes, and its gradient.

use relaxide_ffi::DataType;
use relaxide_ir::Type;
use relaxide_ir::prim::{self, PrimExpr, cast, constant};
use relaxide_tir::te;

use super::manipulate::input;
use super::*;
use crate::shape::prove_equal;

const PREDICTIONS: ArgDef =
    ArgDef::tensor("predictions", "Logarithms of probabilities: (N, C, d1 … dk), or (C,) without a batch.");
const TARGETS: ArgDef = ArgDef::tensor("targets", "The right class of each: (N, d1 … dk).");
const WEIGHTS: ArgDef = ArgDef::tensor("weights", "The weight of each class: (C,); 1 if absent.").optional();
const ATTRS: &[AttrDef] = &[
    AttrDef::str("reduction", "mean", "What becomes of the losses: mean (by weight), sum, none."),
    AttrDef::int("ignore_index", -100, "The class whose losses do not count."),
];

/// The rows.
pub static TABLE: &[OpDef] = &[
    OpDef::compute(
        "nn.nll_loss",
        &[PREDICTIONS, TARGETS, WEIGHTS],
        ATTRS,
        loss_type,
        loss,
        "-weights[target] * predictions[target], averaged or summed. ATen: nll_loss.",
    )
    .lengths(|cx| loss_agrees(cx, 0))
    .gradient(gradient::nll_loss),
    OpDef::compute(
        "grad.nll_loss_backward",
        &[ArgDef::tensor("output_grad", "The gradient of the loss."), PREDICTIONS, TARGETS, WEIGHTS],
        ATTRS,
        |cx| Ok(cx.tensor(1)?.ty()),
        backward,
        "The gradient of nll_loss for its predictions.",
    )
    .lengths(|cx| loss_agrees(cx, 1)),
];

fn check_equal(cx: &CallCx, what: &str, a: Option<&PrimExpr>, b: Option<&PrimExpr>) -> Result<(), OpError> {
    match (a, b) {
        (Some(a), Some(b)) if a.as_int().is_some() && b.as_int().is_some() && !prove_equal(a, b) => {
            cx.invalid(format!(
                "the arguments differ in the {what}: {} and {}",
                crate::display::dim_text(a),
                crate::display::dim_text(b)
            ))
        }
        _ => Ok(()),
    }
}

/// Predictions, from argument `first` on, targets and weights are about the same examples and classes.
fn loss_agrees(cx: &CallCx, first: usize) -> Result<Vec<lengths::Lengths>, OpError> {
    let Some(ndim) = cx.tensor(first)?.ndim else { return Ok(Vec::new()) };
    let batched = ndim > 1;
    let mut all = lengths::equal_dims(cx, &[(first, i64::from(batched)), (first + 2, 0)]);
    if batched {
        let rest = (2..ndim as i64).map(|i| (i, i - 1));
        all.extend(rest.chain([(0, 0)]).flat_map(|(p, t)| lengths::equal_dims(cx, &[(first, p), (first + 1, t)])));
    }
    Ok(all)
}

fn loss_type(cx: &CallCx) -> Result<Type, OpError> {
    let (predictions, targets) = (cx.tensor(0)?, cx.tensor(1)?);
    let weights = if cx.has(2) { Some(cx.tensor(2)?) } else { None };
    if !targets.dtype.is_void() && !targets.dtype.is_integer() {
        return cx.wrong_dtype(format!("the targets have dtype {}; they must be integers", targets.dtype));
    }
    let dtype = match &weights {
        Some(w) if w.dtype != predictions.dtype && !w.dtype.is_void() && !predictions.dtype.is_void() => {
            return cx.wrong_dtype(format!("predictions have dtype {}, weights {}", predictions.dtype, w.dtype));
        }
        Some(w) if w.dtype.is_void() => w.dtype,
        _ => predictions.dtype,
    };
    let reduction = cx.str("reduction")?;
    if !matches!(reduction, "mean" | "sum" | "none") {
        return cx.invalid(format!("reduction is {reduction}; there are mean, sum, none"));
    }
    if predictions.ndim == Some(0) {
        return cx.invalid("predictions have no dimension of classes");
    }
    if let Some(n) = weights.as_ref().and_then(|w| w.ndim).filter(|n| *n != 1) {
        return cx.invalid(format!("weights have {n} dimensions, not 1"));
    }
    if let Some((n, m)) = predictions.ndim.zip(targets.ndim).filter(|(n, m)| *n != m + 1) {
        return cx.invalid(format!("predictions of {n} dimensions come with targets of {m}"));
    }
    let p = predictions.dims.as_deref().unwrap_or_default();
    let t = targets.dims.as_deref().unwrap_or_default();
    let batched = p.len() > 1;
    let classes = p.get(usize::from(batched));
    let given = weights.as_ref().and_then(|w| w.dims.as_ref()).and_then(|d| d.first());
    check_equal(cx, "number of classes", classes, given)?;
    if batched {
        check_equal(cx, "batch", p.first(), t.first())?;
        for (a, b) in p.iter().skip(2).zip(t.iter().skip(1)) {
            check_equal(cx, "further dimensions", Some(a), Some(b))?;
        }
    }
    if reduction != "none" {
        return Ok(Type::tensor(Vec::<PrimExpr>::new(), dtype));
    }
    if predictions.ndim.is_none() {
        return Ok(tensor_type(None, None, dtype));
    }
    let from_predictions = || predictions.dims.as_ref().map(|p| without_classes(p));
    let ndim = targets.ndim.or(predictions.ndim.map(|n| n - 1));
    Ok(tensor_type(from_predictions(), ndim, dtype))
}

/// The dimensions of the targets.
fn without_classes(predictions: &[PrimExpr]) -> Vec<PrimExpr> {
    match predictions {
        [batch, _, rest @ ..] => std::iter::once(batch).chain(rest).cloned().collect(),
        _ => Vec::new(),
    }
}

/// What losses are made of: predictions, targets and weights.
struct LossInputs<'a> {
    predictions: &'a te::Tensor,
    targets: &'a te::Tensor,
    weights: Option<&'a te::Tensor>,
    ignore: i64,
}

impl LossInputs<'_> {
    fn of<'a>(cx: &CallCx, inputs: &'a [te::Tensor], first: usize) -> Result<LossInputs<'a>, OpError> {
        Ok(LossInputs {
            predictions: input(cx, inputs, first)?,
            targets: input(cx, inputs, first + 1)?,
            weights: inputs.get(first + 2),
            ignore: cx.int("ignore_index")?,
        })
    }

    fn dtype(&self) -> DataType {
        self.predictions.dtype()
    }

    fn target(&self, at: &[PrimExpr]) -> PrimExpr {
        cast(DataType::int(64), self.targets.at(at))
    }

    fn counts(&self, at: &[PrimExpr]) -> PrimExpr {
        prim::ne(self.target(at), self.ignore)
    }

    /// The weight of a target, zero where its loss does not count.
    fn weight(&self, at: &[PrimExpr]) -> PrimExpr {
        let one = constant(self.dtype(), 1.0);
        let weight = self.weights.map_or(one, |w| w.at(&[self.target(at)]));
        prim::if_then_else(self.counts(at), weight, constant(self.dtype(), 0.0))
    }

    /// The place of the right class among the predictions.
    fn place(&self, at: &[PrimExpr]) -> Vec<PrimExpr> {
        let mut place = at.to_vec();
        place.insert(usize::from(!at.is_empty()), self.target(at));
        place
    }

    /// The sum of an expression over all targets.
    fn total(&self, name: &str, f: impl Fn(&[PrimExpr]) -> PrimExpr) -> te::Tensor {
        let taps: Vec<te::ReduceAxis> = self.targets.shape().iter().map(|d| te::reduce_axis(d.clone())).collect();
        let at: Vec<PrimExpr> = taps.iter().map(te::ReduceAxis::var).collect();
        let none: [PrimExpr; 0] = [];
        if taps.is_empty() {
            return te::compute(name, none, |_| f(&at));
        }
        te::compute(name, none, |_| te::sum(f(&at), &taps))
    }
}

fn loss(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let parts = LossInputs::of(cx, inputs, 0)?;
    let zero = constant(parts.dtype(), 0.0);
    let losses = te::compute("T_nll", parts.targets.shape(), |at| {
        let value = &zero - parts.predictions.at(&parts.place(at)) * parts.weight(at);
        prim::if_then_else(parts.counts(at), value, &zero)
    });
    let none: [PrimExpr; 0] = [];
    Ok(vec![match cx.str("reduction")? {
        "none" => losses,
        "sum" => parts.total("T_nll_sum", |at| losses.at(at)),
        _ => {
            let sum = parts.total("T_nll_sum", |at| losses.at(at));
            let weights = parts.total("T_nll_weights", |at| parts.weight(at));
            te::compute("T_nll_mean", none, |_| prim::div(sum.at(&[]), weights.at(&[])))
        }
    }])
}

fn backward(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let grad = input(cx, inputs, 0)?;
    let parts = LossInputs::of(cx, inputs, 1)?;
    let reduction = cx.str("reduction")?;
    let weights = (reduction == "mean").then(|| parts.total("T_nll_weights", |at| parts.weight(at)));
    let zero = constant(parts.dtype(), 0.0);
    Ok(vec![te::compute("T_nll_grad", parts.predictions.shape(), |out| {
        let batched = out.len() > 1;
        let class = &out[usize::from(batched)];
        let mut at = out.to_vec();
        at.remove(usize::from(batched));
        let own = if grad.ndim() == 0 { grad.at(&[]) } else { grad.at(&at) };
        let own = match &weights {
            Some(total) => prim::div(own, total.at(&[])),
            None => own,
        };
        let value = &zero - parts.weight(&at) * own;
        prim::if_then_else(prim::eq(class, parts.target(&at)), value, zero)
    })])
}
