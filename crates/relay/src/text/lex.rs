//! Text to tokens.

use relaxide_ffi::DataType;

use super::names::{begins_name, in_name, read_quoted};

/// A token with its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub kind: Tok,
    /// Byte offsets.
    pub start: usize,
    pub end: usize,
}

/// What a token is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tok {
    /// A name, a keyword, or a part of an operator's name.
    Name(String),
    /// A name between back quotes, which is no keyword and no operator.
    Quoted(String),
    /// `%name`
    Local(String),
    /// `%0`
    Graph(u64),
    /// `@name`
    Global(String),
    /// An integer with its element type.
    Int(i64, DataType),
    /// A number with its element type.
    Float(f64, DataType),
    /// Text.
    Str(String),
    /// `meta[key][index]`
    Meta(String, usize),
    /// `#[version = "…"]`, or `v…` of old
    Version(String),
    /// `#[metadata]`, or `METADATA:` of old; the rest of the text is JSON, which begins at the token's end.
    Metadata,
    /// Punctuation.
    Sym(&'static str),
    /// The end.
    End,
}

impl Tok {
    /// As an error shows it.
    pub fn shown(&self) -> String {
        match self {
            Tok::Name(name) | Tok::Quoted(name) => format!("`{name}`"),
            Tok::Local(name) => format!("`%{name}`"),
            Tok::Graph(n) => format!("`%{n}`"),
            Tok::Global(name) => format!("`@{name}`"),
            Tok::Int(v, _) => format!("`{v}`"),
            Tok::Float(v, _) => format!("`{v}`"),
            Tok::Str(text) => format!("\"{text}\""),
            Tok::Meta(key, i) => format!("`meta[{key}][{i}]`"),
            Tok::Version(_) => "a version header".into(),
            Tok::Metadata => "the metadata".into(),
            Tok::Sym(text) => format!("`{text}`"),
            Tok::End => "the end of the text".into(),
        }
    }
}

/// A problem at a place.
#[derive(Clone, Debug)]
pub(super) struct LexError {
    pub message: String,
    pub start: usize,
    pub end: usize,
}

/// Punctuation, longer pieces first.
const SYMBOLS: &[&str] = &[
    "->", "=>", "<=", ">=", "==", "!=", "(", ")", "[", "]", "{", "}", ",", ";", ":", "=", "<", ">", "*", "/", "+", "-",
    ".", "?",
];

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    tokens: Vec<Token>,
}

/// The tokens of a text.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, LexError> {
    let mut lexer = Lexer { text, at: 0, tokens: Vec::new() };
    while lexer.next()? {}
    Ok(lexer.tokens)
}

