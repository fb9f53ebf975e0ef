//! Checks of arguments and results against their annotations.
//!
//! The compiler puts them at the beginning of a function, and behind casts. The last argument of each is a text that
//! names the function, the parameter and its annotation, and that every message begins with.

use relaxide_ffi::abi::type_index;
use relaxide_ffi::{Any, AnyView, Array, DataType, Error, ErrorKind, Function};

use super::{Args, Builtin};
use crate::machine::Closure;

pub(super) const TABLE: &[Builtin] = &[
    Builtin::plain("vm.builtin.check_tensor_info", check_tensor),
    Builtin::plain("vm.builtin.check_shape_info", check_shape),
    Builtin::plain("vm.builtin.check_prim_value_info", check_prim_value),
    Builtin::plain("vm.builtin.check_string_info", check_string),
    Builtin::plain("vm.builtin.check_tuple_info", check_tuple),
    Builtin::plain("vm.builtin.check_func_info", check_function),
];

/// The text in front of a message; the argument may be absent.
pub(super) fn context(args: &Args<'_, '_>, index: usize) -> String {
    args.view(index, "context").ok().and_then(|view| view.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cold]
fn failed(args: &Args<'_, '_>, at: usize, kind: ErrorKind, message: std::fmt::Arguments<'_>) -> Error {
    Error::new(kind, format!("{} {message}", context(args, at)))
}

/// The type of a value as messages name it.
fn name_of(value: AnyView<'_>) -> &'static str {
    value.type_key()
}

/// `(x, ndim, [dtype,] context)`; any rank if `ndim` is -1.
fn check_tensor(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(3, 4)?;
    let at = args.len() - 1;
    let value = args.view(0, "x")?;
    let ndim: i64 = args.get(1, "ndim")?;
    let Some(tensor) = value.as_tensor() else {
        return Err(failed(args, at, ErrorKind::TypeError, format_args!("expect a Tensor but get {}", name_of(value))));
    };
    if ndim != -1 && tensor.ndim() as i64 != ndim {
        let message = format_args!("expect Tensor with ndim {ndim} but get {}", tensor.ndim());
        return Err(failed(args, at, ErrorKind::ValueError, message));
    }
    if args.len() == 4 && !args.view(2, "dtype")?.is_none() {
        let (wanted, found) = (args.get::<DataType>(2, "dtype")?, tensor.dtype());
        if wanted != found {
            let message = format_args!("expect Tensor with dtype {wanted} but get {found}");
            return Err(failed(args, at, ErrorKind::ValueError, message));
        }
    }
    Ok(Any::none())
}

/// `(x, ndim, context)`; any rank if `ndim` is -1.
fn check_shape(args: &Args<'_, '_>) -> Result<Any, Error> {
    let value = args.view(0, "x")?;
    let ndim: i64 = args.get(1, "ndim")?;
    let Some(shape) = value.as_shape() else {
        return Err(failed(args, 2, ErrorKind::TypeError, format_args!("expect a Shape but get {}", name_of(value))));
    };
    let found = shape.len();
    if ndim != -1 && found as i64 != ndim {
        let message = format_args!("expect Shape with ndim {ndim} but get {found}");
        return Err(failed(args, 2, ErrorKind::ValueError, message));
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
    Err(failed(args, 2, ErrorKind::TypeError, message))
}

/// `(x, context)`.
fn check_string(args: &Args<'_, '_>) -> Result<Any, Error> {
    match args.view(0, "x")?.as_str() {
        Some(_) => Ok(Any::none()),
        None => Err(failed(args, 1, ErrorKind::TypeError, format_args!("expect a string"))),
    }
}

/// `(x, size, context)`.
fn check_tuple(args: &Args<'_, '_>) -> Result<Any, Error> {
    let value = args.view(0, "x")?;
    let size: i64 = args.get(1, "size")?;
    let Ok(tuple) = value.to::<Array>() else {
        return Err(failed(args, 2, ErrorKind::TypeError, format_args!("expect a Tuple but get {}", name_of(value))));
    };
    let found = tuple.len();
    if found as i64 != size {
        let message = format_args!("expect a Tuple with {size} elements,  but get a Tuple with {found} elements.");
        return Err(failed(args, 2, ErrorKind::ValueError, message));
    }
    Ok(Any::none())
}

/// `(x, context)`.
fn check_function(args: &Args<'_, '_>) -> Result<Any, Error> {
    let value = args.view(0, "x")?;
    if value.to::<Function>().is_ok() || value.downcast_ref::<Closure>().is_some() {
        return Ok(Any::none());
    }
    Err(failed(args, 1, ErrorKind::TypeError, format_args!("expect a Function but get {}", name_of(value))))
}
