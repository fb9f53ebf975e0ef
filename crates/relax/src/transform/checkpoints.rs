//! What [`Gradient`](super::gradient) computes again instead of keeping.
//!
//! ```text
//! a = R.grad.start_checkpoint(x)        a, b, c stand for what was marked: x, and a stage of two bindings
//! b = R.exp(a)                          whose values nothing keeps. A derivative that needs `b` is given
//! c = R.exp(b)                              b_cp = R.exp(x)
//! d = R.grad.end_checkpoint(c)          and `d`, what the stage ends with, as `c_cp = R.exp(b_cp)`.
//! ```
//!
//! A stage is what its end is computed from, back to what is marked as a start and to the parameters. The time of a stage is spent
//! twice; its memory is free between the two.

use std::collections::HashMap;

use relaxide_ffi::Ref;

use crate::functor::{VarReplacer, used_vars};
use crate::*;

/// The stages of a block, and what of them has been computed again.
#[derive(Default)]
pub(super) struct Checkpoints {
    /// What the marks stand for.
    marked: VarReplacer,
    /// The bindings of stages.
    stages: HashMap<AnyVar, Binding>,
    /// What stands for their variables behind the block.
    again: VarReplacer,
}

impl Checkpoints {
    /// The bindings of a block without the marks, and the stages that the marks said.
    pub(super) fn of(bindings: &[Binding]) -> (Vec<Binding>, Checkpoints) {
        let mut found = Checkpoints::default();
        let (mut starts, mut ends, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        for binding in bindings {
            let mark = binding.value().as_op_call().and_then(|(call, name)| Some((name, call.args.first()?)));
            let Some((name @ ("grad.start_checkpoint" | "grad.end_checkpoint"), value)) = mark else {
                kept.push(found.marked.remake_binding(binding));
                continue;
            };
            let value = found.marked.mutate_expr(value);
            let var = binding.var().clone();
            let is_start = name == "grad.start_checkpoint";
            if is_start { &mut starts } else { &mut ends }.extend(used_vars(&value));
            if matches!(var, AnyVar::Dataflow(_)) {
                found.marked.0.insert(var, value);
                continue;
            }
            // What leaves the block keeps its variable: what the mark stands for is not seen outside.
            starts.extend(is_start.then(|| var.clone()));
            kept.push(Ref::new(VarBinding { var, value }).into());
        }
        let bound: HashMap<AnyVar, &Binding> = kept.iter().map(|binding| (binding.var().clone(), binding)).collect();
        while let Some(var) = ends.pop() {
            let Some(binding) = bound.get(&var).filter(|_| !starts.contains(&var)) else { continue };
            if found.stages.insert(var, (*binding).clone()).is_none() {
                ends.extend(used_vars(binding.value()));
            }
        }
        (kept, found)
    }

    /// What the marks stand for, in an expression behind them.
    pub(super) fn unmarked(&mut self, e: &Expr) -> Expr {
        self.marked.mutate_expr(e)
    }

    /// An expression as a derivative sees it: what it needs of a stage is computed again in front.
    pub(super) fn recomputed(&mut self, b: &mut BlockBuilder, e: &Expr) -> Result<Expr, BuildError> {
        let mut needed: Vec<AnyVar> = used_vars(e).into_iter().collect();
        while let Some(var) = needed.last().cloned() {
            let binding = self.stages.get(&var).filter(|_| !self.again.0.contains_key(&var));
            let Some(binding) = binding.cloned() else {
                needed.pop();
                continue;
            };
            let is_open = |used: &AnyVar| self.stages.contains_key(used) && !self.again.0.contains_key(used);
            let open: Vec<AnyVar> = used_vars(binding.value()).into_iter().filter(is_open).collect();
            if open.is_empty() {
                let value = self.again.mutate_expr(binding.value());
                let copy = b.emit_named(&format!("{}_cp", var.name()), value)?;
                self.again.0.insert(var, copy);
            }
            needed.extend(open);
        }
        Ok(self.again.mutate_expr(e))
    }

    /// A call as a derivative sees it.
    pub(super) fn recomputed_call(&mut self, b: &mut BlockBuilder, call: &Ref<Call>) -> Result<Ref<Call>, BuildError> {
        match self.recomputed(b, &call.into())? {
            Expr::Call(call) => Ok(call),
            _ => Ok(call.clone()),
        }
    }
}
