//! Small passes over expressions: constants, equal calls, names, inlining, dead values.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use relaxide_ffi::{AnyView, Error, FreeVars, Ref, Tensor, structural_equal, structural_hash};
use relaxide_ir::Attrs;

use super::table::TransformError;
use crate::rewrite::{rewrite, rewrite_bindings};
use crate::*;

fn address(var: &Ref<Var>) -> usize {
    Ref::as_ptr(var).addr()
}

/// A module with each function's body rebuilt.
fn bodies(module: &Module, mut change: impl FnMut(&Expr) -> Expr) -> Module {
    let mut out = module.clone();
    for function in out.functions.values_mut() {
        let body = change(&function.body);
        if !body.ptr_eq(&function.body) {
            *function = function.with_body(body);
        }
    }
    out
}

/// Whether evaluating a value has no visible effect and ends: operators, data, functions, and what is made of them.
pub(crate) fn is_pure(expr: &Expr) -> bool {
    let mut pure = true;
    let (mut work, mut seen) = (vec![expr], HashSet::new());
    while let Some(expr) = work.pop() {
        if !seen.insert(expr.address()) {
            continue;
        }
        match expr {
            // Making a function calls nothing.
            Expr::Function(_) => continue,
            Expr::Call(c) => {
                pure &= matches!(&c.op, Expr::Op(op) if op.name != "debug") || matches!(c.op, Expr::Constructor(_))
            }
            Expr::RefCreate(_) | Expr::RefRead(_) | Expr::RefWrite(_) => pure = false,
            // A `match?` may end the program.
            Expr::Match(m) => pure &= m.complete,
            _ => {}
        }
        work.extend(expr.children());
    }
    pure
}

/// ToGraphNormalForm: a name of a computation without effects becomes the computation, shared where the name was used.
pub fn to_graph_normal_form(module: &Module) -> Module {
    bodies(module, |body| {
        let values: RefCell<HashMap<usize, Expr>> = RefCell::default();
        let mut placed = |new: &Expr, _: &Expr| match new {
            Expr::Var(v) => values.borrow().get(&address(v)).cloned(),
            Expr::Let(l) if values.borrow().contains_key(&address(&l.var)) => Some(l.body.clone()),
            _ => None,
        };
        rewrite_bindings(body, &mut placed, &mut |l, value| {
            // As it was written: what its names stand for has no effects either.
            if is_pure(&l.value) && !matches!(l.value, Expr::Function(_)) {
                values.borrow_mut().insert(address(&l.var), value.clone());
            }
        })
    })
}

/// An expression with another in the place of a variable.
pub(crate) fn substitute(expr: &Expr, var: &Ref<Var>, value: &Expr) -> Expr {
    rewrite(expr, &mut |new, _| match new {
        Expr::Var(v) if Ref::ptr_eq(v, var) => Some(value.clone()),
        _ => None,
    })
}

/// DeadCodeElimination: bindings without effects that nothing uses, or only what goes with them.
pub fn dead_code_elimination(module: &Module) -> Module {
    bodies(module, |body| {
        let dead = unused_bindings(body);
        rewrite(body, &mut |new, _| match new {
            Expr::Let(l) if dead.contains(&address(&l.var)) => Some(l.body.clone()),
            _ => None,
        })
    })
}

/// The variables of bindings without effects that nothing needs. The value of such a binding is looked into once its variable
/// was met, so that what only unused values need is not met either.
fn unused_bindings(body: &Expr) -> HashSet<usize> {
    let (mut met, mut seen, mut work) = (HashSet::new(), HashSet::new(), vec![body]);
    let mut waiting: HashMap<usize, Vec<&Expr>> = HashMap::new();
    while let Some(expr) = work.pop() {
        if let Expr::Var(v) = expr {
            if met.insert(address(v)) {
                work.extend(waiting.remove(&address(v)).into_iter().flatten());
            }
            continue;
        }
        if !seen.insert(expr.address()) {
            continue;
        }
        match expr {
            Expr::Let(l) if is_pure(&l.value) && !met.contains(&address(&l.var)) => {
                waiting.entry(address(&l.var)).or_default().push(&l.value);
                work.push(&l.body);
            }
            _ => work.extend(expr.children()),
        }
    }
    waiting.into_keys().collect()
}

