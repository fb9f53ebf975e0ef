//! Products whose matrix lies in panels of which the last is not full: a nest of its own for the columns that it has.
//!
//! ```text
//! C[m, n] for n in 0 .. 1000    ->    C[m, 64 p + x]  for p in 0 .. 15, x in 0 .. 64;    C[m, 960 + x]  for x in 0 .. 40
//! ```
//!
//! Panels that are all full have been made an axis before ([`column_panels`](crate::schedule)).

use relaxide_ir::prim::int;

use super::super::contraction::Contraction;
use crate::schedule::{Axis, Reduce, column_panels};

/// The sums of full panels, which are an axis, and those of the last panel's columns; none where there is no such panel.
pub(super) fn apart(c: &Contraction) -> Option<(Reduce, Reduce)> {
    let (reduce, quotients) = (&c.reduce, column_panels::of(c)?);
    let (width, columns) = (quotients.by()?, c.x.extent.as_int()?);
    let (full, left) = (columns / width, columns % width);
    if full == 0 || left == 0 {
        return None;
    }
    // As if it were full.
    let mut padded = (*reduce).clone();
    with_extent(&mut padded, &c.x, (full + 1) * width);
    let panels = quotients.split(&padded)?;
    let at = reduce.stage.spatial.iter().position(|axis| axis.var == c.x.var)?;
    let [panel, x] = [at, at + 1].map(|at| panels.stage.spatial.get(at).cloned());
    let (panel, x) = panel.zip(x)?;
    let mut last = panels.with_axes(&panel, &[], &int(full));
    with_extent(&mut last, &x, left);
    let mut before = panels;
    with_extent(&mut before, &panel, full);
    Some((before, last))
}

fn with_extent(reduce: &mut Reduce, axis: &Axis, extent: i64) {
    for own in reduce.stage.spatial.iter_mut().filter(|own| own.var == axis.var) {
        own.extent = int(extent);
    }
}
