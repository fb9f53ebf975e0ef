//! Expressions over sampled numbers, read from the text that JSON of a trace keeps them in: `v2 * 2`, `(v0 + 1) // v3`.

use std::collections::HashMap;

use relaxide_ir::DataType;
use relaxide_ir::prim::{self, BinaryOp, PrimExpr, VSCALE};

use super::rv::Rv;

/// Expressions may be this deep.
const DEEPEST: usize = 100;

/// The expression of a text; `None` where it is none over known names.
pub(super) fn read(text: &str, known: &HashMap<String, Rv>) -> Option<PrimExpr> {
    let mut reader = FactorReader { rest: text, known, depth: 0 };
    let e = reader.sum()?;
    reader.rest.trim().is_empty().then_some(e)
}

struct FactorReader<'a> {
    rest: &'a str,
    known: &'a HashMap<String, Rv>,
    depth: usize,
}

impl FactorReader<'_> {
    fn eat(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start();
        match rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn sum(&mut self) -> Option<PrimExpr> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let mut e = self.product()?;
        loop {
            let op = match () {
                _ if self.eat("+") => BinaryOp::Add,
                _ if self.eat("-") => BinaryOp::Sub,
                _ => break,
            };
            e = prim::binary(op, e, self.product()?);
        }
        self.depth -= 1;
        Some(e)
    }

    fn product(&mut self) -> Option<PrimExpr> {
        let mut e = self.operand()?;
        loop {
            let op = match () {
                _ if self.eat("//") => BinaryOp::FloorDiv,
                _ if self.eat("*") => BinaryOp::Mul,
                _ if self.eat("%") => BinaryOp::FloorMod,
                _ => return Some(e),
            };
            e = prim::binary(op, e, self.operand()?);
        }
    }

    fn operand(&mut self) -> Option<PrimExpr> {
        if self.eat("(") {
            let e = self.sum()?;
            return self.eat(")").then_some(e);
        }
        if self.eat("-") {
            self.depth += 1;
            return (self.depth < DEEPEST).then(|| self.operand())??.as_int().and_then(i64::checked_neg).map(number);
        }
        for (name, op) in [("T.min(", BinaryOp::Min), ("T.max(", BinaryOp::Max)] {
            if self.eat(name) {
                let a = self.sum()?;
                let b = self.eat(",").then(|| self.sum())??;
                return self.eat(")").then(|| prim::binary(op, a, b));
            }
        }
        if self.eat("T.vscale()") {
            return Some(prim::call(DataType::int(32), VSCALE, Vec::new()));
        }
        if self.eat("T.int64(") {
            let e = self.sum()?.as_int()?;
            return self.eat(")").then(|| prim::int(e));
        }
        let rest = self.rest.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.rest = rest;
        match self.known.get(word) {
            Some(Rv::Number(var)) => Some(PrimExpr::from(var)),
            _ => word.parse().ok().map(number),
        }
    }
}

/// A number in the type of sampled numbers where it fits.
fn number(value: i64) -> PrimExpr {
    let dtype = DataType::int(32);
    if prim::holds(dtype, value) { prim::int_of(dtype, value) } else { prim::int(value) }
}

#[cfg(test)]
mod tests {
    use relaxide_ir::Var;

    use super::*;

    #[test]
    fn what_traces_write_is_read() {
        let var = Var::prim("v1", DataType::int(32));
        let known = HashMap::from([("v1".to_string(), Rv::Number(var))]);
        for text in ["v1 * 2", "(v1 + 1) // 3 - 1", "min(v1, 4) % 2", "7"] {
            let written = text.replace("min", "T.min");
            assert_eq!(read(&written, &known).unwrap().to_string(), text);
        }
        for text in ["v2", "v1 *", "v1 2", "", "(v1", "v1 ** 2"] {
            assert!(read(text, &known).is_none(), "{text}");
        }
    }
}
