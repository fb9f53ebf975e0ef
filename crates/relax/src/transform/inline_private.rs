//! InlinePrivateFunctions: a call of a private function becomes its body.
//!
//! ```text
//! def f(a):
//!     return R.exp(a)         →        gv = R.exp(x)
//! gv = f(x)
//! ```
//!
//! Functions that call themselves, directly or not, stay; so do those that are passed on as values, and those that carry
//! `Primitive`, `Composite` or `Codegen`, which others recognise. Where the call stands in a dataflow block and the body
//! has control flow or a check that the block may not hold, the call stays too. Functions that nothing calls any more go.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::IRModule;
use relaxide_ir::pass::{PassInfo, PassResult};

use super::canonicalize;
use super::inline_body::inline_body;
use super::private_calls::{callee, private_functions};
use crate::analysis::call_graph;
use crate::rewrite::{Action, Rewrite, in_function, rewrite_function};
use crate::*;

const NAME: &str = "InlinePrivateFunctions";

pub(super) const PASS: PassInfo =
    PassInfo::new(NAME, "A call of a private function becomes its body.", |module, _, _| run(module));

fn run(module: IRModule) -> PassResult {
    let graph = call_graph(&module);
    let marked = |f: &Function| ["Primitive", "Composite", "Codegen"].iter().any(|a| f.attrs.get(a).is_some());
    let mut bodies: HashMap<String, Ref<Function>> =
        private_functions(&module).into_iter().filter(|(name, f)| !graph.is_recursive(name) && !marked(f)).collect();
    if bodies.is_empty() {
        return Ok(module);
    }
    let mut b = BlockBuilder::with_module(module);
    // Innermost first, so that a body that is inlined has no calls left to inline.
    for name in inner_first(&graph, &bodies) {
        let Some(func) = bodies.get(&name).cloned() else { continue };
        let new = inline(&mut b, &func, &bodies).map_err(|e| in_function(NAME, &name, e))?;
        bodies.insert(name, new);
    }
    let outer: Vec<_> = b.module().functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    for (name, func) in outer {
        let new = match bodies.get(&name) {
            Some(body) => body.clone(),
            None => inline(&mut b, &func, &bodies).map_err(|e| in_function(NAME, &name, e))?,
        };
        b.module_mut().insert(name, new);
    }
    let mut module = b.finish();
    // Roots are all that was not inlined.
    let graph = call_graph(&module);
    let roots = module.functions.keys().filter(|name| !bodies.contains_key(*name)).map(String::as_str);
    let reached = graph.reachable(roots);
    module.functions.retain(|name, _| reached.contains(name));
    let module = canonicalize::run(NAME, module)?;
    super::emit::map_functions(module, |_, func| Ok(super::remove_unused(func)))
}

fn inner_first(graph: &crate::analysis::CallGraph, bodies: &HashMap<String, Ref<Function>>) -> Vec<String> {
    let mut names: Vec<String> = graph.0.keys().filter(|name| bodies.contains_key(*name)).cloned().collect();
    names.sort_by_cached_key(|name| graph.reachable([name.as_str()]).len());
    names
}

fn inline(
    b: &mut BlockBuilder,
    func: &Ref<Function>,
    bodies: &HashMap<String, Ref<Function>>,
) -> Result<Ref<Function>, BuildError> {
    rewrite_function(b, func, &mut Inline { bodies })
}

struct Inline<'a> {
    bodies: &'a HashMap<String, Ref<Function>>,
}

impl Rewrite for Inline<'_> {
    fn value(&mut self, b: &mut BlockBuilder, var: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let Some((call, body)) = callee(&value).and_then(|(call, name)| Some((call, self.bodies.get(name)?))) else {
            return Ok(Action::Bind(value));
        };
        let Some(result) = inline_body(b, body, &call.args)? else { return Ok(Action::Bind(value)) };
        let dataflow = b.in_dataflow();
        if dataflow && matches!(var, AnyVar::Dataflow(_)) && matches!(result, Expr::DataflowVar(_) | Expr::Var(_)) {
            return Ok(Action::Replace(result));
        }
        Ok(Action::Bind(result))
    }
}
