//! BundleModelParams: the weights of a function become one tuple.
//!
//! ```text
//! def main(x, w, b):  # num_input = 1        def main(x, model_params):
//!     …                                 →        w = model_params[0]
//!                                                b = model_params[1]
//! ```
//!
//! Functions without the attribute `num_input` stay as they are.
//!
//! A weight is taken in front of where it is first used.

use relaxide_ffi::Ref;
use relaxide_ir::IRModule;
use relaxide_ir::pass::{ParamKind, PassInfo, PassParam, PassResult};

use super::emit::map_functions;
use super::take_weights::WeightTuple;
use crate::analysis::num_inputs;
use crate::*;

pub(super) const PASS: PassInfo =
    PassInfo::new("BundleModelParams", "The weights of a function become one tuple.", |module, _, args| {
        run(module, args.str("param_tuple_name").unwrap_or("model_params"))
    })
    .opt_level(1)
    .params(&[PassParam::optional(
        "param_tuple_name",
        ParamKind::Str,
        "The tuple's name; `model_params`, where nothing is said.",
    )]);

fn run(module: IRModule, name: &str) -> PassResult {
    map_functions(module, |_, func| {
        Ok(num_inputs(func).map_or_else(|| func.clone(), |inputs| bundle(func, inputs, name)))
    })
}

fn bundle(func: &Ref<Function>, inputs: usize, name: &str) -> Ref<Function> {
    let Some((inputs, weights)) = func.params.split_at_checked(inputs) else { return func.clone() };
    let mut taken = WeightTuple::new(name, weights, false);
    let body = taken.in_body(&func.body);
    let params = inputs.iter().cloned().chain([taken.tuple]).collect();
    Ref::new(Function { params, body, ..Function::clone(func) })
}
