//! Arithmetic of narrow floats is done in a wider type.
//!
//! ```text
//! D = T.alloc_buffer((16,), "bfloat16")         D = T.alloc_buffer((16,), "float32")
//! for i in range(16):                           for i in range(16):
//!     D[i] = A[i] + B[i]                  ->        D[i] = T.float32(A[i]) + T.float32(B[i])
//!     C[i] = T.exp(D[i])                            C[i] = T.bfloat16(T.exp(D[i]))
//! ```
//!
//! Few processors compute in `bfloat16` and fewer in floats of eight bits; all can in `float32`. Loads are converted to the wider
//! type, everything is computed in it, and stores convert back. So a sum of three numbers is rounded once, where it was rounded
//! twice. Scratch holds the wider type, if nobody takes its pointer; what is copied from one tensor to another is not converted.
//!
//! Two passes are this one: `BF16ComputeLegalize`, and `FP8ComputeLegalize(promote_dtype)`. Kernels for devices that compute in such a
//! type stay: NVIDIA's do from `sm_80` (`bfloat16`) and `sm_89` (floats of eight bits) on.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::pass::{ParamDefault, ParamKind, PassInfo, PassParam};
use relaxide_ir::prim::{self, BufferLoad, PrimCall, PrimExpr, PrimMutator};
use relaxide_ir::target::TargetKind;
use relaxide_ir::{Buffer, Type, Var};

use super::{LowerError, kernel_pass, kernel_pass_with};
use crate::PrimFunc;
use crate::analysis::regions::shared_memory;
use crate::functor::StmtMutator;
use crate::intrin::Intrinsic;
use crate::stmt::*;

pub(super) const BF16: PassInfo =
    kernel_pass!("tirx.transform.BF16ComputeLegalize", "Arithmetic of bfloat16 is done in float32.", promote_bf16);

pub(super) const FP8: PassInfo = kernel_pass_with!(
    "tirx.transform.FP8ComputeLegalize",
    "Arithmetic of floats of eight bits is done in a wider type.",
    |func, _, args| match args.dtype("promote_dtype") {
        Some(to) if to.is_float() && matches!(to.bits, 16 | 32) && to.lanes == 1 => match has(func, FP8_SINCE)? {
            true => Ok(func.clone()),
            false => promote(func, is_fp8, to),
        },
        other => {
            let given = other.map_or_else(|| "None".to_string(), |dtype| dtype.to_string());
            Err(LowerError::Option { option: "promote_dtype", given, known: "float16 and float32" })
        }
    }
)
.params(&[PassParam::new(
    "promote_dtype",
    ParamKind::DType,
    ParamDefault::Str("float32"),
    "The type to compute in: float16 or float32.",
)]);

/// Whether it is a `bfloat16`.
pub(super) fn is_bf16(dtype: DataType) -> bool {
    dtype.element() == DataType::bfloat16()
}

/// Whether it is a float of eight bits.
pub(super) fn is_fp8(dtype: DataType) -> bool {
    dtype.is_float() && dtype.bits == 8
}

fn promote_bf16(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    match has(func, BF16_SINCE)? {
        true => Ok(func.clone()),
        false => promote(func, is_bf16, DataType::float(32)),
    }
}

/// The generation of NVIDIA's devices that computes in `bfloat16` first.
pub(super) const BF16_SINCE: u32 = 80;
/// The same for floats of eight bits.
pub(super) const FP8_SINCE: u32 = 89;

/// Whether a kernel is for NVIDIA's devices of a generation or a later one.
pub(super) fn has(func: &PrimFunc, since: u32) -> Result<bool, LowerError> {
    let target = func.target().map_err(|error| LowerError::Refused(error.to_string()))?;
    let Some(target) = target.filter(|target| target.kind == TargetKind::Cuda) else { return Ok(false) };
    let arch = target.text("arch").trim_start_matches("sm_");
    let digits: String = arch.chars().take_while(char::is_ascii_digit).collect();
    Ok(digits.parse::<u32>().is_ok_and(|generation| generation >= since))
}

/// A kernel that computes with some types in another.
fn promote(func: &PrimFunc, narrow: fn(DataType) -> bool, to: DataType) -> Result<PrimFunc, LowerError> {
    let pointers = shared_memory(&func.body);
    let mut promote = Promote { narrow, to, pointers, vars: HashMap::new(), scratch: HashMap::new() };
    Ok(func.with_body(promote.mutate_stmt(&func.body)))
}

