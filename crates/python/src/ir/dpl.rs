//! The dataflow pattern language to Python.

use std::collections::HashMap;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use relaxide::ffi::{Any, Array, Error, FromAny, Object, Ref};
use relaxide::ir::PrimExpr;
use relaxide::relax::builder::BuildError;
use relaxide::relax::dpl::pattern::PatternNode;
use relaxide::relax::dpl::{self, Pattern, PatternContext, PatternKind, PatternSeq, VarValues};
use relaxide::relax::{AnyVar, BindingBlock, BlockBuilder, Expr, Function, symbols};

use super::{Args, Row};
use crate::{convert, error};

fn pattern(args: &Args<'_>, at: usize) -> Result<Pattern, Error> {
    args.get::<Ref<PatternNode>>(at).map(Pattern::from_object)
}

fn patterns(args: &Args<'_>, at: usize) -> Result<Vec<Pattern>, Error> {
    Ok(args.get::<Vec<Ref<PatternNode>>>(at)?.into_iter().map(Pattern::from_object).collect())
}

fn give(pattern: Pattern) -> Result<Any, Error> {
    Ok(pattern.object().into())
}

fn made(kind: PatternKind) -> Result<Any, Error> {
    give(Pattern::new(kind))
}

fn index(args: &Args<'_>, at: usize) -> Result<Option<usize>, Error> {
    Ok(args.optional::<i64>(at)?.and_then(|index| usize::try_from(index).ok()))
}

pub(super) const TABLE: &[Row] = &[
    ("relax.dpl.wildcard", |_| give(dpl::wildcard())),
    ("relax.dpl.var", |args| give(dpl::is_var(args.get::<String>(0)?))),
    ("relax.dpl.dataflow_var", |args| give(dpl::is_dataflow_var(args.get::<String>(0)?))),
    ("relax.dpl.global_var", |args| give(dpl::is_global(args.get::<String>(0)?))),
    ("relax.dpl.extern_func", |args| give(dpl::is_extern(args.get::<String>(0)?))),
    ("relax.dpl.const", |_| give(dpl::is_const())),
    ("relax.dpl.op", |args| give(dpl::is_op(args.get::<String>(0)?))),
    ("relax.dpl.expr", |args| give(dpl::is_expr(args.expr(0)?))),
    ("relax.dpl.tuple", |args| give(dpl::is_tuple(patterns(args, 0)?))),
    ("relax.dpl.unordered_tuple", |args| give(dpl::is_unordered_tuple(patterns(args, 0)?))),
    ("relax.dpl.tuple_get_item", |args| give(dpl::is_tuple_get_item(pattern(args, 0)?, index(args, 1)?))),
    ("relax.dpl.function", |args| give(dpl::is_function(patterns(args, 0)?, pattern(args, 1)?))),
    ("relax.dpl.shape", |args| give(dpl::is_shape(args.prims(0)?.unwrap_or_default()))),
    ("relax.dpl.call", |args| {
        let (callee, more) = (pattern(args, 0)?, args.get(2)?);
        let args = if args.optional::<Array>(1)?.is_some() { Some(patterns(args, 1)?) } else { None };
        made(PatternKind::Call { callee, args, more })
    }),
    ("relax.dpl.or", |args| made(PatternKind::Or(pattern(args, 0)?, pattern(args, 1)?))),
    ("relax.dpl.and", |args| made(PatternKind::And(pattern(args, 0)?, pattern(args, 1)?))),
    ("relax.dpl.not", |args| made(PatternKind::Not(pattern(args, 0)?))),
    ("relax.dpl.has_type", |args| give(pattern(args, 0)?.has_type(args.ty(1)?))),
    ("relax.dpl.has_dtype", |args| give(pattern(args, 0)?.has_dtype(args.get(1)?))),
    ("relax.dpl.has_shape", |args| give(pattern(args, 0)?.has_shape(args.prims(1)?.unwrap_or_default()))),
    ("relax.dpl.has_attr", |args| give(pattern(args, 0)?.has_attrs(args.attrs(1)?))),
    ("relax.dpl.dup", |args| give(pattern(args, 0)?.dup())),
    ("relax.dpl.fields", |args| Ok(fields(&pattern(args, 0)?).into())),
    ("relax.dpl.text", |args| Ok(pattern(args, 0)?.to_string().as_str().into())),
];

