//! What a text may look like before it is parsed at all.
//!
//! A parser that descends into nested text uses stack for every level, and so does whatever walks the tree behind it. One
//! linear look at the text bounds the depth of any tree that can come out of it: brackets, indentation, and the tokens of
//! one operand chain, between two commas. Text that TVMScript has no use for and that would hide from this look (formatted
//! strings) is refused here too.

use relaxide_ir::diagnostic::Code;

/// Nesting of brackets.
const MAX_BRACKETS: usize = 200;
/// Nesting of blocks.
const MAX_BLOCKS: usize = 100;
/// Tokens between commas, summed over the brackets around: a chain of operators is at most this deep.
const MAX_CHAIN: usize = 4000;
/// Bytes of a text.
const MAX_BYTES: usize = 1 << 30;

/// What is wrong, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub code: Code,
    pub message: String,
    pub offset: usize,
}

/// Whether formatted strings may stand in a text: only where Python itself has read the text already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Formatted {
    Refused,
    Allowed,
}

/// Checks a text against the limits.
pub(super) fn check(source: &str) -> Result<(), Refusal> {
    check_with(source, Formatted::Refused)
}

/// As [`check`], with a say about formatted strings.
pub(super) fn check_with(source: &str, formatted: Formatted) -> Result<(), Refusal> {
    let bytes = source.as_bytes();
    let mut scan = Scan { bytes, at: 0, brackets: Vec::new(), chain: 0, indents: vec![0], formatted };
    if source.len() > MAX_BYTES {
        return Err(scan.limit(format!("the text is longer than {MAX_BYTES} bytes")));
    }
    scan.run()
}

struct Scan<'s> {
    bytes: &'s [u8],
    at: usize,
    /// The chain outside each open bracket.
    brackets: Vec<usize>,
    chain: usize,
    indents: Vec<usize>,
    formatted: Formatted,
}

impl Scan<'_> {
    fn limit(&self, message: String) -> Refusal {
        Refusal { code: Code::Limit, message, offset: self.at }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn run(&mut self) -> Result<(), Refusal> {
        self.indentation()?;
        while self.at < self.bytes.len() {
            match self.peek(0) {
                b'\n' | b'\r' => {
                    self.at += 1;
                    if self.brackets.is_empty() {
                        self.chain = 0;
                        self.indentation()?;
                    }
                }
                b'#' => self.comment(),
                b' ' | b'\t' | b'\\' | 0x0c => self.at += 1,
                b'"' | b'\'' => {
                    self.token(1)?;
                    self.string()?;
                }
                b'(' | b'[' | b'{' => {
                    self.token(1)?;
                    self.brackets.push(self.chain);
                    if self.brackets.len() > MAX_BRACKETS {
                        return Err(self.limit(format!("more than {MAX_BRACKETS} brackets are open")));
                    }
                    self.at += 1;
                }
                b')' | b']' | b'}' => {
                    self.chain = self.brackets.pop().unwrap_or(self.chain);
                    self.token(1)?;
                    self.at += 1;
                }
                b',' | b';' => {
                    self.chain = self.brackets.last().copied().unwrap_or(0);
                    self.at += 1;
                }
                c if c.is_ascii_alphanumeric() || c == b'_' || c >= 0x80 => self.word()?,
                _ => {
                    self.token(1)?;
                    self.at += 1;
                }
            }
        }
        Ok(())
    }

    fn token(&mut self, count: usize) -> Result<(), Refusal> {
        self.chain += count;
        if self.chain > MAX_CHAIN {
            return Err(self.limit(format!("an expression has more than {MAX_CHAIN} parts without a comma")));
        }
        Ok(())
    }

    fn comment(&mut self) {
        while self.at < self.bytes.len() && !matches!(self.peek(0), b'\n' | b'\r') {
            self.at += 1;
        }
    }

    /// A name, keyword or number; a prefix of a string is part of the string.
    fn word(&mut self) -> Result<(), Refusal> {
        let start = self.at;
        while matches!(self.peek(0), c if c.is_ascii_alphanumeric() || c == b'_' || c >= 0x80) {
            self.at += 1;
        }
        let is_prefix = matches!(self.peek(0), b'"' | b'\'') && self.at - start <= 3;
        let word = self.bytes.get(start..self.at).unwrap_or_default();
        if self.formatted == Formatted::Refused
            && is_prefix
            && word.iter().any(|c| matches!(c.to_ascii_lowercase(), b'f' | b't'))
        {
            let message = "formatted strings have no meaning in TVMScript".to_string();
            return Err(Refusal { code: Code::Unsupported, message, offset: start });
        }
        self.token(1)
    }

    fn string(&mut self) -> Result<(), Refusal> {
        let start = self.at;
        let quote = self.peek(0);
        let triple = self.peek(1) == quote && self.peek(2) == quote;
        self.at += if triple { 3 } else { 1 };
        while self.at < self.bytes.len() {
            match self.peek(0) {
                b'\\' => self.at += 2,
                c if c == quote && !triple => {
                    self.at += 1;
                    return Ok(());
                }
                c if c == quote && self.peek(1) == quote && self.peek(2) == quote => {
                    self.at += 3;
                    return Ok(());
                }
                b'\n' | b'\r' if !triple => break,
                _ => self.at += 1,
            }
        }
        Err(Refusal { code: Code::Syntax, message: "this string is not closed".into(), offset: start })
    }

    /// The indentation of a line that starts here.
    fn indentation(&mut self) -> Result<(), Refusal> {
        let start = self.at;
        while matches!(self.peek(0), b' ' | b'\t' | 0x0c) {
            self.at += 1;
        }
        if matches!(self.peek(0), b'\n' | b'\r' | b'#') || self.at >= self.bytes.len() {
            return Ok(());
        }
        let width = self.at - start;
        while self.indents.last().is_some_and(|i| *i > width) {
            self.indents.pop();
        }
        if self.indents.last().is_none_or(|i| *i < width) {
            self.indents.push(width);
        }
        if self.indents.len() > MAX_BLOCKS {
            return Err(self.limit(format!("more than {MAX_BLOCKS} blocks are nested")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Option<Code> {
        check(text).err().map(|r| r.code)
    }

    #[test]
    fn ordinary_text_passes() {
        let list = vec!["-1.5"; 100_000].join(", ");
        assert_eq!(check(&format!("def f(x):\n    y = [{list}]\n    # ((((\n    z = \"((((\"\n")), Ok(()));
    }

    #[test]
    fn nesting_of_every_kind_is_bounded() {
        assert_eq!(code(&"(".repeat(1000)), Some(Code::Limit));
        assert_eq!(code(&"[(".repeat(1000)), Some(Code::Limit));
        assert_eq!(code(&"- ".repeat(10_000)), Some(Code::Limit));
        assert_eq!(code(&"not ".repeat(10_000)), Some(Code::Limit));
        assert_eq!(code(&"a.".repeat(10_000)), Some(Code::Limit));
        assert_eq!(code(&"a()".repeat(10_000)), Some(Code::Limit));
        let blocks: String = (0..1000).map(|i| format!("{}if x:\n", " ".repeat(i))).collect();
        assert_eq!(code(&blocks), Some(Code::Limit));
    }

    #[test]
    fn strings_that_hide_text_are_refused() {
        assert_eq!(code("f\"{x}\""), Some(Code::Unsupported));
        assert_eq!(code("rF'{x}'"), Some(Code::Unsupported));
        assert_eq!(code("x = \"abc\n"), Some(Code::Syntax));
        assert_eq!(code("x = '''abc"), Some(Code::Syntax));
    }
}
