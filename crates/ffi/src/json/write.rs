//! Writing values as JSON text.

use std::fmt::Write;

use crate::abi::type_index;
use crate::graph::check_depth;
use crate::number_text::significant;
use crate::{Any, Array, Error, ErrorKind, List, Map};

/// A value as JSON text; with an indentation, over several lines. An error for values that JSON has no form for.
pub fn stringify(value: &Any, indent: usize) -> Result<String, Error> {
    let mut writer = JsonWriter { text: String::new(), indent, depth: 0 };
    writer.value(value)?;
    Ok(writer.text)
}

struct JsonWriter {
    text: String,
    indent: usize,
    depth: usize,
}

impl JsonWriter {
    fn value(&mut self, value: &Any) -> Result<(), Error> {
        if let Some(text) = value.as_str() {
            self.string(text);
            return Ok(());
        }
        match value.type_index() {
            type_index::NONE => self.text.push_str("null"),
            type_index::BOOL => self.text.push_str(if value.as_int() == Some(0) { "false" } else { "true" }),
            type_index::INT => {
                write!(self.text, "{}", value.to::<i64>()?).ok();
            }
            type_index::FLOAT => self.float(value.to()?),
            type_index::ARRAY => self.array(&value.to::<Array>()?.to_vec())?,
            // A list that contains itself ends at the limit of depth.
            type_index::LIST => self.array(&value.to::<List>()?.to_vec())?,
            type_index::MAP => self.object(&value.to::<Map>()?)?,
            _ => {
                let message = format!("Unsupported type: `{}`", value.type_key());
                return Err(Error::new(ErrorKind::ValueError, message));
            }
        }
        Ok(())
    }

    fn float(&mut self, value: f64) {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        let text = if value.is_nan() {
            "NaN".to_string()
        } else if value.is_infinite() {
            if value < 0.0 { "-Infinity" } else { "Infinity" }.to_string()
        } else if value.abs() < EXACT && value.fract() == 0.0 {
            // The point tells a float from an integer when the text is read again.
            format!("{value:.1}")
        } else {
            significant(value, 17)
        };
        self.text.push_str(&text);
    }

    fn string(&mut self, text: &str) {
        self.text.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' | '/' => {
                    self.text.push('\\');
                    self.text.push(c);
                }
                '\u{8}' => self.text.push_str("\\b"),
                '\u{c}' => self.text.push_str("\\f"),
                '\n' => self.text.push_str("\\n"),
                '\r' => self.text.push_str("\\r"),
                '\t' => self.text.push_str("\\t"),
                c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                    write!(self.text, "\\u{:04x}", c as u32).ok();
                }
                c => self.text.push(c),
            }
        }
        self.text.push('"');
    }

    fn new_line(&mut self) {
        if self.indent > 0 {
            self.text.push('\n');
            self.text.extend(std::iter::repeat_n(' ', self.indent * self.depth));
        }
    }

    fn array(&mut self, values: &[Any]) -> Result<(), Error> {
        self.nested('[', ']', values, |writer, value| writer.value(value))
    }

    fn object(&mut self, map: &Map) -> Result<(), Error> {
        let entries: Vec<_> = map.iter().collect();
        self.nested('{', '}', &entries, |writer, (key, value)| {
            let Some(text) = key.as_str() else {
                let message = format!("Expect key to be string, got `{}`", key.type_key());
                return Err(Error::new(ErrorKind::ValueError, message));
            };
            writer.string(text);
            writer.text.push_str(if writer.indent > 0 { ": " } else { ":" });
            writer.value(value)
        })
    }

    fn nested<T>(
        &mut self,
        open: char,
        close: char,
        items: &[T],
        item: impl Fn(&mut Self, &T) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.text.push(open);
        self.depth += 1;
        check_depth(self.depth)?;
        for (position, value) in items.iter().enumerate() {
            if position > 0 {
                self.text.push(',');
            }
            self.new_line();
            item(self, value)?;
        }
        self.depth -= 1;
        self.new_line();
        self.text.push(close);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;
    use proptest::prelude::*;

    #[test]
    fn text_is_that_of_the_interface() {
        let value = parse(r#"{"a":[1,1.0,1e300,{}],"b/":"\u0001"}"#).unwrap();
        assert_eq!(stringify(&value, 0).unwrap(), "{\"a\":[1,1.0,1.0000000000000001e+300,{}],\"b\\/\":\"\\u0001\"}");
        assert_eq!(stringify(&parse("[1,[2]]").unwrap(), 2).unwrap(), "[\n  1,\n  [\n    2\n  ]\n]");
        assert!(stringify(&crate::Bytes::new(b"x").into(), 0).is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(text in "\\PC{0,20}", float: f64, int: i64) {
            let value: Any = vec![Any::from(text.as_str()), float.into(), int.into()].into();
            let again: Array = parse(&stringify(&value, 1).unwrap()).unwrap().to().unwrap();
            prop_assert_eq!(again.get(0).unwrap().as_str(), Some(text.as_str()));
            let read: f64 = again.get(1).unwrap().to().unwrap();
            prop_assert!(read == float || float.is_nan() && read.is_nan());
            prop_assert_eq!(again.get(2).unwrap().as_int(), Some(int));
        }
    }
}