/// What a pattern consists of, in order: its parts and what is said of them.
fn fields(pattern: &Pattern) -> Array {
    let part = |part: &Pattern| Any::from(part.object().clone());
    let list = |parts: &[Pattern]| Any::from(parts.iter().map(part).collect::<Array>());
    let dims = |dims: &[PrimExpr]| Any::from(dims.iter().cloned().map(Any::from).collect::<Array>());
    let fields = match pattern.kind() {
        PatternKind::Wildcard | PatternKind::Constant => Vec::new(),
        PatternKind::Var(name) | PatternKind::DataflowVar(name) => vec![Any::from(name.as_str())],
        PatternKind::Global(name) | PatternKind::Extern(name) => vec![Any::from(name.as_str())],
        PatternKind::Op(name) => vec![
            relaxide::relax::op::lookup(name)
                .map_or_else(Any::none, |def| Any::from(relaxide::relax::op::Op::get(def.name))),
        ],
        PatternKind::Expr(expr) => vec![Any::from(expr.clone())],
        PatternKind::Call { callee, args, more } => {
            vec![part(callee), args.as_deref().map_or_else(Any::none, list), Any::from(*more)]
        }
        PatternKind::Function { params, body } => vec![list(params), part(body)],
        PatternKind::Tuple(fields) | PatternKind::UnorderedTuple(fields) => vec![list(fields)],
        PatternKind::TupleGetItem(of, index) => {
            vec![part(of), index.and_then(|i| i64::try_from(i).ok()).map_or_else(Any::none, Any::from)]
        }
        PatternKind::Or(a, b) | PatternKind::And(a, b) => vec![part(a), part(b)],
        PatternKind::Not(of) => vec![part(of)],
        PatternKind::Type(of, ty) => vec![part(of), Any::from(ty.clone())],
        PatternKind::DType(of, dtype) => vec![part(of), Any::from(*dtype)],
        PatternKind::Shape(of, shape) => vec![part(of), dims(shape)],
        PatternKind::ShapeExpr(shape) => vec![dims(shape)],
        PatternKind::Attrs(of, attrs) => vec![part(of), relaxide::ffi::Field::to_any(attrs)],
    };
    fields.into_iter().collect()
}

/// Makes the type of patterns known by its key.
pub(super) fn enter() {
    PatternNode::type_index();
}

/// An object of Python as a node of a type.
pub fn node<T: FromAny>(value: &Bound<'_, PyAny>) -> PyResult<T> {
    convert::from_py(value)?.to().map_err(error::to_py)
}

/// An object of Python as an expression.
pub fn expr(value: &Bound<'_, PyAny>) -> PyResult<Expr> {
    super::args::expr(convert::from_py(value)?.as_view()).map_err(error::to_py)
}

pub fn out<'py>(py: Python<'py>, value: impl Into<Any>) -> PyResult<Bound<'py, PyAny>> {
    convert::to_py(py, value.into())
}

fn values(var2val: Option<&Bound<'_, PyAny>>) -> PyResult<VarValues> {
    let mut values = VarValues::default();
    if let Some(var2val) = var2val {
        for item in var2val.call_method0("items")?.try_iter()? {
            let (var, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item?.extract()?;
            values.insert(node::<AnyVar>(&var)?, expr(&value)?);
        }
    }
    Ok(values)
}

/// What each part of a pattern stands for in an expression; nothing where it does not match.
#[pyfunction]
fn dpl_match<'py>(
    py: Python<'py>,
    pattern: &Bound<'py, PyAny>,
    expr: &Bound<'py, PyAny>,
    var2val: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let pattern = Pattern::from_object(node(pattern)?);
    match dpl::match_expr(&pattern, &self::expr(expr)?, &values(var2val)?) {
        Some(found) => parts(py, &found).map(Some),
        None => Ok(None),
    }
}

/// Parts with what holds them: variables where they are bound, values where they are not.
pub fn parts<'py>(py: Python<'py>, found: &dpl::Matches) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (part, _, value) in found.iter() {
        dict.set_item(out(py, part.object())?, out(py, value)?)?;
    }
    Ok(dict)
}

/// A context: single patterns, sequences of patterns with what lies between neighbours, groups of the same shape.
type Sequence<'py> = (Vec<Bound<'py, PyAny>>, Vec<(bool, Option<usize>)>);

