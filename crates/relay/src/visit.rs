//! Walks over expressions.

use std::collections::HashSet;

use relaxide_ffi::Ref;

use crate::{Expr, Function, Pattern, Type, Var};

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

/// The names of the data types that a function mentions: in types, constructors and patterns.
pub fn data_types(function: &Ref<Function>) -> HashSet<String> {
    let mut names = HashSet::new();
    each(&Expr::Function(function.clone()), |expr| match expr {
        Expr::Var(v) => of_type(v.annotation.as_ref(), &mut names),
        Expr::Constructor(c) => drop(names.insert(c.belong_to.clone())),
        Expr::Call(c) => c.type_args.iter().for_each(|ty| of_type(Some(ty), &mut names)),
        Expr::Let(l) => of_type(l.var.annotation.as_ref(), &mut names),
        Expr::Function(f) => {
            f.params.iter().for_each(|p| of_type(p.annotation.as_ref(), &mut names));
            of_type(f.ret_type.as_ref(), &mut names);
        }
        Expr::Match(m) => m.clauses.iter().for_each(|c| of_pattern(&c.pattern, &mut names)),
        _ => {}
    });
    names
}

/// The names of the data types in a type.
pub fn of_type(ty: Option<&Type>, names: &mut HashSet<String>) {
    let mut see = |ty: &Type| {
        if let Type::Call(call) = ty {
            names.insert(call.name.clone());
        }
        None
    };
    if let Some(ty) = ty {
        ty.map(&mut see);
    }
}

fn of_pattern(pattern: &Pattern, names: &mut HashSet<String>) {
    match pattern {
        Pattern::Constructor(p) => {
            names.insert(p.constructor.belong_to.clone());
            p.patterns.iter().for_each(|p| of_pattern(p, names));
        }
        Pattern::Tuple(p) => p.patterns.iter().for_each(|p| of_pattern(p, names)),
        Pattern::Var(p) => of_type(p.var.annotation.as_ref(), names),
        Pattern::Wildcard(_) => {}
    }
}
