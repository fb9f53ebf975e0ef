//! Operators that call graphs: `cond`, and in [`loops`] those that do it again and again.
//!
//! PyTorch hands to such a graph all tensors that it uses; only symbols of dimensions are those of the graph around it. A branch
//! becomes a branch of Relax's `if`, a loop [the front ends' loop](relaxide_frontend::loops).

use relaxide_ffi::Ref;
use relaxide_ir::Type;
use relaxide_relax::{BlockBuilder, Expr, If, SeqExpr};

use crate::error::NodeError;
use crate::graph::{Graphs, Names};
use crate::ops;
use crate::program::{Argument, NamedGraph, Node, Symbolic};
use crate::rule::{Cx, Declared, Outputs, Result};
use crate::value::Value;

mod loops;

/// A rule that imports graphs.
pub type FlowRule = fn(&mut Graphs<'_>, &mut BlockBuilder, &Node, &Names, &[Declared]) -> Outputs;

/// The rule of an operator that calls graphs.
pub fn rule(base: &str) -> Option<FlowRule> {
    match base {
        "higher_order.cond" => Some(cond),
        "higher_order.while_loop" => Some(loops::while_loop),
        "higher_order.map_impl" => Some(loops::map),
        "higher_order.scan" => Some(loops::scan),
        "higher_order.associative_scan" => Some(loops::associative_scan),
        _ => None,
    }
}

/// Whether an operator is one of them, or becomes a loop without a graph.
pub fn is_flow(target: &str) -> bool {
    let full = target.strip_prefix("torch.ops.").unwrap_or(target);
    rule(full).is_some() || ops::is_loop(full)
}

/// The arguments of such a node by position: what PyTorch calls them differs by version.
fn arg(node: &Node, at: usize) -> Result<&Argument> {
    node.inputs.get(at).map(|input| &input.arg).ok_or_else(|| NodeError::invalid(format!("argument {at} is missing")))
}

fn graph(node: &Node, at: usize) -> Result<&NamedGraph> {
    match arg(node, at)? {
        Argument::AsGraph(graph) => Ok(graph),
        _ => Err(NodeError::invalid(format!("argument {at} is no graph"))),
    }
}

/// The values of an argument that is a list.
fn values(names: &Names, argument: &Argument) -> Result<Vec<Value>> {
    let value = |name: &str| {
        names.values.get(name).cloned().ok_or_else(|| NodeError::invalid(format!("nothing before it gives `{name}`")))
    };
    match argument {
        Argument::AsTensors(list) => list.iter().map(|tensor| value(&tensor.name)).collect(),
        Argument::AsTensor(tensor) => Ok(vec![value(&tensor.name)?]),
        Argument::AsSymInt(dim) => Ok(vec![integer(dim, &value)?]),
        Argument::AsSymInts(list) => list.iter().map(|dim| integer(dim, &value)).collect(),
        Argument::AsInts(list) => Ok(list.iter().map(|&n| Value::Int(relaxide_ir::prim::int(n))).collect()),
        Argument::AsNone(_) => Ok(Vec::new()),
        _ => Err(NodeError::unsupported("a graph is given values that are neither tensors nor integers")),
    }
}

fn integer(dim: &Symbolic<i64>, value: &dyn Fn(&str) -> Result<Value>) -> Result<Value> {
    match dim {
        Symbolic::Named(name) => value(name),
        Symbolic::Known(number) => Ok(Value::Int(relaxide_ir::prim::int(*number))),
    }
}

/// The values of an argument that is a list of tensors.
fn tensors(names: &Names, argument: &Argument) -> Result<Vec<Expr>> {
    let tensor = |value| match value {
        Value::Tensor(tensor) => Ok(tensor),
        _ => Err(NodeError::unsupported("a loop goes over, or carries, what is no tensor")),
    };
    values(names, argument)?.into_iter().map(tensor).collect()
}

/// Gives a graph's inputs their values.
fn enter(graph: &NamedGraph, given: &[Value]) -> Result<Names> {
    let mut names = Names::default();
    let inputs = &graph.graph.inputs;
    if inputs.len() != given.len() {
        let (wanted, got) = (inputs.len(), given.len());
        return Err(NodeError::invalid(format!("a graph of {wanted} inputs is given {got}")));
    }
    for (input, value) in inputs.iter().zip(given) {
        match input {
            Argument::AsTensor(tensor) => names.values.insert(tensor.name.clone(), value.clone()),
            Argument::AsSymInt(Symbolic::Named(name)) => names.values.insert(name.clone(), value.clone()),
            _ => None,
        };
    }
    Ok(names)
}

/// The tensors that a graph gives, of the wanted types.
fn results(
    graphs: &mut Graphs<'_>,
    builder: &mut BlockBuilder,
    node: &Node,
    graph: &NamedGraph,
    given: &[Value],
    wanted: Option<&[Declared]>,
) -> Result<Vec<Expr>> {
    let mut names = enter(graph, given)?;
    graphs.inner(builder, graph, &mut names);
    let mut out = Vec::new();
    for (i, output) in graph.graph.outputs.iter().enumerate() {
        let Some(Value::Tensor(tensor)) = values(&names, output)?.into_iter().next() else {
            return Err(NodeError::unsupported("a graph gives what is no tensor"));
        };
        let mut cx = Cx { builder, node, values: &names.values, results: Vec::new() };
        out.push(match wanted.and_then(|w| w.get(i)) {
            Some(declared) => cx.declared(tensor, declared)?,
            None => tensor,
        });
    }
    Ok(out)
}

fn condition(builder: &mut BlockBuilder, node: &Node, tensor: Expr) -> Result<Expr> {
    let mut cx = Cx { builder, node, values: &Default::default(), results: Vec::new() };
    let truth = cx.cast(tensor, relaxide_ffi::DataType::bool())?;
    cx.reshape(truth, &[])
}

/// `cond(pred, true_fn, false_fn, operands)`.
fn cond(
    graphs: &mut Graphs<'_>,
    builder: &mut BlockBuilder,
    node: &Node,
    names: &Names,
    wanted: &[Declared],
) -> Outputs {
    let Some(Value::Tensor(pred)) = values(names, arg(node, 0)?)?.into_iter().next() else {
        return Err(NodeError::unsupported("the condition is no tensor"));
    };
    let operands = values(names, arg(node, 3)?)?;
    let condition = condition(builder, node, pred)?;
    let mut branch = |at: usize| -> Result<Ref<SeqExpr>> {
        let graph = graph(node, at)?;
        builder.begin_scope();
        let results = results(graphs, builder, node, graph, &operands, Some(wanted));
        let body = results.as_ref().map_or_else(|_| Expr::tuple([]), |r| Expr::tuple(r.clone()));
        let seq = builder.end_scope(body)?;
        results.map(|_| seq)
    };
    let (true_branch, false_branch) = (branch(1)?, branch(2)?);
    let ty = Type::tuple(wanted.iter().map(Declared::ty).collect::<Vec<_>>());
    let choice = builder.emit(Expr::If(Ref::new(If { condition, true_branch, false_branch, ty })))?;
    fields(builder, &choice, wanted.len())
}

fn fields(builder: &mut BlockBuilder, tuple: &Expr, count: usize) -> Outputs {
    (0..count).map(|i| Ok(Value::Tensor(builder.emit(Expr::field(tuple.clone(), i))?))).collect()
}
