//! Tensors and shapes.

use std::ffi::CStr;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};
use relaxide::ffi::{self, DLManagedTensor, DLManagedTensorVersioned, Requirements};

use crate::device::{Device, data_type};
use crate::error::to_py;

const PLAIN: &CStr = c"dltensor";
const PLAIN_USED: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const VERSIONED_USED: &CStr = c"used_dltensor_versioned";

/// A tensor on a device.
#[pyclass(frozen, from_py_object, module = "relaxide")]
#[derive(Clone)]
pub struct Tensor(pub ffi::Tensor);

#[pymethods]
impl Tensor {
    #[staticmethod]
    fn _empty(shape: Vec<i64>, dtype: &Bound<'_, PyAny>, device: Device) -> PyResult<Tensor> {
        on_cpu(device)?;
        ffi::Tensor::zeros(&shape, data_type(dtype)?).map(Tensor).map_err(to_py)
    }

    /// A copy of the data of a numpy array.
    #[staticmethod]
    fn _from_numpy(array: &Bound<'_, PyAny>, device: Device) -> PyResult<Tensor> {
        on_cpu(device)?;
        let dtype = data_type(&array.getattr("dtype")?)?;
        let shape: Vec<i64> = array.getattr("shape")?.extract()?;
        let tensor = ffi::Tensor::zeros(&shape, dtype).map_err(to_py)?;
        copy_array_into(array, &tensor)?;
        Ok(Tensor(tensor))
    }

    /// A tensor that shares the data of another library's.
    #[staticmethod]
    pub fn _from_dlpack(source: &Bound<'_, PyAny>) -> PyResult<Tensor> {
        let capsule = match source.cast::<PyCapsule>() {
            Ok(capsule) => capsule.clone(),
            Err(_) => request_capsule(source)?,
        };
        take_capsule(&capsule)
    }

    /// The dimensions.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.shape())
    }

    /// The number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.0.ndim()
    }

    /// The element type.
    #[getter]
    fn dtype(&self) -> String {
        self.0.dtype().to_string()
    }

    /// Where it lives.
    #[getter]
    fn device(&self) -> Device {
        Device(self.0.device())
    }

    /// A copy as a numpy array.
    fn numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let view = slf.py().import("numpy")?.call_method1("from_dlpack", (slf,))?;
        view.call_method0("copy")
    }

    /// Copy the data of an array or tensor into this one.
    fn copyfrom<'py>(slf: Bound<'py, Self>, source: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        let array = match source.cast::<Tensor>() {
            Ok(tensor) => Tensor::numpy(tensor)?,
            Err(_) => {
                let numpy = slf.py().import("numpy")?;
                numpy.call_method1("ascontiguousarray", (source, slf.get().dtype()))?
            }
        };
        let shape: Vec<i64> = array.getattr("shape")?.extract()?;
        let this = &slf.get().0;
        if shape != this.shape() {
            return Err(PyValueError::new_err(format!(
                "array of shape {shape:?} given for a tensor of shape {:?}",
                this.shape()
            )));
        }
        copy_array_into(&array, this)?;
        Ok(slf)
    }

    /// Copy to a tensor, or to a fresh one on a device.
    fn copyto<'py>(slf: &Bound<'py, Self>, target: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(tensor) = target.cast::<Tensor>() {
            Tensor::copyfrom(tensor.clone(), slf.as_any())?;
            return Ok(tensor.clone().into_any());
        }
        let device: Device = target.extract()?;
        let copy = Tensor::_from_numpy(&Tensor::numpy(slf)?, device)?;
        Ok(Bound::new(slf.py(), copy)?.into_any())
    }

    /// DLPack's export.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let here = (self.0.device().device_type, self.0.device().device_id);
        if dl_device.is_some_and(|wanted| wanted != here) || copy == Some(true) {
            return Err(pyo3::exceptions::PyBufferError::new_err("this export shares memory on its own device"));
        }
        let _ = stream;
        if max_version.is_some_and(|(major, _)| major >= 1) {
            let managed = self.0.to_dlpack_versioned();
            // SAFETY: the capsule owns the managed tensor until a consumer renames it; the destructor looks at the name.
            unsafe { capsule(py, managed.as_ptr().cast(), VERSIONED, drop_versioned) }
        } else {
            let managed = self.0.to_dlpack();
            // SAFETY: as above.
            unsafe { capsule(py, managed.as_ptr().cast(), PLAIN, drop_plain) }
        }
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        (self.0.device().device_type, self.0.device().device_id)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let this = slf.get();
        Ok(format!(
            "<relaxide.Tensor shape={:?}, {}, {}>\n{}",
            this.0.shape(),
            this.0.device(),
            this.dtype(),
            Tensor::numpy(slf)?.repr()?
        ))
    }
}

fn on_cpu(device: Device) -> PyResult<()> {
    if device.0.device_type == Device(ffi::Device::cpu(0)).0.device_type {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "device {} is not there; this build has the CPU alone: use relaxide.cpu()",
        device.0
    )))
}

fn copy_array_into(array: &Bound<'_, PyAny>, tensor: &ffi::Tensor) -> PyResult<()> {
    let bytes = array.call_method1("tobytes", ("C",))?;
    let bytes = bytes.cast::<pyo3::types::PyBytes>()?;
    tensor.copy_from_bytes(bytes.as_bytes()).map_err(to_py)
}

