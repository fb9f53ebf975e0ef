//! `RNN`, `GRU` and `LSTM`: a cell that goes over a sequence in one or both directions.
//!
//! ```text
//! gates = X · Wᵀ + b                       one product for all steps
//! for t in 0 .. T:                         a loop of the program; a few steps are unrolled
//!     h, c = cell(gates[t], h, c)
//!     Y[t] = h
//! ```
//!
//! Sequences of a batch may end early (`sequence_lens`): from there on the state stays and the output is zero, and in the
//! other direction a sequence begins where it ends. Sequences that lie behind the batch (`layout` 1) are transposed first.

mod activation;
mod factor;

use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::{BlockBuilder, Expr};

use crate::dims;
use crate::error::NodeError;
use crate::flow::rows::{self, Order};
use crate::graph::{Graphs, Step};
use crate::node::Node;
use crate::scope::Scope;
use crate::value::Value;
use relaxide_frontend::recurrent::{self, CellKind, Direction, Factor as _, Steps, joined, slice_columns};

use factor::{Factor, Inputs};

type Result<T> = std::result::Result<T, NodeError>;

/// A cell of a node.
type Cell = recurrent::Cell<Factor, activation::Activation>;

/// `RNN`.
pub fn rnn(_: &mut Graphs, builder: &mut BlockBuilder, node: &Node) -> Result<Step> {
    layers(builder, node, CellKind::Rnn, WeightForm::Floats)
}

/// `GRU`.
pub fn gru(_: &mut Graphs, builder: &mut BlockBuilder, node: &Node) -> Result<Step> {
    layers(
        builder,
        node,
        CellKind::Gru { linear_before_reset: node.flag("linear_before_reset", false)? },
        WeightForm::Floats,
    )
}

/// `LSTM`.
pub fn lstm(_: &mut Graphs, builder: &mut BlockBuilder, node: &Node) -> Result<Step> {
    layers(builder, node, CellKind::Lstm { input_forget: node.flag("input_forget", false)? }, WeightForm::Floats)
}

/// ONNX Runtime's `DynamicQuantizeLSTM`: weights in 8 bits, inputs and states quantized as they come.
pub fn quantized_lstm(_: &mut Graphs, builder: &mut BlockBuilder, node: &Node) -> Result<Step> {
    layers(builder, node, CellKind::Lstm { input_forget: node.flag("input_forget", false)? }, WeightForm::Bytes)
}

/// How the weights of a layer are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WeightForm {
    /// A row for each gate's output.
    Floats,
    /// Quantized, with a row for each input.
    Bytes,
}

/// What a node says about all directions.
struct Layer {
    kind: CellKind,
    /// `[steps, batch, inputs]`.
    x: Expr,
    steps: PrimExpr,
    batch: PrimExpr,
    hidden: i64,
    lengths: Option<Expr>,
    clip: Option<f64>,
    weights: WeightForm,
    /// Whether its input, states and outputs have the batch in front.
    batch_first: bool,
}

fn layers(builder: &mut BlockBuilder, node: &Node, kind: CellKind, weights: WeightForm) -> Result<Step> {
    let mut scope = Scope::new(builder);
    let orders: &[Order] = match node.str_or("direction", "forward")? {
        "forward" => &[Order::Forward],
        "reverse" => &[Order::Backward],
        "bidirectional" => &[Order::Forward, Order::Backward],
        other => return Err(NodeError::invalid(format!("`direction` is \"{other}\""))),
    };
    let layer = layer(&mut scope, node, kind, weights)?;
    let activations = activation::of(node, kind.defaults(), orders.len())?;
    let each = activations.len() / orders.len();
    let mut directions = Vec::new();
    for (d, order) in orders.iter().enumerate() {
        let mine = activations.get(d * each..(d + 1) * each).unwrap_or_default().to_vec();
        directions.push(direction(builder, node, &layer, Which { index: d, count: orders.len() }, *order, mine)?);
    }
    let mut scope = Scope::new(builder);
    let mut outputs = vec![all_steps(&mut scope, &layer, &directions)?];
    for part in 0..directions[0].state.len() {
        let mut last = Vec::new();
        for direction in &directions {
            let dims = vec![prim::int(1), layer.batch.clone(), prim::int(layer.hidden)];
            last.push(scope.reshape(direction.state[part].clone(), dims)?);
        }
        let joined = joined(&mut scope, last, 0)?;
        outputs.push(if layer.batch_first { scope.transpose(joined, &[1, 0, 2])? } else { joined });
    }
    Ok(Step::Values(outputs.into_iter().map(Value::Computed).collect()))
}

