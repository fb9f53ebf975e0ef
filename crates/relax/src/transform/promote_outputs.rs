//! Results of a dataflow block that are only other names of its variables become those variables, and results that nothing behind
//! the block uses become variables of the block.
//!
//! ```text
//! with R.dataflow():                 with R.dataflow():
//!     lv = R.exp(x)                      gv = R.exp(x)
//!     gv = lv                 →          lv1 = R.sin(gv)
//!     gv1 = R.sin(gv)                    gv2 = R.cos(lv1)
//!     gv2 = R.cos(gv1)                   R.output(gv, gv2)
//!     R.output(gv, gv1, gv2)
//! ```
//!
//! A scalar stays a result: types may have it in their dimensions.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::Type;

use crate::functor::{VarReplacer, used_vars};
use crate::shape::same_type;
use crate::*;

/// The function with results bound directly and only those that are used, its branches and nested functions included.
pub(super) fn promote_outputs(func: &Ref<Function>) -> Ref<Function> {
    Demote.mutate_function(&Promote.mutate_function(func))
}

/// A binding under another variable.
fn bound_to(var: AnyVar, binding: &Binding) -> Binding {
    match binding {
        Binding::Var(b) => Ref::new(VarBinding { var, value: b.value.clone() }).into(),
        Binding::MatchCast(c) => Ref::new(MatchCast { var, value: c.value.clone(), ty: c.ty.clone() }).into(),
    }
}

struct Demote;

impl ExprMutator for Demote {
    fn mutate_seq(&mut self, seq: &Ref<SeqExpr>) -> Ref<SeqExpr> {
        let body = self.mutate_expr(&seq.body);
        let mut used: HashSet<AnyVar> = used_vars(&body).into_iter().collect();
        let mut blocks = Vec::with_capacity(seq.blocks.len());
        for block in seq.blocks.iter().rev() {
            let block = demoted(self.mutate_block(block), &used);
            used.extend(block.bindings.iter().flat_map(|binding| used_vars(binding.value())));
            blocks.push(block);
        }
        blocks.reverse();
        if blocks == seq.blocks && body == seq.body { seq.clone() } else { Ref::new(SeqExpr { blocks, body }) }
    }
}

/// A block whose results are those that are `used` behind it.
fn demoted(block: Ref<BindingBlock>, used: &HashSet<AnyVar>) -> Ref<BindingBlock> {
    let local = |binding: &Binding| match binding.var() {
        AnyVar::Var(var) if !used.contains(binding.var()) && !matches!(var.ty, Type::Prim(_)) => {
            let own = DataflowVar { name: var.name.clone(), ty: var.ty.clone(), span: var.span.clone() };
            Some((binding.var().clone(), AnyVar::Dataflow(Ref::new(own))))
        }
        _ => None,
    };
    let locals: HashMap<AnyVar, AnyVar> = block.bindings.iter().filter(|_| block.dataflow).filter_map(local).collect();
    if locals.is_empty() {
        return block;
    }
    let mut replace = VarReplacer(locals.iter().map(|(var, own)| (var.clone(), Expr::from(own.clone()))).collect());
    let bindings = block.bindings.iter().map(|binding| {
        let new = replace.remake_binding(binding);
        match locals.get(binding.var()) {
            Some(own) => bound_to(own.clone(), &new),
            None => new,
        }
    });
    Ref::new(BindingBlock { bindings: bindings.collect(), dataflow: true })
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
            bindings.push(if var == *new.var() { new } else { bound_to(var, &new) });
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
