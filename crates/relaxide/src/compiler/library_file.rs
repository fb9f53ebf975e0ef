//! The program in a compiled file, read without loading the file: its kernels may be for another machine, and none of them runs.

use std::path::Path;

use relaxide_codegen::export::module_tree;
use relaxide_ffi::{Error, Module};
use relaxide_relay_vm as relay_vm;
use relaxide_runtime::library::blob;
use relaxide_vm::Executable;

/// The program in a shared library as a module without kernels, to be looked at; `None` where the file has no such program.
pub fn program_in_file(path: &Path) -> Result<Option<Module>, Error> {
    let Some(bytes) = module_tree(path) else { return Ok(None) };
    let bad = |error: &dyn std::fmt::Display| Error::new("ValueError", format!("{}: {error}", path.display()));
    let nodes = blob::decode(&bytes).map_err(|error| bad(&error))?;
    let payload = |kind: &str| nodes.iter().find(|node| node.kind == kind).and_then(|node| node.payload);
    if let Some(program) = payload(Executable::default().into_module().kind()) {
        let executable = Executable::from_bytes(program).map_err(|error| bad(&error))?;
        return Ok(Some(executable.into_module()));
    }
    let Some(program) = payload(relay_vm::Executable::default().into_module().kind()) else { return Ok(None) };
    let executable = relay_vm::Executable::from_bytes(program).map_err(|error| bad(&error.message()))?;
    Ok(Some(executable.into_module()))
}
