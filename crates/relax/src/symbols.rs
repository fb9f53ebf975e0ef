//! Symbolic dimensions that stand for values.
//!
//! A dimension and a scalar value are the same kind of variable. Where a function uses a dimension of its parameters, or one
//! that a `match_cast` binds, as a value, nothing computes a register for it: the value is read from the shape. Such a use is
//! a [`PrimValue`](crate::PrimValue). Whoever builds functions node by node, as Python does, writes the bare variable, and
//! [`settle`] tells the two apart once all that the function binds is known.

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::{Type, Var};

use crate::functor::{ExprMutator, ExprVisitor};
use crate::shape::vars_of;
use crate::{AnyVar, Binding, Expr, Function, SeqExpr};

/// The function with every use of a symbolic dimension as a value marked as such. Unchanged functions are shared.
pub fn settle(function: &Ref<Function>) -> Ref<Function> {
    let mut scope = SymbolScope::default();
    scope.function(function);
    let SymbolScope { mut symbols, bound } = scope;
    symbols.retain(|var| !bound.contains(var));
    match symbols.is_empty() {
        true => function.clone(),
        false => Settle { symbols }.mutate_function(function),
    }
}

/// What functions and the functions in them bind.
#[derive(Default)]
struct SymbolScope {
    symbols: HashSet<Ref<Var>>,
    bound: HashSet<Ref<Var>>,
}

impl SymbolScope {
    fn function(&mut self, function: &Function) {
        self.symbols.extend(vars_of(function.params.iter().map(|param| &param.ty)));
        self.bound.extend(function.params.iter().cloned());
        self.visit_seq(&function.body);
    }
}

impl ExprVisitor for SymbolScope {
    fn visit_expr(&mut self, e: &Expr) {
        match e {
            Expr::Function(function) => self.function(function),
            _ => self.walk_expr(e),
        }
    }

    fn visit_binding(&mut self, binding: &Binding) {
        if let AnyVar::Var(var) = binding.var() {
            self.bound.insert(var.clone());
        }
        if let Binding::MatchCast(cast) = binding {
            self.symbols.extend(vars_of([&cast.ty]));
        }
        self.visit_expr(binding.value());
    }

    fn visit_seq(&mut self, seq: &SeqExpr) {
        for binding in seq.blocks.iter().flat_map(|block| &block.bindings) {
            self.visit_binding(binding);
        }
        self.visit_expr(&seq.body);
    }
}

struct Settle {
    symbols: HashSet<Ref<Var>>,
}

impl ExprMutator for Settle {
    fn mutate_expr(&mut self, e: &Expr) -> Expr {
        match e {
            Expr::Var(var) if matches!(var.ty, Type::Prim(_)) && self.symbols.contains(var) => Expr::prim(var.clone()),
            _ => self.remake_expr(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use relaxide_ffi::DataType;
    use relaxide_ir::Attrs;

    use super::*;

    fn returning(params: &[&Ref<Var>], value: &Ref<Var>) -> Ref<Function> {
        let body = Ref::new(SeqExpr { blocks: Vec::new(), body: value.clone().into() });
        let params = params.iter().copied().cloned().collect();
        let ret_ty = value.ty.clone();
        Ref::new(Function { params, body, ret_ty, pure: true, attrs: Attrs::new(), span: None })
    }

    #[test]
    fn a_dimension_is_a_scalar_and_a_parameter_is_itself() {
        let n = Var::new("n", Type::prim(DataType::int(64)));
        let x = Var::new("x", Type::tensor([relaxide_ir::PrimExpr::Var(n.clone())], DataType::float(32)));
        let settled = settle(&returning(&[&x], &n));
        assert!(matches!(&settled.body.body, Expr::Prim(p) if p.value.as_var() == Some(&n)));
        let kept = returning(&[&x, &n], &n);
        assert!(settle(&kept) == kept);
    }
}
