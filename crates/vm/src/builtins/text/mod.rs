//! Texts: tensors of them, what they are equal to, and what they are turned into.
//!
//! | file | what |
//! | --- | --- |
//! | this | tensors taken apart and put together; places of texts in lists; texts from and to numbers |
//! | [`table`] | a list of texts as an argument |
//! | [`pieces`] | texts joined, divided, normalized and matched |
//! | [`gathered`] | several tensors of texts as one, and one as several |
//! | [`mapping`] | maps from rows of scores, and rows from maps |

mod gathered;
mod mapping;
mod pieces;
mod table;

use std::collections::HashMap;

use half::{bf16, f16};
use relaxide_ffi::{Any, Array, DataType, Device, Error, ErrorKind, Ref, Shape, Tensor};
use relaxide_runtime::device;

use super::{Args, Builtin};
use crate::text_tensor::{TextTensor, listed};
use table::Table;

pub(super) const TABLES: &[&[Builtin]] = &[TABLE, pieces::TABLE, gathered::TABLE, mapping::TABLE];

const TABLE: &[Builtin] = &[
    Builtin::plain("relaxide.vm.text_tensor", text_tensor),
    Builtin::plain("relaxide.vm.text_tensor_of", text_tensor_of),
    Builtin::plain("relaxide.vm.text_shape", text_shape),
    Builtin::plain("relaxide.vm.texts", texts),
    Builtin::placed("relaxide.vm.text_places", text_places),
    Builtin::placed("relaxide.vm.text_ids", text_ids),
    Builtin::placed("relaxide.vm.text_ranks", text_ranks),
    Builtin::plain("relaxide.vm.text_joined", text_joined),
    Builtin::placed("relaxide.vm.text_numbers", text_numbers),
    Builtin::plain("relaxide.vm.text_of_numbers", text_of_numbers),
];

/// An argument that is a tensor of texts.
fn tensor_of(args: &Args<'_, '_>, index: usize, name: &str) -> Result<Ref<TextTensor>, Error> {
    let view = args.view(index, name)?;
    let found = view.downcast_ref::<TextTensor>().cloned();
    found.ok_or_else(|| {
        args.error(ErrorKind::TypeError, format_args!("{name} is {}, not a tensor of texts", view.type_key()))
    })
}

/// The elements of a tensor of integers of 64 bits.
fn integers(args: &Args<'_, '_>, tensor: &Tensor, name: &str) -> Result<Vec<i64>, Error> {
    if tensor.dtype() != DataType::int(64) {
        return Err(args.error(ErrorKind::TypeError, format_args!("{name} are {}, not int64", tensor.dtype())));
    }
    let bytes = device::to_device(tensor, Device::cpu(0))?.to_bytes()?;
    Ok(bytes.as_chunks().0.iter().map(|word| i64::from_le_bytes(*word)).collect())
}

fn vector(values: &[i64]) -> Result<Any, Error> {
    Tensor::from_slice(values, &[values.len() as i64]).map(Any::from)
}

/// `(value, rank)`: a caller's value as a tensor of texts.
fn text_tensor(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(2, 2)?;
    let rank = args.index(1, "rank")?;
    let tensor = TextTensor::of_value(args.view(0, "value")?, rank);
    tensor.map(Any::from)
}

/// `(shape, texts)`: a tensor of texts from a list of them.
fn text_tensor_of(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(2, 2)?;
    let shape: Shape = args.get(0, "shape")?;
    TextTensor::new(&shape, args.get(1, "texts")?).map(Any::from)
}

/// `(tensor)`: its shape.
fn text_shape(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(1, 1)?;
    Ok(tensor_of(args, 0, "tensor")?.shape.clone().into())
}

/// `(index, table)`: the texts of a table that integers name, in the shape of those.
fn texts(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(2, 2)?;
    named(args, &args.get(0, "indices")?, &Table::of(args, 1)?).map(Any::from)
}

/// The texts of a table that integers name, in the shape of those.
fn named(args: &Args<'_, '_>, index: &Tensor, table: &Table) -> Result<Ref<TextTensor>, Error> {
    let places = integers(args, index, "indices")?;
    let mut level = Vec::with_capacity(places.len());
    for place in places {
        let text = usize::try_from(place).ok().and_then(|place| table.get(place));
        let count = table.len();
        let text =
            text.ok_or_else(|| args.error(ErrorKind::IndexError, format_args!("there are {count} texts, no {place}")))?;
        level.push(text);
    }
    TextTensor::new(index.shape(), Array::from_vec(level))
}

/// `(table, keys)`: for each text its place among keys, which are sorted and different; their number where it is none.
fn text_places(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(2, 2)?;
    let (table, keys) = (Table::of(args, 0)?, Table::of(args, 1)?);
    let places: Vec<i64> = table.iter().map(|text| keys.search(text).unwrap_or(keys.len()) as i64).collect();
    vector(&places)
}

/// `(table)`: for each text the first place of the same text.
fn text_ids(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(1, 1)?;
    let table = Table::of(args, 0)?;
    let mut first: HashMap<&str, i64> = HashMap::new();
    let ids: Vec<i64> = table.iter().enumerate().map(|(i, text)| *first.entry(text).or_insert(i as i64)).collect();
    vector(&ids)
}

/// `(table)`: the different texts in their order, and for each text its place among those.
fn text_ranks(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(1, 1)?;
    let table = Table::of(args, 0)?;
    let mut sorted: Vec<&str> = table.iter().collect();
    sorted.sort_unstable();
    sorted.dedup();
    let ranks: Vec<i64> = table.iter().map(|text| sorted.partition_point(|other| *other < text) as i64).collect();
    Ok(Array::from_vec(vec![listed(sorted)?.into(), vector(&ranks)?]).into())
}

