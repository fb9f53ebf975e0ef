//! CallTIRRewrite: calls in destination-passing style become allocations and plain calls.
//!
//! A kernel writes its outputs through arguments; `call_tir` hides that. Here the memory becomes visible, so that the
//! planner can share it.
//!
//! ```text
//! y = R.call_tir(cls.f, (x,), out_ty=R.Tensor((n,), "float32"))
//!         →
//! alloc = R.builtin.alloc_tensor(R.shape([n]), R.dtype("float32"), 0, R.str("global"))
//! cls.f(x, alloc)
//! y = alloc
//! ```
//!
//! An output whose type says no device lies where the inputs do.
//!
//! Scalars that follow the tensors (`tir_vars`) go through `vm.call_tir_dyn`, which unpacks a shape into scalars. Outputs that
//! `call_tir_inplace` writes over an input are that input, unless that is a constant: constants outlive the call, so a copy
//! is overwritten in its place.
//!
//! ```text
//! y = R.call_tir_inplace(cls.f, (c, x), …, inplace_indices=[0])        # c is a constant
//!         →
//! alloc = R.builtin.alloc_tensor(…)
//! R.call_packed("runtime.TVMTensorCopyFromTo", c, alloc)
//! cls.f(alloc, x)
//! y = alloc
//! ```

use relaxide_ffi::Ref;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::{Attrs, TensorType, Type, VDevice};

use crate::analysis::aliases::{Aliases, Holds};
use crate::op::core::output_types;
use crate::op::device::beside;
use crate::rewrite::{Action, Rewrite, rewrite_module};
use crate::transform::emit;
use crate::*;

pub(super) const PASS: PassInfo = PassInfo::new(
    "CallTIRRewrite",
    "Calls in destination-passing style become allocations and plain calls.",
    |module, _, _| {
        let vdevices = module.vdevices.clone();
        rewrite_module("CallTIRRewrite", module, &mut CallTirRewrite { vdevices, constants: Aliases::default() })
    },
);

/// What the run time copies elements with.
const COPY: &str = "runtime.TVMTensorCopyFromTo";

struct CallTirRewrite {
    vdevices: Vec<Ref<VDevice>>,
    /// Variables behind which there is memory of constants.
    constants: Aliases,
}

impl Rewrite for CallTirRewrite {
    fn value(&mut self, b: &mut BlockBuilder, var: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        match value.as_op_call() {
            Some((call, "call_tir" | "call_dps_packed" | "call_tir_inplace")) => self.lower(b, call),
            _ => {
                self.constants.note(var, &value);
                Ok(Action::Bind(value))
            }
        }
    }

    fn cast(&mut self, b: &mut BlockBuilder, cast: Ref<MatchCast>) -> Result<(), BuildError> {
        self.constants.note(&cast.var, &cast.value);
        b.push_binding(cast.into())
    }
}

impl CallTirRewrite {
    /// The bindings of a call in destination-passing style; the variable is bound to its outputs.
    fn lower(&self, b: &mut BlockBuilder, call: &Call) -> Result<Action, BuildError> {
        let mut inputs = match call.args.get(1) {
            Some(Expr::Tuple(tuple)) => tuple.fields.clone(),
            Some(other) => vec![other.clone()],
            None => Vec::new(),
        };
        let inplace = call.attrs.ints("inplace_indices").unwrap_or_default();
        let result = beside(&inputs, call.ty.clone());
        let mut outputs = Vec::new();
        let mut fresh = Vec::new();
        for (i, ty) in output_types(&result).iter().enumerate() {
            match inplace.get(i).and_then(|at| usize::try_from(*at).ok()) {
                Some(at) => {
                    let input = inputs.get_mut(at).ok_or_else(|| no_input(at))?;
                    if matches!(self.constants.holds(input), Holds::Whole) {
                        *input = self.copy(b, input, ty)?;
                    }
                    outputs.push(input.clone());
                }
                None => {
                    let alloc = self.allocate(b, ty)?;
                    outputs.push(alloc.clone());
                    fresh.push(alloc);
                }
            }
        }
        let args: Vec<Expr> = inputs.into_iter().chain(fresh).collect();
        self.emit_call(b, call, args)?;
        Ok(Action::Bind(match (outputs.as_slice(), &call.ty) {
            ([one], Type::Tensor(_)) => one.clone(),
            _ => Expr::tuple(outputs),
        }))
    }

    /// Fresh memory with the elements of a tensor.
    fn copy(&self, b: &mut BlockBuilder, tensor: &Expr, ty: &Type) -> Result<Expr, BuildError> {
        let alloc = self.allocate(b, ty)?;
        let (args, ty_args) = (vec![tensor.clone(), alloc.clone()], vec![Type::void()]);
        let op = Expr::external(COPY);
        let copy = Call { op, args, attrs: Attrs::new(), ty_args, ty: Type::void(), span: None };
        b.emit_named("_", Expr::from(Ref::new(copy)))?;
        Ok(alloc)
    }

    fn emit_call(&self, b: &mut BlockBuilder, call: &Call, mut args: Vec<Expr>) -> Result<(), BuildError> {
        let callee =
            call.args.first().cloned().ok_or_else(|| BuildError::Program("a call_tir names no kernel".into()))?;
        let value = match call.args.get(2) {
            Some(tir_vars) => {
                args.push(tir_vars.clone());
                op::call("vm.call_tir_dyn", [callee, Expr::tuple(args)], Attrs::new())?
            }
            None => {
                let span = call.span.clone().or_else(|| b.origin().clone());
                emit::call_at(callee, args, Type::void(), span)
            }
        };
        b.emit_named("_", value)?;
        Ok(())
    }

    fn allocate(&self, b: &mut BlockBuilder, ty: &Type) -> Result<Expr, BuildError> {
        let Type::Tensor(tensor) = ty else {
            return Err(BuildError::Program("an output of a call_tir is no tensor".into()));
        };
        let Some(dims) = &tensor.shape else {
            return Err(BuildError::Program(
                "the shape of an output of a call_tir is not known; bind it with match_cast".into(),
            ));
        };
        let (device, scope) = self.place(tensor)?;
        let args = [Expr::shape(dims), Expr::dtype(tensor.dtype), Expr::prim(device), Expr::string(scope)];
        let alloc = op::call("builtin.alloc_tensor", args, Attrs::new())?;
        b.emit_named("alloc", alloc)
    }

    /// The index of the tensor's device among the module's, and its memory scope.
    fn place(&self, tensor: &TensorType) -> Result<(i64, String), BuildError> {
        let Some(device) = &tensor.vdevice else { return Ok((0, "global".into())) };
        let index = self.vdevices.iter().position(|d| d.is_same(device));
        let index = index.ok_or_else(|| BuildError::Program("a tensor's device is not one of the module's".into()))?;
        Ok((index as i64, device.scope.clone()))
    }
}

fn no_input(at: usize) -> BuildError {
    BuildError::Program(format!("call_tir_inplace: inplace index {at} is beyond the arguments"))
}
