//! Elements of tensors as numbers, for constants in text.

use half::{bf16, f16};
use relaxide_ffi::{DataType, Error, SmallFloat, Tensor, packing};
use relaxide_ir::PrimExpr;

/// The value of a tensor of one element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scalar {
    Bool(bool),
    Int(i128),
    Float(f64),
}

/// The only element of a tensor; none where there are more, or where the element type has no literal.
pub(crate) fn scalar(tensor: &Tensor) -> Option<Scalar> {
    if tensor.numel() != 1 {
        return None;
    }
    let bytes = tensor.to_bytes().ok()?;
    let dtype = tensor.dtype();
    if dtype.lanes != 1 {
        return None;
    }
    if dtype.is_bool() {
        return bytes.first().map(|b| Scalar::Bool(*b != 0));
    }
    let signed = |width: usize| {
        let mut wide = if bytes.get(width - 1).is_some_and(|b| b & 0x80 != 0) { [0xff; 16] } else { [0; 16] };
        wide.get_mut(..width)?.copy_from_slice(bytes.get(..width)?);
        Some(Scalar::Int(i128::from_le_bytes(wide)))
    };
    let unsigned = |width: usize| {
        let mut wide = [0; 16];
        wide.get_mut(..width)?.copy_from_slice(bytes.get(..width)?);
        Some(Scalar::Int(i128::from_le_bytes(wide)))
    };
    match (dtype.code, dtype.bits) {
        (DataType::INT, 8 | 16 | 32 | 64) => signed(dtype.bytes()),
        (DataType::UINT, 8 | 16 | 32 | 64) => unsigned(dtype.bytes()),
        (DataType::INT | DataType::UINT, 2 | 4) => {
            let element = *packing::unpack(dtype, &bytes, 1).first()?;
            Some(Scalar::Int(if dtype.is_int() { i128::from(element as i8) } else { i128::from(element) }))
        }
        (DataType::FLOAT, 16) => Some(Scalar::Float(f16::from_le_bytes(bytes.try_into().ok()?).to_f64())),
        (DataType::FLOAT, 32) => Some(Scalar::Float(f64::from(f32::from_le_bytes(bytes.try_into().ok()?)))),
        (DataType::FLOAT, 64) => Some(Scalar::Float(f64::from_le_bytes(bytes.try_into().ok()?))),
        (DataType::BFLOAT, 16) => Some(Scalar::Float(bf16::from_le_bytes(bytes.try_into().ok()?).to_f64())),
        _ => {
            let element = *if dtype.is_packed() { packing::unpack(dtype, &bytes, 1) } else { bytes }.first()?;
            Some(Scalar::Float(SmallFloat::of(dtype)?.decode(element)))
        }
    }
}

/// A tensor of numbers, each rounded or wrapped to the element type as a conversion would; none for types without
/// literals.
pub(crate) fn from_scalars(values: &[Scalar], shape: &[i64], dtype: DataType) -> Option<Result<Tensor, Error>> {
    let mut bytes = Vec::with_capacity(values.len() * dtype.bytes());
    for value in values {
        push_element(&mut bytes, *value, dtype)?;
    }
    let bytes = if dtype.is_packed() { packing::pack(dtype, &bytes) } else { bytes };
    Some(Tensor::from_bytes(&bytes, shape, dtype))
}

/// A literal as a 0-d tensor; none where it is no literal or the element type has no literals.
pub fn literal_tensor(literal: &PrimExpr, dtype: DataType) -> Option<Result<Tensor, Error>> {
    let scalar = match literal {
        PrimExpr::Int(value) if value.dtype.is_bool() => Scalar::Bool(value.value != 0),
        PrimExpr::Int(value) => Scalar::Int(i128::from(value.value)),
        PrimExpr::Float(value) => Scalar::Float(value.value),
        _ => return None,
    };
    from_scalars(&[scalar], &[], dtype)
}

fn push_element(bytes: &mut Vec<u8>, value: Scalar, dtype: DataType) -> Option<()> {
    let as_int = match value {
        Scalar::Bool(v) => i128::from(v),
        Scalar::Int(v) => v,
        Scalar::Float(v) => v as i128,
    };
    let as_float = match value {
        Scalar::Bool(v) => f64::from(u8::from(v)),
        Scalar::Int(v) => v as f64,
        Scalar::Float(v) => v,
    };
    match (dtype.code, dtype.bits, dtype.lanes) {
        (DataType::BOOL, 8, 1) => bytes.push(u8::from(as_float != 0.0)),
        (DataType::INT | DataType::UINT, 2 | 4 | 8 | 16 | 32 | 64, 1) => {
            bytes.extend_from_slice(as_int.to_le_bytes().get(..dtype.bytes())?);
        }
        (DataType::FLOAT, 16, 1) => bytes.extend(f16::from_f64(as_float).to_le_bytes()),
        (DataType::FLOAT, 32, 1) => bytes.extend((as_float as f32).to_le_bytes()),
        (DataType::FLOAT, 64, 1) => bytes.extend(as_float.to_le_bytes()),
        (DataType::BFLOAT, 16, 1) => bytes.extend(bf16::from_f64(as_float).to_le_bytes()),
        (.., 1) => bytes.push(SmallFloat::of(dtype)?.encode(as_float)),
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_every_element_type() {
        let cases = [
            (Scalar::Int(-3), DataType::int(8)),
            (Scalar::Int(-3), DataType::int(64)),
            (Scalar::Int(u64::MAX as i128), DataType::uint(64)),
            (Scalar::Bool(true), DataType::bool()),
            (Scalar::Float(1.5), DataType::float(16)),
            (Scalar::Float(-2.5), DataType::bfloat16()),
            (Scalar::Float(-2.5), DataType::new(12, 8)),
            (Scalar::Float(1.5), DataType::new(17, 4)),
            (Scalar::Int(-3), DataType::int(4)),
            (Scalar::Int(13), DataType::uint(4)),
            (Scalar::Float(1e-300), DataType::float(64)),
        ];
        for (value, dtype) in cases {
            let tensor = from_scalars(&[value], &[], dtype).unwrap().unwrap();
            assert_eq!(scalar(&tensor), Some(value), "{dtype}");
        }
    }
}
