//! Prefetches the next row while there is something to compute.
//!
//! Where one row goes through several pieces of work, the first that reads an input waits for memory, and those behind it
//! find the row in the cache and compute. So one of these prefetches the next row, vector by vector:
//!
//! ```text
//! for k: M = max(M, A[i, k])                    waits for memory
//! for k: E[k] = exp(A[i, k] - M)                computes: prefetches A[i + 1, k] too
//! ```
//!
//! Norms read a row once for its mean and again for its variance, and have little to compute: of long rows the first sum asks
//! as well, and for the row that the last piece will write.
//!
//! What short rows keep between pieces is memory of their own, and the row that a later piece writes is
//! asked for while that is made. Kept in the written row itself, it would be read back while its stores still wait for that memory.
//!
//! The row behind the last one is the last one again, so nothing outside of the input is named. Short rows are taken in
//! groups, and ask for the next group: processors guess what is read next, but only up to the end of a page, which is about
//! where a group ends.

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::prim::{BinaryOp, BufferLoad, PrimExpr, VarMap, add, call, int, load, min, sub, substitute};
use relaxide_ir::{Buffer, DataType, Var};

use super::affine::{coefficient, flat_index, loads, uses, uses_any};
use super::group::Work;
use super::machine::elements_in_line;
use super::rows::Rows;
use super::{Axis, Cx, Stage, nest};
use crate::Stmt;

/// Bytes of a vector below which asking costs as much as it gains: several vectors share a line of the cache.
const NARROW: i64 = 32;

/// What a piece of work asks for ahead of its use.
#[derive(Clone, Debug)]
pub struct Prefetch {
    /// The memory of the inputs whose rows are asked for.
    inputs: HashSet<Ref<Var>>,
    /// The axes that tell rows apart, in the next row.
    next: VarMap,
    /// The row that a later piece writes.
    written: Option<WrittenRow>,
}

/// A row that is written later.
#[derive(Clone, Debug)]
pub struct WrittenRow {
    /// Where.
    pub buffer: Ref<Buffer>,
    /// The indices; `None` is the last index of what the asking piece stores.
    pub indices: Vec<Option<PrimExpr>>,
}

impl Prefetch {
    /// Asks for a row that is written later.
    pub fn of_written(row: WrittenRow) -> Prefetch {
        Prefetch { inputs: HashSet::new(), next: VarMap::new(), written: Some(row) }
    }

    /// Asks for what another asks for, too.
    pub fn with(self, other: Option<Box<Prefetch>>) -> Prefetch {
        Prefetch { written: other.and_then(|other| other.written), ..self }
    }

    /// The pieces that should ask, what for, and statements that find the row `step` rows on; `None` where no piece should.
    pub fn in_rows(
        rows: &Rows,
        row: &Ref<Var>,
        step: PrimExpr,
        count: &PrimExpr,
    ) -> Option<(Vec<usize>, Prefetch, Vec<Stmt>)> {
        let written: HashSet<Ref<Var>> = rows.pieces.iter().filter_map(output).map(|b| b.data.clone()).collect();
        let inputs = |work: &Work| -> HashSet<Ref<Var>> {
            work.buffers().into_iter().map(|b| b.data.clone()).filter(|data| !written.contains(data)).collect()
        };
        let mut read = HashSet::new();
        let (piece, inputs) = rows.pieces.iter().enumerate().find_map(|(at, work)| {
            let own = inputs(work);
            let again: HashSet<Ref<Var>> = own.intersection(&read).cloned().collect();
            read.extend(own);
            (matches!(work, Work::Map(_)) && !again.is_empty()).then_some((at, again))
        })?;
        let sum = first_of_sums(rows.pieces[..piece].iter()).filter(|_| rows.together.is_none());
        let pieces = sum.into_iter().chain([piece]).collect();
        let after = Var::dim("next");
        let axes: Vec<Axis> =
            rows.axes.iter().map(|a| Axis { var: Var::dim(a.var.name.clone()), extent: a.extent.clone() }).collect();
        let next = rows.axes.iter().zip(&axes).map(|(a, b)| (a.var.clone(), PrimExpr::from(&b.var))).collect();
        let (_, binds) = nest::fuse(&axes, &after);
        let found = Stmt::bind(after, min(add(PrimExpr::from(row), step), sub(count, int(1))));
        let ahead = Prefetch { inputs, next, written: None };
        Some((pieces, ahead, [found].into_iter().chain(binds).collect()))
    }

