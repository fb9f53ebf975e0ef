//! Sequences: of a length known at import, or listed by the program while it runs.
//!
//! A sequence whose length is known is no part of the program: its values are, and an operator on it picks among them. Where
//! a length or a position is computed, the values become an array of the runtime, and operators become calls of its functions
//! (`vm.builtin.sequence_at` …). Of a value that comes out of an array only the element type and, where all that went in had
//! one, the rank is known; its dimensions are bound to symbolic variables.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{Attrs, TensorType, Type};
use relaxide_relax::shape::unify;
use relaxide_relax::{BlockBuilder, Expr};
use relaxide_tir::te;

use super::carried::{self, TEXT};
use crate::dims;
use crate::error::NodeError;
use crate::graph::{Graphs, Step};
use crate::node::Node;
use crate::proto::{ElementTypeProto, TypeKind};
use crate::scope::Scope;
use crate::symbolic::Symbolic;
use crate::text::{Table, Texts};
use crate::value::Value;
use relaxide_frontend::runtime_call;

type Result<T> = std::result::Result<T, NodeError>;

/// The most parts that a tensor is divided into at import.
const MOST_PARTS: usize = 64;

/// A sequence of tensors.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// The values.
    pub items: Items,
    /// What is known of all of them; nothing where there is none.
    pub element: Option<Type>,
}

/// Where the values of a sequence are.
#[derive(Clone, Debug)]
pub enum Items {
    /// Here: tensors of the program, or of texts.
    Known(Vec<Value>),
    /// In an array of the runtime.
    Listed(Expr),
}

/// What the type of a sequence in the file says of its values.
pub fn declared_element(sequence: &ElementTypeProto) -> Option<Type> {
    let Some(TypeKind::Tensor(tensor)) = sequence.elem_type.as_ref().and_then(|t| t.value.as_ref()) else {
        return None;
    };
    let rank = tensor.shape.as_ref().map_or(-1, |shape| shape.dim.len() as i64);
    carried::element_of(tensor.elem_type.into()).ok().map(|dtype| Type::tensor_ndim(rank, dtype))
}

/// What is known of tensors of two types.
pub fn common(a: Option<Type>, b: Type) -> Option<Type> {
    Some(match a {
        Some(a) => unify(&a, &b),
        None => b,
    })
}

impl Sequence {
    /// A sequence of values.
    pub fn known(values: Vec<Value>) -> Sequence {
        let element = values.iter().fold(None, |element, value| common(element, carried::type_of(value)));
        Sequence { items: Items::Known(values), element }
    }

    /// A sequence in an array of the runtime.
    pub fn listed(array: Expr, element: Option<Type>) -> Sequence {
        Sequence { items: Items::Listed(array), element }
    }

    /// It as one value of the program: a tuple, which is an array when the program runs.
    pub fn object(&self, scope: &mut Scope) -> Result<Expr> {
        match &self.items {
            Items::Known(values) => {
                Ok(Expr::tuple(values.iter().map(|value| scope.object(value)).collect::<Result<Vec<_>>>()?))
            }
            Items::Listed(array) => Ok(array.clone()),
        }
    }
}

/// Input `i`, which must be a sequence.
pub fn sequence(builder: &mut BlockBuilder, node: &Node, i: usize) -> Result<Sequence> {
    let value = match node.input(i)? {
        Value::Optional(optional) => optional.taken(builder)?,
        value => value.clone(),
    };
    match value {
        Value::Sequence(sequence) => Ok(sequence),
        _ => Err(NodeError::invalid(format!("input {i} is not a sequence"))),
    }
}

fn one(value: Value) -> Result<Step> {
    Ok(Step::Values(vec![value]))
}

/// The array behind a sequence.
pub fn array(builder: &mut BlockBuilder, sequence: &Sequence) -> Result<Expr> {
    match &sequence.items {
        Items::Listed(array) => Ok(array.clone()),
        Items::Known(_) => {
            let mut scope = Scope::new(builder);
            let object = sequence.object(&mut scope)?;
            scope.array(object)
        }
    }
}

