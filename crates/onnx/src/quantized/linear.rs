//! `QuantizeLinear`, `DequantizeLinear` and `DynamicQuantizeLinear`.
//!
//! Scales and zero points are one number, one for each place of an axis, or one for each block of such places.

use relaxide_ffi::{DataType, SmallFloat};
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use crate::constant;
use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::ops::elementwise::with_number;
use crate::ops::{Outputs, one};
use crate::scope::Scope;
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

/// What a step of integers is worth, and which of them stands for zero.
pub struct Scaling {
    /// One number, or several.
    pub scale: Expr,
    /// As many; zero where there is none.
    pub zero: Option<Expr>,
}

/// Which elements have a scale in common, where there are several.
#[derive(Clone, Copy, Default)]
pub struct Sharing {
    /// The axis whose places differ.
    pub axis: i64,
    /// Neighbouring places of it that have one; 0 where each has its own.
    pub block: i64,
}

impl Sharing {
    fn of(node: &Node) -> Result<Sharing> {
        Ok(Sharing { axis: node.int_or("axis", 1)?, block: node.int_or("block_size", 0)? })
    }
}

/// Where the scale and zero point of an element are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grain {
    /// There is one.
    Tensor,
    /// One for each place of an axis.
    Axis(usize),
    /// One for so many places of an axis.
    Block(usize, i64),
}

impl Grain {
    /// How a parameter is laid out beside a tensor.
    fn of(scope: &Scope, x: &Expr, parameter: &Expr, axis: i64, block: i64) -> Result<Grain> {
        let (x, p) = (scope.dims(x)?, scope.dims(parameter)?);
        if p.iter().all(|d| d.is_int(1)) && p.len() <= 1 {
            return Ok(Grain::Tensor);
        }
        let at = dims::axis(axis, x.len());
        let at = at.ok_or_else(|| NodeError::invalid(format!("axis {axis} is not one of {} axes", x.len())))?;
        match (p.len(), block) {
            (1, _) => Ok(Grain::Axis(at)),
            (n, 1..) if n == x.len() => Ok(Grain::Block(at, block)),
            (n, _) => Err(NodeError::invalid(format!("the scale has {n} axes, the input {}", x.len()))),
        }
    }

    /// The parameter of an element.
    fn read(self, parameter: &te::Tensor, at: &[PrimExpr]) -> PrimExpr {
        match self {
            Grain::Tensor => parameter.at(&vec![prim::int(0); parameter.ndim()]),
            Grain::Axis(axis) => parameter.at(std::slice::from_ref(&at[axis])),
            Grain::Block(axis, size) => {
                let mut place = at.to_vec();
                place[axis] = prim::floordiv(&at[axis], prim::int(size));
                parameter.at(&place)
            }
        }
    }
}

/// The least and the largest number of an integer type.
fn range(dtype: DataType) -> (f64, f64) {
    let bits = i32::from(dtype.bits);
    if dtype.is_uint() { (0.0, 2f64.powi(bits) - 1.0) } else { (-(2f64.powi(bits - 1)), 2f64.powi(bits - 1) - 1.0) }
}

/// A tensor with its scale and zero point, as kernels read them element by element.
struct Quantized {
    args: Vec<Expr>,
    dims: Vec<PrimExpr>,
    grain: Grain,
}

impl Quantized {
    fn new(
        scope: &mut Scope,
        x: Expr,
        Scaling { mut scale, mut zero }: Scaling,
        Sharing { axis, block }: Sharing,
    ) -> Result<Quantized> {
        let grain = Grain::of(scope, &x, &scale, axis, block)?;
        let dims = scope.dims(&x)?;
        // As many parameters as there are channels, or blocks, and as many zero points as scales.
        match grain {
            Grain::Tensor => {}
            Grain::Axis(at) => scale = scope.agree(scale, std::slice::from_ref(&dims[at]))?,
            Grain::Block(at, size) => {
                let mut wanted = dims.clone();
                wanted[at] = dims::simplify(&prim::floordiv(&dims[at] + (size - 1), size));
                scale = scope.agree(scale, &wanted)?;
            }
        }
        if let (Some(own), false) = (&zero, matches!(grain, Grain::Tensor)) {
            let wanted = scope.dims(&scale)?;
            zero = Some(scope.agree(own.clone(), &wanted)?);
        }
        Ok(Quantized { args: [x, scale].into_iter().chain(zero).collect(), dims, grain })
    }

