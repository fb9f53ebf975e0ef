//! Arrays of numpy as tensors, and tensors as arrays, by numpy's own C interface: a tenth of the time that DLPack's way through Python
//! takes, which is what short calls consist of.
//!
//! Arrays are taken whose elements numpy has itself (no texts, no records, no types of other packages), in this machine's order of
//! bytes and in a row. What else there is goes the way through Python.

use numpy::npyffi::{NPY_TYPES, PY_ARRAY_API, PyArray_CheckExact};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use relaxide::ffi::{self, ALIGNMENT, DataType, Device};

use crate::error::to_py;
use crate::tensor::Tensor;

/// Elements that numpy and the runtime have, each with numpy's number. Some have two in numpy, and the first is what arrays are made with.
const ELEMENTS: &[(NPY_TYPES, u8, u8)] = &[
    (NPY_TYPES::NPY_FLOAT, DataType::FLOAT, 32),
    (NPY_TYPES::NPY_LONG, DataType::INT, std::ffi::c_long::BITS as u8),
    (NPY_TYPES::NPY_DOUBLE, DataType::FLOAT, 64),
    (NPY_TYPES::NPY_INT, DataType::INT, 32),
    (NPY_TYPES::NPY_BOOL, DataType::BOOL, 8),
    (NPY_TYPES::NPY_UBYTE, DataType::UINT, 8),
    (NPY_TYPES::NPY_BYTE, DataType::INT, 8),
    (NPY_TYPES::NPY_HALF, DataType::FLOAT, 16),
    (NPY_TYPES::NPY_SHORT, DataType::INT, 16),
    (NPY_TYPES::NPY_USHORT, DataType::UINT, 16),
    (NPY_TYPES::NPY_UINT, DataType::UINT, 32),
    (NPY_TYPES::NPY_ULONG, DataType::UINT, std::ffi::c_ulong::BITS as u8),
    (NPY_TYPES::NPY_LONGLONG, DataType::INT, 64),
    (NPY_TYPES::NPY_ULONGLONG, DataType::UINT, 64),
];

/// A length of numpy is as wide as one of ours on every machine that the extension is built for.
const _: () = assert!(size_of::<isize>() == size_of::<i64>());

/// Arrays of fewer bytes are copied where one could share their memory: that takes less time than to keep the array.
const COPIED: usize = 4096;

/// An array that is an argument as it is.
pub struct Plain<'a, 'py> {
    array: &'a Bound<'py, PyUntypedArray>,
    /// The type of its elements.
    pub dtype: DataType,
    /// The lengths of its axes.
    pub shape: &'a [i64],
}

impl<'a, 'py> Plain<'a, 'py> {
    /// An array whose elements lie in a row, in this machine's order; nothing where it is another thing.
    pub fn of(value: &'a Bound<'py, PyAny>) -> Option<Plain<'a, 'py>> {
        // SAFETY: the object is alive and the thread attached.
        if unsafe { PyArray_CheckExact(value.py(), value.as_ptr()) } == 0 {
            return None;
        }
        // SAFETY: its class is that of arrays.
        let array = unsafe { value.cast_unchecked::<PyUntypedArray>() };
        let descr = array.dtype();
        let number = descr.num();
        let (_, code, bits) = ELEMENTS.iter().find(|(own, ..)| *own as i32 == number)?;
        if descr.is_native_byteorder() == Some(false) || !array.is_c_contiguous() {
            return None;
        }
        let shape = array.shape();
        // SAFETY: lengths are not negative, and a length of numpy is as wide as one of ours, as the assertion above says.
        let shape = unsafe { std::slice::from_raw_parts(shape.as_ptr().cast::<i64>(), shape.len()) };
        Some(Plain { array, dtype: DataType { code: *code, bits: *bits, lanes: 1 }, shape })
    }

    fn data(&self) -> *mut u8 {
        // SAFETY: the array is alive.
        unsafe { (*self.array.as_array_ptr()).fields.data.cast() }
    }

    fn byte_size(&self) -> usize {
        self.array.len() * usize::from(self.dtype.bits / 8)
    }

