//! Placing the body of a function where a call of it would stand.
//!
//! The function's variables and symbolic variables become new ones, its parameters what is passed for them, and the
//! dimensions that parameters bind those of what is passed.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::prim::VarMap;

use super::bind_symbols::SymbolMutator;
use super::fresh::fresh_copy;
use crate::builder::is_pure;
use crate::functor::VarReplacer;
use crate::shape::bind_dims;
use crate::*;

/// Emits the body of a function with arguments in the place of its parameters, and returns its result. `None` where the
/// open block is a dataflow block, and the body has control flow or effects that such a block may not hold.
pub(crate) fn inline_body(
    b: &mut BlockBuilder,
    func: &Ref<Function>,
    args: &[Expr],
) -> Result<Option<Expr>, BuildError> {
    let dataflow = b.in_dataflow();
    let mut bindings = func.body.blocks.iter().flat_map(|b| &b.bindings);
    let fits =
        |binding: &Binding| !matches!(binding.value(), Expr::If(_) | Expr::Function(_)) && is_pure(binding.value());
    if (dataflow && !bindings.all(fits)) || args.len() != func.params.len() {
        return Ok(None);
    }
    let func = fresh_copy(func);
    let mut symbols = VarMap::new();
    for (param, arg) in func.params.iter().zip(args) {
        bind_dims(&param.ty, &arg.ty(), &mut symbols);
    }
    let given: HashMap<AnyVar, Expr> =
        func.params.iter().map(|p| AnyVar::Var(p.clone())).zip(args.iter().cloned()).collect();
    let func = SymbolMutator::new(symbols).function_body(&func);
    let seq = VarReplacer(given).mutate_seq(&func.body);
    place(b, &seq, dataflow).map(Some)
}

/// Emits bindings; inside a dataflow block, all become dataflow variables.
fn place(b: &mut BlockBuilder, seq: &SeqExpr, dataflow: bool) -> Result<Expr, BuildError> {
    let mut replace = VarReplacer::default();
    for block in &seq.blocks {
        let own_block = block.dataflow && !dataflow;
        if own_block {
            b.begin_dataflow()?;
        }
        for binding in &block.bindings {
            let new = replace.remake_binding(binding);
            let local = matches!(new.var(), AnyVar::Dataflow(_)) || dataflow;
            let own = b.fresh_var(new.var().name(), new.var().ty().clone(), local);
            // What a cast says stays with it.
            let own = match new.var().span().filter(|_| matches!(new, Binding::MatchCast(_))) {
                Some(span) => own.written_at(span),
                None => own,
            };
            replace.0.insert(binding.var().clone(), own.clone().into());
            b.push_binding(match &new {
                Binding::Var(v) => Ref::new(VarBinding { var: own, value: v.value.clone() }).into(),
                Binding::MatchCast(c) => {
                    Ref::new(MatchCast { var: own, value: c.value.clone(), ty: c.ty.clone() }).into()
                }
            })?;
        }
        if own_block {
            b.end_dataflow()?;
        }
    }
    Ok(replace.mutate_expr(&seq.body))
}
