//! Dimensions: expressions over symbols, in the form in which SymPy prints them.
//!
//! ```text
//! Add(Mul(Integer(2), Symbol('s77', positive=True, integer=True)), Integer(1))   ──▶   2 * s77 + 1
//! ```
//!
//! A symbol is a dimension of the program from where a value first has it: an input, or the result of an operator whose
//! length depends on data (`nonzero`).

use std::collections::HashMap;

use relaxide_frontend::Captures;
use relaxide_ir::Var;
use relaxide_ir::arith::dims;
use relaxide_ir::prim::{self, PrimExpr};

use crate::program::SymInt;

/// How deep expressions may be nested.
const MAX_DEPTH: usize = 64;

/// How long the text of one expression may be.
const MAX_LENGTH: usize = 1 << 16;

/// Why the text of a dimension is not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SymbolError {
    /// It is too long.
    #[error("an expression of {0} characters; at most {MAX_LENGTH} are read")]
    Length(usize),
    /// Something follows a whole expression.
    #[error("`{0}` goes on where an expression ends")]
    Trailing(String),
    /// Something else stands where a part of an expression is expected.
    #[error("`{text}` is no expression over dimensions: {wanted} is expected at character {at}")]
    Unexpected {
        /// The whole text.
        text: String,
        /// What is expected.
        wanted: &'static str,
        /// Where.
        at: usize,
    },
    /// A function that has no meaning for dimensions, or not with so many arguments.
    #[error("`{name}` of {count} is not known over dimensions")]
    Function {
        /// Its name.
        name: String,
        /// How many arguments it was given.
        count: usize,
    },
}

/// The symbols of a function of the program, by name.
#[derive(Debug, Default)]
pub struct Symbols {
    dims: HashMap<String, PrimExpr>,
    /// The symbols of the function around this one, and what is handed in from there.
    around: Option<Box<(Symbols, Captures)>>,
}

impl Symbols {
    /// From here on symbols are those of a function inside, which takes from the one around it what it needs.
    pub fn enter(&mut self, captures: Captures) {
        let outer = std::mem::take(self);
        self.around = Some(Box::new((outer, captures)));
    }

    /// Behind the function inside: what it takes from this one.
    pub fn leave(&mut self) -> Captures {
        let Some(around) = self.around.take() else { return Captures::default() };
        let (outer, captures) = *around;
        *self = outer;
        captures
    }

    /// The dimension of a name.
    pub fn var(&mut self, name: &str) -> PrimExpr {
        let known = self.known(name);
        known.unwrap_or_else(|| self.dims.entry(name.to_string()).or_insert(PrimExpr::Var(Var::dim(name))).clone())
    }

    /// The dimension of a name that something gave before, here or around.
    fn known(&mut self, name: &str) -> Option<PrimExpr> {
        if let Some(dim) = self.dims.get(name) {
            return Some(dim.clone());
        }
        let (outer, captures) = self.around.as_deref_mut()?;
        let dim = captures.dim(&outer.known(name)?);
        self.dims.insert(name.to_string(), dim.clone());
        Some(dim)
    }

    /// What a dimension of the file is in the program.
    pub fn dim(&mut self, dim: &SymInt) -> Result<PrimExpr, SymbolError> {
        match dim {
            SymInt::Known(value) => Ok(prim::int(*value)),
            SymInt::Expr(expr) => self.parse(&expr.expr_str),
        }
    }

    /// What dimensions of the file are in the program.
    pub fn dims(&mut self, dims: &[SymInt]) -> Result<Vec<PrimExpr>, SymbolError> {
        dims.iter().map(|dim| self.dim(dim)).collect()
    }

    /// Reads an expression.
    pub fn parse(&mut self, text: &str) -> Result<PrimExpr, SymbolError> {
        if text.len() > MAX_LENGTH {
            return Err(SymbolError::Length(text.len()));
        }
        let mut reader = SymbolReader { text: text.as_bytes(), at: 0, symbols: self };
        let value = reader.expr(0)?;
        reader.space();
        if reader.at != text.len() {
            return Err(SymbolError::Trailing(text.to_string()));
        }
        Ok(dims::simplify(&value))
    }
}

struct SymbolReader<'t> {
    text: &'t [u8],
    at: usize,
    symbols: &'t mut Symbols,
}

