//! Values as text, the way that Python prints them: `(1, "a", demo.Point(x=1, y=2))`.
//!
//! A type may print its own objects by a hook. What contains itself is printed as `...` inside. With the environment
//! variable `TVM_FFI_REPR_WITH_ADDR=1`, objects show their addresses.

use std::collections::HashMap;
use std::fmt::Write;

use super::{ObjectContents, check_depth, parts};
use crate::abi::type_index;
use crate::borrow_cell::borrow_for;
use crate::builtin::{Enum, is_enum, is_keywords, is_missing};
use crate::number_text::significant;
use crate::object::ObjectRef;
use crate::reflect::flags;
use crate::type_attr::{self, Attr};
use crate::{Any, AnyView, BigInt, Device, Error, Function, Shape, Tensor};

/// A value as text.
pub(crate) fn print(value: &Any) -> Result<String, Error> {
    let addresses = std::env::var("TVM_FFI_REPR_WITH_ADDR").is_ok_and(|value| value == "1");
    Printer { addresses, ..Printer::default() }.value(value)
}

#[derive(Default)]
struct Printer {
    addresses: bool,
    depth: usize,
    /// The text of objects that were printed; none for those that are being printed. Objects are kept alive so that
    /// addresses stay theirs.
    seen: HashMap<usize, (ObjectRef, Option<String>)>,
}

fn address(object: &ObjectRef) -> String {
    format!("{:#x}", object.as_ptr().addr())
}

impl Printer {
    fn value(&mut self, value: &Any) -> Result<String, Error> {
        if let Some(text) = value.as_str() {
            return Ok(quote(text));
        }
        if let Some(bytes) = value.as_bytes() {
            return Ok(quote_bytes(bytes));
        }
        let Some(object) = value.as_object() else { return plain(value) };
        match self.seen.get(&object.as_ptr().addr()) {
            Some((_, Some(text))) => return Ok(text.clone()),
            Some((_, None)) if self.addresses => return Ok(format!("...@{}", address(object))),
            Some((_, None)) => return Ok("...".to_string()),
            None => {}
        }
        if let Some(text) = self.leaf(value, object)? {
            return Ok(text);
        }
        self.seen.insert(object.as_ptr().addr(), (object.clone(), None));
        self.depth += 1;
        check_depth(self.depth)?;
        let text = self.object(object)?;
        self.depth -= 1;
        self.seen.insert(object.as_ptr().addr(), (object.clone(), Some(text.clone())));
        Ok(text)
    }

    /// The text of an object that holds nothing to be printed by itself.
    fn leaf(&self, value: &Any, object: &ObjectRef) -> Result<Option<String>, Error> {
        if is_missing(object) {
            return Ok(Some("<MISSING>".to_string()));
        }
        if is_keywords(object) {
            return Ok(Some("<KWARGS>".to_string()));
        }
        let join = |dims: &[i64]| dims.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        Ok(match value.type_index() {
            type_index::BIG_INT => Some(value.to::<BigInt>()?.to_string()),
            type_index::SHAPE => Some(format!("Shape({})", join(&value.to::<Shape>()?))),
            type_index::TENSOR => {
                let tensor: Tensor = value.to()?;
                let device = device_text(tensor.device());
                let mut text = format!("{}[{}]@{device}", tensor.dtype(), join(tensor.shape()));
                if self.addresses {
                    write!(text, "@{}", address(object)).ok();
                }
                Some(text)
            }
            _ => None,
        })
    }

