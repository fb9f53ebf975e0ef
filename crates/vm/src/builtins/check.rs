//! Checks of arguments and results against their annotations.
//!
//! The compiler puts them at the beginning of a function, and behind casts. The last argument of each is a text that
//! names the function, the parameter and its annotation, and that every message begins with.

use relaxide_ffi::abi::type_index;
use relaxide_ffi::{Any, AnyView, Array, DataType, Error, ErrorKind, Function};

use super::{Args, Builtin, mismatch};
use crate::closure::Closure;

/// The interpreter knows this one, with a known rank and type, as an operation of its own.
pub(crate) const CHECK_TENSOR: &str = "vm.builtin.check_tensor_info";

pub(super) const TABLE: &[Builtin] = &[
    Builtin::plain(CHECK_TENSOR, check_tensor),
    Builtin::plain("vm.builtin.check_shape_info", check_shape),
    Builtin::plain("vm.builtin.check_prim_value_info", check_prim_value),
    Builtin::plain("vm.builtin.check_string_info", check_string),
    Builtin::plain("vm.builtin.check_tuple_info", check_tuple),
    Builtin::plain("vm.builtin.check_func_info", check_function),
];

/// The argument with the text in front of messages; it may be absent.
fn context<'v>(args: &Args<'_, 'v>, index: usize) -> AnyView<'v> {
    args.view(index, "context").unwrap_or(AnyView::none())
}

#[cold]
fn failed(context: AnyView<'_>, kind: ErrorKind, message: std::fmt::Arguments<'_>) -> Error {
    Error::new(kind, format!("{}: {message}", mismatch::subject(context)))
}

/// The type of a value as messages name it.
fn name_of(value: AnyView<'_>) -> &'static str {
    value.type_key()
}

/// `(x, ndim, [dtype,] context)`; any rank if `ndim` is -1.
fn check_tensor(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(3, 4)?;
    let at = args.len() - 1;
    let dtype = if at == 3 { args.get(2, "dtype")? } else { None };
    tensor_info(args.view(0, "x")?, args.get(1, "ndim")?, dtype, context(args, at))?;
    Ok(Any::none())
}

/// Checks that a value is a tensor of a rank, or of any if that is -1, and of a type, if there is one.
#[inline]
pub(crate) fn tensor_info(
    value: AnyView<'_>,
    ndim: i64,
    dtype: Option<DataType>,
    context: AnyView<'_>,
) -> Result<(), Error> {
    let Some((dims, found)) = value.dims_and_dtype() else {
        let message = format_args!("expect a Tensor but get {}", name_of(value));
        return Err(failed(context, ErrorKind::TypeError, message));
    };
    if ndim != -1 && dims.len() as i64 != ndim {
        let message = format_args!("expect Tensor with ndim {ndim} but get {}", dims.len());
        return Err(failed(context, ErrorKind::ValueError, message));
    }
    match dtype {
        Some(wanted) if wanted != found => {
            let message = format_args!("expect Tensor with dtype {wanted} but get {found}");
            Err(failed(context, ErrorKind::ValueError, message))
        }
        _ => Ok(()),
    }
}

/// `(x, ndim, context)`; any rank if `ndim` is -1.
fn check_shape(args: &Args<'_, '_>) -> Result<Any, Error> {
    let value = args.view(0, "x")?;
    let ndim: i64 = args.get(1, "ndim")?;
    let Some(shape) = value.as_shape() else {
        return Err(failed(
            context(args, 2),
            ErrorKind::TypeError,
            format_args!("expect a Shape but get {}", name_of(value)),
        ));
    };
    let found = shape.len();
    if ndim != -1 && found as i64 != ndim {
        let message = format_args!("expect Shape with ndim {ndim} but get {found}");
        return Err(failed(context(args, 2), ErrorKind::ValueError, message));
    }
    Ok(Any::none())
}

/// `(x, dtype, context)`. A whole number is a number too, so integers pass for floats.
fn check_prim_value(args: &Args<'_, '_>) -> Result<Any, Error> {
    let value = args.view(0, "x")?;
    let dtype: DataType = args.get(1, "dtype")?;
    let is_int = matches!(value.type_index(), type_index::INT | type_index::BOOL);
    let fits = match dtype.code {
        DataType::INT | DataType::UINT | DataType::BOOL => is_int,
        DataType::FLOAT | DataType::BFLOAT => is_int || value.type_index() == type_index::FLOAT,
        DataType::HANDLE => value.is_none() || value.type_index() == type_index::OPAQUE_PTR,
        _ => false,
    };
    if fits {
        return Ok(Any::none());
    }
    let message = format_args!(", expected dtype {dtype}, but received {}", name_of(value));
    Err(failed(context(args, 2), ErrorKind::TypeError, message))
}

/// `(x, context)`.
fn check_string(args: &Args<'_, '_>) -> Result<Any, Error> {
    match args.view(0, "x")?.as_str() {
        Some(_) => Ok(Any::none()),
        None => Err(failed(context(args, 1), ErrorKind::TypeError, format_args!("expect a string"))),
    }
}

/// `(x, size, context)`.
fn check_tuple(args: &Args<'_, '_>) -> Result<Any, Error> {
    let value = args.view(0, "x")?;
    let size: i64 = args.get(1, "size")?;
    let Ok(tuple) = value.to::<Array>() else {
        return Err(failed(
            context(args, 2),
            ErrorKind::TypeError,
            format_args!("expect a Tuple but get {}", name_of(value)),
        ));
    };
    let found = tuple.len();
    if found as i64 != size {
        let message = format_args!("expect a Tuple with {size} elements,  but get a Tuple with {found} elements.");
        return Err(failed(context(args, 2), ErrorKind::ValueError, message));
    }
    Ok(Any::none())
}

/// `(x, context)`.
fn check_function(args: &Args<'_, '_>) -> Result<Any, Error> {
    let value = args.view(0, "x")?;
    if value.to::<Function>().is_ok() || value.downcast_ref::<Closure>().is_some() {
        return Ok(Any::none());
    }
    Err(failed(context(args, 1), ErrorKind::TypeError, format_args!("expect a Function but get {}", name_of(value))))
}
