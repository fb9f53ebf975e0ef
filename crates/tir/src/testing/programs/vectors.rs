//! Explicit vectors of random programs: ramps over the whole memory of a buffer, with predicates for the rest.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::Var;
use relaxide_ir::prim::{self, BinaryOp, BufferLoad, PrimExpr};

use super::expressions::convert;
use super::nests::view_of;
use super::{Known, ProgramWriter};
use crate::stmt::*;

/// Where a vector of elements lies.
struct Lanes {
    count: i64,
    /// The first element's flat index.
    base: PrimExpr,
    /// The flat indices of all.
    index: PrimExpr,
    /// How many elements there are.
    total: PrimExpr,
    size: i64,
    predicate: Option<PrimExpr>,
}

impl ProgramWriter<'_> {
    /// All elements, some at a time.
    pub(super) fn vectors(&mut self, known: &Known) -> Stmt {
        let count = *self.random.pick(&[4, 8, 2, 16, 3]).unwrap_or(&4);
        let size: i64 = known.shape.iter().map(|d| d.size).product();
        let total = self.flat_size(known);
        let constant = total.as_int().is_some();
        let var = Var::prim(self.name("o"), self.index);
        let by = prim::int_of(self.index, count);
        let base = PrimExpr::from(&var) * &by;
        let index = prim::ramp(base.clone(), prim::int_of(self.index, 1), count);
        let bound = prim::lt(index.clone(), prim::broadcast(total.clone(), count));
        let predicate = (!constant || size % count != 0).then_some(bound);
        let trips = prim::floordiv(&total + prim::int_of(self.index, count - 1), by);
        let lanes = Lanes { count, base, index, total, size, predicate };
        let value = self.vector(known.buffer.dtype, &lanes, 3);
        let (buffer, indices) = (self.flat(known), vec![lanes.index.clone()]);
        let store: Stmt = Ref::new(BufferStore { buffer, value, indices, predicate: lanes.predicate }).into();
        let kind = if self.random.one_in(3) { ForKind::Parallel } else { ForKind::Serial };
        Stmt::for_loop(kind, var, trips, store)
    }

    fn flat_size(&self, known: &Known) -> PrimExpr {
        known.shape.iter().fold(prim::int_of(self.index, 1), |n, d| n * &d.expr)
    }

    fn flat(&self, known: &Known) -> Ref<relaxide_ir::Buffer> {
        Ref::new(view_of(&known.buffer, vec![self.flat_size(known)], vec![]))
    }

    fn vector(&mut self, dtype: DataType, lanes: &Lanes, depth: usize) -> PrimExpr {
        use BinaryOp::*;
        let wide = |dtype: DataType| dtype.with_lanes(lanes.count as u16);
        if depth == 0 || !self.random.mostly(4) {
            return self.vector_leaf(dtype, lanes);
        }
        if dtype.is_bool() {
            let of = self.dtype();
            let (a, b) = (self.vector(of, lanes, depth - 1), self.vector(of, lanes, depth - 1));
            let ops: &[BinaryOp] = if of.is_bool() { &[And, Or] } else { &[Lt, Le, Eq, Ne, Gt, Ge] };
            return prim::binary(*self.random.pick(ops).unwrap_or(&Eq), a, b);
        }
        match self.random.below(6) {
            0..=2 => {
                let op = *self.random.pick(&[Add, Sub, Min, Max, Mul]).unwrap_or(&Add);
                self.fused |= op == Mul && dtype.is_float() && dtype.bits > 16;
                prim::binary(op, self.vector(dtype, lanes, depth - 1), self.vector(dtype, lanes, depth - 1))
            }
            3 => {
                let condition = self.vector(DataType::bool(), lanes, depth - 1);
                prim::select(condition, self.vector(dtype, lanes, depth - 1), self.vector(dtype, lanes, depth - 1))
            }
            4 => {
                let from = self.dtype();
                let value = self.vector(from, lanes, depth - 1);
                convert(value, wide(dtype))
            }
            _ if dtype.is_float() => {
                let name = *self.random.pick(&["fabs", "floor", "ceil", "round", "trunc", "sqrt"]).unwrap_or(&"fabs");
                prim::math(name, self.vector(dtype, lanes, depth - 1))
            }
            _ => {
                let a = self.vector(dtype, lanes, depth - 1);
                let c = prim::int_of(wide(dtype), self.random.between(1, 7));
                match self.random.below(4) {
                    0 => prim::floordiv(a, c),
                    1 => prim::floormod(a, c),
                    2 => prim::call(wide(dtype), "tirx.shift_right", vec![a, c]),
                    _ => prim::call(wide(dtype), "tirx.bitwise_xor", vec![a, c]),
                }
            }
        }
    }

    fn vector_leaf(&mut self, dtype: DataType, lanes: &Lanes) -> PrimExpr {
        let wide = dtype.with_lanes(lanes.count as u16);
        let alike: Vec<Known> = self
            .readable
            .iter()
            .filter(|k| self.scope.writing.as_ref() != Some(&k.buffer))
            .filter(|k| k.shape.iter().map(|d| d.size).product::<i64>() == lanes.size)
            .filter(|k| {
                prim::sub(self.flat_size(k), &lanes.total).is_int(0)
                    || self.flat_size(k).to_string() == lanes.total.to_string()
            })
            .cloned()
            .collect();
        let others: Vec<Known> =
            self.readable.iter().filter(|k| self.scope.writing.as_ref() != Some(&k.buffer)).cloned().collect();
        match self.random.below(8) {
            1..=3 if !alike.is_empty() => {
                let known = alike[self.random.below(alike.len())].clone();
                let one = prim::int_of(self.index, 1);
                let index = match self.random.below(3) {
                    // Backwards: the predicate is the same lane for lane.
                    1 => prim::ramp(&lanes.total - one - &lanes.base, prim::int_of(self.index, -1), lanes.count),
                    _ => lanes.index.clone(),
                };
                self.vector_load(&known, index, lanes.predicate.clone(), wide)
            }
            4 | 5 if !others.is_empty() => {
                let known = others[self.random.below(others.len())].clone();
                let total = prim::broadcast(self.flat_size(&known), lanes.count);
                let by = prim::int_of(self.index, self.random.between(1, 3));
                let start = prim::int_of(self.index, self.random.between(0, 3));
                let index = prim::floormod(prim::ramp(start, by, lanes.count), total);
                self.vector_load(&known, index, None, wide)
            }
            6 => prim::broadcast(self.leaf(dtype), lanes.count),
            7 => convert(lanes.index.clone(), wide),
            _ => prim::broadcast(self.leaf(dtype), lanes.count),
        }
    }

    fn vector_load(&mut self, known: &Known, index: PrimExpr, predicate: Option<PrimExpr>, wide: DataType) -> PrimExpr {
        let load = BufferLoad { buffer: self.flat(known), indices: vec![index], predicate };
        convert(Ref::new(load).into(), wide)
    }
}
