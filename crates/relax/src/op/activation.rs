//! Activations with parameters, padding, and dropout.

use relaxide_ir::prim::{self, PrimExpr, constant, math};
use relaxide_ir::{AttrValue, Type};
use relaxide_tir::te;

use super::manipulate::{input, result_dims};
use super::unary::same_type;
use super::*;

const DATA: ArgDef = ArgDef::tensor("data", "The input.");

const fn scalar_row(
    name: &'static str,
    attrs: &'static [AttrDef],
    f: fn(&CallCx, &[PrimExpr]) -> Result<PrimExpr, OpError>,
    doc: &'static str,
) -> OpDef {
    OpDef {
        name,
        doc,
        args: &[DATA],
        attrs,
        infer: same_type,
        lower: Lowering::Scalar(f),
        pattern: OpPattern::Elemwise,
        ..OpDef::BASE
    }
}

/// The rows.
pub static TABLE: &[OpDef] = &[
    scalar_row(
        "nn.leakyrelu",
        &[AttrDef::float("alpha", 0.01, "Slope below zero.")],
        leaky,
        "x above zero, alpha * x below.",
    ),
    scalar_row(
        "nn.softplus",
        &[AttrDef::float("beta", 1.0, "Steepness."), AttrDef::float("threshold", 20.0, "Above it, x itself.")],
        softplus,
        "log(1 + exp(beta * x)) / beta.",
    ),
    OpDef {
        infer: prelu_type,
        lengths: |cx| {
            let Some(ndim) = cx.tensor(0)?.ndim.filter(|n| *n > 0) else { return Ok(Vec::new()) };
            let one = cx.tensor(1)?.dims.is_none_or(|dims| dims.iter().all(|d| d.is_int(1)));
            let axis = cx.axis("axis", ndim)? as i64;
            Ok(if one { Vec::new() } else { lengths::equal_dims(cx, &[(0, axis), (1, 0)]) })
        },
        args: &[DATA, ArgDef::tensor("alpha", "Slopes below zero: one, or one for each channel.")],
        attrs: &[AttrDef::int("axis", 1, "The dimension of channels.")],
        lower: Lowering::Compute(prelu),
        pattern: OpPattern::Broadcast,
        ..scalar_row("nn.prelu", &[], leaky, "x above zero, alpha * x below, alpha being learned.")
            .layout(layout::normalization)
    },
    OpDef {
        attrs: &[AttrDef::float("rate", 0.5, "How many elements are dropped in training.")],
        infer: |cx| Ok(Type::tuple(vec![cx.tensor(0)?.ty(), cx.tensor(0)?.ty()])),
        lower: Lowering::Compute(dropout),
        ..scalar_row("nn.dropout", &[], leaky, "A tuple of x and of the mask; in inference nothing is dropped.")
            .follow()
            .layout(layout::elementwise)
    },
    OpDef {
        attrs: &[
            AttrDef::new(
                "pad_width",
                AttrKind::Ints,
                AttrDefault::Required,
                "For each dimension how much is added in front and behind.",
            ),
            AttrDef::str("pad_mode", "constant", "What is added: constant, reflect, replicate, circular."),
            AttrDef::float("pad_value", 0.0, "The constant."),
        ],
        infer: pad_type,
        lower: Lowering::Compute(pad),
        pattern: OpPattern::Injective,
        ..scalar_row("nn.pad", &[], leaky, "The input with a border.")
    },
];

fn leaky(cx: &CallCx, values: &[PrimExpr]) -> Result<PrimExpr, OpError> {
    let x = &values[0];
    let slope = constant(x.dtype(), cx.float("alpha")?);
    Ok(prim::select(prim::gt(x, constant(x.dtype(), 0.0)), x.clone(), x * slope))
}

fn softplus(cx: &CallCx, values: &[PrimExpr]) -> Result<PrimExpr, OpError> {
    let x = &values[0];
    let number = |v: f64| constant(x.dtype(), v);
    let beta = cx.float("beta")?;
    let scaled = x * number(beta);
    // No exponential overflows, and none is lost beside the one.
    let small = math("exp", number(0.0) - math("fabs", scaled.clone()));
    let soft = prim::div(prim::max(scaled.clone(), number(0.0)) + math("log1p", small), number(beta));
    Ok(prim::select(prim::gt(scaled, number(cx.float("threshold")?)), x.clone(), soft))
}

fn prelu_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    x.ndim.map_or(Ok(0), |ndim| cx.axis("axis", ndim))?;
    Ok(x.ty())
}

