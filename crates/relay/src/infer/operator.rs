//! Operators that stand as values.
//!
//! An operator has the type of the function that calls it, whose relation waits for its arguments like that of any call. At
//! each place it stands for another function, so one operator, or one name that `let` gave to it, takes integers here and
//! floats there.

use relaxide_ffi::Ref;

use super::Inference;
use crate::transform::{as_function, attrs_of_call, named_operator, type_of_operator};
use crate::*;

impl Inference<'_> {
    /// The operator that an expression is, or is a name of.
    pub(super) fn as_operator(&self, expr: &Expr) -> Option<Ref<Op>> {
        match expr {
            Expr::Op(op) => Some(op.clone()),
            Expr::Var(v) => self.operators.get(&Ref::as_ptr(v).addr()).cloned(),
            _ => None,
        }
    }

    /// The type of an operator as a value, for the place where it stands.
    pub(super) fn operator(&mut self, op: &Ref<Op>) -> Type {
        let place = self.place.clone();
        match as_function(op, place.as_ref()) {
            Ok(function) => {
                self.types.set(Expr::Op(op.clone()).as_object(), type_of_operator(op));
                self.function(&function)
            }
            Err(why) => {
                self.error(why, place.as_ref());
                Type::fresh()
            }
        }
    }

    /// Whether a binding gives a name to an operator.
    pub(super) fn names_operator(&mut self, l: &Ref<Let>) -> bool {
        let Some(op) = named_operator(l, &self.operators) else { return false };
        let ty = type_of_operator(&op);
        let written = self.var(&l.var);
        let ty = self.unify(&written, &ty, l.var.span.as_ref().or(l.span.as_ref()));
        for node in [Expr::Var(l.var.clone()), Expr::Op(op.clone())] {
            self.types.set(node.as_object(), ty.clone());
        }
        self.operators.insert(Ref::as_ptr(&l.var).addr(), op);
        true
    }

    /// The call as one of the operator that its callee is a name of.
    pub(super) fn operator_call(&self, call: &Ref<Call>) -> Option<Ref<Call>> {
        let Expr::Var(_) = &call.op else { return None };
        let op: Expr = self.as_operator(&call.op)?.into();
        let (attrs, args) = (attrs_of_call(&call.op, &op, &call.attrs), call.args.clone());
        Some(Ref::new(Call { op, args, attrs, type_args: Vec::new(), span: call.span.clone() }))
    }
}