    fn object(&mut self, object: &ObjectRef) -> Result<String, Error> {
        let index = object.type_index();
        if let Some(hook) = type_attr::get(Attr::Repr, index) {
            let hook: Function = hook.to()?;
            let answer = |printer: &mut Printer, args: &[AnyView<'_>]| {
                Ok(printer.value(&args.first().copied().unwrap_or_default().to_owned())?.into())
            };
            return borrow_for(self, answer, |print| hook.call(&[object.into(), print.into()]))?.to();
        }
        let at = if self.addresses { format!("@{}", address(object)) } else { String::new() };
        if is_enum(index) {
            return Ok(format!("{}.{}{at}", object.type_key(), Enum::text_of(object)?.as_str().unwrap_or("")));
        }
        match parts(object, flags::REPR_OFF)? {
            ObjectContents::Sequence(values) => {
                let texts = values.iter().map(|value| self.value(value)).collect::<Result<Vec<_>, _>>()?;
                let comma = if texts.len() == 1 { "," } else { "" };
                let list = texts.join(", ");
                Ok(if index == type_index::ARRAY { format!("({list}{comma}){at}") } else { format!("[{list}]{at}") })
            }
            ObjectContents::Map(entries) => {
                let texts =
                    entries.iter().map(|(key, value)| Ok(format!("{}: {}", self.value(key)?, self.value(value)?)));
                Ok(format!("{{{}}}{at}", texts.collect::<Result<Vec<_>, Error>>()?.join(", ")))
            }
            ObjectContents::Fields(fields) => {
                let header = format!("{}{at}", object.type_key());
                let mut texts: Vec<(&str, String)> = Vec::new();
                for (name, value) in &fields {
                    // A field that a refining type declares again is printed once.
                    let text = self.value(value)?;
                    if texts.iter().all(|(other, _)| other != name) {
                        texts.push((name, text));
                    }
                }
                let texts: Vec<String> = texts.into_iter().map(|(name, text)| format!("{name}={text}")).collect();
                Ok(if texts.is_empty() { header } else { format!("{header}({})", texts.join(", ")) })
            }
        }
    }
}

fn plain(value: &Any) -> Result<String, Error> {
    Ok(match value.type_index() {
        type_index::NONE => "None".to_string(),
        type_index::BOOL => if value.as_int() == Some(0) { "False" } else { "True" }.to_string(),
        type_index::INT => value.to::<i64>()?.to_string(),
        type_index::FLOAT => float_text(value.to()?),
        type_index::DATA_TYPE => value.to::<crate::DataType>()?.to_string(),
        type_index::DEVICE => device_text(value.to()?),
        _ => value.type_key().to_string(),
    })
}

/// A device as `cuda:1`; devices of unknown types too.
fn device_text(device: Device) -> String {
    let name = device.type_name().unwrap_or("unknown");
    format!("{name}:{}", device.device_id)
}

/// A number with six significant digits.
fn float_text(value: f64) -> String {
    if value.is_nan() {
        return if value.is_sign_negative() { "-nan" } else { "nan" }.to_string();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_string();
    }
    significant(value, 6)
}

/// Text in quotes, with escapes as Python reads them.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                write!(quoted, "\\x{:02x}", c as u32).ok();
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn quote_bytes(bytes: &[u8]) -> String {
    let mut quoted = String::from("b\"");
    for byte in bytes {
        match byte {
            b'"' | b'\\' => write!(quoted, "\\x{byte:02x}").unwrap_or(()),
            0x20..0x7f => quoted.push(char::from(*byte)),
            _ => write!(quoted, "\\x{byte:02x}").unwrap_or(()),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_print_as_python_prints_them() {
        let cases: Vec<(Any, &str)> = vec![
            (Any::none(), "None"),
            (true.into(), "True"),
            (1.5f64.into(), "1.5"),
            (100000.0f64.into(), "100000"),
            (1e20f64.into(), "1e+20"),
            (0.00001f64.into(), "1e-05"),
            (vec![1i64].into(), "(1,)"),
            (vec!["a\n\"", "b"].into(), "(\"a\\n\\\"\", \"b\")"),
            (crate::List::from_vec(vec![Any::none()]).into(), "[None]"),
            ([("k", 1i64)].into_iter().collect::<crate::Map>().into(), "{\"k\": 1}"),
            (Shape::new(&[2, 3]).into(), "Shape(2, 3)"),
        ];
        for (value, text) in cases {
            assert_eq!(print(&value).unwrap(), text);
        }
        let list = crate::List::from_vec(Vec::new());
        list.push(&list);
        assert_eq!(print(&(&list).into()).unwrap(), "[...]");
        list.clear();
    }
}
