//! Recurrent layers, as [the front ends' loops](relaxide_frontend::recurrent). PyTorch keeps a layer's gates side by side: input,
//! forget, cell, output; reset, update, new.

use relaxide_ffi::DataType;
use relaxide_frontend::Scope;
use relaxide_frontend::recurrent::{self, Cell, CellKind, Function, Matrix, Steps, joined, slice_columns};
use relaxide_frontend::rows::{self, Order};
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;

use super::Table;
use crate::error::NodeError;
use crate::rule::{Cx, Outputs, Result};
use crate::value::Value;

/// The rules.
pub const TABLE: Table = &[
    ("aten.gru.input", gru),
    ("aten.lstm.input", lstm),
    ("aten.rnn_relu.input", rnn_relu),
    ("aten.rnn_tanh.input", rnn_tanh),
];

/// Which cell it is, as this file's layers have it.
#[derive(Clone, Copy)]
struct CellForm {
    kind: CellKind,
    /// Where its gates lie.
    places: &'static [i64],
    functions: &'static [Function],
}

fn lstm(cx: &mut Cx<'_>) -> Outputs {
    const FUNCTIONS: &[Function] = &[Function("sigmoid"), Function("tanh"), Function("tanh")];
    let kind = CellKind::Lstm { input_forget: false };
    let state = cx.tensors("hx")?;
    if state.len() != 2 {
        return Err(NodeError::invalid(format!("`hx` has {} tensors, not 2", state.len())));
    }
    layers(cx, CellForm { kind, places: &[0, 3, 1, 2], functions: FUNCTIONS }, state)
}

fn gru(cx: &mut Cx<'_>) -> Outputs {
    let kind = CellKind::Gru { linear_before_reset: true };
    let state = vec![cx.tensor("hx")?];
    layers(cx, CellForm { kind, places: &[1, 0, 2], functions: &[Function("sigmoid"), Function("tanh")] }, state)
}

fn rnn_tanh(cx: &mut Cx<'_>) -> Outputs {
    let state = vec![cx.tensor("hx")?];
    layers(cx, CellForm { kind: CellKind::Rnn, places: &[0], functions: &[Function("tanh")] }, state)
}

fn rnn_relu(cx: &mut Cx<'_>) -> Outputs {
    let state = vec![cx.tensor("hx")?];
    layers(cx, CellForm { kind: CellKind::Rnn, places: &[0], functions: &[Function("nn.relu")] }, state)
}

/// The weights of one direction of one layer.
struct Weights<'a> {
    of_input: &'a Expr,
    of_state: &'a Expr,
    /// What is added to both.
    biases: Option<(&'a Expr, &'a Expr)>,
    projection: Option<&'a Expr>,
}

/// The weights of each direction, in the order of the layers.
fn weights<'a>(params: &'a [Expr], count: usize, biased: bool) -> Result<Vec<Weights<'a>>> {
    let least = if biased { 4 } else { 2 };
    let each = params.len() / count.max(1);
    if each * count != params.len() || !(least..=least + 1).contains(&each) {
        let got = params.len();
        return Err(NodeError::invalid(format!(
            "{got} weights are given to {count} directions of {least} or {}",
            least + 1
        )));
    }
    let own = |params: &'a [Expr]| Weights {
        of_input: &params[0],
        of_state: &params[1],
        biases: biased.then(|| (&params[2], &params[3])),
        projection: params.get(least),
    };
    Ok(params.chunks(each).map(own).collect())
}

