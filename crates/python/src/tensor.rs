//! Tensors and shapes.

use std::cell::Cell;
use std::ffi::CStr;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};
use relaxide::ffi::{self, DLManagedTensor, DLManagedTensorVersioned, Requirements};
use relaxide::runtime::device::{empty_tensor, fill_host};

use crate::classes;
use crate::device::{Device, data_type};
use crate::error::to_py;

const PLAIN: &CStr = c"dltensor";
const PLAIN_USED: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const VERSIONED_USED: &CStr = c"used_dltensor_versioned";

/// A tensor on a device.
#[pyclass(frozen, subclass, from_py_object, weakref, module = "relaxide.runtime")]
#[derive(Clone)]
pub struct Tensor(pub ffi::Tensor);

thread_local! {
    /// The tensor that the instance that is about to be made is for.
    static HANDED: Cell<Option<ffi::Tensor>> = const { Cell::new(None) };
}

impl Tensor {
    /// A tensor as an instance of its class.
    #[inline]
    pub fn wrap(py: Python<'_>, tensor: ffi::Tensor) -> PyResult<Bound<'_, PyAny>> {
        let Some(class) = classes::replacing(py, ffi::abi::type_index::TENSOR) else {
            return Ok(Bound::new(py, Tensor(tensor))?.into_any());
        };
        HANDED.set(Some(tensor));
        // The class's own constructor would make another tensor.
        let made = class.call_method1("__new__", (&class,));
        HANDED.set(None);
        made
    }
}

#[pymethods]
impl Tensor {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Tensor> {
        let refused = || PyTypeError::new_err("tensors are made by from_dlpack, empty and tensor");
        HANDED.take().map(Tensor).ok_or_else(refused)
    }

    #[staticmethod]
    fn _empty(shape: Vec<i64>, dtype: &Bound<'_, PyAny>, device: Device) -> PyResult<Tensor> {
        let dtype = data_type(dtype)?;
        // The host's memory is zeroed; what a device's holds is undefined.
        let made = match device.0 {
            ffi::Device { device_type: ffi::Device::CPU, device_id: 0 } => ffi::Tensor::zeros(&shape, dtype),
            other => empty_tensor(&shape, dtype, other).and_then(|made| {
                if other.device_type == ffi::Device::CPU {
                    fill_host(&made, |bytes| {
                        bytes.fill(0);
                        Ok::<_, ffi::Error>(())
                    })?;
                }
                Ok(made)
            }),
        };
        made.map(Tensor).map_err(to_py)
    }

    /// A tensor that shares the data of another library's.
    #[staticmethod]
    #[pyo3(signature = (source, require_alignment=0, require_contiguous=false))]
    pub fn _from_dlpack(
        source: &Bound<'_, PyAny>,
        require_alignment: usize,
        require_contiguous: bool,
    ) -> PyResult<Tensor> {
        let require = Requirements { alignment: require_alignment, contiguous: require_contiguous };
        let capsule = match source.cast::<PyCapsule>() {
            Ok(capsule) => capsule.clone(),
            Err(_) => request_capsule(source)?,
        };
        take_capsule(&capsule, require)
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
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        crate::convert::data_type(py, self.0.dtype())
    }

    /// The distances between neighbours, in elements.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.strides())
    }

    /// The extent of a dimension.
    fn size(&self, idx: isize) -> PyResult<i64> {
        let at = if idx < 0 { idx + self.0.ndim() as isize } else { idx };
        let found = usize::try_from(at).ok().and_then(|at| self.0.shape().get(at).copied());
        found.ok_or_else(|| {
            pyo3::exceptions::PyIndexError::new_err(format!("dimension {idx} of a tensor of {}", self.0.ndim()))
        })
    }

    /// The number of elements.
    fn numel(&self) -> usize {
        self.0.numel()
    }

    /// The address of the first element.
    fn data_ptr(&self) -> usize {
        self.0.data_ptr() as usize
    }

    /// Whether the elements follow each other in row-major order.
    fn is_contiguous(&self) -> bool {
        self.0.is_contiguous()
    }

