//! Elements of less than a byte, in words of a byte.
//!
//! ```text
//! B[i] = T.Cast("float32", A[i])       # A is int4       B[i] = T.Cast("float32", low(A[i // 2] >> (1 - i % 2) * 4))
//! ```
//!
//! For languages that have no such elements. Memory of them is memory of bytes, the first element in the upper bits of its byte; a value of
//! them is one of `int8` or `uint8`, of which only the lower bits count: it is wrapped (or, from a float, brought to the nearest that there
//! is) where it comes into being. A store reads the byte that it changes, so no two threads may store to neighbours: whoever schedules for
//! such a language has one thread store them.
//!
//! Values of floats of four bits keep their type; their code is the lower half of a byte.
//!
//! Needs: the lowered form. Leaves alone what has a width that does not divide eight.

use std::collections::HashMap;

use relaxide_ffi::{DataType, Ref, SmallFloat};
use relaxide_ir::prim::{self, BinaryOp, Let, PrimExpr, PrimMutator, PrimVisitor};
use relaxide_ir::{Buffer, Type, Var};

use crate::PrimFunc;
use crate::functor::{StmtMutator, StmtVisitor};
use crate::stmt::*;

/// Whether elements share a byte and are decomposed here.
pub fn is_decomposed(dtype: DataType) -> bool {
    is_decomposed_float(dtype) || is_decomposed_integer(dtype)
}

/// Whether they are floats, whose values keep their type: of a byte, the lower bits are theirs.
pub fn is_decomposed_float(dtype: DataType) -> bool {
    dtype.bits == 4 && dtype.lanes == 1 && SmallFloat::of(dtype).is_some()
}

fn is_decomposed_integer(dtype: DataType) -> bool {
    (dtype.is_int() || dtype.is_uint()) && matches!(dtype.bits, 1 | 2 | 4) && dtype.lanes == 1
}

/// Whether a statement stores such elements.
pub fn stores_packed(stmt: &Stmt) -> bool {
    struct Stores(bool);
    impl PrimVisitor for Stores {}
    impl StmtVisitor for Stores {
        fn visit_buffer_store(&mut self, buffer: &Ref<Buffer>) {
            self.0 |= is_decomposed(buffer.dtype);
        }
    }
    let mut stores = Stores(false);
    stores.visit_stmt(stmt);
    stores.0
}

/// The kernel in bytes.
pub fn decompose_packed(func: &PrimFunc) -> PrimFunc {
    let mut open = Open { buffers: HashMap::new(), vars: HashMap::new() };
    let buffers = func.buffers.iter().map(|buffer| buffer.as_ref().map(|buffer| open.buffer(buffer))).collect();
    let body = open.mutate_stmt(&func.body);
    PrimFunc { buffers, body, ..func.clone() }
}

/// The byte that stands for an element type.
fn byte_of(dtype: DataType) -> DataType {
    if dtype.is_uint() { DataType::uint(8) } else { DataType::int(8) }
}

fn word(value: i64) -> PrimExpr {
    prim::int_of(DataType::int(32), value)
}

fn call(op: &str, a: PrimExpr, b: PrimExpr) -> PrimExpr {
    prim::call(a.dtype(), format!("tirx.{op}"), vec![a, b])
}

/// The lower bits of a word of 32 as a value of the type, with its sign.
fn low(value: PrimExpr, dtype: DataType) -> PrimExpr {
    let bits = i64::from(dtype.bits);
    if is_decomposed_float(dtype) {
        let code = prim::cast(DataType::uint(8), call("bitwise_and", value, word((1 << bits) - 1)));
        return prim::call(dtype, "tirx.reinterpret", vec![code]);
    }
    let value = if dtype.is_uint() {
        call("bitwise_and", value, word((1 << bits) - 1))
    } else {
        call("shift_right", call("shift_left", value, word(32 - bits)), word(32 - bits))
    };
    prim::cast(byte_of(dtype), value)
}

struct Open {
    buffers: HashMap<Ref<Buffer>, Ref<Buffer>>,
    vars: HashMap<Ref<Var>, Ref<Var>>,
}

impl Open {
    fn buffer(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        if !is_decomposed(buffer.dtype) {
            return buffer.clone();
        }
        let known = self.buffers.entry(buffer.clone());
        let make = || {
            let per = 8 / i64::from(buffer.dtype.bits);
            let count = buffer.shape.iter().cloned().reduce(|a, b| a * b).unwrap_or_else(|| prim::int(1));
            let bytes = prim::binary(
                BinaryOp::FloorDiv,
                count.clone() + prim::int_of(count.dtype(), per - 1),
                prim::int_of(count.dtype(), per),
            );
            Ref::new(Buffer { dtype: DataType::uint(8), shape: vec![bytes], ..Buffer::clone(buffer) })
        };
        known.or_insert_with(make).clone()
    }

