//! Programs as WebAssembly modules.
//!
//! A module has everything in it: kernels, weights (unless they are in a file of their own), bytecode, and the runtime with the virtual
//! machine, which is the C interface built for WebAssembly (`crates/capi`). The runtime is a file of its own beside the compiler, of which there are two: the smaller
//! one lacks builtins that few programs call. `packages/npm` loads the module.

use std::path::{Path, PathBuf};

use relaxide_codegen::{CompiledLib, WebAssemblyParts};
use relaxide_ffi::{Error as FfiError, ErrorKind, Module, SavedBytes};
use relaxide_vm::{FuncKind, is_optional_builtin};

use crate::Error;

/// The runtime without the builtins that few programs call, and with them.
const FILES: [&str; 2] = ["relaxide_runtime.wasm", "relaxide_runtime_full.wasm"];

/// The variable that says in which folder they are.
const FOLDER_VARIABLE: &str = "RELAXIDE_WASM_RUNTIME";

/// The bytes of a program as a module. `folder` is where the runtime is looked for first.
pub(crate) fn module_of(
    module: &Module,
    kernels: &CompiledLib,
    tree: SavedBytes,
    folder: Option<&Path>,
) -> Result<SavedBytes, Error> {
    let executable = relaxide_vm::Executable::of_module(module);
    let parts = WebAssemblyParts {
        has_optional_builtins: executable.as_deref().is_some_and(calls_optional_builtins),
        takes_weights: executable.as_deref().map_or(Ok(None), |executable| executable.weights_apart())?.is_some(),
    };
    let file = find_runtime(FILES[usize::from(parts.has_optional_builtins)], folder)?;
    let runtime = std::fs::read(&file)
        .map_err(|source| Error::Io { context: format!("cannot read {}", file.display()), source })?;
    Ok(kernels.webassembly_module(&runtime, tree, parts)?)
}

/// Whether a program calls builtins that the smaller runtime lacks.
fn calls_optional_builtins(executable: &relaxide_vm::Executable) -> bool {
    executable
        .functions()
        .iter()
        .any(|function| function.kind == FuncKind::Packed && is_optional_builtin(&function.name))
}

/// Where the runtime is: in the folder that the variable names, that the caller knows, or of the program itself.
fn find_runtime(name: &str, folder: Option<&Path>) -> Result<PathBuf, Error> {
    let said = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from);
    let own = std::env::current_exe().ok().and_then(|program| program.parent().map(Path::to_path_buf));
    let folders: Vec<PathBuf> = match said {
        Some(said) => vec![said],
        None => folder.map(Path::to_path_buf).into_iter().chain(own).collect(),
    };
    let found = folders.iter().map(|folder| folder.join(name)).find(|file| file.is_file());
    found.ok_or_else(|| {
        let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        let message = format!(
            "cannot write a WebAssembly module: its runtime, {name}, is not in {}; build it with `scripts/wasm-runtime` (which needs \
             `rustup target add wasm32-unknown-unknown`), or name its folder in the environment variable {FOLDER_VARIABLE}",
            folders.join(" or ")
        );
        FfiError::new(ErrorKind::RuntimeError, message).into()
    })
}
