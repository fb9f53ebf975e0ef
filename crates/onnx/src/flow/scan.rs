//! `Scan`: a graph that is run for each row of its inputs, in either direction.

use relaxide_ir::prim::PrimExpr;
use relaxide_relax::{BlockBuilder, Expr};

use super::Boundary;
use super::rows::{self, Order};
use super::turns::{Next, Turn, Turns};
use crate::dims;
use crate::error::NodeError;
use crate::graph::{Graphs, Step};
use crate::names::Sight;
use crate::node::Node;
use crate::proto::GraphProto;
use crate::scope::Scope;
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

/// An input that is read row by row.
struct Scanned {
    tensor: Expr,
    axis: usize,
    order: Order,
}

/// `Scan` since version 9: state, and the rows of every turn.
pub fn scan(graphs: &mut Graphs, builder: &mut BlockBuilder, node: &Node) -> Result<Step> {
    let body = node.graph("body")?;
    let count = node.int("num_scan_inputs")?.and_then(|n| usize::try_from(n).ok()).filter(|n| *n >= 1);
    let count = count.ok_or_else(|| NodeError::invalid("`num_scan_inputs` must be a positive number"))?;
    let states = node.inputs.len().checked_sub(count).ok_or_else(|| NodeError::invalid("inputs are missing"))?;
    let mut scope = Scope::new(builder);
    let mut state = Vec::new();
    for i in 0..states {
        state.push(scope.tensor(node.input(i)?)?);
    }
    let (length, scanned) = scan_inputs(&mut scope, node, states, count)?;
    let given =
        body.output.len().checked_sub(states).ok_or_else(|| NodeError::invalid("the body's outputs are too few"))?;
    let lists = (0..given).map(|_| rows::new_list(builder)).collect::<Result<Vec<_>>>()?;
    let turns = Turns { name: "scan", limit: Some(length.clone()), go: None, state, lists: lists.clone() };
    let noted = graphs.noted();
    let done = turns.run(builder, &mut |builder: &mut BlockBuilder, inside: &mut Boundary, turn: &Turn| {
        body_turn(graphs, builder, body, &scanned, (inside, turn))
    });
    if graphs.noted() > noted {
        return Ok(Step::Noted);
    }
    let done = done?;
    let mut values = done.state;
    let (axes, directions) = (node.ints("scan_output_axes")?, node.ints("scan_output_directions")?);
    for (i, (list, ty)) in lists.into_iter().zip(&done.rows).enumerate() {
        let rank = ty.as_tensor().and_then(|t| usize::try_from(t.ndim + 1).ok()).unwrap_or(1);
        let axis = at(&axes, i).unwrap_or(0);
        let axis = dims::axis(axis, rank)
            .ok_or_else(|| NodeError::invalid(format!("axis {axis} is not one of {rank} axes")))?;
        values.push(rows::stack(builder, list, ty, Some(length.clone()), (axis, order(&directions, i)))?);
    }
    Ok(Step::Values(values.into_iter().map(Value::Computed).collect()))
}

fn at(list: &Option<Vec<i64>>, i: usize) -> Option<i64> {
    list.as_ref().and_then(|list| list.get(i)).copied()
}

fn order(directions: &Option<Vec<i64>>, i: usize) -> Order {
    if at(directions, i) == Some(1) { Order::Backward } else { Order::Forward }
}

/// The inputs that are read row by row, and how many rows they have.
fn scan_inputs(scope: &mut Scope, node: &Node, from: usize, count: usize) -> Result<(PrimExpr, Vec<Scanned>)> {
    let (axes, directions) = (node.ints("scan_input_axes")?, node.ints("scan_input_directions")?);
    let mut tensors = Vec::new();
    let mut places = Vec::new();
    for i in 0..count {
        let tensor = scope.tensor(node.input(from + i)?)?;
        let rank = scope.dims(&tensor)?.len();
        let axis = at(&axes, i).unwrap_or(0);
        places.push(
            dims::axis(axis, rank)
                .ok_or_else(|| NodeError::invalid(format!("axis {axis} is not one of {rank} axes")))?,
        );
        tensors.push(tensor);
    }
    let length = scope.agree_on(&mut tensors, &places)?;
    let scanned = tensors.into_iter().zip(places).enumerate();
    let scanned = scanned.map(|(i, (tensor, axis))| Scanned { tensor, axis, order: order(&directions, i) }).collect();
    Ok((length, scanned))
}

/// One turn of a body.
fn body_turn(
    graphs: &mut Graphs,
    builder: &mut BlockBuilder,
    body: &GraphProto,
    scanned: &[Scanned],
    (inside, turn): (&mut Boundary, &Turn),
) -> Result<Next> {
    let mut inputs: Vec<Value> = turn.state.iter().cloned().map(Value::Computed).collect();
    for scan in scanned {
        let tensor = inside.expr(&scan.tensor);
        let index = match (&turn.limit, scan.order) {
            (Some(limit), Order::Backward) => limit - 1 - &turn.index,
            _ => turn.index.clone(),
        };
        inputs.push(Value::Computed(rows::row(&mut Scope::new(builder), tensor, scan.axis, &index)?));
    }
    let values = graphs.inner(builder, body, inputs, Sight::Captured(std::mem::take(inside)));
    if let Some(boundary) = graphs.names.close() {
        *inside = boundary;
    }
    let values = values.ok_or_else(|| NodeError::invalid("problems are noted"))?;
    let mut scope = Scope::new(builder);
    let mut exprs = values.iter().map(|v| scope.tensor(v)).collect::<Result<Vec<_>>>()?;
    let rows = exprs.split_off(turn.state.len().min(exprs.len()));
    Ok(Next { go: None, state: exprs, rows })
}
