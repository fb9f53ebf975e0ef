//! Names of dimensions that are expressions over others: `past + seq`, `2*s0`, `((s0 - 1)//2) + 1`, as exporters write them.
//!
//! Such a name is an expression only where every name in it stands alone as a dimension of some input: then the program has
//! its value, and lengths that follow from each other are known to. Any other text is the name of a dimension of its own.
//!
//! Read within limits: names are short, and brackets are not deep.

use relaxide_ir::prim::{self, PrimExpr};

/// The longest name that is read.
const MAX_LENGTH: usize = 256;
/// How deep brackets may be.
const MAX_DEPTH: usize = 16;

/// The expression that a name is, with `of` for the names in it; `None` where it is none.
pub fn expression(name: &str, of: &mut dyn FnMut(&str) -> Option<PrimExpr>) -> Option<PrimExpr> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    if name.len() > MAX_LENGTH || name.chars().all(is_name) {
        return None;
    }
    let mut reader = DimNameReader { rest: name, of, depth: 0 };
    let e = reader.sum()?;
    reader.skip();
    reader.rest.is_empty().then_some(e)
}

struct DimNameReader<'a, 'f> {
    rest: &'a str,
    of: &'f mut dyn FnMut(&str) -> Option<PrimExpr>,
    depth: usize,
}

impl DimNameReader<'_, '_> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, token: &str) -> bool {
        self.skip();
        let found = self.rest.strip_prefix(token);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    fn sum(&mut self) -> Option<PrimExpr> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let mut total = self.product()?;
        loop {
            total = match () {
                () if self.take("+") => total + self.product()?,
                () if self.take("-") => total - self.product()?,
                () => break,
            };
        }
        self.depth -= 1;
        Some(total)
    }

    fn product(&mut self) -> Option<PrimExpr> {
        let mut total = self.part()?;
        loop {
            total = match () {
                () if self.take("**") => return None,
                () if self.take("*") => total * self.part()?,
                () if self.take("//") || self.take("/") => {
                    let by = self.part()?;
                    prim::floordiv(total, by.as_int().filter(|c| *c > 0)?)
                }
                () if self.take("%") => {
                    let by = self.part()?;
                    prim::floormod(total, by.as_int().filter(|c| *c > 0)?)
                }
                () => return Some(total),
            };
        }
    }

    fn part(&mut self) -> Option<PrimExpr> {
        if self.take("(") {
            let e = self.sum()?;
            return self.take(")").then_some(e);
        }
        self.skip();
        let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '.').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        if word.is_empty() {
            return None;
        }
        if let Ok(number) = word.parse::<i64>() {
            return Some(prim::int(number));
        }
        match word {
            "floor" if self.take("(") => {
                let e = self.sum()?;
                self.take(")").then_some(e)
            }
            "Max" | "Min" | "max" | "min" if self.take("(") => {
                let first = self.sum()?;
                let second = if self.take(",") { self.sum()? } else { return None };
                let e = if word.starts_with(['M', 'm']) && word.ends_with('x') {
                    prim::max(first, second)
                } else {
                    prim::min(first, second)
                };
                self.take(")").then_some(e)
            }
            _ => (self.of)(word),
        }
    }
}
