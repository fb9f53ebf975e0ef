//! Modules: functions by name.

use std::time::Duration;

use pyo3::exceptions::{PyAttributeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use relaxide::ffi::{self, Any, AnyView};
use relaxide::runtime::timing::{TimingOptions, measure};

use crate::device::Device;
use crate::error::to_py;
use crate::function::Function;

/// Functions by name, with the modules that they call into.
#[pyclass(frozen, subclass, from_py_object, module = "relaxide")]
#[derive(Clone)]
pub struct Module(pub ffi::Module);

#[pymethods]
impl Module {
    /// What kind of module it is.
    #[getter]
    fn kind(&self) -> String {
        self.0.kind().to_string()
    }

    /// The modules that it calls into.
    #[getter]
    fn imports(&self) -> Vec<Module> {
        self.0.imports().into_iter().map(Module).collect()
    }

    /// The function of a name.
    #[pyo3(signature = (name, query_imports=false))]
    fn get_function(&self, name: &str, query_imports: bool) -> PyResult<Function> {
        let found = self.0.get_function(name, query_imports).map(Function);
        found.ok_or_else(|| PyAttributeError::new_err(format!("Module has no function '{name}'")))
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

    /// A function that times the function of a name: `number` calls make one measurement, repeated `repeat` times.
    #[pyo3(signature = (func_name, dev, number=10, repeat=1, min_repeat_ms=0, cooldown_interval_ms=0, repeats_to_cooldown=1, f_preproc=""))]
    #[expect(clippy::too_many_arguments, reason = "the signature is that of TVM's method of this name")]
    fn time_evaluator(
        &self,
        func_name: &str,
        dev: Device,
        number: u32,
        repeat: u32,
        min_repeat_ms: u64,
        cooldown_interval_ms: u64,
        repeats_to_cooldown: u32,
        f_preproc: &str,
    ) -> PyResult<Evaluator> {
        if number == 0 || repeat == 0 || repeats_to_cooldown == 0 {
            return Err(PyValueError::new_err("number, repeat and repeats_to_cooldown must be at least 1"));
        }
        if dev.0.device_type != Device::CPU {
            return Err(PyValueError::new_err(format!("device {} is not there; time on relaxide.cpu()", dev.0)));
        }
        let prepare = match f_preproc {
            "" => None,
            name => Some(
                ffi::get_global(name)
                    .ok_or_else(|| PyValueError::new_err(format!("Cannot find global function {name}")))?,
            ),
        };
        let function = self.get_function(func_name, true)?.0;
        let options = TimingOptions {
            number,
            repeat,
            min_repeat: Duration::from_millis(min_repeat_ms),
            cooldown: Duration::from_millis(cooldown_interval_ms),
            repeats_to_cooldown,
            ..TimingOptions::default()
        };
        Ok(Evaluator { function, device: dev.0, options, prepare })
    }

    fn __getitem__(&self, name: &str) -> PyResult<Function> {
        self.get_function(name, false)
    }

    fn __repr__(&self) -> String {
        format!("<relaxide.Module kind={}>", self.0.kind())
    }
}

/// Times a function when it is called with that function's arguments.
#[pyclass(frozen, module = "relaxide")]
pub struct Evaluator {
    function: ffi::Function,
    device: ffi::Device,
    options: TimingOptions,
    prepare: Option<ffi::Function>,
}

#[pymethods]
impl Evaluator {
    #[pyo3(signature = (*args))]
    fn __call__(&self, py: Python<'_>, args: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<BenchmarkResult> {
        let args = args.iter().map(|arg| crate::convert::from_py(&arg)).collect::<PyResult<Vec<Any>>>()?;
        let results = py.detach(|| self.measure(&args)).map_err(to_py)?;
        Ok(BenchmarkResult { results })
    }
}

impl Evaluator {
    fn measure(&self, args: &[Any]) -> Result<Vec<f64>, ffi::Error> {
        let views: Vec<AnyView<'_>> = args.iter().map(Any::as_view).collect();
        let prepare = || self.prepare.as_ref().map_or(Ok(()), |f| f.call(&views).map(|_| ()));
        measure(self.device, &self.options, prepare, || self.function.call(&views).map(|_| ()))
    }
}

/// Seconds for a call, a figure for each measurement.
#[pyclass(frozen, module = "relaxide")]
pub struct BenchmarkResult {
    results: Vec<f64>,
}

#[pymethods]
impl BenchmarkResult {
    /// All measurements, in seconds.
    #[getter]
    fn results(&self) -> Vec<f64> {
        self.results.clone()
    }

    /// Their mean.
    #[getter]
    fn mean(&self) -> f64 {
        self.results.iter().sum::<f64>() / self.results.len() as f64
    }

    /// Their median.
    #[getter]
    fn median(&self) -> f64 {
        let mut sorted = self.results.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
    }

    /// The least.
    #[getter]
    fn min(&self) -> f64 {
        self.results.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The greatest.
    #[getter]
    fn max(&self) -> f64 {
        self.results.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Their standard deviation.
    #[getter]
    fn std(&self) -> f64 {
        let mean = self.mean();
        (self.results.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / self.results.len() as f64).sqrt()
    }

    fn __repr__(&self) -> String {
        format!(
            "BenchmarkResult(min={:.6e}, median={:.6e}, mean={:.6e}, max={:.6e})",
            self.min(),
            self.median(),
            self.mean(),
            self.max()
        )
    }
}

#[pyfunction]
fn load_module(path: std::path::PathBuf) -> PyResult<Module> {
    relaxide::load_module(&path).map(Module).map_err(to_py)
}

/// Makes a virtual machine of an executable module, with an allocator on each device.
#[pyfunction]
fn load_virtual_machine(module: &Module, devices: Vec<(Device, i64)>) -> PyResult<Module> {
    let load = module.0.get_function("vm_load_executable", false).ok_or_else(|| {
        PyValueError::new_err(format!("a module of kind {:?} holds no program of the virtual machine", module.0.kind()))
    })?;
    let machine: ffi::Module = load.call(&[]).and_then(|vm| vm.to()).map_err(to_py)?;
    let initialize = machine
        .get_function("vm_initialization", false)
        .ok_or_else(|| PyValueError::new_err("the virtual machine cannot be initialized"))?;
    let mut args: Vec<Any> = Vec::with_capacity(devices.len() * 3);
    for (device, allocator) in devices {
        args.push(i64::from(device.0.device_type).into());
        args.push(i64::from(device.0.device_id).into());
        args.push(allocator.into());
    }
    let views: Vec<AnyView<'_>> = args.iter().map(Any::as_view).collect();
    initialize.call(&views).map_err(to_py)?;
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
    crate::convert::to_py(py, module.as_view())
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Evaluator>()?;
    m.add_class::<BenchmarkResult>()?;
    m.add_function(wrap_pyfunction!(load_module, m)?)?;
    m.add_function(wrap_pyfunction!(load_virtual_machine, m)?)?;
    m.add_function(wrap_pyfunction!(module_from_bytes, m)?)
}
