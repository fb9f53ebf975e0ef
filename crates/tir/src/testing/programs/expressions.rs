//! Expressions of random programs.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::Var;
use relaxide_ir::prim::{self, BinaryOp, PrimExpr};

use super::{Dim, Known, ProgramWriter};

/// How deep elements are indices of elements.
const MAX_DATA_INDICES: usize = 3;

impl ProgramWriter<'_> {
    /// An index into a dimension.
    pub(super) fn index_into(&mut self, dim: &Dim) -> PrimExpr {
        let index = self.right_index(dim);
        if self.mistake && self.random.one_in(8) {
            self.mistake = false;
            return match self.random.below(3) {
                0 => index + &dim.expr,
                1 => index - &dim.expr,
                _ => index + 1_000_000,
            };
        }
        index
    }

    fn right_index(&mut self, dim: &Dim) -> PrimExpr {
        let own: Vec<PrimExpr> = self
            .scope
            .counters
            .iter()
            .filter(|c| c.dim.expr == dim.expr || c.dim.size == 1)
            .map(|c| c.value.clone())
            .collect();
        match self.random.below(8) {
            // A counter of that extent is the likeliest.
            0..=3 if !own.is_empty() => own[self.random.below(own.len())].clone(),
            4 if !own.is_empty() => &dim.expr - 1 - &own[self.random.below(own.len())],
            5 => {
                let limit = self.random.between(0, dim.size - 1);
                prim::int_of(self.index, limit)
            }
            6 => prim::min(prim::max(self.small(), prim::int_of(self.index, 0)), &dim.expr - 1),
            7 if self.data_indices < MAX_DATA_INDICES => {
                // Data as an index: any value, brought into range by the remainder alone.
                self.data_indices += 1;
                let data = self.leaf(DataType::int(32));
                self.data_indices -= 1;
                prim::floormod(prim::cast(self.index, data), &dim.expr)
            }
            _ => prim::floormod(self.small(), &dim.expr),
        }
    }

    /// An index expression of a small value, perhaps negative.
    fn small(&mut self) -> PrimExpr {
        let count = self.scope.counters.len();
        let a = match count {
            0 => prim::int_of(self.index, self.random.between(0, 9)),
            _ => self.scope.counters[self.random.below(count)].value.clone(),
        };
        let c = prim::int_of(self.index, self.random.between(1, 5));
        match self.random.below(6) {
            0 => a,
            1 => a + c,
            2 => a - c,
            3 => a * c,
            4 => prim::floordiv(a, c),
            _ => c - a,
        }
    }

    /// An element of a buffer that is filled.
    fn element(&mut self, known: &Known) -> PrimExpr {
        let indices: Vec<PrimExpr> = known.shape.iter().map(|d| self.index_into(d)).collect();
        prim::load(&known.buffer, indices)
    }

    /// A condition over counters and data.
    pub(super) fn condition(&mut self) -> PrimExpr {
        match self.random.below(3) {
            0 => prim::lt(self.small(), prim::int_of(self.index, self.random.between(0, 8))),
            1 => prim::eq(prim::floormod(self.small(), prim::int_of(self.index, 2)), prim::int_of(self.index, 0)),
            _ => self.expression(DataType::bool(), 2),
        }
    }

    /// An expression of some type.
    pub(super) fn expression(&mut self, dtype: DataType, depth: usize) -> PrimExpr {
        if depth == 0 || !self.random.mostly(4) {
            return self.leaf(dtype);
        }
        if dtype.is_bool() {
            return self.truth(depth);
        }
        match self.random.below(12) {
            0..=3 => self.arithmetic(dtype, depth),
            4 => self.division(dtype, depth),
            5 => {
                let condition = self.expression(DataType::bool(), depth - 1);
                let (a, b) = (self.expression(dtype, depth - 1), self.expression(dtype, depth - 1));
                prim::select(condition, a, b)
            }
            6 => {
                let condition = self.condition();
                let (a, b) = (self.expression(dtype, depth - 1), self.expression(dtype, depth - 1));
                prim::if_then_else(condition, a, b)
            }
            7 => self.guarded(dtype),
            8 => {
                let name = self.name("x");
                let var = Var::prim(name, dtype);
                let value = self.expression(dtype, depth - 1);
                self.scope.values.push(var.clone());
                let body = self.expression(dtype, depth - 1);
                self.scope.values.pop();
                Ref::new(prim::Let { var, value, body }).into()
            }
            9 => {
                let from = self.dtype();
                let value = self.expression(from, depth - 1);
                convert(value, dtype)
            }
            _ if dtype.is_float() => self.float_call(dtype, depth),
            _ => self.int_call(dtype, depth),
        }
    }

    pub(super) fn leaf(&mut self, dtype: DataType) -> PrimExpr {
        let read: Vec<usize> = (0..self.readable.len())
            .filter(|i| self.scope.writing.as_ref() != Some(&self.readable[*i].buffer))
            .collect();
        match self.random.below(8) {
            1 => {
                let value = self.small();
                convert(value, dtype)
            }
            2 if !self.scope.values.is_empty() => {
                let var = self.scope.values[self.random.below(self.scope.values.len())].clone();
                convert(PrimExpr::from(&var), dtype)
            }
            3 if !self.scalars.is_empty() => {
                let var = self.scalars[self.random.below(self.scalars.len())].0.clone();
                convert(PrimExpr::from(&var), dtype)
            }
            4 if self.scope.own.is_some() => match self.scope.own.clone() {
                Some((buffer, indices)) => convert(prim::load(&buffer, indices), dtype),
                None => self.literal(dtype),
            },
            3..=7 if !read.is_empty() => {
                let known = self.readable[read[self.random.below(read.len())]].clone();
                let element = self.element(&known);
                if dtype.is_integer()
                    && element.dtype().is_float()
                    && element.dtype().bits == dtype.bits
                    && self.random.one_in(3)
                {
                    return prim::call(dtype, "tirx.reinterpret", vec![self.plain(element)]);
                }
                convert(element, dtype)
            }
            _ => self.literal(dtype),
        }
    }

    /// A float that is no NaN, of which the payload is unspecified.
    fn plain(&mut self, e: PrimExpr) -> PrimExpr {
        let dtype = e.dtype();
        prim::min(prim::max(e, prim::float_of(dtype, -1e4)), prim::float_of(dtype, 1e4))
    }

    fn literal(&mut self, dtype: DataType) -> PrimExpr {
        if dtype.is_float() {
            return prim::float_of(dtype, self.random.between(0, 24) as f64 / 8.0);
        }
        if dtype.is_bool() {
            return prim::boolean(self.random.one_in(2));
        }
        // Of the types of indices, whose arithmetic does not overflow, extreme values come from memory only.
        let small = dtype.is_int() && dtype.bits >= 32;
        match self.random.below(if small { 4 } else { 6 }) {
            0..=3 => prim::int_of(dtype, self.random.between(0, 9)),
            4 => prim::lowest(dtype),
            _ => prim::highest(dtype),
        }
    }

    fn truth(&mut self, depth: usize) -> PrimExpr {
        use BinaryOp::*;
        let (a, b) = match self.random.below(5) {
            0 => {
                let a = self.expression(DataType::bool(), depth - 1);
                return prim::not(a);
            }
            1 => (self.expression(DataType::bool(), depth - 1), self.expression(DataType::bool(), depth - 1)),
            2 => {
                let dtype = DTYPES_OF_FLOATS[self.random.below(DTYPES_OF_FLOATS.len())];
                let test = ["isnan", "isinf", "isfinite"][self.random.below(3)];
                let value = self.expression(dtype, depth - 1);
                return prim::call(DataType::bool(), format!("tirx.{test}"), vec![value]);
            }
            _ => {
                let dtype = self.dtype();
                let (a, b) = (self.expression(dtype, depth - 1), self.expression(dtype, depth - 1));
                let ops: &[BinaryOp] = if dtype.is_bool() { &[And, Or, Eq, Ne] } else { &[Lt, Le, Gt, Ge, Eq, Ne] };
                return prim::binary(*self.random.pick(ops).unwrap_or(&Eq), a, b);
            }
        };
        prim::binary(if self.random.one_in(2) { Or } else { And }, a, b)
    }

    fn arithmetic(&mut self, dtype: DataType, depth: usize) -> PrimExpr {
        use BinaryOp::*;
        let op = *self.random.pick(&[Add, Sub, Min, Max, Mul]).unwrap_or(&Add);
        let a = self.expression(dtype, depth - 1);
        let b = match op {
            // Index arithmetic stays small.
            Mul if dtype.is_int() && dtype.bits >= 32 => self.literal(dtype),
            _ => self.expression(dtype, depth - 1),
        };
        // Products of sixteen-bit floats are exact in the precision that they are computed in.
        self.fused |= op == Mul && dtype.is_float() && dtype.bits > 16;
        prim::binary(op, a, b)
    }

    fn division(&mut self, dtype: DataType, depth: usize) -> PrimExpr {
        use BinaryOp::*;
        let op = *self.random.pick(&[FloorDiv, FloorMod, Div, Mod]).unwrap_or(&FloorDiv);
        let a = self.expression(dtype, depth - 1);
        if dtype.is_float() {
            let b = self.expression(dtype, depth - 1);
            return prim::binary(op, a, b);
        }
        let b = match self.random.below(3) {
            0 => prim::int_of(dtype, self.random.between(1, 9)),
            1 if dtype.is_int() => prim::int_of(dtype, self.random.between(-9, -2)),
            _ => {
                let data = self.expression(dtype, depth - 1);
                let low = prim::call(dtype, "tirx.bitwise_and", vec![data, prim::int_of(dtype, 7)]);
                prim::add(low, prim::int_of(dtype, 1))
            }
        };
        prim::binary(op, a, b)
    }

    /// An element behind or before a counter, where there is one.
    fn guarded(&mut self, dtype: DataType) -> PrimExpr {
        let counters = self.scope.counters.clone();
        let fits = |k: &Known, c: &super::Counter| k.shape.last().is_some_and(|d| d.expr == c.dim.expr);
        let pairs: Vec<(Known, super::Counter)> = self
            .readable
            .iter()
            .filter(|k| self.scope.writing.as_ref() != Some(&k.buffer))
            .flat_map(|k| counters.iter().filter(|c| fits(k, c)).map(|c| (k.clone(), c.clone())))
            .collect();
        let Some((known, counter)) = self.random.pick(&pairs).cloned() else { return self.leaf(dtype) };
        let mut indices: Vec<PrimExpr> =
            known.shape[..known.shape.len() - 1].iter().map(|d| self.index_into(d)).collect();
        let by = prim::int_of(self.index, self.random.between(1, 3));
        let (inside, at) = match self.random.one_in(2) {
            true => (prim::ge(&counter.value, by.clone()), &counter.value - by),
            false => (prim::lt(&counter.value + &by, &counter.dim.expr), &counter.value + by),
        };
        indices.push(at);
        let element = convert(prim::load(&known.buffer, indices), dtype);
        let other = self.literal(dtype);
        prim::if_then_else(inside, element, other)
    }

    fn float_call(&mut self, dtype: DataType, depth: usize) -> PrimExpr {
        const UNARY: [&str; 6] = ["fabs", "floor", "ceil", "round", "trunc", "sqrt"];
        let a = self.expression(dtype, depth - 1);
        match self.random.below(8) {
            name @ 0..=5 => prim::math(UNARY[name], a),
            6 => {
                let sign = self.expression(dtype, depth - 1);
                // The sign of a NaN is unspecified.
                let sign = self.plain(sign);
                prim::call(dtype, "tirx.copysign", vec![a, sign])
            }
            _ => {
                let (b, c) = (self.expression(dtype, depth - 1), self.expression(dtype, depth - 1));
                prim::call(dtype, "tirx.fma", vec![a, b, c])
            }
        }
    }

    fn int_call(&mut self, dtype: DataType, depth: usize) -> PrimExpr {
        const BINARY: [&str; 5] = ["bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right"];
        let a = self.expression(dtype, depth - 1);
        match self.random.below(9) {
            name @ 0..=4 => {
                let b = self.expression(dtype, depth - 1);
                prim::call(dtype, format!("tirx.{}", BINARY[name]), vec![a, b])
            }
            5 => prim::math("bitwise_not", a),
            6 => prim::math("popcount", a),
            7 => prim::math("clz", a),
            _ if dtype.is_int() => prim::math("fabs", a),
            _ => a,
        }
    }
}

const DTYPES_OF_FLOATS: [DataType; 4] =
    [DataType::float(32), DataType::float(64), DataType::float(16), DataType::bfloat16()];

/// A value as another type; floats are brought close before they become integers.
pub(super) fn convert(value: PrimExpr, dtype: DataType) -> PrimExpr {
    let from = value.dtype();
    if from.is_float() && dtype.is_integer() {
        let low = prim::float_of(from, if dtype.is_uint() { 0.0 } else { -100.0 });
        let near = prim::min(prim::max(value, low), prim::float_of(from, 100.0));
        return prim::cast(dtype, near);
    }
    prim::cast(dtype, value)
}
