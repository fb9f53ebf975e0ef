//! Tensor constants as numbers, and numbers as constants.

use half::{bf16, f16};
use relaxide_ffi::{DataType, SmallFloat, Tensor, packing};
use relaxide_ir::prim::{self, PrimExpr};

use crate::Expr;

/// The elements of a tensor of numbers or bools, as double-precision numbers; `None` for other dtypes.
pub fn as_floats(tensor: &Tensor) -> Option<Vec<f64>> {
    let dtype = tensor.dtype();
    if !dtype.is_float() {
        return as_ints(tensor).map(|v| v.into_iter().map(|v| v as f64).collect());
    }
    let bytes = tensor.to_bytes().ok()?;
    if let (Some(family), 1) = (SmallFloat::of(dtype), dtype.lanes) {
        let codes = if dtype.is_packed() { packing::unpack(dtype, &bytes, tensor.numel()) } else { bytes };
        return Some(codes.into_iter().map(|code| family.decode(code)).collect());
    }
    Some(match (dtype.code, dtype.bits, dtype.lanes) {
        (DataType::FLOAT, 64, 1) => each(&bytes, f64::from_le_bytes),
        (DataType::FLOAT, 32, 1) => each(&bytes, |c| f64::from(f32::from_le_bytes(c))),
        (DataType::FLOAT, 16, 1) => each(&bytes, |c| f16::from_le_bytes(c).to_f64()),
        (DataType::BFLOAT, 16, 1) => each(&bytes, |c| bf16::from_le_bytes(c).to_f64()),
        _ => return None,
    })
}

/// A number for every `N` bytes.
fn each<const N: usize>(bytes: &[u8], read: fn([u8; N]) -> f64) -> Vec<f64> {
    bytes.as_chunks().0.iter().map(|chunk| read(*chunk)).collect()
}

/// The elements of a tensor of integers or bools.
pub fn as_ints(tensor: &Tensor) -> Option<Vec<i64>> {
    let dtype = tensor.dtype();
    if dtype.lanes != 1 || !(dtype.is_integer() || dtype.is_bool()) {
        return None;
    }
    let mut bytes = tensor.to_bytes().ok()?;
    if dtype.is_packed() {
        bytes = packing::unpack(dtype, &bytes, tensor.numel());
    }
    let width = dtype.bytes();
    let signed = dtype.is_int();
    let read = |chunk: &[u8]| {
        let negative = signed && chunk.last().is_some_and(|b| b & 0x80 != 0);
        let mut word = if negative { [0xff; 8] } else { [0; 8] };
        word[..chunk.len()].copy_from_slice(chunk);
        i64::from_le_bytes(word)
    };
    Some(bytes.chunks_exact(width).map(read).collect())
}

/// The value of a tensor of one element, as a literal.
pub fn as_scalar(tensor: &Tensor) -> Option<PrimExpr> {
    if tensor.numel() != 1 {
        return None;
    }
    let dtype = tensor.dtype();
    if dtype.is_float() {
        return as_floats(tensor)?.first().map(|v| prim::float_of(dtype, *v));
    }
    as_ints(tensor)?.first().map(|v| prim::int_of(dtype, *v))
}

/// A number as a 0-d constant of a numeric or truth dtype; `None` for other dtypes.
pub fn scalar_constant(dtype: DataType, value: f64) -> Option<Expr> {
    from_floats(&[value], &[], dtype).map(Expr::constant)
}

/// Numbers as a tensor of a numeric or truth dtype; `None` for other dtypes, and where their number is not the shape's.
pub fn from_floats(values: &[f64], shape: &[i64], dtype: DataType) -> Option<Tensor> {
    let bytes = values.iter().map(|value| number_bytes(dtype, *value)).collect::<Option<Vec<_>>>()?.concat();
    let bytes = if dtype.is_packed() { packing::pack(dtype, &bytes) } else { bytes };
    Tensor::from_bytes(&bytes, shape, dtype).ok()
}

fn number_bytes(dtype: DataType, value: f64) -> Option<Vec<u8>> {
    if let (Some(family), 1) = (SmallFloat::of(dtype), dtype.lanes) {
        return Some(vec![family.encode(value)]);
    }
    Some(match (dtype.is_float(), dtype.code, dtype.bits, dtype.lanes) {
        (true, DataType::FLOAT, 64, 1) => value.to_le_bytes().to_vec(),
        (true, DataType::FLOAT, 32, 1) => (value as f32).to_le_bytes().to_vec(),
        (true, DataType::FLOAT, 16, 1) => f16::from_f64(value).to_le_bytes().to_vec(),
        (true, DataType::BFLOAT, 16, 1) => bf16::from_f64(value).to_le_bytes().to_vec(),
        (false, _, 2 | 4 | 8 | 16 | 32 | 64, 1) if dtype.is_integer() || dtype.is_bool() => {
            let word = if dtype.is_uint() { (value as u64).to_le_bytes() } else { (value as i64).to_le_bytes() };
            word.get(..dtype.bytes())?.to_vec()
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_width_are_read() {
        assert_eq!(as_floats(&Tensor::from_slice(&[1.5f32, -2.0], &[2]).unwrap()), Some(vec![1.5, -2.0]));
        assert_eq!(as_ints(&Tensor::from_slice(&[-1i32, 7], &[2]).unwrap()), Some(vec![-1, 7]));
        assert_eq!(as_ints(&Tensor::from_slice(&[200u8], &[1]).unwrap()), Some(vec![200]));
        let half = Tensor::from_bytes(&f16::from_f32(0.5).to_le_bytes(), &[1], DataType::float(16)).unwrap();
        assert_eq!(as_floats(&half), Some(vec![0.5]));
    }

    #[test]
    fn a_number_becomes_a_constant_and_back() {
        for dtype in [
            "float64",
            "float32",
            "float16",
            "bfloat16",
            "int8",
            "int64",
            "bool",
            "float8_e5m2",
            "float4_e2m1fn",
            "int4",
            "int2",
        ] {
            let Some(Expr::Constant(c)) = scalar_constant(dtype.parse().unwrap(), 1.0) else { panic!("{dtype}") };
            assert_eq!(as_floats(&c.value), Some(vec![1.0]), "{dtype}");
        }
    }
}
