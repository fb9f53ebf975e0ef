//! LazyTransformParams: functions that transform weights fetch one weight at a time, and hand over one result at a time.
//!
//! ```text
//! def f(params):                      def f():
//!     w = params[0]                       item = get_item(0)
//!     lv = R.permute_dims(w)      ->      cast = R.match_cast(item, …)
//!     out = (lv,)                         w = cast
//!     return out                          lv = R.permute_dims(w)
//!                                         R.vm.kill_object(w)
//!                                         set_item(0, lv)
//!                                         out = R.tuple()
//!                                         return out
//! ```
//!
//! It is for the functions that [`LiftTransformParams`](super::lift_transform_params) makes: their names end in
//! `transform_params`. The parameters behind the first `num_input` go: one tuple of weights, whose fields are fetched where
//! they are taken out, or weights, each of which is fetched in front of its first use. A result is handed over behind the last
//! use of it, and a weight is dropped there. Without a function that takes results they are returned as before.
//!
//! Further arguments of the two functions of the runtime are integers, texts, or variables, which become parameters. Shapes and
//! numbers among the weights stay parameters where the function has symbolic dimensions, which those may say.
//!
//! **Differs from TVM**: a function that returns its weights as they are, and one whose result is a tuple that nothing binds,
//! hand them over; TVM's take nothing and hand over nothing.
//!
//! **Gives** functions with effects; their blocks are no dataflow blocks any more.

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::pass::{ParamDefault, ParamKind, PassError, PassInfo, PassParam, PassResult};
use relaxide_ir::prim::PrimExpr;
use relaxide_ir::{AttrValue, Attrs, IRModule, Type, Var};

use super::emit::map_functions;
use super::lazy_params::{bind, call, outputs, plain_bindings, seq, with_effects};
use crate::analysis::num_inputs;
use crate::functor::{VarReplacer, used_vars};
use crate::shape::{defined_vars, erase_type};
use crate::*;

pub(super) const PASS: PassInfo = PassInfo::new(
    "LazyTransformParams",
    "Functions that transform weights fetch and hand over one weight at a time.",
    |module, _, args| transform(module, args),
)
.params(&[
    PassParam::new("fget_item", ParamKind::Str, ParamDefault::Str("get_item"), "The function that gives a weight."),
    PassParam::new(
        "fset_item",
        ParamKind::StrOrNone,
        ParamDefault::Str("set_item"),
        "The function that takes a result, or none.",
    ),
    PassParam::optional(
        "extra_get_item_params",
        ParamKind::List,
        "What fget_item gets in front: scalars, texts and variables.",
    ),
    PassParam::optional(
        "extra_set_item_params",
        ParamKind::List,
        "What fset_item gets in front: scalars, texts and variables.",
    ),
]);

fn transform(module: IRModule, args: &Attrs) -> PassResult {
    let accessor = |function: &str, extra: &str| match args.str(function) {
        Some(name) => Ok(Some(Accessor { name: name.to_string(), extra: further(args, extra)? })),
        None => Ok::<_, PassError>(None),
    };
    let get = accessor("fget_item", "extra_get_item_params")?;
    let Some(get) = get else { return Err(PassError::new(PASS.name, "fget_item must be given")) };
    let set = accessor("fset_item", "extra_set_item_params")?;
    map_functions(module, |function, func| match function.ends_with("transform_params") {
        true => Ok(lazy(func, &get, set.as_ref())),
        false => Ok(func.clone()),
    })
}

/// Further arguments of a function from outside.
fn further(args: &Attrs, name: &str) -> Result<Vec<Expr>, PassError> {
    let Some(AttrValue::List(items)) = args.get(name) else { return Ok(Vec::new()) };
    let refuse = |item: &AttrValue| {
        PassError::new(PASS.name, format!("{name} holds integers, texts and variables, not {item:?}"))
    };
    let item = |item: &AttrValue| match item {
        AttrValue::Int(v) => Ok(Expr::prim(*v)),
        AttrValue::Str(v) => Ok(Expr::string(v.clone())),
        AttrValue::Prim(PrimExpr::Var(v)) => Ok(Expr::Var(v.clone())),
        AttrValue::Object(object) => {
            object.downcast_ref::<Var>().map(|v| Expr::Var(v.clone())).ok_or_else(|| refuse(item))
        }
        other => Err(refuse(other)),
    };
    items.iter().map(item).collect()
}

/// A function from outside that reads or takes a weight.
struct Accessor {
    name: String,
    /// Its arguments in front of the weight's number.
    extra: Vec<Expr>,
}

