//! Finding what a program calls.
//!
//! A function from outside is looked for in the modules that the executable imports, in order and each with its own
//! imports, then among the global functions, then among the builtins. It happens once, for every entry of the function
//! table: what is missing is found out here and not in the middle of a run.

use std::sync::Weak;

use relaxide_ffi::{Any, Error, ErrorKind, Function, Handle, Module, get_global};

use super::Vm;
use crate::builtins::{self, Builtin};
use crate::closure::Closure;
use crate::executable::{Executable, FuncKind};

/// In front of the name of a function that was compiled to native code.
pub const NATIVE_PREFIX: &str = "__vmtir__";

/// What an entry of the function table is bound to.
pub(super) enum Callee {
    /// A function from outside.
    Packed(Function),
    /// A builtin, called directly, and the same as a value.
    Builtin(&'static Builtin, Function),
    /// A function in bytecode.
    Bytecode,
    /// A native function that works on a register file.
    Tir(Function),
}

/// Finds everything. The error names all that is missing.
pub(super) fn link(executable: &Executable, module: &Module) -> Result<Vec<Callee>, Error> {
    let imports = module.imports();
    let from_imports = |name: &str| imports.iter().find_map(|import| import.get_function(name, true));
    let mut missing = Vec::new();
    let mut callees = Vec::new();
    for function in executable.functions() {
        let name = function.name.as_str();
        let callee = match function.kind {
            FuncKind::Vm => Some(Callee::Bytecode),
            FuncKind::VmTir => from_imports(&format!("{NATIVE_PREFIX}{name}")).map(Callee::Tir),
            FuncKind::Packed => from_imports(name).map(Callee::Packed).or_else(|| from_process(name)),
        };
        match callee {
            Some(callee) => callees.push(callee),
            None => missing.push(name),
        }
    }
    if missing.is_empty() {
        return Ok(callees);
    }
    let message = format!(
        "Cannot find function {} in the modules that the executable imports, among the global functions, or among the \
         functions of the executable",
        missing.join(", ")
    );
    Err(Error::new(ErrorKind::ValueError, message))
}

/// A global function or a builtin. The direct way is taken only if nobody has put another function in the builtin's
/// place.
fn from_process(name: &str) -> Option<Callee> {
    let builtin = builtins::find(name).map(|(builtin, function)| Callee::Builtin(builtin, function.clone()));
    match (get_global(name), builtin) {
        (Some(global), Some(Callee::Builtin(builtin, own))) if global.ptr_eq(&own) => {
            Some(Callee::Builtin(builtin, own))
        }
        (Some(global), _) => Some(Callee::Packed(global)),
        (None, builtin) => builtin,
    }
}

/// The functions as values.
pub(super) fn pool(executable: &Executable, callees: &[Callee], vm: &Weak<Vm>) -> Vec<Any> {
    let functions = executable.functions().iter().zip(callees).enumerate();
    functions
        .map(|(index, (info, callee))| match callee {
            Callee::Packed(function) | Callee::Builtin(_, function) => function.into(),
            Callee::Bytecode | Callee::Tir(_) => Closure::new(&info.name, index, vm.clone()).into(),
        })
        .collect()
}
