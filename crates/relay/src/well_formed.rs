//! Well-formedness: every variable is bound once, and stands only where it is bound.
//!
//! Types are no part of it ([`crate::infer`] is about those), nor is whether names of functions exist. A pass that gives a
//! program which is not well formed is wrong. Shared nodes are looked at once: what a node needs of the scopes around it is
//! kept as the set of variables that are free in it.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use relaxide_ffi::Ref;

use crate::stack::deep;
use crate::*;

/// What is wrong with a module; nothing if it is well formed.
pub fn well_formed(module: &Module) -> Vec<TypeError> {
    deep(|| {
        let mut errors = Vec::new();
        let mut bound: HashSet<usize> = HashSet::new();
        for (name, function) in &module.functions {
            let whole = Expr::Function(function.clone());
            bound_once(&whole, &mut bound, &mut errors);
            let mut free = Free { known: HashMap::new(), vars: HashMap::new() };
            let mut left: Vec<Ref<Var>> =
                free.of(&whole).iter().filter_map(|address| free.vars.get(address).cloned()).collect();
            left.sort_by(|a, b| a.name.cmp(&b.name));
            for var in left {
                let message = format!("the variable %{} is used in @{name} where it is not bound", var.name);
                errors.push(TypeError { message, span: var.span.clone().or_else(|| function.span.clone()) });
            }
        }
        errors
    })
}

fn address(var: &Ref<Var>) -> usize {
    Ref::as_ptr(var).addr()
}

/// The variables that a node binds itself.
fn bindings(expr: &Expr) -> Vec<Ref<Var>> {
    match expr {
        Expr::Let(l) => vec![l.var.clone()],
        Expr::Function(f) => f.params.clone(),
        Expr::Match(m) => m.clauses.iter().flat_map(|c| c.pattern.vars()).collect(),
        _ => Vec::new(),
    }
}

fn bound_once(root: &Expr, bound: &mut HashSet<usize>, errors: &mut Vec<TypeError>) {
    visit::each(root, |expr| {
        for var in bindings(expr) {
            if !bound.insert(address(&var)) {
                let message = format!("the variable %{} is bound twice", var.name);
                errors.push(TypeError { message, span: var.span.clone().or_else(|| expr.span().cloned()) });
            }
        }
    });
}

type Set = Rc<HashSet<usize>>;

struct Free {
    known: HashMap<usize, Set>,
    vars: HashMap<usize, Ref<Var>>,
}

impl Free {
    fn of(&mut self, expr: &Expr) -> Set {
        if let Some(known) = self.known.get(&expr.address()) {
            return known.clone();
        }
        let set = match expr {
            Expr::Var(v) => {
                self.vars.insert(address(v), v.clone());
                Rc::new(HashSet::from([address(v)]))
            }
            Expr::Let(_) => return self.lets(expr),
            Expr::Function(f) => self.without(&f.body, &f.params),
            Expr::Match(m) => {
                let parts = m.clauses.iter().map(|c| self.without(&c.body, &c.pattern.vars())).collect::<Vec<_>>();
                self.joined(&[&m.data], parts)
            }
            other => self.joined(&other.children(), Vec::new()),
        };
        self.known.insert(expr.address(), set.clone());
        set
    }

    /// Bindings that follow each other, from the last one on.
    fn lets(&mut self, first: &Expr) -> Set {
        let (mut chain, mut expr) = (Vec::new(), first);
        while let Expr::Let(l) = expr {
            chain.push((expr.address(), l.clone()));
            expr = &l.body;
        }
        let mut set = (*self.of(expr)).clone();
        for (node, l) in chain.into_iter().rev() {
            let value = self.of(&l.value);
            // A function knows itself by its name; any other value does not.
            let own = matches!(l.value, Expr::Function(_));
            set.remove(&address(&l.var));
            set.extend(value.iter().filter(|v| !(own && **v == address(&l.var))));
            self.known.insert(node, Rc::new(set.clone()));
        }
        Rc::new(set)
    }

    fn without(&mut self, body: &Expr, vars: &[Ref<Var>]) -> Set {
        let mut set = (*self.of(body)).clone();
        for var in vars {
            set.remove(&address(var));
        }
        Rc::new(set)
    }

    fn joined(&mut self, parts: &[&Expr], more: Vec<Set>) -> Set {
        let sets: Vec<Set> = parts.iter().map(|e| self.of(e)).chain(more).collect();
        match sets.as_slice() {
            [] => Rc::default(),
            [one] => one.clone(),
            many => Rc::new(many.iter().flat_map(|set| set.iter().copied()).collect()),
        }
    }
}
