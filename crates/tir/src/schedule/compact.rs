//! Products that read every second pixel read a compact copy instead.
//!
//! ```text
//! C[n, m, y, x] = sum over c of W[m, c] * D[n, c, 2y, 2x]
//!     ->  S[n, c, y, x] = D[n, c, 2y, 2x]
//!         C[n, m, y, x] = sum over c of W[m, c] * S[n, c, y, x]      # now a matrix product over the merged image
//! ```
//!
//! Such is the 1x1 convolution with a stride that brings residual networks from one resolution to the next. The copy is made
//! once and costs as much as one of the product's many rows; without it the image's rows, seven pixels in the last layers,
//! end each vector. Where a kernel's window slides, the convolution's workspace is that copy already.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{PrimExpr, VarMap, load, mul, substitute};
use relaxide_ir::{Buffer, Var};

use super::affine::{coefficient, flat_index, linear, loads, uses};
use super::group::{Reduce, Work};
use super::nest::Tail;
use super::rules::Contraction;
use super::stage::{Axis, Program, Stage};

/// Steps up to which a row of the output is taken for a row of pixels.
const MOST: i64 = 4;

/// Puts the copies before the products that want them.
pub fn run(program: &mut Program, work: Vec<Work>) -> Vec<Work> {
    let mut all = Vec::new();
    for piece in work {
        match &piece {
            Work::Reduce(reduce) => match compacted(reduce) {
                Some((copy, reduce)) => {
                    program.intermediates.push(copy.output.clone());
                    all.extend([Work::Map(copy), Work::Reduce(reduce)]);
                }
                None => all.push(piece),
            },
            _ => all.push(piece),
        }
    }
    all
}

/// The copy, and the product that reads it.
fn compacted(reduce: &Reduce) -> Option<(Stage, Reduce)> {
    let Contraction { mut reduce, row, column, x, columns, rows, batch, inner } = Contraction::of(reduce).ok()?;
    if rows.is_empty() {
        return None;
    }
    let mut axes: Vec<Axis> = batch.into_iter().chain(inner).chain(columns).filter(|a| uses(&column, &a.var)).collect();
    axes.push(x.clone());
    if !is_strided(&column, &x.var, &axes) {
        return None;
    }
    let shape: Vec<PrimExpr> = axes.iter().map(|a| a.extent.clone()).collect();
    let buffer = Buffer::scoped("compact", column.dtype(), shape, "global");
    let own: Vec<Axis> = axes.iter().map(|a| Axis { var: Var::dim(a.var.name.clone()), ..a.clone() }).collect();
    let at = |axes: &[Axis]| axes.iter().map(|a| PrimExpr::from(&a.var)).collect::<Vec<_>>();
    let map: VarMap = axes.iter().map(|a| a.var.clone()).zip(at(&own)).collect();
    let copy = Stage {
        name: "compact".into(),
        indices: at(&own),
        spatial: own,
        reduce: Vec::new(),
        output: buffer.clone(),
        reduction: None,
        value: substitute(&column, &map),
        ahead: None,
        tail: Tail::Masked,
        shown_elsewhere: false,
    };
    reduce.stage.value = mul(load(&buffer, at(&axes)), row);
    Some((copy, reduce))
}

/// Whether an operand moves by several elements along the output's row, and no window slides over it: each of its indices
/// is a multiple of one axis at most.
fn is_strided(column: &PrimExpr, x: &Ref<Var>, axes: &[Axis]) -> bool {
    let reads = loads(column);
    let [read] = reads.as_slice() else { return false };
    let alone = read.indices.iter().all(|index| {
        let mut own = axes.iter().filter(|a| uses(index, &a.var));
        match (own.next(), own.next()) {
            (None, _) => true,
            (Some(axis), None) => {
                linear(index, &axis.var).is_some_and(|(slope, rest)| slope.as_int().is_some() && rest.is_int(0))
            }
            _ => false,
        }
    });
    alone && coefficient(&flat_index(&read.buffer, &read.indices), x).is_some_and(|step| (2..=MOST).contains(&step))
}
