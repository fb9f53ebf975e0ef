//! Tuples and plain values.

use relaxide_ffi::{Any, AnyView, Array, DataType, Device, Error, ErrorKind};
use relaxide_runtime::device;

use super::{Args, Builtin};

/// The interpreter knows this one: it clears a register.
pub(crate) const NULL_VALUE: &str = "vm.builtin.null_value";

/// And these two, of registers.
pub(crate) const COPY: &str = "vm.builtin.copy";
/// See [`COPY`].
pub(crate) const READ_IF_COND: &str = "vm.builtin.read_if_cond";

pub(super) const TABLE: &[Builtin] = &[
    Builtin::plain("vm.builtin.make_tuple", make_tuple),
    Builtin::plain("vm.builtin.tuple_getitem", tuple_getitem),
    Builtin::plain("vm.builtin.tuple_reset_item", tuple_reset_item),
    Builtin::plain(COPY, copy),
    Builtin::plain(NULL_VALUE, null_value),
    Builtin::plain(READ_IF_COND, read_if_cond),
];

/// `(element…)`.
fn make_tuple(args: &Args<'_, '_>) -> Result<Any, Error> {
    Ok(Array::from_vec(args.rest(0).iter().map(|view| view.to_owned()).collect()).into())
}

/// The element that an index names.
fn element<'a>(args: &Args<'_, '_>, tuple: &'a Array) -> Result<&'a Any, Error> {
    let index: i64 = args.get(1, "index")?;
    let found = usize::try_from(index).ok().and_then(|index| tuple.get(index));
    found.ok_or_else(|| Error::new(ErrorKind::IndexError, format!("Index {index} out of bounds {}", tuple.len())))
}

/// `(tuple, index)`.
fn tuple_getitem(args: &Args<'_, '_>) -> Result<Any, Error> {
    let tuple: Array = args.get(0, "tuple")?;
    element(args, &tuple).cloned()
}

/// `(tuple, index)`: says that nobody reads the element any more. Tuples do not change, so nothing is freed before the
/// tuple is.
fn tuple_reset_item(args: &Args<'_, '_>) -> Result<Any, Error> {
    element(args, &args.get(0, "tuple")?)?;
    Ok(Any::none())
}

/// `(x)`: another reference to the same value.
fn copy(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(1, 1)?;
    Ok(args.view(0, "x")?.to_owned())
}

/// `()`.
fn null_value(_args: &Args<'_, '_>) -> Result<Any, Error> {
    Ok(Any::none())
}

/// `(cond)`: an integer, or a tensor of one integer.
fn read_if_cond(args: &Args<'_, '_>) -> Result<Any, Error> {
    truth(args.view(0, "cond")?).map(Any::from)
}

/// The truth of a condition.
#[inline]
pub(crate) fn truth(value: AnyView<'_>) -> Result<bool, Error> {
    if let Some(value) = value.as_int() {
        return Ok(value != 0);
    }
    let Some(tensor) = value.as_tensor() else { return Err(no_condition(value)) };
    let is_whole = matches!(tensor.dtype().code, DataType::INT | DataType::UINT | DataType::BOOL);
    if !is_whole || tensor.numel() != 1 {
        return Err(no_condition(value));
    }
    if tensor.device().device_type == Device::CPU {
        return Ok(tensor.as_bytes()?.iter().any(|byte| *byte != 0));
    }
    Ok(device::to_device(tensor, Device::cpu(0))?.as_bytes()?.iter().any(|byte| *byte != 0))
}

#[cold]
fn no_condition(value: AnyView<'_>) -> Error {
    let found = value.as_tensor().map_or_else(|| value.type_key().to_owned(), |tensor| format!("{tensor:?}"));
    let message = format!("{READ_IF_COND}: a condition is one integer or bool, not {found}");
    Error::new(ErrorKind::TypeError, message)
}
