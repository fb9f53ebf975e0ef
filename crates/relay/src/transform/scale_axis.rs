//! FoldScaleAxis: a scale of channels becomes part of the weight of the convolution or dense layer beside it.
//!
//! ```text
//! conv2d(x, w) * s    becomes    conv2d(x, w * s)        backward: s scales the channels that come out
//! conv2d(x * s, w)    becomes    conv2d(x, w * s)        forward: s scales the channels that go in
//! ```
//!
//! It is done where weight and scale are constants, so nothing is left of the multiplication; between them a bias may be
//! added, or a ReLU taken of positive scales. What several read is left alone.

use std::collections::HashMap;

use relaxide_ffi::Ref;

use super::arithmetic::{call, float_constant, floats, with_types};
use super::table::TransformError;
use crate::*;

/// Both directions.
pub fn fold_scale_axis(module: &Module) -> Result<Module, TransformError> {
    forward_fold_scale_axis(&backward_fold_scale_axis(module)?)
}

fn uses(module: &Module) -> HashMap<usize, usize> {
    let mut count: HashMap<usize, usize> = HashMap::new();
    for function in module.functions.values() {
        visit::each(&function.body, |expr| {
            for child in expr.children() {
                *count.entry(child.address()).or_default() += 1;
            }
        });
    }
    count
}

/// A constant that scales a dimension: of the tensor's length there and of length 1 elsewhere; its elements.
fn scale_of(expr: &Expr, rank: usize, channel: usize, channels: usize) -> Option<Vec<f32>> {
    let values = floats(expr)?;
    let Expr::Constant(c) = expr else { return None };
    let shape = c.data.shape();
    if shape.is_empty() || values.len() == 1 {
        return Some(vec![*values.first()?; channels]);
    }
    let at = channel.checked_sub(rank - shape.len())?;
    let fits = shape.iter().enumerate().all(|(i, dim)| if i == at { *dim == channels as i64 } else { *dim == 1 });
    fits.then_some(values)
}

/// A layer with a constant weight: the weight's shape, which of its dimensions is output and input channel, and which
/// dimension of the data is the channel.
struct Layer {
    weight: Vec<f32>,
    shape: Vec<i64>,
    output: usize,
    input: usize,
    channel: usize,
}

fn layer(call_: &Ref<Call>, name: &str, rank: usize) -> Option<Layer> {
    let weight = floats(call_.args.get(1)?)?;
    let Expr::Constant(c) = &call_.args[1] else { return None };
    let shape = c.data.shape().to_vec();
    match name {
        "nn.dense" => Some(Layer { weight, shape, output: 0, input: 1, channel: rank - 1 }),
        "nn.conv1d" | "nn.conv2d" | "nn.conv3d" => {
            let kernel = call_.attrs.str("kernel_layout")?;
            let channel = call_.attrs.str("data_layout")?.find('C')?;
            if kernel.len() != shape.len() {
                return None;
            }
            Some(Layer { weight, shape, output: kernel.find('O')?, input: kernel.find('I')?, channel })
        }
        _ => None,
    }
}

impl Layer {
    /// The weight with a dimension scaled.
    fn scaled(&self, axis: usize, scale: &[f32]) -> Option<Expr> {
        let inner: i64 = self.shape[axis + 1..].iter().product();
        let extent = usize::try_from(self.shape[axis]).ok()?;
        if scale.len() != extent {
            return None;
        }
        let inner = usize::try_from(inner).ok()?.max(1);
        let values: Vec<f32> = self.weight.iter().enumerate().map(|(i, w)| w * scale[i / inner % extent]).collect();
        float_constant(&values, &self.shape)
    }
}

fn rank_of(types: &Types, expr: &Expr) -> Option<usize> {
    Some(types.of(expr)?.as_tensor()?.shape.len())
}

