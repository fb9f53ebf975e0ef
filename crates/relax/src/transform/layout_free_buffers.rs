//! AttachAttrLayoutFreeBuffers: kernels are told which of their inputs may be laid out anew.
//!
//! ```text
//! def main(x, w):                    # num_input = 1        @T.prim_func
//!     gv = R.call_tir(cls.dense, (x, w), …)           →     def dense1(x, w, out):  # layout_free_buffers = [1]
//! ```
//!
//! Free are weights, which are the parameters behind the first `num_input`, and constants: whoever schedules a kernel may ask
//! for them in another order, since they can be brought to it before the program runs. A kernel that is called with weights
//! in different places becomes several.
//!
//! **Works on** calls of kernels of the module. **Gives** kernels with the attribute `layout_free_buffers`, a list of places
//! among the parameters; kernels that nothing calls any more are dropped.

use std::collections::HashSet;

use relaxide_ir::IRModule;
use relaxide_ir::pass::{PassInfo, PassResult};
use relaxide_tir::PrimFunc;
use relaxide_tir::functor::fresh_kernel;

use super::dead_code;
use crate::analysis::num_inputs;
use crate::op::core::CallTir;
use crate::rewrite::{Action, Rewrite, in_function, rewrite_function};
use crate::*;

pub(super) const PASS: PassInfo = PassInfo::new(
    "AttachAttrLayoutFreeBuffers",
    "Kernels are told which of their inputs may be laid out anew.",
    |module, _, _| run(module),
)
.ready(relaxide_tir::lower::module_of_unit_steps);

/// The attribute of a kernel: places of the inputs that may be laid out anew.
pub(super) const LAYOUT_FREE_ATTR: &str = "layout_free_buffers";

fn run(module: IRModule) -> PassResult {
    let mut b = BlockBuilder::with_module(module);
    let functions: Vec<_> = b.module().functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    for (name, func) in functions {
        let inputs = num_inputs(&func).unwrap_or(func.params.len());
        let weights = func.params.get(inputs..).unwrap_or_default();
        let mut attach = Attach { weights: weights.iter().map(|w| AnyVar::Var(w.clone())).collect() };
        let new = rewrite_function(&mut b, &func, &mut attach).map_err(|e| in_function(PASS.name, &name, e))?;
        b.module_mut().insert(name, new);
    }
    Ok(dead_code::run(b.finish(), &[], dead_code::Packed::MayGo))
}

struct Attach {
    weights: HashSet<AnyVar>,
}

impl Rewrite for Attach {
    fn value(&mut self, b: &mut BlockBuilder, _: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let (Expr::Call(call), Some(tir)) = (&value, CallTir::of(&value)) else { return Ok(Action::Bind(value)) };
        let Some(kernel) = b.module().get_as::<PrimFunc>(&tir.func.name) else { return Ok(Action::Bind(value)) };
        let is_free =
            |e: &Expr| matches!(e, Expr::Constant(_)) || e.as_var().is_some_and(|v| self.weights.contains(&v));
        let free: Vec<i64> = tir.args.iter().enumerate().filter(|(_, e)| is_free(e)).map(|(i, _)| i as i64).collect();
        let mut kernel = fresh_kernel(&kernel);
        kernel.attrs = kernel.attrs.with(LAYOUT_FREE_ATTR, free);
        let func = b.add_kernel(kernel, &tir.func.name);
        let args = vec![func.into(), Expr::tuple(tir.args)];
        Ok(Action::Bind(call.with_args(args, call.ty.clone()).into()))
    }
}
