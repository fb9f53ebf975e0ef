//! RemoveUnusedParameters, RemoveUnusedOutputs: private functions take and return only what somebody uses.
//!
//! ```text
//! def f(a, b):                     def f(a):
//!     c = R.exp(a)            →        return R.exp(a)
//!     return (c, a)
//! gv = f(x, y)[0]                  gv = f(x)
//! ```
//!
//! Public functions, and those that are passed on as values, keep their signature. A parameter stays whose type alone says
//! a symbolic variable that the function uses, and a result stays that some caller uses, or that leaves a caller as a whole
//! tuple.

use std::collections::{BTreeSet, HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::pass::{PassInfo, PassResult};
use relaxide_ir::{GlobalVar, IRModule, Type, Var};

use super::private_calls::{callee, private_functions};
use super::{emit::map_functions, remove_unused};
use crate::analysis::free_symbols;
use crate::functor::used_vars;
use crate::rewrite::{Action, Rewrite, rewrite_module};
use crate::shape::{defined_vars, vars_of};
use crate::*;

pub(super) const PARAMETERS: PassInfo =
    PassInfo::new("RemoveUnusedParameters", "Private functions take only what they use.", |module, _, _| {
        parameters(module)
    });

pub(super) const OUTPUTS: PassInfo =
    PassInfo::new("RemoveUnusedOutputs", "Private functions return only what callers use.", |module, _, _| {
        outputs(module)
    });

pub(super) fn parameters(mut module: IRModule) -> PassResult {
    let mut kept: HashMap<String, (Vec<usize>, Ref<GlobalVar>)> = HashMap::new();
    for (name, func) in private_functions(&module) {
        let keep = needed(&func);
        if keep.len() == func.params.len() {
            continue;
        }
        let params = keep.iter().filter_map(|i| func.params.get(*i).cloned()).collect();
        let new = Ref::new(Function { params, ..Function::clone(&func) });
        kept.insert(name.clone(), (keep, GlobalVar::typed(name.clone(), new.ty())));
        module.insert(name, new);
    }
    if kept.is_empty() {
        return Ok(module);
    }
    let module = rewrite_module(PARAMETERS.name, module, &mut FewerArguments(&kept))?;
    map_functions(module, |_, func| Ok(remove_unused(func)))
}

/// The places of the parameters that a function needs.
fn needed(func: &Ref<Function>) -> Vec<usize> {
    let mut used: HashSet<AnyVar> = used_vars(&func.body.body).into_iter().collect();
    used.extend(func.body.blocks.iter().flat_map(|b| &b.bindings).flat_map(|b| used_vars(b.value())));
    let is_used = |p: &Ref<Var>| used.contains(&AnyVar::Var(p.clone()));
    let params: Vec<Ref<Var>> = func.params.iter().filter(|p| is_used(p)).cloned().collect();
    let without = Ref::new(Function { params, ..Function::clone(func) });
    let mut open: HashSet<Ref<Var>> = free_symbols(&without.clone().into()).into_iter().collect();
    let said = defined_vars(without.params.iter().map(|p| &p.ty));
    open.extend(vars_of([&func.ret_ty]).into_iter().filter(|s| !said.contains(s)));
    let mut keep = Vec::with_capacity(func.params.len());
    for (i, param) in func.params.iter().enumerate() {
        let says: Vec<_> = defined_vars([&param.ty]).into_iter().filter(|s| open.contains(s)).collect();
        // A scalar stands in expressions and shapes, too.
        if is_used(param) || open.remove(param) || !says.is_empty() {
            says.iter().for_each(|s| {
                open.remove(s);
            });
            keep.push(i);
        }
    }
    keep
}

struct FewerArguments<'a>(&'a HashMap<String, (Vec<usize>, Ref<GlobalVar>)>);

impl Rewrite for FewerArguments<'_> {
    fn value(&mut self, _: &mut BlockBuilder, _: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let Some((call, (keep, new))) = callee(&value).and_then(|(call, name)| Some((call, self.0.get(name)?))) else {
            return Ok(Action::Bind(value));
        };
        let args = keep.iter().filter_map(|i| call.args.get(*i).cloned()).collect();
        Ok(Action::Bind(Ref::new(call.rebuilt(new.clone().into(), args)).into()))
    }
}

fn outputs(mut module: IRModule) -> PassResult {
    let used = used_outputs(&module);
    let mut kept: HashMap<String, (Vec<usize>, Ref<GlobalVar>)> = HashMap::new();
    for (name, func) in private_functions(&module) {
        let (Type::Tuple(ty), Some(Some(used))) = (&func.ret_ty, used.get(&name)) else { continue };
        if used.is_empty() || used.len() == ty.fields.len() {
            continue;
        }
        let keep: Vec<usize> = used.iter().copied().collect();
        let Some(new) = with_outputs(&func, &keep) else { continue };
        kept.insert(name.clone(), (keep, GlobalVar::typed(name.clone(), new.ty())));
        module.insert(name, new);
    }
    if !kept.is_empty() {
        let mut fewer = FewerOutputs { kept: &kept, results: HashMap::new() };
        module = rewrite_module(OUTPUTS.name, module, &mut fewer)?;
    }
    let module = super::canonicalize::run(OUTPUTS.name, module)?;
    map_functions(module, |_, func| Ok(with_result_type(&remove_unused(func))))
}

