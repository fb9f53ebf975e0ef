//! Passes over one function or one dataflow block at a time, made of closures.

use relaxide_ffi::Ref;
use relaxide_ir::IRModule;
use relaxide_ir::pass::{Pass, PassContext, PassError};

use crate::*;

/// A pass that rebuilds each Relax function by itself.
pub fn function_pass(
    name: impl Into<String>,
    run: impl Fn(Ref<Function>, &IRModule, &PassContext) -> Result<Ref<Function>, PassError> + Send + Sync + 'static,
) -> Pass {
    Pass::on_functions::<Function>(name, run)
}

/// A pass that rebuilds each dataflow block by itself, those of nested functions and branches included. What a block makes
/// visible behind it (its plain variables) must stay bound.
pub fn dataflow_block_pass(
    name: impl Into<String>,
    run: impl Fn(Ref<BindingBlock>, &IRModule, &PassContext) -> Result<Ref<BindingBlock>, PassError> + Send + Sync + 'static,
) -> Pass {
    Pass::on_functions::<Function>(name, move |func, module, context| {
        each_dataflow_block(&func, |block| run(block.clone(), module, context))
    })
}

/// Rebuilds each dataflow block of a function, those of nested functions and branches included; the first error ends it.
pub(super) fn each_dataflow_block<E>(
    func: &Ref<Function>,
    run: impl FnMut(&Ref<BindingBlock>) -> Result<Ref<BindingBlock>, E>,
) -> Result<Ref<Function>, E> {
    let mut blocks = BlockRunner { run, failed: None };
    let new = blocks.mutate_function(func);
    blocks.failed.map_or(Ok(new), Err)
}

struct BlockRunner<F, E> {
    run: F,
    failed: Option<E>,
}

impl<E, F: FnMut(&Ref<BindingBlock>) -> Result<Ref<BindingBlock>, E>> ExprMutator for BlockRunner<F, E> {
    fn mutate_block(&mut self, block: &Ref<BindingBlock>) -> Ref<BindingBlock> {
        if self.failed.is_some() {
            return block.clone();
        }
        if block.dataflow {
            return (self.run)(block).unwrap_or_else(|error| {
                self.failed = Some(error);
                block.clone()
            });
        }
        let bindings: Vec<Binding> = block.bindings.iter().map(|b| self.remake_binding(b)).collect();
        if bindings == block.bindings { block.clone() } else { Ref::new(BindingBlock { bindings, dataflow: false }) }
    }
}
