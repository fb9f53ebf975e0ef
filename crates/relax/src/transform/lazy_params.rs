//! LazyGetInput, LazySetOutput, LazyTransformParams: weights are fetched when they are needed and results handed over when
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
//! `LazyTransformParams` does both for the functions that [`LiftTransformParams`](super::lift_transform_params) makes
//! (their names end in `transform_params`), with functions of the runtime instead of parameters: item `i` comes from
//! `get_item(i)` and goes to `set_item(i, value)`, and is dropped behind its last use.
//!
//! **Refuses** a parameter whose dimensions follow from symbolic variables that only others say: those may come later. And
//! `LazyGetInput` and `LazySetOutput` refuse a public function that the module itself mentions: who calls it there has no
//! function to give it.
//!
//! **Differs from TVM**: what a nested function uses is fetched in front of it, once, not at each of its calls. What TVM's
//! LazyTransformParams gives drops weights in front of their use and returns what nothing binds; a function that returns its
//! weights as they are takes none of them there, and hands none over.
//!
//! **Gives** functions with effects; their blocks are no dataflow blocks any more. (TVM keeps them dataflow blocks, which
//! its own rules forbid.)

use std::collections::{HashMap, HashSet};

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::pass::{ParamDefault, ParamKind, PassError, PassInfo, PassParam, PassResult, Refusal};
use relaxide_ir::{AttrValue, Attrs, IRModule, Type, Var};

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

pub(super) const TRANSFORM: PassInfo = PassInfo::new(
    "LazyTransformParams",
    "Functions that transform weights fetch and hand over one weight at a time.",
    |module, _, args| transform(module, args),
)
.params(&[
    PassParam::new("fget_item", ParamKind::Str, ParamDefault::Str("get_item"), "The function that gives a weight."),
    PassParam::new("fset_item", ParamKind::Str, ParamDefault::Str("set_item"), "The function that takes a result."),
    PassParam::optional("extra_get_item_params", ParamKind::List, "Scalars and texts that fget_item gets in front."),
    PassParam::optional("extra_set_item_params", ParamKind::List, "Scalars and texts that fset_item gets in front."),
]);

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
fn plain_bindings(func: &Function) -> (Vec<Binding>, Expr) {
    let mut replace = VarReplacer::default();
    let mut out = Vec::new();
    for binding in func.body.blocks.iter().flat_map(|b| &b.bindings) {
        let new = replace.remake_binding(binding);
        let AnyVar::Dataflow(v) = new.var() else {
            out.push(new);
            continue;
        };
        let var = AnyVar::Var(Var::new(v.name.clone(), v.ty.clone()));
        replace.0.insert(new.var().clone(), var.clone().into());
        out.push(match &new {
            Binding::Var(b) => Ref::new(VarBinding { var, value: b.value.clone() }).into(),
            Binding::MatchCast(c) => Ref::new(MatchCast { var, value: c.value.clone(), ty: c.ty.clone() }).into(),
        });
    }
    let body = replace.mutate_expr(&func.body.body);
    (out, body)
}

fn seq(bindings: Vec<Binding>, body: Expr) -> Ref<SeqExpr> {
    let blocks =
        if bindings.is_empty() { Vec::new() } else { vec![Ref::new(BindingBlock { bindings, dataflow: false })] };
    Ref::new(SeqExpr { blocks, body })
}

fn bind(out: &mut Vec<Binding>, name: &str, ty: Type, value: Expr) -> Ref<Var> {
    let var = Var::new(name, ty);
    out.push(Ref::new(VarBinding { var: var.clone().into(), value }).into());
    var
}

