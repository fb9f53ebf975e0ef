//! CopyReturnedAliases: a function that others may call gives no memory out that is not the caller's.
//!
//! ```text
//! def main(x):                               def main(x):
//!     return (x, metadata[…], R.exp(x))  →       copy = R.call_dps_packed("runtime.TVMTensorCopyFromTo", (x,), …)
//!                                                copy1 = R.call_dps_packed(…, (metadata[…],), …)
//!                                                return (copy, copy1, …)
//! ```
//!
//! A caller may write to what it is given. If that were a constant of the program, every later call would compute with what was
//! written; if it were a tensor that was passed in, so would whoever passed it.
//!
//! **Leaves alone** private functions, whose callers are known and write to nothing; what a program overwrites on purpose
//! (`call_tir_inplace`); tensors whose shape is not known; what a call of another function gives; and what a branch gives,
//! whose last call would no longer be the last thing that the function does.

use relaxide_ffi::Ref;
use relaxide_ir::pass::{PassInfo, PassResult};
use relaxide_ir::{IRModule, Type};

use super::emit;
use crate::analysis::aliases::{Aliases, Holds};
use crate::*;

const NAME: &str = "CopyReturnedAliases";

pub(super) const PASS: PassInfo =
    PassInfo::new(NAME, "What a public function returns is the caller's own memory.", |module, _, _| run(module));

/// What copies elements.
const COPY: &str = "runtime.TVMTensorCopyFromTo";

fn run(module: IRModule) -> PassResult {
    emit::map_functions(module, |_, func| {
        let is_public = func.attrs.get("global_symbol").is_some();
        Ok(if is_public { copied(func) } else { func.clone() })
    })
}

fn copied(func: &Ref<Function>) -> Ref<Function> {
    let mut note = Note(Aliases::default());
    func.params.iter().for_each(|param| note.0.mark(AnyVar::Var(param.clone())));
    note.visit_seq(&func.body);
    let result = &func.body.body;
    if from_branches(func, result) {
        return func.clone();
    }
    let mut bindings = Vec::new();
    let body = copy(result, &note.0.holds(result), &mut bindings);
    if bindings.is_empty() {
        return func.clone();
    }
    let last = Ref::new(BindingBlock { bindings, dataflow: false });
    let blocks = func.body.blocks.iter().cloned().chain([last]).collect();
    let body = Ref::new(SeqExpr { blocks, body });
    Ref::new(Function { body, ..Function::clone(func) })
}

/// Whether the branches of the function's last condition give its result.
fn from_branches(func: &Function, result: &Expr) -> bool {
    let last = func.body.blocks.iter().flat_map(|block| &block.bindings).last();
    let is_result = |binding: &&Binding| Expr::from(binding.var().clone()) == *result;
    matches!(result, Expr::If(_)) || last.filter(is_result).is_some_and(|b| matches!(b.value(), Expr::If(_)))
}

/// Notes what the variables of a function, branches included, are bound to.
struct Note(Aliases);

impl ExprVisitor for Note {
    fn visit_binding(&mut self, binding: &Binding) {
        self.visit_expr(binding.value());
        self.0.note(binding.var(), binding.value());
    }
}

/// A value without foreign memory.
fn copy(value: &Expr, holds: &Holds, out: &mut Vec<Binding>) -> Expr {
    match (holds, value.ty()) {
        (Holds::None, _) => value.clone(),
        (_, Type::Tensor(ty)) if ty.shape.is_some() => {
            let ty = Type::Tensor(ty);
            let copy = emit::call_dps_packed(Expr::external(COPY), vec![value.clone()], ty.clone(), None);
            emit::emit(out, "copy", ty, copy)
        }
        (_, Type::Tuple(ty)) => {
            let field = |index: usize, out: &mut Vec<Binding>| match value {
                Expr::Tuple(tuple) => tuple.fields.get(index).cloned(),
                _ => ty
                    .fields
                    .get(index)
                    .map(|field| emit::emit(out, "field", field.clone(), Expr::field(value.clone(), index))),
            };
            let fields = (0..ty.fields.len()).filter_map(|index| {
                let field = field(index, out)?;
                Some(copy(&field, &holds.field(index as i64), out))
            });
            let fields: Vec<Expr> = fields.collect();
            Expr::tuple(fields)
        }
        _ => value.clone(),
    }
}