    /// The array as an argument of a call: over its own memory, where kernels can use that as it is, and else as a copy. Who writes to
    /// the array during the call writes to the argument.
    pub fn argument(&self) -> PyResult<ffi::Tensor> {
        let (data, bytes) = (self.data(), self.byte_size());
        if bytes <= COPIED || !(data as usize).is_multiple_of(ALIGNMENT) {
            let content: &[u8] = match bytes {
                0 => &[],
                // SAFETY: the elements lie in a row; nobody else runs while the thread is attached.
                _ => unsafe { std::slice::from_raw_parts(data, bytes) },
            };
            return ffi::Tensor::from_bytes(content, self.shape, self.dtype).map_err(to_py);
        }
        self.viewed()
    }

    /// A tensor over the array's memory, wherever that begins.
    pub fn viewed(&self) -> PyResult<ffi::Tensor> {
        let owner = self.array.clone().unbind();
        // SAFETY: the elements lie in a row in the array's memory, which lives as long as the array, which the tensor keeps.
        let made =
            unsafe { ffi::Tensor::from_parts(self.data().cast(), self.shape, self.dtype, Device::cpu(0), 0, owner) };
        made.map_err(to_py)
    }
}

/// A new array with the elements of a tensor of the host; nothing where numpy has no such elements.
pub fn array_of<'py>(py: Python<'py>, tensor: &ffi::Tensor) -> PyResult<Option<Bound<'py, PyAny>>> {
    let dtype = tensor.dtype();
    let own = |(_, code, bits): &&(NPY_TYPES, u8, u8)| (*code, *bits, 1) == (dtype.code, dtype.bits, dtype.lanes);
    let Some((number, ..)) = ELEMENTS.iter().find(own) else { return Ok(None) };
    if tensor.device().device_type != ffi::Device::CPU {
        return Ok(None);
    }
    let mut dims: Vec<isize> = tensor.shape().iter().map(|dim| *dim as isize).collect();
    // SAFETY: there are as many lengths as is said; the function takes the description over.
    let (array, data) = unsafe {
        let descr = PY_ARRAY_API.PyArray_DescrFromType(py, *number as i32);
        let made = PY_ARRAY_API.PyArray_Empty(py, dims.len() as i32, dims.as_mut_ptr(), descr, 0);
        let array = Bound::from_owned_ptr_or_err(py, made)?;
        let data = (*array.as_ptr().cast::<numpy::npyffi::PyArrayObject>()).fields.data;
        (array, data.cast::<u8>())
    };
    let gathered;
    let bytes: &[u8] = match tensor.is_contiguous() {
        true => tensor.as_bytes().map_err(to_py)?,
        false => {
            gathered = tensor.to_bytes().map_err(to_py)?;
            &gathered
        }
    };
    // SAFETY: the array is new and has as many elements of the same size.
    unsafe { data.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    Ok(Some(array))
}

/// The elements of a tensor as a new array of numpy; `None` where numpy has no such elements itself, or they lie on a device.
#[pyfunction]
fn array_of_tensor<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Option<Bound<'py, PyAny>>> {
    array_of(py, &tensor.0)
}

/// An array of numpy as an argument of a call: over its memory, or a copy where that begins at an odd place. `None` where it has gaps or
/// elements that numpy does not have itself.
#[pyfunction]
fn argument_of_array<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    Plain::of(value).map(|array| Tensor::wrap(value.py(), array.argument()?)).transpose()
}

/// A tensor over the memory of an array of numpy, wherever that begins: not an argument as it is. `None` as for `argument_of_array`.
#[pyfunction]
fn tensor_over_array<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    Plain::of(value).map(|array| Tensor::wrap(value.py(), array.viewed()?)).transpose()
}

/// A tensor as an argument of a call: itself, or a copy where its memory begins at an odd place.
#[pyfunction]
fn aligned_tensor<'py>(py: Python<'py>, tensor: &Bound<'py, Tensor>) -> PyResult<Bound<'py, PyAny>> {
    let own = &tensor.get().0;
    if (own.data_ptr() as usize).is_multiple_of(ALIGNMENT) || own.byte_size() == 0 {
        return Ok(tensor.clone().into_any());
    }
    let bytes = own.to_bytes().map_err(to_py)?;
    Tensor::wrap(py, ffi::Tensor::from_bytes(&bytes, own.shape(), own.dtype()).map_err(to_py)?)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(array_of_tensor, m)?)?;
    m.add_function(wrap_pyfunction!(argument_of_array, m)?)?;
    m.add_function(wrap_pyfunction!(tensor_over_array, m)?)?;
    m.add_function(wrap_pyfunction!(aligned_tensor, m)?)
}
