//! What several back ends share: types of values, checks of arguments, names of the interface.

pub(crate) mod interface;
pub(crate) mod scalar;
pub(crate) mod tensor_failures;

pub(crate) use interface::{ENTRY_PREFIX, LIBRARY_CONTEXT, first_line, index};
pub(crate) use scalar::{Overflow, ScalarKind, Ty};