/// A tensor of which a type says what is known.
pub fn typed(builder: &mut BlockBuilder, value: Expr, known: Option<&TensorType>) -> Result<Expr> {
    let mut scope = Scope::new(builder);
    match known {
        Some(t) if t.ndim >= 0 => {
            let open = vec![None; usize::try_from(t.ndim).unwrap_or(0)];
            scope.bind_dims(value, open, t.dtype)
        }
        _ => Ok(value),
    }
}

/// What is known of the values of a sequence, as the type of one that comes out of an array.
pub fn element_type(sequence: &Sequence) -> Type {
    match sequence.element.as_ref().and_then(Type::as_tensor) {
        Some(t) => Type::tensor_ndim(t.ndim, t.dtype),
        None => Type::tensor_ndim(-1, DataType::void()),
    }
}

/// A position: known, or a scalar of the program.
enum Position {
    Known(i64),
    Computed(Expr),
}

fn position(builder: &mut BlockBuilder, node: &Node, i: usize) -> Result<Option<Position>> {
    let Some(value) = node.optional(i) else { return Ok(None) };
    if let Some([known]) = value.symbolic().and_then(|s| s.literals()).as_deref() {
        return Ok(Some(Position::Known(*known)));
    }
    Scope::new(builder).tensor(value).map(|tensor| Some(Position::Computed(tensor)))
}

fn argument(position: Position) -> Expr {
    match position {
        Position::Known(known) => Expr::prim(prim::int(known)),
        Position::Computed(tensor) => tensor,
    }
}

/// A place among `count`, which may count from the end.
fn place(position: i64, count: usize) -> Result<usize> {
    dims::axis(position, count).ok_or_else(|| NodeError::invalid(format!("position {position} is out of {count}")))
}

/// `SequenceConstruct`.
pub fn construct(_: &mut Graphs, builder: &mut BlockBuilder, node: &Node) -> Result<Step> {
    let mut scope = Scope::new(builder);
    let values = node.inputs.iter().flatten().map(|v| carried::item(&mut scope, v)).collect::<Result<Vec<_>>>()?;
    one(Value::Sequence(Sequence::known(values)))
}

/// `SequenceEmpty`.
pub fn empty(_: &mut Graphs, _: &mut BlockBuilder, node: &Node) -> Result<Step> {
    carried::element_of(node.int_or("dtype", 1)?)?;
    one(Value::Sequence(Sequence::known(Vec::new())))
}

/// `SequenceLength`.
pub fn length(_: &mut Graphs, builder: &mut BlockBuilder, node: &Node) -> Result<Step> {
    let sequence = sequence(builder, node, 0)?;
    let length = match &sequence.items {
        Items::Known(values) => prim::int(values.len() as i64),
        Items::Listed(array) => listed_length(builder, array)?,
    };
    one(Value::Symbolic(Symbolic::scalar(length)))
}

/// The length of an array of the program.
pub fn listed_length(builder: &mut BlockBuilder, array: &Expr) -> Result<PrimExpr> {
    let shape = runtime_call(builder, "vm.builtin.sequence_length", vec![array.clone()], Type::shape_ndim(1))?;
    let dims = Scope::new(builder).bind_shape(shape, 1)?;
    dims.into_iter().next().ok_or_else(|| NodeError::invalid("there is no length"))
}

/// `SequenceAt`.
pub fn at(_: &mut Graphs, builder: &mut BlockBuilder, node: &Node) -> Result<Step> {
    let sequence = sequence(builder, node, 0)?;
    let position = position(builder, node, 1)?.ok_or_else(|| NodeError::invalid("the position is missing"))?;
    if let (Items::Known(values), Position::Known(known)) = (&sequence.items, &position) {
        return one(values[place(*known, values.len())?].clone());
    }
    let args = vec![array(builder, &sequence)?, argument(position)];
    one(carried::regained(builder, "vm.builtin.sequence_at", args, &element_type(&sequence))?)
}

