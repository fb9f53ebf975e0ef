//! Patterns as text: `relax.nn.relu(relax.matmul(*, w:const))`.
//!
//! | text | matches |
//! | --- | --- |
//! | `*` | anything |
//! | `relax.matmul(p, q)`, `matmul(p, q)` | a call of an operator |
//! | `relax.conv2d(p, ...)` | the same with perhaps further arguments |
//! | `@f(p)`, `@` | a call of a function of the module; any function of the module |
//! | `$f(p)`, `$` | a call of a function outside the module; any such |
//! | `const`, `var`, `var x` | a constant; a variable; a variable of that name |
//! | `(p, q)` | a tuple |
//! | `p.0`, `p._` | a field of a tuple, any field |
//! | `p \| q`, `p & q`, `!p` | either, both, not |
//! | `p{axis=1}` | with attributes |
//! | `p: float32` | of an element type |
//! | `x = p`, then `x` | a part that occurs again |

use std::collections::HashMap;
use std::fmt;

use relaxide_ir::Attrs;
use relaxide_ir::pass::{PassError, parse_value};

use super::pattern::*;
use crate::op;

/// Patterns nest at most this deep.
const MAX_DEPTH: usize = 100;

/// Reads a pattern. Parts that were named (`x = p`) are found by their names.
pub fn parse_pattern(text: &str) -> Result<(Pattern, HashMap<String, Pattern>), PassError> {
    let mut reader = PatternReader { text, at: 0, depth: 0, named: HashMap::new() };
    let pattern = reader.either()?;
    if reader.peek().is_some() {
        return Err(reader.error("the end"));
    }
    Ok((pattern, reader.named))
}

struct PatternReader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    named: HashMap<String, Pattern>,
}

