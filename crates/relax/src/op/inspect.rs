//! What a tensor is when the program runs: its rank, dtype, dimensions, strides, offset; and views of its memory.

use relaxide_ffi::DataType;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{Attrs, Type};

use super::*;
use crate::BlockBuilder;
use crate::shape::num_elements;

const TENSOR: ArgDef = ArgDef::tensor("tensor", "The tensor.");
const AXIS: ArgDef = ArgDef::scalar("axis", "The dimension, counted from the front.");

const fn row(
    name: &'static str,
    args: &'static [ArgDef],
    infer: fn(&CallCx) -> Result<Type, OpError>,
    function: &'static str,
    doc: &'static str,
) -> OpDef {
    OpDef { name, doc, args, infer, lower: Lowering::Builtin(function), ..OpDef::BASE }
}

/// The rows.
pub static TABLE: &[OpDef] = &[
    row(
        "inspect.tensor_ndim",
        &[TENSOR],
        |cx| of(cx, DataType::int(32)),
        "vm.inspect.tensor_ndim",
        "How many dimensions it has.",
    ),
    row(
        "inspect.tensor_dtype_code",
        &[TENSOR],
        |cx| of(cx, DataType::uint(8)),
        "vm.inspect.tensor_dtype_code",
        "The kind of its elements, as DLPack numbers them.",
    ),
    row(
        "inspect.tensor_dtype_bits",
        &[TENSOR],
        |cx| of(cx, DataType::uint(8)),
        "vm.inspect.tensor_dtype_bits",
        "The width of its elements in bits.",
    ),
    row(
        "inspect.tensor_dtype_lanes",
        &[TENSOR],
        |cx| of(cx, DataType::uint(16)),
        "vm.inspect.tensor_dtype_lanes",
        "How many lanes its elements have.",
    ),
    row("inspect.tensor_shape_i", &[TENSOR, AXIS], along, "vm.inspect.tensor_shape_i", "One of its dimensions."),
    row(
        "inspect.tensor_stride_i",
        &[TENSOR, AXIS],
        along,
        "vm.inspect.tensor_stride_i",
        "The distance of neighbours along a dimension, in elements.",
    ),
    row(
        "inspect.tensor_byte_offset",
        &[TENSOR],
        |cx| of(cx, DataType::uint(64)),
        "vm.inspect.tensor_byte_offset",
        "Where its elements begin in its memory, in bytes.",
    ),
    row(
        "inspect.tensor_elem_offset",
        &[TENSOR],
        |cx| of(cx, DataType::uint(64)),
        "vm.inspect.tensor_elem_offset",
        "Where its elements begin in its memory, in elements.",
    ),
    OpDef::decomposed(
        "memory.view",
        &[
            ArgDef::tensor("data", "The tensor."),
            ArgDef::shape_or_none("shape", "Other dimensions; an empty tuple keeps them."),
            ArgDef::dtype("dtype", "Another element type; an empty tuple keeps it."),
            ArgDef::any(
                "relative_byte_offset",
                "Where the view begins, in bytes behind the tensor's; an empty tuple is zero.",
            ),
        ],
        &[],
        view_type,
        view,
        "The same memory as another tensor: nothing is copied, and the view must not reach beyond the tensor.",
    )
    .memory(MemoryUse::View),
];

fn of(cx: &CallCx, dtype: DataType) -> Result<Type, OpError> {
    cx.tensor(0)?;
    Ok(Type::prim(dtype))
}

fn along(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    if let Some(axis) = cx.scalar(1)?.as_int()
        && (axis < 0 || x.ndim.is_some_and(|n| axis >= n as i64))
    {
        return cx.invalid(format!("axis {axis} is not one of the tensor's, which are counted from the front"));
    }
    Ok(Type::prim(DataType::int(64)))
}

/// Whether an argument of a view says that nothing changes.
fn absent(arg: &Expr) -> bool {
    matches!(arg, Expr::Tuple(t) if t.fields.is_empty())
        || arg.as_op_call().is_some_and(|(_, name)| name == "null_value")
}

