//! The block builder to Python. Scopes and names that Python's builder adds live in Python.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use relaxide::ffi::{Any, FromAny, ObjectRef, Ref};
use relaxide::ir::{Attrs, BaseFunc, GlobalVar, Type};
use relaxide::relax::builder::BuildError;
use relaxide::relax::op::{self, CallCx, GradCx};
use relaxide::relax::{self, AnyVar, Binding, Call, Expr, ExternFunc, Function};
use relaxide::tir::PrimFunc;

use super::args;
use super::module::IRModule;
use crate::{convert, error};

/// Writes functions binding by binding.
#[pyclass(frozen, subclass, module = "relaxide.relax")]
pub struct BlockBuilder(Mutex<relax::BlockBuilder>);

fn refused(error: BuildError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn expr(value: &Bound<'_, PyAny>) -> PyResult<Expr> {
    args::expr(convert::from_py(value)?.as_view()).map_err(error::to_py)
}

/// An object of Python as a node of a type.
fn node<T: FromAny>(value: &Bound<'_, PyAny>) -> PyResult<T> {
    convert::from_py(value)?.to().map_err(error::to_py)
}

fn give<'py>(py: Python<'py>, value: impl Into<Any>) -> PyResult<Bound<'py, PyAny>> {
    convert::to_py(py, value.into())
}

impl BlockBuilder {
    fn lock(&self) -> MutexGuard<'_, relax::BlockBuilder> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Exchanges what this builds with what another builder does.
    pub fn swap(&self, other: &mut relax::BlockBuilder) {
        std::mem::swap(&mut *self.lock(), other);
    }
}

