//! Modules: functions by name.

use std::cell::Cell;

use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use relaxide::ffi::{self, Any, AnyView, Handle};

use crate::classes;
use crate::device::Device;
use crate::error::to_py;
use crate::vectorcall;

/// Functions by name, with the modules that they call into.
#[pyclass(frozen, subclass, from_py_object, module = "relaxide")]
#[derive(Clone)]
pub struct Module(pub ffi::Module);

thread_local! {
    /// The module that the instance that is about to be made is for.
    static HANDED: Cell<Option<ffi::Module>> = const { Cell::new(None) };
}

impl Module {
    /// A module as an instance of its class.
    pub fn wrap(py: Python<'_>, module: ffi::Module) -> PyResult<Bound<'_, PyAny>> {
        let Some(class) = classes::replacing(py, ffi::abi::type_index::MODULE) else {
            return Ok(Bound::new(py, Module(module))?.into_any());
        };
        HANDED.set(Some(module));
        // The class's own constructor would make another module.
        let made = class.call_method1("__new__", (&class,));
        HANDED.set(None);
        made
    }
}

#[pymethods]
impl Module {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Module> {
        let refused = || PyTypeError::new_err("modules are made by load_module, system_lib and compilation");
        HANDED.take().map(Module).ok_or_else(refused)
    }

    /// What kind of module it is.
    #[getter]
    fn kind(&self) -> String {
        self.0.kind().to_string()
    }

    /// The modules that it calls into.
    #[getter]
    fn imports<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.0.imports().into_iter().map(|module| Module::wrap(py, module)).collect()
    }

    /// The function of a name.
    #[pyo3(signature = (name, query_imports=false))]
    fn get_function<'py>(&self, py: Python<'py>, name: &str, query_imports: bool) -> PyResult<Bound<'py, PyAny>> {
        // A remote module is asked over the wire.
        match py.detach(|| self.0.get_function(name, query_imports)) {
            Some(function) => vectorcall::wrap(py, function),
            None => Err(PyAttributeError::new_err(format!("Module has no function '{name}'"))),
        }
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.get_function(py, name, false)
    }

    /// Whether there is a function of a name.
    #[pyo3(signature = (name, query_imports=false))]
    fn implements_function(&self, name: &str, query_imports: bool) -> bool {
        self.0.implements_function(name, query_imports)
    }

    /// Add a module to call into.
    fn import_module(&self, module: &Module) -> PyResult<()> {
        self.0.import(module.0.clone()).map_err(to_py)
    }

    /// The module itself: a loaded one is ready to run.
    fn jit(&self) -> Module {
        self.clone()
    }

    /// Drop all imports.
    fn clear_imports(&self) {
        self.0.clear_imports();
    }

    /// What can be done with the module, as bits: 1 saved to bytes, 2 run, 4 exported.
    fn get_property_mask(&self) -> i32 {
        self.0.body().properties().0
    }

    /// What is known of a function, as JSON.
    #[pyo3(signature = (name, query_imports=false))]
    fn _function_metadata(&self, name: &str, query_imports: bool) -> Option<String> {
        find(&self.0, query_imports, &|module| module.body().function_metadata(name))
    }

    /// A function's documentation.
    #[pyo3(signature = (name, query_imports=false))]
    fn get_function_doc(&self, name: &str, query_imports: bool) -> Option<String> {
        find(&self.0, query_imports, &|module| module.body().function_doc(name))
    }

    /// The formats that it can be written in.
    fn get_write_formats(&self) -> Vec<String> {
        self.0.body().write_formats()
    }

    /// Write it to a file.
    #[pyo3(signature = (file_name, fmt=""))]
    fn write_to_file(&self, file_name: std::path::PathBuf, fmt: &str) -> PyResult<()> {
        self.0.body().write_to_file(&file_name.to_string_lossy(), fmt).map_err(to_py)
    }

    /// Write it, with what it imports, as one shared library. No compiler or linker is called.
    fn export_library(&self, file_name: std::path::PathBuf) -> PyResult<()> {
        relaxide::export_bytecode(&self.0, &file_name).map_err(crate::error::compiler)
    }

    /// The module as text.
    #[pyo3(signature = (fmt=""))]
    fn inspect_source(&self, fmt: &str) -> PyResult<String> {
        self.0.body().inspect_source(fmt).map_err(to_py)
    }

    /// The module as bytes, without its imports.
    fn _save_to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.body().save_to_bytes().map_err(to_py)?))
    }

    /// Whether two names stand for the same module.
    fn same_as(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Module>().is_ok_and(|other| self.0 == other.get().0)
    }

    fn is_(&self, other: &Bound<'_, PyAny>) -> bool {
        self.same_as(other)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        self.same_as(other)
    }

    fn __hash__(&self) -> usize {
        self.0.as_object().as_ptr() as usize >> 4
    }

    fn __repr__(&self) -> String {
        format!("<relaxide.Module kind={}>", self.0.kind())
    }
}