    /// The requests of the vector at `axis = base` of what is stored at `indices`.
    pub fn of(
        &self,
        cx: &mut Cx,
        axis: &Ref<Var>,
        base: &PrimExpr,
        lanes: i64,
        value: &PrimExpr,
        indices: &[PrimExpr],
    ) -> Vec<Stmt> {
        let mut asked = Vec::new();
        let mut ask = |how: &str, buffer: &Ref<Buffer>, place: PrimExpr, next: &VarMap| {
            let bytes = lanes * buffer.dtype.bytes() as i64;
            if bytes < NARROW || coefficient(&place, axis) != Some(1) {
                return;
            }
            let mut map = next.clone();
            map.insert(axis.clone(), base.clone());
            let (first, flat) = (substitute(&place, &map), cx.views.flat(buffer));
            // Several registers are several lines, of which a row's last vector may not have all.
            for at in (0..lanes).step_by(elements_in_line(buffer.dtype) as usize) {
                let line = add(&first, int(at));
                let line = if at == 0 { line } else { min(line, sub(buffer.num_elements(), int(1))) };
                let request = request(how, &flat, line);
                if !asked.contains(&request) {
                    asked.push(request);
                }
            }
        };
        for read in loads(value).iter().filter(|read| self.inputs.contains(&read.buffer.data)) {
            let place = flat_index(&read.buffer, &read.indices);
            if uses_any(&place, self.next.keys()) {
                ask("tirx.prefetch", &read.buffer, place, &self.next);
            }
        }
        if let (Some(row), Some(own)) = (&self.written, indices.last()) {
            let indices: Vec<PrimExpr> = row.indices.iter().map(|i| i.clone().unwrap_or_else(|| own.clone())).collect();
            ask("tirx.prefetch_write", &row.buffer, flat_index(&row.buffer, &indices), &VarMap::new());
        }
        asked
    }
}

/// The first of the pieces, where it and another one are sums of what they read: those of a norm. Sums of windows are none, which slide along
/// the row.
pub fn first_of_sums<'a>(pieces: impl Iterator<Item = &'a Work>) -> Option<usize> {
    let sum = |work: &'a Work| match work {
        Work::Reduce(reduce) => {
            reduce.stage.reduction.as_ref().filter(|r| r.op == BinaryOp::Add).map(|_| &reduce.stage)
        }
        _ => None,
    };
    let sums: Vec<(usize, &Stage)> = pieces.enumerate().filter_map(|(at, work)| Some((at, sum(work)?))).collect();
    let slides = |stage: &Stage| {
        let moved = |index: &PrimExpr, axes: &[Axis]| axes.iter().any(|axis| uses(index, &axis.var));
        let last = |load: &BufferLoad| {
            load.indices.last().is_some_and(|i| moved(i, &stage.spatial) && moved(i, &stage.reduce))
        };
        loads(&stage.value).iter().any(|load| last(load))
    };
    let is_norm = sums.len() > 1 && !sums.iter().any(|(_, stage)| slides(stage));
    sums.first().filter(|_| is_norm).map(|(at, _)| *at).filter(|at| *at == 0)
}

/// Asks for an element's line: `how` is `tirx.prefetch` or `tirx.prefetch_write`.
pub fn request(how: &str, flat: &Ref<Buffer>, place: PrimExpr) -> Stmt {
    Stmt::evaluate(call(DataType::int(32), how, vec![load(flat, [place])]))
}

fn output(work: &Work) -> Option<&Ref<Buffer>> {
    match work {
        Work::Map(stage) => Some(&stage.output),
        Work::Reduce(reduce) => Some(&reduce.output),
        Work::Rows(_) | Work::BackToBack(_) | Work::Opaque(_) => None,
    }
}
