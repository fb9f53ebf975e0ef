//! [`Value`]: one value of a packet.
//!
//! A value is an `i32` type index and what that index has. The indices are those of tvm-ffi; strings and bytes that are objects say
//! their index twice, as TVM does. Between two ends of ours, an index below zero stands for what TVM has no form for: `-index` of an
//! object that the *sender* keeps, and containers by value.

use relaxide_ffi::abi::type_index as index;
use relaxide_ffi::{DataType, Device};

use super::tensor::{read_dtype, write_dtype};
use super::{Dialect, Malformed, Reader, WireTensor, Writer};

/// The index that TVM gives objects of a far side.
pub const REMOTE_OBJECT: i32 = 115;

/// Which end keeps an object that a handle stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// Whoever receives the packet: the handle came from there.
    Receiver,
    /// Whoever sends the packet.
    Sender,
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value.
    None,
    /// An integer.
    Int(i64),
    /// A bool.
    Bool(bool),
    /// A float.
    Float(f64),
    /// An address, or a handle where a reply gives one.
    Ptr(u64),
    /// An element type.
    DataType(DataType),
    /// A device.
    Device(Device),
    /// A tensor's description.
    Tensor(WireTensor),
    /// Text without NUL, as C has it.
    RawStr(Vec<u8>),
    /// Bytes that are lent.
    ByteArray(Vec<u8>),
    /// Text, with the index that stands outside: small or on the heap.
    Str(Vec<u8>),
    /// Bytes that are an object.
    Bytes(Vec<u8>),
    /// An object behind a handle: a function, a module, or any other.
    Object {
        /// Its kind, as tvm-ffi numbers it; other objects have [`REMOTE_OBJECT`].
        kind: i32,
        /// The handle.
        handle: u64,
        /// Who keeps it.
        owner: Owner,
    },
    /// Ours: a tensor that the sender keeps, with the handle that frees it.
    OwnTensor(WireTensor, u64),
    /// Ours: a sequence.
    Array(Vec<Value>),
    /// Ours: a map.
    Map(Vec<(Value, Value)>),
    /// Ours: a tuple of integers.
    Shape(Vec<i64>),
}

impl Value {
    /// Text as it is sent: as C has it where that can be, else as an object, which keeps a NUL.
    pub fn text(text: &str) -> Value {
        match text.as_bytes().contains(&0) {
            true => Value::Str(text.into()),
            false => Value::RawStr(text.into()),
        }
    }

    /// The bytes of any kind of text.
    pub fn as_text(&self) -> Option<&[u8]> {
        match self {
            Value::RawStr(text) | Value::Str(text) => Some(text),
            _ => None,
        }
    }

    /// What it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::None => "None",
            Value::Int(_) => "int",
            Value::Bool(_) => "bool",
            Value::Float(_) => "float",
            Value::Ptr(_) => "address",
            Value::DataType(_) => "DataType",
            Value::Device(_) => "Device",
            Value::Tensor(_) | Value::OwnTensor(..) => "Tensor",
            Value::RawStr(_) | Value::Str(_) => "str",
            Value::ByteArray(_) | Value::Bytes(_) => "bytes",
            Value::Object { kind: index::FUNCTION, .. } => "Function",
            Value::Object { kind: index::MODULE, .. } => "Module",
            Value::Object { .. } => "Object",
            Value::Array(_) => "Array",
            Value::Map(_) => "Map",
            Value::Shape(_) => "Shape",
        }
    }

    /// Reads one value.
    pub fn read(reader: &mut Reader<'_>, dialect: Dialect) -> Result<Value, Malformed> {
        reader.spend_value()?;
        let kind = reader.i32("a value's type index")?;
        Ok(match kind {
            index::NONE => Value::None,
            index::INT => Value::Int(reader.i64("an integer")?),
            index::BOOL => Value::Bool(reader.i64("a bool")? != 0),
            index::FLOAT => Value::Float(reader.f64("a float")?),
            index::OPAQUE_PTR => Value::Ptr(reader.u64("an address")?),
            index::DATA_TYPE => {
                let dtype = read_dtype(reader)?;
                reader.i32("an element type's padding")?;
                Value::DataType(dtype)
            }
            index::DEVICE => Value::Device(Device::new(reader.i32("a device type")?, reader.i32("a device")?)),
            index::DL_TENSOR_PTR => Value::Tensor(WireTensor::read(reader)?),
            index::RAW_STR => Value::RawStr(reader.bytes("text")?.to_vec()),
            index::BYTE_ARRAY_PTR => Value::ByteArray(reader.bytes("bytes")?.to_vec()),
            index::FUNCTION | index::MODULE => {
                Value::Object { kind, handle: reader.u64("a handle")?, owner: Owner::Receiver }
            }
            index::SMALL_STR | index::SMALL_BYTES | index::OBJECT.. => read_object(reader, kind)?,
            _ if kind < 0 && dialect == Dialect::Own => read_own(reader, -i64::from(kind))?,
            _ => return Err(reader.wrong(format!("no value has the type index {kind}"))),
        })
    }

    /// Writes one value.
    pub fn write(&self, writer: &mut Writer) {
        match self {
            Value::None => writer.i32(index::NONE),
            Value::Int(value) => word(writer, index::INT, *value as u64),
            Value::Bool(value) => word(writer, index::BOOL, u64::from(*value)),
            Value::Float(value) => word(writer, index::FLOAT, value.to_bits()),
            Value::Ptr(value) => word(writer, index::OPAQUE_PTR, *value),
            Value::DataType(dtype) => {
                writer.i32(index::DATA_TYPE);
                write_dtype(writer, *dtype);
                writer.i32(0);
            }
            Value::Device(device) => {
                writer.i32(index::DEVICE);
                writer.i32(device.device_type);
                writer.i32(device.device_id);
            }
            Value::Tensor(tensor) => {
                writer.i32(index::DL_TENSOR_PTR);
                tensor.write(writer);
            }
            Value::RawStr(text) => blob(writer, index::RAW_STR, None, text),
            Value::ByteArray(bytes) => blob(writer, index::BYTE_ARRAY_PTR, None, bytes),
            Value::Str(text) => blob(writer, small(text, index::SMALL_STR, index::STR), Some(index::STR), text),
            Value::Bytes(bytes) => {
                blob(writer, small(bytes, index::SMALL_BYTES, index::BYTES), Some(index::BYTES), bytes);
            }
            Value::Object { kind, handle, owner: Owner::Receiver } => {
                writer.i32(*kind);
                if *kind == REMOTE_OBJECT {
                    writer.i32(*kind);
                }
                writer.u64(*handle);
            }
            Value::Object { kind, handle, owner: Owner::Sender } => word(writer, -kind, *handle),
            Value::OwnTensor(tensor, handle) => {
                writer.i32(-index::TENSOR);
                tensor.write(writer);
                writer.u64(*handle);
            }
            Value::Array(values) => {
                writer.i32(-index::ARRAY);
                write_all(writer, values);
            }
            Value::Map(pairs) => {
                writer.i32(-index::MAP);
                writer.i32(pairs.len() as i32);
                for (key, value) in pairs {
                    key.write(writer);
                    value.write(writer);
                }
            }
            Value::Shape(dims) => {
                writer.i32(-index::SHAPE);
                writer.i32(dims.len() as i32);
                dims.iter().for_each(|dim| writer.i64(*dim));
            }
        }
    }

    /// Reads a sequence: how many, and they.
    pub fn read_all(reader: &mut Reader<'_>, dialect: Dialect) -> Result<Vec<Value>, Malformed> {
        let claimed = reader.i32("a number of values")?;
        let count = reader.count(claimed.into(), 4, "values")?;
        // Not with the capacity at once: a value takes more memory here than on the wire.
        let mut values = Vec::new();
        for _ in 0..count {
            values.push(Value::read(reader, dialect)?);
        }
        Ok(values)
    }
}

