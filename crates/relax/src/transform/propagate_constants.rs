//! PropagateConstants: a parameter of a private function that is the same constant in all calls becomes it.
//!
//! ```text
//! def loop(i, s, w):                         def loop(i, s):
//!     t = R.matmul(s, w)              →          t = R.matmul(s, metadata["ir.GenericConst"][0])
//!     return loop(i + 1, t, w)                   return loop(i + 1, t)
//! y = loop(0, x, const)                      y = loop(0, x)
//! ```
//!
//! The weights of a loop are parameters of its function (`LambdaLift`). As constants, they can be folded and laid out (`PackWeights`). A function may
//! hand its own parameter on to itself. Public functions, and those that are passed on as values, keep their parameters.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::pass::{PassInfo, PassResult};
use relaxide_ir::{IRModule, Var};

use super::private_calls::{callee, private_functions};
use super::remove_unused_parts;
use crate::functor::VarReplacer;
use crate::rewrite::ExprMap;
use crate::shape::same_type;
use crate::*;

pub(super) const PASS: PassInfo = PassInfo::new(
    "PropagateConstants",
    "Parameters of private functions that are the same constant in all calls become it.",
    |module, _, _| run(module),
);

fn run(mut module: IRModule) -> PassResult {
    let private = private_functions(&module);
    let mut calls = CallArguments { private: &private, given: HashMap::new() };
    module.functions_of::<Function>().for_each(|(_, f)| calls.visit_seq(&f.body));
    let known: Vec<_> =
        calls.given.iter().filter_map(|(name, given)| Some((name, constants(&private[name], given)?))).collect();
    if known.is_empty() {
        return Ok(module);
    }
    for (name, values) in known {
        let func = &private[name];
        let body = VarReplacer(values).mutate_seq(&func.body);
        module.insert(name.clone(), Ref::new(Function { body, ..Function::clone(func) }));
    }
    remove_unused_parts::parameters(module)
}

/// The parameters that are constants.
fn constants(func: &Function, given: &[ParameterValue]) -> Option<ExprMap> {
    let constant = |(param, given): (&Ref<Var>, &ParameterValue)| match given {
        ParameterValue::Constant(constant) if same_type(&param.ty, &constant.ty()) => {
            Some((AnyVar::Var(param.clone()), constant.clone()))
        }
        _ => None,
    };
    let known: ExprMap = func.params.iter().zip(given).filter_map(constant).collect();
    (!known.is_empty()).then_some(known)
}

/// What the calls of a function give a parameter.
#[derive(Clone)]
enum ParameterValue {
    /// Nothing yet, or the parameter itself.
    Nothing,
    Constant(Expr),
    Others,
}

/// What all calls give the parameters of private functions.
struct CallArguments<'a> {
    private: &'a HashMap<String, Ref<Function>>,
    given: HashMap<String, Vec<ParameterValue>>,
}

impl ExprVisitor for CallArguments<'_> {
    fn visit_expr(&mut self, e: &Expr) {
        if let Some((call, name)) = callee(e)
            && let Some(func) = self.private.get(name)
        {
            let given =
                self.given.entry(name.to_string()).or_insert_with(|| vec![ParameterValue::Nothing; func.params.len()]);
            for ((param, arg), given) in func.params.iter().zip(&call.args).zip(given) {
                let is_itself = matches!(arg, Expr::Var(var) if var == param);
                *given = match (&*given, arg) {
                    (given, _) if is_itself => given.clone(),
                    (ParameterValue::Nothing, Expr::Constant(_)) => ParameterValue::Constant(arg.clone()),
                    (ParameterValue::Constant(known), arg) if known == arg => continue,
                    _ => ParameterValue::Others,
                };
            }
        }
        self.walk_expr(e);
    }
}
