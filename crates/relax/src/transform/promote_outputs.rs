//! Results of a dataflow block that are only other names of its variables become those variables.
//!
//! ```text
//! with R.dataflow():                 with R.dataflow():
//!     lv = R.exp(x)                      gv = R.exp(x)
//!     gv = lv                 →          R.output(gv)
//!     R.output(gv)
//! ```

use std::collections::HashMap;

use relaxide_ffi::Ref;

use crate::functor::VarReplacer;
use crate::shape::same_type;
use crate::*;

/// The function with results bound directly, its branches and nested functions included.
pub(super) fn promote_outputs(func: &Ref<Function>) -> Ref<Function> {
    Promote.mutate_function(func)
}

struct Promote;

impl ExprMutator for Promote {
    fn mutate_block(&mut self, block: &Ref<BindingBlock>) -> Ref<BindingBlock> {
        if !block.dataflow {
            let bindings: Vec<Binding> = block.bindings.iter().map(|b| self.remake_binding(b)).collect();
            let same = bindings == block.bindings;
            return if same { block.clone() } else { Ref::new(BindingBlock { bindings, dataflow: false }) };
        }
        let promoted = promoted(block);
        if promoted.is_empty() {
            return block.clone();
        }
        let mut replace =
            VarReplacer(promoted.iter().map(|(local, output)| (local.clone(), Expr::from(output.clone()))).collect());
        let mut bindings = Vec::with_capacity(block.bindings.len());
        for binding in &block.bindings {
            let is_alias = binding.value().as_var().is_some_and(|v| promoted.get(&v) == Some(binding.var()));
            if is_alias {
                continue;
            }
            let new = replace.remake_binding(binding);
            let var = promoted.get(binding.var()).unwrap_or(binding.var()).clone();
            bindings.push(match &new {
                _ if var == *new.var() => new,
                Binding::Var(b) => Ref::new(VarBinding { var, value: b.value.clone() }).into(),
                Binding::MatchCast(c) => Ref::new(MatchCast { var, value: c.value.clone(), ty: c.ty.clone() }).into(),
            });
        }
        Ref::new(BindingBlock { bindings, dataflow: true })
    }
}

/// Variables of a block, and the result that each becomes.
fn promoted(block: &BindingBlock) -> HashMap<AnyVar, AnyVar> {
    let mut promoted: HashMap<AnyVar, AnyVar> = HashMap::new();
    for binding in &block.bindings {
        let Binding::Var(bound) = binding else { continue };
        if let (AnyVar::Var(_), Expr::DataflowVar(local)) = (&bound.var, &bound.value)
            && same_type(&local.ty, bound.var.ty())
        {
            promoted.entry(AnyVar::Dataflow(local.clone())).or_insert_with(|| bound.var.clone());
        }
    }
    promoted
}
