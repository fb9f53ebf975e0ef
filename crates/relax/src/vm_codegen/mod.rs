//! VM code generation: Relax functions become bytecode, or native functions that do the same.
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
//! In native functions ([`native`]) each instruction is a call too.
//!
//! Needs what the lowering pipeline gives: plain blocks in A-normal form, no operators but those of the VM, no symbolic
//! variables, a global symbol on every function. Kernels are left in the module for the back end.

mod emit;
mod function;
mod native;
mod tail;

use emit::Bytecode;
use native::Native;
use relaxide_ffi::Ref;
use relaxide_ir::IRModule;
use relaxide_ir::pass::Refusal;
use relaxide_tir::PrimFunc;
use relaxide_vm::{ExecBuilder, Executable, FuncKind, GUARD_NOTE, NATIVE_PREFIX};

use crate::Function;

/// Why no bytecode was made.
#[derive(Debug, thiserror::Error)]
pub enum CodegenError {
    /// The program holds what lowering should have removed.
    #[error("in function {function}: {}", refusal.message)]
    NotLowered {
        /// Which function.
        function: String,
        /// What was met, where, and which pass removes it.
        refusal: Box<Refusal>,
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

/// What is said of a dimension that is not what the program was compiled for, though its model allows it: the machine makes an error of its
/// own kind of it.
pub fn guard_note(text: &str) -> String {
    format!("{GUARD_NOTE}{text}")
}

/// What Relax functions become.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ExecMode {
    /// Bytecode.
    #[default]
    Bytecode,
    /// Native functions, which are compiled together with the kernels.
    Compiled,
}

impl ExecMode {
    /// The mode of a name, as in `exec_mode="compiled"`.
    pub fn of_name(name: &str) -> Option<Self> {
        match name {
            "bytecode" => Some(Self::Bytecode),
            "compiled" => Some(Self::Compiled),
            _ => None,
        }
    }
}

/// Compiles the Relax functions of a lowered module; the module of what is left comes back beside them: the kernels, and the
/// functions that are to become native.
pub fn vm_codegen(module: &IRModule, mode: ExecMode) -> Result<(Executable, IRModule), CodegenError> {
    let mut builder = ExecBuilder::new();
    let mut rest = module.clone();
    let functions: Vec<(&str, Ref<Function>)> = module.functions_of::<Function>().collect();
    let kind = match mode {
        ExecMode::Bytecode => FuncKind::Vm,
        ExecMode::Compiled => FuncKind::VmTir,
    };
    for (name, f) in &functions {
        builder.declare_function(symbol_of(name, f), kind);
    }
    for (name, f) in &functions {
        let symbol = symbol_of(name, f);
        rest.functions.shift_remove(*name);
        match mode {
            ExecMode::Bytecode => to_bytecode(&mut builder, module, symbol, f)?,
            ExecMode::Compiled => {
                let (symbol, function) = to_native(&mut builder, module, symbol, f)?;
                rest.functions.insert(symbol, Ref::new(function).into());
            }
        }
    }
    let executable = builder.get();
    let executable = executable.map_err(|source| CodegenError::Build { function: "(all)".into(), source })?;
    Ok((executable, rest))
}

fn params(f: &Function) -> Vec<&str> {
    f.params.iter().map(|p| p.name.as_str()).collect()
}

fn to_bytecode(b: &mut ExecBuilder, module: &IRModule, symbol: &str, f: &Function) -> Result<(), CodegenError> {
    let refused = |source| CodegenError::Build { function: symbol.into(), source };
    b.begin_function(symbol, &params(f)).map_err(refused)?;
    let first = b.next_instruction();
    let mut bytecode = Bytecode { builder: b, open: Vec::new(), first, unsaid: first };
    function::generate(&mut bytecode, module, symbol, f, f.params.len() as i64)?;
    b.end_function().map_err(refused)
}

/// The native function and its name.
fn to_native(
    b: &mut ExecBuilder,
    module: &IRModule,
    symbol: &str,
    f: &Function,
) -> Result<(String, PrimFunc), CodegenError> {
    let name = format!("{NATIVE_PREFIX}{symbol}");
    let mut native = Native::new(b, f.params.len());
    let first = native.first_free();
    function::generate(&mut native, module, symbol, f, first)?;
    let (function, registers) = native.finish(&name);
    let added = b.add_tir_function(symbol, &params(f), registers);
    added.map_err(|source| CodegenError::Build { function: symbol.into(), source })?;
    Ok((name, function))
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
