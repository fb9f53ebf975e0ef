//! Calls as release 0.6 wrote them: scales and zero points of quantized operators were attributes, and are operands since.

use relaxide_ffi::DataType;
use relaxide_ir::{AttrValue, Attrs};

use super::AttrError;
use crate::{Expr, scalar};

/// An attribute of then that is an operand now.
struct Operand {
    name: &'static str,
    is_scale: bool,
}

const fn zero(name: &'static str) -> Operand {
    Operand { name, is_scale: false }
}

const fn scale(name: &'static str) -> Operand {
    Operand { name, is_scale: true }
}

/// The attributes of each operator, in the order of the operands that they are now.
const QUANTIZED: &[(&str, &[Operand])] = &[
    ("qnn.quantize", &[scale("output_scale"), zero("output_zero_point")]),
    ("qnn.dequantize", &[scale("input_scale"), zero("input_zero_point")]),
    (
        "qnn.requantize",
        &[scale("input_scale"), zero("input_zero_point"), scale("output_scale"), zero("output_zero_point")],
    ),
    ("qnn.conv2d", PRODUCT),
    ("qnn.dense", PRODUCT),
    ("qnn.add", BINARY),
    ("qnn.mul", BINARY),
    (
        "qnn.concatenate",
        &[scale("input_scales"), zero("input_zero_points"), scale("output_scale"), zero("output_zero_point")],
    ),
];
const PRODUCT: &[Operand] =
    &[zero("input_zero_point"), zero("kernel_zero_point"), scale("input_scale"), scale("kernel_scale")];
const BINARY: &[Operand] = &[
    scale("lhs_scale"),
    zero("lhs_zero_point"),
    scale("rhs_scale"),
    zero("rhs_zero_point"),
    scale("output_scale"),
    zero("output_zero_point"),
];

/// The names of the attributes of then that are operands of an operator now.
pub fn operands(op: &str) -> Vec<&'static str> {
    of(op).iter().map(|operand| operand.name).collect()
}

fn of(op: &str) -> &'static [Operand] {
    QUANTIZED.iter().find(|(name, _)| *name == op).map_or(&[], |(_, operands)| operands)
}

/// Moves what is an operand now from a call's attributes to its arguments. A call that names none of them is as it is now.
pub fn quantized(op: &str, args: &mut Vec<Expr>, attrs: &mut Attrs) -> Result<(), AttrError> {
    let operands = of(op);
    if !operands.iter().any(|operand| attrs.0.contains_key(operand.name)) {
        return Ok(());
    }
    for Operand { name, is_scale } in operands {
        // A product's scales play no part in its sums, and were added later.
        let value = attrs.0.shift_remove(*name).or_else(|| is_scale.then_some(AttrValue::Float(1.0)));
        let value = value.ok_or(AttrError::Missing(name))?;
        args.push(constant(name, *is_scale, &value)?);
    }
    Ok(())
}

fn constant(name: &'static str, is_scale: bool, value: &AttrValue) -> Result<Expr, AttrError> {
    let made = match value {
        AttrValue::List(list) => {
            return list.iter().map(|v| constant(name, is_scale, v)).collect::<Result<Vec<_>, _>>().map(Expr::tuple);
        }
        AttrValue::Int(v) if is_scale => scalar::float(*v as f64, DataType::float(32)),
        AttrValue::Float(v) if is_scale => scalar::float(*v, DataType::float(32)),
        AttrValue::Int(v) if i32::try_from(*v).is_ok() => scalar::int(*v, DataType::int(32)),
        _ => {
            return Err(AttrError::Kind { name, wanted: if is_scale { "a number" } else { "a number of 32 bits" } });
        }
    };
    made.map(Expr::constant).map_err(AttrError::Value)
}
