//! EliminateCommonSubexpr: what was computed is not computed again.
//!
//! ```text
//! a = R.exp(x)                     a = R.exp(x)
//! b = R.exp(x)              →      b = a
//! c = R.add(a, b)                  c = R.add(a, a)
//! ```
//!
//! Two values are equal if they are calls of one pure operator, function or kernel over the same operands with the same attributes,
//! or checks of one value against one type.
//! The first one's variable takes the place of the second, where it is visible: a dataflow variable does not leave its block,
//! and a branch's values do not leave the branch. The second stays as a name, which CanonicalizeBindings takes away.
//!
//! **Leaves alone** values that a call overwrites (`call_tir_inplace`, `call_inplace_packed`): once it has run, two that
//! were equal are not.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::{FreeVars, Ref, structural_equal, structural_key};
use relaxide_ir::Type;
use relaxide_ir::pass::{ParamDefault, ParamKind, PassInfo, PassParam};

use crate::analysis::overwrite::{is_inplace_call, overwritten_vars};
use crate::builder::is_pure;
use crate::functor::ExprMutator;
use crate::op::MemoryUse;
use crate::shape::same_type;
use crate::transform::emit::map_functions;
use crate::*;

pub(super) const PASS: PassInfo =
    PassInfo::new("EliminateCommonSubexpr", "What was computed is not computed again.", |module, _, args| {
        let call_only = args.bool("call_only") == Some(true);
        let options = || Eliminate { call_only, keep_names: true, ..Eliminate::default() };
        map_functions(module, |_, func| {
            Ok(Eliminate { overwritten: overwritten_vars(func), ..options() }.mutate_function(func))
        })
    })
    .opt_level(1)
    .params(&[PassParam::new(
        "call_only",
        ParamKind::Bool,
        ParamDefault::Bool(false),
        "Fields of tuples are left alone.",
    )]);

/// A function that computes nothing twice, without names that would only be others.
pub(super) fn eliminate(func: &Ref<Function>, call_only: bool) -> Ref<Function> {
    Eliminate { call_only, overwritten: overwritten_vars(func), ..Eliminate::default() }.mutate_function(func)
}

#[derive(Default)]
struct Eliminate {
    /// Values that are visible, by structural hash.
    known: HashMap<u64, Vec<(Expr, AnyVar)>>,
    /// Checks that are visible: the value, its type, and the variable that it is bound to.
    checked: Vec<(Expr, Type, AnyVar)>,
    replaced: HashMap<AnyVar, Expr>,
    /// Values that are replaced by none and replace none: their memory changes.
    overwritten: HashSet<AnyVar>,
    call_only: bool,
    /// Whether variables whose values were computed before stay, as names of those.
    keep_names: bool,
}

impl Eliminate {
    fn earlier(&self, hash: u64, value: &Expr, var: &AnyVar) -> Option<AnyVar> {
        let alike = self.known.get(&hash)?;
        let same = |e: &Expr| structural_equal(e, value, FreeVars::Same).is_ok();
        alike.iter().find(|(e, v)| self.serves(v, var) && same(e)).map(|(_, v)| v.clone())
    }

    /// Whether a variable may stand for another: one of the block does not for one that leaves it, unless that stays as its name.
    fn serves(&self, known: &AnyVar, var: &AnyVar) -> bool {
        self.keep_names || matches!((known, var), (AnyVar::Var(_), _) | (_, AnyVar::Dataflow(_)))
    }

    /// Lets an earlier variable stand for a new one.
    fn replace(&mut self, var: &AnyVar, earlier: AnyVar, out: &mut Vec<Binding>) {
        if self.keep_names {
            out.push(Ref::new(VarBinding { var: var.clone(), value: earlier.clone().into() }).into());
        }
        self.replaced.insert(var.clone(), earlier.into());
    }

