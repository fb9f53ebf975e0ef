//! `Scan`: a graph that is run for each row of its inputs, in either direction.

use relaxide_ir::prim::PrimExpr;
use relaxide_relax::BlockBuilder;

use super::rows::{self, Along, Order};
use super::state::StatePart;
use super::{capture, carried};
use crate::dims;
use crate::error::NodeError;
use crate::graph::{Graphs, Step};
use crate::names::Visibility;
use crate::node::Node;
use crate::proto::GraphProto;
use crate::scope::Scope;
use crate::value::Value;
use relaxide_frontend::{Captures, Iteration, Loop, Next};

type Result<T> = std::result::Result<T, NodeError>;

/// An input that is to be read row by row: its axis may count from the last.
struct ScanInput {
    tensor: Value,
    axis: i64,
    order: Order,
}

/// An input that is read row by row.
struct Scanned {
    tensor: Value,
    axis: usize,
    order: Order,
}

/// `Scan` since version 9: state, and the rows of every iteration.
pub fn scan(graphs: &mut Graphs, builder: &mut BlockBuilder, node: &Node) -> Result<Step> {
    let body = node.graph("body")?;
    let count = node.int("num_scan_inputs")?.and_then(|n| usize::try_from(n).ok()).filter(|n| *n >= 1);
    let count = count.ok_or_else(|| NodeError::invalid("`num_scan_inputs` must be a positive number"))?;
    let states = node.inputs.len().checked_sub(count).ok_or_else(|| NodeError::invalid("inputs are missing"))?;
    let mut state = Vec::new();
    for i in 0..states {
        state.push(node.input(i)?.clone());
    }
    let (axes, directions) = (node.ints("scan_input_axes")?, node.ints("scan_input_directions")?);
    let mut inputs = Vec::new();
    for i in 0..count {
        let (axis, order) = (at(&axes, i).unwrap_or(0), order(&directions, i));
        inputs.push(ScanInput { tensor: node.input(states + i)?.clone(), axis, order });
    }
    let (axes, directions) = (node.ints("scan_output_axes")?, node.ints("scan_output_directions")?);
    let outputs = |i: usize| (at(&axes, i).unwrap_or(0), order(&directions, i));
    let Some(values) = over_rows(graphs, builder, body, &state, inputs, &outputs)? else { return Ok(Step::Noted) };
    Ok(Step::Values(values))
}

/// `Scan` of version 8: one such scan for each item of a batch, whose axis is the first of every input and output.
pub fn scan_batch(graphs: &mut Graphs, builder: &mut BlockBuilder, node: &Node) -> Result<Step> {
    if node.optional(0).is_some() {
        return Err(NodeError::unsupported("lengths of the items (`sequence_lens`) are not supported")
            .help("convert the model: `onnx.version_converter.convert_version(model, 13)`"));
    }
    let body = node.graph("body")?;
    let count = node.int("num_scan_inputs")?.and_then(|n| usize::try_from(n).ok()).filter(|n| *n >= 1);
    let count = count.ok_or_else(|| NodeError::invalid("`num_scan_inputs` must be a positive number"))?;
    let given = node.inputs.len().saturating_sub(1);
    let states = given.checked_sub(count).ok_or_else(|| NodeError::invalid("inputs are missing"))?;
    let directions = node.ints("directions")?;
    let mut tensors = Vec::new();
    for i in 0..given {
        tensors.push(node.input(i + 1)?.clone());
    }
    let length = carried::agree_on(&mut Scope::new(builder), &mut tensors, &vec![0; given])?;
    let lists = (0..body.output.len()).map(|_| rows::new(builder)).collect::<Result<Vec<_>>>()?;
    let looped = Loop {
        name: "batch",
        limit: Some(length.clone()),
        go: None,
        state: Vec::new(),
        lists: lists.clone(),
        append: rows::APPEND,
    };
    let noted = graphs.noted();
    let done = looped.run(builder, &mut |builder: &mut BlockBuilder, inside: &mut Captures, iteration: &Iteration| {
        let mut items = Vec::new();
        for tensor in &tensors {
            let tensor = capture(inside, tensor);
            items.push(rows::row_of(&mut Scope::new(builder), &tensor, 0, &iteration.index)?);
        }
        let scanned = items.split_off(states);
        let given = scanned.into_iter().enumerate();
        let inputs = given.map(|(i, tensor)| ScanInput { tensor, axis: 0, order: order(&directions, i) }).collect();
        graphs.names.open(Visibility::Captured(std::mem::take(inside)));
        let item = over_rows(graphs, builder, body, &items, inputs, &|_| (0, Order::Forward));
        if let Some(captures) = graphs.names.close() {
            *inside = captures;
        }
        let values = item?.ok_or_else(|| NodeError::invalid("problems are noted"))?;
        let mut scope = Scope::new(builder);
        let rows = values.iter().map(|value| carried::row_of(&mut scope, value)).collect::<Result<Vec<_>>>()?;
        Ok(Next { go: None, state: Vec::new(), rows, again: false })
    });
    if graphs.noted() > noted {
        return Ok(Step::Noted);
    }
    let mut values = Vec::new();
    for (list, ty) in lists.into_iter().zip(&done?.rows) {
        values.push(rows::stack_values(builder, list, ty, Some(length.clone()), Along::FIRST)?);
    }
    Ok(Step::Values(values))
}

