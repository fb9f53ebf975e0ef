//! Arguments of a call in the text, by position or by name.

use ruff_python_ast::{self as ast, Expr};
use ruff_text_size::{Ranged, TextRange};

use super::{Parsed, Parser};
use relaxide_ir::diagnostic::Code;

/// Arguments that have not been asked for yet.
pub(super) struct Args<'a> {
    /// The whole call, for messages.
    pub range: TextRange,
    name: String,
    positional: std::vec::IntoIter<&'a Expr>,
    keywords: Vec<(&'a str, &'a ast::Keyword)>,
}

impl<'a> Args<'a> {
    /// The arguments of a call of `name`.
    pub fn of(p: &Parser<'_>, name: &str, call: &'a ast::ExprCall) -> Parsed<Args<'a>> {
        let mut keywords: Vec<(&str, &ast::Keyword)> = Vec::new();
        for keyword in &call.arguments.keywords {
            let Some(arg) = &keyword.arg else {
                return Err(p.error(Code::Unsupported, "`**` has no meaning in TVMScript", keyword.range));
            };
            if keywords.iter().any(|(known, _)| *known == arg.as_str()) {
                return Err(p.error(Code::Arguments, format!("`{arg}` is given twice"), keyword.range));
            }
            keywords.push((arg.as_str(), keyword));
        }
        // Calls behind `T.` take as many values as there are, which is theirs to count.
        let star = call.arguments.args.iter().find(|a| matches!(a, Expr::Starred(_)));
        if let Some(star) = star.filter(|_| !name.starts_with("T.")) {
            return Err(p.error(Code::Unsupported, "`*` has no meaning in TVMScript", star.range()));
        }
        let positional: Vec<_> = call.arguments.args.iter().collect();
        Ok(Args { range: call.range(), name: name.to_string(), positional: positional.into_iter(), keywords })
    }

    /// The next argument by position, else the one of that name.
    pub fn take(&mut self, name: &str) -> Option<&'a Expr> {
        self.positional.next().or_else(|| self.keyword(name))
    }

    /// How many arguments by position are left.
    pub fn positions(&self) -> usize {
        self.positional.len()
    }

    /// Whether there is an argument of that name.
    pub fn names(&self, name: &str) -> bool {
        self.keywords.iter().any(|(known, _)| *known == name)
    }

    /// Whether the next argument by position is text.
    pub fn next_is_text(&self) -> bool {
        matches!(self.positional.as_slice().first(), Some(Expr::StringLiteral(_)))
    }

    /// The argument of that name; not by position.
    pub fn keyword(&mut self, name: &str) -> Option<&'a Expr> {
        let index = self.keywords.iter().position(|(known, _)| *known == name)?;
        Some(&self.keywords.remove(index).1.value)
    }

    /// As [`Args::take`], where there must be one.
    pub fn required(&mut self, p: &Parser<'_>, name: &str) -> Parsed<&'a Expr> {
        self.take(name)
            .ok_or_else(|| p.error(Code::Arguments, format!("`{}` needs the argument `{name}`", self.name), self.range))
    }

    /// All positional arguments that are left.
    pub fn rest(&mut self) -> Vec<&'a Expr> {
        self.positional.by_ref().collect()
    }

    /// All named arguments that are left.
    pub fn rest_keywords(&mut self) -> Vec<(&'a str, &'a Expr)> {
        self.keywords.drain(..).map(|(name, keyword)| (name, &keyword.value)).collect()
    }

    /// Complains about what nobody asked for.
    pub fn finish(mut self, p: &Parser<'_>) -> Parsed<()> {
        if let Some(extra) = self.positional.next() {
            return Err(p.error(Code::Arguments, format!("`{}` has too many arguments", self.name), extra.range()));
        }
        match self.keywords.first() {
            Some((name, keyword)) => {
                Err(p.error(Code::Arguments, format!("`{}` has no argument `{name}`", self.name), keyword.range))
            }
            None => Ok(()),
        }
    }
}