    /// A check of what was checked before against the same type.
    fn check(&mut self, cast: &MatchCast, out: &mut Vec<Binding>) -> bool {
        let same = |(value, ty, known): &&(Expr, Type, AnyVar)| {
            value == &cast.value && same_type(ty, &cast.ty) && self.serves(known, &cast.var)
        };
        if let Some((_, _, earlier)) = self.checked.iter().find(same).cloned() {
            self.replace(&cast.var, earlier, out);
            return true;
        }
        self.checked.push((cast.value.clone(), cast.ty.clone(), cast.var.clone()));
        false
    }

    /// Forgets what is not visible behind a block. A name that leaves it stands for itself there.
    fn leave_block(&mut self) {
        let leaves = |var: &AnyVar| matches!(var, AnyVar::Var(_));
        for values in self.known.values_mut() {
            values.retain(|(_, v)| leaves(v));
        }
        self.checked.retain(|(_, _, v)| leaves(v));
        self.replaced.retain(|var, earlier| !(leaves(var) && matches!(earlier, Expr::DataflowVar(_))));
    }
}

/// Whether computing a value twice is waste: a call without effect that makes no memory or identity, and writes over none.
pub(super) fn is_candidate(value: &Expr) -> bool {
    match value.as_op_call() {
        Some((_, name)) if op::lookup(name).is_some_and(|def| def.memory == MemoryUse::Fresh) => false,
        Some((_, name)) => !name.starts_with("vm.") && is_pure(value) && !is_inplace_call(value),
        None => match value {
            Expr::Call(call) => {
                matches!(call.op, Expr::Var(_) | Expr::DataflowVar(_) | Expr::Global(_)) && is_pure(value)
            }
            value => matches!(value, Expr::TupleGetItem(_)),
        },
    }
}

impl ExprMutator for Eliminate {
    fn mutate_expr(&mut self, e: &Expr) -> Expr {
        match e.as_var() {
            Some(var) => self.replaced.get(&var).cloned().unwrap_or_else(|| e.clone()),
            None => self.remake_expr(e),
        }
    }

    fn mutate_binding(&mut self, binding: &Binding, out: &mut Vec<Binding>) {
        let new = self.remake_binding(binding);
        if let Binding::Var(bound) = &new
            && is_candidate(&bound.value)
            && !self.overwritten.contains(&bound.var)
            && !(self.call_only && matches!(bound.value, Expr::TupleGetItem(_)))
        {
            let hash = structural_key(&bound.value, FreeVars::Same);
            let earlier = self.earlier(hash, &bound.value, &bound.var);
            self.known.entry(hash).or_default().push((bound.value.clone(), bound.var.clone()));
            if let Some(earlier) = earlier {
                self.replace(&bound.var, earlier, out);
                return;
            }
        }
        if let Binding::MatchCast(cast) = &new
            && self.check(cast, out)
        {
            return;
        }
        out.push(new);
    }

    fn mutate_block(&mut self, block: &Ref<BindingBlock>) -> Ref<BindingBlock> {
        let mut bindings = Vec::with_capacity(block.bindings.len());
        block.bindings.iter().for_each(|b| self.mutate_binding(b, &mut bindings));
        self.leave_block();
        if bindings == block.bindings {
            return block.clone();
        }
        Ref::new(BindingBlock { bindings, dataflow: block.dataflow })
    }

    fn mutate_seq(&mut self, seq: &Ref<SeqExpr>) -> Ref<SeqExpr> {
        let (outer, checked) = (self.known.clone(), self.checked.clone());
        let mut blocks: Vec<_> = seq.blocks.iter().map(|b| self.mutate_block(b)).collect();
        blocks.retain(|b| !b.bindings.is_empty());
        let body = self.mutate_expr(&seq.body);
        (self.known, self.checked) = (outer, checked);
        if blocks == seq.blocks && body == seq.body {
            return seq.clone();
        }
        Ref::new(SeqExpr { blocks, body })
    }
}
