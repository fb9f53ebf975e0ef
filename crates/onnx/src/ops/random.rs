//! Random numbers, and dropout in training.
//!
//! A number follows from the seed and from its place: a counter is mixed (the finalizer of SplitMix64) and its upper bits
//! become a fraction. So a program gives the same numbers in every run, whatever the number of threads; a node without a
//! seed gets one from its name.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::elementwise::with_number;
use super::{Outputs, one};
use crate::constant;
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

const WORD: DataType = DataType::uint(64);

/// The type that fractions are made in.
const FRACTION: DataType = DataType::float(32);

fn word(value: u64) -> PrimExpr {
    prim::int_of(WORD, value as i64)
}

/// The bits of a counter, mixed.
fn mixed(counter: PrimExpr) -> PrimExpr {
    let shifted = |x: &PrimExpr, n: u64| {
        let right = prim::call(WORD, "tirx.shift_right", vec![x.clone(), word(n)]);
        prim::call(WORD, "tirx.bitwise_xor", vec![x.clone(), right])
    };
    let x = counter * word(0x9e37_79b9_7f4a_7c15);
    let x = shifted(&x, 30) * word(0xbf58_476d_1ce4_e5b9);
    let x = shifted(&x, 27) * word(0x94d0_49bb_1331_11eb);
    shifted(&x, 31)
}

/// The seed of a node: its attribute, or what its name gives.
fn seed(node: &Node) -> Result<u64> {
    // It is an integer for `Dropout`, a float for the others.
    if let Ok(Some(seed)) = node.int("seed") {
        return Ok((seed as u64) << 20);
    }
    if let Some(seed) = node.float("seed")? {
        return Ok(u64::from((seed as f32).to_bits()) << 20);
    }
    let name = node.proto.output.first().map(String::as_str).unwrap_or_default();
    Ok(name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, b| (hash ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)))
}

/// Numbers from 0 up to 1, without 1, in float32. Different `stream`s are independent.
fn uniform(scope: &mut Scope, dims: &[PrimExpr], seed: u64, stream: u64) -> Result<Expr> {
    scope.te("uniform", vec![], |_| {
        vec![te::compute("uniform", dims, |at| {
            let flat = at.iter().zip(dims).fold(prim::int(0), |n, (i, d)| n * d + i);
            let start = seed.wrapping_add(stream.wrapping_mul(0x2545_f491_4f6c_dd1d)).wrapping_add(1);
            let bits = mixed(prim::cast(WORD, flat) + word(start));
            let upper = prim::call(WORD, "tirx.shift_right", vec![bits, word(40)]);
            prim::cast(FRACTION, prim::cast(DataType::int(32), upper)) * prim::float_of(FRACTION, 1.0 / 16_777_216.0)
        })]
    })
}

/// Numbers of the normal distribution with mean 0 and deviation 1, by the transform of Box and Muller.
fn normal(scope: &mut Scope, dims: &[PrimExpr], seed: u64) -> Result<Expr> {
    let (radius, turn) = (uniform(scope, dims, seed, 0)?, uniform(scope, dims, seed, 1)?);
    // 1 - u is never zero.
    let flipped = with_number(scope, "multiply", radius, -1.0)?;
    let positive = with_number(scope, "add", flipped, 1.0)?;
    let log = scope.call("log", [positive])?;
    let doubled = with_number(scope, "multiply", log, -2.0)?;
    let length = scope.call("sqrt", [doubled])?;
    let angle = with_number(scope, "multiply", turn, std::f64::consts::TAU)?;
    let cosine = scope.call("cos", [angle])?;
    scope.call("multiply", [length, cosine])
}

/// The shape of the result: an attribute, or that of the input.
fn shape(scope: &mut Scope, node: &Node) -> Result<Vec<PrimExpr>> {
    match node.ints("shape")? {
        Some(shape) if shape.iter().all(|d| *d >= 0) => Ok(shape.into_iter().map(prim::int).collect()),
        Some(shape) => Err(NodeError::invalid(format!("`shape` is {shape:?}"))),
        None => scope.value_dims(node.input(0)?),
    }
}

/// The element type of the result: an attribute, that of the input, or float32.
fn dtype(scope: &mut Scope, node: &Node) -> Result<DataType> {
    match (node.int("dtype")?, node.optional(0)) {
        (Some(number), _) => constant::dtype_of(number).map_err(|e| NodeError::unsupported(e.to_string())),
        (None, Some(value)) => {
            let x = scope.tensor(value)?;
            Ok(scope.dtype(&x))
        }
        (None, None) => Ok(DataType::float(32)),
    }
}

/// `RandomUniform` and `RandomUniformLike`.
pub fn random_uniform(scope: &mut Scope, node: &Node) -> Outputs {
    let (low, high) = (node.float_or("low", 0.0)?, node.float_or("high", 1.0)?);
    let dims = shape(scope, node)?;
    let numbers = uniform(scope, &dims, seed(node)?, 0)?;
    let scaled = with_number(scope, "multiply", numbers, high - low)?;
    let moved = with_number(scope, "add", scaled, low)?;
    let dtype = dtype(scope, node)?;
    one(scope.cast(moved, dtype)?)
}