impl SymbolReader<'_> {
    fn space(&mut self) {
        while self.peek().is_some_and(|c| c.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn take(&mut self, c: u8) -> bool {
        self.space();
        let found = self.peek() == Some(c);
        self.at += usize::from(found);
        found
    }

    fn fail<T>(&self, wanted: &'static str) -> Result<T, SymbolError> {
        let text = String::from_utf8_lossy(self.text).into_owned();
        Err(SymbolError::Unexpected { text, wanted, at: self.at })
    }

    fn word(&mut self, more: impl Fn(u8) -> bool) -> String {
        self.space();
        let start = self.at;
        while self.peek().is_some_and(&more) {
            self.at += 1;
        }
        String::from_utf8_lossy(&self.text[start..self.at]).into_owned()
    }

    fn expr(&mut self, depth: usize) -> Result<PrimExpr, SymbolError> {
        if depth > MAX_DEPTH {
            return self.fail("an expression of less depth");
        }
        let name = self.word(|c| c.is_ascii_alphanumeric() || c == b'_' || c == b'-');
        if let Ok(value) = name.parse::<i64>() {
            return Ok(prim::int(value));
        }
        if name.is_empty() {
            return self.fail("a name");
        }
        if !self.take(b'(') {
            return Ok(self.symbols.var(&name));
        }
        match name.as_str() {
            "Symbol" => self.symbol(),
            "Integer" => self.integer(),
            _ => {
                let args = self.args(depth)?;
                let count = args.len();
                apply(&name, &args).ok_or(SymbolError::Function { name, count })
            }
        }
    }

    fn symbol(&mut self) -> Result<PrimExpr, SymbolError> {
        if !self.take(b'\'') {
            return self.fail("a name in quotes");
        }
        let name = self.word(|c| c.is_ascii_alphanumeric() || c == b'_');
        if name.is_empty() || !self.take(b'\'') {
            return self.fail("a name in quotes");
        }
        // Assumptions, such as `positive=True`.
        while self.take(b',') {
            self.word(|c| c.is_ascii_alphanumeric() || c == b'_' || c == b'=');
        }
        if !self.take(b')') {
            return self.fail("`)`");
        }
        Ok(self.symbols.var(&name))
    }

    fn integer(&mut self) -> Result<PrimExpr, SymbolError> {
        let digits = self.word(|c| c.is_ascii_digit() || c == b'-');
        let Ok(value) = digits.parse::<i64>() else { return self.fail("an integer of 64 bits") };
        if !self.take(b')') {
            return self.fail("`)`");
        }
        Ok(prim::int(value))
    }

    fn args(&mut self, depth: usize) -> Result<Vec<PrimExpr>, SymbolError> {
        let mut args = vec![self.expr(depth + 1)?];
        while self.take(b',') {
            args.push(self.expr(depth + 1)?);
        }
        if self.take(b')') { Ok(args) } else { self.fail("`)`") }
    }
}

/// A function of SymPy's, or of PyTorch's beside them.
fn apply(name: &str, args: &[PrimExpr]) -> Option<PrimExpr> {
    let fold = |f: fn(PrimExpr, PrimExpr) -> PrimExpr| args.iter().cloned().reduce(f);
    let pair = || if let [a, b] = args { Some((a.clone(), b.clone())) } else { None };
    match name {
        "Add" => fold(|a, b| a + b),
        "Mul" => fold(|a, b| a * b),
        "Max" => fold(prim::max),
        "Min" => fold(prim::min),
        "FloorDiv" | "CleanDiv" => pair().map(|(a, b)| prim::floordiv(a, b)),
        "CeilDiv" => pair().map(|(a, b)| prim::floordiv(a + b.clone() - 1, b)),
        "Mod" | "PythonMod" => pair().map(|(a, b)| prim::floormod(a, b)),
        "ModularIndexing" => match args {
            [base, divisor, modulus] => Some(prim::floormod(prim::floordiv(base, divisor), modulus)),
            _ => None,
        },
        "Pow" => {
            let (base, exponent) = pair()?;
            let exponent = exponent.as_int().filter(|n| (0..=16).contains(n))?;
            Some((0..exponent).fold(prim::int(1), |product, _| product * base.clone()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        Symbols::default().parse(text).map(|e| e.to_string()).map_err(|e| e.to_string())
    }

    #[test]
    fn expressions_over_symbols() {
        let s = "Symbol('s77', positive=True, integer=True)";
        assert_eq!(read(&format!("Add(Mul(Integer(2), {s}), Integer(-1))")), Ok("s77 * 2 - 1".into()));
        assert_eq!(read(&format!("FloorDiv({s}, Integer(2))")), Ok("s77 // 2".into()));
        assert_eq!(read("Pow(Symbol('a', integer=True), Integer(2))"), Ok("a * a".into()));
        assert_eq!(read("s3"), Ok("s3".into()));
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for text in
            ["", "Add(", "Add()", "Symbol(s0)", "Integer(x)", "Sin(s0)", "s0 s1", "Integer(99999999999999999999)"]
        {
            assert!(read(text).is_err(), "{text}");
        }
        let deep = format!("{}s0{}", "Add(".repeat(200), ")".repeat(200));
        assert!(read(&deep).is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_text_stops_the_reader(text in "[A-Za-z0-9_(),'= -]{0,60}") {
            let _ = read(&text);
        }
    }
}