    /// A kernel that computes each element from the input's, its scale and its zero point.
    fn compute(
        self,
        scope: &mut Scope,
        name: &str,
        element: impl Fn(PrimExpr, PrimExpr, Option<PrimExpr>) -> PrimExpr,
    ) -> Result<Expr> {
        let Quantized { args, dims, grain } = self;
        scope.te(name, args, |inputs| {
            let (x, scale, zero) = (inputs[0].clone(), inputs[1].clone(), inputs.get(2).cloned());
            vec![te::compute(name, dims, |at: &[PrimExpr]| {
                element(x.at(at), grain.read(&scale, at), zero.as_ref().map(|zero| grain.read(zero, at)))
            })]
        })
    }
}

/// The type that numbers of a type are computed in.
fn widened(dtype: DataType) -> DataType {
    if dtype.bits < 32 { DataType::float(32) } else { dtype }
}

/// What becomes of a quotient that is no number, of which ONNX says nothing. ONNX Runtime's operators differ in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoNumber {
    /// The least integer.
    Least,
    /// What its conversion gives.
    Converted,
}

/// Numbers as integers (or small floats): `saturate(round(x / scale) + zero)`.
pub fn quantize_to(scope: &mut Scope, x: Expr, scaling: Scaling, dtype: DataType, sharing: Sharing) -> Result<Expr> {
    quantized(scope, x, scaling, dtype, NoNumber::Converted, sharing)
}

fn quantized(
    scope: &mut Scope,
    x: Expr,
    scaling: Scaling,
    dtype: DataType,
    no_number: NoNumber,
    sharing: Sharing,
) -> Result<Expr> {
    let wide = widened(scope.dtype(&scaling.scale));
    let small = SmallFloat::of(dtype);
    let (low, high) = range(dtype);
    let number = |v: f64| prim::constant(wide, v);
    Quantized::new(scope, x, scaling, sharing)?.compute(scope, "quantize", |x, scale, zero| {
        let steps = prim::div(prim::cast(wide, x), prim::cast(wide, scale));
        if let Some(family) = small {
            let largest = family.decode(family.largest() as u8);
            return prim::cast(dtype, prim::min(prim::max(steps, number(-largest)), number(largest)));
        }
        let steps = prim::math("round", steps);
        let moved = match zero {
            Some(zero) => steps + prim::cast(wide, zero),
            None => steps,
        };
        let above = match no_number {
            NoNumber::Least => prim::select(prim::gt(&moved, number(low)), moved, number(low)),
            NoNumber::Converted => prim::max(moved, number(low)),
        };
        prim::cast(dtype, prim::min(above, number(high)))
    })
}

/// Integers as numbers: `(x - zero) * scale`.
pub fn dequantize_to(scope: &mut Scope, x: Expr, scaling: Scaling, dtype: DataType, sharing: Sharing) -> Result<Expr> {
    let whole = scope.dtype(&x).is_integer();
    let (wide, int) = (widened(dtype), DataType::int(32));
    Quantized::new(scope, x, scaling, sharing)?.compute(scope, "dequantize", |x, scale, zero| {
        let steps = match zero {
            Some(zero) if whole => prim::cast(wide, prim::cast(int, x) - prim::cast(int, zero)),
            Some(zero) => prim::cast(wide, x) - prim::cast(wide, zero),
            None => prim::cast(wide, x),
        };
        prim::cast(dtype, steps * prim::cast(wide, scale))
    })
}

