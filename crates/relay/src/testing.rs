//! What the tests of this crate need of its inside. No program calls it.

pub use crate::text::names::{attribute, global, name, quoted, read_quoted};
pub use crate::text::print_parts::float_text;
