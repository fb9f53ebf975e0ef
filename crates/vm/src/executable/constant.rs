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

use std::hash::{DefaultHasher, Hash, Hasher};

use relaxide_ffi::abi::type_index;
use relaxide_ffi::{Any, DataType};

use super::read::{Problem, ReadError, Reader};
use super::write::Writer;

/// A kind of value that an executable can store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConstantKind {
    Int,
    Float,
    DataType,
    Str,
}

impl ConstantKind {
    const ALL: [Self; 4] = [Self::Int, Self::Float, Self::DataType, Self::Str];

    /// The tag of this kind in the file.
    fn tag(self) -> i32 {
        match self {
            Self::Int => type_index::INT,
            Self::Float => type_index::FLOAT,
            Self::DataType => type_index::DATA_TYPE,
            Self::Str => type_index::STR,
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
    })
}

fn read_dtype(reader: &mut Reader<'_>) -> Result<DataType, ReadError> {
    Ok(DataType { code: reader.u8()?, bits: reader.u8()?, lanes: reader.u16()? })
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
    }
    Ok(())
}

fn write_dtype(out: &mut Writer, dtype: DataType) {
    out.bytes(&[dtype.code, dtype.bits]);
    out.bytes(&dtype.lanes.to_le_bytes());
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
    }
    Some(hasher.finish())
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
        })
    };
    equal().unwrap_or(false)
}
