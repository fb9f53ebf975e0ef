//! Constants of the program from numbers.

use half::{bf16, f16};
use relaxide_ffi::{DataType, SmallFloat, Tensor, packing};

use crate::{NodeError, Result};

/// A tensor of given bytes.
pub fn from_bytes(bytes: &[u8], dims: &[i64], dtype: DataType) -> Result<Tensor> {
    Tensor::from_bytes(bytes, dims, dtype).map_err(|e| NodeError::invalid(e.to_string()))
}

/// A tensor of a numeric type from integers, which keep all their digits where the type has them.
pub fn whole(values: &[i64], dims: &[i64], dtype: DataType) -> Result<Tensor> {
    if dtype.is_float() {
        return filled(&values.iter().map(|v| *v as f64).collect::<Vec<_>>(), dims, dtype);
    }
    let word = |v: &i64| if dtype.is_bool() { i64::from(*v != 0) } else { *v }.to_le_bytes();
    let bytes: Vec<u8> = values.iter().flat_map(|v| word(v)[..dtype.bytes()].to_vec()).collect();
    let bytes = if dtype.is_packed() { packing::pack(dtype, &bytes) } else { bytes };
    from_bytes(&bytes, dims, dtype)
}

/// A tensor of a numeric type from numbers.
pub fn filled(values: &[f64], dims: &[i64], dtype: DataType) -> Result<Tensor> {
    let mut bytes = Vec::with_capacity(values.len() * dtype.bytes());
    for &v in values {
        if let Some(family) = SmallFloat::of(dtype) {
            bytes.push(family.encode(v));
            continue;
        }
        match (dtype.code, dtype.bits) {
            _ if dtype.is_bool() => bytes.push(u8::from(v != 0.0)),
            (DataType::FLOAT, 32) => bytes.extend((v as f32).to_le_bytes()),
            (DataType::FLOAT, 64) => bytes.extend(v.to_le_bytes()),
            (DataType::FLOAT, 16) => bytes.extend(f16::from_f64(v).to_le_bytes()),
            (DataType::BFLOAT, 16) => bytes.extend(bf16::from_f64(v).to_le_bytes()),
            (DataType::UINT, _) => bytes.extend(&(v as u64).to_le_bytes()[..dtype.bytes()]),
            _ => bytes.extend(&(v as i64).to_le_bytes()[..dtype.bytes()]),
        }
    }
    let bytes = if dtype.is_packed() { packing::pack(dtype, &bytes) } else { bytes };
    from_bytes(&bytes, dims, dtype)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_every_type() {
        let bytes = |tensor: Tensor| tensor.to_bytes().unwrap();
        assert_eq!(bytes(filled(&[1.5, -2.0], &[2], DataType::float(16)).unwrap()), [0x00, 0x3e, 0x00, 0xc0]);
        assert_eq!(bytes(filled(&[0.5, 0.0], &[2], DataType::bool()).unwrap()), [1, 0]);
        assert_eq!(bytes(filled(&[-1.0], &[], DataType::int(16)).unwrap()), [0xff, 0xff]);
        assert_eq!(bytes(whole(&[i64::MAX], &[1], DataType::int(64)).unwrap()), i64::MAX.to_le_bytes());
        assert_eq!(bytes(whole(&[3, 0], &[2], DataType::bool()).unwrap()), [1, 0]);
        let wrong = filled(&[1.0], &[2], DataType::float(32)).unwrap_err();
        assert!(matches!(wrong, NodeError::Invalid(_)), "{wrong}");
    }
}
