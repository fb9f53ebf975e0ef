//! LowerAllocTensor: tensors that the planner left alone get a storage of their own.
//!
//! ```text
//! alloc = R.builtin.alloc_tensor(R.shape([3, 4]), R.dtype("float32"), 0, R.str("global"))
//!         →
//! storage = R.memory.alloc_storage(R.shape([48]), 0, R.str("global"), R.dtype("uint8"))
//! alloc = R.memory.alloc_tensor(storage, 0, R.shape([3, 4]), R.dtype("float32"), 0)
//! ```

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::PrimExpr;

use crate::rewrite::{Action, Rewrite, rewrite_module};
use crate::shape::num_elements;
use crate::*;

pub(super) const PASS: PassInfo =
    PassInfo::new("LowerAllocTensor", "Tensors that are not planned get a storage of their own.", |module, _, _| {
        rewrite_module("LowerAllocTensor", module, &mut LowerAllocTensor)
    });

struct LowerAllocTensor;

impl Rewrite for LowerAllocTensor {
    fn value(&mut self, b: &mut BlockBuilder, _: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let Some(alloc) = AllocTensor::of(&value) else { return Ok(Action::Bind(value)) };
        let storage = b.emit_named("storage", alloc.storage(alloc.bytes(), DataType::uint(8))?)?;
        Ok(Action::Bind(alloc.inside(storage)?))
    }
}

/// The parts of a `builtin.alloc_tensor`.
pub(super) struct AllocTensor {
    pub dims: Vec<PrimExpr>,
    pub dtype: DataType,
    pub device: Expr,
    pub scope: String,
}

impl AllocTensor {
    /// The parts, if it is one of known dimensions.
    pub fn of(value: &Expr) -> Option<AllocTensor> {
        let (call, "builtin.alloc_tensor") = value.as_op_call()? else { return None };
        let [Expr::Shape(shape), Expr::DType(dtype), device, Expr::Str(scope)] = call.args.as_slice() else {
            return None;
        };
        Some(AllocTensor {
            dims: shape.values.clone(),
            dtype: dtype.value,
            device: device.clone(),
            scope: scope.value.clone(),
        })
    }

    /// How many bytes it takes.
    pub fn bytes(&self) -> PrimExpr {
        num_elements(&self.dims) * self.dtype.bytes() as i64
    }

    /// A storage of that many bytes where the tensor is to be, which is said to hold elements of a type.
    pub fn storage(&self, bytes: PrimExpr, dtype: DataType) -> Result<Expr, BuildError> {
        let args = [Expr::shape([bytes]), self.device.clone(), Expr::string(self.scope.clone()), Expr::dtype(dtype)];
        Ok(op::call("memory.alloc_storage", args, Attrs::new())?)
    }

    /// The tensor at the start of a storage.
    pub fn inside(&self, storage: Expr) -> Result<Expr, BuildError> {
        let args = [storage, Expr::prim(0), Expr::shape(&self.dims), Expr::dtype(self.dtype), self.device.clone()];
        Ok(op::call("memory.alloc_tensor", args, Attrs::new())?)
    }
}