fn call(callee: impl Into<Expr>, args: Vec<Expr>, ty: Type, ty_args: Vec<Type>) -> Expr {
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

/// What a function returns, field by field. A tuple that a variable holds is one result unless it is to be opened.
fn outputs(body: &Expr, bindings: &[Binding], open: bool) -> Vec<Expr> {
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
fn with_effects(attrs: &Attrs) -> Attrs {
    let mut attrs = attrs.clone();
    attrs.0.shift_remove("relax.force_pure");
    attrs
}

/// The bindings with a call behind each that gives a result; results that nothing binds come first.
fn hand_over_each(
    bindings: Vec<Binding>,
    body: &Expr,
    outputs: &[Expr],
    hand_over: &dyn Fn(usize, &Expr) -> Expr,
) -> Vec<Binding> {
    let bound: HashSet<AnyVar> = bindings.iter().map(|b| b.var().clone()).collect();
    let mut out = Vec::new();
    for (i, output) in outputs.iter().enumerate() {
        if output.as_var().is_none_or(|v| !bound.contains(&v)) {
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
    out
}

fn transform(module: IRModule, args: &Attrs) -> PassResult {
    let name = TRANSFORM.name;
    let get =
        Accessor { name: args.str("fget_item").unwrap_or("get_item"), extra: extra(args, "extra_get_item_params")? };
    let set =
        Accessor { name: args.str("fset_item").unwrap_or("set_item"), extra: extra(args, "extra_set_item_params")? };
    map_functions(module, |function, func| {
        if !function.ends_with("transform_params") {
            return Ok(func.clone());
        }
        let given = num_inputs(func).unwrap_or(0);
        match func.params.get(given..) {
            Some([weights]) if matches!(weights.ty, Type::Tuple(_)) => Ok(lazy(func, given, weights, &get, &set)),
            _ => Err(in_function(
                name,
                function,
                "it must take its weights as one tuple, as LiftTransformParams makes it",
            )),
        }
    })
}

fn extra(args: &Attrs, name: &str) -> Result<Vec<Expr>, PassError> {
    let Some(AttrValue::List(items)) = args.get(name) else { return Ok(Vec::new()) };
    let item = |item: &AttrValue| match item {
        AttrValue::Int(v) => Ok(Expr::prim(*v)),
        AttrValue::Str(v) => Ok(Expr::string(v.clone())),
        other => Err(PassError::new(TRANSFORM.name, format!("{name} holds integers and texts, not {other:?}"))),
    };
    items.iter().map(item).collect()
}

/// A function from outside that reads or takes a weight.
struct Accessor<'a> {
    name: &'a str,
    /// Its arguments in front of the weight's number.
    extra: Vec<Expr>,
}

impl Accessor<'_> {
    fn call(&self, args: Vec<Expr>) -> Expr {
        let args = self.extra.iter().cloned().chain(args).collect();
        call(Expr::external(self.name), args, Type::any(), vec![Type::any()])
    }
}

fn lazy(
    func: &Ref<Function>,
    given: usize,
    weights: &Ref<Var>,
    get: &Accessor<'_>,
    set: &Accessor<'_>,
) -> Ref<Function> {
    let (bindings, body) = plain_bindings(func);
    let mut fetched = Vec::new();
    let fetch = |out: &mut Vec<Binding>, index: i64, var: AnyVar| {
        let untyped = bind(out, "item", Type::any(), get.call(vec![Expr::prim(index)]));
        let ty = var.ty().clone();
        out.push(Ref::new(MatchCast { var, value: untyped.into(), ty }).into());
    };
    let whole = Expr::Var(weights.clone());
    let is_field = |e: &Expr| matches!(e, Expr::TupleGetItem(item) if item.tuple == whole);
    let uses_whole = |e: &Expr| !is_field(e) && used_vars(e).contains(&AnyVar::Var(weights.clone()));
    let mut replace = VarReplacer::default();
    if uses_whole(&body) || bindings.iter().any(|binding| uses_whole(binding.value())) {
        // Where the tuple itself is used, all weights are needed at once.
        let Type::Tuple(ty) = &weights.ty else { return func.clone() };
        let fields = ty.fields.iter().enumerate().map(|(i, ty)| {
            let var = Var::new(format!("{}_{i}", weights.name), ty.clone());
            fetch(&mut fetched, i as i64, var.clone().into());
            Expr::Var(var)
        });
        let fields: Vec<Expr> = fields.collect();
        replace.0.insert(AnyVar::Var(weights.clone()), Expr::tuple(fields));
    }
    for binding in bindings {
        match (&binding, binding.value()) {
            (Binding::Var(bound), Expr::TupleGetItem(item)) if item.tuple == whole => {
                fetch(&mut fetched, item.index, bound.var.clone());
            }
            _ => fetched.push(replace.remake_binding(&binding)),
        }
    }
    let body = replace.mutate_expr(&body);
    let hand_over = |i: usize, value: &Expr| set.call(vec![Expr::prim(i as i64), value.clone()]);
    let outputs = outputs(&body, &fetched, true);
    let handed = hand_over_each(fetched, &body, &outputs, &hand_over);
    let params = func.params.iter().take(given).cloned().collect();
    let body = seq(drop_behind_last_use(handed), Expr::tuple([]));
    let attrs = with_effects(&func.attrs);
    Ref::new(Function { params, body, ret_ty: Type::void(), pure: false, attrs, ..Function::clone(func) })
}

/// Drops each tensor behind the last binding that uses it.
fn drop_behind_last_use(bindings: Vec<Binding>) -> Vec<Binding> {
    let tensors: HashSet<AnyVar> =
        bindings.iter().map(|b| b.var()).filter(|v| v.ty().as_tensor().is_some()).cloned().collect();
    let mut last: HashMap<AnyVar, usize> = HashMap::new();
    for (i, binding) in bindings.iter().enumerate() {
        for var in used_vars(binding.value()).into_iter().filter(|v| tensors.contains(v)) {
            last.insert(var, i);
        }
    }
    let mut out = Vec::new();
    for (i, binding) in bindings.iter().enumerate() {
        out.push(binding.clone());
        let mut gone: Vec<AnyVar> = Vec::new();
        for var in used_vars(binding.value()) {
            if last.get(&var) == Some(&i) && !gone.contains(&var) {
                gone.push(var);
            }
        }
        for var in gone {
            let kill = call(op::Op::get("vm.kill_object"), vec![var.into()], Type::void(), Vec::new());
            bind(&mut out, "_", Type::void(), kill);
        }
    }
    out
}