fn context_of(
    single: &[Bound<'_, PyAny>],
    sequences: &[Sequence<'_>],
    same_shape: &[Vec<Bound<'_, PyAny>>],
) -> PyResult<PatternContext> {
    let pattern = |value: &Bound<'_, PyAny>| node(value).map(Pattern::from_object);
    let mut context = PatternContext::new();
    for one in single {
        context.add(&pattern(one)?);
    }
    for (members, links) in sequences {
        let mut members = members.iter().map(pattern);
        let Some(first) = members.next() else { continue };
        let mut sequence = PatternSeq::from(first?);
        for (member, (only, index)) in members.zip(links) {
            let member = member?;
            sequence = if *only { sequence.only_used_by(member, *index) } else { sequence.used_by(member, *index) };
        }
        context.add_seq(&sequence);
    }
    for group in same_shape {
        context.same_shape(&group.iter().map(pattern).collect::<PyResult<Vec<_>>>()?);
    }
    Ok(context)
}

fn found_vars<'py>(py: Python<'py>, found: &HashMap<Pattern, AnyVar>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (part, var) in found {
        dict.set_item(out(py, part.object())?, out(py, var)?)?;
    }
    Ok(dict)
}

/// What the patterns of a context stand for in a dataflow block.
#[pyfunction]
fn dpl_match_block<'py>(
    py: Python<'py>,
    single: Vec<Bound<'py, PyAny>>,
    sequences: Vec<Sequence<'py>>,
    same_shape: Vec<Vec<Bound<'py, PyAny>>>,
    block: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let context = context_of(&single, &sequences, &same_shape)?;
    let block: Ref<BindingBlock> = node(block)?;
    context.match_block(&block).map(|found| found_vars(py, &found)).transpose()
}

/// A closure's exception on its way through the rewriting.
fn passing<T>(raised: &mut Option<PyErr>, result: PyResult<T>) -> Result<T, BuildError> {
    result.map_err(|error| {
        let text = error.to_string();
        *raised = Some(error);
        BuildError::Program(text)
    })
}

fn finish<'py>(
    py: Python<'py>,
    raised: Option<PyErr>,
    result: Result<Ref<Function>, BuildError>,
) -> PyResult<Bound<'py, PyAny>> {
    match (raised, result) {
        (Some(error), _) => Err(error),
        (None, Ok(function)) => out(py, symbols::settle(&function)),
        (None, Err(error)) => Err(PyValueError::new_err(error.to_string())),
    }
}

/// The function with every match of a pattern replaced by what a Python function makes of it.
#[pyfunction]
fn dpl_rewrite_call<'py>(
    py: Python<'py>,
    pattern: &Bound<'py, PyAny>,
    rewriter: &Bound<'py, PyAny>,
    func: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (pattern, func) = (Pattern::from_object(node(pattern)?), node::<Ref<Function>>(func)?);
    let mut raised = None;
    let mut rewrite = |expr: &Expr, found: &dpl::Matches| {
        let made = out(py, expr).and_then(|expr| rewriter.call1((expr, parts(py, found)?)));
        passing(&mut raised, made.and_then(|made| self::expr(&made)))
    };
    let result = dpl::rewrite_call(&pattern, &mut rewrite, &func, &mut BlockBuilder::new());
    finish(py, raised, result)
}

/// The function with what a context matches replaced by what a Python function makes of it.
#[pyfunction]
fn dpl_rewrite_bindings<'py>(
    py: Python<'py>,
    single: Vec<Bound<'py, PyAny>>,
    sequences: Vec<Sequence<'py>>,
    same_shape: Vec<Vec<Bound<'py, PyAny>>>,
    rewriter: &Bound<'py, PyAny>,
    func: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let context = context_of(&single, &sequences, &same_shape)?;
    let func = node::<Ref<Function>>(func)?;
    let mut raised = None;
    let mut rewrite = |found: &HashMap<Pattern, AnyVar>, values: &VarValues| {
        let ask = || {
            let bindings = PyDict::new(py);
            for (var, value) in values {
                bindings.set_item(out(py, var)?, out(py, value)?)?;
            }
            let made = rewriter.call1((found_vars(py, found)?, bindings))?;
            let mut new = HashMap::new();
            for item in made.call_method0("items")?.try_iter()? {
                let (var, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item?.extract()?;
                new.insert(node::<AnyVar>(&var)?, expr(&value)?);
            }
            Ok(new)
        };
        passing(&mut raised, ask())
    };
    let result = dpl::rewrite_bindings(&context, &mut rewrite, &func, &mut BlockBuilder::new());
    finish(py, raised, result)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(dpl_match, m)?)?;
    m.add_function(wrap_pyfunction!(dpl_match_block, m)?)?;
    m.add_function(wrap_pyfunction!(dpl_rewrite_call, m)?)?;
    m.add_function(wrap_pyfunction!(dpl_rewrite_bindings, m)?)
}
