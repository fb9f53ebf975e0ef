//! Tensors without dimensions, made of numbers and read as numbers.

use half::f16;
use relaxide_ffi::{DataType, Error, ErrorKind, Tensor};

fn refuse(dtype: DataType, what: &str) -> Error {
    Error::new(ErrorKind::TypeError, format!("{what} cannot be an element of type {dtype}"))
}

/// A scalar of an integer.
pub fn int(value: i64, dtype: DataType) -> Result<Tensor, Error> {
    let too_large = || refuse(dtype, &value.to_string());
    match (dtype.code, dtype.bits) {
        (DataType::BOOL, _) | (DataType::UINT, 1) => Tensor::from_bytes(&[u8::from(value != 0)], &[], DataType::bool()),
        (DataType::INT, 8) => Tensor::from_slice(&[i8::try_from(value).map_err(|_| too_large())?], &[]),
        (DataType::INT, 16) => Tensor::from_slice(&[i16::try_from(value).map_err(|_| too_large())?], &[]),
        (DataType::INT, 32) => Tensor::from_slice(&[i32::try_from(value).map_err(|_| too_large())?], &[]),
        (DataType::INT, 64) => Tensor::from_slice(&[value], &[]),
        (DataType::UINT, 8) => Tensor::from_slice(&[u8::try_from(value).map_err(|_| too_large())?], &[]),
        (DataType::UINT, 16) => Tensor::from_slice(&[u16::try_from(value).map_err(|_| too_large())?], &[]),
        (DataType::UINT, 32) => Tensor::from_slice(&[u32::try_from(value).map_err(|_| too_large())?], &[]),
        (DataType::UINT, 64) => Tensor::from_slice(&[u64::try_from(value).map_err(|_| too_large())?], &[]),
        (DataType::FLOAT, _) => float(value as f64, dtype),
        _ => Err(too_large()),
    }
}

/// A scalar of a number.
pub fn float(value: f64, dtype: DataType) -> Result<Tensor, Error> {
    match (dtype.code, dtype.bits) {
        (DataType::FLOAT, 16) => Tensor::from_bytes(&f16::from_f64(value).to_le_bytes(), &[], dtype),
        (DataType::FLOAT, 32) => Tensor::from_slice(&[value as f32], &[]),
        (DataType::FLOAT, 64) => Tensor::from_slice(&[value], &[]),
        _ if value.fract() == 0.0 => int(value as i64, dtype),
        _ => Err(refuse(dtype, &value.to_string())),
    }
}

/// A number of either kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A bool.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
}

/// The elements of a tensor as numbers; `None` for element types that are no plain numbers.
pub fn numbers(tensor: &Tensor) -> Option<Vec<Number>> {
    let dtype = tensor.dtype();
    let bytes = tensor.to_bytes().ok()?;
    if dtype.lanes != 1 {
        return None;
    }
    macro_rules! read {
        ($ty:ty, $make:expr) => {{
            let (words, _) = bytes.as_chunks::<{ size_of::<$ty>() }>();
            Some(words.iter().map(|w| $make(<$ty>::from_le_bytes(*w))).collect())
        }};
    }
    match (dtype.code, dtype.bits) {
        (DataType::BOOL, _) | (DataType::UINT, 1) => Some(bytes.iter().map(|b| Number::Bool(*b != 0)).collect()),
        (DataType::INT, 8) => read!(i8, |v| Number::Int(i64::from(v))),
        (DataType::INT, 16) => read!(i16, |v| Number::Int(i64::from(v))),
        (DataType::INT, 32) => read!(i32, |v| Number::Int(i64::from(v))),
        (DataType::INT, 64) => read!(i64, Number::Int),
        (DataType::UINT, 8) => read!(u8, |v| Number::Int(i64::from(v))),
        (DataType::UINT, 16) => read!(u16, |v| Number::Int(i64::from(v))),
        (DataType::UINT, 32) => read!(u32, |v| Number::Int(i64::from(v))),
        (DataType::UINT, 64) => read!(u64, |v| Number::Int(v as i64)),
        (DataType::FLOAT, 16) => read!(f16, |v: f16| Number::Float(v.to_f64())),
        (DataType::FLOAT, 32) => read!(f32, |v| Number::Float(f64::from(v))),
        (DataType::FLOAT, 64) => read!(f64, Number::Float),
        _ => None,
    }
}

/// The integers of a tensor, `None` if it holds others.
pub fn ints(tensor: &Tensor) -> Option<Vec<i64>> {
    let as_int = |n: Number| match n {
        Number::Int(v) => Some(v),
        Number::Bool(v) => Some(i64::from(v)),
        Number::Float(_) => None,
    };
    numbers(tensor)?.into_iter().map(as_int).collect()
}
