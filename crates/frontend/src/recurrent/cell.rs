//! The equations of a step: what a cell makes of an input's share of its gates and the state before.
//!
//! `x` is the product of the step's input with the gates' weights, biases included; `h` and `c` are the state. Gates lie side
//! by side in the last dimension.

use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use crate::{NodeError, Result, Scope};

/// What a state is multiplied with, `[state, gates * hidden]`.
pub trait Factor: Clone {
    /// The product of a state with it.
    fn product(&self, scope: &mut Scope<'_>, x: Expr) -> Result<Expr>;

    /// The same with its tensors replaced.
    fn map(&self, f: &mut dyn FnMut(&Expr) -> Expr) -> Self;
}

/// A function of gates.
pub trait Activation: Clone {
    /// The function of a gate, whose value is limited first.
    fn apply(&self, scope: &mut Scope<'_>, x: Expr, clip: Option<f64>) -> Result<Expr>;
}

/// A matrix of numbers.
#[derive(Clone)]
pub struct Matrix(pub Expr);

impl Factor for Matrix {
    fn product(&self, scope: &mut Scope<'_>, x: Expr) -> Result<Expr> {
        scope.call("matmul", [x, self.0.clone()])
    }

    fn map(&self, f: &mut dyn FnMut(&Expr) -> Expr) -> Matrix {
        Matrix(f(&self.0))
    }
}

/// An operator without attributes. Nothing is limited.
#[derive(Clone, Copy)]
pub struct Function(pub &'static str);

impl Activation for Function {
    fn apply(&self, scope: &mut Scope<'_>, x: Expr, _: Option<f64>) -> Result<Expr> {
        scope.call(self.0, [x])
    }
}

/// Which cell it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellKind {
    /// One gate.
    Rnn,
    /// Update, reset, hidden; with the recurrent product of the last taken before or behind the reset.
    Gru {
        /// Before.
        linear_before_reset: bool,
    },
    /// Input, output, forget, cell; with the forget gate perhaps coupled to the input gate.
    Lstm {
        /// Coupled.
        input_forget: bool,
    },
}

impl CellKind {
    /// How many gates there are.
    pub fn gates(self) -> i64 {
        match self {
            CellKind::Rnn => 1,
            CellKind::Gru { .. } => 3,
            CellKind::Lstm { .. } => 4,
        }
    }

    /// The gates side by side in the order in which the kind names them.
    pub fn in_order(self) -> &'static [i64] {
        &[0, 1, 2, 3][..self.gates() as usize]
    }

    /// The functions that a direction applies where nothing names others.
    pub fn defaults(self) -> &'static [&'static str] {
        match self {
            CellKind::Rnn => &["Tanh"],
            CellKind::Gru { .. } => &["Sigmoid", "Tanh"],
            CellKind::Lstm { .. } => &["Sigmoid", "Tanh", "Tanh"],
        }
    }
}

/// A cell of one direction.
#[derive(Clone)]
pub struct Cell<F, A> {
    /// Which.
    pub kind: CellKind,
    /// Size of a gate.
    pub hidden: i64,
    /// Where each gate lies among those side by side, in the order in which the kind names them.
    pub places: &'static [i64],
    /// Recurrent weights, `[outputs, gates * hidden]`; for a GRU without `linear_before_reset` those of its first two gates.
    pub recurrent: F,
    /// For a GRU without `linear_before_reset`: those of the last gate.
    pub reset: Option<Expr>,
    /// For a GRU with `linear_before_reset`: the recurrent bias of its last gate.
    pub hidden_bias: Option<Expr>,
    /// For an LSTM: what the cell adds to the input, output and forget gates.
    pub peepholes: Option<[Expr; 3]>,
    /// For an LSTM: what makes its output, `[hidden, outputs]`, of the output gate times the cell.
    pub projection: Option<Expr>,
    /// Its functions.
    pub activations: Vec<A>,
    /// A limit of what they are applied to.
    pub clip: Option<f64>,
}

impl<F: Factor, A: Activation> Cell<F, A> {
    /// The same cell with its tensors replaced.
    pub fn map(&self, mut f: impl FnMut(&Expr) -> Expr) -> Self {
        Cell {
            recurrent: self.recurrent.map(&mut f),
            reset: self.reset.as_ref().map(&mut f),
            hidden_bias: self.hidden_bias.as_ref().map(&mut f),
            peepholes: self.peepholes.as_ref().map(|p| [f(&p[0]), f(&p[1]), f(&p[2])]),
            projection: self.projection.as_ref().map(&mut f),
            ..self.clone()
        }
    }

    /// How many numbers a step gives for each sequence.
    pub fn outputs(&self) -> Result<i64> {
        let Some(matrix) = &self.projection else { return Ok(self.hidden) };
        let dims = matrix.ty().as_tensor().and_then(|ty| ty.shape.clone());
        let outputs = dims.and_then(|dims| dims.last()?.as_int());
        outputs.ok_or_else(|| NodeError::unsupported("how many outputs the projection has is not known"))
    }

