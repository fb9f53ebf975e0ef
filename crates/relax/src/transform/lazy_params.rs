//! LazyGetInput, LazySetOutput: weights are fetched when they are needed and results handed over when
//! they are there, so that not all of them need be in memory at once.
//!
//! ```text
//! def f(w):                       def f(fget_param):                                     def f(w, fset_output):
//!     lv = R.permute_dims(w)          w = R.match_cast(fget_param(0, R.str("w")), …)         lv = R.permute_dims(w)
//!     return (lv,)                    lv = R.permute_dims(w)                                 fset_output(0, lv)
//!                                     return (lv,)                                           return ()
//! ```
//!
//! `LazyGetInput` takes a function's parameters behind the first `num_input`; `LazySetOutput` its results. Both add a
//! function as parameter behind the first `num_input` and count it as one of those; where a function does not say how many
//! inputs it has, `LazyGetInput` takes all parameters, and `LazySetOutput` adds its own at the end.
//!
//! [`LazyTransformParams`](super::lazy_transform_params) does both for functions that transform weights.
//!
//! **Refuses** a parameter whose dimensions follow from symbolic variables that only others say: those may come later. And
//! `LazyGetInput` and `LazySetOutput` refuse a public function that the module itself mentions: who calls it there has no
//! function to give it.
//!
//! **Differs from TVM**: what a nested function uses is fetched in front of it, once, not at each of its calls.
//!
//! **Gives** functions with effects; their blocks are no dataflow blocks any more. (TVM keeps them dataflow blocks, which
//! its own rules forbid.)

use std::collections::{HashMap, HashSet};

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::pass::{PassInfo, PassResult, Refusal};
use relaxide_ir::{Attrs, IRModule, Type, Var};

use super::emit::map_functions;
use crate::analysis::compile_time::NUM_INPUT_ATTR;
use crate::analysis::{call_graph, num_inputs};
use crate::functor::{VarReplacer, used_vars};
use crate::rewrite::in_function;
use crate::shape::{defined_vars, erase_type, vars_of};
use crate::*;

pub(super) const GET_INPUT: PassInfo =
    PassInfo::new("LazyGetInput", "Parameters are fetched when they are needed.", |module, _, _| {
        map_public("LazyGetInput", module, get_inputs)
    });

pub(super) const SET_OUTPUT: PassInfo =
    PassInfo::new("LazySetOutput", "Results are handed over when they are there.", |module, _, _| {
        map_public("LazySetOutput", module, |func| Ok(set_outputs(func)))
    });

/// Why parameters cannot be fetched later.
#[derive(Debug, thiserror::Error)]
enum NotLazy {
    #[error("input `{0}` has symbolic dimensions that only parameters say which are to be fetched later")]
    Input(String),
    #[error("parameter `{0}` has dimensions that follow from symbolic variables of others, which may be fetched later")]
    Parameter(String),
}

/// Gives every public function, none of which the module mentions, other parameters.
fn map_public(
    pass: &str,
    module: IRModule,
    change: impl Fn(&Ref<Function>) -> Result<Ref<Function>, NotLazy>,
) -> PassResult {
    let calls = call_graph(&module);
    let callers: HashMap<String, String> = module
        .functions_of::<Function>()
        .flat_map(|(caller, _)| calls.callees(caller).iter().map(move |callee| (callee.clone(), caller.to_string())))
        .collect();
    map_functions(module, |name, func| {
        if !is_public(func) {
            return Ok(func.clone());
        }
        if let Some(caller) = callers.get(name) {
            let why = Refusal::from(format!("`{caller}` calls it, and has no function to give it"));
            return Err(in_function(pass, name, why.help("make it private, or inline it first")));
        }
        change(func).map_err(|why| in_function(pass, name, why.to_string()))
    })
}

fn is_public(func: &Function) -> bool {
    func.attrs.get("global_symbol").is_some()
}

