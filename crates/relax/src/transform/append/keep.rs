//! KeepAppends: concatenations that lengthen a parameter, and are results, stay calls of their own.
//!
//! ```text
//! keys = R.concat((past, new), axis=2)    →    keys = R.call_pure_packed("vm.builtin.append", past, new, 2)
//! ```
//!
//! **Leaves alone** parameters that anything else reads, lengths that are numbers, tensors whose other lengths are not known to be equal, elements below a
//! byte, functions that nobody calls from outside, and programs for devices.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::pass::{PassContext, PassInfo, PassResult};
use relaxide_ir::{Attrs, IRModule, Type};

use super::APPEND;
use crate::functor::used_vars;
use crate::rewrite::{Action, Rewrite, in_function, rewrite_function};
use crate::shape::same_dims;
use crate::*;

pub(in crate::transform) const PASS: PassInfo = PassInfo::new(
    "KeepAppends",
    "Results that are a parameter with something behind it are made by a builtin.",
    |module, context, _| run(module, context),
);

fn run(module: IRModule, context: &PassContext) -> PassResult {
    if context.target.kind.is_gpu() || !module.vdevices.is_empty() {
        return Ok(module);
    }
    let mut b = BlockBuilder::with_module(module);
    let functions: Vec<_> = b.module().functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    for (name, func) in functions.into_iter().filter(|(_, func)| func.attrs.get("global_symbol").is_some()) {
        let appends = appends(&func);
        if !appends.is_empty() {
            let new =
                rewrite_function(&mut b, &func, &mut Keep(appends)).map_err(|e| in_function(PASS.name, &name, e))?;
            b.module_mut().insert(name, new);
        }
    }
    Ok(b.finish())
}

/// A concatenation of a parameter and what comes behind it.
struct Append {
    past: Expr,
    new: Expr,
    axis: i64,
}

/// The concatenations of a function's own blocks that are to stay.
fn appends(func: &Ref<Function>) -> HashSet<AnyVar> {
    let mut uses: HashMap<AnyVar, usize> = HashMap::new();
    let seq: Expr = func.body.clone().into();
    used_vars(&seq).into_iter().for_each(|var| *uses.entry(var).or_default() += 1);
    let is_once = |past: &Expr| {
        let var = past.as_var();
        var.is_some_and(|var| uses.get(&var) == Some(&1) && func.params.iter().any(|p| AnyVar::Var(p.clone()) == var))
    };
    let results = results(&func.body);
    let bindings = func.body.blocks.iter().flat_map(|block| &block.bindings);
    bindings
        .filter(|binding| results.contains(binding.var()))
        .filter(|binding| append(binding.value()).is_some_and(|append| is_once(&append.past)))
        .map(|binding| binding.var().clone())
        .collect()
}

/// What a function gives, as it is or in a tuple.
fn results(seq: &SeqExpr) -> HashSet<AnyVar> {
    let mut found: HashSet<AnyVar> = used_vars(&seq.body).into_iter().collect();
    for binding in seq.blocks.iter().rev().flat_map(|block| block.bindings.iter().rev()) {
        if found.contains(binding.var())
            && matches!(binding.value(), Expr::Tuple(_) | Expr::Var(_) | Expr::DataflowVar(_))
        {
            found.extend(used_vars(binding.value()));
        }
    }
    found
}

fn append(value: &Expr) -> Option<Append> {
    let (call, "concat") = value.as_op_call()? else { return None };
    let [Expr::Tuple(both)] = call.args.as_slice() else { return None };
    let [past, new] = both.fields.as_slice() else { return None };
    let ty = past.ty();
    let tensor = ty.as_tensor()?;
    let dims = tensor.shape.as_ref()?;
    let axis = call.attrs.int("axis").unwrap_or(0);
    let axis = if axis < 0 { axis + dims.len() as i64 } else { axis };
    let grows = dims.get(usize::try_from(axis).ok()?)?.as_int().is_none();
    let is_plain = tensor.dtype.bits >= 8 && tensor.dtype.lanes == 1 && call.ty.as_tensor()?.shape.is_some();
    // Where other lengths are not known to be equal, the operator's own check says which are not.
    let of_new = new.ty().as_tensor()?.shape.clone()?;
    let is_equal = |i: usize| i == axis as usize || same_dims(&dims[i..=i], &of_new[i..=i]);
    let is_alike = of_new.len() == dims.len() && (0..dims.len()).all(is_equal);
    (grows && is_plain && is_alike).then(|| Append { past: past.clone(), new: new.clone(), axis })
}

/// The variables of the concatenations that stay.
struct Keep(HashSet<AnyVar>);

impl Rewrite for Keep {
    fn value(&mut self, _: &mut BlockBuilder, var: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let Some(append) = append(&value).filter(|_| self.0.contains(var)) else { return Ok(Action::Bind(value)) };
        let args = [Expr::external(APPEND), append.past, append.new, Expr::prim(append.axis)];
        let ty: Type = value.ty();
        Ok(Action::Bind(op::call_typed("call_pure_packed", args, Attrs::new(), vec![ty])?))
    }
}
