//! Columns of products whose matrix lies in panels as two axes: which panel, and which column of it.
//!
//! ```text
//! C[m, n] = sum over k of A[m, k] * B[n // 64, k, n % 64]
//!     ->  C[m, 64 p + x] = sum over k of A[m, k] * B[p, k, x]
//! ```
//!
//! A panel is what a tile of registers reads, from its beginning to its end, so that nothing has to be packed.

use super::group::{Reduce, Work};
use super::quotients::Quotients;
use super::rules::Contraction;

/// Gives panels of columns an axis, in every sum of products that has them.
pub fn run(work: Vec<Work>) -> Vec<Work> {
    let in_panels = |piece| match piece {
        Work::Reduce(reduce) => Work::Reduce(in_panels(&reduce).unwrap_or(reduce)),
        other => other,
    };
    work.into_iter().map(in_panels).collect()
}

fn in_panels(reduce: &Reduce) -> Option<Reduce> {
    of(&Contraction::of_numbers_or_words(reduce).ok()?)?.split(reduce)
}

/// The panels that the columns of a product's matrix lie in, by the quotients and remainders of its indices.
pub(super) fn of(c: &Contraction) -> Option<Quotients> {
    Quotients::of(&c.column, &c.x.var, "panel", true)
}