fn with_one_more_input(func: &Function) -> Attrs {
    let inputs = num_inputs(func).unwrap_or(0) as i64;
    func.attrs.clone().with(NUM_INPUT_ATTR, inputs + 1)
}

/// The bindings of a body, in one block without the promise that nothing has effects.
pub(super) fn plain_bindings(func: &Function) -> (Vec<Binding>, Expr) {
    let mut replace = VarReplacer::default();
    let mut out = Vec::new();
    for binding in func.body.blocks.iter().flat_map(|b| &b.bindings) {
        let new = replace.remake_binding(binding);
        if matches!(new.var(), AnyVar::Var(_)) {
            out.push(new);
            continue;
        }
        let var = new.var().to_outer();
        replace.0.insert(new.var().clone(), var.clone().into());
        out.push(match &new {
            Binding::Var(b) => Ref::new(VarBinding { var, value: b.value.clone() }).into(),
            Binding::MatchCast(c) => Ref::new(MatchCast { var, value: c.value.clone(), ty: c.ty.clone() }).into(),
        });
    }
    let body = replace.mutate_expr(&func.body.body);
    (out, body)
}

pub(super) fn seq(bindings: Vec<Binding>, body: Expr) -> Ref<SeqExpr> {
    let blocks =
        if bindings.is_empty() { Vec::new() } else { vec![Ref::new(BindingBlock { bindings, dataflow: false })] };
    Ref::new(SeqExpr { blocks, body })
}

pub(super) fn bind(out: &mut Vec<Binding>, name: &str, ty: Type, value: Expr) -> Ref<Var> {
    let var = Var::new(name, ty);
    out.push(Ref::new(VarBinding { var: var.clone().into(), value }).into());
    var
}

pub(super) fn call(callee: impl Into<Expr>, args: Vec<Expr>, ty: Type, ty_args: Vec<Type>) -> Expr {
    Ref::new(Call { op: callee.into(), args, attrs: Attrs::new(), ty_args, ty, span: None }).into()
}

fn int64() -> Type {
    Type::prim(DataType::int(64))
}

fn get_inputs(func: &Ref<Function>) -> Result<Ref<Function>, NotLazy> {
    let inputs = num_inputs(func).unwrap_or(0);
    let Some((given, lazy)) = func.params.split_at_checked(inputs) else { return Ok(func.clone()) };
    let said = defined_vars(given.iter().map(|p| &p.ty));
    let open = |p: &&Ref<Var>| vars_of([&p.ty]).iter().any(|s| !said.contains(s));
    if let Some(param) = given.iter().find(open) {
        return Err(NotLazy::Input(param.name.clone()));
    }
    let derived = |p: &&Ref<Var>| {
        let own = defined_vars([&p.ty]);
        vars_of([&p.ty]).iter().any(|s| !said.contains(s) && !own.contains(s))
    };
    if let Some(param) = lazy.iter().find(derived) {
        return Err(NotLazy::Parameter(param.name.clone()));
    }
    let ret_ty = erase_type(&func.ret_ty, &|s| said.contains(s));
    let fget = Var::new("fget_param", Type::func([int64(), Type::any()], Type::any(), true));
    let (bindings, body) = plain_bindings(func);
    let mut open: Vec<(usize, &Ref<Var>)> = lazy.iter().enumerate().collect();
    let mut out = Vec::new();
    let mut fetch = |out: &mut Vec<Binding>, used: &[AnyVar]| {
        open.retain(|(i, param)| {
            if !used.contains(&AnyVar::Var((*param).clone())) {
                return true;
            }
            let args = vec![Expr::prim(*i as i64), Expr::string(param.name.clone())];
            let untyped = call(fget.clone(), args, Type::any(), Vec::new());
            let untyped = bind(out, &format!("{}_untyped", param.name), Type::any(), untyped);
            let var = AnyVar::Var((*param).clone());
            out.push(Ref::new(MatchCast { var, value: untyped.into(), ty: param.ty.clone() }).into());
            false
        });
    };
    for binding in bindings {
        fetch(&mut out, &used_vars(binding.value()));
        out.push(binding);
    }
    fetch(&mut out, &used_vars(&body));
    let params = given.iter().cloned().chain([fget]).collect();
    let attrs = with_one_more_input(func);
    Ok(Ref::new(Function { params, body: seq(out, body), ret_ty, attrs, ..Function::clone(func) }))
}

