//! Variables of an expression.

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::prim::free_vars as prim_vars;
use relaxide_ir::{GlobalVar, Type, Var};

use crate::shape::{defined_vars, vars_of};
use crate::*;

/// Each variable of a list once, in the order of first appearance.
struct Once<T> {
    list: Vec<T>,
    seen: HashSet<T>,
}

impl<T: Clone + Eq + std::hash::Hash> Once<T> {
    fn new() -> Self {
        Once { list: Vec::new(), seen: HashSet::new() }
    }

    fn add(&mut self, item: T) {
        if self.seen.insert(item.clone()) {
            self.list.push(item);
        }
    }
}

struct Vars {
    bound: Once<AnyVar>,
    used: Once<AnyVar>,
}

impl ExprVisitor for Vars {
    fn visit_expr(&mut self, e: &Expr) {
        if let Some(var) = e.as_var() {
            self.used.add(var);
        }
        if let Expr::Function(func) = e {
            func.params.iter().for_each(|p| self.bound.add(AnyVar::Var(p.clone())));
        }
        self.walk_expr(e);
    }

    fn visit_binding(&mut self, binding: &Binding) {
        self.visit_expr(binding.value());
        self.bound.add(binding.var().clone());
    }
}

fn visit(e: &Expr) -> Vars {
    let mut vars = Vars { bound: Once::new(), used: Once::new() };
    vars.visit_expr(e);
    vars
}

/// Variables that an expression binds: parameters of functions and variables of bindings.
pub fn bound_vars(e: &Expr) -> Vec<AnyVar> {
    visit(e).bound.list
}

/// Variables that an expression uses and does not bind.
pub fn free_vars(e: &Expr) -> Vec<AnyVar> {
    let vars = visit(e);
    vars.used.list.into_iter().filter(|v| !vars.bound.seen.contains(v)).collect()
}

/// Variables that an expression binds or uses.
pub fn all_vars(e: &Expr) -> Vec<AnyVar> {
    let mut vars = visit(e);
    vars.used.list.into_iter().for_each(|v| vars.bound.add(v));
    vars.bound.list
}

/// Functions of the module that an expression mentions.
pub fn all_global_vars(e: &Expr) -> Vec<Ref<GlobalVar>> {
    struct Globals(Vec<Ref<GlobalVar>>, HashSet<String>);
    impl ExprVisitor for Globals {
        fn visit_expr(&mut self, e: &Expr) {
            if let Expr::Global(g) = e
                && self.1.insert(g.name.clone())
            {
                self.0.push(g.clone());
            }
            self.walk_expr(e);
        }
    }
    let mut globals = Globals(Vec::new(), HashSet::new());
    globals.visit_expr(e);
    globals.0
}

struct Symbols {
    defined: Once<Ref<Var>>,
    used: Once<Ref<Var>>,
}

impl Symbols {
    fn defines<'a>(&mut self, types: impl IntoIterator<Item = &'a Type> + Clone) {
        defined_vars(types.clone()).into_iter().for_each(|v| self.defined.add(v));
        vars_of(types).into_iter().for_each(|v| self.used.add(v));
    }

    fn uses(&mut self, ty: &Type) {
        vars_of([ty]).into_iter().for_each(|v| self.used.add(v));
    }
}

impl ExprVisitor for Symbols {
    fn visit_expr(&mut self, e: &Expr) {
        match e {
            Expr::Shape(shape) => shape.values.iter().flat_map(prim_vars).for_each(|v| self.used.add(v)),
            Expr::Prim(p) => prim_vars(&p.value).into_iter().for_each(|v| self.used.add(v)),
            Expr::Call(call) => call.ty_args.iter().for_each(|ty| self.uses(ty)),
            Expr::Function(func) => self.defines(func.params.iter().map(|p| &p.ty)),
            Expr::Constant(_) | Expr::Var(_) | Expr::DataflowVar(_) => self.uses(&e.ty()),
            _ => {}
        }
        self.walk_expr(e);
    }

    fn visit_binding(&mut self, binding: &Binding) {
        self.visit_expr(binding.value());
        match binding {
            Binding::MatchCast(cast) => self.defines([&cast.ty]),
            Binding::Var(bound) => self.uses(bound.var.ty()),
        }
    }
}

fn symbols(e: &Expr) -> Symbols {
    let mut symbols = Symbols { defined: Once::new(), used: Once::new() };
    symbols.visit_expr(e);
    symbols
}

/// Symbolic variables that parameters and casts of an expression define.
pub fn defined_symbols(e: &Expr) -> Vec<Ref<Var>> {
    symbols(e).defined.list
}

/// Symbolic variables that an expression uses and does not define.
pub fn free_symbols(e: &Expr) -> Vec<Ref<Var>> {
    let symbols = symbols(e);
    symbols.used.list.into_iter().filter(|v| !symbols.defined.seen.contains(v)).collect()
}
