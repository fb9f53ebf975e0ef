//! VM code generation: Relax functions become bytecode.
//!
//! Every variable is a register, parameters first. A binding is one or a few instructions:
//!
//! | binding | instructions |
//! | --- | --- |
//! | `v = f(a, b)` | `call f in: %a, %b dst: %v` |
//! | `v = w`, a literal, a `match_cast` | `call vm.builtin.copy` |
//! | `v = (a, b)`, `v = t[0]` | `call vm.builtin.make_tuple`, `call vm.builtin.tuple_getitem` |
//! | `v = if c: … else: …` | `call vm.builtin.read_if_cond`, `If`, branch, copy, `goto`, branch, copy |
//! | `vm.kill_object(v)` | `call vm.builtin.null_value dst: %v` |
//!
//! Needs what the lowering pipeline gives: plain blocks in A-normal form, no operators but those of the VM, no symbolic
//! variables, a global symbol on every function. Kernels are left in the module for the back end.

mod function;

use relaxide_ffi::Ref;
use relaxide_ir::IRModule;
use relaxide_tir::PrimFunc;
use relaxide_vm::{ExecBuilder, Executable, FuncKind};

use crate::Function;

/// Why no bytecode was made.
#[derive(Debug, thiserror::Error)]
pub enum CodegenError {
    /// The program holds what lowering should have removed.
    #[error("in function {function}: {message}")]
    NotLowered {
        /// Which function.
        function: String,
        /// What was met, and which pass removes it.
        message: String,
    },
    /// The instructions do not form an executable: our fault.
    #[error("in function {function}: {source}")]
    Build {
        /// Which function.
        function: String,
        /// What the builder refused.
        source: relaxide_vm::BuildError,
    },
}

/// Compiles the Relax functions of a lowered module; the module of what is left, the kernels, comes back beside them.
pub fn vm_codegen(module: &IRModule) -> Result<(Executable, IRModule), CodegenError> {
    let mut builder = ExecBuilder::new();
    let mut rest = module.clone();
    let functions: Vec<(&str, Ref<Function>)> = module.functions_of::<Function>().collect();
    for (name, f) in &functions {
        builder.declare_function(symbol_of(name, f), FuncKind::Vm);
    }
    for (name, f) in &functions {
        function::generate(&mut builder, module, symbol_of(name, f), f)?;
        rest.functions.shift_remove(*name);
    }
    let executable = builder.get();
    let executable = executable.map_err(|source| CodegenError::Build { function: "(all)".into(), source })?;
    Ok((executable, rest))
}

fn symbol_of<'a>(name: &'a str, f: &'a Ref<Function>) -> &'a str {
    f.attrs.str("global_symbol").unwrap_or(name)
}

/// The name and kind under which the virtual machine knows a function of the module.
fn callee_of(module: &IRModule, name: &str) -> Option<(String, FuncKind)> {
    if let Some(f) = module.get_as::<Function>(name) {
        return Some((symbol_of(name, &f).to_string(), FuncKind::Vm));
    }
    let kernel = module.get_as::<PrimFunc>(name)?;
    Some((kernel.global_symbol().unwrap_or(name).to_string(), FuncKind::Packed))
}