    /// The byte of an element: its buffer and index, and by how much the element is shifted in it.
    fn place(&mut self, buffer: &Ref<Buffer>, index: &PrimExpr) -> (Ref<Buffer>, PrimExpr, PrimExpr) {
        let index = self.mutate_prim(index);
        let per = 8 / i64::from(buffer.dtype.bits);
        let number = |value| prim::int_of(index.dtype(), value);
        let byte = prim::binary(BinaryOp::FloorDiv, index.clone(), number(per));
        let rest = prim::binary(BinaryOp::FloorMod, index.clone(), number(per));
        let shift = (number(per - 1) - rest) * number(i64::from(buffer.dtype.bits));
        (self.buffer(buffer), byte, prim::cast(DataType::int(32), shift))
    }

    /// A value as one of the type: what is too large for it is wrapped, and brought to the nearest where it was a float.
    fn wrapped(&self, value: PrimExpr, dtype: DataType) -> PrimExpr {
        if value.dtype().is_float() || value.dtype().code == DataType::BFLOAT {
            let bits = u32::from(dtype.bits);
            let (least, most) =
                if dtype.is_uint() { (0, (1 << bits) - 1) } else { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) };
            let whole = prim::cast(DataType::int(32), value);
            let within = prim::binary(BinaryOp::Min, prim::binary(BinaryOp::Max, whole, word(least)), word(most));
            return prim::cast(byte_of(dtype), within);
        }
        low(prim::cast(DataType::int(32), value), dtype)
    }

    fn variable(&mut self, var: &Ref<Var>) -> Ref<Var> {
        if !is_decomposed_integer(var.dtype()) {
            return var.clone();
        }
        let make = || Var::new(var.name.clone(), Type::prim(byte_of(var.dtype())));
        self.vars.entry(var.clone()).or_insert_with(make).clone()
    }
}

impl PrimMutator for Open {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Var(var) => PrimExpr::Var(self.variable(var)),
            PrimExpr::Int(n) if is_decomposed_integer(n.dtype) => prim::int_of(byte_of(n.dtype), n.value),
            PrimExpr::Load(n) if is_decomposed(n.buffer.dtype) && n.indices.len() == 1 && n.predicate.is_none() => {
                let (bytes, byte, shift) = self.place(&n.buffer, &n.indices[0]);
                let loaded = prim::cast(DataType::int(32), prim::load(&bytes, [byte]));
                low(call("shift_right", loaded, shift), n.buffer.dtype)
            }
            PrimExpr::Cast(n) if is_decomposed_integer(n.dtype) => {
                let value = self.mutate_prim(&n.value);
                self.wrapped(value, n.dtype)
            }
            PrimExpr::Binary(n) if is_decomposed_integer(e.dtype()) => {
                let wide = |this: &mut Self, e: &PrimExpr| prim::cast(DataType::int(32), this.mutate_prim(e));
                let (a, b) = (wide(self, &n.a), wide(self, &n.b));
                low(prim::binary(n.op, a, b), e.dtype())
            }
            PrimExpr::Call(n) if is_decomposed_integer(n.dtype) && n.op != "tirx.if_then_else" => {
                let args = self.mutate_prims(&n.args);
                let value = prim::call(byte_of(n.dtype), n.op.clone(), args);
                self.wrapped(value, n.dtype)
            }
            PrimExpr::Call(n) if is_decomposed_integer(n.dtype) => {
                let args = self.mutate_prims(&n.args);
                prim::call(byte_of(n.dtype), n.op.clone(), args)
            }
            PrimExpr::Let(n) => {
                let (value, var) = (self.mutate_prim(&n.value), self.variable(&n.var));
                Ref::new(Let { var, value, body: self.mutate_prim(&n.body) }).into()
            }
            _ => self.remake_prim(e),
        }
    }

    fn mutate_buffer_use(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        self.buffer(buffer)
    }
}

impl StmtMutator for Open {
    fn mutate_var_def(&mut self, var: &Ref<Var>) -> Ref<Var> {
        self.variable(var)
    }

    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::Store(n) if is_decomposed(n.buffer.dtype) && n.indices.len() == 1 && n.predicate.is_none() => {
                let mask = word((1 << n.buffer.dtype.bits) - 1);
                let value = self.mutate_prim(&n.value);
                let value = match is_decomposed_float(n.buffer.dtype) {
                    true => prim::call(DataType::uint(8), "tirx.reinterpret", vec![value]),
                    false => value,
                };
                let value = prim::cast(DataType::int(32), value);
                let (bytes, byte, shift) = self.place(&n.buffer, &n.indices[0]);
                let old = prim::cast(DataType::int(32), prim::load(&bytes, [byte.clone()]));
                let hole = call("bitwise_xor", call("shift_left", mask.clone(), shift.clone()), word(-1));
                let kept = call("bitwise_and", old, hole);
                let new = call("shift_left", call("bitwise_and", value, mask), shift);
                Stmt::store(&bytes, [byte], prim::cast(DataType::uint(8), call("bitwise_or", kept, new)))
            }
            _ => self.remake_stmt(stmt),
        }
    }
}
