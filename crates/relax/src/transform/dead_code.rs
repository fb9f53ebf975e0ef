//! DeadCodeElimination: what nothing uses is not computed, and functions that nothing calls are dropped.
//!
//! ```text
//! a = R.add(x, x)
//! b = R.exp(x)          →    b = R.exp(x)
//! return b                   return b
//! ```
//!
//! A binding stays if something behind it uses its variable, if it has a visible effect, or if it is a `match_cast`, whose
//! check is an effect and whose symbolic variables are used by types. A function stays if it is public (its kernel or graph
//! carries `global_symbol`), is called `main`, or if a function that stays mentions it.

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::pass::{ParamDefault, ParamKind, PassInfo, PassParam};
use relaxide_ir::prim::free_vars;
use relaxide_ir::{IRModule, Type};
use relaxide_tir::PrimFunc;
use relaxide_tir::kernel_call::called_kernels;

use super::fuse_by_pattern::strings;
use crate::builder::is_pure;
use crate::functor::ExprVisitor;
use crate::shape::vars_of;
use crate::*;

pub(super) const PASS: PassInfo = PassInfo::new(
    "DeadCodeElimination",
    "What nothing uses is not computed; functions that nothing calls are dropped.",
    |module, _, args| {
        let packed = if args.bool("keep_packed_calls").unwrap_or(false) { Packed::Stay } else { Packed::MayGo };
        Ok(run(module, &strings(args.get("entry_functions")), packed))
    },
)
.opt_level(1)
.params(&[
    PassParam::optional(
        "entry_functions",
        ParamKind::Strs,
        "The functions that stay and what they need; public ones and `main`, where nothing is said.",
    ),
    PassParam::new(
        "keep_packed_calls",
        ParamKind::Bool,
        ParamDefault::Bool(false),
        "Calls of functions from outside stay where no dataflow block says that they are nothing but their results.",
    ),
]);

/// What becomes of calls of functions from outside whose results nothing uses. Builds keep them: programs call functions that
/// write their arguments by `call_pure_packed` and `call_inplace_packed`, and TVM's builds call those.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Packed {
    Stay,
    MayGo,
}

pub(super) fn run(mut module: IRModule, entries: &[String], packed: Packed) -> IRModule {
    let functions: Vec<_> = module.functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    for (name, func) in functions {
        let body = clean_seq(&func.body, packed);
        if body != func.body {
            module.insert(name, Ref::new(Function { body, ..(*func).clone() }));
        }
    }
    drop_unreachable(module, entries)
}

/// A function without the bindings that nothing needs.
pub fn remove_unused(func: &Ref<Function>) -> Ref<Function> {
    let body = clean_seq(&func.body, Packed::MayGo);
    if body == func.body { func.clone() } else { Ref::new(Function { body, ..(**func).clone() }) }
}

/// A sequence without the bindings that nothing needs.
fn clean_seq(seq: &Ref<SeqExpr>, packed: Packed) -> Ref<SeqExpr> {
    let mut used: HashSet<AnyVar> = mentioned(&seq.body).into_iter().collect();
    let mut blocks = Vec::with_capacity(seq.blocks.len());
    let mut changed = false;
    for block in seq.blocks.iter().rev() {
        let mut kept = Vec::with_capacity(block.bindings.len());
        for binding in block.bindings.iter().rev() {
            let stays = packed == Packed::Stay && !block.dataflow && calls_packed(binding.value());
            if !used.contains(binding.var()) && is_removable(binding) && !stays {
                changed = true;
                continue;
            }
            let cleaned = clean_branches(binding, packed);
            changed |= cleaned != *binding;
            used.extend(mentioned(cleaned.value()));
            used.extend(vars_of([cleaned.var().ty()]).into_iter().map(AnyVar::Var));
            kept.push(cleaned);
        }
        kept.reverse();
        if kept.len() == block.bindings.len() && kept == block.bindings {
            blocks.push(block.clone());
        } else if !kept.is_empty() {
            blocks.push(Ref::new(BindingBlock { bindings: kept, dataflow: block.dataflow }));
        }
    }
    blocks.reverse();
    if changed { Ref::new(SeqExpr { blocks, body: seq.body.clone() }) } else { seq.clone() }
}

