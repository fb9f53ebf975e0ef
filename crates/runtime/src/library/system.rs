//! Libraries that are linked into the program.
//!
//! A model exported as object code is linked with the program that uses it and needs no file at run time. Its
//! constructors enter its functions, and the bytes of its other modules, into the process's table of system symbols
//! (`TVMFFIEnvModRegisterSystemLibSymbol`) before `main` begins; its calls into the runtime were bound by the linker.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use relaxide_ffi::fork::{self, Held};
use relaxide_ffi::{Error, Module};

use super::blob;
use super::module::{Code, assemble};

/// A library's module, and where its module tree was when it was made.
type SystemLibrary = (Option<usize>, Module);

static MADE: LazyLock<Mutex<HashMap<String, SystemLibrary>>> = LazyLock::new(Mutex::default);

/// Holds the lock across a fork.
pub(super) fn hold() -> Option<Held> {
    fork::hold(&MADE)
}

/// The module of the library that was linked into this program with that prefix (`system_lib_prefix` when it was
/// compiled). The same module each time. A prefix that no library has gives a module without functions of its own.
pub fn system_library(prefix: &str) -> Result<Module, Error> {
    let code = Code::Linked { prefix: prefix.to_owned() };
    // A library that was opened later may have entered its modules since.
    let tree = code.symbol(blob::SYMBOL).map(|address| address as usize);
    if let Some((_, module)) = made().get(prefix).filter(|(at, _)| *at == tree) {
        return Ok(module.clone());
    }
    // Not under the lock: rebuilding the modules calls loaders, which may do anything.
    let module = assemble(code)?;
    made().insert(prefix.to_owned(), (tree, module.clone()));
    Ok(module)
}

fn made() -> std::sync::MutexGuard<'static, HashMap<String, SystemLibrary>> {
    MADE.lock().unwrap_or_else(PoisonError::into_inner)
}