/// What a module or, if asked for, the first of its imports has.
fn find<T>(module: &ffi::Module, query_imports: bool, get: &dyn Fn(&ffi::Module) -> Option<T>) -> Option<T> {
    let imports = || module.imports().iter().find_map(|import| find(import, true, get));
    get(module).or_else(|| if query_imports { imports() } else { None })
}

#[pyfunction]
fn load_module(py: Python<'_>, path: std::path::PathBuf) -> PyResult<Bound<'_, PyAny>> {
    Module::wrap(py, relaxide::load_module(&path).map_err(to_py)?)
}

#[pyfunction]
fn load_static_library(
    py: Python<'_>,
    path: std::path::PathBuf,
    func_names: Vec<String>,
) -> PyResult<Bound<'_, PyAny>> {
    Module::wrap(py, relaxide::codegen::StaticLibrary::load(&path, func_names).map_err(to_py)?)
}

/// Makes a virtual machine of an executable module, with an allocator on each device.
#[pyfunction]
fn load_virtual_machine(py: Python<'_>, module: &Module, devices: Vec<(Device, i64)>) -> PyResult<Module> {
    let find = |module: &ffi::Module, name: &str| py.detach(|| module.get_function(name, false));
    let load = find(&module.0, "vm_load_executable").ok_or_else(|| {
        PyValueError::new_err(format!("a module of kind {:?} holds no program of the virtual machine", module.0.kind()))
    })?;
    let machine: ffi::Module = py.detach(|| load.call(&[])).and_then(|vm| vm.to()).map_err(to_py)?;
    let initialize = find(&machine, "vm_initialization")
        .ok_or_else(|| PyValueError::new_err("the virtual machine cannot be initialized"))?;
    let mut args: Vec<Any> = Vec::with_capacity(devices.len() * 3);
    for (device, allocator) in devices {
        // The machine of a far side knows its own devices.
        let device = Device(device.0.remote().map_or(device.0, |(_, there)| there));
        args.push(i64::from(device.0.device_type).into());
        args.push(i64::from(device.0.device_id).into());
        args.push(allocator.into());
    }
    let views: Vec<AnyView<'_>> = args.iter().map(Any::as_view).collect();
    py.detach(|| initialize.call(&views)).map_err(to_py)?;
    Ok(Module(machine))
}

#[pyfunction]
fn module_from_bytes<'py>(py: Python<'py>, kind: &str, bytes: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyAny>> {
    let loader = format!("ffi.Module.load_from_bytes.{kind}");
    let load = ffi::get_global(&loader).ok_or_else(|| {
        PyValueError::new_err(format!("nothing loads modules of kind {kind:?} ({loader} is not registered)"))
    })?;
    let bytes: Any = ffi::Bytes::new(bytes.as_bytes()).into();
    let module = load.call(&[bytes.as_view()]).map_err(to_py)?;
    crate::convert::to_py(py, module)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(load_module, m)?)?;
    m.add_function(wrap_pyfunction!(load_static_library, m)?)?;
    m.add_function(wrap_pyfunction!(load_virtual_machine, m)?)?;
    m.add_function(wrap_pyfunction!(module_from_bytes, m)?)
}
