//! Rebuilding functions binding by binding.
//!
//! A pass that changes values implements [`Rewrite`]: it is handed each value with earlier replacements already in place,
//! may emit further bindings in front, and returns what the variable is bound to. Variables whose type did not change stay
//! the same nodes, so what a pass does not touch is shared.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::pass::{PassError, PassResult, Refusal};
use relaxide_ir::{IRModule, Type};

use crate::builder::infer;
use crate::functor::bound_names;
use crate::shape::same_type;
use crate::*;

/// What replaces each variable.
pub type ExprMap = HashMap<AnyVar, Expr>;

/// What becomes of a binding.
pub enum Action {
    /// The variable is bound to this value.
    Bind(Expr),
    /// The variable is replaced by this operand everywhere.
    Replace(Expr),
    /// The binding is dropped; nothing may use the variable.
    Drop,
}

/// A pass over values.
pub trait Rewrite {
    /// Decides on one binding. `value` has earlier replacements in place.
    fn value(&mut self, b: &mut BlockBuilder, var: &AnyVar, value: Expr) -> Result<Action, BuildError>;

    /// Decides on a `match_cast`; the default keeps it.
    fn cast(&mut self, b: &mut BlockBuilder, cast: Ref<MatchCast>) -> Result<(), BuildError> {
        b.push_binding(cast.into())
    }

    /// Whether values are typed anew once replacements are in place. Where they are not, `value` gets calls of the old type,
    /// and answers for the types of what it gives.
    fn retypes(&self) -> bool {
        true
    }

    /// Told when a block begins: what its dataflow variables held is no longer visible.
    fn begin_block(&mut self, _dataflow: bool) {}

    /// Whether a block that was a dataflow block stays one.
    fn keep_dataflow(&self) -> bool {
        true
    }

    /// Rewrites the result of a sequence; the default keeps it.
    fn result(&mut self, _b: &mut BlockBuilder, result: Expr) -> Result<Expr, BuildError> {
        Ok(result)
    }
}

/// Rewrites every Relax function of a module.
pub fn rewrite_module(pass: &str, module: IRModule, rewrite: &mut dyn Rewrite) -> PassResult {
    let mut b = BlockBuilder::with_module(module);
    let functions: Vec<_> = b.module().functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    for (name, func) in functions {
        let new = rewrite_function(&mut b, &func, rewrite).map_err(|e| in_function(pass, &name, e))?;
        if new != func {
            b.module_mut().insert(name, new);
        }
    }
    Ok(b.finish())
}

/// Rewrites one Relax function of a module, or every one where no name is said.
pub fn rewrite_named(pass: &str, module: IRModule, name: Option<&str>, rewrite: &mut dyn Rewrite) -> PassResult {
    let Some(name) = name else { return rewrite_module(pass, module, rewrite) };
    let Some(func) = module.get_as::<Function>(name) else {
        return Err(PassError::arguments(pass, format!("the module has no Relax function {name:?}")));
    };
    let mut b = BlockBuilder::with_module(module);
    let new = rewrite_function(&mut b, &func, rewrite).map_err(|e| in_function(pass, name, e))?;
    b.module_mut().insert(name, new);
    Ok(b.finish())
}

/// An error of a pass in a function.
pub fn in_function(pass: &str, function: &str, error: impl Into<Refusal>) -> PassError {
    PassError::new(pass, error.into().within(&format!("in function `{function}`")))
}

/// Rewrites one function.
pub fn rewrite_function(
    b: &mut BlockBuilder,
    func: &Ref<Function>,
    rewrite: &mut dyn Rewrite,
) -> Result<Ref<Function>, BuildError> {
    let mut map = ExprMap::new();
    rewrite_nested(b, func, rewrite, &mut map)
}

fn rewrite_nested(
    b: &mut BlockBuilder,
    func: &Ref<Function>,
    rewrite: &mut dyn Rewrite,
    map: &mut ExprMap,
) -> Result<Ref<Function>, BuildError> {
    let names: Vec<String> = bound_names(&func.body);
    func.params.iter().for_each(|p| b.reserve(&p.name));
    names.iter().for_each(|n| b.reserve(n));
    let body = rewrite_seq(b, &func.body, rewrite, map)?;
    if body == func.body {
        return Ok(func.clone());
    }
    Ok(Ref::new(Function { body, ..(**func).clone() }))
}

/// Rewrites a sequence in a scope of its own.
pub fn rewrite_seq(
    b: &mut BlockBuilder,
    seq: &Ref<SeqExpr>,
    rewrite: &mut dyn Rewrite,
    map: &mut ExprMap,
) -> Result<Ref<SeqExpr>, BuildError> {
    b.begin_scope();
    let result = rewrite_blocks(b, seq, rewrite, map);
    let body = match &result {
        Ok(body) => body.clone(),
        Err(_) => seq.body.clone(),
    };
    let new = b.end_scope(body)?;
    result?;
    Ok(if unchanged(&new, seq) { seq.clone() } else { new })
}

fn rewrite_blocks(
    b: &mut BlockBuilder,
    seq: &Ref<SeqExpr>,
    rewrite: &mut dyn Rewrite,
    map: &mut ExprMap,
) -> Result<Expr, BuildError> {
    for block in &seq.blocks {
        if block.dataflow && rewrite.keep_dataflow() {
            b.begin_dataflow()?;
        }
        rewrite.begin_block(block.dataflow);
        for binding in &block.bindings {
            rewrite_binding(b, binding, rewrite, map).map_err(|error| error.at(binding.var()))?;
        }
        b.end_dataflow()?;
    }
    let result = replace(&seq.body, map)?;
    let result = rewrite.result(b, result)?;
    b.normalize_arg(result)
}

