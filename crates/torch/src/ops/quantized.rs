//! Integers that stand for numbers: what PyTorch's quantization writes between operators (`quantized_decomposed`), and products of
//! integers.
//!
//! Elements are `clamp(round(x / scale) + zero)` and `(q - zero) * scale`, with the divisor as a factor, as PyTorch has it. Which scale
//! and zero point an element has, is its [`Grain`].

use relaxide_ffi::DataType;
use relaxide_frontend::Scope;
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::Table;
use crate::error::NodeError;
use crate::rule::{Cx, Outputs, Result, one};
use crate::value::{Scalar, Value};

/// The rules.
pub const TABLE: Table = &[
    ("aten._int_mm", int_mm),
    ("quantized_decomposed._choose_qparams_per_token_asymmetric_impl", choose_per_token_asymmetric),
    ("quantized_decomposed.choose_qparams", |cx| choose(cx, false)),
    ("quantized_decomposed.choose_qparams_per_token", choose_per_token),
    ("quantized_decomposed.choose_qparams_per_token_asymmetric", choose_per_token_asymmetric),
    ("quantized_decomposed.choose_qparams_symmetric", |cx| choose(cx, true)),
    ("quantized_decomposed.dequantize_per_channel", |cx| dequantize(cx, Kind::Channel)),
    ("quantized_decomposed.dequantize_per_channel_group", |cx| dequantize(cx, Kind::Group)),
    ("quantized_decomposed.dequantize_per_tensor", |cx| dequantize(cx, Kind::Tensor)),
    ("quantized_decomposed.dequantize_per_token", |cx| dequantize(cx, Kind::Token)),
    ("quantized_decomposed.quantize_per_channel", |cx| quantize(cx, Kind::Channel)),
    ("quantized_decomposed.quantize_per_channel_group", |cx| quantize(cx, Kind::Group)),
    ("quantized_decomposed.quantize_per_tensor", |cx| quantize(cx, Kind::Tensor)),
    ("quantized_decomposed.quantize_per_token", |cx| quantize(cx, Kind::Token)),
];

/// Which elements have a scale in common.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tensor,
    Channel,
    Token,
    Group,
}

/// Where the scale and zero point of an element are.
#[derive(Clone, Copy)]
enum Grain {
    /// There is one.
    Tensor,
    /// One for each place of an axis.
    Axis(usize),
    /// One for each row of the last axis.
    Row,
    /// One for so many neighbours in a row.
    Group(i64),
}

impl Grain {
    /// The parameter of an element.
    fn read(self, parameter: &te::Tensor, at: &[PrimExpr]) -> PrimExpr {
        let last = at.len().saturating_sub(1);
        let along = |place: PrimExpr| {
            let mut index = at.to_vec();
            if let Some(own) = index.last_mut() {
                *own = place;
            }
            parameter.at(&index)
        };
        match self {
            Grain::Tensor => parameter.at(&vec![prim::int(0); parameter.ndim()]),
            Grain::Axis(axis) => parameter.at(std::slice::from_ref(&at[axis])),
            Grain::Row => along(prim::int(0)),
            Grain::Group(size) => along(prim::floordiv(&at[last], prim::int(size))),
        }
    }
}

/// Elements with their scale and zero point.
struct Scaled {
    x: Expr,
    scale: Expr,
    zero: Option<Expr>,
    grain: Grain,
}

