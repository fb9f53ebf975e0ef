//! How much memory the tensors of a program take, before and after planning.

use relaxide_ir::prim::PrimExpr;
use relaxide_ir::{DataType, IRModule, Type};

use crate::*;

/// What the tensors of one function take. Bytes count only where dimensions are numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryEstimate {
    /// The function.
    pub function: String,
    /// Tensors of known size that are allocated.
    pub tensors: usize,
    /// Their bytes: what the function takes without planning.
    pub tensor_bytes: u64,
    /// Tensors of unknown size.
    pub dynamic_tensors: usize,
    /// Storages that planning made.
    pub storages: usize,
    /// Their bytes: what the function takes once planned.
    pub storage_bytes: u64,
}

impl std::fmt::Display for MemoryEstimate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}: {} tensors of {} bytes without planning ({} more of unknown size), {} storages of {} bytes with it",
            self.function, self.tensors, self.tensor_bytes, self.dynamic_tensors, self.storages, self.storage_bytes
        )
    }
}

/// What each function of a module takes, of those that allocate. Works on programs before and after `StaticPlanBlockMemory`.
pub fn estimate_memory_usage(module: &IRModule) -> Vec<MemoryEstimate> {
    let estimates = module.functions_of::<Function>().map(|(name, func)| {
        let mut count = Count(MemoryEstimate { function: name.to_string(), ..MemoryEstimate::default() });
        count.visit_seq(&func.body);
        count.0
    });
    estimates.filter(|e| e.tensors + e.dynamic_tensors + e.storages > 0).collect()
}

struct Count(MemoryEstimate);

impl ExprVisitor for Count {
    fn visit_binding(&mut self, binding: &Binding) {
        let value = binding.value();
        match value.as_op_call() {
            Some((call, "memory.alloc_storage")) => {
                self.0.storages += 1;
                let bytes = call.args.first().and_then(|size| match size {
                    Expr::Shape(shape) => shape.values.first().and_then(PrimExpr::as_int),
                    Expr::Prim(p) => p.value.as_int(),
                    _ => None,
                });
                self.0.storage_bytes += bytes.and_then(|b| u64::try_from(b).ok()).unwrap_or(0);
            }
            Some((_, "builtin.alloc_tensor" | "memory.alloc_tensor" | "call_tir" | "call_dps_packed")) => {
                op::core::output_types(binding.var().ty()).iter().for_each(|ty| self.tensor(ty));
            }
            _ => {}
        }
        self.visit_expr(value);
    }
}

impl Count {
    fn tensor(&mut self, ty: &Type) {
        match ty.as_tensor().and_then(|t| bytes_of(t.shape.as_ref()?, t.dtype)) {
            Some(bytes) => {
                self.0.tensors += 1;
                self.0.tensor_bytes = self.0.tensor_bytes.saturating_add(bytes);
            }
            None => self.0.dynamic_tensors += 1,
        }
    }
}

fn bytes_of(dims: &[PrimExpr], dtype: DataType) -> Option<u64> {
    let count = dims.iter().try_fold(1u64, |n, d| n.checked_mul(u64::try_from(d.as_int()?).ok()?))?;
    let bits = u64::from(dtype.bits).checked_mul(u64::from(dtype.lanes))?;
    count.checked_mul(bits.div_ceil(8))
}
