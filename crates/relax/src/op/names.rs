//! Values that the element of a compute needs more than once, each computed once.
//!
//! An expression is a tree where it is compiled: what is written into it twice is text twice, and its parts are, too. A name is
//! text once, whoever uses it.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::prim::{Let, PrimExpr};

/// Names in the order in which they are bound.
#[derive(Default)]
pub struct Names(Vec<(Ref<Var>, PrimExpr)>);

impl Names {
    /// The name of a value, or the value where that is a number or a name itself.
    pub fn of(&mut self, hint: &str, value: PrimExpr) -> PrimExpr {
        if matches!(value, PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Var(_)) {
            return value;
        }
        let var = Var::prim(hint, value.dtype());
        let name = PrimExpr::from(&var);
        self.0.push((var, value));
        name
    }

    /// An expression in which the names stand for their values.
    pub fn around(self, body: PrimExpr) -> PrimExpr {
        self.0.into_iter().rev().fold(body, |body, (var, value)| Ref::new(Let { var, value, body }).into())
    }
}
