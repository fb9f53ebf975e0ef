//! Elements of tensors as JSON: read from a list, flat or nested, and written to a flat one.
//!
//! JSON has no infinities and no NaN. Infinities are written as `1e999`, which readers take for what they are; NaN as `null`. Both are read
//! back, and floats of 16 bits, which the protocol leaves to the binary form, are numbers like others.

use std::io::Write;

use half::{bf16, f16};

use crate::tensor::push_text;
use crate::{Datatype, Error, Tensor};

/// Calls a macro with the Rust type of the elements; bools and texts are the caller's.
macro_rules! for_numbers {
    ($datatype:expr, $go:ident, $other:expr) => {
        match $datatype {
            Datatype::Uint8 => $go!(u8),
            Datatype::Uint16 => $go!(u16),
            Datatype::Uint32 => $go!(u32),
            Datatype::Uint64 => $go!(u64),
            Datatype::Int8 => $go!(i8),
            Datatype::Int16 => $go!(i16),
            Datatype::Int32 => $go!(i32),
            Datatype::Int64 => $go!(i64),
            Datatype::Fp16 => $go!(f16),
            Datatype::Bf16 => $go!(bf16),
            Datatype::Fp32 => $go!(f32),
            Datatype::Fp64 => $go!(f64),
            Datatype::Bool | Datatype::Bytes => $other,
        }
    };
}

/// The bytes of the elements that a list has. `text` is JSON that has been checked to be such.
pub(crate) fn read(name: &str, datatype: Datatype, text: &str) -> Result<Vec<u8>, Error> {
    let mut data = Vec::with_capacity(text.len().min(1 << 20));
    let refused = |word: &str| {
        let short: String = word.chars().take(40).collect();
        Error::invalid(format!("tensor {name:?} has the element `{short}`, which is no {}", datatype.name()))
    };
    macro_rules! numbers {
        ($ty:ty) => {
            each(text, |word| {
                let number = <$ty as Number>::parse(word).ok_or_else(|| refused(word))?;
                data.extend_from_slice(&number.to_le_bytes());
                Ok(())
            })
        };
    }
    for_numbers!(
        datatype,
        numbers,
        each(text, |word| match (datatype, word) {
            (Datatype::Bool, "true" | "false") => {
                data.push(u8::from(word == "true"));
                Ok(())
            }
            (Datatype::Bytes, word) if word.starts_with('"') => {
                let text: String = serde_json::from_str(word).map_err(|_| refused(word))?;
                push_text(&mut data, text.as_bytes())
            }
            _ => Err(refused(word)),
        })
    )?;
    Ok(data)
}

/// Gives each element of a list, nested or not.
fn each(text: &str, mut take: impl FnMut(&str) -> Result<(), Error>) -> Result<(), Error> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let begin = at;
        at += 1;
        match byte {
            b'[' | b']' | b',' | b' ' | b'\n' | b'\r' | b'\t' => continue,
            b'{' | b'}' | b':' => {
                return Err(Error::invalid("the data of a tensor has an object where an element is wanted"));
            }
            b'"' => {
                while let Some(byte) = bytes.get(at) {
                    at += match byte {
                        b'"' => break,
                        b'\\' => 2,
                        _ => 1,
                    };
                }
                at += 1;
            }
            _ => {
                let is_end = |byte: &u8| matches!(byte, b']' | b',' | b'}' | b' ' | b'\n' | b'\r' | b'\t');
                at += bytes[at..].iter().position(is_end).unwrap_or(bytes.len() - at);
            }
        }
        let broken = || Error::invalid("the data of a tensor is no JSON");
        take(text.get(begin..at).ok_or_else(broken)?)?;
    }
    Ok(())
}

/// A number, as JSON has it.
trait Number: Sized {
    fn parse(word: &str) -> Option<Self>;
    fn write(&self, out: &mut Vec<u8>);
}

macro_rules! integers {
    ($($ty:ty)*) => {$(
        impl Number for $ty {
            fn parse(word: &str) -> Option<Self> {
                word.parse().ok()
            }

            fn write(&self, out: &mut Vec<u8>) {
                // Memory takes whatever is written.
                let _ = write!(out, "{self}");
            }
        }
    )*};
}

integers! { u8 u16 u32 u64 i8 i16 i32 i64 }