/// Inline: calls of functions that are marked, which do not call themselves.
pub fn inline(module: &Module) -> Module {
    let marked = |name: &str| {
        let function = module.functions.get(name)?;
        let recursive = visit::globals(&function.body).iter().any(|callee| callee == name);
        (function.attrs.int("Inline") == Some(1) && !recursive).then(|| function.clone())
    };
    bodies(module, |body| {
        rewrite(body, &mut |new, _| {
            let Expr::Call(call) = new else { return None };
            let Expr::Global(g) = &call.op else { return None };
            let function = marked(&g.name)?;
            if function.params.len() != call.args.len() {
                return None;
            }
            // Each place gets variables of its own.
            let Expr::Function(fresh) = renamed(&Expr::Function(function)) else { return None };
            let bound = fresh.params.iter().zip(&call.args).rev();
            Some(bound.fold(fresh.body.clone(), |body, (param, arg)| Expr::bind(param.clone(), arg.clone(), body)))
        })
    })
}

/// An expression whose bound variables are new.
pub(crate) fn renamed(expr: &Expr) -> Expr {
    let mut names: HashMap<usize, Ref<Var>> = HashMap::new();
    let mut fresh = |var: &Ref<Var>| {
        let new = Ref::new(Var {
            name: var.name.clone(),
            annotation: var.annotation.clone(),
            device: var.device.clone(),
            span: var.span.clone(),
        });
        names.entry(address(var)).or_insert(new).clone()
    };
    visit::each(expr, |expr| match expr {
        Expr::Let(l) => drop(fresh(&l.var)),
        Expr::Function(f) => f.params.iter().for_each(|p| drop(fresh(p))),
        Expr::Match(m) => m.clauses.iter().flat_map(|c| c.pattern.vars()).for_each(|v| drop(fresh(&v))),
        _ => {}
    });
    let new_name = |var: &Ref<Var>| names.get(&address(var)).cloned().unwrap_or_else(|| var.clone());
    rewrite(expr, &mut |new, _| match new {
        Expr::Var(v) => names.get(&address(v)).map(|v| v.clone().into()),
        Expr::Let(l) => Some(Expr::bind(new_name(&l.var), l.value.clone(), l.body.clone())),
        Expr::Function(f) => {
            let params = f.params.iter().map(new_name).collect();
            let (type_params, body, ret_type) = (f.type_params.clone(), f.body.clone(), f.ret_type.clone());
            let (attrs, span) = (f.attrs.clone(), f.span.clone());
            Some(Ref::new(Function { type_params, params, body, ret_type, attrs, span }).into())
        }
        Expr::Match(m) => {
            let clause = |c: &Ref<Clause>| {
                Ref::new(Clause { pattern: renamed_pattern(&c.pattern, &new_name), body: c.body.clone() })
            };
            let (data, clauses) = (m.data.clone(), m.clauses.iter().map(clause).collect());
            Some(Ref::new(Match { data, clauses, complete: m.complete, span: m.span.clone() }).into())
        }
        _ => None,
    })
}

fn renamed_pattern(pattern: &Pattern, new_name: &dyn Fn(&Ref<Var>) -> Ref<Var>) -> Pattern {
    let all = |list: &[Pattern]| list.iter().map(|p| renamed_pattern(p, new_name)).collect();
    match pattern {
        Pattern::Wildcard(_) => pattern.clone(),
        Pattern::Var(p) => Pattern::var(new_name(&p.var)),
        Pattern::Constructor(p) => {
            Ref::new(PatternConstructor { constructor: p.constructor.clone(), patterns: all(&p.patterns) }).into()
        }
        Pattern::Tuple(p) => Ref::new(PatternTuple { patterns: all(&p.patterns) }).into(),
    }
}

