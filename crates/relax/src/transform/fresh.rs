//! Copies of functions whose variables are new, so that both can stand in one function.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{PrimExpr, VarMap};
use relaxide_ir::{Type, Var};

use super::bind_symbols::SymbolMutator;
use crate::shape::vars_of;
use crate::*;

/// The function with new parameters, variables and symbolic variables.
pub fn fresh_copy(func: &Ref<Function>) -> Ref<Function> {
    let mut symbols: Vec<Ref<Var>> = vars_of(func.params.iter().map(|p| &p.ty));
    let mut casts = Casts(Vec::new());
    casts.visit_seq(&func.body);
    symbols.extend(vars_of(&casts.0));
    let own: VarMap =
        symbols.into_iter().map(|s| (s.clone(), PrimExpr::from(&Var::prim(s.name.clone(), s.dtype())))).collect();
    SymbolMutator::renewing(own).function(func)
}

struct Casts(Vec<Type>);

impl ExprVisitor for Casts {
    fn visit_binding(&mut self, binding: &Binding) {
        if let Binding::MatchCast(cast) = binding {
            self.0.push(cast.ty.clone());
        }
        self.visit_expr(binding.value());
    }
}
