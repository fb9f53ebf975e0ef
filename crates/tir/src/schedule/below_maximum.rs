//! Exponentials of what lies below a maximum.
//!
//! A softmax subtracts from each element the maximum of its row before it takes the exponential, which therefore is never
//! asked for a positive number. The exponential is cheaper where that is known:
//!
//! ```text
//! M[0] = max over k of v(k)
//! E[k] = exp(v(k) - M[0])          ->          E[k] = exp_nonpositive(v(k) - M[0])
//! ```
//!
//! Of a result that is no normal number only a zero is left, as nothing beside the one that the row's maximum adds.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{BinaryOp, BufferLoad, PrimExpr, PrimMutator, VarMap, call, substitute};

use super::affine::same;
use super::group::{Reduce, Work};
use super::stage::Stage;

/// Marks the exponentials in pieces that share a row.
pub fn mark(pieces: &mut [Work]) {
    for position in 1..pieces.len() {
        let (before, rest) = pieces.split_at_mut(position);
        let Some(piece) = rest.first_mut() else { return };
        let stage = match piece {
            Work::Map(stage) => stage,
            Work::Reduce(reduce) => &mut reduce.stage,
            Work::Rows(_) | Work::BackToBack(_) | Work::Opaque(_) => continue,
        };
        for work in before.iter() {
            if let Some(maximum) = Maximum::of(work, stage) {
                stage.value = Marker(&maximum).mutate_prim(&stage.value);
            }
        }
    }
}

/// A maximum over a row, in the words of a piece that may read it.
struct Maximum<'a> {
    reduce: &'a Reduce,
    /// What it is the maximum of.
    value: PrimExpr,
}

impl<'a> Maximum<'a> {
    fn of(work: &'a Work, reader: &Stage) -> Option<Maximum<'a>> {
        let Work::Reduce(reduce) = work else { return None };
        let of = &reduce.stage;
        let plain = reduce.epilogue.as_var() == Some(&reduce.acc) && of.spatial.is_empty();
        if !plain || of.reduction.as_ref().is_none_or(|r| r.op != BinaryOp::Max) {
            return None;
        }
        let axes: Vec<_> = reader.spatial.iter().chain(&reader.reduce).collect();
        if axes.len() != of.reduce.len() || axes.iter().zip(&of.reduce).any(|(a, b)| !same(&a.extent, &b.extent)) {
            return None;
        }
        let names: VarMap = of.reduce.iter().zip(axes).map(|(b, a)| (b.var.clone(), PrimExpr::from(&a.var))).collect();
        Some(Maximum { reduce, value: substitute(&of.value, &names) })
    }

    fn is(&self, read: &Ref<BufferLoad>) -> bool {
        read.predicate.is_none()
            && read.buffer == self.reduce.output
            && read.indices.len() == self.reduce.indices.len()
            && read.indices.iter().zip(&self.reduce.indices).all(|(a, b)| same(a, b))
    }
}

struct Marker<'a>(&'a Maximum<'a>);

impl PrimMutator for Marker<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Call(n) if n.op == "tirx.exp" => match n.args.as_slice() {
                [arg @ PrimExpr::Binary(d)] if d.op == BinaryOp::Sub => match &d.b {
                    PrimExpr::Load(read) if self.0.is(read) && same(&d.a, &self.0.value) => {
                        call(n.dtype, "tirx.exp_nonpositive", vec![arg.clone()])
                    }
                    _ => self.remake_prim(e),
                },
                _ => self.remake_prim(e),
            },
            _ => self.remake_prim(e),
        }
    }
}