/// What a function returns, field by field. A tuple that a variable holds is one result unless it is to be unpacked.
pub(super) fn outputs(body: &Expr, bindings: &[Binding], open: bool) -> Vec<Expr> {
    let bound = |var: &AnyVar| bindings.iter().find(|b| open && b.var() == var).map(|b| b.value().clone());
    match body {
        Expr::Tuple(tuple) => tuple.fields.clone(),
        _ => match body.as_var().and_then(|v| bound(&v)) {
            Some(Expr::Tuple(tuple)) => tuple.fields.clone(),
            _ => vec![body.clone()],
        },
    }
}

fn set_outputs(func: &Ref<Function>) -> Ref<Function> {
    let inputs = num_inputs(func).unwrap_or(func.params.len()).min(func.params.len());
    let fset = Var::new("fset_output", Type::func([int64(), Type::any()], Type::void(), false));
    let (bindings, body) = plain_bindings(func);
    let hand_over = |i: usize, value: &Expr| {
        call(fset.clone(), vec![Expr::prim(i as i64), value.clone()], Type::void(), Vec::new())
    };
    let outputs = outputs(&body, &bindings, false);
    let out = hand_over_each(bindings, &body, &outputs, &hand_over);
    let mut params = func.params.clone();
    params.insert(inputs, fset.clone());
    let attrs = if num_inputs(func).is_some() { with_one_more_input(func) } else { func.attrs.clone() };
    let body = seq(out, Expr::tuple([]));
    let attrs = with_effects(&attrs);
    Ref::new(Function { params, body, ret_ty: Type::void(), pure: false, attrs, ..Function::clone(func) })
}

/// The attributes of a function that hands its results over: it no longer promises to be pure.
pub(super) fn with_effects(attrs: &Attrs) -> Attrs {
    let mut attrs = attrs.clone();
    attrs.0.shift_remove("relax.force_pure");
    attrs
}

/// The bindings with a call behind each that gives a result; results that are parameters come first, and constants last.
fn hand_over_each(
    bindings: Vec<Binding>,
    body: &Expr,
    outputs: &[Expr],
    hand_over: &dyn Fn(usize, &Expr) -> Expr,
) -> Vec<Binding> {
    let bound: HashSet<AnyVar> = bindings.iter().map(|b| b.var().clone()).collect();
    let mut out = Vec::new();
    for (i, output) in outputs.iter().enumerate() {
        if output.as_var().is_some_and(|v| !bound.contains(&v)) {
            bind(&mut out, "_", Type::void(), hand_over(i, output));
        }
    }
    // A tuple that is only the result is not made.
    let result = body.as_var().filter(|_| outputs.first() != Some(body));
    let used_elsewhere = |var: &AnyVar| bindings.iter().any(|b| used_vars(b.value()).contains(var));
    let dropped = result.filter(|var| !used_elsewhere(var));
    for binding in bindings.iter().filter(|b| Some(b.var()) != dropped.as_ref()) {
        out.push(binding.clone());
        for (i, output) in outputs.iter().enumerate() {
            if output.as_var().as_ref() == Some(binding.var()) {
                bind(&mut out, "_", Type::void(), hand_over(i, output));
            }
        }
    }
    for (i, output) in outputs.iter().enumerate().filter(|(_, output)| output.as_var().is_none()) {
        bind(&mut out, "_", Type::void(), hand_over(i, output));
    }
    out
}
