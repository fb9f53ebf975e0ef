//! Edits of one block of a function, binding by binding.
//!
//! Programs never change: every edit makes a block and the function that holds it anew, and [`BlockRewrite`] keeps both.

use relaxide_ffi::Ref;

use crate::functor::{ExprMutator, VarReplacer, used_vars};
use crate::transform::remove_unused;
use crate::{AnyVar, Binding, BindingBlock, DataflowVar, Expr, Function, SeqExpr, VarBinding};

/// A block under edit, and the function around it.
#[derive(Clone, Debug)]
pub struct BlockRewrite {
    /// The block as it is now.
    pub block: Ref<BindingBlock>,
    /// The function as it is now.
    pub function: Ref<Function>,
}

/// Why an edit is refused. All are the caller's mistakes.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum EditError {
    /// The variable that is to go is used.
    #[error("{var} is used by {users} other bindings or results, so its binding stays")]
    Used {
        /// The variable.
        var: String,
        /// How many bindings and results need it.
        users: usize,
    },
    /// The function has no such variable.
    #[error("Cannot find variable {0}: the function has none of the name")]
    Stranger(String),
    /// No binding of the block binds the variable.
    #[error("the block binds no variable {0}")]
    Undefined(String),
    /// The block is not in the function.
    #[error("the block is not one of the function's")]
    Foreign,
}

impl BlockRewrite {
    /// A block of a function.
    pub fn new(block: Ref<BindingBlock>, function: Ref<Function>) -> Result<BlockRewrite, EditError> {
        let mut find = Replace { old: &block, new: block.clone(), found: false };
        find.mutate_function(&function);
        // A block whose bindings were all removed is in no function.
        match find.found || block.bindings.is_empty() {
            true => Ok(BlockRewrite { block, function }),
            false => Err(EditError::Foreign),
        }
    }

    /// Puts one variable in the place of another wherever that is used.
    pub fn replace_all_uses(&mut self, old: AnyVar, new: AnyVar) -> Result<(), EditError> {
        let is_param = self.function.params.iter().any(|param| AnyVar::Var(param.clone()) == old);
        if !is_param && !bound(&self.function).contains(&old) {
            return Err(EditError::Stranger(old.name().to_string()));
        }
        let mut replace = Tracked { replace: VarReplacer([(old, new.into())].into()), block: self.block.clone() };
        self.function = replace.mutate_function(&self.function);
        self.block = replace.block;
        Ok(())
    }

    /// Adds a binding to the block, right behind those that it needs, or behind the first one.
    pub fn add_binding(&mut self, binding: Binding) {
        let needs = used_vars(binding.value());
        let mut bindings = self.block.bindings.clone();
        let last = bindings.iter().rposition(|before| needs.contains(before.var())).unwrap_or(0);
        bindings.insert((last + 1).min(bindings.len()), binding);
        self.set(bindings);
    }

    /// Binds a value right behind what it needs, to a variable of a name or of a fresh one.
    pub fn add(&mut self, value: Expr, name: Option<&str>, dataflow: bool) {
        let name = name.map_or_else(|| self.fresh_name(), str::to_string);
        let ty = value.ty();
        let var: AnyVar = match dataflow {
            true => AnyVar::Dataflow(Ref::new(DataflowVar { name, ty, span: None })),
            false => AnyVar::Var(relaxide_ir::Var::new(name, ty)),
        };
        self.add_binding(Ref::new(VarBinding { var, value }).into());
    }

    fn fresh_name(&self) -> String {
        let names = crate::functor::bound_names(&self.function.body);
        let hints = std::iter::once("tmp".to_string()).chain((1..).map(|i| format!("tmp{i}")));
        hints.into_iter().find(|name| !names.contains(name)).unwrap_or_default()
    }

    /// Removes the binding of a variable that nothing uses; one that is not there is an error unless that is allowed.
    pub fn remove_unused(&mut self, var: &AnyVar, allow_undefined: bool) -> Result<(), EditError> {
        if !self.block.bindings.iter().any(|binding| binding.var() == var) {
            return if allow_undefined { Ok(()) } else { Err(EditError::Undefined(var.name().to_string())) };
        }
        if used_vars(&Expr::Function(self.function.clone())).contains(var) {
            let users = blocks(&self.function);
            let users = users.iter().flat_map(|block| &block.bindings).filter(|b| used_vars(b.value()).contains(var));
            return Err(EditError::Used { var: var.name().to_string(), users: users.count().max(1) });
        }
        let kept = self.block.bindings.iter().filter(|binding| binding.var() != var).cloned().collect();
        self.set(kept);
        Ok(())
    }

