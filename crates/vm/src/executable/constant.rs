//! The constant pool: which values it holds, how each is stored, and when two are the same.
//!
//! A constant is stored as a tag (the type index of the value in the C ABI) and a payload:
//!
//! | tag | value | payload |
//! | --- | --- | --- |
//! | 70 | tensor | magic, 0, device (always the CPU), ndim, dtype, shape, length of the data, data |
//! | 69 | shape | length, dimensions |
//! | 65 | string | length, bytes |
//! | 1, 3 | int, float | 8 bytes |
//! | 5 | dtype | code, bits, lanes |

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use relaxide_ffi::abi::type_index;
use relaxide_ffi::{Any, DataType, Device, Shape, Tensor};

use super::read::{Problem, ReadError, Reader};
use super::write::Writer;

const TENSOR_MAGIC: u64 = 0xDD5E_40F0_96B4_A13F;

/// A kind of value that an executable can store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConstantKind {
    Int,
    Float,
    DataType,
    Str,
    Shape,
    Tensor,
}

impl ConstantKind {
    const ALL: [Self; 6] = [Self::Int, Self::Float, Self::DataType, Self::Str, Self::Shape, Self::Tensor];

    /// The tag of this kind in the file.
    fn tag(self) -> i32 {
        match self {
            Self::Int => type_index::INT,
            Self::Float => type_index::FLOAT,
            Self::DataType => type_index::DATA_TYPE,
            Self::Str => type_index::STR,
            Self::Shape => type_index::SHAPE,
            Self::Tensor => type_index::TENSOR,
        }
    }

    /// The kind of a value, or `None` if it cannot be stored.
    pub(super) fn of(value: &Any) -> Option<Self> {
        match value.type_index() {
            // Short strings live inside the value; in the file they are strings like any other.
            type_index::SMALL_STR => Some(Self::Str),
            tag => Self::ALL.into_iter().find(|kind| kind.tag() == tag),
        }
    }
}

/// A constant is of a kind that the file format (or the summary) does not have. The builder of the executable is at
/// fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Unsupported constant pool type {kind} (constant {index})")]
pub struct UnsupportedConstant {
    /// Index in the constant pool.
    pub index: usize,
    /// What it is.
    pub kind: String,
}

impl UnsupportedConstant {
    pub(super) fn of(index: usize, value: &Any) -> Self {
        Self { index, kind: value.type_key().to_owned() }
    }

    fn because(index: usize, kind: impl Into<String>) -> Self {
        Self { index, kind: kind.into() }
    }
}

pub(super) fn read(reader: &mut Reader<'_>) -> Result<Any, ReadError> {
    let at = reader.position();
    let tag = reader.i32()?;
    let kind = ConstantKind::ALL.into_iter().find(|kind| kind.tag() == tag);
    Ok(match kind.ok_or_else(|| reader.error_at(at, Problem::ConstantTag(tag)))? {
        ConstantKind::Int => Any::from(reader.i64()?),
        ConstantKind::Float => Any::from(reader.f64()?),
        ConstantKind::DataType => Any::from(read_dtype(reader)?),
        ConstantKind::Str => Any::from(reader.string()?.as_str()),
        ConstantKind::Shape => Any::from(Shape::from(reader.i64_list()?)),
        ConstantKind::Tensor => Any::from(read_tensor(reader)?),
    })
}

fn read_dtype(reader: &mut Reader<'_>) -> Result<DataType, ReadError> {
    Ok(DataType { code: reader.u8()?, bits: reader.u8()?, lanes: reader.u16()? })
}

