//! What can be computed before the inputs of a program are known.
//!
//! The attribute `num_input` of a function says how many of its parameters are inputs; those behind it are weights, which
//! are known when the program is built. What depends on weights and constants only, without effect, can be computed then.

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::Var;

use crate::analysis::free_symbols;
use crate::builder::is_pure;
use crate::functor::used_vars;
use crate::shape::{defined_vars, vars_of};
use crate::*;

/// The attribute that says how many parameters are inputs.
pub const NUM_INPUT_ATTR: &str = "num_input";

/// How many of a function's parameters are inputs, if it says so.
pub fn num_inputs(func: &Function) -> Option<usize> {
    func.attrs.int(NUM_INPUT_ATTR).and_then(|n| usize::try_from(n).ok())
}

/// The variables of a function that depend on weights and constants only, the weights included, in order. None where the
/// function does not say which of its parameters are inputs.
pub fn computable_at_compile_time(func: &Function) -> Vec<AnyVar> {
    let Some(inputs) = num_inputs(func) else { return Vec::new() };
    let weights = func.params.get(inputs..).unwrap_or_default();
    let mut known: HashSet<AnyVar> = weights.iter().map(|p| AnyVar::Var(p.clone())).collect();
    let mut symbols: HashSet<Ref<Var>> = defined_vars(weights.iter().map(|p| &p.ty)).into_iter().collect();
    let mut out: Vec<AnyVar> = weights.iter().map(|p| AnyVar::Var(p.clone())).collect();
    for binding in func.body.blocks.iter().flat_map(|b| &b.bindings) {
        let (var, value) = (binding.var(), binding.value());
        let mut free = free_symbols(value);
        match binding {
            Binding::Var(_) => free.extend(vars_of([var.ty()])),
            // What is matched says symbolic variables, as the type of a weight does.
            Binding::MatchCast(_) => {
                let said = defined_vars([var.ty()]);
                free.extend(vars_of([var.ty()]).into_iter().filter(|s| !said.contains(s)));
            }
        }
        let computable = is_pure(value)
            && !matches!(value, Expr::If(_) | Expr::Function(_))
            && !is_stop(value)
            && used_vars(value).iter().all(|v| known.contains(v))
            && free.into_iter().all(|s| symbols.contains(&s));
        if computable {
            if let Binding::MatchCast(_) = binding {
                symbols.extend(defined_vars([var.ty()]));
            }
            known.insert(var.clone());
            out.push(var.clone());
        }
    }
    out
}

/// Whether a value says that what depends on it is to be computed with the inputs.
pub(crate) fn is_stop(value: &Expr) -> bool {
    matches!(value, Expr::Call(call) if call.op_name() == Some("builtin.stop_lift_params"))
}