macro_rules! floats {
    ($($ty:ty: $wide:ty, $of:expr, $to:expr;)*) => {$(
        impl Number for $ty {
            fn parse(word: &str) -> Option<Self> {
                let of: fn($wide) -> $ty = $of;
                match word {
                    "null" => Some(of(<$wide>::NAN)),
                    // What Rust reads beyond JSON is no JSON.
                    _ if word.ends_with(|c: char| c.is_ascii_digit()) => word.parse().ok().map(of),
                    _ => None,
                }
            }

            fn write(&self, out: &mut Vec<u8>) {
                let to: fn(&$ty) -> $wide = $to;
                let value = to(self);
                // Memory takes whatever is written.
                let _ = match (value.is_nan(), value.is_infinite(), value < 0.0) {
                    (true, ..) => write!(out, "null"),
                    (_, true, false) => write!(out, "1e999"),
                    (_, true, true) => write!(out, "-1e999"),
                    _ if value != 0.0 && (value.abs() < 1e-5 || value.abs() >= 1e16) => write!(out, "{value:e}"),
                    _ => write!(out, "{value}"),
                };
            }
        }
    )*};
}

floats! {
    f16: f32, f16::from_f32, |v| v.to_f32();
    bf16: f32, bf16::from_f32, |v| v.to_f32();
    f32: f32, |v| v, |v| *v;
    f64: f64, |v| v, |v| *v;
}

/// Writes the elements of a tensor as a flat list.
pub(crate) fn write(tensor: &Tensor, out: &mut Vec<u8>) {
    out.push(b'[');
    let begin = out.len();
    macro_rules! numbers {
        ($ty:ty) => {
            for bytes in tensor.data().chunks_exact(size_of::<$ty>()) {
                let Ok(bytes) = bytes.try_into() else { continue };
                Number::write(&<$ty>::from_le_bytes(bytes), out);
                out.push(b',');
            }
        };
    }
    for_numbers!(tensor.datatype(), numbers, {
        if tensor.datatype() == Datatype::Bool {
            for byte in tensor.data() {
                out.extend_from_slice(if *byte == 0 { b"false," } else { b"true," });
            }
        } else {
            for text in tensor.texts() {
                push_json_text(out, text);
                out.push(b',');
            }
        }
    });
    if out.len() > begin {
        out.pop();
    }
    out.push(b']');
}

/// Writes a text as JSON.
pub(crate) fn push_json_text(out: &mut Vec<u8>, text: &str) {
    // Memory takes whatever is written, and every text is JSON's.
    let _ = serde_json::to_writer(out, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(datatype: Datatype, text: &str) -> Result<String, Error> {
        let data = read("x", datatype, text)?;
        let count = match datatype.size() {
            Some(size) => data.len() / size,
            None => text.matches('"').count() / 2,
        };
        let tensor = Tensor::new("x", datatype, vec![count as i64], data.into())?;
        let mut out = Vec::new();
        write(&tensor, &mut out);
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn elements_survive_the_way() {
        for (datatype, text, wanted) in [
            (Datatype::Fp32, "[[1, -0.5],[1e30 ,0.1]]", "[1,-0.5,1e30,0.1]"),
            (Datatype::Fp32, "[1e999,-1e999,null,1e-40]", "[1e999,-1e999,null,1e-40]"),
            (Datatype::Fp64, "[0.1, 123456789.125, 2E3]", "[0.1,123456789.125,2000]"),
            (Datatype::Fp16, "[1.5, 65504, 1e9]", "[1.5,65504,1e999]"),
            (Datatype::Bf16, "[1.5]", "[1.5]"),
            (Datatype::Int64, "[-9223372036854775808, 7]", "[-9223372036854775808,7]"),
            (Datatype::Uint8, "[[[255]],[[0]]]", "[255,0]"),
            (Datatype::Bool, "[true,[false]]", "[true,false]"),
            (Datatype::Bytes, "[\"a\\\"]\\n\", \"\", \"\\u00e9,\"]", "[\"a\\\"]\\n\",\"\",\"é,\"]"),
            (Datatype::Int32, "[]", "[]"),
        ] {
            assert_eq!(round(datatype, text).unwrap(), wanted, "{text}");
        }
    }

    #[test]
    fn what_is_no_element_is_named() {
        let message = round(Datatype::Int8, "[1, 128]").unwrap_err().message;
        assert_eq!(message, "tensor \"x\" has the element `128`, which is no INT8");
        for (datatype, text) in [
            (Datatype::Int32, "[1.0]"),
            (Datatype::Uint8, "[-1]"),
            (Datatype::Fp32, "[\"1\"]"),
            (Datatype::Fp32, "[true]"),
            (Datatype::Fp32, "{\"a\": 1}"),
            (Datatype::Bool, "[1]"),
            (Datatype::Bytes, "[1]"),
            (Datatype::Int32, "[null]"),
        ] {
            assert!(round(datatype, text).is_err(), "{text}");
        }
    }
}
