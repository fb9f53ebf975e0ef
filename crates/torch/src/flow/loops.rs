//! `while_loop`, `map`, `scan` and `associative_scan`: graphs that are called again and again.
//!
//! | operator | state | rows that are read | rows that are given |
//! | --- | --- | --- | --- |
//! | `while_loop(test, body, state, others)` | what the body gives | | |
//! | `map_impl(body, tensors, others)` | | of each tensor | all results |
//! | `scan(body, state, tensors, others)` | the first results | of each tensor | the other results |
//! | `associative_scan(body, tensors, others)` | all results; the first rows in the first iteration | of each tensor | all results |

use relaxide_ffi::Ref;
use relaxide_frontend::rows::{self, Along};
use relaxide_frontend::{Captures, Iteration, Loop, Next, Scope};
use relaxide_ir::Attrs;
use relaxide_ir::Type;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::{BlockBuilder, Expr, If};

use super::{arg, condition, graph, results, tensors, values};
use crate::error::NodeError;
use crate::graph::{Graphs, Names};
use crate::program::{Argument, NamedGraph, Node};
use crate::rule::{Declared, Outputs, Result};
use crate::value::Value;

/// Values of the outside, inside.
fn captured(inside: &mut Captures, values: &[Value]) -> Vec<Value> {
    let captured = |value: &Value| match value {
        Value::Tensor(tensor) => Value::Tensor(inside.expr(tensor)),
        Value::Int(dim) => Value::Int(inside.dim(dim)),
        Value::Nothing => Value::Nothing,
    };
    values.iter().map(captured).collect()
}

/// Runs what imports graphs within the function of a loop, where symbols are those of the outside as they are captured.
fn within<'c, T>(graphs: &mut Graphs<'c>, inside: &mut Captures, f: impl FnOnce(&mut Graphs<'c>) -> T) -> T {
    graphs.symbols.enter(std::mem::take(inside));
    let done = f(graphs);
    *inside = graphs.symbols.leave();
    done
}

/// The types that a graph says its first inputs have.
fn declared_inputs(graphs: &mut Graphs<'_>, graph: &NamedGraph, count: usize) -> Result<Vec<Declared>> {
    let inputs = graph.graph.inputs.get(..count);
    let inputs = inputs.ok_or_else(|| NodeError::invalid("the loop's body takes less than its state"))?;
    let declared = |input: &Argument| match input {
        Argument::AsTensor(tensor) => {
            graphs.declared(&graph.graph, &tensor.name).map_err(|why| NodeError::unsupported(why.to_string()))
        }
        _ => Err(NodeError::unsupported("a loop carries what is no tensor")),
    };
    inputs.iter().map(declared).collect()
}

fn as_values(tensors: &[Expr]) -> impl Iterator<Item = Value> + '_ {
    tensors.iter().cloned().map(Value::Tensor)
}

/// `while_loop(test, body, carried, additional)`.
pub fn while_loop(
    graphs: &mut Graphs<'_>,
    builder: &mut BlockBuilder,
    node: &Node,
    names: &Names,
    _: &[Declared],
) -> Outputs {
    let (test, body) = (graph(node, 0)?, graph(node, 1)?);
    let state = tensors(names, arg(node, 2)?)?;
    let others = values(names, arg(node, 3)?)?;
    let truth = |graphs: &mut Graphs<'_>, builder: &mut BlockBuilder, given: &[Value]| -> Result<Expr> {
        match results(graphs, builder, node, test, given, None)?.as_slice() {
            [truth] => condition(builder, node, truth.clone()),
            _ => Err(NodeError::invalid("the loop's condition is not one tensor")),
        }
    };
    let given: Vec<Value> = as_values(&state).chain(others.clone()).collect();
    let go = truth(graphs, builder, &given)?;
    let count = state.len();
    let looped = Loop { name: "while_loop", limit: None, go: Some(go), state, lists: Vec::new(), append: rows::APPEND };
    let done =
        looped.run(builder, &mut |builder: &mut BlockBuilder, inside: &mut Captures, iteration: &Iteration| {
            let others = captured(inside, &others);
            let given: Vec<Value> = as_values(&iteration.state).chain(others.clone()).collect();
            within(graphs, inside, |graphs| {
                let types = declared_inputs(graphs, body, count)?;
                let state = results(graphs, builder, node, body, &given, Some(&types))?;
                let given: Vec<Value> = as_values(&state).chain(others).collect();
                let go = truth(graphs, builder, &given)?;
                Ok(Next { go: Some(go), state, rows: Vec::new(), again: false })
            })
        })?;
    Ok(done.state.into_iter().map(Value::Tensor).collect())
}

/// What a loop over rows does.
struct OverRows<'n> {
    name: &'static str,
    node: &'n Node,
    body: &'n NamedGraph,
    /// The state, where it does not begin with the first rows.
    state: Option<Vec<Expr>>,
    tensors: Vec<Expr>,
    others: Vec<Value>,
}

/// `map_impl(body, tensors, additional)`.
pub fn map(graphs: &mut Graphs<'_>, builder: &mut BlockBuilder, node: &Node, names: &Names, _: &[Declared]) -> Outputs {
    OverRows::of(node, names, "map", 1, Some(Vec::new()))?.run(graphs, builder)
}