/// A scale behind a layer, with a bias between them or not.
pub fn backward_fold_scale_axis(module: &Module) -> Result<Module, TransformError> {
    let count = uses(module);
    let once = |e: &Expr| count.get(&e.address()).copied().unwrap_or(0) <= 1;
    with_types(module, |new, old, types| {
        let (product, "multiply") = new.as_op_call()? else { return None };
        let (before, _) = old.as_op_call()?;
        let rank = rank_of(types, old)?;
        let (side, constant) = match (&product.args[0], &product.args[1]) {
            (_, Expr::Constant(_)) => (0, &product.args[1]),
            (Expr::Constant(_), _) => (1, &product.args[0]),
            _ => return None,
        };
        if !once(&before.args[side]) || rank_of(types, &before.args[side])? != rank {
            return None;
        }
        let (inner, name) = product.args[side].as_op_call()?;
        match name {
            "add" | "nn.bias_add" => {
                // (conv + b) * s is conv * s + b * s
                let (sum_before, _) = before.args[side].as_op_call()?;
                let (conv, conv_name) = inner.args[0].as_op_call()?;
                let found = layer(conv, conv_name, rank)?;
                let channels = usize::try_from(found.shape[found.output]).ok()?;
                let scale = scale_of(constant, rank, found.channel, channels)?;
                let bias = floats(&inner.args[1])?;
                let Expr::Constant(bias_node) = &inner.args[1] else { return None };
                let is_channel = bias.len() == channels
                    && (name == "nn.bias_add" || scale_of(&inner.args[1], rank, found.channel, channels).is_some());
                if !is_channel || !once(&sum_before.args[0]) {
                    return None;
                }
                let scaled: Vec<f32> = bias.iter().zip(&scale).map(|(b, s)| b * s).collect();
                let weight = found.scaled(found.output, &scale)?;
                let conv = call(conv_name, [conv.args[0].clone(), weight], conv.attrs.clone())?;
                call(name, [conv, float_constant(&scaled, bias_node.data.shape())?], inner.attrs.clone())
            }
            _ => {
                let found = layer(inner, name, rank)?;
                let channels = usize::try_from(found.shape[found.output]).ok()?;
                let scale = scale_of(constant, rank, found.channel, channels)?;
                call(name, [inner.args[0].clone(), found.scaled(found.output, &scale)?], inner.attrs.clone())
            }
        }
    })
}

/// A scale in front of a layer, with a ReLU between them or not.
pub fn forward_fold_scale_axis(module: &Module) -> Result<Module, TransformError> {
    let count = uses(module);
    let once = |e: &Expr| count.get(&e.address()).copied().unwrap_or(0) <= 1;
    with_types(module, |new, old, types| {
        let (conv, name) = new.as_op_call()?;
        let (before, _) = old.as_op_call()?;
        let rank = rank_of(types, before.args.first()?)?;
        let found = layer(conv, name, rank)?;
        if conv.attrs.int("groups").unwrap_or(1) != 1 || !once(&before.args[0]) {
            return None;
        }
        let (data, data_name) = conv.args[0].as_op_call()?;
        let relu = data_name == "nn.relu";
        let (product, "multiply") = (if relu { data.args[0].as_op_call()? } else { (data, data_name) }) else {
            return None;
        };
        let Expr::Constant(_) = &product.args[1] else { return None };
        let channels = usize::try_from(found.shape[found.input]).ok()?;
        let scale = scale_of(&product.args[1], rank, found.channel, channels)?;
        // relu(x * s) is relu(x) * s for a scale that is not negative.
        if relu && scale.iter().any(|s| *s < 0.0) {
            return None;
        }
        // The scale may not be what gives the product its shape.
        let (was, _) = before.args[0].as_op_call()?;
        let product_before = if relu { &was.args[0] } else { &before.args[0] };
        let (operands, _) = product_before.as_op_call()?;
        let shape = |e: &Expr| types.of(e).and_then(|ty| ty.as_tensor().map(|t| t.shape.clone()));
        if shape(&operands.args[0])? != shape(product_before)? {
            return None;
        }
        let input = if relu {
            call("nn.relu", [product.args[0].clone()], data.attrs.clone())?
        } else {
            product.args[0].clone()
        };
        let weight = found.scaled(found.input, &scale)?;
        call(name, [input, weight], conv.attrs.clone())
    })
}
