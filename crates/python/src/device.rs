//! Devices and element types.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyType;
use relaxide::ffi;

/// A device: its type and its number among those of that type.
#[pyclass(frozen, eq, subclass, from_py_object, module = "relaxide")]
#[derive(Clone, Copy, PartialEq)]
pub struct Device(pub ffi::Device);

#[pymethods]
impl Device {
    #[classattr]
    pub const CPU: i32 = 1;

    #[new]
    #[pyo3(signature = (device_type, index=None))]
    fn new(device_type: &Bound<'_, PyAny>, index: Option<i32>) -> PyResult<Device> {
        let (dev, dev_id) = (device_type, index.unwrap_or(0));
        if let Ok(kind) = dev.extract::<i32>() {
            return Ok(Device(ffi::Device::new(kind, dev_id)));
        }
        let Ok(name) = dev.extract::<String>() else {
            return Err(PyTypeError::new_err(
                "a device is named by text such as 'cpu' or 'cuda:1', or by a type number",
            ));
        };
        let device: ffi::Device =
            name.parse().map_err(|error: ffi::Error| PyValueError::new_err(error.message().to_string()))?;
        Ok(Device(if name.contains(':') { device } else { ffi::Device::new(device.device_type, dev_id) }))
    }

    /// The number of the device's type.
    fn dlpack_device_type(&self) -> i32 {
        self.0.device_type
    }

    /// The name of the device's type.
    #[getter]
    fn r#type(&self) -> String {
        self.0.type_name().map_or_else(|| self.0.device_type.to_string(), str::to_string)
    }

    /// The device's number among those of its type.
    #[getter]
    fn index(&self) -> i32 {
        self.0.device_id
    }

    /// Whether the device is there.
    #[getter]
    fn exist(&self, py: Python<'_>) -> bool {
        // A remote device is asked over the wire.
        py.detach(|| relaxide::runtime::device::device_exists(self.0))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (i32, i32)) {
        let device = slf.get().0;
        (slf.get_type(), (device.device_type, device.device_id))
    }

    /// Wait until all work on the device is done; on the CPU it always is.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        let stream = relaxide::runtime::device::Stream::DEFAULT;
        let wait = || relaxide::runtime::device::device_api(self.0)?.synchronize(self.0, stream);
        py.detach(wait).map_err(crate::error::to_py)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.0.device_type, self.0.device_id).hash(&mut hasher);
        hasher.finish()
    }

    fn __str__(&self) -> String {
        if self.0.remote().is_some() {
            return self.0.to_string();
        }
        let kind = self.r#type();
        format!("{kind}:{}", self.0.device_id)
    }

    fn __repr__(&self) -> String {
        format!("device(type='{}', index={})", self.r#type(), self.0.device_id)
    }
}

/// An element type.
#[pyclass(frozen, from_py_object, module = "relaxide")]
#[derive(Clone, Copy)]
pub struct DataType(pub ffi::DataType);

#[pymethods]
impl DataType {
    #[new]
    fn new(dtype: &Bound<'_, PyAny>) -> PyResult<DataType> {
        data_type(dtype).map(DataType)
    }

    /// The type of DLPack's triple.
    #[staticmethod]
    fn _of(code: u8, bits: u8, lanes: u16) -> DataType {
        DataType(ffi::DataType { code, bits, lanes })
    }

    /// The kind of element.
    #[getter]
    fn type_code(&self) -> u8 {
        self.0.code
    }

    /// Bits of one element.
    #[getter]
    fn bits(&self) -> u8 {
        self.0.bits
    }

    /// Elements of one value.
    #[getter]
    fn lanes(&self) -> u16 {
        self.0.lanes
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("dtype('{}')", self.0)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        data_type(other).is_ok_and(|dtype| dtype == self.0)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.to_string().hash(&mut hasher);
        hasher.finish()
    }
}

/// An element type from text, from numpy's types, or from a [`DataType`].
pub fn data_type(value: &Bound<'_, PyAny>) -> PyResult<ffi::DataType> {
    if let Ok(dtype) = value.extract::<DataType>() {
        return Ok(dtype.0);
    }
    let text = match value.extract::<String>() {
        Ok(text) => text,
        Err(_) => value.py().import("numpy")?.call_method1("dtype", (value,))?.str()?.to_string(),
    };
    text.parse()
        .map_err(|_| PyValueError::new_err(format!("{text:?} is no element type; expected one such as 'float32'")))
}

/// Makes a stream, given by its address, the device's current one; returns the one that was.
#[pyfunction]
fn set_stream(device: Device, stream: usize) -> usize {
    ffi::stream::set(device.0, std::ptr::with_exposed_provenance_mut(stream)).expose_provenance()
}

/// The address of the device's current stream.
#[pyfunction]
fn get_stream(device: Device) -> usize {
    ffi::stream::get(device.0).expose_provenance()
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Device>()?;
    m.add_class::<DataType>()?;
    m.add_function(wrap_pyfunction!(set_stream, m)?)?;
    m.add_function(wrap_pyfunction!(get_stream, m)?)
}