/// `(table…)`: the texts of all, one after the other.
fn text_joined(args: &Args<'_, '_>) -> Result<Any, Error> {
    let mut all = Vec::new();
    for i in 0..args.len() {
        let table = Table::of(args, i)?;
        all.extend((0..table.len()).filter_map(|place| table.get(place)));
    }
    TextTensor::new(&[all.len() as i64], Array::from_vec(all)).map(Any::from)
}

/// `(table, dtype)`: the numbers that texts are.
fn text_numbers(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(2, 2)?;
    let table = Table::of(args, 0)?;
    let dtype: DataType = args.get(1, "dtype")?;
    let mut bytes = Vec::with_capacity(table.len() * dtype.bytes());
    for text in table.iter() {
        let word = number(text, dtype);
        let word = word.ok_or_else(|| args.error(ErrorKind::ValueError, format_args!("{text:?} is no {dtype}")))?;
        bytes.extend_from_slice(&word[..dtype.bytes()]);
    }
    Tensor::from_bytes(&bytes, &[table.len() as i64], dtype).map(Any::from)
}

/// The bytes of the number that a text is.
fn number(text: &str, dtype: DataType) -> Option<[u8; 8]> {
    let text = text.trim();
    let plain = text.strip_prefix('+').filter(|rest| !rest.starts_with(['+', '-'])).unwrap_or(text);
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        word
    };
    Some(match (dtype.code, dtype.bits) {
        (DataType::FLOAT, 64) => word(&plain.parse::<f64>().ok()?.to_le_bytes()),
        (DataType::FLOAT, 32) => word(&plain.parse::<f32>().ok()?.to_le_bytes()),
        (DataType::FLOAT, 16) => word(&f16::from_f32(plain.parse().ok()?).to_le_bytes()),
        (DataType::BFLOAT, 16) => word(&bf16::from_f32(plain.parse().ok()?).to_le_bytes()),
        (DataType::BOOL, _) => word(&[u8::from(plain.parse::<i64>().ok()? != 0)]),
        (DataType::INT, 8) => word(&plain.parse::<i8>().ok()?.to_le_bytes()),
        (DataType::INT, 16) => word(&plain.parse::<i16>().ok()?.to_le_bytes()),
        (DataType::INT, 32) => word(&plain.parse::<i32>().ok()?.to_le_bytes()),
        (DataType::INT, 64) => word(&plain.parse::<i64>().ok()?.to_le_bytes()),
        (DataType::UINT, 8) => word(&plain.parse::<u8>().ok()?.to_le_bytes()),
        (DataType::UINT, 16) => word(&plain.parse::<u16>().ok()?.to_le_bytes()),
        (DataType::UINT, 32) => word(&plain.parse::<u32>().ok()?.to_le_bytes()),
        (DataType::UINT, 64) => word(&plain.parse::<u64>().ok()?.to_le_bytes()),
        _ => return None,
    })
}

/// How many digits numbers are written with, also those of 64 bits, as ONNX Runtime does.
const DIGITS: usize = 8;

/// `(tensor)`: its numbers written down as C's `%.8g` writes them.
fn text_of_numbers(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(1, 1)?;
    let tensor: Tensor = args.get(0, "tensor")?;
    let dtype = tensor.dtype();
    let bytes = device::to_device(&tensor, Device::cpu(0))?.to_bytes()?;
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    };
    let shift = 64 - dtype.bits.min(64) as u32;
    let written = |word: u64| -> Option<String> {
        Some(match (dtype.code, dtype.bits) {
            (DataType::FLOAT, 64) => float_text(f64::from_bits(word), DIGITS),
            (DataType::FLOAT, 32) => float_text(f64::from(f32::from_bits(word as u32)), DIGITS),
            (DataType::FLOAT, 16) => float_text(f16::from_bits(word as u16).to_f64(), DIGITS),
            (DataType::BFLOAT, 16) => float_text(bf16::from_bits(word as u16).to_f64(), DIGITS),
            (DataType::INT, 8 | 16 | 32 | 64) => ((word as i64) << shift >> shift).to_string(),
            (DataType::UINT, 8 | 16 | 32 | 64) | (DataType::BOOL, _) => word.to_string(),
            _ => return None,
        })
    };
    let size = dtype.bytes().clamp(1, 8);
    let texts = bytes.chunks_exact(size).map(|chunk| written(word(chunk)).map(Any::from)).collect::<Option<Vec<_>>>();
    let texts =
        texts.ok_or_else(|| args.error(ErrorKind::TypeError, format_args!("elements of {dtype} are not written")))?;
    TextTensor::new(tensor.shape(), Array::from_vec(texts)).map(Any::from)
}

/// A number as `%.{digits}g` of C writes it.
fn float_text(value: f64, digits: usize) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "INF".into() } else { "-INF".into() };
    }
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
    }
    trimmed(&format!("{value:.*}", (digits as i32 - 1 - exponent).max(0) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_c_writes_them() {
        for (value, digits, text) in [
            (1.0, 8, "1"),
            (-0.5, 8, "-0.5"),
            (1e10, 8, "1e+10"),
            (1.0 / 3.0, 8, "0.33333333"),
            (1.0 / 3.0, 17, "0.33333333333333331"),
            (123456789.0, 8, "1.2345679e+08"),
            (0.00001, 8, "1e-05"),
            (0.0, 8, "0"),
            (99999999.0, 8, "99999999"),
        ] {
            assert_eq!(float_text(value, digits), text);
        }
    }
}
