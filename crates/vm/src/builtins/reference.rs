//! References: values that may be replaced.

use relaxide_ffi::{Any, Array, Error, ErrorKind, Ref};

use super::{Args, Builtin};
use crate::RefValue;

pub(super) const TABLE: &[Builtin] = &[
    Builtin::plain("vm.builtin.reference_new", new),
    Builtin::plain("vm.builtin.reference_read", read),
    Builtin::plain("vm.builtin.reference_write", write),
];

fn reference(args: &Args<'_, '_>) -> Result<Ref<RefValue>, Error> {
    let value = args.view(0, "reference")?;
    let wrong = || args.error(ErrorKind::TypeError, format_args!("a reference is expected, not {}", value.type_key()));
    value.downcast_ref::<RefValue>().cloned().ok_or_else(wrong)
}

/// `(value)`: a reference to it.
fn new(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(1, 1)?;
    Ok(RefValue::new(args.view(0, "value")?.to_owned()).into())
}

/// `(reference)`: what it holds.
fn read(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(1, 1)?;
    Ok(reference(args)?.get())
}

/// `(reference, value)`: has it hold something else, and gives the empty tuple.
fn write(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(2, 2)?;
    reference(args)?.set(args.view(1, "value")?.to_owned());
    Ok(Array::from_vec(Vec::new()).into())
}
