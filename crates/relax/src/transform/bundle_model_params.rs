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
//! **Differs from TVM**: a weight is taken from the tuple once, in front, not at each use.

use relaxide_ffi::Ref;
use relaxide_ir::pass::{ParamKind, PassInfo, PassParam, PassResult};
use relaxide_ir::{IRModule, Type, Var};

use super::emit::map_functions;
use crate::analysis::num_inputs;
use crate::functor::VarReplacer;
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
    let tuple = Var::new(name, Type::tuple(weights.iter().map(|w| w.ty.clone()).collect::<Vec<_>>()));
    let dataflow = func.body.blocks.first().is_some_and(|b| b.dataflow);
    // A dataflow variable is seen by the first block only.
    let local = dataflow
        && func.body.blocks.len() == 1
        && functor::used_vars(&func.body.body).iter().all(|v| !is_weight(v, weights));
    let mut replace = VarReplacer::default();
    let mut taken = Vec::with_capacity(weights.len());
    for (i, weight) in weights.iter().enumerate() {
        let var = match local {
            true => {
                AnyVar::Dataflow(Ref::new(DataflowVar { name: weight.name.clone(), ty: weight.ty.clone(), span: None }))
            }
            false => AnyVar::Var(Var::new(weight.name.clone(), weight.ty.clone())),
        };
        taken.push(Binding::from(Ref::new(VarBinding { var: var.clone(), value: Expr::field(tuple.clone(), i) })));
        replace.0.insert(AnyVar::Var(weight.clone()), var.into());
    }
    let body = replace.mutate_seq(&func.body);
    let mut blocks = body.blocks.clone();
    match blocks.first_mut() {
        Some(first) if dataflow => {
            let bindings = taken.into_iter().chain(first.bindings.iter().cloned()).collect();
            *first = Ref::new(BindingBlock { bindings, dataflow: true });
        }
        _ if taken.is_empty() => {}
        _ => blocks.insert(0, Ref::new(BindingBlock { bindings: taken, dataflow: false })),
    }
    let body = Ref::new(SeqExpr { blocks, body: body.body.clone() });
    let params = inputs.iter().cloned().chain([tuple]).collect();
    super::remove_unused(&Ref::new(Function { params, body, ..Function::clone(func) }))
}

fn is_weight(var: &AnyVar, weights: &[Ref<Var>]) -> bool {
    matches!(var, AnyVar::Var(v) if weights.contains(v))
}
