//! The operator registry to Python: what there is, and calls by name.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use relaxide::ffi::{Any, DataType, Error, ErrorKind, Ref};
use relaxide::ir::prim::{self, PrimExpr};
use relaxide::ir::{Attrs, Type, Var};
use relaxide::relax::compute::{Tensors, tensors_of};
use relaxide::relax::op::{self, ArgDef, ArgKind, Arity, AttrDef, AttrDefault, AttrKind, OpDef, OpError};
use relaxide::relax::{AnyVar, DataTypeImm, Expr};

use super::args;
use super::te::TeTensor;
use crate::{convert, error};

fn kind_of_arg(arg: &ArgDef) -> &'static str {
    match arg.kind {
        ArgKind::Tensor => "Expr",
        ArgKind::TensorOrScalar => "Expr | int | float | bool",
        ArgKind::Tensors => "Expr | list[Expr]",
        ArgKind::Shape | ArgKind::ShapeOrNone => "Expr | list[int | PrimExpr]",
        ArgKind::Scalar => "Expr | int | float",
        ArgKind::Scalars => "Expr | list[int | PrimExpr]",
        ArgKind::DType => "str",
        ArgKind::Any => "Expr",
    }
}

fn kind_of_attr(attr: &AttrDef) -> &'static str {
    match attr.kind {
        AttrKind::Bool => "bool",
        AttrKind::Int => "int",
        AttrKind::Float => "float",
        AttrKind::Str => "str",
        AttrKind::DType => "str",
        AttrKind::Ints | AttrKind::IntsOf(_) => "int | list[int]",
        AttrKind::Any => "object",
    }
}

/// The default of an attribute as Python writes it; nothing where it must be given.
fn default_text(attr: &AttrDef) -> Option<String> {
    Some(match attr.default {
        AttrDefault::Required => return None,
        AttrDefault::None | AttrDefault::Same(_) | AttrDefault::Void => "None".to_string(),
        AttrDefault::Bool(value) => if value { "True" } else { "False" }.to_string(),
        AttrDefault::Int(value) => value.to_string(),
        AttrDefault::Float(value) if value.is_finite() => format!("{value:?}"),
        AttrDefault::Float(value) => format!("float('{value}')"),
        AttrDefault::Str(value) => format!("{value:?}"),
        AttrDefault::Zeros(count) => format!("({})", vec!["0.0"; count].join(", ")),
        AttrDefault::Ints(values) => {
            let items: Vec<String> = values.iter().map(i64::to_string).collect();
            format!("({}{})", items.join(", "), if items.len() == 1 { "," } else { "" })
        }
    })
}

/// The names of all operators.
#[pyfunction]
fn op_names() -> Vec<&'static str> {
    op::all().map(|def| def.name).collect()
}

/// What the registry says of an operator: its doc, its arguments as `(name, type, arity or default, doc)`, its attributes as
/// `(name, type, default, doc)`, whether it is pure, and whether it has a derivative.
#[pyfunction]
fn op_definition<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let Some(def) = op::lookup(name) else { return Ok(None) };
    let arity = |arg: &ArgDef| match (arg.arity, arg.default) {
        (_, Some(default)) => default.to_string(),
        (Arity::Required, _) => "required".into(),
        (Arity::Optional, _) => "optional".into(),
        (Arity::Variadic, _) => "variadic".into(),
    };
    let arguments: Vec<(&str, &str, String, &str)> = match op::surface(name) {
        None => def.args.iter().map(|arg| (arg.name, kind_of_arg(arg), arity(arg), arg.doc)).collect(),
        Some(surface) => surface.params.iter().map(|(name, default)| surface_param(def, name, *default)).collect(),
    };
    let attributes = def.attrs.iter().map(|attr| (attr.name, kind_of_attr(attr), default_text(attr), attr.doc));
    let arguments = PyList::new(py, arguments)?;
    let attributes = PyList::new(py, attributes.collect::<Vec<_>>())?;
    (def.doc, arguments, attributes, def.pure, def.gradient.is_some()).into_pyobject(py).map(Some)
}

