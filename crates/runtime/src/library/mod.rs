//! Compiled models as files.
//!
//! A model is a shared library with kernels in it and, in one symbol, the bytes of other modules ([`blob`]). Loading it
//! ([`load_module`]) opens the library, gives it the functions that it needs from the process ([`ensure_symbols_global`]),
//! and rebuilds the tree of modules; each kind of module has a loader among the global functions, under
//! `ffi.Module.load_from_bytes.<kind>`. [`save_module_tree`] is the other direction: the bytes for the symbol, and the
//! modules whose code an export links in.
//!
//! Loading a library runs its code: whoever may choose the file may do anything that the process may.

mod bind;
pub mod blob;
mod shared;
mod symbols;
mod tree;

use std::path::Path;

use relaxide_ffi::{AnyView, Error, ErrorKind, Module, get_global};

pub use shared::LibraryModule;
pub use symbols::ensure_symbols_global;
pub use tree::{SavedTree, save_module_tree};

/// Loads a module from a file: a shared library here, any other kind by the global function
/// `ffi.Module.load_from_file.<extension>`.
pub fn load_module(path: impl AsRef<Path>) -> Result<Module, Error> {
    let path = path.as_ref();
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if matches!(extension, "so" | "dylib" | "dll") {
        return shared::load(path);
    }
    let loader = format!("ffi.Module.load_from_file.{extension}");
    let function = get_global(&loader).ok_or_else(|| {
        let message = format!(
            "cannot load {}: a shared library ends in .so, and no loader is registered as {loader}",
            path.display()
        );
        Error::new(ErrorKind::ValueError, message)
    })?;
    let name = relaxide_ffi::Any::from(path.to_string_lossy().as_ref());
    let format = relaxide_ffi::Any::from(extension);
    function.call(&[AnyView::from(&name), AnyView::from(&format)])?.to()
}
