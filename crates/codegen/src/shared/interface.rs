//! Names and numbers of the interface that compiled kernels have, and how a statement is shown in messages.

use relaxide_tir::Stmt;

/// The prefix of exported entries.
pub(crate) const ENTRY_PREFIX: &str = "__tvm_ffi_";

/// Type indices of packed arguments.
pub(crate) mod index {
    pub const NONE: i64 = 0;
    pub const INT: i64 = 1;
    pub const BOOL: i64 = 2;
    pub const FLOAT: i64 = 3;
    pub const OPAQUE_POINTER: i64 = 4;
    pub const DL_TENSOR_POINTER: i64 = 7;
    pub const TENSOR: i64 = 70;
}

/// The slot in which the loader leaves the library's own module.
pub(crate) const LIBRARY_CONTEXT: &str = "__tvm_ffi__library_ctx";

/// A statement as errors show it: its first line, or the beginning of that.
pub(crate) fn first_line(stmt: &Stmt) -> String {
    const LONGEST: usize = 120;
    let text = stmt.to_string();
    let line = text.lines().next().unwrap_or_default().trim();
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} …", &line[..end]),
        None => line.to_string(),
    }
}
