//! Rules that replace one call by another expression, looking through variables.
//!
//! A rule sees a call and what its operands are bound to. It is tried on every binding until nothing changes; then values
//! that are computed twice become one, and what is no longer used goes.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::IRModule;
use relaxide_ir::pass::PassResult;

use crate::analysis::computable_at_compile_time;
use crate::rewrite::{Action, Rewrite, in_function, rewrite_function};
use crate::*;

/// Rules that undo each other end here.
const MAX_ROUNDS: usize = 100;

/// What is known where a rule is tried.
#[derive(Default)]
pub(super) struct Known {
    values: HashMap<AnyVar, Expr>,
    compile_time: HashSet<AnyVar>,
}

impl Known {
    /// The value behind an operand.
    pub fn value<'a>(&'a self, e: &'a Expr) -> &'a Expr {
        e.as_var().and_then(|v| self.values.get(&v)).unwrap_or(e)
    }

    /// The call of an operator behind an operand.
    pub fn op<'a>(&'a self, e: &'a Expr, name: &str) -> Option<&'a Ref<Call>> {
        let (call, found) = self.value(e).as_op_call()?;
        (found == name).then_some(call)
    }

    /// As [`op`](Self::op), of an operand that does not live as long as what is known.
    pub fn op_of(&self, e: &Expr, name: &str) -> Option<&Ref<Call>> {
        let (call, found) = self.values.get(&e.as_var()?)?.as_op_call()?;
        (found == name).then_some(call)
    }

    /// Whether an operand depends on weights and constants only.
    pub fn is_compile_time(&self, e: &Expr) -> bool {
        matches!(e, Expr::Constant(_)) || e.as_var().is_some_and(|v| self.compile_time.contains(&v))
    }
}

/// A rule: the expression that takes the place of a call, if it applies. It may be nested.
pub(super) type Rule = fn(&Known, &Ref<Call>, &mut BlockBuilder) -> Result<Option<Expr>, BuildError>;

/// Applies a rule to every function of a module.
pub(super) fn apply(pass: &str, module: IRModule, rule: Rule) -> PassResult {
    apply_to(pass, module, |_| true, rule)
}

/// Applies a rule to the functions of a module that are wanted.
pub(super) fn apply_to(pass: &str, module: IRModule, wanted: impl Fn(&Function) -> bool, rule: Rule) -> PassResult {
    let mut b = BlockBuilder::with_module(module);
    let functions: Vec<_> = b.module().functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    for (name, func) in functions {
        if !wanted(&func) {
            continue;
        }
        let new = apply_to_function(&mut b, &func, rule).map_err(|e| in_function(pass, &name, e))?;
        if new != func {
            b.module_mut().insert(name, new);
        }
    }
    Ok(b.finish())
}

fn apply_to_function(b: &mut BlockBuilder, func: &Ref<Function>, rule: Rule) -> Result<Ref<Function>, BuildError> {
    let mut current = func.clone();
    for round in 0..MAX_ROUNDS {
        let compile_time = computable_at_compile_time(&current).into_iter().collect();
        let mut rules = Rules { known: Known { compile_time, ..Known::default() }, rule, changed: false };
        let new = rewrite_function(b, &current, &mut rules)?;
        if !rules.changed {
            // A function that no rule applies to stays as it is.
            return Ok(if round == 0 { func.clone() } else { current });
        }
        current = super::clean_up(b, &new)?;
    }
    Ok(current)
}

struct Rules {
    known: Known,
    rule: Rule,
    changed: bool,
}

impl Rewrite for Rules {
    fn value(&mut self, b: &mut BlockBuilder, var: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let new = match &value {
            Expr::Call(call) => (self.rule)(&self.known, call, b)?,
            _ => None,
        };
        match new {
            Some(new) => {
                self.changed = true;
                Ok(Action::Bind(new))
            }
            None => {
                self.known.values.insert(var.clone(), value.clone());
                Ok(Action::Bind(value))
            }
        }
    }
}
