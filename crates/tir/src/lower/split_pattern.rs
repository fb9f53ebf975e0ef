//! Quotients and remainders in the order that simplifies.
//!
//! ```text
//! i % 16 // 4     ->     i // 4 % 4
//! ```
//!
//! Both are the third digit of `i` to base four, but of the second form the quotient is one that other indices have, too, and a
//! sum by that divisor leaves it: `(n * 16 + i) // 4` becomes `n * 4 + i // 4`. Needs that the divisors divide each other.
//!
//! Only divisions that round down have this law.

use relaxide_ir::BinaryOp;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{self, PrimExpr, PrimMutator};

use super::{LowerError, kernel_pass};
use crate::PrimFunc;
use crate::functor::StmtMutator;
use crate::stmt::*;

pub(super) const PASS: PassInfo = kernel_pass!(
    "s_tir.transform.RenormalizeSplitPattern",
    "Quotients of remainders become remainders of quotients.",
    renormalize
);

/// A kernel whose indices are digits of quotients.
fn renormalize(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    let mut analyzer = Analyzer::new();
    analyzer.mark_dims(func.buffers.iter().flatten().flat_map(|b| &b.shape));
    Ok(func.with_body(Renormalize { analyzer }.mutate_stmt(&func.body)))
}

struct Renormalize {
    analyzer: Analyzer,
}

impl Renormalize {
    /// `a // divisor`.
    fn quotient(&mut self, a: &PrimExpr, divisor: i64) -> Option<PrimExpr> {
        let PrimExpr::Binary(n) = a else { return None };
        let by = |value: i64| prim::int_of(a.dtype(), value);
        match n.op {
            BinaryOp::FloorMod => {
                let modulus = n.b.as_int().filter(|m| *m > 0 && m % divisor == 0)?;
                let quotient = self.divided(&n.a, divisor);
                Some(prim::floormod(quotient, by(modulus / divisor)))
            }
            // What is a multiple leaves a sum of quotients.
            BinaryOp::Add => {
                let (product, rest) = match (factor(&n.a), factor(&n.b)) {
                    (Some(_), _) => (&n.a, &n.b),
                    (None, Some(_)) => (&n.b, &n.a),
                    _ => return None,
                };
                let factor = factor(product)?;
                if factor % divisor == 0 {
                    return Some(exactly(product, divisor)? + self.divided(rest, divisor));
                }
                // Of a divisor that the factor divides, the rest is divided in two steps.
                if divisor % factor != 0 {
                    return None;
                }
                let sum = exactly(product, factor)? + self.divided(rest, factor);
                Some(prim::floordiv(sum, by(divisor / factor)))
            }
            _ => None,
        }
    }

    fn divided(&mut self, a: &PrimExpr, divisor: i64) -> PrimExpr {
        self.quotient(a, divisor).unwrap_or_else(|| prim::floordiv(a, prim::int_of(a.dtype(), divisor)))
    }
}

/// The literal factor of a product, from two on.
fn factor(e: &PrimExpr) -> Option<i64> {
    match e {
        PrimExpr::Binary(n) if n.op == BinaryOp::Mul => n.b.as_int().filter(|factor| *factor > 1),
        _ => None,
    }
}

/// A product by a divisor that divides its literal factor.
fn exactly(e: &PrimExpr, divisor: i64) -> Option<PrimExpr> {
    let PrimExpr::Binary(n) = e else { return None };
    Some(prim::mul(&n.a, prim::int_of(e.dtype(), factor(e)? / divisor)))
}

impl PrimMutator for Renormalize {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        let e = self.remake_prim(e);
        let PrimExpr::Binary(n) = &e else { return e };
        let index = e.dtype().is_int() && e.dtype().lanes == 1 && e.dtype().bits >= 32;
        if n.op != BinaryOp::FloorDiv || !index {
            return e;
        }
        let Some(divisor) = n.b.as_int().filter(|d| *d > 1) else { return e };
        match self.quotient(&n.a, divisor) {
            Some(quotient) => self.analyzer.simplify(&quotient),
            None => e,
        }
    }
}

impl StmtMutator for Renormalize {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        let Stmt::For(n) = stmt else { return self.remake_stmt(stmt) };
        let mark = self.analyzer.assume(&prim::ge(&n.extent, 1));
        self.analyzer.bind(&n.var, n.min.clone(), n.extent.clone());
        let made = self.remake_stmt(stmt);
        self.analyzer.forget(mark);
        made
    }
}