/// `RandomNormal` and `RandomNormalLike`.
pub fn random_normal(scope: &mut Scope, node: &Node) -> Outputs {
    let (mean, scale) = (node.float_or("mean", 0.0)?, node.float_or("scale", 1.0)?);
    let dims = shape(scope, node)?;
    let numbers = normal(scope, &dims, seed(node)?)?;
    let scaled = with_number(scope, "multiply", numbers, scale)?;
    let moved = with_number(scope, "add", scaled, mean)?;
    let dtype = dtype(scope, node)?;
    one(scope.cast(moved, dtype)?)
}

/// `Bernoulli`: 1 with the probability that the input gives.
pub fn bernoulli(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let dims = scope.dims(&x)?;
    let numbers = uniform(scope, &dims, seed(node)?, 0)?;
    let chance = scope.cast(x, FRACTION)?;
    let drawn = scope.call("less", [numbers, chance])?;
    let dtype = dtype(scope, node)?;
    one(scope.cast(drawn, dtype)?)
}

/// `Multinomial`: classes drawn from rows of logarithms of probabilities.
pub fn multinomial(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let rows = match &scope.dims(&x)?[..] {
        [rows, _] => rows.clone(),
        other => return Err(NodeError::invalid(format!("the input has {} axes, not 2", other.len()))),
    };
    let count = node.int("sample_size")?.unwrap_or(1);
    if !(1..=1 << 24).contains(&count) {
        return Err(NodeError::invalid(format!("`sample_size` is {count}")));
    }
    let dtype = match node.int("dtype")? {
        Some(number) => constant::dtype_of(number).map_err(|e| NodeError::unsupported(e.to_string()))?,
        None => DataType::int(32),
    };
    let x = scope.cast(x, FRACTION)?;
    let classes = scope.dims(&x)?[1].clone();
    let shares = scope.op("nn.softmax", [x], Attrs::new().with("axis", -1i64))?;
    let running = scope.op("cumsum", [shares], Attrs::new().with("axis", 1i64))?;
    let dims = [rows, prim::int(count)];
    let numbers = uniform(scope, &dims, seed(node)?, 0)?;
    // As many classes lie below a number as there are running sums that are not larger; rounding must not lead past the last.
    let drawn = scope.te("multinomial", vec![running, numbers], |inputs| {
        let below = te::compute("below", &dims, |at| {
            let k = te::reduce_axis(classes.clone());
            let passed = prim::le(inputs[0].at(&[at[0].clone(), k.var()]), inputs[1].at(at));
            te::sum(prim::cast(DataType::int(64), passed), [&k])
        });
        vec![te::compute("drawn", &dims, |at| prim::min(below.at(at), &classes - 1))]
    })?;
    one(scope.cast(drawn, dtype)?)
}

/// `Dropout`: the input at inference. In training, which the program may decide, elements are dropped and the rest grows.
pub fn dropout(scope: &mut Scope, node: &Node) -> Outputs {
    let value = node.input(0)?;
    let training = match node.optional(2) {
        None => None,
        Some(flag) => match flag.symbolic().and_then(|s| s.literals()).as_deref() {
            Some([0]) => None,
            _ => Some(scope.tensor(flag)?),
        },
    };
    let truth = DataType::bool();
    let Some(training) = training else {
        let mut outputs = vec![value.clone()];
        if node.outputs() > 1 {
            let x = scope.tensor(value)?;
            let dims = scope.dims(&x)?;
            // The mask had the input's element type up to opset 9.
            let dtype = if node.opset < 10 { scope.dtype(&x) } else { truth };
            let unit = scope.scalar(1.0, dtype)?;
            let mask = scope.op("full", [Expr::shape(dims), unit], Attrs::new().with("dtype", dtype))?;
            outputs.push(Value::Computed(mask));
        }
        return Ok(outputs);
    };
    let x = scope.tensor(value)?;
    let (dims, own) = (scope.dims(&x)?, scope.dtype(&x));
    let ratio = match node.optional(1) {
        Some(ratio) => scope.tensor(ratio)?,
        None => scope.scalar(0.5, FRACTION)?,
    };
    let ratio = scope.cast(ratio, FRACTION)?;
    let ratio = scope.reshape(ratio, Vec::new())?;
    let training = scope.reshape(training, Vec::new())?;
    let numbers = uniform(scope, &dims, seed(node)?, 0)?;
    let kept = scope.call("greater_equal", [numbers, ratio.clone()])?;
    let idle = scope.call("logical_not", [training.clone()])?;
    let kept = scope.call("logical_or", [kept, idle])?;
    let share = with_number(scope, "multiply", ratio, -1.0)?;
    let share = with_number(scope, "add", share, 1.0)?;
    let unit = scope.scalar(1.0, FRACTION)?;
    let share = scope.call("where", [training, share, unit])?;
    let share = scope.cast(share, own)?;
    let grown = scope.call("divide", [x, share])?;
    let zero = scope.scalar(0.0, own)?;
    let y = scope.call("where", [kept.clone(), grown, zero])?;
    Ok(vec![Value::Computed(y), Value::Computed(kept)])
}
