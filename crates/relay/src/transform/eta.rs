//! EtaExpand: an operator that stands as a value becomes a function that calls it; if it is asked for, constructors and functions
//! of the module, too.
//!
//! ```text
//! @map(nn.relu, %xs)    becomes    @map(fn (%x) { nn.relu(%x) }, %xs)
//! @map(Some, %xs)       becomes    @map(fn (%x) { Some(%x) }, %xs)         expand_constructor
//! @map(@f, %xs)         becomes    @map(fn (%x) { @f(%x) }, %xs)           expand_global_var
//! ```
//!
//! A name that `let` gives to an operator stands for the operator itself, at each place anew: with `let %f = add`, `%f` adds
//! integers here and floats there, as in the reference.
//!
//! The compiler needs it of operators only: the machine makes functions of constructors where they are values. Type inference
//! asks the same function for the type of an operator.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::{Attrs, Span};

use crate::op::{AttrError, Mapping};
use crate::stack::deep;
use crate::*;

/// What becomes functions beside operators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EtaOptions {
    /// Constructors with fields.
    pub constructors: bool,
    /// Functions of the module.
    pub globals: bool,
}

/// A module whose operators are all called.
pub fn eta_expand(module: &Module) -> Module {
    eta_expand_with(module, EtaOptions::default())
}

/// A module whose operators are all called, and what else is asked for.
pub fn eta_expand_with(module: &Module, options: EtaOptions) -> Module {
    deep(|| {
        let mut out = module.clone();
        for function in out.functions.values_mut() {
            let names = names_of_operators(&function.body);
            let operator = |e: &Expr| match e {
                Expr::Var(v) => names.get(&address(v)).cloned().map(Expr::Op),
                _ => None,
            };
            let body = crate::rewrite::rewrite(&function.body, &mut |new, old| match (new, old) {
                (Expr::Let(new), _) if names.contains_key(&address(&new.var)) => Some(new.body.clone()),
                // What is called stays what it is.
                (Expr::Call(new), Expr::Call(call)) => {
                    let callee = operator(&call.op).unwrap_or_else(|| call.op.clone());
                    expanded(module, options, &callee).map(|_| called(new, call, callee, old))
                }
                _ => {
                    let named = operator(old);
                    expanded(module, options, named.as_ref().unwrap_or(old))
                }
            });
            *function = function.with_body(body);
        }
        out
    })
}

fn address(var: &Ref<Var>) -> usize {
    Ref::as_ptr(var).addr()
}

/// The variables of an expression that are names of operators.
fn names_of_operators(body: &Expr) -> HashMap<usize, Ref<Op>> {
    let mut names = HashMap::new();
    // A binding is met before what is in its scope.
    visit::each(body, |expr| {
        if let Expr::Let(l) = expr
            && let Some(op) = named_operator(l, &names)
        {
            names.insert(address(&l.var), op);
        }
    });
    names
}

/// The operator that a binding gives a name to, with the names that are known before it. A name of a type without parameters is
/// a function of that type.
pub(crate) fn named_operator(l: &Let, names: &HashMap<usize, Ref<Op>>) -> Option<Ref<Op>> {
    let of_any_type = match &l.var.annotation {
        None => true,
        Some(Type::Func(f)) => !f.type_params.is_empty(),
        Some(_) => false,
    };
    match &l.value {
        Expr::Op(op) if of_any_type && as_function(op, None).is_ok() => Some(op.clone()),
        Expr::Var(v) if of_any_type => names.get(&address(v)).cloned(),
        _ => None,
    }
}

