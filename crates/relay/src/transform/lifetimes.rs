//! ManifestLifetimes: a name is given up behind its last use.
//!
//! ```text
//! let %y = tanh(%x);          becomes     let %y = tanh(%x);
//! exp(%y)                                 let %_ = memory.kill(%x);
//!                                         let %z = exp(%y);
//!                                         let %_ = memory.kill(%y);
//!                                         %z
//! ```
//!
//! The function is brought to A-normal form. What a scope inside uses last is given up behind the scope, because another of its
//! scopes may not use it; what is given as a result is not given up. A closure keeps what it captured by itself. Memory is freed
//! where the last name for it goes, so that giving up one of two names is no error.

use std::collections::HashSet;
use std::convert::Infallible;

use relaxide_ffi::Ref;
use relaxide_ir::Attrs;

use super::manifest_alloc::{Chain, with_scopes};
use crate::*;

/// The program with `memory.kill` behind last uses.
pub fn manifest_lifetimes(module: &Module) -> Module {
    let mut out = to_a_normal_form(module);
    for function in out.functions.values_mut() {
        let body = scope(&function.body, &function.params);
        *function = function.with_body(body);
    }
    out
}

fn address(var: &Ref<Var>) -> usize {
    Ref::as_ptr(var).addr()
}

/// The variables that a value mentions, those of its scopes too.
fn mentioned(value: &Expr) -> HashSet<usize> {
    let mut found = HashSet::new();
    visit::each(value, |expr| {
        if let Expr::Var(var) = expr {
            found.insert(address(var));
        }
    });
    found
}

fn scope(expr: &Expr, params: &[Ref<Var>]) -> Expr {
    let Chain { bindings, result } = Chain::of(expr);
    let mut owned: Vec<Ref<Var>> = params.to_vec();
    owned.extend(bindings.iter().map(|(var, _)| var.clone()));
    let mut used = mentioned(&result);
    let mut out = Vec::new();
    // From the end: the first mention that is met is the last use.
    for (var, value) in bindings.into_iter().rev() {
        let here = mentioned(&value);
        let unused = !used.contains(&address(&var));
        for dead in owned.iter().filter(|v| here.contains(&address(v)) && !used.contains(&address(v))) {
            out.push(kill(dead));
        }
        if unused && !is_effect(&value) {
            out.push(kill(&var));
        }
        let Ok(value) = with_scopes::<Infallible>(&value, &mut |inner| {
            let params = inner_params(&value, inner);
            Ok(scope(inner, &params))
        });
        out.push((var, value));
        used.extend(here);
    }
    // Parameters that nothing uses are given up at once.
    for param in params.iter().filter(|p| !used.contains(&address(p))) {
        out.push(kill(param));
    }
    out.reverse();
    Chain { bindings: out, result }.into_expr()
}

/// The names that a scope of a value binds by itself: a function's parameters, a case's names.
fn inner_params(value: &Expr, inner: &Expr) -> Vec<Ref<Var>> {
    match value {
        Expr::Function(f) => f.params.clone(),
        Expr::Match(m) => {
            let own = m.clauses.iter().find(|c| c.body.ptr_eq(inner));
            own.map_or_else(Vec::new, |c| c.pattern.vars())
        }
        _ => Vec::new(),
    }
}

/// What is done for its effect only, and gives nothing that takes memory.
fn is_effect(value: &Expr) -> bool {
    matches!(value.as_op_call(), Some((_, "vm.invoke_tvm_op" | "vm.shape_func" | "memory.kill")))
}

fn kill(var: &Ref<Var>) -> (Ref<Var>, Expr) {
    let call = Expr::call_with(Expr::op("memory.kill"), [Expr::from(var)], Attrs::new());
    (Var::new("_", None), call)
}