    /// Removes all bindings that nothing uses, those of other blocks too.
    pub fn remove_all_unused(&mut self) {
        let function = remove_unused(&self.function);
        let kept = bound(&function);
        let bindings = self.block.bindings.iter().filter(|b| kept.contains(b.var())).cloned().collect();
        self.function = function;
        // The block that now holds what is left of this one.
        let left = Ref::new(BindingBlock { bindings, dataflow: self.block.dataflow });
        self.block = blocks(&self.function).into_iter().find(|block| block.bindings == left.bindings).unwrap_or(left);
    }

    fn set(&mut self, bindings: Vec<Binding>) {
        let new = Ref::new(BindingBlock { bindings, dataflow: self.block.dataflow });
        let mut replace = Replace { old: &self.block, new: new.clone(), found: false };
        self.function = replace.mutate_function(&self.function);
        if !replace.found && !new.bindings.is_empty() {
            // A block without bindings is none of the function's any more.
            let SeqExpr { blocks, body } = &*self.function.body;
            let blocks = blocks.iter().chain([&new]).cloned().collect();
            let body = Ref::new(SeqExpr { blocks, body: body.clone() });
            self.function = Ref::new(Function { body, ..Function::clone(&self.function) });
        }
        self.block = new;
    }
}

/// Puts a block in the place of another.
struct Replace<'a> {
    old: &'a Ref<BindingBlock>,
    new: Ref<BindingBlock>,
    found: bool,
}

impl ExprMutator for Replace<'_> {
    fn mutate_block(&mut self, block: &Ref<BindingBlock>) -> Ref<BindingBlock> {
        if block == self.old {
            self.found = true;
            return self.new.clone();
        }
        let mut bindings = Vec::with_capacity(block.bindings.len());
        block.bindings.iter().for_each(|b| self.mutate_binding(b, &mut bindings));
        if bindings == block.bindings {
            return block.clone();
        }
        Ref::new(BindingBlock { bindings, dataflow: block.dataflow })
    }

    fn mutate_seq(&mut self, seq: &Ref<SeqExpr>) -> Ref<SeqExpr> {
        let mut blocks: Vec<_> = seq.blocks.iter().map(|block| self.mutate_block(block)).collect();
        blocks.retain(|block| !block.bindings.is_empty());
        let body = self.mutate_expr(&seq.body);
        match blocks == seq.blocks && body == seq.body {
            true => seq.clone(),
            false => Ref::new(SeqExpr { blocks, body }),
        }
    }
}

/// Replaces variables and follows one block through it.
struct Tracked {
    replace: VarReplacer,
    block: Ref<BindingBlock>,
}

impl ExprMutator for Tracked {
    fn mutate_expr(&mut self, e: &Expr) -> Expr {
        match e.as_var() {
            Some(_) => self.replace.mutate_expr(e),
            None => self.remake_expr(e),
        }
    }

    fn mutate_block(&mut self, block: &Ref<BindingBlock>) -> Ref<BindingBlock> {
        let mut bindings = Vec::with_capacity(block.bindings.len());
        block.bindings.iter().for_each(|b| self.mutate_binding(b, &mut bindings));
        if bindings == block.bindings {
            return block.clone();
        }
        let new = Ref::new(BindingBlock { bindings, dataflow: block.dataflow });
        if *block == self.block {
            self.block = new.clone();
        }
        new
    }
}

/// All blocks of a function, outer before inner.
fn blocks(function: &Ref<Function>) -> Vec<Ref<BindingBlock>> {
    struct Blocks(Vec<Ref<BindingBlock>>);
    impl ExprMutator for Blocks {
        fn mutate_block(&mut self, block: &Ref<BindingBlock>) -> Ref<BindingBlock> {
            self.0.push(block.clone());
            block.bindings.iter().for_each(|b| {
                self.mutate_expr(b.value());
            });
            block.clone()
        }
    }
    let mut found = Blocks(Vec::new());
    found.mutate_function(function);
    found.0
}

/// All variables that a function binds.
fn bound(function: &Ref<Function>) -> Vec<AnyVar> {
    blocks(function).iter().flat_map(|block| &block.bindings).map(|binding| binding.var().clone()).collect()
}