/// `SequenceInsert`.
pub fn insert(_: &mut Graphs, builder: &mut BlockBuilder, node: &Node) -> Result<Step> {
    let sequence = sequence(builder, node, 0)?;
    let value = carried::item(&mut Scope::new(builder), node.input(1)?)?;
    let position = position(builder, node, 2)?;
    let element = common(sequence.element.clone(), carried::type_of(&value));
    if let Items::Known(values) = &sequence.items
        && !matches!(position, Some(Position::Computed(_)))
    {
        let mut values = values.clone();
        let at = match position {
            Some(Position::Known(known)) if known != values.len() as i64 => place(known, values.len())?,
            _ => values.len(),
        };
        values.insert(at, value);
        return one(Value::Sequence(Sequence { items: Items::Known(values), element }));
    }
    let value = Scope::new(builder).object(&value)?;
    let mut args = vec![array(builder, &sequence)?, value];
    args.extend(position.map(argument));
    let array = runtime_call(builder, "vm.builtin.sequence_insert", args, Type::any())?;
    one(Value::Sequence(Sequence::listed(array, element)))
}

/// `SequenceErase`.
pub fn erase(_: &mut Graphs, builder: &mut BlockBuilder, node: &Node) -> Result<Step> {
    let sequence = sequence(builder, node, 0)?;
    let position = position(builder, node, 1)?;
    if let Items::Known(values) = &sequence.items
        && !matches!(position, Some(Position::Computed(_)))
    {
        let mut values = values.clone();
        let known = if let Some(Position::Known(known)) = position { known } else { -1 };
        values.remove(place(known, values.len())?);
        return one(Value::Sequence(Sequence::known(values)));
    }
    let mut args = vec![array(builder, &sequence)?];
    args.extend(position.map(argument));
    let array = runtime_call(builder, "vm.builtin.sequence_erase", args, Type::any())?;
    one(Value::Sequence(Sequence::listed(array, sequence.element)))
}

/// `ConcatFromSequence`.
pub fn concat(_: &mut Graphs, builder: &mut BlockBuilder, node: &Node) -> Result<Step> {
    let sequence = sequence(builder, node, 0)?;
    let axis = node.int("axis")?.ok_or_else(|| NodeError::invalid("attribute `axis` is missing"))?;
    let new = node.flag("new_axis", false)?;
    if let Items::Known(values) = &sequence.items
        && !values.is_empty()
    {
        let mut scope = Scope::new(builder);
        let (mut parts, table) = one_table(&mut scope, values)?;
        let rank = scope.dims(&parts[0])?.len() + usize::from(new);
        let axis =
            dims::axis(axis, rank).ok_or_else(|| NodeError::invalid(format!("axis {axis} is not one of {rank}")))?;
        if new {
            for part in &mut parts {
                let mut dims = scope.dims(part)?;
                dims.insert(axis.min(dims.len()), prim::int(1));
                *part = scope.reshape(part.clone(), dims)?;
            }
        }
        for other in (0..rank).filter(|a| *a != axis) {
            let axes = vec![other; parts.len()];
            scope.agree_on(&mut parts, &axes)?;
        }
        if parts.len() == 1 {
            return one(with_table(parts.remove(0), table));
        }
        let joined = scope.op("concat", [Expr::tuple(parts)], Attrs::new().with("axis", axis as i64))?;
        return one(with_table(joined, table));
    }
    let element = element_type(&sequence);
    let known = element.as_tensor().map(|t| (if t.ndim < 0 { -1 } else { t.ndim + i64::from(new) }, t.dtype));
    let (rank, dtype) = known.unwrap_or((-1, DataType::void()));
    let args = vec![array(builder, &sequence)?, Expr::prim(prim::int(axis)), Expr::prim(prim::boolean(new))];
    let ty = Type::tensor_ndim(rank, dtype);
    let name = if carried::is_text(&ty) { "relaxide.vm.text_concat" } else { "vm.builtin.sequence_concat" };
    one(carried::regained(builder, name, args, &ty)?)
}

