//! ExpandTupleArguments: a private function takes the fields of a tuple one by one.
//!
//! ```text
//! def f(t: R.Tuple(A, B)):           def f(t_0: A, t_1: B):
//!     a = t[0]                  →        t = (t_0, t_1)
//!     …                                  a = t[0]
//! f((x, y))                          f(x, y)
//! ```
//!
//! Tuples in tuples are expanded too. Public functions, and those that are passed on as values, keep their signature.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::pass::{PassInfo, PassResult};
use relaxide_ir::{GlobalVar, IRModule, Type, Var};

use super::private_calls::{callee, private_functions};
use super::{canonicalize, remove_unused};
use crate::rewrite::{Action, Rewrite, rewrite_module};
use crate::*;

const NAME: &str = "ExpandTupleArguments";

pub(super) const PASS: PassInfo =
    PassInfo::new(NAME, "A private function takes the fields of a tuple one by one.", |module, _, _| run(module));

pub(super) fn run(mut module: IRModule) -> PassResult {
    let mut expanded: HashMap<String, Ref<GlobalVar>> = HashMap::new();
    for (name, func) in private_functions(&module) {
        if func.params.iter().any(|p| matches!(p.ty, Type::Tuple(_))) {
            let new = expand(&func);
            expanded.insert(name.clone(), GlobalVar::typed(name.clone(), new.ty()));
            module.insert(name, new);
        }
    }
    if !expanded.is_empty() {
        module = rewrite_module(NAME, module, &mut ExpandedCalls { expanded: &expanded })?;
    }
    // Fields of tuples that are made where they are taken go, and the tuples with them.
    let module = canonicalize::run(NAME, module)?;
    super::emit::map_functions(module, |_, func| Ok(remove_unused(func)))
}

fn expand(func: &Ref<Function>) -> Ref<Function> {
    let mut params = Vec::with_capacity(func.params.len());
    let mut bindings: Vec<Binding> = Vec::new();
    for param in &func.params {
        if !matches!(param.ty, Type::Tuple(_)) {
            params.push(param.clone());
            continue;
        }
        let value = leaves(&param.name, &param.ty, &mut params);
        bindings.push(Ref::new(VarBinding { var: param.clone().into(), value }).into());
    }
    let block = Ref::new(BindingBlock { bindings, dataflow: false });
    let blocks = std::iter::once(block).chain(func.body.blocks.iter().cloned()).collect();
    let body = Ref::new(SeqExpr { blocks, body: func.body.body.clone() });
    Ref::new(Function { params, body, ..Function::clone(func) })
}

/// A parameter for each tensor of a type, and the value of that type that they make.
fn leaves(name: &str, ty: &Type, params: &mut Vec<Ref<Var>>) -> Expr {
    match ty {
        Type::Tuple(tuple) => {
            let field = |(i, ty): (usize, &Type)| leaves(&format!("{name}_{i}"), ty, params);
            let fields: Vec<Expr> = tuple.fields.iter().enumerate().map(field).collect();
            Expr::tuple(fields)
        }
        _ => {
            let param = Var::new(name, ty.clone());
            params.push(param.clone());
            param.into()
        }
    }
}

struct ExpandedCalls<'a> {
    expanded: &'a HashMap<String, Ref<GlobalVar>>,
}

impl Rewrite for ExpandedCalls<'_> {
    fn value(&mut self, b: &mut BlockBuilder, _: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let Some((call, new)) = callee(&value).and_then(|(call, name)| Some((call, self.expanded.get(name)?))) else {
            return Ok(Action::Bind(value));
        };
        let mut args = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            open(b, arg.clone(), &mut args)?;
        }
        Ok(Action::Bind(Ref::new(call.rebuilt(new.clone().into(), args)).into()))
    }
}

/// The tensors of an argument.
fn open(b: &mut BlockBuilder, arg: Expr, out: &mut Vec<Expr>) -> Result<(), BuildError> {
    let Type::Tuple(ty) = arg.ty() else {
        out.push(arg);
        return Ok(());
    };
    for i in 0..ty.fields.len() {
        let field = match &arg {
            Expr::Tuple(tuple) => tuple.fields.get(i).cloned(),
            _ => None,
        };
        let field = field.map_or_else(|| b.emit(Expr::field(arg.clone(), i)), Ok)?;
        open(b, field, out)?;
    }
    Ok(())
}
