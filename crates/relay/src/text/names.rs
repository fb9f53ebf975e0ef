//! Names in text.
//!
//! A graph that was saved may name its functions, types, constructors and attributes by any text. A name that is no word, or
//! a word that means something else where it stands, is written between back quotes: ``@`-1` ``, `` `Tensor`[int32] ``. Inside of
//! them `` \` ``, `\\`, `\n` and `\r` stand for what their character says. The names of variables and of type parameters are not
//! part of a program, so that the printer gives those a word that is free.

use std::borrow::Cow;

/// Words with a meaning of their own where a type, a constructor or an operator may stand.
const RESERVED: [&str; 17] = [
    "_",
    "Tensor",
    "fn",
    "ref",
    "ref_read",
    "ref_write",
    "let",
    "free_var",
    "if",
    "else",
    "match",
    "meta",
    "def",
    "type",
    "extern",
    "True",
    "False",
];

pub(super) fn begins_name(c: u8) -> bool {
    c.is_ascii_alphabetic() || c == b'_'
}

pub(super) fn in_name(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_'
}

/// Whether a text is one word.
pub(super) fn is_word(text: &str) -> bool {
    text.bytes().next().is_some_and(begins_name) && text.bytes().all(in_name)
}

/// Whether a word means nothing by itself, so that a name may be it. What begins with `inff` is a number.
pub(super) fn is_free_word(text: &str) -> bool {
    is_word(text) && !RESERVED.contains(&text) && !text.starts_with("inff")
}

/// A name of a type or a constructor.
pub fn name(text: &str) -> Cow<'_, str> {
    if is_free_word(text) { text.into() } else { quoted(text).into() }
}

/// A name of a function behind its `@`, where a slash and a digit in front are no trouble.
pub fn global(text: &str) -> String {
    let plain = !text.is_empty() && text.bytes().all(|c| in_name(c) || c == b'/');
    format!("@{}", if plain { text.into() } else { Cow::from(quoted(text)) })
}

/// A name of an attribute, which may have parts.
pub fn attribute(text: &str) -> Cow<'_, str> {
    let words = text.split('.').all(is_word) && !text.starts_with("meta") && !text.starts_with("inff");
    if words { text.into() } else { quoted(text).into() }
}

/// A text in back quotes, as which any name can be written.
pub fn quoted(text: &str) -> String {
    let mut written = String::from("`");
    for c in text.chars() {
        match c {
            '`' | '\\' => written.extend(['\\', c]),
            '\n' => written += "\\n",
            '\r' => written += "\\r",
            _ => written.push(c),
        }
    }
    written + "`"
}

/// Reads what [`quoted`] wrote, from its first back quote on: the name, and how many bytes it takes.
pub fn read_quoted(text: &str) -> Option<(String, usize)> {
    let (mut name, mut chars) = (String::new(), text.char_indices().skip(1));
    while let Some((at, c)) = chars.next() {
        match c {
            '`' => return Some((name, at + 1)),
            '\\' => match chars.next()?.1 {
                'n' => name.push('\n'),
                'r' => name.push('\r'),
                other => name.push(other),
            },
            _ => name.push(c),
        }
    }
    None
}