impl Lexer<'_> {
    fn byte(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn error<T>(&self, start: usize, message: impl Into<String>) -> Result<T, LexError> {
        Err(LexError { message: message.into(), start, end: self.at.max(start + 1) })
    }

    fn push(&mut self, start: usize, kind: Tok) {
        self.tokens.push(Token { kind, start, end: self.at });
    }

    /// Reads a token; false at the end.
    fn next(&mut self) -> Result<bool, LexError> {
        self.skip_blank()?;
        let start = self.at;
        let c = self.byte(0);
        if self.at >= self.text.len() {
            self.push(start, Tok::End);
            return Ok(false);
        }
        match c {
            b'%' | b'@' => self.sigil(c)?,
            b'"' => self.string()?,
            b'`' => {
                let name = self.quoted()?;
                self.push(start, Tok::Quoted(name));
            }
            b'#' => return self.header(),
            _ if c.is_ascii_digit() => self.number(false)?,
            b'-' if self.minus_belongs_to_number() => self.minus()?,
            b'v' if self.tokens.is_empty() && self.rest().starts_with("v0.") => self.older_version(),
            b'M' if self.rest().starts_with("METADATA:") => {
                self.at += "METADATA:".len();
                return self.metadata(start);
            }
            _ if begins_name(c) => self.name()?,
            _ => self.symbol()?,
        }
        Ok(true)
    }

    fn skip_blank(&mut self) -> Result<(), LexError> {
        loop {
            let start = self.at;
            if self.rest().starts_with("//") {
                let line = self.rest().find('\n').unwrap_or(self.rest().len());
                self.at += line;
            } else if self.rest().starts_with("/*") {
                self.comment()?;
            } else if self.byte(0).is_ascii_whitespace() && self.at < self.text.len() {
                self.at += 1;
            }
            if self.at == start {
                return Ok(());
            }
        }
    }

    /// A comment, which may hold others.
    fn comment(&mut self) -> Result<(), LexError> {
        let start = self.at;
        let mut depth = 0usize;
        while self.at < self.text.len() {
            match (self.byte(0), self.byte(1)) {
                (b'/', b'*') => (depth, self.at) = (depth + 1, self.at + 2),
                (b'*', b'/') => (depth, self.at) = (depth - 1, self.at + 2),
                _ => self.at += 1,
            }
            if depth == 0 {
                return Ok(());
            }
        }
        self.error(start, "this comment is not closed")
    }

    fn run_of(&mut self, accept: impl Fn(u8) -> bool) -> String {
        let start = self.at;
        while self.at < self.text.len() && accept(self.byte(0)) {
            self.at += 1;
        }
        self.text.get(start..self.at).unwrap_or_default().to_string()
    }

    fn sigil(&mut self, sigil: u8) -> Result<(), LexError> {
        let start = self.at;
        self.at += 1;
        if sigil == b'%' && self.byte(0).is_ascii_digit() {
            let digits = self.run_of(|c| c.is_ascii_digit());
            let Ok(number) = digits.parse() else {
                return self.error(start, "this number of a graph node is too large");
            };
            self.push(start, Tok::Graph(number));
            return Ok(());
        }
        let name = match self.byte(0) {
            b'`' if sigil == b'@' => self.quoted()?,
            _ => self.run_of(|c| in_name(c) || c == b'/'),
        };
        if name.is_empty() {
            return self.error(start, format!("`{}` must be followed by a name", sigil as char));
        }
        self.push(start, if sigil == b'%' { Tok::Local(name) } else { Tok::Global(name) });
        Ok(())
    }

    fn quoted(&mut self) -> Result<String, LexError> {
        let start = self.at;
        let Some((name, length)) = read_quoted(self.rest()) else {
            return self.error(start, "this name is not closed with a back quote");
        };
        self.at += length;
        if name.is_empty() {
            return self.error(start, "a name between back quotes cannot be empty");
        }
        Ok(name)
    }

    fn string(&mut self) -> Result<(), LexError> {
        let start = self.at;
        let Some(length) = self.rest().get(1..).and_then(|rest| rest.find('"')) else {
            return self.error(start, "this text is not closed");
        };
        let text = self.text.get(start + 1..start + 1 + length).unwrap_or_default().to_string();
        self.at = start + length + 2;
        self.push(start, Tok::Str(text));
        Ok(())
    }

    fn header(&mut self) -> Result<bool, LexError> {
        let start = self.at;
        if self.rest().starts_with("#[metadata]") {
            self.at += "#[metadata]".len();
            return self.metadata(start);
        }
        let Some(close) = self.rest().find(']') else { return self.error(start, "expected `#[version = \"0.0.5\"]`") };
        let inside = self.text.get(start + 2..start + close).unwrap_or_default();
        let version = inside.trim().strip_prefix("version").map(str::trim_start);
        let version = version.and_then(|rest| rest.strip_prefix('=')).map(str::trim);
        let version = version.and_then(|rest| rest.strip_prefix('"')?.strip_suffix('"'));
        let Some(version) = version.map(str::to_string) else {
            return self.error(start, "expected `#[version = \"0.0.5\"]` or `#[metadata]`");
        };
        self.at += close + 1;
        self.push(start, Tok::Version(version));
        Ok(true)
    }

    /// The metadata are all that follows.
    fn metadata(&mut self, start: usize) -> Result<bool, LexError> {
        self.push(start, Tok::Metadata);
        let end = self.text.len();
        self.tokens.push(Token { kind: Tok::End, start: end, end });
        Ok(false)
    }

    /// The header of 0.6, such as `v0.0.4`.
    fn older_version(&mut self) {
        let start = self.at;
        let version = self.run_of(|c| c == b'v' || c.is_ascii_digit() || c == b'.');
        self.push(start, Tok::Version(version));
    }

    /// Whether a minus is a sign: digits or `inf` follow, perhaps behind further signs, and no operand stands before it.
    fn minus_belongs_to_number(&self) -> bool {
        let rest = self.rest().trim_start_matches('-');
        if !(rest.starts_with(|c: char| c.is_ascii_digit()) || rest.starts_with("inf")) {
            return false;
        }
        let operand = self.tokens.last().is_some_and(|last| match &last.kind {
            Tok::Name(name) => !matches!(name.as_str(), "let" | "in"),
            Tok::Sym(text) => matches!(*text, ")" | "]" | "}"),
            Tok::Quoted(_)
            | Tok::Local(_)
            | Tok::Graph(_)
            | Tok::Global(_)
            | Tok::Int(..)
            | Tok::Float(..)
            | Tok::Meta(..) => true,
            _ => false,
        });
        !operand
    }

    fn minus(&mut self) -> Result<(), LexError> {
        let signs = self.run_of(|c| c == b'-').len();
        let negative = signs % 2 == 1;
        if self.rest().starts_with("inf") { self.infinity(negative) } else { self.number(negative) }
    }

    fn infinity(&mut self, negative: bool) -> Result<(), LexError> {
        let start = self.at;
        self.at += 3;
        if self.byte(0) != b'f' {
            return self.error(start, "infinity is written `inff`");
        }
        let value = if negative { f64::NEG_INFINITY } else { f64::INFINITY };
        self.suffixed(start, "inf", Some(value))
    }

    fn number(&mut self, negative: bool) -> Result<(), LexError> {
        let start = self.at;
        self.run_of(|c| c.is_ascii_digit() || c == b'.');
        let mantissa_end = self.at;
        if matches!(self.byte(0), b'e' | b'E') {
            self.at += 1;
            if matches!(self.byte(0), b'+' | b'-') {
                self.at += 1;
            }
            if self.run_of(|c| c.is_ascii_digit()).is_empty() {
                self.at = mantissa_end;
            }
        }
        let digits = self.text.get(start..self.at).unwrap_or_default();
        let text = if negative { format!("-{digits}") } else { digits.to_string() };
        self.suffixed(start, &text, None)
    }

    /// A number's element type, behind its digits.
    fn suffixed(&mut self, start: usize, text: &str, value: Option<f64>) -> Result<(), LexError> {
        let suffix = self.run_of(in_name);
        let width = |text: &str, default: u8| match text {
            "" => Some(default),
            text => text.parse().ok(),
        };
        if let Some(bits) = suffix.strip_prefix('f') {
            let bits = width(bits, 32);
            let Some(bits) = bits.filter(|bits| [16, 32, 64].contains(bits)) else {
                return self.error(start, format!("invalid numeric suffix `{suffix}`"));
            };
            let Some(value) = value.or_else(|| text.parse().ok()) else {
                return self.error(start, format!("invalid number `{text}`"));
            };
            self.push(start, Tok::Float(value, DataType::float(bits)));
            return Ok(());
        }
        let Ok(value) = text.parse::<i64>() else {
            return self.error(start, format!("invalid integer number `{text}`; a number with a point ends with `f`"));
        };
        let bits = match suffix.strip_prefix('i') {
            None if suffix.is_empty() => Some(if i32::try_from(value).is_ok() { 32 } else { 64 }),
            None => None,
            Some(bits) => width(bits, 32),
        };
        match bits {
            Some(bits @ (16 | 32 | 64)) => self.push(start, Tok::Int(value, DataType::int(bits))),
            Some(bits) => return self.error(start, format!("Unrecognized int scalar width: {bits}")),
            None => return self.error(start, format!("invalid numeric suffix `{suffix}`")),
        }
        Ok(())
    }

    fn name(&mut self) -> Result<(), LexError> {
        let start = self.at;
        if self.rest().starts_with("inff") && !in_name(self.byte(4)) || self.rest().starts_with("inff1") {
            return self.infinity(false);
        }
        let name = self.run_of(in_name);
        if name == "meta" && self.byte(0) == b'[' {
            return self.meta(start);
        }
        if name == "match" && self.byte(0) == b'?' {
            self.at += 1;
            self.push(start, Tok::Name("match?".into()));
            return Ok(());
        }
        self.push(start, Tok::Name(name));
        Ok(())
    }

    fn meta(&mut self, start: usize) -> Result<(), LexError> {
        let bracket = |lexer: &mut Self| {
            let inside = lexer.rest().strip_prefix('[')?;
            let inside = inside.get(..inside.find(']')?)?.to_string();
            lexer.at += inside.len() + 2;
            Some(inside)
        };
        let found = bracket(self).zip(bracket(self)).and_then(|(key, index)| Some((key, index.trim().parse().ok()?)));
        match found {
            Some((key, index)) => self.push(start, Tok::Meta(key, index)),
            None => return self.error(start, "expected `meta[KEY][INDEX]`"),
        }
        Ok(())
    }

    fn symbol(&mut self) -> Result<(), LexError> {
        let start = self.at;
        let Some(symbol) = SYMBOLS.iter().find(|symbol| self.rest().starts_with(**symbol)) else {
            let found = self.rest().chars().next().unwrap_or_default();
            self.at += found.len_utf8();
            return self.error(start, format!("the character `{found}` means nothing here"));
        };
        self.at += symbol.len();
        self.push(start, Tok::Sym(symbol));
        Ok(())
    }
}
