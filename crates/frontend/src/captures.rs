//! [`Captures`]: what a function of the program takes from the one around it.
//!
//! ```text
//! outside                         inside
//! x: R.Tensor((n, 4))     ──▶     x: R.Tensor((n_1, 4))        a parameter
//! n                       ──▶     n_1                          bound by the first parameter, a shape
//! ```
//!
//! Symbolic variables belong to one function, so each that a captured value is described with gets a counterpart inside.
//! All counterparts are handed over in one shape, in the order of [`Captures::outer_dims`].

use relaxide_ffi::Ref;
use relaxide_ir::prim::{PrimExpr, VarMap, free_vars, substitute};
use relaxide_ir::{Type, Var};
use relaxide_relax::Expr;
use relaxide_relax::shape::{substitute_type, vars_of};

/// What a function takes from the one around it.
#[derive(Debug, Default)]
pub struct Captures {
    dims: Vec<(Ref<Var>, Ref<Var>)>,
    captured: Vec<(Expr, Ref<Var>)>,
    /// Symbolic variables that parameters of the function itself bind.
    own: Vec<Ref<Var>>,
}

impl Captures {
    /// An operand of the outside, inside.
    pub fn expr(&mut self, expr: &Expr) -> Expr {
        let Some(var) = expr.as_var() else { return expr.clone() };
        if let Some((_, inner)) = self.captured.iter().find(|(outer, _)| outer == expr) {
            return Expr::Var(inner.clone());
        }
        let ty = self.ty(&expr.ty());
        // Named as it is outside, and made by the same node: what is said of it is about that.
        let inner = Ref::new(Var { name: var.name().to_owned(), ty, span: var.span().cloned() });
        self.captured.push((expr.clone(), inner.clone()));
        Expr::Var(inner)
    }

    /// A dimension of the outside, inside.
    pub fn dim(&mut self, dim: &PrimExpr) -> PrimExpr {
        self.take_dims(free_vars(dim));
        substitute(dim, &self.map())
    }

    /// A type of the outside, inside.
    pub fn ty(&mut self, ty: &Type) -> Type {
        self.take_dims(vars_of([ty]));
        substitute_type(ty, &self.map())
    }

    fn take_dims(&mut self, vars: impl IntoIterator<Item = Ref<Var>>) {
        for var in vars {
            if !self.dims.iter().any(|(outer, _)| *outer == var) {
                let inner = Var::dim(var.name.clone());
                self.dims.push((var, inner));
            }
        }
    }

    /// Symbolic variables that the function binds by parameters that capture nothing.
    pub fn define(&mut self, vars: impl IntoIterator<Item = Ref<Var>>) {
        self.own.extend(vars);
    }

    /// Every symbolic variable that is bound inside from the start.
    pub fn bound_dims(&self) -> impl Iterator<Item = Ref<Var>> + '_ {
        self.inner_dims().chain(self.own.iter().cloned())
    }

    /// A type of the inside that is described by dimensions of the outside, as it is called there.
    pub fn outer_type(&self, ty: &Type) -> Type {
        let map = self.dims.iter().map(|(outer, inner)| (inner.clone(), PrimExpr::Var(outer.clone()))).collect();
        substitute_type(ty, &map)
    }

    fn map(&self) -> VarMap {
        self.dims.iter().map(|(outer, inner)| (outer.clone(), PrimExpr::Var(inner.clone()))).collect()
    }

    /// The symbolic variables that are handed over, as they are called outside.
    pub fn outer_dims(&self) -> impl Iterator<Item = PrimExpr> + '_ {
        self.dims.iter().map(|(outer, _)| PrimExpr::Var(outer.clone()))
    }

    /// The same, as they are called inside.
    pub fn inner_dims(&self) -> impl Iterator<Item = Ref<Var>> + '_ {
        self.dims.iter().map(|(_, inner)| inner.clone())
    }

    /// The values that are handed over.
    pub fn args(&self) -> impl Iterator<Item = Expr> + '_ {
        self.captured.iter().map(|(outer, _)| outer.clone())
    }

    /// The parameters that hold them inside.
    pub fn params(&self) -> impl Iterator<Item = &Ref<Var>> + '_ {
        self.captured.iter().map(|(_, inner)| inner)
    }
}
