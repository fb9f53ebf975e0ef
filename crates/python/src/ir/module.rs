//! Modules of functions to Python.
//!
//! A module node never changes; Python's module does. So Python holds a place for the current node, and whoever changes
//! the module in Python puts another node there.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use relaxide::ffi::{Any, Error, ErrorKind, Field, FreeVars, ObjectRef, Ref, structural_hash};
use relaxide::ir::{self, BaseFunc, DummyGlobalInfo, GlobalVar, Type, VDevice};
use relaxide::relax::Function;
use relaxide::script::{PrintOptions, print_module_with};

use super::args;
use crate::{convert, error};

/// Functions by name.
#[pyclass(frozen, subclass, weakref, dict, module = "relaxide.ir")]
pub struct IRModule(Mutex<Ref<ir::IRModule>>);

/// The name that a global variable or a text stands for.
fn name_of(var: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = var.extract::<String>() {
        return Ok(text);
    }
    let var = convert::from_py(var)?.to::<Ref<GlobalVar>>().map_err(error::to_py)?;
    Ok(var.name.clone())
}

fn function(value: &Bound<'_, PyAny>) -> PyResult<BaseFunc> {
    let value = convert::from_py(value)?;
    let object = value.to::<ObjectRef>().map_err(error::to_py)?;
    let is_function =
        object.is::<Function>() || object.is::<relaxide::tir::PrimFunc>() || object.is::<relaxide::relax::ExternFunc>();
    match is_function {
        true => Ok(BaseFunc(object)),
        false => Err(PyTypeError::new_err(format!("{} is no function of a module", object.type_key()))),
    }
}

impl IRModule {
    /// The module that is a node at first.
    pub fn of(module: Ref<ir::IRModule>) -> IRModule {
        IRModule(Mutex::new(module))
    }

    /// The current node.
    pub fn get(&self) -> Ref<ir::IRModule> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts another node in the place of the current one.
    fn change(&self, change: impl FnOnce(&mut ir::IRModule)) {
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut module = ir::IRModule::clone(&place);
        change(&mut module);
        *place = Ref::new(module);
    }

    /// A variable for a function, of its type.
    fn var(name: &str, function: &BaseFunc) -> Ref<GlobalVar> {
        let ty = function.downcast::<Function>().map_or_else(Type::missing, |function| function.ty());
        GlobalVar::typed(name, ty)
    }
}

#[pymethods]
impl IRModule {
    #[new]
    #[pyo3(signature = (functions=None, attrs=None, global_infos=None))]
    fn new(
        functions: Option<&Bound<'_, PyAny>>,
        attrs: Option<&Bound<'_, PyAny>>,
        global_infos: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<IRModule> {
        let mut module = ir::IRModule::new();
        if let Some(functions) = functions {
            for item in functions.call_method0("items")?.try_iter()? {
                let (var, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item?.extract()?;
                module.insert(name_of(&var)?, function(&value)?);
            }
        }
        if let Some(attrs) = attrs {
            module.attrs = args::attrs(convert::from_py(attrs)?.as_view()).map_err(error::to_py)?;
        }
        let made = IRModule::of(Ref::new(module));
        if let Some(infos) = global_infos {
            for item in infos.call_method0("items")?.try_iter()? {
                let (name, value): (String, Bound<'_, PyAny>) = item?.extract()?;
                made.update_global_info(&name, &value)?;
            }
        }
        Ok(made)
    }

    /// The program as TVMScript.
    fn _script(&self, show_meta: bool) -> String {
        print_module_with(&self.get(), PrintOptions { show_meta })
    }

    /// `(variable, function)` of every function.
    fn _items<'py>(&self, py: Python<'py>) -> PyResult<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        let item = |(name, function): (&String, &BaseFunc)| {
            let var = convert::to_py(py, IRModule::var(name, function).into())?;
            Ok((var, convert::to_py(py, function.0.clone().into())?))
        };
        self.get().functions.iter().map(item).collect()
    }

    /// The variable of a function.
    fn get_global_var<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let module = self.get();
        let Some(function) = module.get(name) else {
            let known: Vec<&str> = module.functions.keys().map(String::as_str).collect();
            let message = format!("Cannot find global var \"{name}\" in the Module; there are: {}", known.join(", "));
            return Err(error::to_py(Error::new(ErrorKind::ValueError, message)));
        };
        convert::to_py(py, IRModule::var(name, function).into())
    }

