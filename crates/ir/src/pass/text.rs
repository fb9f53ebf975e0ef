//! Passes with parameters, written as text: `LegalizeOps, ToMixedPrecision(out_dtype=float16)`.
//!
//! A value is an integer, a number, `True`, `False`, `None`, a text in quotes, a list in brackets, values by name in
//! braces, or a bare word, which is a text.

use indexmap::IndexMap;

use super::PassError;
use crate::{AttrValue, Attrs};

/// Values nest at most this deep.
const MAX_DEPTH: usize = 64;

/// One pass as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct PassCall {
    /// Its name.
    pub name: String,
    /// Parameters given by place.
    pub positional: Vec<AttrValue>,
    /// Parameters given by name.
    pub named: Attrs,
}

/// Reads a list of passes.
pub fn parse_calls(text: &str) -> Result<Vec<PassCall>, PassError> {
    let mut reader = OptionReader { text, at: 0 };
    let mut calls = Vec::new();
    loop {
        reader.skip_space();
        if reader.rest().is_empty() {
            return Ok(calls);
        }
        calls.push(reader.call()?);
        if !reader.eat(',') && !reader.rest().is_empty() {
            return Err(reader.error("a comma"));
        }
    }
}

/// Reads one value.
pub fn parse_value(text: &str) -> Result<AttrValue, PassError> {
    let mut reader = OptionReader { text, at: 0 };
    let value = reader.value(0)?;
    reader.skip_space();
    if reader.rest().is_empty() { Ok(value) } else { Err(reader.error("the end")) }
}

struct OptionReader<'a> {
    text: &'a str,
    at: usize,
}

impl OptionReader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn error(&self, expected: &str) -> PassError {
        PassError::arguments("passes", format!("{expected} is expected at column {} of `{}`", self.at + 1, self.text))
    }

    fn skip_space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn peek(&mut self) -> Option<char> {
        self.skip_space();
        self.rest().chars().next()
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }

    fn word(&mut self) -> String {
        self.skip_space();
        let is_word = |c: char| c.is_alphanumeric() || "._-+".contains(c);
        let word: String = self.rest().chars().take_while(|c| is_word(*c)).collect();
        self.at += word.len();
        word
    }

    fn call(&mut self) -> Result<PassCall, PassError> {
        let name = self.word();
        if name.is_empty() {
            return Err(self.error("the name of a pass"));
        }
        let mut call = PassCall { name, positional: Vec::new(), named: Attrs::new() };
        if !self.eat('(') {
            return Ok(call);
        }
        while !self.eat(')') {
            let start = self.at;
            let word = self.word();
            if !word.is_empty() && self.eat('=') {
                let value = self.value(0)?;
                call.named.0.insert(word, value);
            } else {
                self.at = start;
                let value = self.value(0)?;
                call.positional.push(value);
            }
            if !self.eat(',') && self.peek() != Some(')') {
                return Err(self.error("a comma or `)`"));
            }
        }
        Ok(call)
    }

    fn value(&mut self, depth: usize) -> Result<AttrValue, PassError> {
        if depth > MAX_DEPTH {
            return Err(self.error("a value that nests less deep"));
        }
        match self.peek() {
            Some('"' | '\'') => self.quoted().map(AttrValue::Str),
            Some('[') => self.list(']', depth),
            Some('(') => self.list(')', depth),
            Some('{') => self.map(depth),
            _ => {
                let word = self.word();
                if word.is_empty() { Err(self.error("a value")) } else { Ok(bare(word)) }
            }
        }
    }

    fn list(&mut self, end: char, depth: usize) -> Result<AttrValue, PassError> {
        self.at += 1;
        let mut items = Vec::new();
        while !self.eat(end) {
            items.push(self.value(depth + 1)?);
            if !self.eat(',') && self.peek() != Some(end) {
                return Err(self.error("a comma or the end of the list"));
            }
        }
        Ok(AttrValue::List(items))
    }

    fn map(&mut self, depth: usize) -> Result<AttrValue, PassError> {
        self.at += 1;
        let mut items = IndexMap::new();
        while !self.eat('}') {
            let key = if matches!(self.peek(), Some('"' | '\'')) { self.quoted()? } else { self.word() };
            if key.is_empty() || !self.eat(':') {
                return Err(self.error("a name and a colon"));
            }
            items.insert(key, self.value(depth + 1)?);
            if !self.eat(',') && self.peek() != Some('}') {
                return Err(self.error("a comma or `}`"));
            }
        }
        Ok(AttrValue::Map(items))
    }

    fn quoted(&mut self) -> Result<String, PassError> {
        let Some(quote) = self.peek() else { return Err(self.error("a text")) };
        self.at += 1;
        let mut out = String::new();
        let mut chars = self.rest().char_indices();
        while let Some((i, c)) = chars.next() {
            match c {
                c if c == quote => {
                    self.at += i + 1;
                    return Ok(out);
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => out.push('\n'),
                    Some((_, c)) => out.push(c),
                    None => break,
                },
                c => out.push(c),
            }
        }
        Err(self.error("the quote that ends this text"))
    }
}

fn bare(word: String) -> AttrValue {
    match word.as_str() {
        "True" | "true" => AttrValue::Bool(true),
        "False" | "false" => AttrValue::Bool(false),
        "None" => AttrValue::None,
        _ => {
            let numeric = word.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
            match (word.parse::<i64>(), word.parse::<f64>()) {
                (Ok(v), _) => AttrValue::Int(v),
                (_, Ok(v)) if numeric => AttrValue::Float(v),
                _ => AttrValue::Str(word),
            }
        }
    }
}
