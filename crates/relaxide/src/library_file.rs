//! The program in a compiled file, read without loading the file: its kernels may be for another machine, and none of them runs.

use std::path::Path;

use relaxide_codegen::export::module_tree;
use relaxide_ffi::{Error, Module};
use relaxide_runtime::library::blob;
use relaxide_vm::Executable;

/// The program in a shared library as a module without kernels, to be looked at; `None` where the file has no such program.
pub fn program_in_file(path: &Path) -> Result<Option<Module>, Error> {
    let Some(bytes) = module_tree(path) else { return Ok(None) };
    let bad = |error: &dyn std::fmt::Display| Error::new("ValueError", format!("{}: {error}", path.display()));
    let nodes = blob::decode(&bytes).map_err(|error| bad(&error))?;
    let empty = Executable::default().into_module();
    let program = nodes.iter().find(|node| node.kind == empty.kind()).and_then(|node| node.payload);
    let Some(program) = program else { return Ok(None) };
    let executable = Executable::from_bytes(program).map_err(|error| bad(&error))?;
    Ok(Some(executable.into_module()))
}