impl PatternReader<'_> {
    fn error(&self, expected: &str) -> PassError {
        PassError::arguments("pattern", format!("{expected} is expected at column {} of `{}`", self.at + 1, self.text))
    }

    fn peek(&mut self) -> Option<char> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        self.at += rest.len() - rest.trim_start().len();
        self.text.get(self.at..).and_then(|rest| rest.chars().next())
    }

    fn eat(&mut self, text: &str) -> bool {
        self.peek();
        let found = self.text.get(self.at..).is_some_and(|rest| rest.starts_with(text));
        if found {
            self.at += text.len();
        }
        found
    }

    fn expect(&mut self, text: &str) -> Result<(), PassError> {
        if self.eat(text) { Ok(()) } else { Err(self.error(&format!("`{text}`"))) }
    }

    fn word(&mut self) -> String {
        self.peek();
        let rest = self.text.get(self.at..).unwrap_or_default();
        // A point followed by a digit or `_` asks for a field.
        let mut word = String::new();
        let mut chars = rest.chars().peekable();
        while let Some(c) = chars.next() {
            let next = chars.peek().copied();
            let goes_on = c.is_alphanumeric() || c == '_' || (c == '.' && next.is_some_and(char::is_alphabetic));
            if !goes_on {
                break;
            }
            word.push(c);
        }
        self.at += word.len();
        word
    }

    fn either(&mut self) -> Result<Pattern, PassError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("a pattern that nests less deep"));
        }
        let mut pattern = self.both()?;
        while self.eat("|") {
            pattern = pattern | self.both()?;
        }
        self.depth -= 1;
        Ok(pattern)
    }

    fn both(&mut self) -> Result<Pattern, PassError> {
        let mut pattern = self.part()?;
        while self.eat("&") {
            pattern = pattern & self.part()?;
        }
        Ok(pattern)
    }

    fn part(&mut self) -> Result<Pattern, PassError> {
        let mut negations = 0usize;
        while self.eat("!") {
            negations += 1;
        }
        let mut pattern = self.head()?;
        loop {
            if self.eat("(") {
                pattern = self.call(&pattern)?;
            } else if self.eat("{") {
                pattern = pattern.has_attrs(self.attrs()?);
            } else if self.eat(".") {
                let index = self.word();
                let index = if index == "_" { None } else { Some(index.parse().map_err(|_| self.error("a field"))?) };
                pattern = is_tuple_get_item(pattern, index);
            } else if self.eat(":") {
                let dtype = self.word();
                pattern = pattern.has_dtype(dtype.parse().map_err(|_| self.error("an element type"))?);
            } else {
                break;
            }
        }
        for _ in 0..negations % 2 {
            pattern = !pattern;
        }
        Ok(pattern)
    }

    fn head(&mut self) -> Result<Pattern, PassError> {
        match self.peek() {
            Some('*') => {
                self.at += 1;
                Ok(wildcard())
            }
            Some('@') => {
                self.at += 1;
                Ok(is_global(self.word()))
            }
            Some('$') => {
                self.at += 1;
                Ok(is_extern(self.word()))
            }
            Some('(') => {
                self.at += 1;
                let (fields, _) = self.list()?;
                Ok(is_tuple(fields))
            }
            _ => self.named_part(),
        }
    }

    fn named_part(&mut self) -> Result<Pattern, PassError> {
        let word = self.word();
        match word.as_str() {
            "" => Err(self.error("a pattern")),
            "const" => Ok(is_const()),
            "var" => {
                let rest = self.text.get(self.at..).unwrap_or_default();
                let has_name = rest.starts_with(' ') && rest.trim_start().starts_with(|c: char| c.is_alphabetic());
                Ok(is_var(if has_name { self.word() } else { String::new() }))
            }
            _ if self.named.contains_key(&word) => {
                self.named.get(&word).cloned().ok_or_else(|| self.error("a named part"))
            }
            _ if self.eat("=") => {
                let pattern = self.part()?;
                self.named.insert(word, pattern.clone());
                Ok(pattern)
            }
            _ if op::lookup(&word).is_some() => Ok(is_op(word)),
            _ => Err(self.error(&format!("an operator, not `{word}`,"))),
        }
    }

    fn call(&mut self, callee: &Pattern) -> Result<Pattern, PassError> {
        let (args, more) = self.list()?;
        Ok(match more {
            true if args.is_empty() => callee.call_any(),
            true => callee.call_with_more(args),
            false => callee.call(args),
        })
    }

    /// Patterns up to the closing bracket, and whether `...` stands at the end.
    fn list(&mut self) -> Result<(Vec<Pattern>, bool), PassError> {
        let mut items = Vec::new();
        loop {
            if self.eat(")") {
                return Ok((items, false));
            }
            if self.eat("...") {
                self.expect(")")?;
                return Ok((items, true));
            }
            items.push(self.either()?);
            if !self.eat(",") && self.peek() != Some(')') {
                return Err(self.error("a comma or `)`"));
            }
        }
    }

    fn attrs(&mut self) -> Result<Attrs, PassError> {
        let mut attrs = Attrs::new();
        while !self.eat("}") {
            let name = self.word();
            self.expect("=")?;
            let mut depth = 0i32;
            let rest = self.text.get(self.at..).unwrap_or_default();
            let end = rest.find(|c: char| {
                depth += i32::from("[(".contains(c)) - i32::from("])".contains(c));
                depth <= 0 && (c == ',' || c == '}')
            });
            let value = end.and_then(|end| rest.get(..end)).ok_or_else(|| self.error("a value"))?;
            attrs.0.insert(name, parse_value(value)?);
            self.at += value.len();
            self.eat(",");
        }
        Ok(attrs)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, items: &[Pattern]| {
            items.iter().enumerate().try_for_each(|(i, p)| write!(f, "{}{p}", if i == 0 { "" } else { ", " }))
        };
        match self.kind() {
            PatternKind::Wildcard => write!(f, "*"),
            PatternKind::Var(name) | PatternKind::DataflowVar(name) if name.is_empty() => write!(f, "var"),
            PatternKind::Var(name) | PatternKind::DataflowVar(name) => write!(f, "var {name}"),
            PatternKind::Global(name) => write!(f, "@{name}"),
            PatternKind::Extern(name) => write!(f, "${name}"),
            PatternKind::Constant => write!(f, "const"),
            PatternKind::Op(name) => write!(f, "{name}"),
            PatternKind::Expr(e) => write!(f, "expr({e:?})"),
            PatternKind::Call { callee, args, more } => {
                write!(f, "{callee}(")?;
                list(f, args.as_deref().unwrap_or_default())?;
                let comma = if args.as_ref().is_some_and(|a| !a.is_empty()) { ", " } else { "" };
                if *more { write!(f, "{comma}...)") } else { write!(f, ")") }
            }
            PatternKind::Function { params, body } => {
                write!(f, "function(")?;
                list(f, params)?;
                write!(f, ") -> {body}")
            }
            PatternKind::Tuple(fields) => {
                write!(f, "(")?;
                list(f, fields)?;
                write!(f, ")")
            }
            PatternKind::UnorderedTuple(fields) => {
                write!(f, "any order (")?;
                list(f, fields)?;
                write!(f, ")")
            }
            PatternKind::TupleGetItem(p, Some(index)) => write!(f, "{p}.{index}"),
            PatternKind::TupleGetItem(p, None) => write!(f, "{p}._"),
            PatternKind::Or(a, b) => write!(f, "{a} | {b}"),
            PatternKind::And(a, b) => write!(f, "{a} & {b}"),
            PatternKind::Not(p) => write!(f, "!{p}"),
            PatternKind::Type(p, ty) => write!(f, "{p}: {}", crate::display::type_text(ty)),
            PatternKind::DType(p, dtype) => write!(f, "{p}: {dtype}"),
            PatternKind::Shape(p, dims) => write!(f, "{p}: shape {}", dims_text(dims)),
            PatternKind::ShapeExpr(dims) => write!(f, "shape {}", dims_text(dims)),
            PatternKind::Attrs(p, attrs) => {
                let attrs: Vec<String> = attrs.0.iter().map(|(name, v)| format!("{name}={v:?}")).collect();
                write!(f, "{p}{{{}}}", attrs.join(", "))
            }
        }
    }
}

fn dims_text(dims: &[relaxide_ir::PrimExpr]) -> String {
    let dims: Vec<String> = dims.iter().map(ToString::to_string).collect();
    format!("({})", dims.join(", "))
}