/// Whether a value is known to be zero everywhere.
fn is_zero(value: &Value) -> bool {
    value.constant().and_then(|t| constant::floats(t).ok()).is_some_and(|v| v.iter().all(|v| *v == 0.0))
}

/// A zero point, unless it is left out or zero.
pub fn zero_point(scope: &mut Scope, node: &Node, i: usize) -> Result<Option<Expr>> {
    match node.optional(i) {
        Some(value) if !is_zero(value) => scope.tensor(value).map(Some),
        _ => Ok(None),
    }
}

/// Inputs `i` to `i + 2` as a scale and a zero point.
pub fn scaling(scope: &mut Scope, node: &Node, i: usize) -> Result<Scaling> {
    Ok(Scaling { scale: scope.tensor(node.input(i)?)?, zero: zero_point(scope, node, i + 1)? })
}

/// Element type of an input that may be left out.
pub fn dtype_of(scope: &mut Scope, node: &Node, i: usize) -> Result<Option<DataType>> {
    match node.optional(i) {
        Some(value) => scope.tensor(value).map(|tensor| Some(scope.dtype(&tensor))),
        None => Ok(None),
    }
}

/// `QuantizeLinear`.
pub fn quantize(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let given = match node.int("output_dtype")?.filter(|d| *d != 0) {
        Some(to) => Some(constant::dtype_of(to).map_err(|e| NodeError::unsupported(e.to_string()))?),
        None => None,
    };
    let dtype = given.or(dtype_of(scope, node, 2)?).unwrap_or(DataType::uint(8));
    let scaling = scaling(scope, node, 1)?;
    one(quantized(scope, x, scaling, dtype, NoNumber::Least, Sharing::of(node)?)?)
}

/// `DequantizeLinear`.
pub fn dequantize(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let scaling = scaling(scope, node, 1)?;
    let dtype = match node.int("output_dtype")?.filter(|d| *d != 0) {
        Some(to) => constant::dtype_of(to).map_err(|e| NodeError::unsupported(e.to_string()))?,
        None => scope.dtype(&scaling.scale),
    };
    one(dequantize_to(scope, x, scaling, dtype, Sharing::of(node)?)?)
}

/// `DynamicQuantizeLinear`: integers of 8 bits, with the scale and zero point that the numbers need.
pub fn dynamic(scope: &mut Scope, node: &Node) -> Outputs {
    let x = scope.tensor(node.input(0)?)?;
    let (y, scale, zero) = dynamic_of(scope, x)?;
    Ok(vec![Value::Computed(y), Value::Computed(scale), Value::Computed(zero)])
}

/// The numbers as integers, their scale and zero point.
pub fn dynamic_of(scope: &mut Scope, x: Expr) -> Result<(Expr, Expr, Expr)> {
    let all = Attrs::new();
    let low = scope.op("min", [x.clone()], all.clone())?;
    let low = with_number(scope, "minimum", low, 0.0)?;
    let high = scope.op("max", [x.clone()], all)?;
    let high = with_number(scope, "maximum", high, 0.0)?;
    let width = scope.call("subtract", [high, low.clone()])?;
    let scale = with_number(scope, "divide", width, 255.0)?;
    // Where all numbers are zero, any scale does.
    let flat = with_number(scope, "equal", scale.clone(), 0.0)?;
    let unit = scope.scalar(1.0, scope.dtype(&scale))?;
    let scale = scope.call("where", [flat, unit, scale])?;
    let zero = scope.call("divide", [low, scale.clone()])?;
    let zero = scope.call("negative", [zero])?;
    let zero = scope.call("round", [zero])?;
    let zero = crate::ops::elementwise::clip_between(scope, zero, Some(0.0), Some(255.0))?;
    let zero = scope.cast(zero, DataType::uint(8))?;
    let scaling = Scaling { scale: scale.clone(), zero: Some(zero.clone()) };
    let y = quantize_to(scope, x, scaling, DataType::uint(8), Sharing::default())?;
    Ok((y, scale, zero))
}
