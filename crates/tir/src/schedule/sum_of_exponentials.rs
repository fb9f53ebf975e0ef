//! Divisions by the sum of a row's exponentials.
//!
//! A softmax divides each element of a row by one number. A processor divides a vector in the time of five to ten products:
//!
//! ```text
//! E[k] = exp_nonpositive(v(k) - M[0])
//! S[0] = sum over k of E[k]
//! B[k] = E[k] / S[0]                  ->          B[k] = E[k] * (1 / S[0])
//! ```
//!
//! One over a number is no safe replacement in general: it may be infinite or lose its bits where the quotient does not. This
//! sum is at least one, which the row's maximum adds, and at most the row's length, so that the product is the quotient but
//! for one rounding more. In half precision even a length may be too much; there divisions stay.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{Binary, BinaryOp, BufferLoad, PrimExpr, PrimMutator, VarMap, constant, div, mul, substitute};

use super::affine::same;
use super::group::{Reduce, Work};

/// Replaces the divisions in pieces that share a row. Exponentials of what lies below a maximum have been marked before.
pub fn multiply_instead(pieces: &mut [Work]) {
    for position in 1..pieces.len() {
        let (before, rest) = pieces.split_at_mut(position);
        let Some(stage) = rest.first_mut().and_then(Work::stage_mut) else { continue };
        for sum in before.iter().filter_map(|work| sum_of_exponentials(work, before)) {
            stage.value = Multiply(sum).mutate_prim(&stage.value);
        }
    }
}

/// The work as a sum of all exponentials of a row.
fn sum_of_exponentials<'a>(work: &'a Work, pieces: &[Work]) -> Option<&'a Reduce> {
    let Work::Reduce(sum) = work else { return None };
    let of = &sum.stage;
    let plain = sum.epilogue.as_var() == Some(&sum.acc) && of.spatial.is_empty() && of.value.dtype().bits >= 32;
    if !plain || of.reduction.as_ref().is_none_or(|r| r.op != BinaryOp::Add) {
        return None;
    }
    let kept = || pieces.iter().any(|piece| makes_term(piece, sum));
    (is_exponential(&of.value) || kept()).then_some(sum)
}

/// Whether a piece makes, as exponentials, what a sum adds up.
fn makes_term(piece: &Work, sum: &Reduce) -> bool {
    let (Work::Map(made), PrimExpr::Load(term)) = (piece, &sum.stage.value) else { return false };
    let axes = made.spatial.iter().zip(&sum.stage.reduce);
    let names: VarMap = axes.clone().map(|(own, axis)| (own.var.clone(), PrimExpr::from(&axis.var))).collect();
    let whole = made.spatial.len() == sum.stage.reduce.len() && axes.clone().all(|(a, b)| same(&a.extent, &b.extent));
    whole
        && is_exponential(&made.value)
        && term.predicate.is_none()
        && term.buffer == made.output
        && term.indices.len() == made.indices.len()
        && term.indices.iter().zip(&made.indices).all(|(a, b)| same(a, &substitute(b, &names)))
}

fn is_exponential(value: &PrimExpr) -> bool {
    matches!(value, PrimExpr::Call(n) if n.op == "tirx.exp_nonpositive")
}

struct Multiply<'a>(&'a Reduce);

impl Multiply<'_> {
    fn is_sum(&self, read: &Ref<BufferLoad>) -> bool {
        read.predicate.is_none()
            && read.buffer == self.0.output
            && read.indices.len() == self.0.indices.len()
            && read.indices.iter().zip(&self.0.indices).all(|(a, b)| same(a, b))
    }

    fn divides_by_sum(&self, n: &Ref<Binary>) -> bool {
        n.op == BinaryOp::Div
            && !matches!(n.a, PrimExpr::Float(_))
            && matches!(&n.b, PrimExpr::Load(read) if self.is_sum(read))
    }
}

impl PrimMutator for Multiply<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Binary(n) if self.divides_by_sum(n) => {
                let inverse = div(constant(n.b.dtype(), 1.0), &n.b);
                mul(self.mutate_prim(&n.a), inverse)
            }
            _ => self.remake_prim(e),
        }
    }
}
