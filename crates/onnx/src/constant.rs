//! Constants: from the file's tensors to the program's, and out again as numbers.

use std::collections::BTreeMap;

use half::{bf16, f16};
use prost::bytes::Bytes;
use relaxide_ffi::{DataType, SmallFloat, Tensor, packing};

use crate::error::TensorError;
use crate::external::{Beside, FilePart, Source};
use crate::proto::{ElementType, TensorProto};

/// The program's element type for one of the file; `None` where there is none.
pub fn dtype(element: ElementType) -> Option<DataType> {
    Some(match element {
        ElementType::Float => DataType::float(32),
        ElementType::Double => DataType::float(64),
        ElementType::Float16 => DataType::float(16),
        ElementType::Bfloat16 => DataType::bfloat16(),
        ElementType::Int8 => DataType::int(8),
        ElementType::Int16 => DataType::int(16),
        ElementType::Int32 => DataType::int(32),
        ElementType::Int64 => DataType::int(64),
        ElementType::Uint8 => DataType::uint(8),
        ElementType::Uint16 => DataType::uint(16),
        ElementType::Uint32 => DataType::uint(32),
        ElementType::Uint64 => DataType::uint(64),
        ElementType::Bool => DataType::bool(),
        ElementType::Float8E4M3fn => DataType::new(10, 8),
        ElementType::Float8E4M3fnuz => DataType::new(11, 8),
        ElementType::Float8E5M2 => DataType::new(12, 8),
        ElementType::Float8E5M2fnuz => DataType::new(13, 8),
        ElementType::Float8E8M0 => DataType::new(14, 8),
        ElementType::Float4E2M1 => DataType::new(17, 4),
        ElementType::Uint4 => DataType::uint(4),
        ElementType::Int4 => DataType::int(4),
        ElementType::Uint2 => DataType::uint(2),
        ElementType::Int2 => DataType::int(2),
        _ => return None,
    })
}

/// The program's element type for the number of one of the file's.
pub fn dtype_of(element: i64) -> Result<DataType, TensorError> {
    let known = i32::try_from(element).ok().and_then(|e| ElementType::try_from(e).ok());
    let name = || known.map_or_else(|| format!("number {element}"), |e| format!("{e:?}").to_lowercase());
    known.and_then(dtype).ok_or_else(|| TensorError::ElementType(name()))
}

/// Makes the constant that a tensor of the file describes. External data is looked for beside the model only.
pub fn from_proto(proto: &TensorProto, beside: Option<&Beside>) -> Result<Tensor, TensorError> {
    from_file(proto, Source { beside, files: &BTreeMap::new() })
}

/// The same, with files that are in memory.
pub(crate) fn from_file(proto: &TensorProto, source: Source<'_>) -> Result<Tensor, TensorError> {
    let dtype = dtype_of(proto.data_type.into())?;
    let bad_dims = || TensorError::Dims(proto.dims.clone());
    let count = proto.dims.iter().try_fold(1u64, |n, &d| n.checked_mul(u64::try_from(d).ok()?)).ok_or_else(bad_dims)?;
    let expected = usize::try_from(count).ok().and_then(|count| dtype.bytes_of(count)).ok_or_else(bad_dims)? as u64;
    if proto.data_location == 1 && !dtype.is_packed() {
        let part = external(proto, expected, source)?;
        check_size(part.len(), expected)?;
        return part.into_tensor(&proto.dims, dtype).map_err(|e| TensorError::Make(e.to_string()));
    }
    let bytes = data(proto, dtype, expected, source)?;
    check_size(bytes.len(), expected)?;
    if dtype.is_packed() {
        return made(&repacked(dtype, &bytes), proto, dtype);
    }
    made(&bytes, proto, dtype)
}

fn made(bytes: &[u8], proto: &TensorProto, dtype: DataType) -> Result<Tensor, TensorError> {
    Tensor::from_bytes(bytes, &proto.dims, dtype).map_err(|e| TensorError::Make(e.to_string()))
}

fn check_size(got: usize, expected: u64) -> Result<(), TensorError> {
    let got = got as u64;
    if got == expected { Ok(()) } else { Err(TensorError::Size { expected, got }) }
}

/// Elements that share bytes in the file's order, the first in the lower bits, in that of tensors.
fn repacked(dtype: DataType, bytes: &[u8]) -> Vec<u8> {
    let per_byte = 8 / dtype.bits.max(1);
    let reversed = |byte: &u8| (0..per_byte).map(|i| byte >> (i * dtype.bits)).collect::<Vec<u8>>();
    packing::pack(dtype, &bytes.iter().flat_map(reversed).collect::<Vec<u8>>())
}

