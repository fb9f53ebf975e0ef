//! A `match` as instructions.
//!
//! Cases are tried in order: the tests of a case jump to the next where they fail, so no code is copied however deeply
//! patterns are nested, and a case that falls through after some of its tests goes on at the next. Behind the last is
//! `Fatal`.

use relaxide_ffi::Ref;
use relaxide_relay_vm::Instruction;

use super::CompileError;
use super::blocks::Block;
use super::emit::FunctionEmitter;
use super::lines::Label;
use crate::*;

impl FunctionEmitter<'_, '_> {
    pub(super) fn matching(
        &mut self,
        var: &Ref<Var>,
        data: &Expr,
        clauses: &[(Pattern, Block)],
    ) -> Result<(), CompileError> {
        let data = self.atom(data, self.device(var))?;
        let result = self.fresh();
        let end = self.new_label();
        for (pattern, body) in clauses {
            let next = self.new_label();
            self.test(pattern, data, next);
            let value = self.block(body, self.device(var))?;
            self.push(Instruction::Move { from: value, dst: result });
            self.goto(end);
            self.label(next);
        }
        self.push(Instruction::Fatal);
        self.label(end);
        self.bind(var, result);
        Ok(())
    }

    /// Goes on behind if a value has the form, with its names bound; else jumps.
    fn test(&mut self, pattern: &Pattern, value: i64, fail: Label) {
        match pattern {
            Pattern::Wildcard(_) => {}
            Pattern::Var(p) => self.bind(&p.var, value),
            Pattern::Constructor(p) => {
                // The only constructor of a type needs no test.
                if p.constructor.siblings != 1 {
                    let (tag, wanted, matches) = (self.fresh(), self.fresh(), self.new_label());
                    self.push(Instruction::GetTag { object: value, dst: tag });
                    self.push(Instruction::LoadConsti { value: p.constructor.tag, dst: wanted });
                    self.choice(tag, wanted, matches, fail);
                    self.label(matches);
                }
                self.test_fields(&p.patterns, value, fail);
            }
            Pattern::Tuple(p) => self.test_fields(&p.patterns, value, fail),
        }
    }

    fn test_fields(&mut self, patterns: &[Pattern], value: i64, fail: Label) {
        for (index, pattern) in patterns.iter().enumerate() {
            if matches!(pattern, Pattern::Wildcard(_)) {
                continue;
            }
            let field = self.fresh();
            self.push(Instruction::GetField { object: value, index: index as i64, dst: field });
            self.test(pattern, field, fail);
        }
    }
}
