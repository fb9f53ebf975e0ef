//! Loops that are left early say so.
//!
//! ```text
//! for i in range(4):                for i in T.serial(4, annotations={"irregular_loop_mark": 1}):
//!     if n == 3:              ->        if n == 3:
//!         break                             break
//!     A[i] = 2.0                        A[i] = 2.0
//! ```
//!
//! A `break` or `continue` belongs to the innermost loop around it. What reverses loops, splits them or makes vectors of them
//! may then leave the marked ones alone without looking inside. Only serial and unrolled loops can be left early: the iterations of
//! others have no order, and such a program is refused.

use relaxide_ffi::Ref;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{PrimExpr, PrimMutator};

use super::{LowerError, kernel_pass};
use crate::PrimFunc;
use crate::early_exit::EarlyExits;
use crate::functor::StmtMutator;
use crate::stmt::*;

/// The annotation of such a loop.
const MARK: &str = "irregular_loop_mark";

pub(super) const PASS: PassInfo =
    kernel_pass!("s_tir.transform.AnnotateIrregularLoop", "Loops that are left early say so.", annotate);

/// A kernel whose loops that are left early have a mark.
fn annotate(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    let mut annotate = Annotate { error: None };
    let body = annotate.mutate_stmt(&func.body);
    match annotate.error {
        Some(error) => Err(error),
        None => Ok(func.with_body(body)),
    }
}

struct Annotate {
    error: Option<LowerError>,
}

impl PrimMutator for Annotate {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        e.clone()
    }
}

impl StmtMutator for Annotate {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        let made = self.remake_stmt(stmt);
        let Stmt::For(n) = &made else { return made };
        if !EarlyExits::of(&n.body).of_loop {
            return made;
        }
        if !matches!(n.kind, ForKind::Serial | ForKind::Unrolled) {
            let message = format!("the loop over `{}`, of kind {:?}, cannot be left early", n.var.name, n.kind);
            self.error.get_or_insert(LowerError::Refused(message));
        }
        let annotations = n.annotations.clone().with(MARK, 1);
        Ref::new(For { annotations, ..(**n).clone() }).into()
    }
}
