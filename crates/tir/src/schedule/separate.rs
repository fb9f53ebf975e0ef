//! Extremes and sums over a window, first down its columns and then along its rows.
//!
//! ```text
//! M[y, x] = max over ky, kx of A[y*s + ky, x*s + kx]
//!     ->  D[y, z] = max over ky of A[y*s + ky, z]                  # z: all columns under the row of windows
//!         M[y, x] = max over kx of D[y, x*s + kx]
//! ```
//!
//! Neighbouring windows share their columns: three rows of windows of 3×3 with a step of two are nine comparisons an element at
//! once and seven in two steps, those of 13×13 with a step of one are 169 and 26. What is read down the columns is contiguous, whatever the
//! step. The two stages share their rows, so what lies between them is as long as a row ([`super::rows`]).
//!
//! Nothing else changes: an extreme may meet a term twice and in any order, NaN among them. A sum adds its columns first, and rounds as
//! often at most on the way to a result; sums of floats below 32 bits stay as they are, since theirs loses more.

use relaxide_ir::prim::{BinaryOp, PrimExpr, add, constant, gt, int, load, max, mul, select, sub};
use relaxide_ir::{Buffer, Var};

use super::affine::{same, uses};
use super::nest::Tail;
use super::rules::{Window, slide};
use super::stage::{Axis, Item, Program, Stage};

/// Separates the windows of a program.
pub fn run(program: &mut Program) {
    let mut items = Vec::with_capacity(program.items.len());
    for item in program.items.drain(..) {
        match item {
            Item::Stage(stage) => match separated(&stage) {
                Some((columns, rows)) => {
                    program.intermediates.push(columns.output.clone());
                    items.extend([Item::Stage(columns), Item::Stage(rows)]);
                }
                None => items.push(Item::Stage(stage)),
            },
            opaque => items.push(opaque),
        }
    }
    program.items = items;
}

/// The stage down the columns and the one along the rows.
fn separated(stage: &Stage) -> Option<(Stage, Stage)> {
    let reduction = stage.reduction.as_ref()?;
    let dtype = stage.output.dtype;
    let is_apart = match reduction.op {
        BinaryOp::Max | BinaryOp::Min => true,
        // What a sum starts from counts once for each column, too.
        BinaryOp::Add => !(dtype.is_float() && dtype.bits < 32) && same(&reduction.init, &constant(dtype, 0.0)),
        _ => false,
    };
    if !is_apart || !stage.is_identity() {
        return None;
    }
    // The row of the output, and of what it starts from, which must not depend on the place.
    let x = stage.indices.last()?.as_var().and_then(|v| stage.spatial.iter().find(|a| a.var == *v))?;
    if stage.spatial.iter().any(|a| uses(&reduction.init, &a.var)) {
        return None;
    }
    let column = Var::dim("column");
    let (window, value) = slide(&stage.value, x, &stage.reduce, &column).ok()?;
    let tap = window.tap.clone()?;
    let down: Vec<Axis> = stage.reduce.iter().filter(|a| a.var != tap.var).cloned().collect();
    if !pays(&window, &tap, &down) {
        return None;
    }
    // A row without windows has no columns either.
    let covered = add(mul(sub(&x.extent, int(1)), int(window.stride)), int(window.dilated_extent));
    let covered = match x.extent.as_int() {
        Some(_) => max(covered, int(0)),
        None => select(gt(&x.extent, int(0)), covered, int(0)),
    };
    let columns = Axis { var: column.clone(), extent: covered };
    let spatial: Vec<Axis> =
        stage.spatial.iter().map(|a| if a.var == x.var { columns.clone() } else { a.clone() }).collect();
    let buffer =
        Buffer::new("columns", stage.output.dtype, spatial.iter().map(|a| a.extent.clone()).collect::<Vec<_>>());
    let first = Stage {
        name: format!("{}_columns", stage.name),
        indices: spatial.iter().map(|a| PrimExpr::from(&a.var)).collect(),
        spatial,
        reduce: down,
        output: buffer.clone(),
        value,
        ahead: None,
        tail: Tail::Masked,
        shown_elsewhere: false,
        reduction: stage.reduction.clone(),
    }
    .freshened();
    let under =
        add(mul(PrimExpr::from(&x.var), int(window.stride)), mul(PrimExpr::from(&tap.var), int(window.dilation)));
    let at = |a: &Axis| if a.var == x.var { under.clone() } else { PrimExpr::from(&a.var) };
    let place: Vec<PrimExpr> = stage.spatial.iter().map(at).collect();
    let second = Stage { reduce: vec![tap], value: load(&buffer, place), ..stage.clone() };
    Some((first, second))
}

/// Whether two steps have less to do than one ([`separates`]).
fn pays(window: &Window, tap: &Axis, down: &[Axis]) -> bool {
    let count = |axes: &[Axis]| axes.iter().map(|a| a.extent.as_int()).try_fold(1i64, |n, e| n.checked_mul(e?));
    let (Some(across), Some(down)) = (tap.extent.as_int(), count(down)) else { return false };
    separates(down, across, window.stride, window.dilated_extent)
}

/// Whether windows of so many rows and columns are reduced in two steps: which have less to do than one. For each element of the output
/// that is terms that are loaded and combined; a vector of elements that lie some apart is put together of several. `dilated_extent` is how many
/// elements of a row lie under a window.
pub fn separates(down: i64, across: i64, stride: i64, dilated_extent: i64) -> bool {
    if down < 2 || across < 2 || stride > dilated_extent {
        return false;
    }
    let (near, combined) = (1, 3);
    let loaded = if stride == 1 { near } else { 3 * near };
    let once = down.saturating_mul(across).saturating_mul(loaded + combined);
    let twice = stride.saturating_mul(down).saturating_mul(near + combined) + across * (loaded + combined) + stride;
    twice < once
}
