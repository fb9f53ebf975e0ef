//! Executables built by hand.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use relaxide::vm::{self, Arg, FuncKind, Register};

use crate::convert;
use crate::module::Module;

/// Builds an executable instruction by instruction.
#[pyclass(frozen, subclass, module = "relaxide")]
pub struct ExecBuilder(Mutex<Option<vm::ExecBuilder>>);

fn refused(error: vm::BuildError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn finished() -> PyErr {
    PyValueError::new_err("the executable was taken from this builder already; make a new ExecBuilder")
}

impl ExecBuilder {
    fn lock(&self) -> MutexGuard<'_, Option<vm::ExecBuilder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, f: impl FnOnce(&mut vm::ExecBuilder) -> Result<T, vm::BuildError>) -> PyResult<T> {
        f(self.lock().as_mut().ok_or_else(finished)?).map_err(refused)
    }
}

#[pymethods]
impl ExecBuilder {
    #[new]
    fn new() -> ExecBuilder {
        ExecBuilder(Mutex::new(Some(vm::ExecBuilder::new())))
    }

    /// The word of a register.
    fn r(&self, index: i64) -> PyResult<i64> {
        word(Arg::Register(Register(index)))
    }

    /// The word of a small integer.
    fn imm(&self, value: i64) -> PyResult<i64> {
        word(Arg::Immediate(value))
    }

    /// The word of a constant.
    fn c(&self, index: i64) -> PyResult<i64> {
        word(Arg::Constant(index))
    }

    /// The word of a function.
    fn f(&self, name: &str) -> PyResult<i64> {
        let arg = self.with(|b| b.function(name))?;
        word(arg)
    }

    /// The register that stands for no value.
    fn void_arg(&self) -> PyResult<i64> {
        word(Arg::Register(Register::VOID))
    }

    /// The register that stands for the virtual machine.
    fn vm_state(&self) -> PyResult<i64> {
        word(Arg::Register(Register::VM))
    }

    /// The word of a constant of any value.
    fn convert_constant(&self, value: &Bound<'_, PyAny>) -> PyResult<i64> {
        let value = convert::from_py(value)?;
        let arg = self.with(|b| Ok(b.constant(value)))?;
        word(arg)
    }

    /// Say in which memory scope a constant is to be put when the machine starts. Relaxide's own.
    fn set_memory_scope(&self, constant: i64, scope: &str) -> PyResult<()> {
        self.with(|b| {
            b.set_memory_scope(constant, scope);
            Ok(())
        })
    }

    /// Put a function in the table.
    #[pyo3(signature = (name, kind=0))]
    fn declare_function(&self, name: &str, kind: i32) -> PyResult<()> {
        let kind = FuncKind::from_i32(kind)
            .ok_or_else(|| PyValueError::new_err(format!("{kind} is no kind of function; expected 0, 1 or 2")))?;
        self.with(|b| {
            b.declare_function(name, kind);
            Ok(())
        })
    }

    fn _begin(&self, name: &str, num_inputs: usize, param_names: Option<Vec<String>>) -> PyResult<()> {
        self.with(|b| match param_names {
            Some(names) => b.begin_function(name, &names),
            None => b.begin_unnamed(name, num_inputs),
        })
        .map(|_| ())
    }

    fn _end(&self) -> PyResult<()> {
        self.with(vm::ExecBuilder::end_function)
    }

    fn _emit_call(&self, name: &str, args: Vec<i64>, dst: Option<i64>) -> PyResult<()> {
        let args = args.into_iter().map(Arg::from_word).collect::<Result<Vec<_>, _>>();
        let args = args.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let dst = dst.map_or(Register::VOID, Register);
        self.with(|b| b.emit_call(name, &args, dst)).map(|_| ())
    }

    /// Return the value of a register.
    fn emit_ret(&self, result: i64) -> PyResult<()> {
        self.with(|b| b.emit_ret(Register(result))).map(|_| ())
    }

    /// Jump by a number of instructions.
    fn emit_goto(&self, offset: i64) -> PyResult<()> {
        self.with(|b| b.emit_goto(offset)).map(|_| ())
    }

    /// Jump by a number of instructions if a register is zero.
    fn emit_if(&self, cond: i64, false_offset: i64) -> PyResult<()> {
        self.with(|b| b.emit_if(Register(cond), false_offset)).map(|_| ())
    }

    fn _get(&self) -> PyResult<Module> {
        let builder = self.lock().take().ok_or_else(finished)?;
        let executable = builder.get().map_err(refused)?;
        relaxide::executable_module(executable).map(Module).map_err(crate::error::to_py)
    }
}

fn word(arg: Arg) -> PyResult<i64> {
    arg.to_word().map_err(|error| PyValueError::new_err(error.to_string()))
}