fn view_dtype(cx: &CallCx) -> Result<Option<DataType>, OpError> {
    match cx.arg(2)? {
        arg if absent(arg) => Ok(None),
        Expr::DType(d) if d.value.is_void() => cx.invalid("`dtype` must be an element type, not `void`"),
        Expr::DType(d) => Ok(Some(d.value)),
        Expr::Var(_) | Expr::DataflowVar(_) => Ok(Some(DataType::void())),
        _ => cx.invalid("`dtype` must be an element type"),
    }
}

/// How many bytes tensors of these dimensions have, where that is a number.
fn bytes(dims: Option<&[PrimExpr]>, dtype: DataType) -> Option<i64> {
    let count = num_elements(dims?).as_int()?;
    if dtype.is_void() { None } else { count.checked_mul(dtype.bytes() as i64) }
}

fn view_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    let dtype = view_dtype(cx)?.unwrap_or(x.dtype);
    let (dims, ndim) = match cx.arg(1)? {
        arg if absent(arg) => (x.dims.clone(), x.ndim),
        _ => match cx.shape_arg(1)? {
            Ok(dims) => (Some(dims.clone()), Some(dims.len())),
            Err(ndim) => (None, ndim),
        },
    };
    let offset = match cx.arg(3)? {
        arg if absent(arg) => Some(0),
        _ => match cx.ty(3)? {
            Type::Prim(p) if p.dtype == DataType::int(64) => cx.scalar(3)?.as_int(),
            _ => return cx.invalid("`relative_byte_offset` must be a scalar of int64"),
        },
    };
    if offset.is_some_and(|o| o < 0) {
        return cx.invalid("`relative_byte_offset` is negative");
    }
    if let (Some(have), Some(want), Some(offset)) =
        (bytes(x.dims.as_deref(), x.dtype), bytes(dims.as_deref(), dtype), offset)
        && want + offset > have
    {
        return cx.invalid(format!("a view of {want} bytes at byte {offset} reaches beyond the tensor's {have} bytes"));
    }
    let same_elements = absent(cx.arg(2)?) || dtype == x.dtype;
    if same_elements && offset.is_some_and(|o| o > 0) && absent(cx.arg(1)?) {
        return cx.invalid("a view of all elements that begins behind the first reaches beyond the tensor");
    }
    if let (true, Some(have), Some(want)) = (same_elements, &x.dims, &dims) {
        let mut analyzer = Analyzer::new();
        analyzer.mark_dims(have);
        let (have, want) = (num_elements(have), num_elements(want));
        if analyzer.can_prove(&prim::gt(&want, &have)) {
            return cx.invalid(format!("a view of {want} elements reaches beyond the tensor's {have}"));
        }
    }
    Ok(tensor_type(dims, ndim, dtype))
}

/// The run time's function that makes views.
pub(crate) const CREATE_VIEW: &str = "runtime.TVMTensorCreateView";

/// A call of the run time's function.
fn view(cx: &CallCx, b: &mut BlockBuilder) -> Result<Expr, OpError> {
    let args = std::iter::once(Expr::external(CREATE_VIEW)).chain(view_args(cx, b)?);
    call_typed("call_pure_packed", args.collect::<Vec<_>>(), Attrs::new(), vec![view_type(cx)?])
}

/// The arguments of a view with everything said.
pub(crate) fn view_args(cx: &CallCx, b: &mut BlockBuilder) -> Result<Vec<Expr>, OpError> {
    let plain = |e| OpError::of_build(cx.name(), e);
    let x = cx.arg(0)?.clone();
    let shape = match cx.arg(1)? {
        arg if absent(arg)
            && let Some(dims) = &cx.tensor(0)?.dims =>
        {
            Expr::shape(dims.iter().cloned())
        }
        arg if absent(arg) => b.op("shape_of", [x.clone()], Attrs::new()).map_err(plain)?,
        arg => arg.clone(),
    };
    let dtype = match (cx.arg(2)?, cx.tensor(0)?.dtype) {
        (arg, _) if !absent(arg) => arg.clone(),
        (_, dtype) if !dtype.is_void() => Expr::dtype(dtype),
        _ => return cx.unsupported("the dtype of the tensor is not known to the compiler; give it with match_cast"),
    };
    let offset = match cx.arg(3)? {
        arg if absent(arg) => Expr::prim(0i64),
        arg => arg.clone(),
    };
    Ok(vec![x, shape, dtype, offset])
}