/// A parameter of a call whose text has others than its node. What it is stands with the argument of that name.
fn surface_param(
    def: &'static OpDef,
    name: &'static str,
    default: Option<&'static str>,
) -> (&'static str, &'static str, String, &'static str) {
    // `queries` is the argument `query`.
    let is_it = |arg: &&ArgDef| {
        arg.name == name || name.strip_suffix('s') == Some(arg.name) || name == "queries" && arg.name == "query"
    };
    let arg = def.args.iter().find(is_it);
    let (kind, doc) = arg.map_or(("Expr", "What is added to the products."), |arg| (kind_of_arg(arg), arg.doc));
    (name, kind, default.unwrap_or("required").to_string(), doc)
}

/// A call of an operator.
#[pyfunction]
fn op_call<'py>(
    py: Python<'py>,
    name: &str,
    arguments: &Bound<'py, PyTuple>,
    attributes: &Bound<'py, PyDict>,
    ty_args: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let given = arguments.iter().map(|arg| convert::from_py(&arg)).collect::<PyResult<Vec<Any>>>()?;
    let call = checked_call(name, given, attributes, ty_args)?;
    convert::to_py(py, call.into())
}

/// A checked call of an operator by name.
fn checked_call(
    name: &str,
    given: Vec<Any>,
    attributes: &Bound<'_, PyDict>,
    ty_args: &Bound<'_, PyAny>,
) -> PyResult<Expr> {
    let refuse = |message: String| error::to_py(Error::new(ErrorKind::ValueError, message));
    let def = op::lookup(name).ok_or_else(|| refuse(format!("there is no operator {name}")))?;
    let (def, given) = arranged(def, given).map_err(error::to_py)?;
    let operands = operands(def, &given).map_err(error::to_py)?;
    let mut attrs = Attrs::new();
    for (key, value) in attributes.iter() {
        let value = convert::from_py(&value)?;
        let value = args::attr_value(value.as_view()).map_err(error::to_py)?;
        attrs = attrs.with(key.extract::<String>()?, value);
    }
    let types = convert::from_py(ty_args)?;
    let types = super::Args { function: "ty_args", values: &[types.as_view()] }.types(0).map_err(error::to_py)?;
    op::call_typed(def.name, operands, attrs, types).map_err(refusal)
}

/// What is wrong with a call as an exception, of a class that fits both what Python's users expect and what TVM raises.
fn refusal(error: OpError) -> PyErr {
    let kind = match &error {
        OpError::Argument { .. } | OpError::DType { .. } => "OperatorTypeError",
        OpError::Attribute { .. } => "OperatorAttributeError",
        OpError::Unknown(_) | OpError::Arity { .. } | OpError::Invalid { .. } => "OperatorError",
        OpError::Unsupported { .. } => "ValueError",
    };
    error::to_py(Error::new(kind, error.to_string()))
}

/// What an operator computes on tensors of the compute language, which stand among the arguments, alone or in lists.
#[pyfunction]
fn te_call(name: &str, arguments: &Bound<'_, PyTuple>, attributes: &Bound<'_, PyDict>) -> PyResult<Vec<TeTensor>> {
    let mut known = Tensors::new();
    let given = arguments.iter().map(|arg| te_argument(&arg, &mut known)).collect::<PyResult<Vec<Any>>>()?;
    let none = arguments.py().None();
    let call = checked_call(name, given, attributes, none.bind(arguments.py()))?;
    let tensors = tensors_of(&call, &mut known);
    let refuse = |message: String| error::to_py(Error::new(ErrorKind::ValueError, message));
    Ok(tensors.map_err(|error| refuse(error.to_string()))?.into_iter().map(TeTensor).collect())
}

/// An argument with a variable in the place of each tensor of the compute language.
fn te_argument(arg: &Bound<'_, PyAny>, known: &mut Tensors) -> PyResult<Any> {
    let mut variable = |tensor: TeTensor| {
        let wide = |dim: &PrimExpr| match dim.as_int() {
            Some(number) => PrimExpr::from(number),
            None if dim.dtype() == DataType::int(64) => dim.clone(),
            None => prim::cast(DataType::int(64), dim.clone()),
        };
        let dims: Vec<PrimExpr> = tensor.0.shape().iter().map(wide).collect();
        let var = Var::new(tensor.0.name(), Type::tensor(dims, tensor.0.dtype()));
        known.insert(AnyVar::Var(var.clone()), vec![tensor.0]);
        Expr::from(var)
    };
    if let Ok(tensor) = arg.extract::<TeTensor>() {
        return Ok(variable(tensor).into());
    }
    if let Ok(list) = arg.extract::<Vec<TeTensor>>()
        && !list.is_empty()
    {
        return Ok(Expr::tuple(list.into_iter().map(variable).collect::<Vec<_>>()).into());
    }
    convert::from_py(arg)
}