/// All layers: their outputs, and the last state of each.
fn layers(cx: &mut Cx<'_>, form: CellForm, state: Vec<Expr>) -> Outputs {
    if cx.flag("train", false)? && cx.float_or("dropout", 0.0)? > 0.0 {
        return Err(NodeError::unsupported("dropout between layers while training; export the module after `eval()`"));
    }
    let batch_first = cx.flag("batch_first", false)?;
    let orders: &[Order] =
        if cx.flag("bidirectional", false)? { &[Order::Forward, Order::Backward] } else { &[Order::Forward] };
    let count = usize::try_from(cx.int_or("num_layers", 1)?).unwrap_or(0);
    let mut x = cx.tensor("input")?;
    let rank = cx.rank(&x)?;
    if rank != 3 {
        return Err(NodeError::invalid(format!("`input` has {rank} axes, not 3")));
    }
    if batch_first {
        x = cx.permute(x, &[1, 0, 2])?;
    }
    let params = cx.tensors("params")?;
    let weights = weights(&params, count.saturating_mul(orders.len()), cx.flag("has_biases", true)?)?;
    let mut last = vec![Vec::new(); state.len()];
    for (layer, weights) in weights.chunks(orders.len()).enumerate() {
        let mut outputs = Vec::new();
        for (direction, (weights, order)) in weights.iter().zip(orders).enumerate() {
            let at = prim::int((layer * orders.len() + direction) as i64);
            let mut scope = Scope::new(cx.builder);
            let own = state.iter().map(|state| rows::row(&mut scope, state.clone(), 0, &at));
            let own = own.collect::<Result<Vec<_>>>()?;
            let done = one_direction(cx, form, &x, weights, *order, own)?;
            outputs.push(done.rows);
            for (all, own) in last.iter_mut().zip(done.state) {
                let mut dims = cx.shape(&own)?;
                dims.insert(0, prim::int(1));
                all.push(cx.reshape(own, &dims)?);
            }
        }
        x = joined(&mut Scope::new(cx.builder), outputs, 2)?;
    }
    if batch_first {
        x = cx.permute(x, &[1, 0, 2])?;
    }
    let mut values = vec![Value::Tensor(x)];
    for state in last {
        values.push(Value::Tensor(joined(&mut Scope::new(cx.builder), state, 0)?));
    }
    Ok(values)
}

fn one_direction(
    cx: &mut Cx<'_>,
    form: CellForm,
    x: &Expr,
    weights: &Weights<'_>,
    order: Order,
    mut state: Vec<Expr>,
) -> Result<recurrent::Direction> {
    let (kind, gates) = (form.kind, form.kind.gates());
    let width = cx.shape(weights.of_input)?.first().and_then(PrimExpr::as_int);
    let Some(width) = width.filter(|width| *width > 0 && width % gates == 0) else {
        return Err(NodeError::invalid(format!("a weight has not the rows of {gates} gates")));
    };
    let hidden = width / gates;
    let [steps, batch, inputs] = <[PrimExpr; 3]>::try_from(cx.shape(x)?)
        .map_err(|_| NodeError::invalid("what a layer is given has not 3 axes"))?;
    // One product for all steps.
    let flat = cx.reshape(x.clone(), &[relaxide_frontend::dims::product([&steps, &batch]), inputs])?;
    let of_input = cx.permute(weights.of_input.clone(), &[1, 0])?;
    let mut fed = cx.call("matmul", [flat, of_input])?;
    let mut hidden_bias = None;
    if let Some((own, fed_back)) = weights.biases {
        let mut bias = fed_back.clone();
        if let CellKind::Gru { .. } = kind {
            // The bias of the last gate is part of what is reset.
            let mut scope = Scope::new(cx.builder);
            hidden_bias = Some(slice_columns(&mut scope, bias.clone(), 2 * hidden, hidden)?);
            let first = slice_columns(&mut scope, bias, 0, 2 * hidden)?;
            let zero = zeros(&mut scope, hidden, scope_dtype(own))?;
            bias = joined(&mut scope, vec![first, zero], 0)?;
        }
        let bias = cx.call("add", [own.clone(), bias])?;
        fed = cx.call("add", [fed, bias])?;
    }
    let fed = cx.reshape(fed, &[steps.clone(), batch.clone(), prim::int(width)])?;
    let recurrent = Matrix(cx.permute(weights.of_state.clone(), &[1, 0])?);
    let projection = match weights.projection {
        Some(matrix) => Some(cx.permute(matrix.clone(), &[1, 0])?),
        None => None,
    };
    let (places, activations) = (form.places, form.functions.to_vec());
    let (reset, peepholes, clip) = (None, None, None);
    let cell = Cell { kind, hidden, places, recurrent, reset, hidden_bias, peepholes, projection, activations, clip };
    let sizes = [cell.outputs()?, hidden];
    let mut scope = Scope::new(cx.builder);
    for (state, size) in state.iter_mut().zip(sizes) {
        *state = scope.agree(state.clone(), &[batch.clone(), prim::int(size)])?;
    }
    let steps = Steps { gates: fed, count: steps, batch, lengths: None, order };
    recurrent::run(cx.builder, &cell, &steps, state)
}

fn scope_dtype(tensor: &Expr) -> DataType {
    tensor.ty().as_tensor().map_or(DataType::float(32), |ty| ty.dtype)
}

fn zeros(scope: &mut Scope<'_>, count: i64, dtype: DataType) -> Result<Expr> {
    scope.op("zeros", [Expr::shape([prim::int(count)])], Attrs::new().with("dtype", dtype))
}