    fn __len__(&self) -> usize {
        self.get().functions.len()
    }

    fn __contains__(&self, var: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.get().functions.contains_key(&name_of(var)?))
    }

    fn __getitem__<'py>(&self, var: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (name, module) = (name_of(var)?, self.get());
        let found = module.get(&name).ok_or_else(|| {
            let known: Vec<&str> = module.functions.keys().map(String::as_str).collect();
            PyKeyError::new_err(format!("the module has no function {name:?}; there are: {}", known.join(", ")))
        })?;
        convert::to_py(var.py(), found.0.clone().into())
    }

    fn __setitem__(&self, var: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (name, function) = (name_of(var)?, function(value)?);
        self.change(|module| module.insert(name, function));
        Ok(())
    }

    fn __delitem__(&self, var: &Bound<'_, PyAny>) -> PyResult<()> {
        let name = name_of(var)?;
        if !self.get().functions.contains_key(&name) {
            return Err(PyKeyError::new_err(name));
        }
        self.change(|module| {
            module.functions.shift_remove(&name);
        });
        Ok(())
    }

    /// A module of its own with the same functions.
    fn clone(&self) -> IRModule {
        IRModule::of(self.get())
    }

    /// The attributes; `None` where there are none.
    #[getter]
    fn attrs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let module = self.get();
        match module.attrs.is_empty() {
            true => Ok(py.None().into_bound(py)),
            false => convert::to_py(py, module.attrs.to_any()),
        }
    }

    fn _set_attrs(&self, attrs: &Bound<'_, PyAny>) -> PyResult<()> {
        let attrs = args::attrs(convert::from_py(attrs)?.as_view()).map_err(error::to_py)?;
        self.change(|module| module.attrs = attrs);
        Ok(())
    }

    /// What the functions share, by kind: `{"vdevice": [...]}`.
    #[getter]
    fn global_infos<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let infos = PyDict::new(py);
        let module = self.get();
        if !module.vdevices.is_empty() {
            let list: Vec<Any> = module.vdevices.iter().map(Any::from).collect();
            infos.set_item("vdevice", convert::to_py(py, relaxide::ffi::Array::from_vec(list).into())?)?;
        }
        for (name, shared) in &module.infos {
            let list: Vec<Any> = shared.iter().map(Any::from).collect();
            infos.set_item(name, convert::to_py(py, relaxide::ffi::Array::from_vec(list).into())?)?;
        }
        Ok(infos)
    }

    /// Replace what the functions share of a kind.
    fn update_global_info(&self, name: &str, global_info: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = convert::from_py(global_info)?;
        if name != "vdevice" {
            let shared: Vec<ObjectRef> = match value.to::<Ref<DummyGlobalInfo>>() {
                Ok(one) => vec![one.into()],
                Err(_) => value.to().map_err(error::to_py)?,
            };
            self.change(|module| {
                module.infos.insert(name.to_string(), shared);
            });
            return Ok(());
        }
        let devices: Vec<Ref<VDevice>> = match value.to::<Ref<VDevice>>() {
            Ok(one) => vec![one],
            Err(_) => value.to().map_err(error::to_py)?,
        };
        self.change(|module| module.vdevices = devices);
        Ok(())
    }

    /// Whether two names stand for the same program, node for node.
    fn same_as(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<IRModule>().is_ok_and(|other| Ref::ptr_eq(&self.get(), &other.get().get()))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        self.same_as(other)
    }

    fn __hash__(&self) -> u64 {
        structural_hash(&self.get(), FreeVars::Mapped)
    }

    fn __chandle__(&self) -> usize {
        Ref::as_ptr(&self.get()) as usize
    }
}