/// The first of several names that is given.
fn first<'n>(cx: &Cx<'_>, names: &[&'n str]) -> &'n str {
    names.iter().copied().find(|name| cx.get(name).is_some()).unwrap_or(names[0])
}

fn parameter(cx: &mut Cx<'_>, name: &str, dtype: DataType) -> Result<Option<Expr>> {
    Ok(match cx.scalar(name)? {
        None => None,
        Some(Scalar::Tensor(tensor)) => Some(tensor),
        Some(number) => Some(cx.operand(number, dtype)?),
    })
}

impl Scaled {
    fn of(cx: &mut Cx<'_>, kind: Kind) -> Result<Scaled> {
        let x = cx.tensor(first(cx, &["input", "w_int8"]))?;
        let (scale, zero) = (first(cx, &["scale", "scales"]), first(cx, &["zero_point", "zero_points"]));
        let scale = parameter(cx, scale, DataType::float(64))?;
        let scale = scale.ok_or_else(|| NodeError::invalid("the scale is missing"))?;
        let zero = parameter(cx, zero, DataType::int(64))?;
        let dims = cx.shape(&x)?;
        let rank = dims.len();
        let (grain, wanted) = match kind {
            Kind::Tensor => {
                let own = cx.shape(&scale)?;
                if own.iter().any(|n| !n.is_int(1)) {
                    return Err(NodeError::invalid("a scale for all elements has more than one element"));
                }
                return Ok(Scaled { x, scale, zero, grain: Grain::Tensor });
            }
            Kind::Channel => {
                let axis = cx.axis("axis", 0, rank)?;
                let length = dims.get(axis).ok_or_else(|| NodeError::invalid("the input has no axes"))?;
                (Grain::Axis(axis), vec![length.clone()])
            }
            Kind::Token | Kind::Group if rank == 0 => return Err(NodeError::invalid("the input has no axes")),
            Kind::Token => (Grain::Row, dims[..rank - 1].iter().cloned().chain([prim::int(1)]).collect()),
            Kind::Group => {
                let length = dims[rank - 1].as_int();
                let length = length.ok_or_else(|| NodeError::unsupported("groups of rows whose length is open"))?;
                let size = cx.int_or("group_size", 128)?.clamp(1, length.max(1));
                if length % size != 0 {
                    return Err(NodeError::invalid(format!("rows of {length} are not divided into groups of {size}")));
                }
                let groups = prim::int(length / size);
                (Grain::Group(size), dims[..rank - 1].iter().cloned().chain([groups]).collect::<Vec<_>>())
            }
        };
        let mut scope = Scope::new(cx.builder);
        let scale = scope.agree(scale, &wanted)?;
        let zero = zero.map(|zero| scope.agree(zero, &wanted)).transpose()?;
        Ok(Scaled { x, scale, zero, grain })
    }

    /// The type in which PyTorch computes: parameters for all elements are numbers, and give way to the input's type.
    fn wide(&self, cx: &Cx<'_>) -> DataType {
        let own = cx.dtype(&self.scale);
        let single = DataType::float(32);
        if matches!(self.grain, Grain::Tensor) || own.bits <= 32 { single } else { own }
    }

    /// A kernel that computes each element of the input, of its scale and of its zero point.
    fn compute(
        self,
        cx: &mut Cx<'_>,
        name: &str,
        element: impl Fn(PrimExpr, PrimExpr, Option<PrimExpr>) -> PrimExpr,
    ) -> Result<Expr> {
        let dims = cx.shape(&self.x)?;
        let grain = self.grain;
        let args: Vec<Expr> = [self.x, self.scale].into_iter().chain(self.zero).collect();
        cx.te(name, args, |inputs| {
            vec![te::compute(name, dims, |at: &[PrimExpr]| {
                let zero = inputs.get(2).map(|zero| grain.read(zero, at));
                element(inputs[0].at(at), grain.read(&inputs[1], at), zero)
            })]
        })
    }
}

/// A limit of the integers.
fn limit(cx: &Cx<'_>, name: &str) -> Result<f64> {
    let known = cx.int(name)?.map(|n| n as f64);
    known.ok_or_else(|| NodeError::invalid(format!("`{name}` is missing")))
}

fn quantize(cx: &mut Cx<'_>, kind: Kind) -> Outputs {
    let (low, high, dtype) = (limit(cx, "quant_min")?, limit(cx, "quant_max")?, cx.result()?.dtype);
    let scaled = Scaled::of(cx, kind)?;
    let (wide, own) = (scaled.wide(cx), cx.dtype(&scaled.scale));
    // A zero point of a channel or of all is added to the rounded number, one of a row or group before.
    let before = matches!(kind, Kind::Token | Kind::Group);
    one(scaled.compute(cx, "quantize", |x, scale, zero| {
        let factor = prim::cast(wide, prim::div(prim::constant(own, 1.0), scale));
        let round = |x| prim::math("round", x);
        let steps = prim::cast(wide, x) * factor;
        let zero = zero.map(|zero| prim::cast(wide, zero));
        let moved = match (zero, before) {
            (None, _) => round(steps),
            (Some(zero), false) => round(steps) + zero,
            (Some(zero), true) => round(steps + zero),
        };
        let moved = prim::max(moved, prim::constant(wide, low));
        prim::cast(dtype, prim::min(moved, prim::constant(wide, high)))
    })?)
}

fn dequantize(cx: &mut Cx<'_>, kind: Kind) -> Outputs {
    let dtype = cx.result()?.dtype;
    let scaled = Scaled::of(cx, kind)?;
    let wide = scaled.wide(cx);
    one(scaled.compute(cx, "dequantize", |x, scale, zero| {
        let steps = prim::cast(wide, x);
        let steps = match zero {
            Some(zero) => steps - prim::cast(wide, zero),
            None => steps,
        };
        prim::cast(dtype, steps * prim::cast(wide, scale))
    })?)
}

/// Scale and zero point of one element each, of all numbers of a tensor.
fn choose(cx: &mut Cx<'_>, symmetric: bool) -> Outputs {
    let x = cx.tensor("input")?;
    let (low, high, eps) = (limit(cx, "quant_min")?, limit(cx, "quant_max")?, cx.float_or("eps", 0.0)?);
    let single = DataType::float(32);
    let zero_of_bytes = cx.dtype_arg("dtype")? == Some(DataType::uint(8));
    let least = cx.op("min", [x.clone()], Attrs::new())?;
    let most = cx.op("max", [x], Attrs::new())?;
    let number = |value: f64| prim::constant(single, value);
    let (one_each, wide) = ([prim::int(1)], DataType::int(64));
    let both = cx.te("choose_qparams", vec![least, most], |inputs| {
        let ends = || {
            let least = prim::min(prim::cast(single, inputs[0].at(&[])), number(0.0));
            (least, prim::max(prim::cast(single, inputs[1].at(&[])), number(0.0)))
        };
        let scale = || {
            let (least, most) = ends();
            let width = if symmetric {
                prim::div(prim::max(number(0.0) - least, most), number((high - low) / 2.0))
            } else {
                prim::div(most - least, number(high - low))
            };
            prim::max(width, number(eps))
        };
        let scales = te::compute("scale", one_each.to_vec(), |_| prim::cast(DataType::float(64), scale()));
        let zeros = te::compute("zero", one_each.to_vec(), |_| {
            if symmetric {
                return prim::int_of(wide, if zero_of_bytes { 128 } else { 0 });
            }
            let zero = number(low) - prim::math("round", prim::div(ends().0, scale()));
            prim::cast(wide, prim::min(prim::max(zero, number(low)), number(high)))
        });
        vec![scales, zeros]
    })?;
    Ok(vec![Value::Tensor(cx.field(&both, 0)?), Value::Tensor(cx.field(&both, 1)?)])
}

/// The least and the greatest of each row, as columns.
fn ends_of_rows(cx: &mut Cx<'_>, x: Expr) -> Result<(Expr, Expr)> {
    let rows = || Attrs::new().with("axis", vec![-1i64]).with("keepdims", true);
    Ok((cx.op("min", [x.clone()], rows())?, cx.op("max", [x], rows())?))
}

fn choose_per_token(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("input")?;
    let most = match cx.dtype_arg("dtype")? {
        Some(dtype) if dtype == DataType::int(8) => 127.0,
        _ => return Err(NodeError::unsupported("integers other than int8")),
    };
    let absolute = cx.call("abs", [x])?;
    let (_, scale) = ends_of_rows(cx, absolute)?;
    let single = DataType::float(32);
    let dims = cx.shape(&scale)?;
    let dtype = cx.result()?.dtype;
    let scale = cx.te("scale", vec![scale], |inputs| {
        vec![te::compute("scale", &dims, |at| {
            let own = prim::max(prim::cast(single, inputs[0].at(at)), prim::constant(single, 1e-5));
            prim::cast(dtype, prim::div(own, prim::constant(single, most)))
        })]
    })?;
    let zero = cx.op("zeros", [Expr::shape(dims)], Attrs::new().with("dtype", dtype))?;
    Ok(vec![Value::Tensor(scale), Value::Tensor(zero)])
}

fn choose_per_token_asymmetric(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("input")?;
    let (least, most) = ends_of_rows(cx, x)?;
    let dims = cx.shape(&least)?;
    let single = DataType::float(32);
    let number = |value: f64| prim::constant(single, value);
    let (low, high) = (-128.0, 127.0);
    let both = cx.te("choose_qparams", vec![least, most], |inputs| {
        let ends = |at: &[PrimExpr]| {
            let least = prim::min(prim::cast(single, inputs[0].at(at)), number(0.0));
            (least, prim::max(prim::cast(single, inputs[1].at(at)), number(0.0)))
        };
        let scale = |at: &[PrimExpr]| {
            let (least, most) = ends(at);
            prim::max(prim::div(most - least, number(high - low)), number(f64::from(f32::EPSILON)))
        };
        let scales = te::compute("scale", &dims, |at| prim::cast(DataType::float(64), scale(at)));
        let zeros = te::compute("zero", &dims, |at| {
            let (least, most) = ends(at);
            let (below, above) = (prim::div(least, scale(at)), prim::div(most, scale(at)));
            let off = (number(low) + below.clone()) + (number(high) + above.clone());
            let zero = prim::select(prim::gt(off, number(0.0)), number(low) - below, number(high) - above);
            let zero = prim::min(prim::max(zero, number(low)), number(high));
            prim::cast(DataType::int(64), prim::math("round", zero))
        });
        vec![scales, zeros]
    })?;
    Ok(vec![Value::Tensor(cx.field(&both, 0)?), Value::Tensor(cx.field(&both, 1)?)])
}

/// A product of matrices of bytes, in int32.
fn int_mm(cx: &mut Cx<'_>) -> Outputs {
    let (a, b) = (cx.tensor("self")?, cx.tensor("mat2")?);
    one(super::linear::matmul(cx, a, b)?)
}
