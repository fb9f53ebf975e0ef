//! Relay's text, version 0.0.5, both ways.

mod lex;
mod parse;
mod parse_expr;
mod parse_type;
mod print;
mod print_parts;

pub(crate) use lex::is_name;
pub use parse::{Source, parse, parse_expr, parse_in};
pub use print::{PrintOptions, print_expr, print_module};

/// The version of the text.
pub const VERSION: &str = "0.0.5";
