//! What passes share that put other statements in the place of some loops.

use relaxide_ir::prim::{PrimExpr, PrimMutator};

use super::LowerError;
use crate::PrimFunc;
use crate::functor::StmtMutator;
use crate::stmt::*;

/// The function with what `rewrite` makes of its loops, the inner first; `None` leaves a loop as it is.
pub fn rewrite_loops(
    func: &PrimFunc,
    rewrite: impl Fn(&For) -> Option<Result<Stmt, LowerError>>,
) -> Result<PrimFunc, LowerError> {
    let mut loops = Loops { rewrite, error: None };
    let body = loops.mutate_stmt(&func.body);
    loops.error.map_or(Ok(func.with_body(body)), Err)
}

struct Loops<F> {
    rewrite: F,
    error: Option<LowerError>,
}

impl<F> PrimMutator for Loops<F> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        e.clone()
    }
}

impl<F: Fn(&For) -> Option<Result<Stmt, LowerError>>> StmtMutator for Loops<F> {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        let made = self.remake_stmt(stmt);
        let Stmt::For(n) = &made else { return made };
        match (self.rewrite)(n) {
            None => made,
            Some(Ok(rewritten)) => rewritten,
            Some(Err(error)) => {
                self.error.get_or_insert(error);
                made
            }
        }
    }
}

/// The statements of a body, in order.
pub fn statements(body: &Stmt) -> Vec<Stmt> {
    match body {
        Stmt::Seq(n) => n.seq.iter().flat_map(statements).collect(),
        _ => vec![body.clone()],
    }
}
