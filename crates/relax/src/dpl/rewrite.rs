//! Replacing what patterns match.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::{FreeVars, Ref, structural_equal};

use super::graph::PatternContext;
use super::matcher::{Matches, VarValues, match_expr, values_of};
use super::pattern::Pattern;
use crate::functor::used_vars;
use crate::rewrite::{Action, Rewrite, rewrite_function};
use crate::*;

/// Rewriting that never comes to rest ends here: after so many walks …
pub(crate) const MAX_ROUNDS: usize = 1000;

/// … or when each expression was rewritten so often on average.
pub(crate) const MAX_REWRITES: usize = 100;

/// Replaces every match of a pattern by what `rewriter` makes of it, until nothing changes. The rewriter gets the matched
/// expression and what the parts stand for, and returns the expression that takes its place, or the same one to keep it.
/// What is no longer used goes.
pub fn rewrite_call(
    pattern: &Pattern,
    rewriter: &mut dyn FnMut(&Expr, &Matches) -> Result<Expr, BuildError>,
    func: &Ref<Function>,
    b: &mut BlockBuilder,
) -> Result<Ref<Function>, BuildError> {
    let mut func = func.clone();
    let mut left = MAX_REWRITES.saturating_mul(values_of(&func).len() + 1);
    for _ in 0..MAX_ROUNDS {
        let mut calls = CallRewriter { pattern, rewriter, values: VarValues::new(), rewrites: 0 };
        let new = rewrite_function(b, &func, &mut calls)?;
        if calls.rewrites == 0 || structural_equal(&new, &func, FreeVars::Same).is_ok() {
            return Ok(new);
        }
        let Some(rest) = left.checked_sub(calls.rewrites) else { break };
        left = rest;
        func = transform::clean_up(b, &new)?;
    }
    Err(BuildError::Program(format!("the rewriting of `{pattern}` does not come to rest")))
}

struct CallRewriter<'a> {
    pattern: &'a Pattern,
    rewriter: &'a mut dyn FnMut(&Expr, &Matches) -> Result<Expr, BuildError>,
    values: VarValues,
    rewrites: usize,
}

impl Rewrite for CallRewriter<'_> {
    fn value(&mut self, _: &mut BlockBuilder, var: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let new = match match_expr(self.pattern, &value, &self.values) {
            Some(matches) => (self.rewriter)(&value, &matches)?,
            None => value.clone(),
        };
        if new == value {
            self.values.insert(var.clone(), value.clone());
            return Ok(Action::Bind(value));
        }
        self.rewrites += 1;
        Ok(Action::Bind(new))
    }
}

/// What a rewriter of bindings makes: new values by the variables that they are bound to.
pub type NewValues = HashMap<AnyVar, Expr>;

/// What decides on new values: given what each pattern stands for, and the values of the block's variables.
pub type BindingRewriter<'a> = dyn FnMut(&HashMap<Pattern, AnyVar>, &VarValues) -> Result<NewValues, BuildError> + 'a;

/// Replaces what a context of patterns matches in each dataflow block, until nothing matches or changes. The rewriter gets
/// what the patterns stand for and the values of all variables of the block; it returns new values for some variables.
/// Bindings are put in an order in which each stands behind what it uses, and what is no longer used goes.
pub fn rewrite_bindings(
    context: &PatternContext,
    rewriter: &mut BindingRewriter<'_>,
    func: &Ref<Function>,
    b: &mut BlockBuilder,
) -> Result<Ref<Function>, BuildError> {
    let mut func = func.clone();
    for _ in 0..MAX_ROUNDS {
        let Some(new) = rewrite_once(context, rewriter, &func, b)? else { return Ok(func) };
        func = transform::remove_unused(&new);
    }
    Err(BuildError::Program(format!("the rewriting of bindings does not come to rest in {MAX_ROUNDS} rounds")))
}