/// The variables that an expression mentions, also within scalars, shapes and types.
fn mentioned(e: &Expr) -> Vec<AnyVar> {
    struct Mentioned(Vec<AnyVar>);
    impl ExprVisitor for Mentioned {
        fn visit_expr(&mut self, e: &Expr) {
            match e {
                Expr::Prim(scalar) => self.0.extend(free_vars(&scalar.value).into_iter().map(AnyVar::Var)),
                Expr::Shape(shape) => {
                    self.0.extend(shape.values.iter().flat_map(free_vars).map(AnyVar::Var));
                }
                Expr::Call(call) => {
                    self.0.extend(vars_of(&call.ty_args).into_iter().map(AnyVar::Var));
                    self.walk_expr(e);
                }
                _ => match e.as_var() {
                    Some(var) => self.0.push(var),
                    None => self.walk_expr(e),
                },
            }
        }
    }
    let mut all = Mentioned(Vec::new());
    all.visit_expr(e);
    all.0
}

fn is_removable(binding: &Binding) -> bool {
    match binding {
        Binding::MatchCast(_) => false,
        Binding::Var(b) => is_pure(&b.value) && !is_call_for_effect(&b.value),
    }
}

fn calls_packed(value: &Expr) -> bool {
    matches!(value.as_op_call(), Some((_, "call_pure_packed" | "call_inplace_packed")))
}

/// A call of a kernel that writes its arguments: it returns nothing.
fn is_call_for_effect(value: &Expr) -> bool {
    matches!(value, Expr::Call(c) if matches!(&c.ty, Type::Tuple(t) if t.fields.is_empty()))
}

fn clean_branches(binding: &Binding, packed: Packed) -> Binding {
    let Binding::Var(bound) = binding else { return binding.clone() };
    let value: Expr = match &bound.value {
        Expr::If(n) => {
            let (true_branch, false_branch) = (clean_seq(&n.true_branch, packed), clean_seq(&n.false_branch, packed));
            if true_branch == n.true_branch && false_branch == n.false_branch {
                return binding.clone();
            }
            Ref::new(If { condition: n.condition.clone(), true_branch, false_branch, ty: n.ty.clone() }).into()
        }
        Expr::Function(f) => {
            let body = clean_seq(&f.body, packed);
            if body == f.body {
                return binding.clone();
            }
            Ref::new(Function { body, ..(**f).clone() }).into()
        }
        _ => return binding.clone(),
    };
    Ref::new(VarBinding { var: bound.var.clone(), value }).into()
}

/// The names of the functions that an expression mentions.
struct Mentions(Vec<String>);

impl ExprVisitor for Mentions {
    fn visit_expr(&mut self, e: &Expr) {
        if let Expr::Global(g) = e {
            self.0.push(g.name.clone());
        }
        self.walk_expr(e);
    }
}

fn drop_unreachable(mut module: IRModule, entries: &[String]) -> IRModule {
    let is_root = |name: &str| -> bool {
        let exported = |attrs: &relaxide_ir::Attrs| attrs.get("global_symbol").is_some();
        if !entries.is_empty() {
            return entries.iter().any(|entry| entry == name);
        }
        name == "main"
            || module.get_as::<Function>(name).is_some_and(|f| exported(&f.attrs))
            || module.get_as::<PrimFunc>(name).is_some_and(|f| exported(&f.attrs))
    };
    let mut pending: Vec<String> = module.functions.keys().filter(|n| is_root(n)).cloned().collect();
    if pending.is_empty() {
        return module;
    }
    let mut reached: HashSet<String> = HashSet::new();
    while let Some(name) = pending.pop() {
        if !reached.insert(name.clone()) {
            continue;
        }
        if let Some(func) = module.get_as::<Function>(&name) {
            let mut mentions = Mentions(Vec::new());
            mentions.visit_seq(&func.body);
            pending.extend(mentions.0);
        } else if let Some(kernel) = module.get_as::<PrimFunc>(&name) {
            pending.extend(called_kernels(&kernel));
        }
    }
    module.functions.retain(|name, _| reached.contains(name));
    module
}
