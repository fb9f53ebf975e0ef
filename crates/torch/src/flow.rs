//! Operators that call graphs: `cond` and `while_loop`.
//!
//! PyTorch hands to such a graph all that it uses, so it sees nothing around it. A branch becomes a branch of Relax's `if`; a
//! loop becomes a function of its own that calls itself last.

use relaxide_ffi::Ref;
use relaxide_ir::{Attrs, GlobalVar, Type, Var};
use relaxide_relax::{BlockBuilder, Call, Expr, If, SeqExpr};

use crate::error::NodeError;
use crate::graph::{Graphs, Names};
use crate::program::{Argument, Graph, Node, Symbolic};
use crate::rule::{Cx, Declared, Outputs, Result};
use crate::value::Value;

/// A rule that imports graphs.
pub type FlowRule = fn(&mut Graphs, &mut BlockBuilder, &Node, &Names, &[Declared]) -> Outputs;

/// The rule of an operator that calls graphs.
pub fn rule(base: &str) -> Option<FlowRule> {
    match base {
        "higher_order.cond" => Some(cond),
        "higher_order.while_loop" => Some(while_loop),
        _ => None,
    }
}

/// Whether an operator is one of them.
pub fn is_flow(target: &str) -> bool {
    rule(target.strip_prefix("torch.ops.").unwrap_or(target)).is_some()
}

/// The arguments of such a node by position: what PyTorch calls them differs by version.
fn arg(node: &Node, at: usize) -> Result<&Argument> {
    node.inputs.get(at).map(|input| &input.arg).ok_or_else(|| NodeError::invalid(format!("argument {at} is missing")))
}

fn graph(node: &Node, at: usize) -> Result<&Graph> {
    match arg(node, at)? {
        Argument::AsGraph(graph) => Ok(&graph.graph),
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
        Argument::AsSymInts(list) => list
            .iter()
            .map(|dim| match dim {
                Symbolic::Named(name) => value(name),
                Symbolic::Known(number) => Ok(Value::Int(relaxide_ir::prim::int(*number))),
            })
            .collect(),
        Argument::AsInts(list) => Ok(list.iter().map(|&n| Value::Int(relaxide_ir::prim::int(n))).collect()),
        Argument::AsNone(_) => Ok(Vec::new()),
        _ => Err(NodeError::unsupported("a graph is given values that are no tensors")),
    }
}

/// Gives a graph's inputs their values.
fn enter(graph: &Graph, given: &[Value]) -> Result<Names> {
    let mut names = Names::default();
    if graph.inputs.len() != given.len() {
        let (wanted, got) = (graph.inputs.len(), given.len());
        return Err(NodeError::invalid(format!("a graph of {wanted} inputs is given {got}")));
    }
    for (input, value) in graph.inputs.iter().zip(given) {
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
    graphs: &mut Graphs,
    builder: &mut BlockBuilder,
    node: &Node,
    graph: &Graph,
    given: &[Value],
    wanted: Option<&[Declared]>,
) -> Result<Vec<Expr>> {
    let mut names = enter(graph, given)?;
    graphs.nodes(builder, graph, &mut names);
    let mut out = Vec::new();
    for (i, output) in graph.outputs.iter().enumerate() {
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
fn cond(graphs: &mut Graphs, builder: &mut BlockBuilder, node: &Node, names: &Names, wanted: &[Declared]) -> Outputs {
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

/// `while_loop(cond_fn, body_fn, carried, additional)`: a function of the state and of what is only read.
fn while_loop(
    graphs: &mut Graphs,
    builder: &mut BlockBuilder,
    node: &Node,
    names: &Names,
    wanted: &[Declared],
) -> Outputs {
    let (test, body) = (graph(node, 0)?, graph(node, 1)?);
    let carried = values(names, arg(node, 2)?)?;
    let additional = values(names, arg(node, 3)?)?;
    let mut operands = Vec::new();
    for value in carried.iter().chain(&additional) {
        match value {
            Value::Tensor(tensor) => operands.push(tensor.clone()),
            _ => return Err(NodeError::unsupported("a loop carries what is no tensor")),
        }
    }
    // Inside of the function dimensions are its own.
    let outer = std::mem::take(&mut graphs.symbols);
    let written = write_loop(graphs, builder, node, test, body, carried.len());
    graphs.symbols = outer;
    let call = Call {
        op: Expr::Global(written?),
        args: operands,
        attrs: Attrs::new(),
        ty_args: Vec::new(),
        ty: Type::tuple(wanted.iter().map(Declared::ty).collect::<Vec<_>>()),
        span: None,
    };
    let result = builder.emit(Expr::Call(Ref::new(call)))?;
    fields(builder, &result, wanted.len())
}

fn write_loop(
    graphs: &mut Graphs,
    builder: &mut BlockBuilder,
    node: &Node,
    test: &Graph,
    body: &Graph,
    carried: usize,
) -> Result<Ref<GlobalVar>> {
    let mut params = Vec::new();
    let mut types = Vec::new();
    for input in &body.inputs {
        let Argument::AsTensor(tensor) = input else {
            return Err(NodeError::unsupported("a loop carries what is no tensor"));
        };
        let declared = graphs.declared(body, &tensor.name).map_err(|why| NodeError::unsupported(why.to_string()))?;
        params.push(Var::new(tensor.name.as_str(), declared.ty()));
        types.push(declared);
    }
    let state = types.get(..carried).ok_or_else(|| NodeError::invalid("the loop's body takes less than its state"))?;
    let ret = Type::tuple(state.iter().map(Declared::ty).collect::<Vec<_>>());
    let signature = Type::func(params.iter().map(|p| p.ty.clone()).collect::<Vec<_>>(), ret.clone(), true);
    let own = GlobalVar::typed(builder.module().fresh_name("while_loop"), signature);
    let given: Vec<Value> = params.iter().map(|p| Value::Tensor(Expr::Var(p.clone()))).collect();
    let function = builder.function(params.clone(), Attrs::new(), |builder| -> Result<Expr> {
        let truth = results(graphs, builder, node, test, &given, None)?;
        let [truth] = truth.as_slice() else {
            return Err(NodeError::invalid("the loop's condition is not one tensor"));
        };
        let condition = condition(builder, node, truth.clone())?;
        builder.begin_scope();
        let next = results(graphs, builder, node, body, &given, Some(state));
        let again = next.and_then(|next| {
            let rest = params[carried..].iter().map(|p| Expr::Var(p.clone()));
            let args: Vec<Expr> = next.into_iter().chain(rest).collect();
            let call = Call {
                op: Expr::Global(own.clone()),
                args,
                attrs: Attrs::new(),
                ty_args: Vec::new(),
                ty: ret.clone(),
                span: None,
            };
            Ok(builder.emit(Expr::Call(Ref::new(call)))?)
        });
        let true_branch = builder.end_scope(again.as_ref().map_or_else(|_| Expr::tuple([]), Clone::clone))?;
        again?;
        builder.begin_scope();
        let done = Expr::tuple(params[..carried].iter().map(|p| Expr::Var(p.clone())).collect::<Vec<_>>());
        let false_branch = builder.end_scope(done)?;
        Ok(builder.emit(Expr::If(Ref::new(If { condition, true_branch, false_branch, ty: ret.clone() })))?)
    })?;
    builder.module_mut().insert(own.name.clone(), function);
    Ok(own)
}
