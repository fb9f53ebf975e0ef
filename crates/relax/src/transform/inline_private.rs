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
use relaxide_ir::prim::VarMap;

use super::bind_symbols::SymbolMutator;
use super::canonicalize;
use super::fresh::fresh_copy;
use super::private_calls::{callee, private_functions};
use crate::analysis::call_graph;
use crate::builder::is_pure;
use crate::functor::VarReplacer;
use crate::rewrite::{Action, Rewrite, in_function, rewrite_function};
use crate::shape::bind_dims;
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
        let dataflow = b.in_dataflow();
        let bindings: Vec<&Binding> = body.body.blocks.iter().flat_map(|b| &b.bindings).collect();
        let fits = |binding: &&Binding| {
            !matches!(binding.value(), Expr::If(_) | Expr::Function(_)) && is_pure(binding.value())
        };
        let has_dataflow_blocks = body.body.blocks.iter().any(|b| b.dataflow);
        if (dataflow && !bindings.iter().all(fits)) || call.args.len() != body.params.len() {
            return Ok(Action::Bind(value));
        }
        let func = fresh_copy(body);
        let mut symbols = VarMap::new();
        for (param, arg) in func.params.iter().zip(&call.args) {
            bind_dims(&param.ty, &arg.ty(), &mut symbols);
        }
        let args: HashMap<AnyVar, Expr> =
            func.params.iter().map(|p| AnyVar::Var(p.clone())).zip(call.args.iter().cloned()).collect();
        let func = SymbolMutator::new(symbols).function_body(&func);
        let seq = VarReplacer(args).mutate_seq(&func.body);
        let result = place(b, &seq, dataflow, has_dataflow_blocks)?;
        if dataflow && matches!(var, AnyVar::Dataflow(_)) && matches!(result, Expr::DataflowVar(_) | Expr::Var(_)) {
            return Ok(Action::Replace(result));
        }
        Ok(Action::Bind(result))
    }
}

/// Emits the bindings of a body; inside a dataflow block, all become dataflow variables.
fn place(b: &mut BlockBuilder, seq: &SeqExpr, dataflow: bool, blocks: bool) -> Result<Expr, BuildError> {
    let mut replace = VarReplacer::default();
    for block in &seq.blocks {
        if block.dataflow && !dataflow && blocks {
            b.begin_dataflow()?;
        }
        for binding in &block.bindings {
            let new = replace.remake_binding(binding);
            let local = matches!(new.var(), AnyVar::Dataflow(_)) || dataflow;
            let own = b.fresh_var(new.var().name(), new.var().ty().clone(), local);
            replace.0.insert(binding.var().clone(), own.clone().into());
            b.push_binding(match &new {
                Binding::Var(v) => Ref::new(VarBinding { var: own, value: v.value.clone() }).into(),
                Binding::MatchCast(c) => {
                    Ref::new(MatchCast { var: own, value: c.value.clone(), ty: c.ty.clone() }).into()
                }
            })?;
        }
        if block.dataflow && !dataflow && blocks {
            b.end_dataflow()?;
        }
    }
    Ok(replace.mutate_expr(&seq.body))
}
