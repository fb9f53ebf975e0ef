//! Matches, their patterns and constructors in a graph.

use relaxide_ffi::Ref;
use relaxide_ir::Span;

use super::{GraphReader, JsonError};
use crate::*;

impl GraphReader<'_> {
    pub(super) fn matching(&mut self, id: usize, span: Option<Ref<Span>>) -> Result<Expr, JsonError> {
        let data = self.field_expr(id, "data")?;
        let mut clauses = Vec::new();
        for clause in self.graph.list(id, "clauses")?.to_vec() {
            let pattern = self.pattern(self.graph.need(clause, "lhs")?)?;
            let body = self.field_expr(clause, "rhs")?;
            clauses.push(Ref::new(Clause { pattern, body }));
        }
        let complete = self.graph.node(id)?.attrs.get("complete").is_none_or(|v| v != "0");
        Ok(Ref::new(Match { data, clauses, complete, span }).into())
    }

    fn pattern(&mut self, id: usize) -> Result<Pattern, JsonError> {
        self.nested(id, |r| r.pattern_inside(id))
    }

    fn patterns_of(&mut self, id: usize) -> Result<Vec<Pattern>, JsonError> {
        self.graph.list(id, "patterns")?.to_vec().into_iter().map(|p| self.pattern(p)).collect()
    }

    fn pattern_inside(&mut self, id: usize) -> Result<Pattern, JsonError> {
        Ok(match self.graph.node(id)?.key.as_str() {
            "relay.PatternWildcard" => Pattern::wildcard(),
            "relay.PatternVar" => Pattern::var(self.var(self.graph.need(id, "var")?)?),
            "relay.PatternConstructor" => {
                let constructor = self.constructor(self.graph.need(id, "constructor")?)?;
                Ref::new(PatternConstructor { constructor, patterns: self.patterns_of(id)? }).into()
            }
            "relay.PatternTuple" => Ref::new(PatternTuple { patterns: self.patterns_of(id)? }).into(),
            _ => return Err(self.graph.error(id, "this is no pattern")),
        })
    }

    pub(super) fn constructor(&mut self, id: usize) -> Result<Ref<Constructor>, JsonError> {
        let belong_to = self.type_name(self.graph.need(id, "belong_to")?)?;
        let name = self.graph.text(id, "name_hint")?;
        let found = self.constructors.get(&(belong_to.clone(), name.clone())).cloned();
        found.ok_or_else(|| self.graph.error(id, format!("the type `{belong_to}` of `{name}` is not in the graph")))
    }
}
