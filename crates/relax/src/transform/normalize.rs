//! Normalize, NormalizeGlobalVar: programs that were built by hand keep the rules that passes rely on.
//!
//! `Normalize` brings functions to A-normal form, fills in types that are missing, and joins neighbouring blocks of one kind:
//!
//! ```text
//! gv = R.add(R.exp(x), x)     →     lv = R.exp(x)
//!                                   gv = R.add(lv, x)
//! ```
//!
//! `NormalizeGlobalVar` makes the name of a public function in the module the name that it is exported by; a private
//! function in the way gets another name.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use relaxide_ffi::Ref;
use relaxide_ir::pass::{PassError, PassInfo, PassResult};
use relaxide_ir::{BaseFunc, GlobalVar, IRModule};
use relaxide_tir::PrimFunc;

use super::emit::map_functions;
use crate::rewrite::{Action, Rewrite, rewrite_module};
use crate::*;

pub(super) const NORMALIZE: PassInfo =
    PassInfo::new("Normalize", "Functions come to A-normal form, types are filled in.", |module, _, _| {
        let module = rewrite_module("Normalize", module, &mut Normalize)?;
        map_functions(module, |_, func| Ok(JoinBlocks.mutate_function(func)))
    })
    .opt_level(1);

pub(super) const GLOBAL_VAR: PassInfo = PassInfo::new(
    "NormalizeGlobalVar",
    "The name of a public function is the name that it is exported by.",
    |module, _, _| global_names(module),
);

struct Normalize;

impl Rewrite for Normalize {
    fn value(&mut self, _: &mut BlockBuilder, _: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        Ok(Action::Bind(value))
    }
}

/// Makes one block of neighbours that both are dataflow blocks, or both are none.
pub(super) struct JoinBlocks;

impl ExprMutator for JoinBlocks {
    fn mutate_seq(&mut self, seq: &Ref<SeqExpr>) -> Ref<SeqExpr> {
        let blocks: Vec<_> = seq.blocks.iter().map(|block| self.mutate_block(block)).collect();
        let body = self.mutate_expr(&seq.body);
        let same = blocks == seq.blocks && body == seq.body;
        let seq = if same { seq.clone() } else { Ref::new(SeqExpr { blocks, body }) };
        if seq.blocks.windows(2).all(|pair| !matches!(pair, [a, b] if a.dataflow == b.dataflow)) {
            return seq;
        }
        let joined = seq.blocks.chunk_by(|a, b| a.dataflow == b.dataflow).map(|run| {
            let bindings = run.iter().flat_map(|block| block.bindings.iter().cloned()).collect();
            Ref::new(BindingBlock { bindings, dataflow: run.iter().any(|block| block.dataflow) })
        });
        Ref::new(SeqExpr { blocks: joined.collect(), body: seq.body.clone() })
    }
}

fn symbol(func: &BaseFunc) -> Option<String> {
    if let Some(f) = func.downcast::<Function>() {
        return f.attrs.str("global_symbol").map(str::to_string);
    }
    func.downcast::<PrimFunc>().and_then(|f| f.global_symbol().map(str::to_string))
}

fn global_names(module: IRModule) -> PassResult {
    let mut exported: HashSet<String> = HashSet::new();
    for symbol in module.functions.values().filter_map(symbol) {
        if !exported.insert(symbol.clone()) {
            return Err(PassError::new(GLOBAL_VAR.name, format!("two functions are exported as `{symbol}`")));
        }
    }
    let mut taken: HashSet<String> = exported.iter().chain(module.functions.keys()).cloned().collect();
    let mut names: HashMap<String, String> = HashMap::new();
    for (name, func) in &module.functions {
        match symbol(func) {
            Some(symbol) if symbol != *name => {
                names.insert(name.clone(), symbol);
            }
            None if exported.contains(name) => {
                let fresh = (1..).map(|i| format!("{name}_{i}")).find(|n| !taken.contains(n)).unwrap_or_default();
                taken.insert(fresh.clone());
                names.insert(name.clone(), fresh);
            }
            _ => {}
        }
    }
    if names.is_empty() {
        return Ok(module);
    }
    let functions: IndexMap<String, BaseFunc> =
        module.functions.iter().map(|(name, f)| (names.get(name).unwrap_or(name).clone(), f.clone())).collect();
    let module = IRModule { functions, ..module };
    map_functions(module, |_, func| Ok(Rename(&names).mutate_function(func)))
}

struct Rename<'a>(&'a HashMap<String, String>);

impl ExprMutator for Rename<'_> {
    fn mutate_expr(&mut self, e: &Expr) -> Expr {
        match e {
            Expr::Global(g) => match self.0.get(&g.name) {
                Some(name) => Expr::Global(GlobalVar::typed(name.clone(), g.ty.clone())),
                None => e.clone(),
            },
            _ => self.remake_expr(e),
        }
    }
}