/// The fields of each function's result that callers use; `None` where a whole result is used.
fn used_outputs(module: &IRModule) -> HashMap<String, Option<BTreeSet<usize>>> {
    #[derive(Default)]
    struct Uses {
        results: HashMap<AnyVar, String>,
        used: HashMap<String, Option<BTreeSet<usize>>>,
    }
    impl ExprVisitor for Uses {
        fn visit_binding(&mut self, binding: &Binding) {
            if let (Binding::Var(bound), Some((_, name))) = (binding, callee(binding.value())) {
                self.used.entry(name.to_string()).or_insert_with(|| Some(BTreeSet::new()));
                self.results.insert(bound.var.clone(), name.to_string());
            }
            self.visit_expr(binding.value());
        }

        fn visit_expr(&mut self, e: &Expr) {
            let whole = |uses: &mut Self, var: &AnyVar| {
                if let Some(name) = uses.results.get(var) {
                    uses.used.insert(name.clone(), None);
                }
            };
            match e {
                Expr::TupleGetItem(item) => {
                    let field = item.tuple.as_var().and_then(|v| self.results.get(&v));
                    let field = field.and_then(|name| self.used.get_mut(name)).and_then(Option::as_mut);
                    if let (Some(field), Ok(i)) = (field, usize::try_from(item.index)) {
                        field.insert(i);
                    }
                }
                _ => match e.as_var() {
                    Some(var) => whole(self, &var),
                    None => self.walk_expr(e),
                },
            }
        }
    }
    let mut uses = Uses::default();
    module.functions_of::<Function>().for_each(|(_, f)| uses.visit_seq(&f.body));
    uses.used
}

/// The function with these fields of its result only.
fn with_outputs(func: &Ref<Function>, keep: &[usize]) -> Option<Ref<Function>> {
    let mut blocks = func.body.blocks.clone();
    let bound = |v: &AnyVar| func.body.blocks.iter().flat_map(|b| &b.bindings).find(|b| b.var() == v);
    let tuple = match &func.body.body {
        Expr::Tuple(tuple) => Some(tuple.clone()),
        e => match e.as_var().and_then(|v| bound(&v).map(|b| b.value().clone())) {
            Some(Expr::Tuple(tuple)) => Some(tuple),
            _ => None,
        },
    };
    let visible = |e: &Expr| !matches!(e, Expr::DataflowVar(_));
    let mut fields = Vec::with_capacity(keep.len());
    for i in keep {
        let field = tuple.as_ref().and_then(|t| t.fields.get(*i).cloned());
        let in_last_block = func.body.blocks.last().is_some_and(|b| b.dataflow);
        let value = match field {
            Some(field) if visible(&field) => field,
            Some(field) if in_last_block => field,
            _ => Expr::field(func.body.body.clone(), *i),
        };
        if visible(&value) && !matches!(value, Expr::TupleGetItem(_)) {
            fields.push(value);
            continue;
        }
        let var = Var::new("gv", value.ty());
        let binding = Binding::from(Ref::new(VarBinding { var: var.clone().into(), value: value.clone() }));
        match blocks.last_mut() {
            Some(last) if last.dataflow || !visible(&value) => {
                let bindings = last.bindings.iter().cloned().chain([binding]).collect();
                *last = Ref::new(BindingBlock { bindings, dataflow: last.dataflow });
            }
            _ => blocks.push(Ref::new(BindingBlock { bindings: vec![binding], dataflow: false })),
        }
        fields.push(var.into());
    }
    let body = if let [one] = fields.as_slice() { one.clone() } else { Expr::tuple(fields) };
    let ret_ty = body.ty();
    let body = Ref::new(SeqExpr { blocks, body });
    let new = Ref::new(Function { body, ret_ty, ..Function::clone(func) });
    let mut b = BlockBuilder::new();
    super::canonicalize_function(&mut b, &new).ok().map(|f| remove_unused(&f))
}

struct FewerOutputs<'a> {
    kept: &'a HashMap<String, (Vec<usize>, Ref<GlobalVar>)>,
    /// The fields that a variable still holds.
    results: HashMap<AnyVar, (AnyVar, Vec<usize>)>,
}

impl Rewrite for FewerOutputs<'_> {
    fn retypes(&self) -> bool {
        false
    }

    fn value(&mut self, b: &mut BlockBuilder, var: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        if let Some((call, (keep, new))) = callee(&value).and_then(|(call, name)| Some((call, self.kept.get(name)?))) {
            let Type::Func(ty) = &new.ty else { return Ok(Action::Bind(value)) };
            let types: Vec<Type> = call.args.iter().map(Expr::ty).collect();
            let ty = crate::shape::call_type(ty, &types);
            let call = Call { ty: ty.clone(), ..call.rebuilt(new.clone().into(), call.args.clone()) };
            let own = b.fresh_var(var.name(), ty, matches!(var, AnyVar::Dataflow(_)));
            b.push_binding(Ref::new(VarBinding { var: own.clone(), value: Ref::new(call).into() }).into())?;
            self.results.insert(var.clone(), (own, keep.clone()));
            return Ok(Action::Drop);
        }
        if let Expr::TupleGetItem(item) = &value
            && let Some((own, keep)) = item.tuple.as_var().and_then(|v| self.results.get(&v))
            && let Some(at) = keep.iter().position(|k| i64::try_from(*k) == Ok(item.index))
        {
            let own = Expr::from(own.clone());
            return Ok(match keep.len() {
                // A variable that outlives its block cannot stand for one that does not, so it is bound.
                1 if matches!(var, AnyVar::Var(_)) => Action::Bind(own),
                1 => Action::Replace(own),
                _ => Action::Bind(Expr::field(own, at)),
            });
        }
        Ok(Action::Bind(value))
    }
}

/// A function that says of its result what its body knows.
fn with_result_type(func: &Ref<Function>) -> Ref<Function> {
    let known = func.body.body.ty();
    // A symbolic variable may be bound inside the body alone.
    match known != func.ret_ty && vars_of([&known]).is_empty() {
        true => Ref::new(Function { ret_ty: known, ..Function::clone(func) }),
        false => func.clone(),
    }
}