struct Promote {
    narrow: fn(DataType) -> bool,
    to: DataType,
    /// Memory that something has a pointer to.
    pointers: HashSet<Ref<Var>>,
    /// Bound names in the wider type.
    vars: HashMap<Ref<Var>, Ref<Var>>,
    /// Scratch in the wider type.
    scratch: HashMap<Ref<Buffer>, Ref<Buffer>>,
}

impl Promote {
    fn wide(&self, dtype: DataType) -> DataType {
        if (self.narrow)(dtype) { self.to.with_lanes(dtype.lanes) } else { dtype }
    }

    /// A value of a narrow type in the wider one.
    fn up(&self, e: PrimExpr) -> PrimExpr {
        prim::cast(self.wide(e.dtype()), e)
    }

    /// A value that was perhaps computed in the wider type, in a type that somebody relies on.
    fn down(&self, dtype: DataType, e: PrimExpr) -> PrimExpr {
        match &e {
            // What only went up is what it was.
            PrimExpr::Cast(n) if n.value.dtype() == dtype && n.dtype == self.wide(dtype) => n.value.clone(),
            _ => prim::cast(dtype, e),
        }
    }

    fn kept(&mut self, e: &PrimExpr) -> PrimExpr {
        let value = self.mutate_prim(e);
        self.down(e.dtype(), value)
    }

    fn var(&mut self, var: &Ref<Var>) -> Ref<Var> {
        if !(self.narrow)(var.dtype()) {
            return var.clone();
        }
        let wide = Var::prim(var.name.clone(), self.wide(var.dtype()));
        self.vars.insert(var.clone(), wide.clone());
        wide
    }

    fn call(&mut self, n: &PrimCall) -> PrimExpr {
        let elementwise = Intrinsic::of_call(&n.op)
            .is_some_and(|i| i.is_elementwise() && i != Intrinsic::Reinterpret && !n.args.is_empty());
        if elementwise {
            let args = self.mutate_prims(&n.args);
            return prim::call(self.wide(n.dtype), n.op.clone(), args);
        }
        let args = n.args.iter().map(|arg| self.kept(arg)).collect();
        self.up(prim::call(n.dtype, n.op.clone(), args))
    }
}

impl PrimMutator for Promote {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Var(var) => match self.vars.get(var) {
                Some(wide) => PrimExpr::from(wide),
                None => self.up(e.clone()),
            },
            PrimExpr::Float(n) if (self.narrow)(n.dtype) => prim::float_of(self.wide(n.dtype), n.value),
            PrimExpr::Load(n) => {
                let buffer = self.scratch.get(&n.buffer).unwrap_or(&n.buffer).clone();
                let indices = self.mutate_prims(&n.indices);
                let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
                self.up(Ref::new(BufferLoad { buffer, indices, predicate }).into())
            }
            PrimExpr::Cast(n) => {
                let value = self.mutate_prim(&n.value);
                prim::cast(self.wide(n.dtype), value)
            }
            PrimExpr::Call(n) => self.call(n),
            PrimExpr::Let(n) => {
                let value = self.mutate_prim(&n.value);
                let var = self.var(&n.var);
                Ref::new(prim::Let { var, value, body: self.mutate_prim(&n.body) }).into()
            }
            _ => self.remake_prim(e),
        }
    }

    fn mutate_buffer_use(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        self.scratch.get(buffer).unwrap_or(buffer).clone()
    }
}

impl StmtMutator for Promote {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::Bind(n) => {
                let value = self.mutate_prim(&n.value);
                Stmt::bind(self.var(&n.var), value)
            }
            Stmt::Evaluate(n) => Stmt::evaluate(self.kept(&n.value)),
            _ => self.remake_stmt(stmt),
        }
    }

    fn remake_store(&mut self, n: &Ref<BufferStore>) -> Ref<BufferStore> {
        let buffer = self.mutate_buffer_use(&n.buffer);
        let value = self.mutate_prim(&n.value);
        let value = self.down(buffer.dtype.with_lanes(n.value.dtype().lanes), value);
        let indices = self.mutate_prims(&n.indices);
        let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
        Ref::new(BufferStore { buffer, value, indices, predicate })
    }

    fn mutate_buffer_def(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        if !(self.narrow)(buffer.dtype) || self.pointers.contains(&buffer.data) {
            return buffer.clone();
        }
        let dtype = self.wide(buffer.dtype);
        let data = Var::new(buffer.data.name.clone(), Type::pointer(dtype, &buffer.scope));
        let wide = Ref::new(Buffer { dtype, data, ..(**buffer).clone() });
        self.scratch.insert(buffer.clone(), wide.clone());
        wide
    }
}