/// The operator that is called, and its arguments in the order of its node.
fn arranged(def: &'static OpDef, given: Vec<Any>) -> Result<(&'static OpDef, Vec<Any>), Error> {
    let Some(surface) = op::surface(def.name) else { return Ok((def, given)) };
    let given: Vec<Option<Any>> = given.into_iter().map(|value| (!value.is_none()).then_some(value)).collect();
    let (name, slots) = surface.arrange(&given);
    let missing = || Error::new(ErrorKind::ValueError, format!("there is no operator {name}"));
    let values = slots.into_iter().map(|slot| match slot {
        op::Slot::Given(value) => value,
        op::Slot::Int(number) => Any::from(number),
        op::Slot::Nothing => Any::from(Expr::tuple(Vec::<Expr>::new())),
    });
    Ok((op::lookup(name).ok_or_else(missing)?, values.collect()))
}

/// What was given for the arguments of a definition, each in the form that it asks for.
fn operands(def: &OpDef, given: &[Any]) -> Result<Vec<Expr>, Error> {
    let mut operands: Vec<Expr> = Vec::with_capacity(given.len());
    for (at, value) in given.iter().enumerate() {
        let arg = def.args.get(at).or(def.args.last().filter(|last| last.arity == Arity::Variadic));
        if value.as_view().is_none() && arg.is_some_and(|arg| arg.arity == Arity::Optional) {
            break;
        }
        let named = |error: Error| {
            let name = arg.map_or("?", |arg| arg.name);
            Error::new(error.kind(), format!("{}, argument `{name}`: {}", def.name, error.message()))
        };
        let dtype = || given.iter().find_map(tensor_dtype).unwrap_or(DataType::float(32));
        operands.push(operand(arg.map(|arg| arg.kind), value, dtype).map_err(named)?);
    }
    Ok(operands)
}

fn tensor_dtype(value: &Any) -> Option<DataType> {
    match args::expr(value.as_view()).ok()?.ty() {
        Type::Tensor(ty) if ty.dtype != DataType::void() => Some(ty.dtype),
        _ => None,
    }
}

fn operand(kind: Option<ArgKind>, value: &Any, dtype: impl Fn() -> DataType) -> Result<Expr, Error> {
    use relaxide::ffi::abi::type_index as index;
    let view = value.as_view();
    let is_number = matches!(view.type_index(), index::INT | index::FLOAT | index::BOOL);
    match kind {
        Some(ArgKind::Tensor | ArgKind::TensorOrScalar) if is_number => number(value, dtype()),
        Some(ArgKind::Shape | ArgKind::ShapeOrNone) => match args::prims(view) {
            Ok(dims) if value.as_object().is_none_or(|object| PrimExpr::try_from(object.clone()).is_err()) => {
                Ok(Expr::shape(dims))
            }
            _ => args::expr(view),
        },
        Some(ArgKind::Scalar) => args::prim_expr(view).map(Expr::prim),
        Some(ArgKind::Scalars) => match args::prims(view) {
            Ok(values) => Ok(Expr::tuple(values.into_iter().map(Expr::prim).collect::<Vec<_>>())),
            Err(_) => args::expr(view),
        },
        Some(ArgKind::DType) => match view.to::<DataType>() {
            Ok(dtype) => Ok(Expr::from(Ref::new(DataTypeImm { value: dtype }))),
            Err(_) => args::expr(view),
        },
        _ => args::expr(view),
    }
}

/// A number as a 0-d tensor of the other operands' type.
fn number(value: &Any, dtype: DataType) -> Result<Expr, Error> {
    let literal = args::prim_expr(value.as_view())?;
    match relaxide::script::literal_tensor(&literal, dtype) {
        Some(tensor) => tensor.map(Expr::constant),
        None => Err(Error::new(ErrorKind::TypeError, format!("there are no constants of type {dtype}"))),
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(op_names, m)?)?;
    m.add_function(wrap_pyfunction!(op_definition, m)?)?;
    m.add_function(wrap_pyfunction!(te_call, m)?)?;
    m.add_function(wrap_pyfunction!(op_call, m)?)
}
