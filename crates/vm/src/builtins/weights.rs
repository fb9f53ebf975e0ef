//! The mark of programs whose weights lie in a file of their own (see [`crate::executable::weights`]).

use relaxide_ffi::ErrorKind;

use super::Builtin;
use crate::executable::weights::MARK;

pub(super) const TABLE: &[Builtin] = &[Builtin::plain(MARK, |args| {
    Err(args.error(
        ErrorKind::RuntimeError,
        format_args!("it marks programs whose weights are in another file, and does nothing"),
    ))
})];