/// Reads a tensor in its saved form.
pub fn read_tensor(reader: &mut Reader<'_>) -> Result<Tensor, ReadError> {
    let at = reader.position();
    let refuse = |reader: &Reader<'_>, why: String| reader.error_at(at, Problem::Tensor(why));
    let (magic, _reserved) = (reader.u64()?, reader.u64()?);
    if magic != TENSOR_MAGIC {
        return Err(refuse(reader, format!("its magic is {magic:#018x}")));
    }
    let device = Device { device_type: reader.i32()?, device_id: reader.i32()? };
    if device.device_type != Device::cpu(0).device_type {
        return Err(refuse(reader, format!("it is stored for {device}; only the CPU is allowed here")));
    }
    let ndim = reader.i32()?;
    let dtype = match read_dtype(reader)? {
        // Older files call a bool, which is a byte, an unsigned integer of one bit.
        DataType { code: DataType::UINT, bits: 1, lanes: 1 } => DataType::bool(),
        dtype => dtype,
    };
    let ndim = u64::try_from(ndim).map_err(|_| refuse(reader, format!("it has {ndim} dimensions")))?;
    reader.fits(at, ndim, 8)?;
    let shape = (0..ndim).map(|_| reader.i64()).collect::<Result<Vec<_>, _>>()?;
    let stored = reader.i64()?;
    let expected = stored_bytes(&shape, dtype).map_err(|why| refuse(reader, why.to_string()))?;
    if u64::try_from(stored) != Ok(expected) {
        return Err(refuse(reader, format!("{stored} bytes are stored for {dtype} of shape {shape:?}: {expected}")));
    }
    let data = reader.take(expected)?;
    Tensor::from_bytes(data, &shape, dtype).map_err(|error| refuse(reader, error.to_string()))
}

/// Why a tensor has no size in a file.
#[derive(Debug, thiserror::Error)]
enum NoSize {
    #[error("elements of type {0} cannot be stored (those of one lane can)")]
    ElementType(DataType),
    #[error("a dimension of shape {0:?} is negative")]
    Negative(Vec<i64>),
    #[error("shape {0:?} is too large")]
    TooLarge(Vec<i64>),
}

/// The size of a tensor's data in the file, where elements of less than a byte lie as in memory, without gaps. TVM, which
/// expects a byte for each of those, refuses a file that has them.
fn stored_bytes(shape: &[i64], dtype: DataType) -> Result<u64, NoSize> {
    if dtype.lanes != 1 || dtype.bits == 0 {
        return Err(NoSize::ElementType(dtype));
    }
    let too_large = || NoSize::TooLarge(shape.to_vec());
    let mut elements = 1usize;
    for dim in shape {
        let dim = usize::try_from(*dim).map_err(|_| NoSize::Negative(shape.to_vec()))?;
        elements = elements.checked_mul(dim).ok_or_else(too_large)?;
    }
    dtype.bytes_of(elements).map(|bytes| bytes as u64).ok_or_else(too_large)
}

pub(super) fn write(out: &mut Writer, index: usize, value: &Any) -> Result<(), UnsupportedConstant> {
    let unsupported = || UnsupportedConstant::of(index, value);
    let kind = ConstantKind::of(value).ok_or_else(unsupported)?;
    out.i32(kind.tag());
    match kind {
        ConstantKind::Int => out.i64(value.to::<i64>().map_err(|_| unsupported())?),
        ConstantKind::Float => out.bytes(&value.to::<f64>().map_err(|_| unsupported())?.to_le_bytes()),
        ConstantKind::DataType => write_dtype(out, value.to::<DataType>().map_err(|_| unsupported())?),
        ConstantKind::Str => out.string(&value.to::<String>().map_err(|_| unsupported())?),
        ConstantKind::Shape => out.i64_list(&value.to::<Shape>().map_err(|_| unsupported())?),
        ConstantKind::Tensor => write_tensor(out, index, &value.to::<Tensor>().map_err(|_| unsupported())?)?,
    }
    Ok(())
}

fn write_dtype(out: &mut Writer, dtype: DataType) {
    out.bytes(&[dtype.code, dtype.bits]);
    out.bytes(&dtype.lanes.to_le_bytes());
}

/// Writes a tensor in its saved form; the index is for the error.
pub fn write_tensor(out: &mut Writer, index: usize, tensor: &Tensor) -> Result<(), UnsupportedConstant> {
    let (shape, dtype) = (tensor.shape(), tensor.dtype());
    let bytes = stored_bytes(shape, dtype).map_err(|why| UnsupportedConstant::because(index, why.to_string()))?;
    out.u64(TENSOR_MAGIC);
    out.u64(0);
    out.i32(Device::cpu(0).device_type);
    out.i32(0);
    // A tensor's rank is an `i32` in the C ABI too.
    out.i32(shape.len() as i32);
    write_dtype(out, dtype);
    shape.iter().for_each(|dim| out.i64(*dim));
    out.u64(bytes);
    out.tensor(tensor).map_err(|error| UnsupportedConstant::because(index, error.to_string()))
}

