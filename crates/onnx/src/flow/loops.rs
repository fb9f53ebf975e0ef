//! `Loop`: a graph that is run again and again.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::{BlockBuilder, Expr};

use super::carried;
use super::rows::{self, Along};
use super::state::StatePart;
use crate::dims;
use crate::error::NodeError;
use crate::graph::{Graphs, Step};
use crate::names::Visibility;
use crate::node::Node;
use crate::proto::{GraphProto, TypeKind, ValueInfoProto};
use crate::scope::Scope;
use crate::symbolic::{Ratio, Symbolic};
use crate::value::Value;
use relaxide_frontend::{Captures, Iteration, Loop, Next};

type Result<T> = std::result::Result<T, NodeError>;

/// `Loop`: state and the rows of every iteration.
pub fn repeat(graphs: &mut Graphs, builder: &mut BlockBuilder, node: &Node) -> Result<Step> {
    let body = node.graph("body")?;
    let limit = node.optional(0).map(|limit| whole(&mut Scope::new(builder), limit)).transpose()?;
    let known = match node.optional(1) {
        None => Some(true),
        Some(value) => value.symbolic().and_then(|s| s.literals()).map(|truth| truth != [0]),
    };
    let mut scope = Scope::new(builder);
    let go = match (known, node.optional(1)) {
        (Some(true), _) => None,
        (_, Some(value)) => {
            let tensor = scope.tensor(value)?;
            Some(scope.reshape(tensor, Vec::new())?)
        }
        (_, None) => None,
    };
    let mut state = Vec::new();
    let mut parts = Vec::new();
    for i in 2..node.inputs.len() {
        let (expr, part) = StatePart::of(builder, node.input(i)?, body.input.get(i))?;
        state.push(expr);
        parts.push(part);
    }
    let Some(lists) = body.output.len().checked_sub(1 + state.len()) else {
        let (outputs, state) = (body.output.len(), state.len());
        return Err(NodeError::invalid(format!("the body has {outputs} outputs for {state} values of state")));
    };
    let mut attempt = |graphs: &mut Graphs, go: Option<Expr>| -> Result<Attempt> {
        let lists = (0..lists).map(|_| rows::new(builder)).collect::<Result<Vec<_>>>()?;
        let conditional = go.is_some();
        let looped = Loop {
            name: "loop",
            limit: limit.clone(),
            go,
            state: state.clone(),
            lists: lists.clone(),
            append: rows::APPEND,
        };
        let noted = graphs.noted();
        let mut asks = false;
        let done =
            looped.run(builder, &mut |builder: &mut BlockBuilder, inside: &mut Captures, iteration: &Iteration| {
                let mut known = LoopFacts { asks: &mut asks, parts: &mut parts };
                iterate(graphs, builder, body, inside, iteration, &mut known)
            });
        match done {
            _ if graphs.noted() > noted => Ok(Attempt::Noted),
            _ if asks => Ok(Attempt::Asks),
            Ok(done) => {
                let count = limit.clone().filter(|m| iterations_are_fixed(m) && !conditional);
                let mut values = Vec::new();
                for (expr, part) in done.state.into_iter().zip(&parts) {
                    values.push(part.value(builder, expr)?);
                }
                for (list, ty) in lists.into_iter().zip(&done.rows) {
                    values.push(rows::stack_values(builder, list, ty, count.clone(), Along::FIRST)?);
                }
                Ok(Attempt::Done(values))
            }
            Err(error) => Err(error),
        }
    };
    let first = attempt(graphs, go)?;
    let result = match first {
        Attempt::Asks => {
            let truth = relaxide_frontend::constant::filled(&[1.0], &[], DataType::bool())?;
            attempt(graphs, Some(Expr::constant(truth)))?
        }
        other => other,
    };
    Ok(match result {
        Attempt::Done(values) => Step::Values(values),
        Attempt::Noted => Step::Noted,
        Attempt::Asks => return Err(NodeError::invalid("the condition of the body is missing")),
    })
}

/// What became of a loop.
enum Attempt {
    Done(Vec<Value>),
    Noted,
    /// The body computes a condition, for which there was no place.
    Asks,
}

