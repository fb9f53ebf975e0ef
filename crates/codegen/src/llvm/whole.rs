//! Whole numbers that are floats between bounds, as integers of few bits: what quantization ends in.
//!
//! ```text
//! uint8(min(max(round(v), 0), 255))    ->    the last eight bits of  lrint(min(max(v, 0), 255))
//! uint8(min(max(round(v) + 3, 0), 255))    ->    the last eight bits of  lrint(…)
//! ```
//!
//! Any other conversion truncates, saturates and asks whether there is a number ([`convert`](super::convert)). Here bounds that are integers of the
//! result's type do that already, and the instruction that converts rounds to nearest even, as `round` does. x86-64 has one, which gives
//! 0x80000000 for what is no number: the last bits of that are zero, as they are to be.

use relaxide_ir::prim::{BinaryOp, Cast, PrimExpr, binary, literal_float, select};
use relaxide_tir::intrin::Intrinsic;

use super::{
    kernel::Body,
    value::{Ty, Val},
};
use crate::error::CodegenError;

/// The most bits of a result of which the last bits of 0x80000000 are a zero.
const MOST_BITS: u8 = 16;

impl Body<'_, '_> {
    /// A vector of bounded whole numbers as integers; none where the conversion has to look at more, or the processor does not round so.
    pub fn whole_numbers(&mut self, cast: &Cast) -> Result<Option<Val>, CodegenError> {
        let is_narrow = cast.dtype.is_integer() && cast.dtype.bits <= MOST_BITS;
        if !self.kernel.rounds_to_ints || !is_narrow || cast.dtype.lane_count() < 2 || !is_f32(&cast.value) {
            return Ok(None);
        }
        let Some(Bounded { value, low: Some(low), high: Some(high) }) = Bounded::of(&cast.value) else {
            return Ok(None);
        };
        let (least, most) = range(cast);
        if low < least || high > most {
            return Ok(None);
        }
        let value = self.eval(&value)?;
        let words = value.ty.with_kind(Ty::I32);
        let ints = self.f.intrinsic(&format!("lrint.{}", words.mangled()), value.ty, words, &[&value]);
        let to = self.kernel.ty(cast.dtype)?;
        Ok(Some(self.f.convert(&ints, to)))
    }
}

/// A whole number between bounds.
struct Bounded {
    /// What rounds to it.
    value: PrimExpr,
    low: Option<f64>,
    high: Option<f64>,
}

impl Bounded {
    /// Reads minima and maxima with whole numbers, of what is rounded or whole anyway: rounded bounds are the bounds, so that all are taken before
    /// the value is rounded.
    fn of(e: &PrimExpr) -> Option<Bounded> {
        match e {
            PrimExpr::Binary(n) if matches!(n.op, BinaryOp::Min | BinaryOp::Max) => {
                let (bound, inner) = match (literal_float(&n.a), literal_float(&n.b)) {
                    (None, Some(bound)) => (bound, &n.a),
                    (Some(bound), None) => (bound, &n.b),
                    _ => return None,
                };
                Bounded::of(inner)?.bounded(n.op, bound, |value| match literal_float(&n.b) {
                    Some(_) => binary(n.op, value, n.b.clone()),
                    None => binary(n.op, n.a.clone(), value),
                })
            }
            PrimExpr::Select(n) => {
                let PrimExpr::Binary(compared) = &n.condition else { return None };
                let (bound, other) = (literal_float(&n.false_value)?, &n.true_value);
                let (op, is_first) = match (literal_float(&compared.a), literal_float(&compared.b)) {
                    (Some(below), None) if below == bound && compared.b == *other => (BinaryOp::Max, true),
                    (None, Some(above)) if above == bound && compared.a == *other => (BinaryOp::Min, false),
                    _ => return None,
                };
                if compared.op != BinaryOp::Lt {
                    return None;
                }
                Bounded::of(other)?.bounded(op, bound, |value| {
                    let (a, b) = if is_first {
                        (compared.a.clone(), value.clone())
                    } else {
                        (value.clone(), compared.b.clone())
                    };
                    select(binary(BinaryOp::Lt, a, b), value, n.false_value.clone())
                })
            }
            PrimExpr::Call(n) if is_round(Intrinsic::of_call(&n.op)) => {
                Some(Bounded { value: n.args.first()?.clone(), low: None, high: None })
            }
            other => is_whole(other).then(|| Bounded { value: other.clone(), low: None, high: None }),
        }
    }

    /// The same within another bound.
    fn bounded(self, op: BinaryOp, bound: f64, of: impl FnOnce(PrimExpr) -> PrimExpr) -> Option<Bounded> {
        let Bounded { value, low, high } = self;
        if bound.fract() != 0.0 {
            return None;
        }
        // What both bounds give lies between them, whichever comes first.
        let least = |own: Option<f64>| Some(own.map_or(bound, |own| own.min(bound)));
        let most = |own: Option<f64>| Some(own.map_or(bound, |own| own.max(bound)));
        let (low, high) = match op {
            BinaryOp::Max => (least(low), high),
            _ => (low, most(high)),
        };
        Some(Bounded { value: of(value), low, high })
    }
}

fn is_f32(e: &PrimExpr) -> bool {
    e.dtype().is_float() && e.dtype().bits == 32
}

fn is_round(intrinsic: Option<Intrinsic>) -> bool {
    matches!(intrinsic, Some(Intrinsic::Round | Intrinsic::Nearbyint))
}

/// Whether a float is whole, or no number.
fn is_whole(e: &PrimExpr) -> bool {
    match e {
        PrimExpr::Float(n) => n.value.fract() == 0.0,
        PrimExpr::Cast(n) => n.value.dtype().is_integer() || n.value.dtype().is_bool(),
        PrimExpr::Broadcast(n) => is_whole(&n.value),
        PrimExpr::Select(n) => is_whole(&n.true_value) && is_whole(&n.false_value),
        PrimExpr::Binary(n) => {
            let keeps = matches!(n.op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max);
            keeps && is_whole(&n.a) && is_whole(&n.b)
        }
        PrimExpr::Call(n) => {
            let intrinsic = Intrinsic::of_call(&n.op);
            is_round(intrinsic) || matches!(intrinsic, Some(Intrinsic::Floor | Intrinsic::Ceil | Intrinsic::Trunc))
        }
        _ => false,
    }
}

/// The least and the largest number of the integers that a conversion gives.
fn range(cast: &Cast) -> (f64, f64) {
    let bits = i32::from(cast.dtype.bits);
    match cast.dtype.is_uint() {
        true => (0.0, 2f64.powi(bits) - 1.0),
        false => (-(2f64.powi(bits - 1)), 2f64.powi(bits - 1) - 1.0),
    }
}
