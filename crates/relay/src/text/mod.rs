//! Relay's text, version 0.0.5, both ways.

mod lex;
pub(crate) mod names;
mod parse;
mod parse_expr;
mod parse_type;
mod print;
pub(crate) mod print_parts;
mod print_type;

pub use parse::{Source, parse, parse_expr, parse_in};
pub use print::{PrintOptions, print_expr, print_module};

/// The version of the text.
pub const VERSION: &str = "0.0.5";
/// The version before it, of release 0.6: its header is `v0.0.4`, a program may be an expression alone, and metadata begin with a
/// word.
const OLDER_VERSION: &str = "v0.0.4";
