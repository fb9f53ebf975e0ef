//! A recurrent layer: a cell that goes over the steps of sequences.
//!
//! ```text
//! gates = x · W + b                        one product for all steps, by the front end
//! for t in 0 .. steps:                     a loop of the program; a few steps are unrolled
//!     h, c = cell(gates[t], h, c)
//!     rows[t] = h
//! ```
//!
//! What cells multiply the state with is a [`Factor`], what they apply to their gates an [`Activation`]; a front end has its own
//! where its format knows more than [`Matrix`] and [`Function`]. Sequences of a batch may end early (`lengths`): from there on the
//! state stays and the output is zero, and in the other direction a sequence begins where it ends.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::{BlockBuilder, Expr};
use relaxide_tir::te;

use crate::rows::{self, Along, Order};
use crate::{Captures, Iteration, Loop, Next, NodeError, Result, Scope};

mod cell;

pub use cell::{Activation, Cell, CellKind, Factor, Function, Matrix, slice_columns};

/// Sequences of up to this many steps are unrolled.
const WRITTEN_OUT: i64 = 4;

/// What a cell goes over.
pub struct Steps {
    /// What the inputs of all steps are to the gates: `[steps, batch, gates * hidden]`.
    pub gates: Expr,
    /// How many there are.
    pub count: PrimExpr,
    /// How many sequences.
    pub batch: PrimExpr,
    /// How many of the steps each sequence has, where they differ.
    pub lengths: Option<Expr>,
    /// Which is the first.
    pub order: Order,
}

/// What a direction gives: outputs of all steps, `[steps, batch, outputs]`, and the last state.
pub struct Direction {
    /// The outputs.
    pub rows: Expr,
    /// The state.
    pub state: Vec<Expr>,
}

/// Adds the steps of a cell.
pub fn run<F: Factor, A: Activation>(
    builder: &mut BlockBuilder,
    cell: &Cell<F, A>,
    steps: &Steps,
    mut state: Vec<Expr>,
) -> Result<Direction> {
    let (gates, order) = (&steps.gates, steps.order);
    let mut scope = Scope::new(builder);
    if let Some(count) = steps.count.as_int().filter(|n| (1..=WRITTEN_OUT).contains(n)) {
        let mut rows = Vec::new();
        for iteration in 0..count {
            let at = if order == Order::Forward { iteration } else { count - 1 - iteration };
            let at = At { step: prim::int(at), lengths: steps.lengths.clone() };
            let (next, row) = step(&mut scope, cell, gates, &at, &state)?;
            state = next;
            rows.push(scope.reshape(row, vec![prim::int(1), steps.batch.clone(), prim::int(cell.outputs()?)])?);
        }
        if order == Order::Backward {
            rows.reverse();
        }
        return Ok(Direction { rows: joined(&mut scope, rows, 0)?, state });
    }
    let list = rows::new(builder)?;
    let looped = Loop {
        name: "recurrence",
        limit: Some(steps.count.clone()),
        go: None,
        state,
        lists: vec![list.clone()],
        append: rows::APPEND,
    };
    let done =
        looped.run(builder, &mut |builder: &mut BlockBuilder, inside: &mut Captures, iteration: &Iteration| {
            let cell = cell.map(|weights| inside.expr(weights));
            let gates = inside.expr(gates);
            let lengths = steps.lengths.as_ref().map(|lengths| inside.expr(lengths));
            let at = match (&iteration.limit, order) {
                (Some(limit), Order::Backward) => limit - 1 - &iteration.index,
                _ => iteration.index.clone(),
            };
            let at = At { step: at, lengths };
            let (state, row) = step(&mut Scope::new(builder), &cell, &gates, &at, &iteration.state)?;
            Ok(Next { go: None, state, rows: vec![row.into()], again: false })
        })?;
    let row = done.rows.first().ok_or_else(|| NodeError::invalid("a loop gives no rows"))?;
    let rows = rows::stack(builder, list, row, Some(steps.count.clone()), Along { axis: 0, order })?;
    Ok(Direction { rows, state: done.state })
}

/// A step, and how many steps each sequence of the batch has, where they differ.
struct At {
    step: PrimExpr,
    lengths: Option<Expr>,
}

/// One step: the state behind it and the row of the output.
fn step<F: Factor, A: Activation>(
    scope: &mut Scope<'_>,
    cell: &Cell<F, A>,
    gates: &Expr,
    at: &At,
    state: &[Expr],
) -> Result<(Vec<Expr>, Expr)> {
    let x = rows::row(scope, gates.clone(), 0, &at.step)?;
    let mut next = cell.step(scope, x, state)?;
    let mut row = next[0].clone();
    if let Some(lengths) = &at.lengths {
        let zero = scope.scalar(0.0, scope.dtype(&row))?;
        row = while_it_lasts(scope, &at.step, lengths, row, zero)?;
        for (new, old) in next.iter_mut().zip(state) {
            *new = while_it_lasts(scope, &at.step, lengths, new.clone(), old.clone())?;
        }
    }
    Ok((next, row))
}

/// One tensor for the sequences that step `at` is in, another for those that have ended.
fn while_it_lasts(scope: &mut Scope<'_>, at: &PrimExpr, lengths: &Expr, inside: Expr, behind: Expr) -> Result<Expr> {
    let dims = scope.dims(&inside)?;
    let batch = vec![dims[0].clone(), prim::int(1)];
    let lasts = scope.te("lasts", vec![lengths.clone()], |inputs| {
        let lengths = inputs[0].clone();
        let lasts = te::compute("lasts", batch, |i: &[PrimExpr]| {
            prim::lt(at.clone(), prim::cast(DataType::int(64), lengths.at(&i[..1])))
        });
        vec![lasts]
    })?;
    scope.call("where", [lasts, inside, behind])
}

/// Tensors side by side.
pub fn joined(scope: &mut Scope<'_>, mut parts: Vec<Expr>, axis: i64) -> Result<Expr> {
    if parts.len() == 1 {
        return Ok(parts.remove(0));
    }
    scope.op("concat", [Expr::tuple(parts)], Attrs::new().with("axis", axis))
}