/// Whether the number of iterations is the limit wherever no condition ends them.
fn iterations_are_fixed(limit: &PrimExpr) -> bool {
    dims::non_negative(limit)
}

/// What is known of a loop's body.
struct LoopFacts<'a> {
    /// Whether the body computes a condition, for which there was no place.
    asks: &'a mut bool,
    /// Its state.
    parts: &'a mut [StatePart],
}

/// One iteration of a body.
fn iterate(
    graphs: &mut Graphs,
    builder: &mut BlockBuilder,
    body: &GraphProto,
    inside: &mut Captures,
    iteration: &Iteration,
    known: &mut LoopFacts<'_>,
) -> Result<Next> {
    let one = |i: usize| shape_of_input(body.input.get(i));
    let index = Symbolic { shape: one(0), ..Symbolic::scalar(iteration.index.clone()) };
    let mut scope = Scope::new(builder);
    let go = match &iteration.go {
        Some(go) if one(1).is_empty() => Value::Computed(go.clone()),
        Some(go) => Value::Computed(scope.reshape(go.clone(), vec![prim::int(1)])?),
        None => Value::Symbolic(Symbolic { dtype: DataType::bool(), shape: one(1), elements: vec![Ratio::int(1)] }),
    };
    let mut inputs = vec![Value::Symbolic(index), go];
    for (expr, part) in iteration.state.iter().zip(&*known.parts) {
        inputs.push(part.value(builder, expr.clone())?);
    }
    let values = graphs.inner(builder, body, inputs, Visibility::Captured(std::mem::take(inside)));
    if let Some(captures) = graphs.names.close() {
        *inside = captures;
    }
    let mut values = values.ok_or_else(|| NodeError::invalid("problems are noted"))?.into_iter();
    let go = values.next().ok_or_else(|| NodeError::invalid("the body has no outputs"))?;
    let always = go.symbolic().and_then(|s| s.literals()).is_some_and(|truth| truth == [1]);
    let mut scope = Scope::new(builder);
    let go = match (&iteration.go, always) {
        (None, true) => None,
        (None, false) => {
            *known.asks = true;
            return Err(NodeError::invalid("the body computes a condition"));
        }
        (Some(_), _) => {
            let tensor = scope.tensor(&go)?;
            Some(scope.reshape(tensor, Vec::new())?)
        }
    };
    let (mut state, mut rows) = (Vec::new(), Vec::new());
    let mut again = false;
    for (i, value) in values.enumerate() {
        match known.parts.get_mut(i) {
            Some(part) => {
                let (expr, changed) = part.after(&mut scope, &value)?;
                again |= changed;
                state.push(expr);
            }
            None => rows.push(carried::row_of(&mut scope, &value)?),
        }
    }
    Ok(Next { go, state, rows, again })
}

/// The shape that a body declares for a number: none, or one of one element.
fn shape_of_input(info: Option<&ValueInfoProto>) -> Vec<usize> {
    match info.and_then(|i| i.r#type.as_ref()).and_then(|t| t.value.as_ref()) {
        Some(TypeKind::Tensor(tensor)) if tensor.shape.as_ref().is_some_and(|s| s.dim.len() == 1) => vec![1],
        _ => Vec::new(),
    }
}

/// A whole number as an expression; one that the program computes gets a symbolic variable.
pub fn whole(scope: &mut Scope, value: &Value) -> Result<PrimExpr> {
    if let Some([number]) = value.symbolic().and_then(|s| s.ints()).as_deref() {
        return Ok(number.clone());
    }
    let tensor = scope.tensor(value)?;
    let tensor = scope.reshape(tensor, vec![prim::int(1)])?;
    let tensor = scope.cast(tensor, DataType::int(64))?;
    let zero = scope.scalar(0.0, DataType::int(64))?;
    // A dimension is not negative; a limit that is means no iterations.
    let tensor = scope.call("maximum", [tensor, zero])?;
    let shape = scope.call("tensor_to_shape", [tensor])?;
    let dims = scope.bind_shape(shape, 1)?;
    dims.into_iter().next().ok_or_else(|| NodeError::invalid("a number is missing"))
}
