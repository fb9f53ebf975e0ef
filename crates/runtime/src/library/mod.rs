//! Compiled models as files.
//!
//! A model is a shared library with kernels in it and, in one symbol, the bytes of other modules ([`blob`]). Loading it
//! ([`load_module`]) opens the library, gives it the functions that it needs from the process ([`ensure_symbols_global`]),
//! and rebuilds the tree of modules; each kind of module has a loader among the global functions, under
//! `ffi.Module.load_from_bytes.<kind>`. [`save_module_tree`] is the other direction: the bytes for the symbol, and the
//! modules whose code an export links in. A model may also be linked into the program ([`system_library`]).
//!
//! Loading a library runs its code: whoever may choose the file may do anything that the process may.

#[cfg(all(unix, feature = "loader"))]
mod bind;
pub mod blob;
mod context;
#[cfg(all(unix, feature = "loader"))]
mod extent;
mod module;
#[cfg(all(unix, feature = "loader"))]
mod shared;
#[cfg(all(unix, feature = "loader"))]
mod symbols;
mod system;
mod tree;
#[cfg(not(all(unix, feature = "loader")))]
mod without_linker;

use std::path::Path;

use relaxide_ffi::{AnyView, Error, ErrorKind, Module, get_global};

use crate::fork::{Side, let_go_of};

pub use module::LibraryModule;
#[cfg(all(unix, feature = "loader"))]
pub use symbols::ensure_symbols_global;
pub use system::system_library;
pub use tree::{SavedTree, save_module_tree};
#[cfg(not(all(unix, feature = "loader")))]
pub use without_linker::ensure_symbols_global;
#[cfg(not(all(unix, feature = "loader")))]
use without_linker::{extent, shared, symbols};

/// Holds the tables of loaded libraries across a fork.
pub(crate) fn hold_for_fork() -> Box<dyn FnOnce(Side)> {
    let held = [context::hold(), system::hold(), shared::hold(), symbols::hold()];
    let_go_of(held.into_iter().flatten().collect())
}

/// Opens a shared library.
pub(crate) fn load_shared(path: String) -> Result<Module, Error> {
    shared::load(Path::new(&path))
}

/// Loads a module from a file: a shared library here, any other kind by the global function
/// `ffi.Module.load_from_file.<extension>`.
pub fn load_module(path: impl AsRef<Path>) -> Result<Module, Error> {
    let path = path.as_ref();
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if matches!(extension, "so" | "dylib" | "dll") {
        return shared::load(path);
    }
    let loader = format!("ffi.Module.load_from_file.{extension}");
    let function = get_global(&loader);
    // What it is says more than its name.
    if function.is_none() && extent::is_library(path) {
        return shared::load(path);
    }
    let function = function.ok_or_else(|| {
        let ending = if extension.is_empty() { "has no ending".to_owned() } else { format!("ends in .{extension}") };
        let message = format!(
            "cannot load {}: it {ending}, and compiled models are shared libraries, which end in .so (to load other \
             files, register a function as {loader})",
            path.display()
        );
        Error::new(ErrorKind::ValueError, message)
    })?;
    let name = relaxide_ffi::Any::from(path.to_string_lossy().as_ref());
    let format = relaxide_ffi::Any::from(extension);
    function.call(&[AnyView::from(&name), AnyView::from(&format)])?.to()
}
