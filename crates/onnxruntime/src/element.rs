//! Element types, by ONNX's numbers.

use std::ffi::c_int;

use relaxide::ffi::DataType;

use crate::status::{Result, not_here};

/// A type of elements of tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// Its number in ONNX.
    pub number: c_int,
    /// Its name in ONNX's operator definitions.
    pub name: &'static str,
    /// What the runtime calls it; empty for texts.
    dtype: &'static str,
}

/// The number of texts.
pub const TEXT: c_int = 8;

const ELEMENTS: &[Element] = &[
    of(1, "float", "float32"),
    of(2, "uint8", "uint8"),
    of(3, "int8", "int8"),
    of(4, "uint16", "uint16"),
    of(5, "int16", "int16"),
    of(6, "int32", "int32"),
    of(7, "int64", "int64"),
    of(TEXT, "string", ""),
    of(9, "bool", "bool"),
    of(10, "float16", "float16"),
    of(11, "double", "float64"),
    of(12, "uint32", "uint32"),
    of(13, "uint64", "uint64"),
    of(16, "bfloat16", "bfloat16"),
    of(17, "float8e4m3fn", "float8_e4m3fn"),
    of(18, "float8e4m3fnuz", "float8_e4m3fnuz"),
    of(19, "float8e5m2", "float8_e5m2"),
    of(20, "float8e5m2fnuz", "float8_e5m2fnuz"),
    of(21, "uint4", "uint4"),
    of(22, "int4", "int4"),
    of(23, "float4e2m1", "float4_e2m1fn"),
];

const fn of(number: c_int, name: &'static str, dtype: &'static str) -> Element {
    Element { number, name, dtype }
}

impl Element {
    /// The type of a number.
    pub fn numbered(number: c_int) -> Result<Element> {
        let found = ELEMENTS.iter().find(|element| element.number == number);
        found.copied().ok_or_else(|| {
            let known: Vec<String> = ELEMENTS.iter().map(|e| format!("{} ({})", e.number, e.name)).collect();
            not_here(format!("elements of type {number} are not supported; there are {}", known.join(", ")))
        })
    }

    /// The type of a name of operator definitions.
    pub fn named(name: &str) -> Option<Element> {
        ELEMENTS.iter().find(|element| element.name == name).copied()
    }

    /// The type that the runtime calls so.
    pub fn of_dtype(dtype: DataType) -> Result<Element> {
        let name = dtype.to_string();
        let found = ELEMENTS.iter().find(|element| element.dtype == name);
        found.copied().ok_or_else(|| not_here(format!("ONNX has no name for elements of type {name}")))
    }

    /// What the runtime calls it; none for texts.
    pub fn dtype(self) -> Option<DataType> {
        if self.is_text() { None } else { self.dtype.parse().ok() }
    }

    /// Whether the elements are texts.
    pub fn is_text(self) -> bool {
        self.number == TEXT
    }
}
