//! Opening a shared library.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};
use relaxide_ffi::{Error, ErrorKind, Module};

use super::bind;
use super::extent;
use super::module::{Code, assemble};
use super::symbols::{self, ensure_symbols_global};

/// Opens a library and rebuilds the modules in it.
pub(super) fn load(path: &Path) -> Result<Module, Error> {
    let visible = ensure_symbols_global();
    // Without a slash the dynamic linker would search its own places.
    let file: PathBuf = if path.components().count() == 1 { Path::new(".").join(path) } else { path.to_owned() };
    // What cannot be opened is the linker's to report.
    if let Ok(Some(needed)) = extent::missing_from(&file) {
        let message = format!("cannot load {}: the file is truncated: it should have {needed} bytes", path.display());
        return Err(Error::new(ErrorKind::RuntimeError, message));
    }
    // SAFETY: loading a library runs its initialisers; that is what the caller of `load_module` asks for.
    let opened = unsafe { Library::open(Some(OsString::from(&file)), RTLD_LAZY | RTLD_LOCAL) };
    let library = opened.map_err(|error| {
        // What the dynamic linker says is the source; the error itself only names the call.
        let said = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
        let hint = visible.err().filter(|_| said.contains("undefined symbol"));
        let hint = hint.map(|error| format!("; {}", error.message())).unwrap_or_default();
        Error::new(ErrorKind::RuntimeError, format!("cannot load {}: {error}{said}{hint}", path.display()))
    })?;
    let handle = library.into_raw();
    // SAFETY: the handle is live, and nothing of the library runs yet.
    unsafe { bind::bind_imports(handle) };
    // SAFETY: the handle came from `into_raw` just above.
    let code = Code::Shared(unsafe { Library::from_raw(handle) });
    fill_context_slots(&code);
    let module = assemble(code)?;
    // A program may change its folder before the module looks for what lies beside it.
    tell_origin(&module, &std::path::absolute(&file).unwrap_or(file));
    Ok(module)
}

/// Tells all modules of a library where they are from. Their imports form no cycles and are few.
fn tell_origin(module: &Module, file: &Path) {
    module.body().loaded_from(file);
    module.imports().iter().for_each(|import| tell_origin(import, file));
}

fn fill_context_slots(code: &Code) {
    for (name, symbol) in symbols::context_symbols() {
        if let Some(slot) = code.symbol(&name) {
            // SAFETY: a slot is an exported pointer that only loaders write.
            unsafe { super::module::fill(slot.cast(), symbol) };
        }
    }
}
