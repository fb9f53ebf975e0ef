//! `SequenceMap`: a graph for each value of one or several sequences.
//!
//! Where all lengths are known at import, the graph is imported once for each value. Otherwise it is the body of a loop over
//! the positions, which reads the sequences and collects what an iteration gives in lists:
//!
//! ```text
//! def map(at: R.Shape([i, m]), ys, xs):
//!     if i < m:
//!         x = vm.builtin.sequence_at(xs, i)
//!         …                                       # the graph: y
//!         list_append(ys, y)
//!         return map([i + 1, m], ys, xs)
//! ```

use relaxide_ir::Type;
use relaxide_ir::prim::PrimExpr;
use relaxide_relax::{BlockBuilder, Expr};

use super::sequence::{self, Items, Sequence, array, element_type, listed_length};
use super::{capture, carried};
use crate::error::NodeError;
use crate::graph::{Graphs, Step};
use crate::names::Visibility;
use crate::node::Node;
use crate::proto::{GraphProto, TypeKind};
use crate::scope::Scope;
use crate::value::Value;
use relaxide_frontend::Check;
use relaxide_frontend::{Captures, Iteration, Loop, Next, runtime_call};

type Result<T> = std::result::Result<T, NodeError>;

/// `SequenceMap`.
pub fn map(graphs: &mut Graphs, builder: &mut BlockBuilder, node: &Node) -> Result<Step> {
    let body = node.graph("body")?;
    let first = sequence::sequence(builder, node, 0)?;
    let mut inputs = vec![Value::Sequence(first.clone())];
    for i in 1..node.inputs.len() {
        inputs.push(match node.input(i)? {
            Value::Optional(optional) => optional.taken(builder)?,
            value => value.clone(),
        });
    }
    let known = |value: &Value| !matches!(value, Value::Sequence(Sequence { items: Items::Listed(_), .. }));
    match first.items {
        Items::Known(values) if inputs.iter().all(known) => unrolled(graphs, builder, body, &inputs, values.len()),
        _ => looped(graphs, builder, body, &inputs),
    }
}

/// The graph once for each of so many values.
fn unrolled(
    graphs: &mut Graphs,
    builder: &mut BlockBuilder,
    body: &GraphProto,
    inputs: &[Value],
    count: usize,
) -> Result<Step> {
    let mut outputs: Vec<Vec<Value>> = vec![Vec::new(); body.output.len()];
    for (i, input) in inputs.iter().enumerate() {
        if let Value::Sequence(Sequence { items: Items::Known(values), .. }) = input
            && values.len() != count
        {
            let length = values.len();
            return Err(NodeError::invalid(format!("input {i} has {length} values where the first has {count}")));
        }
    }
    for iteration in 0..count {
        let one = |input: &Value| match input {
            Value::Sequence(Sequence { items: Items::Known(values), .. }) => values.get(iteration).cloned(),
            other => Some(other.clone()),
        };
        let inputs = inputs.iter().filter_map(one).collect();
        let Some(values) = graphs.inner(builder, body, inputs, Visibility::Open) else { return Ok(Step::Noted) };
        let mut scope = Scope::new(builder);
        for (list, value) in outputs.iter_mut().zip(&values) {
            list.push(carried::item(&mut scope, value)?);
        }
    }
    Ok(Step::Values(outputs.into_iter().map(|values| Value::Sequence(Sequence::known(values))).collect()))
}

/// An input of the loop.
enum Input {
    /// An array, of whose values the type says what is known.
    Each(Expr, Type),
    /// What every iteration is given.
    Whole(Value),
}

/// The graph as the body of a loop.
fn looped(graphs: &mut Graphs, builder: &mut BlockBuilder, body: &GraphProto, inputs: &[Value]) -> Result<Step> {
    let mut each = Vec::new();
    let mut length: Option<PrimExpr> = None;
    for (i, input) in inputs.iter().enumerate() {
        let Value::Sequence(sequence) = input else {
            each.push(Input::Whole(input.clone()));
            continue;
        };
        let array = array(builder, sequence)?;
        let own = listed_length(builder, &array)?;
        match &length {
            None => length = Some(own),
            Some(first) => {
                // All have the length of the first, which the program checks.
                let lengths = [("the first", first.clone()), ("another", own.clone())];
                let [first, another] = lengths;
                let same = Check::equal(first, another, "sequences that are mapped together must have one length");
                Scope::new(builder).require(&[same])?;
            }
        }
        each.push(Input::Each(array, described(body, i, element_type(sequence))));
    }
    let lists = (0..body.output.len()).map(|_| new_list(builder)).collect::<Result<Vec<_>>>()?;
    let append = "vm.builtin.list_append";
    let looped = Loop { name: "map", limit: length, go: None, state: Vec::new(), lists: lists.clone(), append };
    let noted = graphs.noted();
    let done = looped.run(builder, &mut |builder: &mut BlockBuilder, inside: &mut Captures, iteration: &Iteration| {
        iterate(graphs, builder, body, &each, inside, iteration)
    });
    if graphs.noted() > noted {
        return Ok(Step::Noted);
    }
    let done = done?;
    let mut values = Vec::new();
    for (list, row) in lists.into_iter().zip(&done.rows) {
        let array = runtime_call(builder, "vm.builtin.list_array", vec![list], Type::any())?;
        let element = row.as_tensor().map(|t| Type::tensor_ndim(t.ndim, t.dtype));
        values.push(Value::Sequence(Sequence::listed(array, element)));
    }
    Ok(Step::Values(values))
}

/// Adds an empty list, whose values may have different shapes.
fn new_list(builder: &mut BlockBuilder) -> Result<Expr> {
    runtime_call(builder, "vm.builtin.list_new", Vec::new(), Type::any())
}

/// The type of a sequence's values; where their rank is not known, that of the graph's input holds.
fn described(body: &GraphProto, i: usize, known: Type) -> Type {
    let Some(tensor) = known.as_tensor().filter(|t| t.ndim < 0) else { return known };
    let declared = body.input.get(i).and_then(|info| info.r#type.as_ref()).and_then(|t| t.value.as_ref());
    match declared {
        Some(TypeKind::Tensor(declared)) => match &declared.shape {
            Some(shape) => Type::tensor_ndim(shape.dim.len() as i64, tensor.dtype),
            None => known,
        },
        _ => known,
    }
}

/// One iteration: the values at a position in, a row for each output.
fn iterate(
    graphs: &mut Graphs,
    builder: &mut BlockBuilder,
    body: &GraphProto,
    each: &[Input],
    inside: &mut Captures,
    iteration: &Iteration,
) -> Result<Next> {
    let mut inputs = Vec::new();
    for input in each {
        inputs.push(match input {
            Input::Whole(value) => capture(inside, value),
            Input::Each(array, ty) => {
                let args = vec![inside.expr(array), Expr::prim(iteration.index.clone())];
                carried::regained(builder, "vm.builtin.sequence_at", args, ty)?
            }
        });
    }
    let values = graphs.inner(builder, body, inputs, Visibility::Captured(std::mem::take(inside)));
    if let Some(captures) = graphs.names.close() {
        *inside = captures;
    }
    let values = values.ok_or_else(|| NodeError::invalid("problems are noted"))?;
    let mut scope = Scope::new(builder);
    let rows = values.iter().map(|v| carried::row_of(&mut scope, v)).collect::<Result<Vec<_>>>()?;
    Ok(Next { go: None, state: Vec::new(), rows, again: false })
}
