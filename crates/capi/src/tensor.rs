//! Tensors for C.
//!
//! A handle is the address of a tensor object of the tvm-ffi ABI, so programs that speak that ABI use it as it is.

use std::ffi::{c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use relaxide_ffi::{DLManagedTensorVersioned, DataType, Device, Error, Handle, ObjectHeader, ObjectRef, Tensor};

use crate::border::{array, at, guard, invalid, put, release, text};

/// A tensor object.
#[repr(C)]
pub struct RelaxideTensor(ObjectHeader);

/// What a tensor consists of.
#[repr(C)]
pub struct RelaxideTensorInfo {
    /// The first element.
    pub data: *mut c_void,
    /// The extents of the dimensions.
    pub shape: *const i64,
    /// The distances between neighbours, in elements.
    pub strides: *const i64,
    /// The number of dimensions.
    pub ndim: usize,
    /// The type of one element.
    pub dtype: DataType,
    /// Where the data lies.
    pub device: Device,
    /// The number of elements.
    pub size: usize,
    /// The bytes that the elements take when they are compact.
    pub byte_size: usize,
}

/// Gives a tensor to the caller.
pub(crate) fn give(tensor: Tensor) -> *mut RelaxideTensor {
    tensor.as_object().clone().into_raw().as_ptr().cast()
}

/// The tensor behind a handle, with a reference of its own.
///
/// # Safety
/// `handle` is null or a live tensor.
pub(crate) unsafe fn tensor(handle: *const RelaxideTensor, what: &str) -> Result<Tensor, Error> {
    let header = NonNull::new(handle.cast_mut().cast::<ObjectHeader>());
    let header = header.ok_or_else(|| invalid(format!("{what} is null")))?;
    // SAFETY: the object is live; the caller's reference is given back by not dropping it.
    let borrowed = ManuallyDrop::new(unsafe { ObjectRef::from_header(header) });
    let not_a_tensor = |object: ObjectRef| Error::type_mismatch(what, object.type_key());
    Tensor::try_from_object(ObjectRef::clone(&borrowed)).map_err(not_a_tensor)
}

/// The element type of a name such as `float32`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_dtype_parse(name: *const c_char, dtype: *mut DataType) -> c_int {
    guard(|| {
        // SAFETY: the interface's contract.
        unsafe { put(dtype, text(name, "name")?.parse()?, "dtype") }
    })
}

/// Writes the name of an element type, with a NUL, into a place of `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_dtype_name(dtype: DataType, name: *mut c_char, room: usize) -> c_int {
    guard(|| {
        let text = crate::error::c_string(&dtype.to_string());
        let bytes = text.as_bytes_with_nul();
        if name.is_null() {
            return Err(crate::border::null("name"));
        }
        if bytes.len() > room {
            return Err(invalid(format!("{text:?} takes {} bytes and there is room for {room}", bytes.len())));
        }
        // SAFETY: the interface's contract: there is room for so many bytes.
        unsafe { name.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(())
    })
}

/// Makes a compact tensor of zeros in the host's memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_tensor_new(
    shape: *const i64,
    ndim: usize,
    dtype: DataType,
    tensor: *mut *mut RelaxideTensor,
) -> c_int {
    guard(|| {
        // SAFETY: the interface's contract.
        unsafe {
            at(tensor, "tensor")?;
            put(tensor, give(Tensor::zeros(array(shape, ndim, "shape")?, dtype)?), "tensor")
        }
    })
}

/// Lets the owner of borrowed memory know that it is free.
pub type Release = unsafe extern "C" fn(context: *mut c_void);

/// What is done when the last reference to borrowed memory goes.
struct Borrowed {
    release: Option<Release>,
    context: *mut c_void,
}

// SAFETY: the interface says that any thread may drop the last reference.
unsafe impl Send for Borrowed {}
// SAFETY: as above; the context is not followed here.
unsafe impl Sync for Borrowed {}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the memory is used no more, and this is the only call.
            unsafe { release(self.context) };
        }
    }
}

/// Makes a tensor over the caller's compact host memory. If this fails, `release` is not called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_tensor_borrow(
    data: *mut c_void,
    shape: *const i64,
    ndim: usize,
    dtype: DataType,
    release: Option<Release>,
    context: *mut c_void,
    tensor: *mut *mut RelaxideTensor,
) -> c_int {
    guard(|| {
        // SAFETY: the interface's contract.
        unsafe {
            at(tensor, "tensor")?;
            let shape = array(shape, ndim, "shape")?;
            if data.is_null() && !shape.contains(&0) {
                return Err(invalid("data is null"));
            }
            // The owner is made when nothing can fail any more, so that a failure does not release the memory.
            let made = Tensor::from_parts(data, shape, dtype, Device::cpu(0), 0, ())?;
            drop(made);
            let owner = Borrowed { release, context };
            put(tensor, give(Tensor::from_parts(data, shape, dtype, Device::cpu(0), 0, owner)?), "tensor")
        }
    })
}

/// Takes over a DLPack tensor; after a failure it still belongs to the caller.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_tensor_from_dlpack(
    managed: *mut DLManagedTensorVersioned,
    tensor: *mut *mut RelaxideTensor,
) -> c_int {
    guard(|| {
        // SAFETY: the interface's contract.
        unsafe {
            at(tensor, "tensor")?;
            put(tensor, give(Tensor::from_dlpack_versioned(managed, Default::default())?), "tensor")
        }
    })
}

/// Lends a tensor out as DLPack; the receiver calls the deleter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_tensor_to_dlpack(
    tensor: *const RelaxideTensor,
    managed: *mut *mut DLManagedTensorVersioned,
) -> c_int {
    guard(|| {
        // SAFETY: the interface's contract.
        unsafe {
            at(managed, "managed")?;
            put(managed, self::tensor(tensor, "tensor")?.to_dlpack_versioned().as_ptr(), "managed")
        }
    })
}

/// Describes a tensor; the addresses are valid as long as the tensor lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_tensor_describe(
    tensor: *const RelaxideTensor,
    info: *mut RelaxideTensorInfo,
) -> c_int {
    guard(|| {
        // SAFETY: the interface's contract; the addresses are those of the object itself.
        unsafe {
            let tensor = self::tensor(tensor, "tensor")?;
            let described = RelaxideTensorInfo {
                data: tensor.data_ptr().cast(),
                shape: tensor.shape().as_ptr(),
                strides: tensor.strides().as_ptr(),
                ndim: tensor.ndim(),
                dtype: tensor.dtype(),
                device: tensor.device(),
                size: tensor.numel(),
                byte_size: tensor.byte_size(),
            };
            put(info, described, "info")
        }
    })
}

/// Gives another handle of the same tensor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_tensor_share(
    handle: *const RelaxideTensor,
    shared: *mut *mut RelaxideTensor,
) -> c_int {
    guard(|| {
        // SAFETY: the interface's contract.
        unsafe {
            at(shared, "shared")?;
            put(shared, give(tensor(handle, "tensor")?), "shared")
        }
    })
}

/// Gives a handle back; null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_tensor_free(tensor: *mut RelaxideTensor) {
    if let Some(header) = NonNull::new(tensor.cast::<ObjectHeader>()) {
        // SAFETY: the caller gives up its reference.
        release(|| drop(unsafe { ObjectRef::from_header(header) }));
    }
}
