//! What is overwritten: the memory behind some variables changes while the program runs.
//!
//! `call_tir_inplace` and `call_inplace_packed` write over arguments. A variable that stands for such an argument holds
//! its own value up to that call only, so it must not stand for another of equal value, nor be a constant, which lives
//! from call to call.

use std::collections::HashSet;

use crate::functor::used_vars;
use crate::op::OpPattern;
use crate::op::core::CallTir;
use crate::*;

/// The variables of a function whose memory is overwritten, or may be: through a tuple or a view, too.
pub fn overwritten_vars(func: &Function) -> HashSet<AnyVar> {
    let mut bindings = Bindings::default();
    bindings.visit_seq(&func.body);
    let mut found = HashSet::new();
    // Backwards, because a value shares the memory of what was bound before it.
    for (var, value) in bindings.0.iter().rev() {
        found.extend(overwritten_args(value).iter().flat_map(used_vars));
        if found.contains(var) && may_share(value) {
            found.extend(used_vars(value));
        }
    }
    found
}

/// The arguments that a call writes over.
fn overwritten_args(value: &Expr) -> Vec<Expr> {
    let Some((call, name)) = value.as_op_call() else { return Vec::new() };
    let args = match (name, call.args.as_slice()) {
        ("call_tir_inplace", [_, Expr::Tuple(args), ..]) => args.fields.as_slice(),
        ("call_tir_inplace" | "call_inplace_packed", [_, args @ ..]) => args,
        _ => return Vec::new(),
    };
    let indices = call.attrs.ints("inplace_indices").unwrap_or_default();
    indices.iter().filter_map(|at| args.get(usize::try_from(*at).ok()?).cloned()).collect()
}

/// Whether writes over an argument are a call's purpose.
pub(crate) fn is_inplace_call(value: &Expr) -> bool {
    matches!(value.as_op_call(), Some((_, "call_tir_inplace" | "call_inplace_packed")))
}

/// Whether a value is computed into memory of its own, and shares none with its operands.
pub(crate) fn computes(value: &Expr) -> bool {
    let Some((call, _)) = value.as_op_call() else { return false };
    let def = call.op_name().and_then(op::lookup);
    def.is_some_and(|d| {
        d.pure
            && matches!(
                d.pattern,
                OpPattern::Elemwise | OpPattern::Broadcast | OpPattern::Reduce | OpPattern::OutFusable
            )
    })
}

/// Whether a value may share its operands' memory.
fn may_share(value: &Expr) -> bool {
    match CallTir::of(value) {
        // A kernel that only copies one tensor may become a view; others write memory of their own.
        Some(call) => call.args.len() == 1,
        None => !computes(value),
    }
}

/// Every binding; a choice or a function comes behind those inside it.
#[derive(Default)]
struct Bindings(Vec<(AnyVar, Expr)>);

impl ExprVisitor for Bindings {
    fn visit_binding(&mut self, binding: &Binding) {
        self.visit_expr(binding.value());
        self.0.push((binding.var().clone(), binding.value().clone()));
    }
}