impl Accessor {
    fn call(&self, args: Vec<Expr>) -> Expr {
        let args = self.extra.iter().cloned().chain(args).collect();
        call(Expr::external(&self.name), args, Type::any(), vec![Type::any()])
    }

    /// The variables among its arguments.
    fn params(&self) -> impl Iterator<Item = &Ref<Var>> {
        self.extra.iter().filter_map(|e| match e {
            Expr::Var(v) => Some(v),
            _ => None,
        })
    }
}

/// The bindings of a function while they are made.
struct Lazy<'a> {
    get: &'a Accessor,
    set: Option<&'a Accessor>,
    out: Vec<Binding>,
    /// Weights that have not been fetched, by their numbers; each is a parameter.
    open: Vec<(usize, Ref<Var>)>,
    /// Weights by name, which are dropped behind their last use.
    fetched: HashSet<AnyVar>,
    results: Vec<Expr>,
}

impl Lazy<'_> {
    /// The weight with a number, of a type.
    fn fetch(&mut self, index: i64, var: AnyVar) {
        let item = bind(&mut self.out, "item", Type::any(), self.get.call(vec![Expr::prim(index)]));
        let ty = var.ty().clone();
        self.out.push(Ref::new(MatchCast { var, value: item.into(), ty }).into());
    }

    /// Fetches the parameters that are read now for the first time.
    fn fetch_read(&mut self, used: &[AnyVar]) {
        let read = |(_, param): &(usize, Ref<Var>)| used.contains(&AnyVar::Var(param.clone()));
        let (now, later) = std::mem::take(&mut self.open).into_iter().partition(read);
        self.open = later;
        let now: Vec<(usize, Ref<Var>)> = now;
        for (index, param) in now {
            self.fetched.insert(AnyVar::Var(param.clone()));
            self.fetch(index as i64, AnyVar::Var(param));
        }
    }

    /// A weight that is taken out of the tuple of all.
    fn take(&mut self, index: i64, binding: &VarBinding) {
        let var = AnyVar::Var(Var::new("cast", binding.var.ty().clone()));
        self.fetch(index, var.clone());
        self.out.push(Ref::new(VarBinding { var: binding.var.clone(), value: var.into() }).into());
        self.fetched.insert(binding.var.clone());
    }

    /// What follows the last use of a variable: it is handed over as the results that it is, and dropped if it is a weight.
    fn end(&mut self, var: &AnyVar) {
        let Some(set) = self.set else { return };
        for (i, _) in self.results.iter().enumerate().filter(|(_, result)| result.as_var().as_ref() == Some(var)) {
            bind(&mut self.out, "_", Type::any(), set.call(vec![Expr::prim(i as i64), var.clone().into()]));
        }
        if self.fetched.contains(var) {
            let kill = call(op::Op::get("vm.kill_object"), vec![var.clone().into()], Type::void(), Vec::new());
            bind(&mut self.out, "_", Type::void(), kill);
        }
    }
}

fn lazy(func: &Ref<Function>, get: &Accessor, set: Option<&Accessor>) -> Ref<Function> {
    let given = num_inputs(func).unwrap_or(0).min(func.params.len());
    let (kept, weights) = func.params.split_at(given);
    let (mut bindings, mut body) = plain_bindings(func);
    let mut lazy = Lazy { get, set, out: Vec::new(), open: Vec::new(), fetched: HashSet::new(), results: Vec::new() };
    let tuple = match weights {
        [tuple] if matches!(tuple.ty, Type::Tuple(_)) => Some(tuple),
        _ => None,
    };
    match tuple {
        None => lazy.open = weights.iter().cloned().enumerate().collect(),
        Some(tuple) => fetch_whole(&mut lazy, tuple, &mut bindings, &mut body),
    }
    if set.is_some() {
        lazy.results = outputs(&body, &bindings, true);
    }
    // The tuple of all results is not made where they are handed over.
    let results =
        body.as_var().filter(|var| set.is_some() && !lazy.results.iter().any(|r| r.as_var().as_ref() == Some(var)));
    let ends = last_uses(&bindings, results.as_ref());
    let mut handed = HashSet::new();
    let mut result = if set.is_some() { Expr::tuple([]) } else { body.clone() };
    for (binding, ends) in bindings.iter().zip(ends) {
        if Some(binding.var()) == results.as_ref() {
            result = bind(&mut lazy.out, "results", Type::void(), Expr::tuple([])).into();
            continue;
        }
        lazy.fetch_read(&used_vars(binding.value()));
        match (binding, binding.value()) {
            (Binding::Var(bound), Expr::TupleGetItem(item)) if is_field_of(item, tuple) => lazy.take(item.index, bound),
            _ => lazy.out.push(binding.clone()),
        }
        for var in ends {
            lazy.end(&var);
            handed.insert(var);
        }
    }
    // What no binding reads or makes: weights that are returned as they are.
    lazy.fetch_read(&used_vars(&body));
    for var in used_vars(&Expr::tuple(lazy.results.clone())) {
        if handed.insert(var.clone()) {
            lazy.end(&var);
        }
    }
    if let Some(set) = set {
        for (i, constant) in lazy.results.iter().enumerate().filter(|(_, result)| result.as_var().is_none()) {
            bind(&mut lazy.out, "_", Type::any(), set.call(vec![Expr::prim(i as i64), constant.clone()]));
        }
    }
    let params = params(func, kept, weights, get, set);
    let said = defined_vars(params.iter().map(|p| &p.ty));
    let ret_ty = if set.is_some() { Type::void() } else { erase_type(&func.ret_ty, &|v| said.contains(v)) };
    let (body, attrs) = (seq(lazy.out, result), with_effects(&func.attrs));
    Ref::new(Function { params, body, ret_ty, pure: false, attrs, ..Function::clone(func) })
}