/// The layer of a node: its input with the steps in front.
fn layer(scope: &mut Scope, node: &Node, kind: CellKind, weights: WeightForm) -> Result<Layer> {
    let batch_first = node.flag("layout", false)?;
    let mut x = scope.tensor(node.input(0)?)?;
    if scope.dims(&x)?.len() != 3 {
        return Err(NodeError::invalid(format!("the input has {} axes, not 3", scope.dims(&x)?.len())));
    }
    if batch_first {
        x = scope.transpose(x, &[1, 0, 2])?;
    }
    let shape = scope.dims(&x)?;
    let weight_dims = scope.value_dims(node.input(2)?)?;
    let of_state = if weights == WeightForm::Bytes { 1 } else { 2 };
    let hidden = match (node.int("hidden_size")?, weight_dims.get(of_state).and_then(PrimExpr::as_int)) {
        (Some(hidden), _) | (None, Some(hidden)) if hidden > 0 => hidden,
        _ => return Err(NodeError::invalid("`hidden_size` is missing")),
    };
    let lengths = match node.optional(4) {
        Some(value) => {
            let lengths = scope.tensor(value)?;
            Some(scope.agree(lengths, &shape[1..2])?)
        }
        None => None,
    };
    let (steps, batch, clip) = (shape[0].clone(), shape[1].clone(), node.float("clip")?);
    Ok(Layer { kind, x, steps, batch, hidden, lengths, clip, weights, batch_first })
}

/// One of the directions of a layer.
#[derive(Clone, Copy, Debug)]
struct Which {
    index: usize,
    /// How many there are.
    count: usize,
}

/// The part of a tensor that belongs to a direction.
fn part(scope: &mut Scope, value: &Value, of: Which, axis: usize) -> Result<Expr> {
    let Which { index, count } = of;
    let mut dims = scope.value_dims(value)?;
    match dims.get_mut(axis) {
        // What only the run tells is checked there.
        Some(n) if n.as_int().is_none_or(|n| n == count as i64) => *n = prim::int(count as i64),
        _ => return Err(NodeError::invalid(format!("a tensor has not {count} directions in axis {axis}"))),
    }
    let x = scope.tensor(value)?;
    let x = scope.agree(x, &dims)?;
    if count == 1 {
        dims.remove(axis);
        return scope.reshape(x, dims);
    }
    rows::row(scope, x, axis, &prim::int(index as i64))
}

