//! MergeEqualKernels: private kernels that are the same up to their names are one.
//!
//! ```text
//! cls.compute_symbolic_expr(n)                cls.compute_symbolic_expr(n)
//! …                                     →     …
//! cls.compute_symbolic_expr1(m)               cls.compute_symbolic_expr(m)
//! ```
//!
//! A network of a hundred equal layers, or of a thousand equal loops, is legalized to kernels that are shared; what fusion and the
//! lowering of shapes make of each is not. Each kernel that goes need not be scheduled, lowered and named.
//!
//! The kernel that stands first in the module stays. Public kernels stay as they are, and so do those that kernels call.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::{FreeVars, Ref, structural_equal, structural_hash};
use relaxide_ir::pass::{PassInfo, PassResult};
use relaxide_ir::{GlobalVar, IRModule};
use relaxide_tir::PrimFunc;
use relaxide_tir::kernel_call::called_kernels;

use super::emit;
use crate::*;

pub(super) const PASS: PassInfo = PassInfo::new(
    "MergeEqualKernels",
    "Private kernels that are the same up to their names are one.",
    |module, _, _| run(module),
);

fn run(mut module: IRModule) -> PassResult {
    let mut seen: HashMap<u64, Vec<(String, Ref<PrimFunc>)>> = HashMap::new();
    let mut merged: HashMap<String, Ref<GlobalVar>> = HashMap::new();
    let called: HashSet<String> = module.functions_of::<PrimFunc>().flat_map(|(_, k)| called_kernels(&k)).collect();
    for (name, kernel) in module.functions_of::<PrimFunc>() {
        if kernel.global_symbol().is_some() || called.contains(name) {
            continue;
        }
        let alike = seen.entry(structural_hash(&kernel, FreeVars::Same)).or_default();
        match alike.iter().find(|(_, other)| structural_equal(other, &kernel, FreeVars::Same).is_ok()) {
            Some((first, _)) => {
                merged.insert(name.to_string(), GlobalVar::new(first.clone()));
            }
            None => alike.push((name.to_string(), kernel)),
        }
    }
    if merged.is_empty() {
        return Ok(module);
    }
    module.functions.retain(|name, _| !merged.contains_key(name));
    let mut calls = MergedCalls(merged);
    emit::map_functions(module, |_, func| Ok(calls.mutate_function(func)))
}

/// Calls what stayed.
struct MergedCalls(HashMap<String, Ref<GlobalVar>>);

impl ExprMutator for MergedCalls {
    fn mutate_expr(&mut self, e: &Expr) -> Expr {
        match e {
            Expr::Global(callee) => self.0.get(&callee.name).map_or_else(|| e.clone(), |first| first.clone().into()),
            _ => self.remake_expr(e),
        }
    }
}
