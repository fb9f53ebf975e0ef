//! Conversions between element types.

use relaxide_ffi::{DataType, SmallFloat, Special};
use relaxide_ir::Attrs;
use relaxide_ir::prim;
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::elementwise::with_number;
use super::{Outputs, one};
use crate::constant;
use crate::error::NodeError;
use crate::node::Node;
use crate::scope::Scope;

/// The name of an element type, as operators of version 1 have it, as its number.
fn element_number(name: &str) -> Option<i64> {
    const NAMES: [&str; 16] = [
        "FLOAT",
        "UINT8",
        "INT8",
        "UINT16",
        "INT16",
        "INT32",
        "INT64",
        "STRING",
        "BOOL",
        "FLOAT16",
        "DOUBLE",
        "UINT32",
        "UINT64",
        "COMPLEX64",
        "COMPLEX128",
        "BFLOAT16",
    ];
    NAMES.iter().position(|n| *n == name).map(|i| i as i64 + 1)
}

/// `Cast` before opset 6: the type is text.
pub fn cast_by_name(scope: &mut Scope, node: &Node) -> Outputs {
    let name = node.str_or("to", "")?;
    let number = element_number(name).ok_or_else(|| NodeError::invalid(format!("`to` is \"{name}\"")))?;
    let x = scope.tensor(node.input(0)?)?;
    let dtype = constant::dtype_of(number).map_err(|e| NodeError::unsupported(e.to_string()))?;
    one(convert(scope, x, dtype)?)
}

/// `Cast`.
pub fn cast(scope: &mut Scope, node: &Node) -> Outputs {
    let to = node.int("to")?.ok_or_else(|| NodeError::invalid("attribute `to` is missing"))?;
    let dtype = constant::dtype_of(to).map_err(|e| NodeError::unsupported(e.to_string()))?;
    let x = scope.tensor(node.input(0)?)?;
    one(converted(scope, node, x, dtype)?)
}

/// `CastLike`: the element type is the second input's.
pub fn cast_like(scope: &mut Scope, node: &Node) -> Outputs {
    let (x, like) = (scope.tensor(node.input(0)?)?, scope.tensor(node.input(1)?)?);
    let dtype = scope.dtype(&like);
    one(converted(scope, node, x, dtype)?)
}

/// `BitCast`: the same bits under another type of the same width.
pub fn bit_cast(scope: &mut Scope, node: &Node) -> Outputs {
    let to = node.int("to")?.ok_or_else(|| NodeError::invalid("attribute `to` is missing"))?;
    let dtype = constant::dtype_of(to).map_err(|e| NodeError::unsupported(e.to_string()))?;
    let x = scope.tensor(node.input(0)?)?;
    let from = scope.dtype(&x);
    if from.bits != dtype.bits {
        return Err(NodeError::invalid(format!("{from} and {dtype} are of different widths")));
    }
    if from == dtype {
        return one(x);
    }
    if from.is_bool() || dtype.is_bool() {
        // A bool is a byte of 0 or 1.
        return one(convert(scope, x, dtype)?);
    }
    let dims = scope.dims(&x)?;
    one(scope.te("bit_cast", vec![x], |inputs| {
        vec![te::compute("bits", &dims, |at| prim::call(dtype, "tirx.reinterpret", vec![inputs[0].at(at)]))]
    })?)
}

/// Conversion with what the node says of values that do not fit.
fn converted(scope: &mut Scope, node: &Node, mut x: Expr, dtype: DataType) -> Result<Expr, NodeError> {
    let saturates = node.flag("saturate", true)?;
    if let Some(family) = SmallFloat::of(dtype) {
        if matches!(family.special, Special::PowersOfTwo) {
            return power_of_two(scope, x, dtype, node.str_or("round_mode", "up")?, saturates);
        }
        if saturates {
            x = saturate(scope, x, family)?;
        }
    }
    convert(scope, x, dtype)
}

/// Conversion to a float that has an exponent only: rounded up, down or to the nearest; what does not fit becomes the
/// smallest or the largest power if it `saturates`, else NaN.
fn power_of_two(scope: &mut Scope, x: Expr, dtype: DataType, round: &str, saturates: bool) -> Result<Expr, NodeError> {
    if !matches!(round, "up" | "down" | "nearest") {
        return Err(NodeError::invalid(format!("`round_mode` is \"{round}\"")));
    }
    let x = scope.cast(x, DataType::float(32))?;
    let dims = scope.dims(&x)?;
    let word = DataType::int(32);
    scope.te("power_of_two", vec![x], |inputs| {
        vec![te::compute("power", &dims, |at| {
            let bits = prim::call(word, "tirx.reinterpret", vec![inputs[0].at(at)]);
            let constant = |v: i64| prim::int_of(word, v);
            // The sign is dropped: there are no negative powers.
            let size = prim::call(word, "tirx.bitwise_and", vec![bits, constant(0x7fff_ffff)]);
            let exponent = prim::call(word, "tirx.shift_right", vec![size.clone(), constant(23)]);
            let fraction = prim::call(word, "tirx.bitwise_and", vec![size.clone(), constant(0x7f_ffff)]);
            let more = match round {
                "up" => prim::gt(&fraction, constant(0)),
                "down" => prim::boolean(false),
                _ => prim::ge(&fraction, constant(0x40_0000)),
            };
            let rounded = &exponent + prim::cast(word, more);
            let special = prim::eq(&exponent, constant(255));
            let nan = prim::and(special.clone(), prim::gt(&fraction, constant(0)));
            let code = if saturates {
                prim::select(nan, constant(255), prim::min(rounded, constant(254)))
            } else {
                let zero = prim::eq(&size, constant(0));
                prim::select(prim::or(special, zero), constant(255), rounded)
            };
            prim::call(dtype, "tirx.reinterpret", vec![prim::cast(DataType::uint(8), code)])
        })]
    })
}

/// What is too large for a family becomes its largest number, where it would become infinity or NaN; NaN stays.
fn saturate(scope: &mut Scope, mut x: Expr, family: SmallFloat) -> Result<Expr, NodeError> {
    if matches!(family.special, Special::Finite | Special::PowersOfTwo) {
        return Ok(x);
    }
    if !scope.dtype(&x).is_float() {
        x = scope.cast(x, DataType::float(32))?;
    }
    let largest = family.decode(family.largest() as u8);
    // Of a number and NaN, the second is the result.
    for (name, bound) in [("minimum", largest), ("maximum", -largest)] {
        let bound = scope.scalar(bound, scope.dtype(&x))?;
        x = scope.call(name, [bound, x])?;
    }
    Ok(x)
}

/// Conversion. To bool it asks whether an element differs from zero; integers of less than a byte wrap.
pub fn convert(scope: &mut Scope, x: Expr, dtype: DataType) -> Result<Expr, NodeError> {
    let from = scope.dtype(&x);
    if dtype.is_bool() && !from.is_bool() {
        return with_number(scope, "not_equal", x, 0.0);
    }
    if from.is_float() && dtype.is_packed() && !dtype.is_float() {
        let whole = scope.op("astype", [x], Attrs::new().with("dtype", DataType::int(32)))?;
        return scope.cast(whole, dtype);
    }
    scope.cast(x, dtype)
}