/// Writes a tensor as releases before the Relax VM did, in whose files a bool is an unsigned integer of one bit.
pub fn write_tensor_before_bool(out: &mut Writer, index: usize, tensor: &Tensor) -> Result<(), UnsupportedConstant> {
    if !tensor.dtype().is_bool() {
        return write_tensor(out, index, tensor);
    }
    let mut written = Writer::default();
    write_tensor(&mut written, index, tensor)?;
    let mut bytes = written.0.into_bytes();
    // Behind magic, reserved word, device and rank.
    const DTYPE: usize = 8 + 8 + 8 + 4;
    if let Some(dtype) = bytes.get_mut(DTYPE..DTYPE + 2) {
        dtype.copy_from_slice(&[DataType::UINT, 1]);
    }
    out.bytes(&bytes);
    Ok(())
}

/// A hash under which constants that are the [same](same) are equal; `None` for values that are never shared.
pub(crate) fn digest(value: &Any) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    let kind = ConstantKind::of(value)?;
    kind.tag().hash(&mut hasher);
    match kind {
        ConstantKind::Int => value.to::<i64>().ok()?.hash(&mut hasher),
        ConstantKind::Float => value.to::<f64>().ok()?.to_bits().hash(&mut hasher),
        ConstantKind::DataType => {
            let dtype = value.to::<DataType>().ok()?;
            (dtype.code, dtype.bits, dtype.lanes).hash(&mut hasher);
        }
        ConstantKind::Str => value.to::<String>().ok()?.hash(&mut hasher),
        ConstantKind::Shape => value.to::<Shape>().ok()?.hash(&mut hasher),
        ConstantKind::Tensor => {
            let tensor = value.to::<Tensor>().ok()?;
            tensor.shape().hash(&mut hasher);
            sample(&bytes(&tensor)?).for_each(|part| part.hash(&mut hasher));
        }
    }
    Some(hasher.finish())
}

/// Parts of bytes, equally far from each other; all of them where they are few. Whole weights take long to hash, and those of one
/// digest are compared.
fn sample(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    const PARTS: usize = 64;
    const PART: usize = 64;
    let step = (bytes.len() / PARTS).max(PART);
    bytes.chunks(step).map(move |chunk| &chunk[..chunk.len().min(PART)])
}

/// The elements of a tensor in row-major order, copied only if they do not lie so.
fn bytes(tensor: &Tensor) -> Option<Cow<'_, [u8]>> {
    tensor.as_bytes().map(Cow::Borrowed).or_else(|_| tensor.to_bytes().map(Cow::Owned)).ok()
}

/// Whether two constants are equal in kind and content.
pub(crate) fn same(a: &Any, b: &Any) -> bool {
    let equal = || {
        let kind = ConstantKind::of(a).filter(|kind| ConstantKind::of(b) == Some(*kind))?;
        Some(match kind {
            ConstantKind::Int => a.to::<i64>().ok()? == b.to::<i64>().ok()?,
            ConstantKind::Float => a.to::<f64>().ok()?.to_bits() == b.to::<f64>().ok()?.to_bits(),
            ConstantKind::DataType => a.to::<DataType>().ok()? == b.to::<DataType>().ok()?,
            ConstantKind::Str => a.to::<String>().ok()? == b.to::<String>().ok()?,
            ConstantKind::Shape => a.to::<Shape>().ok()?[..] == b.to::<Shape>().ok()?[..],
            ConstantKind::Tensor => {
                let (a, b) = (a.to::<Tensor>().ok()?, b.to::<Tensor>().ok()?);
                (a.shape(), a.dtype()) == (b.shape(), b.dtype()) && bytes(&a)? == bytes(&b)?
            }
        })
    };
    equal().unwrap_or(false)
}
