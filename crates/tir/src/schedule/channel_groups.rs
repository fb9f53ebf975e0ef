//! Channels of convolutions in groups as two axes: which group, and which channel of it.
//!
//! ```text
//! C[n, m, y, x] = sum over c, … of W[m, c, …] * D[n, m // 64 * 32 + c, …]
//!     ->  C[n, 64 g + i, y, x] = sum over c, … of W[64 g + i, c, …] * D[n, 32 g + c, …]
//! ```
//!
//! The image belongs to a group, the weights alone to a channel in it: so each group is a convolution whose channels share what they read of
//! the image, where a channel for itself reads all of it. Groups of few channels stay as they are: a tile of registers has more rows than those.

use super::affine::uses;
use super::group::{Reduce, Work};
use super::quotients::Quotients;
use super::rules::Contraction;

/// Channels of a group from which they are worth an axis.
const LEAST: i64 = 6;

/// Gives groups of channels an axis, in every sum of products that has them.
pub fn run(work: Vec<Work>) -> Vec<Work> {
    let grouped = |piece| match piece {
        Work::Reduce(reduce) => Work::Reduce(grouped(&reduce).unwrap_or(reduce)),
        other => other,
    };
    work.into_iter().map(grouped).collect()
}

fn grouped(reduce: &Reduce) -> Option<Reduce> {
    let c = Contraction::of_numbers_or_words(reduce).ok()?;
    if !c.rows.is_empty() {
        return None;
    }
    let shared = c.batch.iter().filter(|axis| uses(&c.row, &axis.var));
    let quotients = shared.filter_map(|axis| Quotients::of(&c.column, &axis.var, "group", false)).next()?;
    if quotients.by()? < LEAST { None } else { quotients.split(reduce) }
}
