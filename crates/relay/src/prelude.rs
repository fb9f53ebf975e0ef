//! The prelude: lists, options and trees, and the functions over them.

use std::sync::LazyLock;

use crate::Module;
use crate::text::{Source, parse};

/// The prelude's text.
pub const TEXT: &str = include_str!("prelude.rly");

static MODULE: LazyLock<Result<Module, String>> =
    LazyLock::new(|| parse(&Source::new("prelude.rly", TEXT)).map_err(|d| d.to_string()));

/// The prelude as a module.
pub fn prelude() -> Result<&'static Module, relaxide_ffi::Error> {
    MODULE.as_ref().map_err(|text| relaxide_ffi::Error::new(relaxide_ffi::ErrorKind::InternalError, text.clone()))
}

/// A module with the prelude's types and functions, of which it may define some itself.
pub fn with_prelude(module: &Module) -> Result<Module, relaxide_ffi::Error> {
    let mut whole = module.clone();
    whole.import(prelude()?);
    Ok(whole)
}

/// Reads a module that may use the prelude's types and functions without defining them.
pub fn parse_with_prelude(source: &Source) -> Result<Module, relaxide_ir::Diagnostic> {
    let missing = |e: &relaxide_ffi::Error| relaxide_ir::Diagnostic::new(relaxide_ir::Code::Outside, e.message());
    let known = prelude().map_err(|e| missing(&e))?;
    crate::text::parse_in(source, known)
}
