//! Reading JSON text.
//!
//! The text may be anybody's: nesting is limited, and what is allocated is of the order of the text's size.

use crate::graph::{MAX_DEPTH, check_depth};
use crate::{Any, Array, Error, ErrorKind, Map};

/// The value of a JSON text; a ValueError that names line and column if it is not one.
pub fn parse(text: &str) -> Result<Any, Error> {
    let mut reader = JsonReader { text, at: 0 };
    reader.skip_space();
    let value = reader.value(0)?;
    reader.skip_space();
    if reader.at < text.len() {
        return Err(reader.error("Extra data", reader.at));
    }
    Ok(value)
}

struct JsonReader<'a> {
    text: &'a str,
    /// Always between characters.
    at: usize,
}

impl JsonReader<'_> {
    #[cold]
    fn error(&self, what: &str, at: usize) -> Error {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        let message = format!("{what}: line {line} column {column} (char {})", before.chars().count());
        Error::new(ErrorKind::ValueError, message)
    }

    fn expecting_value(&self) -> Error {
        self.error("Expecting value", self.at)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, literal: &str) -> bool {
        let found = self.rest().starts_with(literal);
        if found {
            self.at += literal.len();
        }
        found
    }

    fn value(&mut self, depth: usize) -> Result<Any, Error> {
        if depth > MAX_DEPTH {
            check_depth(depth)?;
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(self.string()?.into()),
            _ if self.take("null") => Ok(Any::none()),
            _ if self.take("true") => Ok(true.into()),
            _ if self.take("false") => Ok(false.into()),
            _ if self.take("NaN") => Ok(f64::NAN.into()),
            _ if self.take("Infinity") => Ok(f64::INFINITY.into()),
            _ if self.take("-Infinity") => Ok(f64::NEG_INFINITY.into()),
            _ => self.number(),
        }
    }

    fn number(&mut self) -> Result<Any, Error> {
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
        let length = self.rest().bytes().take_while(|byte| is_part(byte)).count();
        let digits = self.rest().get(..length).unwrap_or("");
        let value = match digits.parse::<i64>() {
            Ok(int) => Any::from(int),
            // Integers beyond 64 bits are floats, and floats beyond theirs are errors.
            Err(_) => match digits.parse::<f64>() {
                Ok(float) if float.is_finite() => float.into(),
                _ => return Err(self.expecting_value()),
            },
        };
        self.at += length;
        Ok(value)
    }

    fn array(&mut self, depth: usize) -> Result<Any, Error> {
        self.at += 1;
        let mut values: Vec<Any> = Vec::new();
        self.skip_space();
        if self.take("]") {
            return Ok(Array::empty().into());
        }
        loop {
            self.skip_space();
            values.push(self.value(depth + 1)?);
            self.skip_space();
            if self.take("]") {
                return Ok(Array::from_vec(values).into());
            }
            if !self.take(",") {
                return Err(self.error("Expecting ',' delimiter", self.at));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Any, Error> {
        self.at += 1;
        let mut entries: Vec<(Any, Any)> = Vec::new();
        self.skip_space();
        if self.take("}") {
            return Ok(entries.into_iter().collect::<Map>().into());
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.error("Expecting property name enclosed in double quotes", self.at));
            }
            let key = self.string()?;
            self.skip_space();
            if !self.take(":") {
                return Err(self.error("Expecting ':' delimiter", self.at));
            }
            self.skip_space();
            entries.push((key.into(), self.value(depth + 1)?));
            self.skip_space();
            if self.take("}") {
                return Ok(entries.into_iter().collect::<Map>().into());
            }
            if !self.take(",") {
                return Err(self.error("Expecting ',' delimiter", self.at));
            }
        }
    }

    fn string(&mut self) -> Result<String, Error> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            let plain = self.rest().find(|c: char| c == '"' || c == '\\' || (c as u32) < 0x20);
            let Some(plain) = plain else { return Err(self.error("Unterminated string starting at", start)) };
            text.push_str(self.rest().get(..plain).unwrap_or(""));
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                _ => return Err(self.error("Invalid control character at", self.at)),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Error> {
        let after = self.at + 1;
        let c = match self.text.as_bytes().get(after) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(self.error("Invalid \\escape", after)),
        };
        self.at += 2;
        Ok(c)
    }

    /// One or, for characters beyond 16 bits, two escapes of four digits.
    fn unicode_escape(&mut self) -> Result<char, Error> {
        let start = self.at + 1;
        let pair = |reader: &Self| reader.error("Invalid surrogate pair of \\uXXXX escapes", start);
        let first = self.four_digits(start)?;
        let code = match first {
            0xd800..=0xdbff => {
                let second = if self.take("\\u") {
                    self.at -= 2;
                    self.four_digits(start)?
                } else {
                    return Err(pair(self));
                };
                if !(0xdc00..=0xdfff).contains(&second) {
                    return Err(pair(self));
                }
                0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
            }
            code => code,
        };
        char::from_u32(code).ok_or_else(|| pair(self))
    }

    fn four_digits(&mut self, start: usize) -> Result<u32, Error> {
        let digits = self.text.get(self.at + 2..self.at + 6).filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let code = code.ok_or_else(|| self.error("Invalid \\uXXXX escape", start))?;
        self.at += 6;
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_values() {
        let value = parse(r#" {"a": [1, -2.5, true, null, "x\u00e9\ud83d\ude00\n"], "b": {}} "#).unwrap();
        let map: Map = value.to().unwrap();
        let array: Array = map.get("a").unwrap().to().unwrap();
        assert_eq!(array.get(1).unwrap().as_float(), Some(-2.5));
        assert_eq!(array.get(4).unwrap().as_str(), Some("xé😀\n"));
        assert!(parse("9223372036854775808").unwrap().as_float().is_some());
        assert!(parse("[NaN, -Infinity]").is_ok());
    }

    #[test]
    fn errors_name_the_place() {
        let cases = [
            ("[1,]", "Expecting value: line 1 column 4 (char 3)"),
            ("{\"a\" 1}", "Expecting ':' delimiter: line 1 column 6 (char 5)"),
            ("\"abc", "Unterminated string starting at: line 1 column 1 (char 0)"),
            ("\"\\ud800\"", "Invalid surrogate pair of \\uXXXX escapes: line 1 column 3 (char 2)"),
            ("[1,\n2,\n x]", "Expecting value: line 3 column 2 (char 8)"),
            ("1 2", "Extra data: line 1 column 3 (char 2)"),
            ("", "Expecting value: line 1 column 1 (char 0)"),
        ];
        for (text, message) in cases {
            assert_eq!(parse(text).unwrap_err().message(), message, "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_an_error() {
        assert!(parse(&"[".repeat(100_000)).unwrap_err().message().contains("nested"));
    }
}
