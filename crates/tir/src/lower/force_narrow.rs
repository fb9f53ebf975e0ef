//! All index arithmetic in 32 bits, whatever its bounds.
//!
//! ```text
//! A: T.Buffer((T.int64(16),), "float32")            A: T.Buffer((16,), "float32")
//! for i in range(T.int64(16)):                ->    for i in range(16):
//!     A[i] = B[i + T.int64(1)]                          A[i] = B[i + 1]
//! ```
//!
//! For devices that count in 32 bits. Dimensions, counters, axes, bound names and scalar parameters of 64 bits become those of
//! 32, and so does scratch of such integers; a literal that does not fit is refused. Indices beyond 2^31 are then wrong, so the
//! caller must know that there are none: where bounds are to be proved, take [`NarrowDataType`](super::narrow).
//!
//! A kernel that takes a tensor of 64-bit integers is refused: its elements would be read as halves.

use std::collections::HashMap;

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{self, BufferLoad, PrimExpr, PrimMutator};
use relaxide_ir::{Buffer, Type, Var};

use super::{LowerError, kernel_pass};
use crate::PrimFunc;
use crate::functor::StmtMutator;

pub(super) const PASS: PassInfo =
    kernel_pass!("tirx.transform.ForceNarrowIndexToInt32", "All index arithmetic is done in 32 bits.", force_narrow);

const NARROW: DataType = DataType::int(32);

/// A kernel that counts in 32 bits.
fn force_narrow(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    if let Some(buffer) = func.buffers.iter().flatten().find(|b| is_wide(b.dtype)) {
        let message =
            format!("parameter `{}` is a tensor of {}, whose elements have 64 bits", buffer.name, buffer.dtype);
        return Err(LowerError::Refused(message));
    }
    let mut force = Force { vars: HashMap::new(), buffers: HashMap::new(), too_large: None };
    let params = func.params.iter().map(|param| force.var(param)).collect();
    let buffers = func.buffers.iter().map(|b| b.as_ref().map(|b| force.mutate_buffer_use(b))).collect();
    let body = force.mutate_stmt(&func.body);
    match force.too_large {
        Some(value) => Err(LowerError::Refused(format!("the literal {value} does not fit 32 bits"))),
        None => Ok(PrimFunc { params, buffers, body, ..func.clone() }),
    }
}

fn is_wide(dtype: DataType) -> bool {
    dtype.is_int() && dtype.bits == 64
}

fn narrowed(dtype: DataType) -> DataType {
    if is_wide(dtype) { NARROW.with_lanes(dtype.lanes) } else { dtype }
}

struct Force {
    vars: HashMap<Ref<Var>, Ref<Var>>,
    buffers: HashMap<Ref<Buffer>, Ref<Buffer>>,
    too_large: Option<i64>,
}

impl Force {
    fn var(&mut self, var: &Ref<Var>) -> Ref<Var> {
        if let Some(known) = self.vars.get(var) {
            return known.clone();
        }
        let narrow = match is_wide(var.dtype()) {
            true => Var::prim(var.name.clone(), narrowed(var.dtype())),
            false => var.clone(),
        };
        self.vars.insert(var.clone(), narrow.clone());
        narrow
    }
}

impl PrimMutator for Force {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Var(var) => PrimExpr::from(&self.var(var)),
            PrimExpr::Int(n) if is_wide(n.dtype) => {
                if !prim::holds(NARROW, n.value) {
                    self.too_large.get_or_insert(n.value);
                }
                prim::int_of(narrowed(n.dtype), n.value)
            }
            PrimExpr::Cast(n) => prim::cast(narrowed(n.dtype), self.mutate_prim(&n.value)),
            PrimExpr::Call(n) => {
                let args = self.mutate_prims(&n.args);
                if args == n.args && !is_wide(n.dtype) {
                    return e.clone();
                }
                prim::call(narrowed(n.dtype), n.op.clone(), args)
            }
            PrimExpr::Let(n) => {
                let (var, value) = (self.var(&n.var), self.mutate_prim(&n.value));
                Ref::new(prim::Let { var, value, body: self.mutate_prim(&n.body) }).into()
            }
            PrimExpr::Load(n) => {
                let buffer = self.mutate_buffer_use(&n.buffer);
                let indices = self.mutate_prims(&n.indices);
                let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
                Ref::new(BufferLoad { buffer, indices, predicate }).into()
            }
            _ => self.remake_prim(e),
        }
    }

    fn mutate_buffer_use(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        if let Some(known) = self.buffers.get(buffer) {
            return known.clone();
        }
        let data = match (self.vars.get(&buffer.data).cloned(), is_wide(buffer.dtype)) {
            (Some(data), _) => data,
            (None, true) => {
                let data = Var::new(buffer.data.name.clone(), Type::pointer(narrowed(buffer.dtype), &buffer.scope));
                self.vars.insert(buffer.data.clone(), data.clone());
                data
            }
            (None, false) => buffer.data.clone(),
        };
        let mut narrow = Buffer { dtype: narrowed(buffer.dtype), ..self.remake_buffer(buffer, data) };
        if buffer.elem_offset.is_int(0) {
            // Where a buffer begins with its memory nothing is counted.
            narrow.elem_offset = buffer.elem_offset.clone();
        }
        let same = narrow.shape == buffer.shape
            && narrow.strides == buffer.strides
            && narrow.elem_offset == buffer.elem_offset
            && narrow.dtype == buffer.dtype
            && narrow.data == buffer.data;
        let narrow = if same { buffer.clone() } else { Ref::new(narrow) };
        self.buffers.insert(buffer.clone(), narrow.clone());
        narrow
    }
}

impl StmtMutator for Force {
    fn mutate_var_def(&mut self, var: &Ref<Var>) -> Ref<Var> {
        self.var(var)
    }
}