/// EliminateCommonSubexpr: equal calls of operators on the same operands become one node.
pub fn eliminate_common_subexpr(module: &Module) -> Module {
    bodies(module, |body| {
        let mut known: HashMap<u64, Vec<Expr>> = HashMap::new();
        rewrite(body, &mut |new, _| {
            let Expr::Call(call) = new else { return None };
            if !matches!(&call.op, Expr::Op(op) if op.name != "debug" && !op.name.starts_with("random.")) {
                return None;
            }
            let same = |other: &Expr| match other {
                Expr::Call(other) => {
                    matches!((&call.op, &other.op), (Expr::Op(a), Expr::Op(b)) if a.name == b.name)
                        && call.attrs == other.attrs
                        && call.args.len() == other.args.len()
                        && call.args.iter().zip(&other.args).all(|(a, b)| same_operand(a, b))
                }
                _ => false,
            };
            let list = known.entry(structural_hash(call, FreeVars::Mapped)).or_default();
            if let Some(found) = list.iter().find(|other| same(other)) {
                return Some(found.clone());
            }
            list.push(new.clone());
            None
        })
    })
}

fn same_operand(a: &Expr, b: &Expr) -> bool {
    match (a, b) {
        (Expr::Constant(a), Expr::Constant(b)) => structural_equal(a, b, FreeVars::Same).is_ok(),
        _ => a.ptr_eq(b),
    }
}

/// FoldConstant: calls of operators on constants are executed by the reference interpreter.
pub fn fold_constant(module: &Module) -> Result<Module, Error> {
    let mut failed = None;
    let out = bodies(module, |body| {
        rewrite(body, &mut |new, _| {
            let (call, name) = new.as_op_call()?;
            let computes =
                op::lookup(name).is_some_and(|def| !matches!(def.mapping, op::Mapping::Machine | op::Mapping::Missing));
            let known = call.args.iter().all(is_known);
            if !computes || !known || call.args.is_empty() {
                return None;
            }
            let main = Function::new(Vec::new(), new.clone(), None);
            match Interpreter::new(&Module::of_main(main)).run("main", &[] as &[AnyView<'_>]) {
                Ok(value) => value.to::<Tensor>().ok().map(Expr::constant),
                Err(error) => {
                    failed.get_or_insert(error);
                    None
                }
            }
        })
    });
    failed.map_or(Ok(out), Err)
}

fn is_known(expr: &Expr) -> bool {
    match expr {
        Expr::Constant(_) => true,
        Expr::Tuple(t) => t.fields.iter().all(is_known),
        _ => false,
    }
}

/// CanonicalizeOps: `nn.bias_add` becomes an addition of the bias with ones for the dimensions behind.
pub fn canonicalize_ops(module: &Module) -> Result<Module, TransformError> {
    let types = infer(module).map_err(TransformError::Types)?;
    Ok(bodies(module, |body| {
        rewrite(body, &mut |new, old| {
            let (call, "nn.bias_add") = new.as_op_call()? else { return None };
            let (before, _) = old.as_op_call()?;
            let data = types.of(&before.args[0])?;
            let ndim = data.as_tensor()?.shape.len() as i64;
            let axis = call.attrs.int("axis").unwrap_or(1);
            let behind = if axis < 0 { -axis - 1 } else { ndim - axis - 1 };
            let def = op::lookup("expand_dims")?;
            let attrs = def.complete_attrs(&Attrs::new().with("axis", 1).with("num_newaxis", behind)).ok()?;
            let bias = match behind {
                0 => call.args[1].clone(),
                _ => Expr::call_with(Expr::op("expand_dims"), [call.args[1].clone()], attrs),
            };
            Some(Expr::call(Expr::op("add"), [call.args[0].clone(), bias]))
        })
    }))
}
