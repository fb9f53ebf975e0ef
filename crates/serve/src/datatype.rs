//! The element types that the protocol has names for.

use relaxide_ffi::DataType;

use crate::Error;

/// An element type of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Datatype {
    /// A bool, one byte of 0 or 1.
    Bool,
    /// 8 bits without a sign.
    Uint8,
    /// 16 bits without a sign.
    Uint16,
    /// 32 bits without a sign.
    Uint32,
    /// 64 bits without a sign.
    Uint64,
    /// 8 bits.
    Int8,
    /// 16 bits.
    Int16,
    /// 32 bits.
    Int32,
    /// 64 bits.
    Int64,
    /// A float of 16 bits.
    Fp16,
    /// The brain float.
    Bf16,
    /// A float of 32 bits.
    Fp32,
    /// A float of 64 bits.
    Fp64,
    /// A text; in binary form its length in four bytes, and its bytes.
    Bytes,
}

/// Each with its number between processes, its name, and what it is here; texts are no elements of tensors of numbers.
const TABLE: &[(Datatype, u8, &str, Option<DataType>)] = &[
    (Datatype::Bool, 0, "BOOL", Some(DataType::bool())),
    (Datatype::Uint8, 1, "UINT8", Some(DataType::uint(8))),
    (Datatype::Uint16, 2, "UINT16", Some(DataType::uint(16))),
    (Datatype::Uint32, 3, "UINT32", Some(DataType::uint(32))),
    (Datatype::Uint64, 4, "UINT64", Some(DataType::uint(64))),
    (Datatype::Int8, 5, "INT8", Some(DataType::int(8))),
    (Datatype::Int16, 6, "INT16", Some(DataType::int(16))),
    (Datatype::Int32, 7, "INT32", Some(DataType::int(32))),
    (Datatype::Int64, 8, "INT64", Some(DataType::int(64))),
    (Datatype::Fp16, 9, "FP16", Some(DataType::float(16))),
    (Datatype::Bf16, 10, "BF16", Some(DataType::bfloat16())),
    (Datatype::Fp32, 11, "FP32", Some(DataType::float(32))),
    (Datatype::Fp64, 12, "FP64", Some(DataType::float(64))),
    (Datatype::Bytes, 13, "BYTES", None),
];

impl Datatype {
    fn row(self) -> (u8, &'static str, Option<DataType>) {
        let row = TABLE.iter().find(|row| row.0 == self);
        row.map_or((13, "BYTES", None), |(_, byte, name, dtype)| (*byte, name, *dtype))
    }

    /// The name in the protocol.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// What it is in tensors here; nothing for texts.
    pub fn dtype(self) -> Option<DataType> {
        self.row().2
    }

    /// The bytes of an element; nothing for texts, which have any length.
    pub fn size(self) -> Option<usize> {
        self.dtype().map(DataType::bytes)
    }

    /// The type of a name.
    pub fn of_name(name: &str) -> Option<Datatype> {
        TABLE.iter().find(|row| row.2 == name).map(|row| row.0)
    }

    /// The type of a tensor's elements, where the protocol has one.
    pub fn of_dtype(dtype: DataType) -> Option<Datatype> {
        TABLE.iter().find(|row| row.3 == Some(dtype)).map(|row| row.0)
    }

    /// The type that a request says for an input.
    pub(crate) fn of_input(input: &str, name: &str) -> Result<Datatype, Error> {
        Datatype::of_name(name).ok_or_else(|| {
            let names = TABLE.iter().map(|row| row.2).collect::<Vec<_>>().join(", ");
            Error::invalid(format!("input {input:?} has the datatype {name:?}; there are: {names}"))
        })
    }

    pub(crate) fn to_byte(self) -> u8 {
        self.row().0
    }

    pub(crate) fn of_byte(byte: u8) -> Option<Datatype> {
        TABLE.iter().find(|row| row.1 == byte).map(|row| row.0)
    }
}