fn rewrite_once(
    context: &PatternContext,
    rewriter: &mut BindingRewriter<'_>,
    func: &Ref<Function>,
    b: &mut BlockBuilder,
) -> Result<Option<Ref<Function>>, BuildError> {
    for (at, block) in func.body.blocks.iter().enumerate().filter(|(_, block)| block.dataflow) {
        let Some(found) = context.match_block(block) else { continue };
        let values = block.bindings.iter().filter_map(|binding| match binding {
            Binding::Var(bound) => Some((bound.var.clone(), bound.value.clone())),
            Binding::MatchCast(_) => None,
        });
        let new = rewriter(&found, &values.collect())?;
        let changed =
            new.iter().any(|(var, value)| block.bindings.iter().any(|b| b.var() == var && b.value() != value));
        if !changed {
            continue;
        }
        let mut blocks = func.body.blocks.clone();
        if let Some(slot) = blocks.get_mut(at) {
            *slot = replace_values(b, func, block, &new)?;
        }
        let body = Ref::new(SeqExpr { blocks, body: func.body.body.clone() });
        return Ok(Some(Ref::new(Function { body, ..Function::clone(func) })));
    }
    Ok(None)
}

/// A block of a function with new values for some of its variables. Parts that several new values share (one node) are
/// bound once; every binding stands behind what it uses.
pub fn replace_values(
    b: &mut BlockBuilder,
    func: &Function,
    block: &BindingBlock,
    new: &NewValues,
) -> Result<Ref<BindingBlock>, BuildError> {
    for name in functor::bound_names(&func.body) {
        b.reserve(&name);
    }
    b.begin_scope();
    b.begin_dataflow()?;
    // Parts that several new values share are bound once.
    let mut shared: HashMap<Expr, Expr> = HashMap::new();
    for binding in &block.bindings {
        match (binding, new.get(binding.var())) {
            (Binding::Var(bound), Some(value)) => {
                let value = bind_parts(b, value, &mut shared, true)?;
                let value = b.normalize(value)?;
                b.push_binding(Ref::new(VarBinding { var: bound.var.clone(), value }).into())?;
            }
            _ => b.push_binding(binding.clone())?,
        }
    }
    b.end_dataflow()?;
    let seq = b.end_scope(Expr::tuple([]))?;
    let bindings = seq.blocks.iter().flat_map(|block| block.bindings.iter().cloned()).collect();
    Ok(Ref::new(BindingBlock { bindings: in_order(bindings)?, dataflow: true }))
}

/// Binds the calls inside a value, each once.
fn bind_parts(
    b: &mut BlockBuilder,
    value: &Expr,
    shared: &mut HashMap<Expr, Expr>,
    outermost: bool,
) -> Result<Expr, BuildError> {
    if let Some(known) = shared.get(value) {
        return Ok(known.clone());
    }
    let new = match value {
        Expr::Call(call) => {
            let args: Vec<Expr> =
                call.args.iter().map(|a| bind_parts(b, a, shared, false)).collect::<Result<_, _>>()?;
            if args == call.args { value.clone() } else { call.with_args(args, call.ty.clone()).into() }
        }
        Expr::Tuple(tuple) => {
            let fields: Vec<Expr> =
                tuple.fields.iter().map(|f| bind_parts(b, f, shared, false)).collect::<Result<_, _>>()?;
            Expr::tuple(fields)
        }
        Expr::TupleGetItem(item) => {
            let tuple = bind_parts(b, &item.tuple, shared, false)?;
            Ref::new(TupleGetItem { tuple, index: item.index }).into()
        }
        _ => return Ok(value.clone()),
    };
    if outermost || matches!(new, Expr::Tuple(_)) {
        return Ok(new);
    }
    let var = b.emit(new)?;
    shared.insert(value.clone(), var.clone());
    Ok(var)
}

/// Bindings in an order in which each stands behind what it uses, otherwise as they were.
pub(crate) fn in_order(bindings: Vec<Binding>) -> Result<Vec<Binding>, BuildError> {
    let mut waiting: HashSet<AnyVar> = bindings.iter().map(|b| b.var().clone()).collect();
    let mut rest: Vec<Binding> = bindings;
    let mut out = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let before = rest.len();
        let mut later = Vec::new();
        for binding in rest {
            let ready = used_vars(binding.value()).iter().all(|v| !waiting.contains(v));
            if ready {
                waiting.remove(binding.var());
                out.push(binding);
            } else {
                later.push(binding);
            }
        }
        if later.len() == before {
            return Err(BuildError::Program("the new values of bindings need each other".into()));
        }
        rest = later;
    }
    Ok(out)
}