#[pymethods]
impl BlockBuilder {
    #[new]
    #[pyo3(signature = (r#mod=None))]
    fn new(r#mod: Option<&IRModule>) -> BlockBuilder {
        let builder = match r#mod {
            Some(module) => relax::BlockBuilder::with_module(relaxide::IRModule::clone(&module.get())),
            None => relax::BlockBuilder::new(),
        };
        BlockBuilder(Mutex::new(builder))
    }

    /// The gradients of the arguments of an operator's call, given its result and that one's gradient: a call of
    /// `grad.no_grad` where none flows into an argument.
    fn _gradients<'py>(
        &self,
        py: Python<'py>,
        output: &Bound<'py, PyAny>,
        call: &Bound<'py, PyAny>,
        grad: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let (output, call, grad) = (expr(output)?, node::<Ref<Call>>(call)?, expr(grad)?);
        let def = if let Expr::Op(op) = &call.op { op.def() } else { None };
        let Some((def, rule)) = def.and_then(|def| Some((def, def.gradient?))) else {
            return Err(PyValueError::new_err("the call is of no operator that has a derivative"));
        };
        let cx = GradCx { call: CallCx::of(def, &call), output: &output, grad: &grad };
        let grads = rule(&cx, &mut self.lock()).map_err(refused)?;
        let none = |arg: &Expr| {
            let made = op::call("grad.no_grad", [arg.clone()], Attrs::new());
            made.map_err(|error| PyValueError::new_err(error.to_string()))
        };
        let given = call.args.iter().zip(grads).map(|(arg, grad)| grad.map_or_else(|| none(arg), Ok));
        given.map(|grad| give(py, grad?)).collect()
    }

    fn _begin_scope(&self) {
        self.lock().begin_scope();
    }

    /// The sequence of what was emitted since the scope began.
    fn _end_scope<'py>(&self, py: Python<'py>, body: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let body = expr(body)?;
        let mut builder = self.lock();
        let body = builder.normalize_arg(body).map_err(refused)?;
        give(py, builder.end_scope(body).map_err(refused)?)
    }

    /// Forget what was emitted since the scope began.
    fn _drop_scope(&self) -> PyResult<()> {
        self.lock().end_scope(Expr::tuple([])).map(drop).map_err(refused)
    }

    fn _begin_dataflow(&self) -> PyResult<()> {
        self.lock().begin_dataflow().map_err(refused)
    }

    fn _end_dataflow(&self) -> PyResult<()> {
        self.lock().end_dataflow().map_err(refused)
    }

    /// Whether the open block is a dataflow block.
    fn current_block_is_dataflow(&self) -> bool {
        self.lock().in_dataflow()
    }

    fn _emit<'py>(&self, py: Python<'py>, value: &Bound<'py, PyAny>, hint: &str) -> PyResult<Bound<'py, PyAny>> {
        let value = expr(value)?;
        let mut builder = self.lock();
        let bound = if hint.is_empty() { builder.emit(value) } else { builder.emit_named(hint, value) };
        give(py, bound.map_err(refused)?)
    }

    fn _emit_output<'py>(&self, py: Python<'py>, value: &Bound<'py, PyAny>, hint: &str) -> PyResult<Bound<'py, PyAny>> {
        let value = expr(value)?;
        let mut builder = self.lock();
        let bound = if hint.is_empty() { builder.emit_output(value) } else { builder.emit_output_named(hint, value) };
        give(py, bound.map_err(refused)?)
    }

    fn _match_cast<'py>(
        &self,
        py: Python<'py>,
        value: &Bound<'py, PyAny>,
        ty: &Bound<'py, PyAny>,
        hint: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (value, ty) = (expr(value)?, node::<Type>(ty)?);
        let mut builder = self.lock();
        if hint.is_empty() {
            return give(py, builder.match_cast(value, ty).map_err(refused)?);
        }
        let value = builder.normalize_arg(value).map_err(refused)?;
        let inner = builder.in_dataflow();
        let var = builder.fresh_var(hint, ty.clone(), inner);
        let cast = Ref::new(relax::MatchCast { var: var.clone(), value, ty });
        builder.push_binding(cast.into()).map_err(refused)?;
        give(py, var)
    }

    /// Bind as it is, without bringing the value to normal form.
    fn emit_normalized(&self, binding: &Bound<'_, PyAny>) -> PyResult<()> {
        let binding = node::<Binding>(binding)?;
        self.lock().push_binding(binding).map_err(refused)
    }

    /// An expression with its type, its operands bound to variables.
    fn _normalize<'py>(&self, py: Python<'py>, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let value = expr(value)?;
        let mut builder = self.lock();
        // Outside of a function there is nowhere to bind operands, and leaves need no binding.
        give(py, builder.normalize(value).map_err(refused)?)
    }

    /// Keep a name from being given to a fresh variable.
    fn _reserve(&self, name: &str) {
        self.lock().reserve(name);
    }

    /// A name that nothing has yet.
    fn get_unique_name(&self, name_prefix: &str) -> String {
        self.lock().fresh_var(name_prefix, Type::missing(), false).name().to_string()
    }

    /// The value that a variable is bound to, as far as this builder bound it.
    fn lookup_binding<'py>(&self, py: Python<'py>, var: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let var = node::<AnyVar>(var)?;
        match self.lock().lookup_binding(&var) {
            Some(value) => give(py, value),
            None => Ok(py.None().into_bound(py)),
        }
    }

    /// Add a function under a name that no other has; a kernel that is equal to one that is there is that one.
    fn add_func<'py>(&self, py: Python<'py>, func: &Bound<'py, PyAny>, func_name: &str) -> PyResult<Bound<'py, PyAny>> {
        let func = node::<ObjectRef>(func)?;
        let mut builder = self.lock();
        if let Some(kernel) = func.downcast_ref::<PrimFunc>() {
            return give(py, builder.add_kernel(PrimFunc::clone(kernel), func_name));
        }
        if let Some(function) = func.downcast_ref::<Function>() {
            return give(py, builder.add_function(function.clone(), func_name));
        }
        if let Some(external) = func.downcast_ref::<ExternFunc>() {
            let name = builder.module().fresh_name(func_name);
            builder.module_mut().insert(name.clone(), external.clone());
            return give(py, GlobalVar::typed(name, external.ty.clone()));
        }
        let message = format!("a function is expected, got an object of type {}", func.type_key());
        Err(PyTypeError::new_err(message))
    }

    /// Replace a function.
    fn update_func(&self, gv: &Bound<'_, PyAny>, updated_func: &Bound<'_, PyAny>) -> PyResult<()> {
        let (var, func) = (node::<Ref<GlobalVar>>(gv)?, node::<ObjectRef>(updated_func)?);
        self.lock().module_mut().insert(var.name.clone(), BaseFunc(func));
        Ok(())
    }

    /// The module so far.
    fn get(&self) -> IRModule {
        IRModule::of(Ref::new(self.lock().module().clone()))
    }

    /// Whether a function is being written.
    fn _depth(&self) -> usize {
        self.lock().depth()
    }
}