fn is_field_of(item: &TupleGetItem, tuple: Option<&Ref<Var>>) -> bool {
    matches!((&item.tuple, tuple), (Expr::Var(of), Some(tuple)) if of == tuple)
}

/// Where the tuple of weights itself is used, all are needed at once: they are fetched in front, and a tuple is made of them.
fn fetch_whole(lazy: &mut Lazy<'_>, tuple: &Ref<Var>, bindings: &mut [Binding], body: &mut Expr) {
    let is_field = |e: &Expr| matches!(e, Expr::TupleGetItem(item) if is_field_of(item, Some(tuple)));
    let uses = |e: &Expr| !is_field(e) && used_vars(e).contains(&AnyVar::Var(tuple.clone()));
    let Type::Tuple(ty) = &tuple.ty else { return };
    if !uses(body) && !bindings.iter().any(|binding| uses(binding.value())) {
        return;
    }
    let mut fields = Vec::with_capacity(ty.fields.len());
    for (i, ty) in ty.fields.iter().enumerate() {
        let var = AnyVar::Var(Var::new(format!("{}_{i}", tuple.name), ty.clone()));
        lazy.fetch(i as i64, var.clone());
        fields.push(Expr::from(var));
    }
    let mut replace = VarReplacer::default();
    replace.0.insert(AnyVar::Var(tuple.clone()), Expr::tuple(fields));
    for binding in bindings.iter_mut().filter(|binding| !is_field(binding.value())) {
        *binding = replace.remake_binding(binding);
    }
    *body = replace.mutate_expr(body);
}

/// For each binding the variables that are used last there, and the one that it binds if nothing uses that. What the binding of
/// all results uses does not count.
fn last_uses(bindings: &[Binding], results: Option<&AnyVar>) -> Vec<Vec<AnyVar>> {
    let mut seen = HashSet::new();
    let mut ends: Vec<Vec<AnyVar>> = Vec::with_capacity(bindings.len());
    for binding in bindings.iter().rev() {
        if Some(binding.var()) == results {
            ends.push(Vec::new());
            continue;
        }
        let used = used_vars(binding.value()).into_iter().chain([binding.var().clone()]);
        ends.push(used.filter(|var| seen.insert(var.clone())).collect());
    }
    ends.reverse();
    ends
}

/// The parameters that stay, those of the two functions, and, where dimensions are symbolic, what among the weights says some.
fn params(
    func: &Function,
    kept: &[Ref<Var>],
    weights: &[Ref<Var>],
    get: &Accessor,
    set: Option<&Accessor>,
) -> Vec<Ref<Var>> {
    fn open(ty: &Type) -> Vec<&Type> {
        match ty {
            Type::Tuple(tuple) => tuple.fields.iter().flat_map(open).collect(),
            other => vec![other],
        }
    }
    let mut params = kept.to_vec();
    for var in get.params().chain(set.iter().flat_map(|set| set.params())) {
        if !params.contains(var) {
            params.push(var.clone());
        }
    }
    if !defined_vars(func.params.iter().map(|p| &p.ty)).is_empty() {
        let says = |ty: &&Type| matches!(ty, Type::Prim(_) | Type::Shape(_));
        let holders = weights.iter().flat_map(|p| open(&p.ty)).filter(says);
        params.extend(holders.map(|ty| Var::new("symbolic_var_holder", ty.clone())));
    }
    params
}