/// The weights of a direction as a cell, and its share of the gates from the input: all steps at once.
fn cell_of(
    scope: &mut Scope,
    node: &Node,
    layer: &Layer,
    of: Which,
    activations: Vec<activation::Activation>,
) -> Result<(Cell, Expr)> {
    let (hidden, gates) = (layer.hidden, layer.kind.gates());
    let inputs = scope.dims(&layer.x)?[2].clone();
    let own = [inputs.clone(), prim::int(gates * hidden)];
    let fed = [prim::int(hidden), prim::int(gates * hidden)];
    let (weights, recurrent) = if layer.weights == WeightForm::Bytes {
        let inputs = |matrix, scale| Inputs { matrix, scale };
        let weights = Factor::quantized(scope, node, inputs(1, 8), of, own)?;
        (weights, Factor::quantized(scope, node, inputs(2, 10), of, fed)?)
    } else {
        (Factor::plain(scope, node, 1, of, own)?, Factor::plain(scope, node, 2, of, fed)?)
    };

    let rows = dims::product([&layer.steps, &layer.batch]);
    let flat = scope.reshape(layer.x.clone(), vec![rows, inputs])?;
    let mut x = weights.product(scope, flat)?;
    let mut hidden_bias = None;
    if let Some(bias) = node.optional(3) {
        let bias = part(scope, bias, of, 0)?;
        let own = slice_columns(scope, bias.clone(), 0, gates * hidden)?;
        let fed = slice_columns(scope, bias.clone(), gates * hidden, gates * hidden)?;
        x = scope.call("add", [x, own])?;
        if layer.kind == (CellKind::Gru { linear_before_reset: true }) {
            // The bias behind the reset is part of what is reset.
            hidden_bias = Some(slice_columns(scope, fed.clone(), 2 * hidden, hidden)?);
            let first = slice_columns(scope, fed, 0, 2 * hidden)?;
            let attrs = Attrs::new().with("dtype", scope.dtype(&x));
            let zero = scope.op("zeros", [Expr::shape([prim::int(hidden)])], attrs)?;
            let fed = joined(scope, vec![first, zero], 0)?;
            x = scope.call("add", [x, fed])?;
        } else {
            x = scope.call("add", [x, fed])?;
        }
    }
    let x = scope.reshape(x, vec![layer.steps.clone(), layer.batch.clone(), prim::int(gates * hidden)])?;
    let (recurrent, reset) = match (layer.kind, recurrent) {
        (CellKind::Gru { linear_before_reset: false }, Factor::Plain(recurrent)) => {
            let first = slice_columns(scope, recurrent.clone(), 0, 2 * hidden)?;
            (Factor::Plain(first), Some(slice_columns(scope, recurrent, 2 * hidden, hidden)?))
        }
        (_, recurrent) => (recurrent, None),
    };
    let peepholes = match (layer.kind, node.optional(7)) {
        (CellKind::Lstm { .. }, Some(value)) => {
            let all = part(scope, value, of, 0)?;
            let mut one = |i: i64| slice_columns(scope, all.clone(), i * hidden, hidden);
            Some([one(0)?, one(1)?, one(2)?])
        }
        _ => None,
    };
    let (kind, clip) = (layer.kind, layer.clip);
    let (places, projection) = (kind.in_order(), None);
    let cell = Cell { kind, hidden, places, recurrent, reset, hidden_bias, peepholes, projection, activations, clip };
    Ok((cell, x))
}

/// The state before the first step.
fn initial(scope: &mut Scope, node: &Node, layer: &Layer, of: Which) -> Result<Vec<Expr>> {
    let parts = if matches!(layer.kind, CellKind::Lstm { .. }) { 2 } else { 1 };
    let dims = [layer.batch.clone(), prim::int(layer.hidden)];
    let mut state = Vec::new();
    for i in 0..parts {
        state.push(match node.optional(5 + i) {
            Some(value) => {
                let given = part(scope, value, of, usize::from(layer.batch_first))?;
                scope.agree(given, &dims)?
            }
            None => {
                let dtype = scope.dtype(&layer.x);
                let zero = scope.scalar(0.0, dtype)?;
                scope.op("full", [Expr::shape(dims.clone()), zero], Attrs::new().with("dtype", dtype))?
            }
        });
    }
    Ok(state)
}

fn direction(
    builder: &mut BlockBuilder,
    node: &Node,
    layer: &Layer,
    of: Which,
    order: Order,
    activations: Vec<activation::Activation>,
) -> Result<Direction> {
    let mut scope = Scope::new(builder);
    let (cell, gates) = cell_of(&mut scope, node, layer, of, activations)?;
    let state = initial(&mut scope, node, layer, of)?;
    let steps =
        Steps { gates, count: layer.steps.clone(), batch: layer.batch.clone(), lengths: layer.lengths.clone(), order };
    recurrent::run(builder, &cell, &steps, state)
}

/// The outputs of all directions: `[steps, directions, batch, hidden]`, or batches first.
fn all_steps(scope: &mut Scope, layer: &Layer, directions: &[Direction]) -> Result<Expr> {
    let mut parts = Vec::new();
    for direction in directions {
        let dims = vec![layer.steps.clone(), prim::int(1), layer.batch.clone(), prim::int(layer.hidden)];
        parts.push(scope.reshape(direction.rows.clone(), dims)?);
    }
    let all = joined(scope, parts, 1)?;
    if layer.batch_first { scope.transpose(all, &[2, 0, 1, 3]) } else { Ok(all) }
}
