//! Maxima that need not carry NaN, since a sum does.
//!
//! A maximum is NaN where an element of its row is, which takes three instructions an element where a plain maximum takes one. In a
//! softmax it does not matter: the element that is NaN stays so when the maximum is subtracted and in the exponential, the sum of
//! the exponentials is NaN by it, and so is everything that is divided by the sum.
//!
//! ```text
//! M[0] = max over k of v(k)                                    a plain maximum of what is no NaN
//! E[k] = exp_nonpositive(v(k) - M[0])                          NaN where v(k) is
//! S[0] = sum over k of E[k]                                    NaN if any is
//! B[k] = E[k] / S[0]                                           all of them
//! ```
//!
//! **Needs** that whatever reads the maximum, or a row that was made of it, is such a sum, or has a sum in it that makes it NaN; and
//! that nothing of it is a result of the kernel without. An exponential that nobody sums keeps the exact maximum.

use relaxide_ir::Buffer;
use relaxide_ir::Ref;
use relaxide_ir::prim::{BinaryOp, PrimExpr};

use super::affine::{loads, same};
use super::group::Work;

/// Marks the maxima among pieces that share a row; `private` says of each piece whether only the others see what it makes.
pub fn mark(pieces: &mut [Work], private: &[bool]) {
    for at in 0..pieces.len() {
        if shows(pieces, private, at)
            && let Some(Work::Reduce(reduce)) = pieces.get_mut(at)
        {
            reduce.stage.shown_elsewhere = true;
        }
    }
}

/// Whether the maximum is one that the pieces behind it make up for.
fn shows(pieces: &[Work], private: &[bool], at: usize) -> bool {
    let Some(Work::Reduce(maximum)) = pieces.get(at) else { return false };
    let is_maximum = maximum.stage.reduction.as_ref().is_some_and(|r| r.op == BinaryOp::Max);
    let plain = maximum.epilogue.as_var() == Some(&maximum.acc) && maximum.stage.spatial.is_empty();
    if !is_maximum || !plain || !maximum.stage.output.dtype.is_float() || private.get(at) != Some(&true) {
        return false;
    }
    let terms = Terms { maximum: &maximum.output, value: &maximum.stage.value };
    let extents = || maximum.stage.reduce.iter().map(|axis| &axis.extent);
    let mut rows: Vec<&Ref<Buffer>> = Vec::new();
    let mut sums: Vec<&Ref<Buffer>> = Vec::new();
    for (piece, private) in pieces.iter().zip(private).skip(at + 1) {
        match piece {
            Work::Reduce(reduce) => {
                let stage = &reduce.stage;
                let over_all = stage.reduce.len() == maximum.stage.reduce.len()
                    && stage.reduce.iter().zip(extents()).all(|(axis, extent)| same(&axis.extent, extent));
                let adds = stage.reduction.as_ref().is_some_and(|r| r.op == BinaryOp::Add);
                let shown = over_all && adds && (terms.is(&stage.value) || reads_whole(&stage.value, &rows));
                let finished = reduce.epilogue.as_var() == Some(&reduce.acc);
                if shown && finished && !reads(&reduce.epilogue, &rows, terms.maximum) {
                    sums.push(&reduce.output);
                } else if reads(&stage.value, &rows, terms.maximum) || reads(&reduce.epilogue, &rows, terms.maximum) {
                    return false;
                }
            }
            Work::Map(stage) if !reads(&stage.value, &rows, terms.maximum) => {}
            Work::Map(stage) if carries(&stage.value, &sums) => {}
            Work::Map(stage) if *private && terms.is(&stage.value) => rows.push(&stage.output),
            Work::Map(_) | Work::Rows(_) | Work::BackToBack(_) | Work::Opaque(_) => return false,
        }
    }
    !sums.is_empty()
}

/// The exponentials of what lies below a maximum.
struct Terms<'a> {
    maximum: &'a Ref<Buffer>,
    /// What it is the maximum of, by the names of its own axes.
    value: &'a PrimExpr,
}

impl Terms<'_> {
    /// Whether it is `exp_nonpositive(v - M)`, which is only made of the value that the maximum is of.
    fn is(&self, e: &PrimExpr) -> bool {
        let PrimExpr::Call(call) = e else { return false };
        let ("tirx.exp_nonpositive", [PrimExpr::Binary(d)]) = (call.op.as_str(), call.args.as_slice()) else {
            return false;
        };
        let below = d.op == BinaryOp::Sub && matches!(&d.b, PrimExpr::Load(read) if read.buffer == *self.maximum);
        let of = |e: &PrimExpr| loads(e).iter().map(|l| l.buffer.clone()).collect::<Vec<_>>();
        below && of(&d.a) == of(self.value)
    }
}

/// Whether it is an element of one of the rows and nothing else.
fn reads_whole(e: &PrimExpr, rows: &[&Ref<Buffer>]) -> bool {
    matches!(e, PrimExpr::Load(read) if read.predicate.is_none() && rows.contains(&&read.buffer))
}

fn reads(e: &PrimExpr, rows: &[&Ref<Buffer>], maximum: &Ref<Buffer>) -> bool {
    loads(e).iter().any(|l| l.buffer == *maximum || rows.contains(&&l.buffer))
}

/// Whether it is NaN wherever one of the sums is.
fn carries(e: &PrimExpr, sums: &[&Ref<Buffer>]) -> bool {
    match e {
        PrimExpr::Load(read) => read.predicate.is_none() && sums.contains(&&read.buffer),
        PrimExpr::Binary(n) => {
            let arithmetic = matches!(n.op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div);
            arithmetic && n.a.dtype().is_float() && (carries(&n.a, sums) || carries(&n.b, sums))
        }
        PrimExpr::Cast(n) => e.dtype().is_float() && n.value.dtype().is_float() && carries(&n.value, sums),
        PrimExpr::Call(n) => {
            matches!(n.op.as_str(), "tirx.log" | "tirx.exp") && n.args.iter().any(|a| carries(a, sums))
        }
        _ => false,
    }
}