/// A scan: state, and inputs with the axis and the order in which they are read; final state and what the iterations give, along
/// axes and in orders that `outputs` knows. `None` where problems are noted.
fn over_rows(
    graphs: &mut Graphs,
    builder: &mut BlockBuilder,
    body: &GraphProto,
    given_state: &[Value],
    inputs: Vec<ScanInput>,
    outputs: &dyn Fn(usize) -> (i64, Order),
) -> Result<Option<Vec<Value>>> {
    let (length, scanned) = scan_inputs(&mut Scope::new(builder), inputs)?;
    let (mut state, mut parts) = (Vec::new(), Vec::new());
    for (i, value) in given_state.iter().enumerate() {
        let (expr, part) = StatePart::of(builder, value, body.input.get(i))?;
        state.push(expr);
        parts.push(part);
    }
    let given = body.output.len().checked_sub(state.len());
    let given = given.ok_or_else(|| NodeError::invalid("the body's outputs are too few"))?;
    let lists = (0..given).map(|_| rows::new(builder)).collect::<Result<Vec<_>>>()?;
    let looped =
        Loop { name: "scan", limit: Some(length.clone()), go: None, state, lists: lists.clone(), append: rows::APPEND };
    let noted = graphs.noted();
    let done = looped.run(builder, &mut |builder: &mut BlockBuilder, inside: &mut Captures, iteration: &Iteration| {
        iterate(graphs, builder, &mut ScanBody { graph: body, scanned: &scanned, parts: &mut parts }, inside, iteration)
    });
    if graphs.noted() > noted {
        return Ok(None);
    }
    let done = done?;
    let mut values = Vec::new();
    for (expr, part) in done.state.into_iter().zip(&parts) {
        values.push(part.value(builder, expr)?);
    }
    for (i, (list, ty)) in lists.into_iter().zip(&done.rows).enumerate() {
        let rank = ty.as_tensor().and_then(|t| usize::try_from(t.ndim + 1).ok()).unwrap_or(1);
        let (axis, order) = outputs(i);
        values.push(rows::stack_values(
            builder,
            list,
            ty,
            Some(length.clone()),
            Along { axis: place(axis, rank)?, order },
        )?);
    }
    Ok(Some(values))
}

fn place(axis: i64, rank: usize) -> Result<usize> {
    dims::axis(axis, rank).ok_or_else(|| NodeError::invalid(format!("axis {axis} is not one of {rank} axes")))
}

fn at(list: &Option<Vec<i64>>, i: usize) -> Option<i64> {
    list.as_ref().and_then(|list| list.get(i)).copied()
}

fn order(directions: &Option<Vec<i64>>, i: usize) -> Order {
    if at(directions, i) == Some(1) { Order::Backward } else { Order::Forward }
}

/// The inputs that are read row by row, and how many rows they have.
fn scan_inputs(scope: &mut Scope, inputs: Vec<ScanInput>) -> Result<(PrimExpr, Vec<Scanned>)> {
    let mut tensors = Vec::new();
    let mut places = Vec::new();
    let mut orders = Vec::new();
    for ScanInput { tensor, axis, order } in inputs {
        places.push(place(axis, scope.value_dims(&tensor)?.len())?);
        tensors.push(tensor);
        orders.push(order);
    }
    let length = carried::agree_on(scope, &mut tensors, &places)?;
    let scanned = tensors.into_iter().zip(places).zip(orders);
    Ok((length, scanned.map(|((tensor, axis), order)| Scanned { tensor, axis, order }).collect()))
}

/// A body, and what it is given in each iteration.
struct ScanBody<'a> {
    graph: &'a GraphProto,
    scanned: &'a [Scanned],
    /// Its state.
    parts: &'a mut [StatePart],
}

/// One iteration of a body.
fn iterate(
    graphs: &mut Graphs,
    builder: &mut BlockBuilder,
    body: &mut ScanBody<'_>,
    inside: &mut Captures,
    iteration: &Iteration,
) -> Result<Next> {
    let mut inputs = Vec::new();
    for (expr, part) in iteration.state.iter().zip(&*body.parts) {
        inputs.push(part.value(builder, expr.clone())?);
    }
    for scan in body.scanned {
        let tensor = capture(inside, &scan.tensor);
        let index = match (&iteration.limit, scan.order) {
            (Some(limit), Order::Backward) => limit - 1 - &iteration.index,
            _ => iteration.index.clone(),
        };
        inputs.push(rows::row_of(&mut Scope::new(builder), &tensor, scan.axis, &index)?);
    }
    let values = graphs.inner(builder, body.graph, inputs, Visibility::Captured(std::mem::take(inside)));
    if let Some(captures) = graphs.names.close() {
        *inside = captures;
    }
    let values = values.ok_or_else(|| NodeError::invalid("problems are noted"))?;
    let mut scope = Scope::new(builder);
    let (mut state, mut rows) = (Vec::new(), Vec::new());
    let mut again = false;
    for (i, value) in values.iter().enumerate() {
        match body.parts.get_mut(i) {
            Some(part) => {
                let (expr, changed) = part.after(&mut scope, value)?;
                again |= changed;
                state.push(expr);
            }
            None => rows.push(carried::row_of(&mut scope, value)?),
        }
    }
    Ok(Next { go: None, state, rows, again })
}