/// `scan(body, carried, tensors, additional)`.
pub fn scan(
    graphs: &mut Graphs<'_>,
    builder: &mut BlockBuilder,
    node: &Node,
    names: &Names,
    _: &[Declared],
) -> Outputs {
    let state = tensors(names, arg(node, 1)?)?;
    OverRows::of(node, names, "scan", 2, Some(state))?.run(graphs, builder)
}

/// `associative_scan(body, tensors, additional)`, from the first row to the last.
pub fn associative_scan(
    graphs: &mut Graphs<'_>,
    builder: &mut BlockBuilder,
    node: &Node,
    names: &Names,
    _: &[Declared],
) -> Outputs {
    OverRows::of(node, names, "associative_scan", 1, None)?.run(graphs, builder)
}

impl<'n> OverRows<'n> {
    /// The loop of a node whose first argument is the body, and whose tensors are argument `at`, with what the body takes besides behind them.
    fn of(node: &'n Node, names: &Names, name: &'static str, at: usize, state: Option<Vec<Expr>>) -> Result<Self> {
        let (tensors, others) = (tensors(names, arg(node, at)?)?, values(names, arg(node, at + 1)?)?);
        Ok(OverRows { name, node, body: graph(node, 0)?, state, tensors, others })
    }

    fn run(mut self, graphs: &mut Graphs<'_>, builder: &mut BlockBuilder) -> Outputs {
        let axes = vec![0; self.tensors.len()];
        let mut scope = Scope::new(builder);
        let length = scope.agree_on(&mut self.tensors, &axes)?;
        let state = match &self.state {
            Some(state) => state.clone(),
            None => self.tensors.iter().map(|tensor| zero_row(&mut scope, tensor)).collect::<Result<_>>()?,
        };
        // Of an associative scan every result is state and row.
        let carried = if self.state.is_some() { state.len() } else { 0 };
        let given = self.body.graph.outputs.len().checked_sub(carried);
        let given = given.ok_or_else(|| NodeError::invalid("the body gives less than its state"))?;
        let lists = (0..given).map(|_| rows::new(builder)).collect::<Result<Vec<_>>>()?;
        let limit = Some(length.clone());
        let looped = Loop { name: self.name, limit, go: None, state, lists: lists.clone(), append: rows::APPEND };
        let done =
            looped.run(builder, &mut |builder: &mut BlockBuilder, inside: &mut Captures, iteration: &Iteration| {
                self.iterate(graphs, builder, inside, iteration)
            })?;
        let mut values = Vec::new();
        if self.state.is_some() {
            values.extend(done.state.into_iter().map(Value::Tensor));
        }
        for (list, ty) in lists.into_iter().zip(&done.rows) {
            let stacked = rows::stack(builder, list, ty, Some(length.clone()), Along::FIRST)?;
            values.push(Value::Tensor(stacked));
        }
        Ok(values)
    }

    fn iterate(
        &self,
        graphs: &mut Graphs<'_>,
        builder: &mut BlockBuilder,
        inside: &mut Captures,
        iteration: &Iteration,
    ) -> Result<Next> {
        let mut read = Vec::new();
        for tensor in &self.tensors {
            let tensor = inside.expr(tensor);
            read.push(rows::row(&mut Scope::new(builder), tensor, 0, &iteration.index)?);
        }
        let others = captured(inside, &self.others);
        let given: Vec<Value> = as_values(&iteration.state).chain(as_values(&read)).chain(others).collect();
        let state = iteration.state.len();
        within(graphs, inside, |graphs| {
            let types = declared_inputs(graphs, self.body, state)?;
            let mut import =
                |builder: &mut BlockBuilder| results(graphs, builder, self.node, self.body, &given, Some(&types));
            if self.state.is_none() {
                let state = first_or(builder, &iteration.index, &read, &types, &mut import)?;
                let rows = state.iter().cloned().map(Into::into).collect();
                return Ok(Next { go: None, state, rows, again: false });
            }
            let mut next = import(builder)?;
            let rows = next.split_off(state.min(next.len())).into_iter().map(Into::into).collect();
            Ok(Next { go: None, state: next, rows, again: false })
        })
    }
}

/// A row of zeros, as a tensor's rows are.
fn zero_row(scope: &mut Scope<'_>, tensor: &Expr) -> Result<Expr> {
    let dims = scope.dims(tensor)?.split_off(1);
    scope.op("zeros", [Expr::shape(dims)], Attrs::new().with("dtype", scope.dtype(tensor)))
}

/// The rows themselves in the first iteration, and what a graph gives in others.
fn first_or(
    builder: &mut BlockBuilder,
    index: &PrimExpr,
    rows: &[Expr],
    types: &[Declared],
    other: &mut dyn FnMut(&mut BlockBuilder) -> Result<Vec<Expr>>,
) -> Result<Vec<Expr>> {
    builder.begin_scope();
    let first = builder.emit(Expr::tuple(rows.to_vec()))?;
    let true_branch = builder.end_scope(first)?;
    builder.begin_scope();
    let given = other(builder);
    let body = given.as_ref().map_or_else(|_| Expr::tuple([]), |given| Expr::tuple(given.clone()));
    let false_branch = builder.end_scope(body)?;
    given?;
    let ty = Type::tuple(types.iter().map(Declared::ty).collect::<Vec<_>>());
    let condition = Expr::prim(prim::eq(index, 0));
    let choice = builder.emit(Expr::If(Ref::new(If { condition, true_branch, false_branch, ty })))?;
    (0..types.len()).map(|i| Ok(builder.emit(Expr::field(choice.clone(), i))?)).collect()
}