    /// Whether two names stand for the same tensor object.
    fn same_as(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Tensor>().is_ok_and(|other| self.0 == other.get().0)
    }

    fn is_(&self, other: &Bound<'_, PyAny>) -> bool {
        self.same_as(other)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        self.same_as(other)
    }

    fn __hash__(&self) -> usize {
        ffi::Handle::as_object(&self.0).as_ptr() as usize >> 4
    }

    /// The address of the tensor object.
    fn __chandle__(&self) -> usize {
        ffi::Handle::as_object(&self.0).as_ptr() as usize
    }

    /// Another view of the same memory, `relative_byte_offset` bytes further on.
    #[pyo3(signature = (shape, dtype=None, relative_byte_offset=0))]
    fn _create_view(
        &self,
        shape: Vec<i64>,
        dtype: Option<&Bound<'_, PyAny>>,
        relative_byte_offset: usize,
    ) -> PyResult<Tensor> {
        let dtype = dtype.map_or(Ok(self.0.dtype()), data_type)?;
        self.0.view(&shape, dtype, relative_byte_offset).map(Tensor).map_err(to_py)
    }

    /// The elements as bytes, in row-major order.
    fn _bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyBytes>> {
        Ok(pyo3::types::PyBytes::new(py, &self.0.to_bytes().map_err(to_py)?))
    }

    /// Overwrite all elements with the bytes of another tensor, which may be of another type.
    fn _fill(&self, source: &Tensor) -> PyResult<()> {
        self.0.copy_from_bytes(source.0.as_bytes().map_err(to_py)?).map_err(to_py)
    }

    /// Overwrite all elements with those of a tensor of the same shape and type.
    fn _copy_from(&self, py: Python<'_>, source: &Tensor) -> PyResult<()> {
        let (to, from) = (&self.0, &source.0);
        if to.shape() != from.shape() || to.dtype() != from.dtype() {
            return Err(PyValueError::new_err(format!(
                "a tensor of shape {:?} and type {} cannot be copied to one of shape {:?} and type {}",
                from.shape(),
                from.dtype(),
                to.shape(),
                to.dtype()
            )));
        }
        if [to, from].iter().any(|tensor| tensor.device().device_type != ffi::Device::CPU) {
            return py.detach(|| relaxide::runtime::device::copy_into(from, to)).map_err(to_py);
        }
        let copied = match from.is_contiguous() {
            true => from.as_bytes().and_then(|bytes| to.copy_from_bytes(bytes)),
            false => from.to_bytes().and_then(|bytes| to.copy_from_bytes(&bytes)),
        };
        copied.map_err(to_py)
    }

    /// Where it lives.
    #[getter]
    fn device(&self) -> Device {
        Device(self.0.device())
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

fn take_capsule(capsule: &Bound<'_, PyCapsule>, require: Requirements) -> PyResult<Tensor> {
    let py = capsule.py();
    let raw = capsule.as_ptr();
    // SAFETY: the capsule API checks the name, so the pointer is of the type that the name stands for; renaming the capsule
    // afterwards makes the tensor ours, as DLPack prescribes.
    let tensor = unsafe {
        if pyo3::ffi::PyCapsule_IsValid(raw, VERSIONED.as_ptr()) == 1 {
            let managed = pyo3::ffi::PyCapsule_GetPointer(raw, VERSIONED.as_ptr()).cast::<DLManagedTensorVersioned>();
            let tensor = ffi::Tensor::from_dlpack_versioned(managed, require).map_err(to_py)?;
            pyo3::ffi::PyCapsule_SetName(raw, VERSIONED_USED.as_ptr());
            tensor
        } else if pyo3::ffi::PyCapsule_IsValid(raw, PLAIN.as_ptr()) == 1 {
            let managed = pyo3::ffi::PyCapsule_GetPointer(raw, PLAIN.as_ptr()).cast::<DLManagedTensor>();
            let tensor = ffi::Tensor::from_dlpack(managed, require).map_err(to_py)?;
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
