//! AttachGlobalSymbol: every function says under which name a library exports it.
//!
//! Kernels and public Relax functions get the attribute `global_symbol` with the name that the module knows them by, unless
//! they have one.

use relaxide_ffi::Ref;
use relaxide_ir::IRModule;
use relaxide_ir::pass::PassInfo;
use relaxide_tir::PrimFunc;

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
    module
}
