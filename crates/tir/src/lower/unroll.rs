//! Unrolled loops are written out.
//!
//! A loop marked as unrolled with a constant extent becomes its iterations one behind the other, each with names and
//! scratch of its own. One with a symbolic extent, one whose copies would exceed a limit, or one that a `break` or `continue`
//! of its own leaves, becomes serial: back ends unroll such loops as they see fit.

use relaxide_ffi::Ref;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{self, PrimMutator, PrimVisitor, VarMap};

use super::{LowerError, kernel_pass};
use crate::PrimFunc;
use crate::functor::{StmtMutator, StmtVisitor, fresh_copy, substitute_stmt};
use crate::jump::Jumps;
use crate::stmt::*;

/// Most statements that one loop may be written out to.
const MAX_STATEMENTS: i64 = 4096;

/// Its name.
pub(super) const NAME: &str = "tirx.transform.UnrollLoop";

pub(super) const PASS: PassInfo = kernel_pass!("tirx.transform.UnrollLoop", "Writes unrolled loops out.", unroll_loops);

/// A kernel without unrolled loops.
pub(super) fn unroll_loops(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    Ok(func.with_body(Unroll.mutate_stmt(&func.body)))
}

struct Unroll;

impl PrimMutator for Unroll {}

impl StmtMutator for Unroll {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        let Stmt::For(n) = stmt else { return self.remake_stmt(stmt) };
        if n.kind != ForKind::Unrolled {
            return self.remake_stmt(stmt);
        }
        let body = self.mutate_stmt(&n.body);
        let count = n.extent.as_int().filter(|count| count.saturating_mul(statements(&body)) <= MAX_STATEMENTS);
        let count = count.filter(|_| !Jumps::of(&body).of_loop);
        let Some(count) = count else {
            let (var, min, extent) = (n.var.clone(), n.min.clone(), n.extent.clone());
            let (thread_tag, annotations) = (n.thread_tag.clone(), n.annotations.clone());
            return Ref::new(For { var, min, extent, kind: ForKind::Serial, thread_tag, annotations, body }).into();
        };
        let copy = |i: i64| {
            let at = prim::add(&n.min, prim::int_of(n.var.dtype(), i));
            let copy = if i == 0 { body.clone() } else { fresh_copy(&body) };
            substitute_stmt(&copy, &VarMap::from([(n.var.clone(), at)]))
        };
        Stmt::seq((0..count).map(copy))
    }
}

/// How many statements there are that do something themselves.
fn statements(stmt: &Stmt) -> i64 {
    struct Count(i64);
    impl PrimVisitor for Count {
        fn visit_prim(&mut self, _: &relaxide_ir::PrimExpr) {}
    }
    impl StmtVisitor for Count {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            self.0 += i64::from(!matches!(stmt, Stmt::Seq(_) | Stmt::For(_) | Stmt::Decl(_)));
            self.walk_stmt(stmt);
        }
    }
    let mut count = Count(0);
    count.visit_stmt(stmt);
    count.0.max(1)
}
