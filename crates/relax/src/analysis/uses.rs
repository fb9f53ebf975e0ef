//! Who uses a value.

use indexmap::IndexMap;

use crate::functor::used_vars;
use crate::*;

/// The uses of variables.
#[derive(Clone, Debug, Default)]
pub struct UseDef {
    /// For each variable that is bound or used, the variables whose values use it, in order.
    pub users: IndexMap<AnyVar, Vec<AnyVar>>,
    /// Variables that the result uses.
    pub outputs: Vec<AnyVar>,
}

impl UseDef {
    /// The variables whose values use a variable.
    pub fn users(&self, var: &AnyVar) -> &[AnyVar] {
        self.users.get(var).map(Vec::as_slice).unwrap_or_default()
    }

    /// How many times values and the result use a variable.
    pub fn count(&self, var: &AnyVar) -> usize {
        self.users(var).len() + self.outputs.iter().filter(|v| *v == var).count()
    }
}

/// The uses of the variables of a sequence. What branches and nested functions use, the variable that holds them uses.
pub fn use_def(seq: &SeqExpr) -> UseDef {
    let mut uses = UseDef::default();
    for binding in seq.blocks.iter().flat_map(|b| &b.bindings) {
        for used in used_vars(binding.value()) {
            uses.users.entry(used).or_default().push(binding.var().clone());
        }
        uses.users.entry(binding.var().clone()).or_default();
    }
    uses.outputs = used_vars(&seq.body);
    uses
}
