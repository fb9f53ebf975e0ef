//! Where in a source text a node comes from.

use relaxide_ffi::{Object, Ref};

/// A range of a source file; lines and columns count from 1.
#[derive(Object, Debug)]
#[object(key = "ir.Span")]
pub struct Span {
    /// The file, or whatever names the source.
    pub source: String,
    /// First line.
    pub line: i64,
    /// Last line.
    pub end_line: i64,
    /// First column.
    pub column: i64,
    /// Column behind the last character.
    pub end_column: i64,
}

/// A span that may be absent: nodes built by passes have none.
pub type MaybeSpan = Option<Ref<Span>>;