fn request_capsule<'py>(source: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyCapsule>> {
    if !source.hasattr("__dlpack__")? {
        let name = source.get_type().name()?.to_string();
        return Err(PyTypeError::new_err(format!("expected an array with __dlpack__, got {name}")));
    }
    let options = PyDict::new(source.py());
    options.set_item("max_version", (1, 0))?;
    let made = match source.call_method("__dlpack__", (), Some(&options)) {
        Err(error) if error.is_instance_of::<PyTypeError>(source.py()) => source.call_method0("__dlpack__")?,
        made => made?,
    };
    Ok(made.cast_into::<PyCapsule>()?)
}

fn take_capsule(capsule: &Bound<'_, PyCapsule>) -> PyResult<Tensor> {
    let py = capsule.py();
    let raw = capsule.as_ptr();
    let none = Requirements::default();
    // SAFETY: the capsule API checks the name, so the pointer is of the type that the name stands for; renaming the capsule
    // afterwards makes the tensor ours, as DLPack prescribes.
    let tensor = unsafe {
        if pyo3::ffi::PyCapsule_IsValid(raw, VERSIONED.as_ptr()) == 1 {
            let managed = pyo3::ffi::PyCapsule_GetPointer(raw, VERSIONED.as_ptr()).cast::<DLManagedTensorVersioned>();
            let tensor = ffi::Tensor::from_dlpack_versioned(managed, none).map_err(to_py)?;
            pyo3::ffi::PyCapsule_SetName(raw, VERSIONED_USED.as_ptr());
            tensor
        } else if pyo3::ffi::PyCapsule_IsValid(raw, PLAIN.as_ptr()) == 1 {
            let managed = pyo3::ffi::PyCapsule_GetPointer(raw, PLAIN.as_ptr()).cast::<DLManagedTensor>();
            let tensor = ffi::Tensor::from_dlpack(managed, none).map_err(to_py)?;
            pyo3::ffi::PyCapsule_SetName(raw, PLAIN_USED.as_ptr());
            tensor
        } else {
            return Err(PyValueError::new_err("the DLPack capsule was used before; request a new one"));
        }
    };
    if let Some(error) = PyErr::take(py) {
        return Err(error);
    }
    Ok(Tensor(tensor))
}

/// Wraps a pointer that the capsule owns.
///
/// # Safety
/// `pointer` is what `name` says, and `destructor` releases it.
unsafe fn capsule<'py>(
    py: Python<'py>,
    pointer: *mut std::ffi::c_void,
    name: &'static CStr,
    destructor: unsafe extern "C" fn(*mut pyo3::ffi::PyObject),
) -> PyResult<Bound<'py, PyCapsule>> {
    // SAFETY: the name lives for ever and the pointer is not null.
    let object = unsafe {
        Bound::from_owned_ptr_or_err(py, pyo3::ffi::PyCapsule_New(pointer, name.as_ptr(), Some(destructor)))?
    };
    Ok(object.cast_into::<PyCapsule>()?)
}

unsafe extern "C" fn drop_plain(capsule: *mut pyo3::ffi::PyObject) {
    // SAFETY: Python hands us the capsule that it destroys; a capsule with the first name was not consumed, so it still owns.
    unsafe {
        if pyo3::ffi::PyCapsule_IsValid(capsule, PLAIN.as_ptr()) == 1 {
            let managed = pyo3::ffi::PyCapsule_GetPointer(capsule, PLAIN.as_ptr()).cast::<DLManagedTensor>();
            if let Some(deleter) = (*managed).deleter {
                deleter(managed);
            }
        }
    }
}

unsafe extern "C" fn drop_versioned(capsule: *mut pyo3::ffi::PyObject) {
    // SAFETY: as for `drop_plain`.
    unsafe {
        if pyo3::ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            let managed =
                pyo3::ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast::<DLManagedTensorVersioned>();
            if let Some(deleter) = (*managed).deleter {
                deleter(managed);
            }
        }
    }
}

/// Dimensions as a value.
#[pyclass(frozen, from_py_object, module = "relaxide")]
#[derive(Clone)]
pub struct ShapeTuple(pub ffi::Shape);

#[pymethods]
impl ShapeTuple {
    #[new]
    fn new(dims: Vec<i64>) -> ShapeTuple {
        ShapeTuple(ffi::Shape::new(&dims))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __getitem__(&self, index: isize) -> PyResult<i64> {
        let at = if index < 0 { index + self.0.len() as isize } else { index };
        let found = usize::try_from(at).ok().and_then(|at| self.0.get(at).copied());
        found.ok_or_else(|| {
            pyo3::exceptions::PyIndexError::new_err(format!("index {index} of a shape of {} dimensions", self.0.len()))
        })
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        if let Ok(other) = other.extract::<ShapeTuple>() {
            return other.0.as_slice() == self.0.as_slice();
        }
        other.extract::<Vec<i64>>().is_ok_and(|dims| dims == self.0.as_slice())
    }

    fn __repr__(&self) -> String {
        let dims: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        format!("ffi.Shape({})", dims.join(", "))
    }
}
