//! RewriteDataflowReshape: kernels that only copy elements in order become views.
//!
//! ```text
//! with R.dataflow():                                     with R.dataflow():
//!     y = R.call_tir(cls.reshape, (x,), …(12,))     →        y = R.reshape(x, R.shape([12]))
//! ```
//!
//! Whether a kernel does no more is marked by LegalizeOps, or proved: the flat index that is read must be the one that is
//! written, whatever the dimensions are. A view needs no memory and no time, but it shares its argument's memory; what a
//! function returns out of a dataflow block stays a copy, so that a result never aliases a parameter.

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::pass::{PassInfo, PassResult};
use relaxide_ir::{Attrs, IRModule, Type};
use relaxide_tir::PrimFunc;

use super::callees::drop_uncalled;
use super::reshape_proof::is_reshape;
use crate::functor::used_vars;
use crate::op::core::CallTir;
use crate::rewrite::{Action, Rewrite, in_function, rewrite_function};
use crate::*;

pub(super) const PASS: PassInfo = PassInfo::new(
    "RewriteDataflowReshape",
    "Kernels that only copy elements in order become views.",
    |module, _, _| run(module),
)
.ready(relaxide_tir::lower::module_of_unit_steps);

fn run(module: IRModule) -> PassResult {
    let copies = |(name, f): (&str, Ref<PrimFunc>)| is_reshape(&f).then(|| name.to_string());
    let kernels: HashSet<String> = module.functions_of::<PrimFunc>().filter_map(copies).collect();
    let mut b = BlockBuilder::with_module(module);
    let functions: Vec<_> = b.module().functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    let mut rewrite = RewriteReshape { kernels, escaping: HashSet::new() };
    for (name, func) in functions {
        rewrite.escaping = escaping(&func.body);
        let new = rewrite_function(&mut b, &func, &mut rewrite).map_err(|e| in_function(PASS.name, &name, e))?;
        b.module_mut().insert(name, new);
    }
    let mut module = b.finish();
    drop_uncalled(&mut module, &rewrite.kernels);
    Ok(module)
}

struct RewriteReshape {
    kernels: HashSet<String>,
    /// Values that leave their block under another name.
    escaping: HashSet<AnyVar>,
}

/// The dataflow variables that an output of their block is another name of, or holds in a tuple.
pub(super) fn escaping(seq: &SeqExpr) -> HashSet<AnyVar> {
    let mut found: HashSet<AnyVar> = HashSet::new();
    for binding in seq.blocks.iter().rev().flat_map(|b| b.bindings.iter().rev()) {
        let leaves = matches!(binding.var(), AnyVar::Var(_)) || found.contains(binding.var());
        match binding.value() {
            Expr::DataflowVar(_) | Expr::Tuple(_) if leaves => found.extend(used_vars(binding.value())),
            Expr::If(choice) => {
                found.extend(escaping(&choice.true_branch));
                found.extend(escaping(&choice.false_branch));
            }
            _ => {}
        }
    }
    found
}

impl Rewrite for RewriteReshape {
    fn value(&mut self, _: &mut BlockBuilder, var: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let (AnyVar::Dataflow(_), Some(call)) = (var, CallTir::of(&value)) else { return Ok(Action::Bind(value)) };
        if self.escaping.contains(var) {
            return Ok(Action::Bind(value));
        }
        let [Type::Tensor(out)] = call.outputs.as_slice() else { return Ok(Action::Bind(value)) };
        match (call.args.first(), &out.shape) {
            (Some(x), Some(dims)) if self.kernels.contains(&call.func.name) && matches!(x.ty(), Type::Tensor(_)) => {
                Ok(Action::Bind(op::call("reshape", [x.clone(), Expr::shape(dims)], Attrs::new())?))
            }
            _ => Ok(Action::Bind(value)),
        }
    }
}
