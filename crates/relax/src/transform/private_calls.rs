//! The private functions of a module and how they are called: what passes need that change a function's signature.
//!
//! A signature may change if the function is private (nothing outside knows its name) and the module only ever calls it: a
//! function that is passed on as a value is called by who knows whom.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::IRModule;

use crate::*;

/// The private functions that are only called, by name.
pub(super) fn private_functions(module: &IRModule) -> HashMap<String, Ref<Function>> {
    let mut escaped = Escaped(HashSet::new());
    module.functions_of::<Function>().for_each(|(_, f)| escaped.visit_seq(&f.body));
    module
        .functions_of::<Function>()
        .filter(|(name, f)| f.attrs.get("global_symbol").is_none() && !escaped.0.contains(*name))
        .map(|(name, f)| (name.to_string(), f))
        .collect()
}

/// Functions that stand elsewhere than as what is called.
struct Escaped(HashSet<String>);

impl ExprVisitor for Escaped {
    fn visit_expr(&mut self, e: &Expr) {
        match e {
            Expr::Global(g) => {
                self.0.insert(g.name.clone());
            }
            Expr::Call(call) => {
                if !matches!(call.op, Expr::Global(_)) {
                    self.visit_expr(&call.op);
                }
                call.args.iter().for_each(|a| self.visit_expr(a));
            }
            _ => self.walk_expr(e),
        }
    }
}

/// The name of the function of the module that an expression calls.
pub(super) fn callee(e: &Expr) -> Option<(&Ref<Call>, &str)> {
    match e {
        Expr::Call(call) => match &call.op {
            Expr::Global(g) => Some((call, &g.name)),
            _ => None,
        },
        _ => None,
    }
}
