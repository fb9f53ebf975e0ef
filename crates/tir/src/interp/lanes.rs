//! Vectors, all lanes of an operand at a time.
//!
//! Each lane has the value that [`Interp::eval_typed`] gives. What lanes have in common, such as the operand of a broadcast, the base of a
//! ramp and the indices of a row, is computed once. Expressions that look at some lanes only go lane by lane.

use relaxide_ffi::DataType;
use relaxide_ir::PrimExpr;
use relaxide_ir::prim::BufferLoad;

use super::memory::View;
use super::scalar::{self, Scalar};
use super::{Interp, Result};
use crate::analysis::wide::in_64_bits;

/// The index along one dimension: one for all lanes, or one for each.
enum Index {
    Common(i64),
    Each(Vec<i64>),
}

/// The indices of an access along all dimensions.
pub(super) struct Indices(Vec<Index>);

impl Indices {
    /// Those of a lane, into a list.
    pub(super) fn lane(&self, lane: usize, into: &mut Vec<i64>) {
        into.clear();
        into.extend(self.0.iter().map(|index| match index {
            Index::Common(at) => *at,
            Index::Each(lanes) => lanes[lane],
        }));
    }
}

impl Interp {
    /// The values of so many lanes, with the type of the elements.
    pub(super) fn eval_lanes(&mut self, e: &PrimExpr, lanes: usize) -> Result<(Vec<Scalar>, DataType)> {
        Ok(match e {
            PrimExpr::Cast(n) => {
                let (mut values, from) = self.eval_lanes(&n.value, lanes)?;
                values.iter_mut().for_each(|value| *value = value.convert(from, n.dtype));
                (values, n.dtype.element())
            }
            PrimExpr::Binary(n) => {
                let ((mut values, dtype), (others, other)) =
                    (self.eval_lanes(&n.a, lanes)?, self.eval_lanes(&n.b, lanes)?);
                let result = Interp::type_of_binary(n, dtype, other)?;
                for (value, other) in values.iter_mut().zip(others) {
                    *value = scalar::binary(n.op, dtype, *value, other, || e.to_string())?;
                }
                (values, result)
            }
            PrimExpr::Let(n) => {
                let value = self.eval(&n.value)?;
                self.set(&n.var, value);
                self.eval_lanes(&n.body, lanes)?
            }
            PrimExpr::Ramp(n) => {
                let (base, stride, dtype) = self.ramp(n)?;
                ((0..lanes).map(|lane| Interp::at_step(base, stride, lane, dtype)).collect(), dtype)
            }
            PrimExpr::Broadcast(n) if n.value.dtype().lanes <= 1 => {
                let (value, dtype) = self.eval_typed(&n.value, 0)?;
                (vec![value; lanes], dtype)
            }
            PrimExpr::Load(n) if n.predicate.is_none() && n.buffer.dtype.lanes <= 1 => {
                (self.load_lanes(n, lanes)?, n.buffer.dtype.element())
            }
            _ => {
                let (first, dtype) = self.eval_typed(e, 0)?;
                let rest = (1..lanes).map(|lane| self.eval_at(e, lane));
                (std::iter::once(Ok(first)).chain(rest).collect::<Result<_>>()?, dtype)
            }
        })
    }

    fn load_lanes(&mut self, n: &BufferLoad, lanes: usize) -> Result<Vec<Scalar>> {
        let view = self.view_of(&n.buffer)?;
        let indices = self.indices_of_lanes(&view, &n.indices, lanes)?;
        let mut at = self.spare.pop().unwrap_or_default();
        let values = (0..lanes).map(|lane| {
            indices.lane(lane, &mut at);
            self.memory.load(&view, &at, 0)
        });
        let values = values.collect();
        self.spare.push(at);
        values
    }

    /// The indices of an access in so many lanes, of the width that [`Interp::indices_at`] computes them in.
    pub(super) fn indices_of_lanes(&mut self, view: &View, indices: &[PrimExpr], lanes: usize) -> Result<Indices> {
        let is_large = view.is_large();
        let index = |e: &PrimExpr| {
            let wide = is_large.then(|| in_64_bits(e));
            let wide = wide.as_ref().unwrap_or(e);
            if e.dtype().lanes <= 1 {
                return self.eval_int(wide).map(Index::Common);
            }
            let (values, _) = self.eval_lanes(wide, lanes)?;
            values.into_iter().map(|value| Interp::integer(value, e)).collect::<Result<_>>().map(Index::Each)
        };
        indices.iter().map(index).collect::<Result<_>>().map(Indices)
    }
}