    /// The state behind a step.
    pub fn step(&self, scope: &mut Scope<'_>, x: Expr, state: &[Expr]) -> Result<Vec<Expr>> {
        let hidden = || state.first().cloned().ok_or_else(|| NodeError::invalid("there is no state"));
        match (self.kind, state) {
            (CellKind::Rnn, _) => {
                let product = self.recurrent.product(scope, hidden()?)?;
                let sum = scope.call("add", [x, product])?;
                Ok(vec![self.activate(scope, 0, sum)?])
            }
            (CellKind::Gru { linear_before_reset }, _) => {
                Ok(vec![self.gru(scope, x, hidden()?, linear_before_reset)?])
            }
            (CellKind::Lstm { input_forget }, [h, c]) => self.lstm(scope, x, h.clone(), c.clone(), input_forget),
            (CellKind::Lstm { .. }, _) => Err(NodeError::invalid("there is no cell state")),
        }
    }

    fn activate(&self, scope: &mut Scope<'_>, i: usize, x: Expr) -> Result<Expr> {
        match self.activations.get(i) {
            Some(activation) => activation.apply(scope, x, self.clip),
            None => Err(NodeError::invalid("an activation is missing")),
        }
    }

    /// Gate `i` of those side by side.
    fn gate(&self, scope: &mut Scope<'_>, gates: &Expr, i: usize) -> Result<Expr> {
        let place = self.places.get(i).ok_or_else(|| NodeError::invalid("a gate is missing"))?;
        slice_columns(scope, gates.clone(), place * self.hidden, self.hidden)
    }

    fn gru(&self, scope: &mut Scope<'_>, x: Expr, h: Expr, linear_before_reset: bool) -> Result<Expr> {
        let product = self.recurrent.product(scope, h.clone())?;
        let mut gates = Vec::new();
        for i in 0..2 {
            let (a, b) = (self.gate(scope, &x, i)?, self.gate(scope, &product, i)?);
            let sum = scope.call("add", [a, b])?;
            gates.push(self.activate(scope, 0, sum)?);
        }
        let [update, reset] = [gates[0].clone(), gates[1].clone()];
        let share = match (&self.reset, linear_before_reset) {
            (Some(weights), false) => {
                let kept = scope.call("multiply", [reset, h.clone()])?;
                scope.call("matmul", [kept, weights.clone()])?
            }
            _ => {
                let mut linear = self.gate(scope, &product, 2)?;
                if let Some(bias) = &self.hidden_bias {
                    linear = scope.call("add", [linear, bias.clone()])?;
                }
                scope.call("multiply", [reset, linear])?
            }
        };
        let own = self.gate(scope, &x, 2)?;
        let sum = scope.call("add", [own, share])?;
        let candidate = self.activate(scope, 1, sum)?;
        // (1 - z) * candidate + z * h
        let one = scope.scalar(1.0, scope.dtype(&update))?;
        let rest = scope.call("subtract", [one, update.clone()])?;
        let new = scope.call("multiply", [rest, candidate])?;
        let old = scope.call("multiply", [update, h])?;
        scope.call("add", [new, old])
    }

    fn lstm(&self, scope: &mut Scope<'_>, x: Expr, h: Expr, c: Expr, input_forget: bool) -> Result<Vec<Expr>> {
        let product = self.recurrent.product(scope, h)?;
        let sum = scope.call("add", [x, product])?;
        let peep = |scope: &mut Scope<'_>, gate: Expr, i: usize, c: &Expr| match &self.peepholes {
            Some(weights) => {
                let seen = scope.call("multiply", [c.clone(), weights[i].clone()])?;
                scope.call("add", [gate, seen])
            }
            None => Ok(gate),
        };
        let input = self.gate(scope, &sum, 0)?;
        let input = peep(scope, input, 0, &c)?;
        let input = self.activate(scope, 0, input)?;
        let forget = if input_forget {
            let one = scope.scalar(1.0, scope.dtype(&input))?;
            scope.call("subtract", [one, input.clone()])?
        } else {
            let forget = self.gate(scope, &sum, 2)?;
            let forget = peep(scope, forget, 2, &c)?;
            self.activate(scope, 0, forget)?
        };
        let candidate = self.gate(scope, &sum, 3)?;
        let candidate = self.activate(scope, 1, candidate)?;
        let kept = scope.call("multiply", [forget, c])?;
        let added = scope.call("multiply", [input, candidate])?;
        let cell = scope.call("add", [kept, added])?;
        let output = self.gate(scope, &sum, 1)?;
        let output = peep(scope, output, 1, &cell)?;
        let output = self.activate(scope, 0, output)?;
        // The cell itself is not limited.
        let seen = match self.activations.get(2) {
            Some(activation) => activation.apply(scope, cell.clone(), None)?,
            None => return Err(NodeError::invalid("an activation is missing")),
        };
        let mut hidden = scope.call("multiply", [output, seen])?;
        if let Some(projection) = &self.projection {
            hidden = scope.call("matmul", [hidden, projection.clone()])?;
        }
        Ok(vec![hidden, cell])
    }
}

/// Columns of a matrix.
pub fn slice_columns(scope: &mut Scope<'_>, x: Expr, from: i64, count: i64) -> Result<Expr> {
    let mut dims = scope.dims(&x)?;
    if dims.last().is_some_and(|last| last.is_int(count)) {
        return Ok(x);
    }
    if let Some(last) = dims.last_mut() {
        *last = prim::int(count);
    }
    scope.te("columns", vec![x], |inputs| {
        let x = inputs[0].clone();
        let part = te::compute("columns", dims, |at: &[PrimExpr]| {
            let mut place = at.to_vec();
            if let Some(last) = place.last_mut() {
                *last = &*last + from;
            }
            x.at(&place)
        });
        vec![part]
    })
}
