//! The next row, asked for while there is something to compute.
//!
//! Where one row goes through several pieces of work, the first that reads an input waits for memory, and those behind it
//! find the row in the cache and compute. So one of these asks for the row that comes next, vector by vector:
//!
//! ```text
//! for k: M = max(M, A[i, k])                    waits for memory
//! for k: E[k] = exp(A[i, k] - M)                computes: asks for A[i + 1, k] too
//! ```
//!
//! The row behind the last one is the last one again, so nothing outside of the input is named. Short rows are left to the
//! processor, which guesses well where the next one begins.

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::prim::{PrimExpr, VarMap, add, call, int, load, min, sub, substitute};
use relaxide_ir::{Buffer, DataType, Var};

use super::affine::{coefficient, flat_index, loads, product, uses_any};
use super::group::Work;
use super::rows::Rows;
use super::{Axis, Cx, nest};
use crate::Stmt;

/// Elements below which a row is short.
const SHORT: i64 = 512;
/// Bytes of a vector below which asking costs as much as it gains: several vectors share a line of the cache.
const NARROW: i64 = 32;

/// What a piece of work asks for ahead of its use.
#[derive(Clone, Debug)]
pub struct ReadAhead {
    /// Inputs whose rows are asked for.
    buffers: HashSet<Ref<Buffer>>,
    /// The axes that tell rows apart, in the next row.
    next: VarMap,
}

impl ReadAhead {
    /// The piece that should ask, what for, and statements that find the row `step` rows on; `None` where no piece should.
    pub fn in_rows(
        rows: &Rows,
        row: &Ref<Var>,
        step: PrimExpr,
        count: &PrimExpr,
    ) -> Option<(usize, ReadAhead, Vec<Stmt>)> {
        let written: HashSet<&Ref<Buffer>> = rows.pieces.iter().filter_map(output).collect();
        let inputs = |work: &Work| work.buffers().into_iter().filter(|b| !written.contains(b)).collect::<HashSet<_>>();
        let mut read = HashSet::new();
        let (piece, buffers) = rows.pieces.iter().enumerate().find_map(|(at, work)| {
            let own = inputs(work);
            let again: HashSet<Ref<Buffer>> = own.intersection(&read).cloned().collect();
            read.extend(own);
            let is_long = match work {
                Work::Map(stage) => {
                    product(stage.spatial.iter().map(|a| &a.extent)).as_int().is_none_or(|n| n >= SHORT)
                }
                _ => false,
            };
            (is_long && !again.is_empty()).then_some((at, again))
        })?;
        let after = Var::dim("next");
        let axes: Vec<Axis> =
            rows.axes.iter().map(|a| Axis { var: Var::dim(a.var.name.clone()), extent: a.extent.clone() }).collect();
        let next = rows.axes.iter().zip(&axes).map(|(a, b)| (a.var.clone(), PrimExpr::from(&b.var))).collect();
        let (_, binds) = nest::fuse(&axes, &after);
        let found = Stmt::bind(after, min(add(PrimExpr::from(row), step), sub(count, int(1))));
        Some((piece, ReadAhead { buffers, next }, [found].into_iter().chain(binds).collect()))
    }

    /// The requests of the vector at `axis = base`.
    pub fn of(&self, cx: &mut Cx, axis: &Ref<Var>, base: &PrimExpr, lanes: i64, value: &PrimExpr) -> Vec<Stmt> {
        let mut asked = Vec::new();
        for read in loads(value) {
            let flat = flat_index(&read.buffer, &read.indices);
            let bytes = lanes * read.buffer.dtype.bytes() as i64;
            let moves = coefficient(&flat, axis) == Some(1) && uses_any(&flat, self.next.keys());
            if bytes < NARROW || !moves || !self.buffers.contains(&read.buffer) {
                continue;
            }
            let mut map = self.next.clone();
            map.insert(axis.clone(), base.clone());
            let place = load(&cx.views.flat(&read.buffer), [substitute(&flat, &map)]);
            let request = Stmt::evaluate(call(DataType::int(32), "tirx.prefetch", vec![place]));
            if !asked.contains(&request) {
                asked.push(request);
            }
        }
        asked
    }
}

fn output(work: &Work) -> Option<&Ref<Buffer>> {
    match work {
        Work::Map(stage) => Some(&stage.output),
        Work::Reduce(reduce) => Some(&reduce.output),
        Work::Rows(_) | Work::Opaque(_) => None,
    }
}
