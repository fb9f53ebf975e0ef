//! Memory of narrow floats becomes memory of their bits.
//!
//! ```text
//! A: T.Buffer((16,), "bfloat16")          A: T.Buffer((16,), "uint16")
//! ... T.float32(A[i])               ->    ... T.float32(T.reinterpret("bfloat16", A[i]))
//! ```
//!
//! For back ends and callers that have no such type in memory. Values are still of the narrow type: a load is reinterpreted, and
//! so is what is stored. Parameters change as well, so who calls the kernel gives it the bits.
//!
//! Two passes are this one: `BF16StorageLegalize`, over 16 bits, and `FP8StorageLegalize`, over eight. Both stand behind the passes
//! that say what is computed in ([`promote_floats`](super::promote_floats)).

use std::collections::HashMap;

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{self, BufferLoad, PrimExpr, PrimMutator};
use relaxide_ir::{Buffer, Type, Var};

use super::promote_floats::{BF16_SINCE, FP8_SINCE, has, is_bf16, is_fp8};
use super::{LowerError, kernel_pass};
use crate::PrimFunc;
use crate::functor::StmtMutator;
use crate::stmt::*;

pub(super) const BF16: PassInfo =
    kernel_pass!("tirx.transform.BF16StorageLegalize", "Memory of bfloat16 becomes memory of 16 bits.", store_bf16);

pub(super) const FP8: PassInfo = kernel_pass!(
    "tirx.transform.FP8StorageLegalize",
    "Memory of floats of eight bits becomes memory of bytes.",
    store_fp8
);

fn store_bf16(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    if has(func, BF16_SINCE)? { Ok(func.clone()) } else { Ok(store_bits(func, is_bf16)) }
}

fn store_fp8(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    if has(func, FP8_SINCE)? { Ok(func.clone()) } else { Ok(store_bits(func, is_fp8)) }
}

/// A kernel whose memory holds the bits of some types.
fn store_bits(func: &PrimFunc, narrow: fn(DataType) -> bool) -> PrimFunc {
    let mut bits = Bits { narrow, vars: HashMap::new(), buffers: HashMap::new() };
    let buffers = func.buffers.iter().map(|b| b.as_ref().map(|b| bits.mutate_buffer_use(b))).collect();
    let params = func.params.iter().map(|param| bits.param(param)).collect();
    let body = bits.mutate_stmt(&func.body);
    PrimFunc { params, buffers, body, ..func.clone() }
}

struct Bits {
    narrow: fn(DataType) -> bool,
    /// Pointers of the memory, by those of its floats.
    vars: HashMap<Ref<Var>, Ref<Var>>,
    buffers: HashMap<Ref<Buffer>, Ref<Buffer>>,
}

impl Bits {
    /// A parameter; an address of such floats becomes one of their bits.
    fn param(&mut self, param: &Ref<Var>) -> Ref<Var> {
        let Type::Pointer(pointer) = &param.ty else { return param.clone() };
        match &pointer.element {
            Type::Prim(element) if (self.narrow)(element.dtype) => self.pointer(param, element.dtype, &pointer.scope),
            _ => param.clone(),
        }
    }

    /// The address of bits that stands for one of floats.
    fn pointer(&mut self, var: &Ref<Var>, dtype: DataType, scope: &str) -> Ref<Var> {
        let fresh = || Var::new(var.name.clone(), Type::pointer(bits_of(dtype), scope));
        self.vars.entry(var.clone()).or_insert_with(fresh).clone()
    }
}

fn bits_of(dtype: DataType) -> DataType {
    DataType::uint(dtype.bits).with_lanes(dtype.lanes)
}

fn reinterpret(dtype: DataType, e: PrimExpr) -> PrimExpr {
    prim::call(dtype, "tirx.reinterpret", vec![e])
}

/// The bits that a value was made of, where it is read as bits of the same type again.
fn bits_again(e: &PrimExpr) -> Option<PrimExpr> {
    let inner = |e: &PrimExpr| match e {
        PrimExpr::Call(n) if n.op == "tirx.reinterpret" => n.args.first().cloned(),
        _ => None,
    };
    inner(&inner(e)?).filter(|bits| bits.dtype() == e.dtype())
}

impl PrimMutator for Bits {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Var(var) => self.vars.get(var).map_or_else(|| e.clone(), PrimExpr::from),
            PrimExpr::Load(n) if (self.narrow)(n.buffer.dtype) => {
                let buffer = self.mutate_buffer_use(&n.buffer);
                let indices = self.mutate_prims(&n.indices);
                let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
                reinterpret(e.dtype(), Ref::new(BufferLoad { buffer, indices, predicate }).into())
            }
            PrimExpr::Call(n) if n.op == "tirx.reinterpret" => {
                let made = self.remake_prim(e);
                bits_again(&made).unwrap_or(made)
            }
            _ => self.remake_prim(e),
        }
    }

    fn mutate_buffer_use(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        if let Some(known) = self.buffers.get(buffer) {
            return known.clone();
        }
        if !(self.narrow)(buffer.dtype) {
            // It may see memory of such floats as something else.
            let Some(data) = self.vars.get(&buffer.data).cloned() else { return buffer.clone() };
            let made = Ref::new(Buffer { data, ..(**buffer).clone() });
            self.buffers.insert(buffer.clone(), made.clone());
            return made;
        }
        let data = self.pointer(&buffer.data, buffer.dtype, &buffer.scope);
        let made = Ref::new(Buffer { dtype: bits_of(buffer.dtype), data, ..(**buffer).clone() });
        self.buffers.insert(buffer.clone(), made.clone());
        made
    }
}

impl StmtMutator for Bits {
    fn remake_store(&mut self, n: &Ref<BufferStore>) -> Ref<BufferStore> {
        let value = self.mutate_prim(&n.value);
        let value = match &value {
            _ if !(self.narrow)(n.buffer.dtype) => value,
            // Bits that are only moved stay bits.
            PrimExpr::Call(call)
                if call.op == "tirx.reinterpret"
                    && call.args.first().is_some_and(|bits| bits.dtype() == bits_of(value.dtype())) =>
            {
                call.args[0].clone()
            }
            _ => reinterpret(bits_of(value.dtype()), value),
        };
        let (buffer, indices) = (self.mutate_buffer_use(&n.buffer), self.mutate_prims(&n.indices));
        let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
        Ref::new(BufferStore { buffer, value, indices, predicate })
    }
}
