//! JSON as TVM's Python writes it: a space behind each comma and colon, ASCII only. TVM's C++ server searches replies as text.

use std::io::{self, Write};

use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

struct Python;

impl Formatter for Python {
    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut plain = 0;
        for (at, character) in fragment.char_indices().filter(|(_, character)| !character.is_ascii()) {
            writer.write_all(&fragment.as_bytes()[plain..at])?;
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            plain = at + character.len_utf8();
        }
        writer.write_all(&fragment.as_bytes()[plain..])
    }
}

/// A value as text.
pub fn text(value: &Value) -> String {
    let mut out = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut out, Python);
    // Writing a value to memory cannot fail, and what comes out is ASCII.
    let _ = serde::Serialize::serialize(value, &mut serializer);
    String::from_utf8(out).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_pythons() {
        let value = serde_json::json!([0, ["h\u{e9}\u{1f600}", null], {"a": [1.5, true]}]);
        assert_eq!(text(&value), r#"[0, ["h\u00e9\ud83d\ude00", null], {"a": [1.5, true]}]"#);
    }
}