/// Writes a sequence: how many, and they.
pub fn write_all(writer: &mut Writer, values: &[Value]) {
    writer.i32(values.len() as i32);
    values.iter().for_each(|value| value.write(writer));
}

fn word(writer: &mut Writer, kind: i32, word: u64) {
    writer.i32(kind);
    writer.u64(word);
}

fn small(bytes: &[u8], small: i32, large: i32) -> i32 {
    if bytes.len() <= 7 { small } else { large }
}

fn blob(writer: &mut Writer, kind: i32, again: Option<i32>, bytes: &[u8]) {
    writer.i32(kind);
    if let Some(again) = again {
        writer.i32(again);
    }
    writer.bytes(bytes);
}

/// An object says its index again; what is inside goes by that one.
fn read_object(reader: &mut Reader<'_>, outer: i32) -> Result<Value, Malformed> {
    let inner = reader.u32("an object's type index")?;
    match inner as i32 {
        index::STR => Ok(Value::Str(reader.bytes("text")?.to_vec())),
        index::BYTES => Ok(Value::Bytes(reader.bytes("bytes")?.to_vec())),
        REMOTE_OBJECT => {
            Ok(Value::Object { kind: REMOTE_OBJECT, handle: reader.u64("a handle")?, owner: Owner::Receiver })
        }
        _ => Err(reader.wrong(format!("no object with the type index {outer} ({inner} inside) can be sent"))),
    }
}

/// What only our ends send.
fn read_own(reader: &mut Reader<'_>, kind: i64) -> Result<Value, Malformed> {
    let kind = i32::try_from(kind).unwrap_or(i32::MAX);
    match kind {
        index::FUNCTION | index::MODULE | REMOTE_OBJECT => {
            Ok(Value::Object { kind, handle: reader.u64("a handle")?, owner: Owner::Sender })
        }
        index::TENSOR => Ok(Value::OwnTensor(WireTensor::read(reader)?, reader.u64("a handle")?)),
        index::ARRAY => reader.nested(|reader| Value::read_all(reader, Dialect::Own)).map(Value::Array),
        index::MAP => reader.nested(read_map),
        index::SHAPE => {
            let claimed = reader.i32("a shape's length")?;
            let count = reader.count(claimed.into(), 8, "dimensions")?;
            (0..count).map(|_| reader.i64("a dimension")).collect::<Result<_, _>>().map(Value::Shape)
        }
        _ => Err(reader.wrong(format!("no value has the type index -{kind}"))),
    }
}

fn read_map(reader: &mut Reader<'_>) -> Result<Value, Malformed> {
    let claimed = reader.i32("a map's length")?;
    let count = reader.count(claimed.into(), 8, "entries of a map")?;
    let mut pairs = Vec::new();
    for _ in 0..count {
        pairs.push((Value::read(reader, Dialect::Own)?, Value::read(reader, Dialect::Own)?));
    }
    Ok(Value::Map(pairs))
}
