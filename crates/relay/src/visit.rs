//! Walks over expressions.

use std::collections::HashSet;

use relaxide_ffi::Ref;

use crate::{Expr, Pattern, Var};

/// Calls `see` for every node once, users before what they use, without recursion.
pub fn each(root: &Expr, mut see: impl FnMut(&Expr)) {
    let mut seen = HashSet::new();
    let mut work = vec![root];
    while let Some(expr) = work.pop() {
        if seen.insert(expr.address()) {
            see(expr);
            work.extend(expr.children().into_iter().rev());
        }
    }
}

/// The variables that an expression mentions and does not bind, in the order in which they are met.
pub fn free_vars(root: &Expr) -> Vec<Ref<Var>> {
    let address = |var: &Ref<Var>| Ref::as_ptr(var).addr();
    let (mut bound, mut met, mut order) = (HashSet::new(), HashSet::new(), Vec::new());
    each(root, |expr| match expr {
        Expr::Var(var) if met.insert(address(var)) => order.push(var.clone()),
        Expr::Let(l) => {
            bound.insert(address(&l.var));
        }
        Expr::Function(f) => bound.extend(f.params.iter().map(address)),
        Expr::Match(m) => {
            bound.extend(m.clauses.iter().flat_map(|c| Pattern::vars(&c.pattern)).map(|v| address(&v)));
        }
        _ => {}
    });
    order.retain(|var| !bound.contains(&address(var)));
    order
}

/// The names of the module's functions that an expression mentions.
pub fn globals(root: &Expr) -> Vec<String> {
    let mut names = Vec::new();
    each(root, |expr| {
        if let Expr::Global(g) = expr
            && !names.contains(&g.name)
        {
            names.push(g.name.clone());
        }
    });
    names
}
