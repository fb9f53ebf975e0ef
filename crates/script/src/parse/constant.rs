//! Constants in Relax programs: numbers, nested lists of them, and tensors of the surroundings.

use relaxide_ffi::{DataType, Tensor};
use relaxide_relax::Expr as Relax;
use relaxide_relax::constant::{as_floats, as_ints};
use ruff_text_size::{Ranged, TextRange};

use super::args::Args;
use super::module::constant_value;
use super::value::Value;
use super::{Parsed, Parser};
use crate::tensor::{self, Scalar};
use relaxide_ir::diagnostic::Code;

impl Parser<'_> {
    /// `R.const(value, dtype)`: a number or nested lists of them.
    pub(super) fn const_call(&mut self, args: &mut Args) -> Parsed<Value> {
        let e = args.required(self, "value")?;
        let value = self.expr(e)?;
        if let Value::Relax(Relax::Constant(tensor)) = &value {
            return self.converted_constant(&tensor.value, args, e.range());
        }
        let (mut scalars, mut shape) = (Vec::new(), Vec::new());
        if !flatten(&value, 0, &mut shape, &mut scalars) {
            return Err(self.error(Code::Type, "a number or lists of numbers of one length are expected", e.range()));
        }
        let dtype = match args.take("dtype") {
            Some(dtype) => self.dtype(dtype)?,
            None => match scalars.first() {
                Some(Scalar::Bool(_)) => DataType::bool(),
                Some(Scalar::Int(_)) => DataType::int(32),
                _ => DataType::float(32),
            },
        };
        match tensor::from_scalars(&scalars, &shape, dtype) {
            Some(Ok(tensor)) => Ok(constant_value(tensor)),
            Some(Err(problem)) => Err(self.error(Code::Type, problem.to_string(), e.range())),
            None => Err(self.error(Code::Type, format!("there are no constants of type {dtype} in text"), e.range())),
        }
    }

    /// A tensor of the surroundings, with the type that is asked for.
    fn converted_constant(&mut self, tensor: &Tensor, args: &mut Args, range: TextRange) -> Parsed<Value> {
        let dtype = match args.take("dtype") {
            Some(dtype) => self.dtype(dtype)?,
            None => tensor.dtype(),
        };
        if dtype.is_void() || dtype == tensor.dtype() {
            return Ok(constant_value(tensor.clone()));
        }
        let ints = as_ints(tensor).map(|values| values.into_iter().map(|v| Scalar::Int(v.into())).collect::<Vec<_>>());
        let floats = || Some(as_floats(tensor)?.into_iter().map(Scalar::Float).collect());
        match ints.or_else(floats).and_then(|values| tensor::from_scalars(&values, tensor.shape(), dtype)) {
            Some(Ok(tensor)) => Ok(constant_value(tensor)),
            Some(Err(problem)) => Err(self.error(Code::Type, problem.to_string(), range)),
            None => {
                let message = format!("there is no constant of type {dtype} from one of {} in text", tensor.dtype());
                Err(self.error(Code::Type, message, range))
            }
        }
    }

    /// A Python number as a 0-d constant.
    pub(super) fn number_constant(&self, value: &Value, dtype: DataType, range: TextRange) -> Parsed<Relax> {
        let scalar = value.as_scalar();
        match scalar.and_then(|s| tensor::from_scalars(&[s], &[], dtype)) {
            Some(Ok(tensor)) => Ok(Relax::constant(tensor)),
            _ => Err(self.error(Code::Type, format!("{} does not go with {dtype}", value.describe()), range)),
        }
    }
}

/// What is no number in Python's notation is written as text.
fn special_number(value: &Value) -> Option<Scalar> {
    let Value::Str(text) = value else { return None };
    let special = ["inf", "-inf", "nan"].contains(&text.as_str());
    special.then(|| text.parse().ok().map(Scalar::Float))?
}

/// Nested lists as shape and elements; false where lengths differ or something is no number.
fn flatten(value: &Value, depth: usize, shape: &mut Vec<i64>, out: &mut Vec<Scalar>) -> bool {
    if let Some(items) = value.items() {
        if shape.len() == depth {
            if !out.is_empty() {
                return false;
            }
            shape.push(items.len() as i64);
        }
        return shape.get(depth) == Some(&(items.len() as i64))
            && items.iter().all(|item| flatten(item, depth + 1, shape, out));
    }
    match value.as_scalar().or_else(|| special_number(value)) {
        Some(scalar) if shape.len() == depth => {
            out.push(scalar);
            true
        }
        _ => false,
    }
}