/// The elements as little-endian bytes, wherever the file holds them.
fn data(proto: &TensorProto, dtype: DataType, expected: u64, source: Source<'_>) -> Result<Bytes, TensorError> {
    if proto.data_location == 1 {
        return Ok(external(proto, expected, source)?.into_bytes());
    }
    if !proto.raw_data.is_empty() {
        return Ok(proto.raw_data.clone());
    }
    let bytes: Vec<u8> = match (dtype.code, dtype.bits) {
        (DataType::FLOAT, 32) => proto.float_data.iter().flat_map(|v| v.to_le_bytes()).collect(),
        (DataType::FLOAT, 64) => proto.double_data.iter().flat_map(|v| v.to_le_bytes()).collect(),
        (DataType::INT, 64) => proto.int64_data.iter().flat_map(|v| v.to_le_bytes()).collect(),
        (DataType::UINT, 64) => proto.uint64_data.iter().flat_map(|v| v.to_le_bytes()).collect(),
        (DataType::UINT, 32) => proto.uint64_data.iter().flat_map(|&v| (v as u32).to_le_bytes()).collect(),
        (_, 32) => proto.int32_data.iter().flat_map(|v| v.to_le_bytes()).collect(),
        (_, 16) => proto.int32_data.iter().flat_map(|&v| (v as u16).to_le_bytes()).collect(),
        _ => proto.int32_data.iter().map(|&v| v as u8).collect(),
    };
    Ok(bytes.into())
}

/// The elements in another file. Where the model does not say how many bytes they take, it is those that they need.
fn external(proto: &TensorProto, expected: u64, source: Source<'_>) -> Result<FilePart, TensorError> {
    let entry = |key: &str| proto.external_data.iter().find(|e| e.key == key).map(|e| e.value.as_str());
    let location = entry("location").unwrap_or_default();
    let refuse = |reason: &str| TensorError::External { location: location.to_string(), reason: reason.to_string() };
    let number = |key: &str| entry(key).map_or(Ok(None), |v| v.parse::<usize>().map(Some)).map_err(|_| refuse(key));
    let (start, length) = (number("offset")?.unwrap_or(0), number("length")?);
    let needed = usize::try_from(expected).map_err(|_| refuse("it is larger than memory"))?;
    let length = length.unwrap_or(needed);
    let part = match (source.files.get(location), source.beside) {
        (Some(bytes), _) => FilePart::of_bytes(bytes, start, length),
        (None, Some(beside)) => {
            let file = beside.file(location).map_err(|why| refuse(&why.to_string()))?;
            FilePart::map(&file, start, length).map_err(|e| refuse(&format!("cannot read it: {e}")))?
        }
        (None, None) => {
            return Err(refuse("the model was given as bytes; open it from its file to load data beside it"));
        }
    };
    part.ok_or_else(|| refuse("the file is shorter than the model says"))
}

/// The elements of an integer or bool tensor.
pub fn ints(tensor: &Tensor) -> Result<Vec<i64>, TensorError> {
    let dtype = tensor.dtype();
    let mut bytes = tensor.to_bytes().map_err(|e| TensorError::Make(e.to_string()))?;
    if dtype.is_packed() {
        bytes = packing::unpack(dtype, &bytes, tensor.numel());
    }
    let widen = |chunk: &[u8]| {
        let mut word = [if dtype.is_int() && chunk.last().is_some_and(|b| b & 0x80 != 0) { 0xff } else { 0 }; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        i64::from_le_bytes(word)
    };
    if dtype.is_float() {
        return Err(TensorError::ElementType(format!("{dtype} (an integer type is needed)")));
    }
    Ok(bytes.chunks_exact(dtype.bytes().max(1)).map(widen).collect())
}

/// The elements of a tensor of floats.
pub fn floats(tensor: &Tensor) -> Result<Vec<f64>, TensorError> {
    let dtype = tensor.dtype();
    let bytes = tensor.to_bytes().map_err(|e| TensorError::Make(e.to_string()))?;
    if let Some(family) = SmallFloat::of(dtype) {
        let codes = if dtype.is_packed() { packing::unpack(dtype, &bytes, tensor.numel()) } else { bytes };
        return Ok(codes.into_iter().map(|code| family.decode(code)).collect());
    }
    let words = |n: usize| bytes.chunks_exact(n);
    let word16 = |c: &[u8]| u16::from_le_bytes([c[0], c[1]]);
    match (dtype.code, dtype.bits) {
        (DataType::FLOAT, 32) => {
            Ok(words(4).map(|c| f64::from(f32::from_le_bytes([c[0], c[1], c[2], c[3]]))).collect())
        }
        (DataType::FLOAT, 64) => {
            Ok(words(8).map(|c| f64::from_le_bytes([c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]])).collect())
        }
        (DataType::FLOAT, 16) => Ok(words(2).map(|c| f16::from_bits(word16(c)).to_f64()).collect()),
        (DataType::BFLOAT, 16) => Ok(words(2).map(|c| bf16::from_bits(word16(c)).to_f64()).collect()),
        _ => ints(tensor).map(|v| v.into_iter().map(|v| v as f64).collect()),
    }
}