/// Tensors of numbers as they are; of texts their indices, and the table of all.
fn one_table(scope: &mut Scope, values: &[Value]) -> Result<(Vec<Expr>, Option<Table>)> {
    let texts: Vec<&Texts> = values.iter().filter_map(Value::as_texts).collect();
    if texts.is_empty() {
        return Ok((values.iter().map(|value| scope.tensor(value)).collect::<Result<_>>()?, None));
    }
    if texts.len() != values.len() {
        return Err(NodeError::invalid("the sequence has tensors of texts and of numbers"));
    }
    let (indices, table) = Texts::joined(scope, &texts)?;
    Ok((indices, Some(table)))
}

/// A tensor, or texts where it is indices of a table.
fn with_table(tensor: Expr, table: Option<Table>) -> Value {
    match table {
        Some(table) => Value::Texts(Texts { index: tensor, table }),
        None => Value::Computed(tensor),
    }
}

/// The sizes of parts that are known at import.
fn known_sizes(node: &Node, dim: &PrimExpr) -> Option<Vec<i64>> {
    let total = dim.as_int()?;
    let listed = |count: i64| usize::try_from(count).ok().filter(|count| *count <= MOST_PARTS);
    let sizes = match node.optional(1) {
        None => vec![1; listed(total)?],
        Some(value) => {
            let split = value.symbolic()?;
            let sizes = split.literals()?;
            if split.shape.is_empty() {
                let size = *sizes.first().filter(|s| **s > 0)?;
                listed((total - 1) / size + 1)?;
                (0..total).step_by(usize::try_from(size).ok()?).map(|from| size.min(total - from)).collect()
            } else {
                sizes
            }
        }
    };
    (sizes.len() <= MOST_PARTS && sizes.iter().sum::<i64>() == total && sizes.iter().all(|s| *s >= 0)).then_some(sizes)
}

/// `SplitToSequence`.
pub fn split(_: &mut Graphs, builder: &mut BlockBuilder, node: &Node) -> Result<Step> {
    let mut scope = Scope::new(builder);
    let (x, table) = match node.input(0)? {
        Value::Texts(texts) => (texts.index.clone(), Some(texts.table.clone())),
        numbers => (scope.tensor(numbers)?, None),
    };
    let shape = scope.dims(&x)?;
    let axis = node.int_or("axis", 0)?;
    let rank = shape.len();
    let axis =
        dims::axis(axis, rank).ok_or_else(|| NodeError::invalid(format!("axis {axis} is not one of {rank} axes")))?;
    let keep = node.flag("keepdims", true)?;
    let squeeze = !keep && node.optional(1).is_none();
    if let Some(sizes) = known_sizes(node, &shape[axis]) {
        let mut parts = Vec::new();
        let mut from = 0;
        for size in sizes {
            let mut dims = shape.clone();
            dims[axis] = prim::int(size);
            let whole = dims.clone();
            let part = scope.te("part", vec![x.clone()], |inputs| {
                let x = inputs[0].clone();
                vec![te::compute("part", whole, |at: &[PrimExpr]| {
                    let mut place = at.to_vec();
                    place[axis] = &place[axis] + from;
                    x.at(&place)
                })]
            })?;
            if squeeze {
                dims.remove(axis);
            }
            parts.push(with_table(scope.reshape(part, dims)?, table.clone()));
            from += size;
        }
        return one(Value::Sequence(Sequence::known(parts)));
    }
    let sizes = match node.optional(1) {
        Some(value) => scope.tensor(value)?,
        None => scope.call("null_value", [])?,
    };
    let dtype = scope.dtype(&x);
    let args = vec![x, Expr::prim(prim::int(axis as i64)), sizes, Expr::prim(prim::boolean(keep))];
    let mut array = runtime_call(builder, "vm.builtin.sequence_split", args, Type::any())?;
    let mut element = dtype;
    if let Some(table) = table {
        array = runtime_call(builder, "relaxide.vm.texts_each", vec![array, table.argument()?], Type::any())?;
        element = TEXT;
    }
    let element = Type::tensor_ndim(rank as i64 - i64::from(squeeze), element);
    one(Value::Sequence(Sequence::listed(array, Some(element))))
}
