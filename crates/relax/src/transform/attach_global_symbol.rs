//! AttachGlobalSymbol: every function says under which name a library exports it.
//!
//! Kernels and public Relax functions get the attribute `global_symbol` with the name that the module knows them by, unless
//! they have one.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::IRModule;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{self, PrimExpr, PrimMutator};
use relaxide_tir::PrimFunc;
use relaxide_tir::functor::StmtMutator;
use relaxide_tir::kernel_call::{called_kernel, called_kernels};

use crate::Function;

pub(super) const PASS: PassInfo = PassInfo::new(
    "AttachGlobalSymbol",
    "Every function says under which name a library exports it.",
    |module, _, _| Ok(run(module)),
);

fn run(mut module: IRModule) -> IRModule {
    let names: Vec<String> = module.functions.keys().cloned().collect();
    for name in names {
        if let Some(func) = module.get_as::<PrimFunc>(&name).filter(|f| f.global_symbol().is_none()) {
            let attrs = func.attrs.clone().with("global_symbol", name.as_str());
            module.insert(name, Ref::new(PrimFunc { attrs, ..(*func).clone() }));
        } else if let Some(func) = module.get_as::<Function>(&name).filter(|f| f.attrs.get("global_symbol").is_none()) {
            let attrs = func.attrs.clone().with("global_symbol", name.as_str());
            module.insert(name, Ref::new(Function { attrs, ..(*func).clone() }));
        }
    }
    call_by_symbol(module)
}

/// Kernels that a library exports under another name than the module's are called by that name.
fn call_by_symbol(mut module: IRModule) -> IRModule {
    let renamed: HashMap<String, String> = module
        .functions_of::<PrimFunc>()
        .filter_map(|(name, kernel)| Some((name.to_string(), kernel.global_symbol()?.to_string())))
        .filter(|(name, symbol)| name != symbol)
        .collect();
    if renamed.is_empty() {
        return module;
    }
    let callers: Vec<_> = module
        .functions_of::<PrimFunc>()
        .filter(|(_, kernel)| called_kernels(kernel).iter().any(|callee| renamed.contains_key(callee)))
        .map(|(name, kernel)| (name.to_string(), kernel))
        .collect();
    for (name, kernel) in callers {
        let body = BySymbol(&renamed).mutate_stmt(&kernel.body);
        module.insert(name, Ref::new(kernel.with_body(body)));
    }
    module
}

struct BySymbol<'a>(&'a HashMap<String, String>);

impl PrimMutator for BySymbol<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        let made = self.remake_prim(e);
        let Some((name, args)) = called_kernel(&made) else { return made };
        match self.0.get(name) {
            Some(symbol) => prim::call(
                e.dtype(),
                "tirx.call_cpacked",
                [vec![prim::string(symbol.as_str())], args.to_vec()].concat(),
            ),
            None => made,
        }
    }
}

impl StmtMutator for BySymbol<'_> {}