/// The function in the place of a value, if it becomes one.
fn expanded(module: &Module, options: EtaOptions, e: &Expr) -> Option<Expr> {
    let count = match e {
        Expr::Op(op) => return as_function(op, None).ok().map(Expr::from),
        Expr::Constructor(c) if options.constructors && !c.inputs.is_empty() => c.inputs.len(),
        Expr::Global(g) if options.globals => module.functions.get(&g.name)?.params.len(),
        _ => return None,
    };
    let names = (0..count).map(|i| if count == 1 { "x".to_string() } else { format!("x{i}") });
    let params: Vec<Ref<Var>> = names.map(|name| Var::new(name, None)).collect();
    let args: Vec<Expr> = params.iter().map(Expr::from).collect();
    Some(Function::new(params, Expr::call(e.clone(), args), None).into())
}

/// The call with its new arguments, of what it called before or of the operator that this is a name of.
fn called(new: &Ref<Call>, call: &Ref<Call>, op: Expr, old: &Expr) -> Expr {
    if op.ptr_eq(&call.op) && new.args.iter().zip(&call.args).all(|(new, old)| new.ptr_eq(old)) {
        return old.clone();
    }
    let (attrs, type_args, span) =
        (attrs_of_call(&call.op, &op, &call.attrs), call.type_args.clone(), call.span.clone());
    Ref::new(Call { op, args: new.args.clone(), attrs, type_args, span }).into()
}

/// The attributes of a call whose callee becomes another: calls of operators name all of theirs, those of functions none.
pub(crate) fn attrs_of_call(before: &Expr, now: &Expr, attrs: &Attrs) -> Attrs {
    let complete = match (before, now) {
        (Expr::Op(_), _) => None,
        (_, Expr::Op(op)) => crate::op::lookup(&op.name).and_then(|def| def.complete_attrs(attrs).ok()),
        _ => None,
    };
    complete.unwrap_or_else(|| attrs.clone())
}

/// Why an operator cannot stand as a value.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum NoValue {
    #[error("operator `{0}` not found")]
    Unknown(String),
    #[error("the operator {0} cannot stand as a value: it has no function that computes it")]
    NoFunction(String),
    #[error("the operator {name} cannot stand as a value: {why}; write fn ({params}) {{ {name}(…) }}")]
    Attributes { name: String, params: String, why: AttrError },
}

/// The function that calls an operator, for which the operator stands as a value. Why there is none: attributes that a call must
/// name.
pub(crate) fn as_function(op: &Ref<Op>, span: Option<&Ref<Span>>) -> Result<Ref<Function>, NoValue> {
    let name = &op.name;
    let def = crate::op::lookup(name).ok_or_else(|| NoValue::Unknown(name.clone()))?;
    if matches!(def.mapping, Mapping::Machine | Mapping::Missing) {
        return Err(NoValue::NoFunction(name.clone()));
    }
    let params: Vec<Ref<Var>> = def.args.iter().map(|arg| Var::new(*arg, None)).collect();
    let args: Vec<Expr> = params.iter().map(Expr::from).collect();
    let attrs = def.complete_attrs(&Attrs::new()).map_err(|why| {
        let params = params.iter().map(|p| format!("%{}", p.name)).collect::<Vec<_>>().join(", ");
        NoValue::Attributes { name: name.clone(), params, why }
    })?;
    let span = span.cloned();
    let call = Ref::new(Call { op: op.clone().into(), args, attrs, type_args: Vec::new(), span: span.clone() });
    let (type_params, ret_type, attrs) = (Vec::new(), None, Attrs::new());
    Ok(Ref::new(Function { type_params, params, body: call.into(), ret_type, attrs, span }))
}

/// The type of an operator as far as its table says it: of its relation, only the number of its arguments.
pub(crate) fn type_of_operator(op: &Op) -> Type {
    let args = crate::op::lookup(&op.name).map_or(1, |def| def.args.len());
    let names = (0..args).map(|i| format!("in{i}")).chain(["out".to_string()]);
    let type_params: Vec<Ref<TypeVar>> = names.map(|name| Ref::new(TypeVar { name })).collect();
    let mut args: Vec<Type> = type_params.iter().map(Type::from).collect();
    let ret = args.pop().unwrap_or_else(Type::fresh);
    Ref::new(FuncType { type_params, args, ret }).into()
}