fn rewrite_binding(
    b: &mut BlockBuilder,
    binding: &Binding,
    rewrite: &mut dyn Rewrite,
    map: &mut ExprMap,
) -> Result<(), BuildError> {
    let value = match binding.value() {
        Expr::If(choice) => {
            let condition = replace(&choice.condition, map)?;
            let true_branch = rewrite_seq(b, &choice.true_branch, rewrite, map)?;
            let false_branch = rewrite_seq(b, &choice.false_branch, rewrite, map)?;
            if condition == choice.condition && true_branch == choice.true_branch && false_branch == choice.false_branch
            {
                choice.clone().into()
            } else {
                Ref::new(If { condition, true_branch, false_branch, ty: choice.ty.clone() }).into()
            }
        }
        Expr::Function(func) => rewrite_nested(b, func, rewrite, map)?.into(),
        other if rewrite.retypes() => replace(other, map)?,
        other => Replace(map).mutate_expr(other),
    };
    let bound = match binding {
        Binding::MatchCast(cast) => {
            let cast = if value == cast.value {
                cast.clone()
            } else {
                Ref::new(MatchCast { var: cast.var.clone(), value, ty: cast.ty.clone() })
            };
            let outer = b.set_origin(cast.var.span().cloned());
            let done = rewrite.cast(b, cast);
            b.set_origin(outer);
            return done;
        }
        Binding::Var(bound) => bound,
    };
    let outer = b.set_origin(bound.var.span().cloned());
    let action = rewrite.value(b, &bound.var, value);
    b.set_origin(outer);
    match action? {
        Action::Drop => Ok(()),
        Action::Replace(operand) => {
            let operand = b.normalize_arg(operand)?;
            map.insert(bound.var.clone(), operand);
            Ok(())
        }
        Action::Bind(value) => bind(b, bound, value, map),
    }
}

/// Binds a value to the old variable where the type allows it, else to a fresh one of the same name and kind.
fn bind(b: &mut BlockBuilder, old: &Ref<VarBinding>, value: Expr, map: &mut ExprMap) -> Result<(), BuildError> {
    let value = b.normalize(value)?;
    if value == old.value {
        return b.push_binding(old.clone().into());
    }
    let ty = value.ty();
    let keep = same_type(&ty, old.var.ty()) || matches!(ty, Type::Any(_) | Type::Missing(_));
    if keep {
        return b.push_binding(Ref::new(VarBinding { var: old.var.clone(), value }).into());
    }
    let var = old.var.with_type(ty);
    map.insert(old.var.clone(), var.clone().into());
    b.push_binding(Ref::new(VarBinding { var, value }).into())
}

/// Whether a rebuilt sequence holds the same bindings.
fn unchanged(a: &SeqExpr, b: &SeqExpr) -> bool {
    a.body == b.body
        && a.blocks.len() == b.blocks.len()
        && a.blocks.iter().zip(&b.blocks).all(|(x, y)| x.dataflow == y.dataflow && x.bindings == y.bindings)
}

/// Puts replacements in the place of variables, and leaves types as they are.
struct Replace<'a>(&'a ExprMap);

impl ExprMutator for Replace<'_> {
    fn mutate_expr(&mut self, e: &Expr) -> Expr {
        match e.as_var() {
            Some(var) => self.0.get(&var).unwrap_or(e).clone(),
            None => self.remake_expr(e),
        }
    }
}

/// Puts replacements in the place of variables in a value. Calls of operators are typed anew. Nested functions and
/// branches are left as they are.
pub fn replace(expr: &Expr, map: &ExprMap) -> Result<Expr, BuildError> {
    if map.is_empty() {
        return Ok(expr.clone());
    }
    let all = |list: &[Expr]| list.iter().map(|e| replace(e, map)).collect::<Result<Vec<_>, _>>();
    Ok(match expr {
        Expr::Var(_) | Expr::DataflowVar(_) => match expr.as_var().and_then(|v| map.get(&v)) {
            Some(new) => new.clone(),
            None => expr.clone(),
        },
        Expr::Tuple(tuple) => {
            let fields = all(&tuple.fields)?;
            if fields == tuple.fields { expr.clone() } else { Expr::tuple(fields) }
        }
        Expr::TupleGetItem(item) => match replace(&item.tuple, map)? {
            tuple if tuple == item.tuple => expr.clone(),
            Expr::Tuple(tuple) => match usize::try_from(item.index).ok().and_then(|i| tuple.fields.get(i)) {
                Some(field) => field.clone(),
                None => return Err(BuildError::Program(format!("a tuple has no field {}", item.index))),
            },
            tuple => Ref::new(TupleGetItem { tuple, index: item.index }).into(),
        },
        Expr::Call(call) => {
            let callee = replace(&call.op, map)?;
            let args = all(&call.args)?;
            if callee == call.op && args == call.args {
                return Ok(expr.clone());
            }
            let new = Call {
                op: callee,
                args,
                attrs: call.attrs.clone(),
                ty_args: call.ty_args.clone(),
                ty: call.ty.clone(),
                span: call.span.clone(),
            };
            let ty = match infer(&new)? {
                Type::Any(_) | Type::Missing(_) => call.ty.clone(),
                ty => ty,
            };
            Ref::new(Call { ty, ..new }).into()
        }
        other => other.clone(),
    })
}
