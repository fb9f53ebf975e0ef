//! RemovePurityChecking: marks every function as free of purity rules.
//!
//! What lowering writes has effects all over: allocations, kernels that write through their arguments. `relax.force_pure`
//! says that a function keeps its promise as a whole although its parts do not, and calls that were wrapped to be pure
//! (`call_pure_packed`, `invoke_pure_closure`) become plain ones.
//!
//! ```text
//! y = R.call_pure_packed("f", x, ty_args=…)   →   R.func_attr({"relax.force_pure": True})
//!                                                 y = R.call_packed("f", x, ty_args=…)
//! ```

use relaxide_ffi::Ref;
use relaxide_ir::IRModule;
use relaxide_ir::pass::PassInfo;

use crate::rewrite::{Action, Rewrite, in_function, rewrite_function};
use crate::*;

pub(super) const PASS: PassInfo = PassInfo::new(
    "RemovePurityChecking",
    "Functions are marked as free of purity rules, wrappers of pure calls are unwrapped.",
    |module, _, _| run(module),
);

struct OpenPureCalls;

impl Rewrite for OpenPureCalls {
    fn value(&mut self, _: &mut BlockBuilder, _: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        if let Expr::Function(func) = &value {
            return Ok(Action::Bind(mark(func.clone()).into()));
        }
        let Some((call, name)) = value.as_op_call() else { return Ok(Action::Bind(value)) };
        let unwrapped = match name {
            "call_pure_packed" | "call_inplace_packed" => {
                let Some((callee, args)) = call.args.split_first() else { return Ok(Action::Bind(value)) };
                Call { op: callee.clone(), args: args.to_vec(), ..plain(call) }
            }
            "invoke_pure_closure" => Call { op: op::Op::get("invoke_closure").into(), ..plain(call) },
            _ => return Ok(Action::Bind(value)),
        };
        Ok(Action::Bind(Ref::new(unwrapped).into()))
    }
}

/// A function that says of itself that it is pure, if it is.
fn mark(func: Ref<Function>) -> Ref<Function> {
    let attrs = func.attrs.clone().with("relax.force_pure", true);
    if func.pure { Ref::new(Function { attrs, ..(*func).clone() }) } else { func }
}

/// The same call without operator attributes.
fn plain(call: &Call) -> Call {
    Call {
        op: call.op.clone(),
        args: call.args.clone(),
        attrs: relaxide_ir::Attrs::new(),
        ty_args: call.ty_args.clone(),
        ty: call.ty.clone(),
        span: call.span.clone(),
    }
}

fn run(module: IRModule) -> relaxide_ir::pass::PassResult {
    let mut b = BlockBuilder::with_module(module);
    let functions: Vec<_> = b.module().functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    for (name, func) in functions {
        let new = rewrite_function(&mut b, &func, &mut OpenPureCalls).map_err(|e| in_function(PASS.name, &name, e))?;
        b.module_mut().insert(name, mark(new));
    }
    Ok(b.finish())
}
