//! The graph of a function of a program.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::IRModule;
use relaxide_relax::display::type_text;
use relaxide_relax::functor::used_vars;
use relaxide_relax::{AnyVar, Binding, Expr, Function, SeqExpr};

use super::{Graph, Node, NodeKind};
use crate::compiler::stats::callee_text;

impl Graph {
    /// The graph of a function of the graph level; none if the program has no such function.
    pub fn of_function(module: &IRModule, name: &str) -> Option<Graph> {
        let function: Ref<Function> = module.get_as(name)?;
        let mut draw = Draw::default();
        for param in &function.params {
            let node = draw.graph.add(Node::new(NodeKind::Input, &param.name, type_text(&param.ty)));
            draw.makers.insert(AnyVar::Var(param.clone()), vec![node]);
        }
        draw.sequence(&function.body);
        let result = draw.makers_of(&function.body.body);
        let output = draw.graph.add(Node::new(NodeKind::Output, "output", type_text(&function.ret_ty)));
        draw.graph.connect(&result, output);
        Some(draw.graph)
    }
}

#[derive(Default)]
struct Draw {
    graph: Graph,
    /// The nodes that make a variable's value; several for a tuple.
    makers: HashMap<AnyVar, Vec<usize>>,
}

impl Draw {
    fn sequence(&mut self, sequence: &SeqExpr) {
        for binding in sequence.blocks.iter().flat_map(|block| &block.bindings) {
            let (value, var) = (binding.value(), binding.var().clone());
            let makers = match value {
                Expr::Call(call) => {
                    let constants = call.args.iter().filter_map(constant_text).collect::<Vec<_>>();
                    let label = callee_text(&call.op);
                    vec![self.node(&label, &result_text(binding), &constants, value)]
                }
                Expr::If(_) => vec![self.node("if", &result_text(binding), &[], value)],
                Expr::Function(_) => vec![self.node("closure", "", &[], value)],
                other => self.makers_of(other),
            };
            self.makers.insert(var, makers);
        }
    }

    fn node(&mut self, label: &str, result: &str, constants: &[String], value: &Expr) -> usize {
        let sources = self.makers_of(value);
        let detail = match constants {
            [] => result.to_string(),
            some => format!("{result}\nwith {}", some.join(", ")),
        };
        let node = self.graph.add(Node::new(NodeKind::Call, label, detail));
        self.graph.connect(&sources, node);
        node
    }

    /// The nodes that what an expression uses comes from.
    fn makers_of(&self, value: &Expr) -> Vec<usize> {
        let mut makers: Vec<usize> =
            used_vars(value).iter().filter_map(|var| self.makers.get(var)).flatten().copied().collect();
        makers.sort_unstable();
        makers.dedup();
        makers
    }
}

fn result_text(binding: &Binding) -> String {
    match binding.var() {
        AnyVar::Var(var) => type_text(&var.ty),
        AnyVar::Dataflow(var) => type_text(&var.ty),
    }
}

fn constant_text(arg: &Expr) -> Option<String> {
    match arg {
        Expr::Constant(constant) => Some(format!("{}{:?}", constant.value.dtype(), constant.value.shape())),
        _ => None,
    }
}
