//! KillAfterLastUse: releases storage and tensors behind their last use.
//!
//! The virtual machine frees an object when the last register lets go of it. A register lives as long as its function, so
//! without help every intermediate tensor would stay until the return:
//!
//! ```text
//! storage = R.memory.alloc_storage(...)          storage = R.memory.alloc_storage(...)
//! alloc = R.memory.alloc_tensor(storage, ...)    alloc = R.memory.alloc_tensor(storage, ...)
//! _ = cls.exp(x, alloc)                          _ = R.memory.kill_storage(storage)
//! gv = cls.sum(alloc)                            _ = cls.exp(x, alloc)
//!                                                gv = cls.sum(alloc)
//!                                                _ = R.memory.kill_tensor(alloc)
//! ```
//!
//! Bindings of one variable to another are dropped first, so that a name stands for one register. What a branch uses dies
//! behind the whole `if`. Parameters and what is returned are left alone.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::Type;
use relaxide_ir::pass::PassInfo;

use super::emit::*;
use crate::functor::{VarReplacer, used_vars};
use crate::*;

pub(super) const PASS: PassInfo =
    PassInfo::new("KillAfterLastUse", "Storage and tensors are released behind their last use.", |module, _, _| {
        map_functions(module, |_, f| {
            let f = DropAliases::default().mutate_function(f);
            Ok(Kill.mutate_function(&f))
        })
    });

/// Replaces a variable that is bound to another by that other.
#[derive(Default)]
struct DropAliases(VarReplacer);

impl ExprMutator for DropAliases {
    fn mutate_expr(&mut self, e: &Expr) -> Expr {
        match e.as_var() {
            Some(_) => self.0.mutate_expr(e),
            None => self.remake_expr(e),
        }
    }

    fn mutate_binding(&mut self, binding: &Binding, out: &mut Vec<Binding>) {
        let new = self.remake_binding(binding);
        match &new {
            Binding::Var(b) if b.value.as_var().is_some() => {
                self.0.0.insert(b.var.clone(), b.value.clone());
            }
            _ => out.push(new),
        }
    }
}

/// The operator that releases what a variable holds, if it is to be released at all.
fn killer(binding: &Binding) -> Option<&'static str> {
    let Binding::Var(b) = binding else { return None };
    let Expr::Call(call) = &b.value else { return None };
    match call.op_name() {
        Some("memory.alloc_storage") => Some("memory.kill_storage"),
        Some("memory.alloc_tensor") => Some("memory.kill_tensor"),
        Some("memory.kill_storage" | "memory.kill_tensor" | "vm.kill_object") => None,
        _ if matches!(b.var.ty(), Type::Tensor(_)) => Some("memory.kill_tensor"),
        _ => None,
    }
}

struct Kill;

impl ExprMutator for Kill {
    fn mutate_seq(&mut self, seq: &Ref<SeqExpr>) -> Ref<SeqExpr> {
        let mut last_use: HashMap<AnyVar, usize> = HashMap::new();
        let mut killers: Vec<(AnyVar, &'static str)> = Vec::new();
        let bindings = || seq.blocks.iter().flat_map(|b| &b.bindings);
        for (i, binding) in bindings().enumerate() {
            for var in used_vars(binding.value()) {
                last_use.insert(var, i);
            }
            last_use.insert(binding.var().clone(), i);
            if let Some(op) = killer(binding) {
                killers.push((binding.var().clone(), op));
            }
        }
        let returned = used_vars(&seq.body);
        let mut due: HashMap<usize, Vec<(AnyVar, &'static str)>> = HashMap::new();
        for (var, op) in killers {
            if let (false, Some(i)) = (returned.contains(&var), last_use.get(&var)) {
                due.entry(*i).or_default().push((var, op));
            }
        }
        let mut i = 0;
        let blocks = seq.blocks.iter().map(|block| {
            let mut out = Vec::with_capacity(block.bindings.len() * 2);
            for binding in &block.bindings {
                out.push(self.remake_binding(binding));
                for (var, op) in due.remove(&i).unwrap_or_default() {
                    emit_effect(&mut out, call_op(op, vec![var.into()], Type::void()));
                }
                i += 1;
            }
            Ref::new(BindingBlock { bindings: out, dataflow: block.dataflow })
        });
        Ref::new(SeqExpr { blocks: blocks.collect(), body: seq.body.clone() })
    }
}