fn prelu(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let (x, alpha) = (input(cx, inputs, 0)?, input(cx, inputs, 1)?);
    let axis = cx.axis("axis", x.ndim())?;
    let one = alpha.shape().iter().all(|d| d.is_int(1));
    if cx.form == KernelForm::Plain {
        let slope = te::compute("slope_broadcasted", [x.shape()[axis].clone()], |c| {
            alpha.at(&if one { vec![PrimExpr::from(0); alpha.ndim()] } else { c.to_vec() })
        });
        let value = |out: &[PrimExpr]| {
            let x = x.at(out);
            let below = &x * slope.at(&out[axis..=axis]);
            prim::select(prim::gt(&x, constant(x.dtype(), 0.0)), x, below)
        };
        return Ok(vec![te::compute("T_prelu", x.shape(), value)]);
    }
    Ok(vec![te::compute("T_prelu", x.shape(), |out| {
        let at = if one { vec![PrimExpr::from(0); alpha.ndim()] } else { vec![out[axis].clone()] };
        let value = x.at(out);
        prim::select(prim::gt(&value, constant(x.dtype(), 0.0)), value.clone(), value * alpha.at(&at))
    })])
}

fn dropout(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    Ok(vec![
        te::compute("T_dropout", x.shape(), |out| x.at(out)),
        te::compute("T_mask", x.shape(), |_| constant(x.dtype(), 1.0)),
    ])
}

/// The border in front of and behind each dimension.
fn widths(cx: &CallCx, ndim: usize) -> Result<Vec<(i64, i64)>, OpError> {
    let list = match cx.attrs.get("pad_width") {
        Some(AttrValue::List(_)) => cx.ints("pad_width")?,
        _ => return cx.invalid("`pad_width` must be a list"),
    };
    if list.len() != 2 * ndim {
        return cx
            .invalid(format!("`pad_width` has {} entries for {ndim} dimensions; two for each are needed", list.len()));
    }
    Ok(list.chunks_exact(2).map(|c| (c[0], c[1])).collect())
}

fn pad_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    let Some(ndim) = x.ndim else { return cx.invalid("needs a tensor of known rank") };
    let widths = widths(cx, ndim)?;
    let dims = x.dims.map(|dims| dims.into_iter().zip(&widths).map(|(d, (a, b))| d + (a + b)).collect());
    Ok(tensor_type(dims, x.ndim, x.dtype))
}

fn pad(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let x = input(cx, inputs, 0)?;
    let widths = widths(cx, x.ndim())?;
    let mode = cx.str("pad_mode")?;
    let value = constant(x.dtype(), cx.float("pad_value")?);
    if !matches!(mode, "constant" | "reflect" | "replicate" | "edge" | "circular") {
        return cx.unsupported(format!(
            "pad_mode {mode} is not implemented; there are constant, reflect, replicate, circular"
        ));
    }
    Ok(vec![te::compute("T_pad", result_dims(cx)?, |out| {
        let mut inside = prim::boolean(true);
        let mut index = Vec::with_capacity(out.len());
        for ((axis, (front, behind)), size) in out.iter().zip(&widths).zip(x.shape()) {
            let at = axis - *front;
            if (*front, *behind) == (0, 0) {
                index.push(axis.clone());
                continue;
            }
            match mode {
                "constant" => {
                    if *front > 0 {
                        inside = prim::and(inside, prim::ge(&at, 0));
                    }
                    if *behind > 0 {
                        inside = prim::and(inside, prim::lt(&at, size));
                    }
                    index.push(at);
                }
                "reflect" => {
                    let mirrored = prim::select(prim::lt(&at, 0), PrimExpr::from(0) - &at, at);
                    let last = size - 1;
                    index.push(prim::select(prim::gt(&mirrored, &last), &last * 2 - &mirrored, mirrored));
                }
                "circular" => index.push(prim::floormod(at, size)),
                _ => index.push(prim::max(prim::min(at, size - 1), 0)),
            }
        }
        let along = index.len().checked_sub(1).filter(|_| cx.form == KernelForm::Fast && mode != "constant");
        let Some(inner) = along.and_then(|last| within(&out[last], [widths[last].0, widths[last].1], &x.shape()[last]))
        else {
            return prim::if_then_else(inside, x.at(&index), value);
        };
        // Most of a row lies side by side.
        let copied =
            index[..index.len() - 1].iter().cloned().chain([&out[index.len() - 1] - widths[index.len() - 1].0]);
        prim::if_then_else(inner, x.at(&copied.collect::<Vec<_>>()), x.at(&index))
    })])
}

/// Whether a place of a padded axis is one of the axis itself; nothing where it has no border.
fn within(at: &PrimExpr, [front, behind]: [i64; 2], size: &PrimExpr) -> Option<PrimExpr> {
    let own = at - front;
    let before = (front != 0).then(|| prim::ge(&own, 0));
    let after = (behind != 0).then(|| prim::lt(&own, size));
    before.into_iter().chain(after).reduce(prim::and)
}
