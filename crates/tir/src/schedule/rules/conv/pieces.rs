//! Signals in pieces: a long output row becomes rows of a few hundred elements, and what is left.
//!
//! ```text
//! C[m, x]  for x in 0 .. 12801    ->    C[m, p*256 + x]  for p in 0 .. 50, x in 0 .. 256;    C[m, 12800 + x]  for x in 0 .. 1
//! ```
//!
//! The pieces are rows of an image to the rest of the rule: a block of some has a workspace that fits the cache, which each tile of
//! channels reads again. Whole rows of many channels do not fit, and where their distance is a multiple of a page they even share
//! the few lines of one set.

use relaxide_ir::Var;
use relaxide_ir::prim::{PrimExpr, add, floordiv, ge, gt, int, mul, sub};

use super::super::super::parameters::{Choices, Domain, Guess};
use super::super::super::{Axis, Cx, Machine, Reduce, Refusal};
use super::super::window::Windowed;
use super::decide::Decided;
use super::whole;
use crate::Stmt;
use crate::functor::fresh_copy;

/// Elements of a piece.
const PIECE: i64 = 256;
/// Elements that a piece of a signal of known length may have instead, so that nothing is left.
const DIVISORS: std::ops::RangeInclusive<i64> = 192..=384;
/// Channels from which signals of unknown length are cut.
const MANY_CHANNELS: i64 = 32;

/// Asks how long pieces are; `None` where the output is not one row that is cut.
pub(super) fn decide(machine: &Machine, window: &Windowed, choices: &mut Choices<'_>) -> Option<i64> {
    if window.y.is_some() || window.x.stride != 1 || !window.slides() {
        return None;
    }
    let extent = window.x.axis.extent.as_int();
    let guess = length(machine, window);
    let piece = choices.choose(Guess {
        name: "piece",
        value: guess.unwrap_or(0),
        domain: Domain::list((0..=1024).step_by(64).filter(|n| extent.is_none_or(|extent| *n <= extent))),
        reason: match guess {
            Some(_) => "a workspace of whole rows does not fit the cache; pieces of a few hundred elements do",
            None => "a workspace of the whole row fits the cache, or nobody knows whether it does",
        },
        limit: "0 leaves the signal whole; a piece is no longer than the signal",
    });
    (piece > 0).then_some(piece)
}

/// How long pieces are good to be.
fn length(machine: &Machine, window: &Windowed) -> Option<i64> {
    let dtype = window.c.reduce.stage.output.dtype;
    let depth = window.depth().as_int()?;
    let Some(extent) = window.x.axis.extent.as_int() else { return (depth >= MANY_CHANNELS).then_some(PIECE) };
    let bytes = depth.saturating_mul(extent).saturating_mul(i64::from(dtype.bits / 8));
    if extent < 4 * PIECE || bytes <= machine.l2_share() {
        return None;
    }
    Some(DIVISORS.rev().find(|n| extent % n == 0).unwrap_or(PIECE))
}

/// A signal in pieces.
pub(super) struct Cut {
    /// How many pieces there are, and the reduction over them.
    count: PrimExpr,
    pub(super) pieces: Reduce,
    /// How many elements are left behind them, and the reduction over these, if there can be any.
    left: PrimExpr,
    pub(super) rest: Option<Reduce>,
}

impl Cut {
    /// Cuts an axis of a reduction into pieces of so many elements.
    pub(super) fn of(reduce: &Reduce, x: &Axis, length: i64) -> Cut {
        let count = floordiv(&x.extent, int(length));
        let done = mul(&count, int(length));
        let left = sub(&x.extent, &done);
        let (piece, within, behind) = (Var::dim("piece"), Var::dim("x"), Var::dim("x"));
        let at = add(mul(PrimExpr::from(&piece), int(length)), PrimExpr::from(&within));
        let axes = [Axis { var: piece, extent: count.clone() }, Axis { var: within, extent: int(length) }];
        let pieces = reduce.with_axes(x, &axes, &at);
        let rest = (!left.is_int(0)).then(|| {
            let at = add(done, PrimExpr::from(&behind));
            reduce.with_axes(x, &[Axis { var: behind, extent: left.clone() }], &at)
        });
        Cut { count, pieces, left, rest }
    }
}

/// The nests of the pieces and of what is left.
pub(super) fn emit(cx: &mut Cx, reduce: &Reduce, x: &Axis, length: i64, decided: &Decided) -> Result<Stmt, Refusal> {
    let Cut { count, pieces, left, rest } = Cut::of(reduce, x, length);
    let pieces = whole(cx, &pieces, &decided.whole)?;
    let Some((rest, decided)) = rest.zip(decided.rest.as_ref()) else { return Ok(pieces) };
    let rest = fresh_copy(&whole(cx, &rest, decided)?);
    if x.extent.as_int().is_some() {
        return Ok(Stmt::seq([pieces, rest]));
    }
    Ok(Stmt::seq([Stmt::when(ge(count, int(1)), pieces), Stmt::when(gt(left, int(0)), rest)]))
}
