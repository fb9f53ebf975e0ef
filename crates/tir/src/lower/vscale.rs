//! Scalable vectors on machines that have none.
//!
//! ```text
//! A[T.Ramp(i, 1, T.vscale() * 4)]   ->   A[T.Ramp(i, 1, 4)]
//! ```
//!
//! A program with scalable vectors is right for every length that the machine may have. One without them has the shortest:
//! `T.vscale()` is one, which is also what the reference interpreter takes it for. Sizes of buffers that mention it are left
//! to the back ends, which know the same.

use std::collections::HashMap;

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::Var;
use relaxide_ir::prim::{self, Let, PrimExpr, PrimMutator, PrimVisitor, VSCALE};

use crate::PrimFunc;
use crate::functor::{StmtMutator, StmtVisitor};

/// The kernel with vectors of fixed lanes; `None` where it has no others.
pub fn fix_vscale(func: &PrimFunc) -> Option<PrimFunc> {
    let mut found = Scalable(false);
    found.visit_stmt(&func.body);
    found.0.then(|| func.with_body(Fix::default().mutate_stmt(&func.body)))
}

struct Scalable(bool);

impl PrimVisitor for Scalable {
    fn visit_prim(&mut self, e: &PrimExpr) {
        self.0 |= match e {
            PrimExpr::Ramp(n) => n.lanes < 0,
            PrimExpr::Broadcast(n) => n.lanes < 0,
            PrimExpr::Call(n) => n.op == VSCALE,
            _ => false,
        };
        if !self.0 {
            self.walk_prim(e);
        }
    }
}

impl StmtVisitor for Scalable {}

#[derive(Default)]
struct Fix {
    /// Names of scalable vectors, and of the fixed ones in their place.
    vars: HashMap<Ref<Var>, Ref<Var>>,
}

impl PrimMutator for Fix {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Var(var) => self.vars.get(var).map_or_else(|| e.clone(), PrimExpr::from),
            PrimExpr::Ramp(n) if n.lanes < 0 => {
                let (base, stride) = (self.mutate_prim(&n.base), self.mutate_prim(&n.stride));
                prim::ramp(base, stride, -n.lanes)
            }
            PrimExpr::Broadcast(n) if n.lanes < 0 => prim::broadcast(self.mutate_prim(&n.value), -n.lanes),
            PrimExpr::Let(n) => {
                let value = self.mutate_prim(&n.value);
                let var = self.mutate_var_def(&n.var);
                Ref::new(Let { var, value, body: self.mutate_prim(&n.body) }).into()
            }
            PrimExpr::Call(n) if n.op == VSCALE => prim::int_of(n.dtype, 1),
            PrimExpr::Call(n) if n.dtype.scalable_lanes().is_some() => {
                prim::call(fixed(n.dtype), n.op.clone(), self.mutate_prims(&n.args))
            }
            _ => self.remake_prim(e),
        }
    }
}

impl StmtMutator for Fix {
    fn mutate_var_def(&mut self, var: &Ref<Var>) -> Ref<Var> {
        if var.dtype().scalable_lanes().is_none() {
            return var.clone();
        }
        let fixed = Var::prim(var.name.clone(), fixed(var.dtype()));
        self.vars.insert(var.clone(), fixed.clone());
        fixed
    }
}

fn fixed(dtype: DataType) -> DataType {
    dtype.scalable_lanes().map_or(dtype, |lanes| dtype.with_lanes(lanes))
}
