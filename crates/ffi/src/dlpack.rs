//! The DLPack 1.x structures, and tensors from and to them without a copy.

use std::ffi::c_void;
use std::ptr::NonNull;

use crate::abi::type_index;
use crate::tensor::{Layout, compact_strides};
use crate::{AnyView, DataType, Device, Error, ErrorKind, Tensor};

/// `DLTensor`: where data lies and how it is laid out, without ownership.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DLTensor {
    /// The address of the data, or the device's handle to it.
    pub data: *mut c_void,
    /// Where the data lies.
    pub device: Device,
    /// The number of dimensions.
    pub ndim: i32,
    /// The type of one element.
    pub dtype: DataType,
    /// The extents of the dimensions.
    pub shape: *mut i64,
    /// The distances between neighbours, in elements; absent means compact.
    pub strides: *mut i64,
    /// How many bytes after `data` the first element lies.
    pub byte_offset: u64,
}

/// `DLManagedTensor`: a tensor that its consumer must release, as DLPack before 1.0 defines it.
#[derive(Debug)]
#[repr(C)]
pub struct DLManagedTensor {
    /// The tensor.
    pub dl_tensor: DLTensor,
    /// What the producer needs to release it.
    pub manager_ctx: *mut c_void,
    /// Releases it and this structure.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// `DLPackVersion`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct DLPackVersion {
    /// Changes when the layout does.
    pub major: u32,
    /// Changes when something is added.
    pub minor: u32,
}

impl DLPackVersion {
    /// The version that this file implements.
    pub const CURRENT: DLPackVersion = DLPackVersion { major: 1, minor: 3 };
}

/// `DLManagedTensorVersioned`: a tensor that its consumer must release, since DLPack 1.0.
#[derive(Debug)]
#[repr(C)]
pub struct DLManagedTensorVersioned {
    /// The version of the structure.
    pub version: DLPackVersion,
    /// What the producer needs to release it.
    pub manager_ctx: *mut c_void,
    /// Releases it and this structure.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    /// Bit 0: read-only; bit 1: a copy was made; bit 2: elements narrower than a byte are padded to one.
    pub flags: u64,
    /// The tensor.
    pub dl_tensor: DLTensor,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<DLTensor>() == 48);
    assert!(std::mem::offset_of!(DLTensor, byte_offset) == 40);
    assert!(size_of::<DLManagedTensor>() == 64);
    assert!(std::mem::offset_of!(DLManagedTensorVersioned, dl_tensor) == 32);
};

/// As kernels for WebAssembly read it.
#[cfg(target_pointer_width = "32")]
const _: () = {
    assert!(size_of::<DLTensor>() == 40);
    assert!(std::mem::offset_of!(DLTensor, byte_offset) == 32);
};

/// What a consumer demands of a tensor that it is given.
#[derive(Clone, Copy, Debug, Default)]
pub struct Requirements {
    /// The address of the first element is a multiple of this; 0 and 1 demand nothing.
    pub alignment: usize,
    /// The elements follow each other in row-major order.
    pub contiguous: bool,
}

/// Both generations of managed tensors.
trait Managed: Sized + 'static {
    fn tensor(&self) -> &DLTensor;
    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)>;
    fn managing(tensor: DLTensor, manager_ctx: *mut c_void, deleter: unsafe extern "C" fn(*mut Self)) -> Self;
}

impl Managed for DLManagedTensor {
    fn tensor(&self) -> &DLTensor {
        &self.dl_tensor
    }

    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)> {
        self.deleter
    }

    fn managing(dl_tensor: DLTensor, manager_ctx: *mut c_void, deleter: unsafe extern "C" fn(*mut Self)) -> Self {
        DLManagedTensor { dl_tensor, manager_ctx, deleter: Some(deleter) }
    }
}

impl Managed for DLManagedTensorVersioned {
    fn tensor(&self) -> &DLTensor {
        &self.dl_tensor
    }

    fn deleter(&self) -> Option<unsafe extern "C" fn(*mut Self)> {
        self.deleter
    }

    fn managing(dl_tensor: DLTensor, manager_ctx: *mut c_void, deleter: unsafe extern "C" fn(*mut Self)) -> Self {
        let version = DLPackVersion::CURRENT;
        DLManagedTensorVersioned { version, manager_ctx, deleter: Some(deleter), flags: 0, dl_tensor }
    }
}

/// Releases a foreign tensor when the last handle to it goes.
struct Foreign<M: Managed>(NonNull<M>);

// SAFETY: DLPack lets any thread use and release a managed tensor.
unsafe impl<M: Managed> Send for Foreign<M> {}
// SAFETY: as above; the structure is not touched between taking it over and releasing it.
unsafe impl<M: Managed> Sync for Foreign<M> {}

impl<M: Managed> Drop for Foreign<M> {
    fn drop(&mut self) {
        // SAFETY: the tensor was taken over and nobody else releases it.
        unsafe {
            if let Some(deleter) = self.0.as_ref().deleter() {
                deleter(self.0.as_ptr());
            }
        }
    }
}

impl Tensor {
    /// Takes a managed tensor over. After an error it still belongs to the caller.
    ///
    /// # Safety
    /// `from` is a managed tensor whose description of its memory is true, and the caller gives it up on success.
    pub unsafe fn from_dlpack(from: *mut DLManagedTensor, require: Requirements) -> Result<Tensor, Error> {
        // SAFETY: the caller's promise.
        unsafe { take(from, require) }
    }

    /// Takes a managed tensor over. After an error it still belongs to the caller.
    ///
    /// # Safety
    /// As for [`Tensor::from_dlpack`].
    pub unsafe fn from_dlpack_versioned(
        from: *mut DLManagedTensorVersioned,
        require: Requirements,
    ) -> Result<Tensor, Error> {
        // SAFETY: the version comes first in every version of the structure.
        let version = unsafe { from.as_ref() }.map(|tensor| tensor.version);
        if let Some(DLPackVersion { major, minor }) = version
            && major != DLPackVersion::CURRENT.major
        {
            let message = format!("DLPack {major}.{minor} is not understood, only 1.x is");
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        // SAFETY: the caller's promise.
        unsafe { take(from, require) }
    }

    /// Another description of this tensor's memory, which this handle keeps.
    ///
    /// # Safety
    /// What `prototype` describes lies inside of this tensor's memory.
    pub unsafe fn view_as(&self, prototype: &DLTensor) -> Result<Tensor, Error> {
        // SAFETY: the caller's promise.
        unsafe {
            let layout = read_layout(prototype)?;
            layout.byte_size()?;
            Ok(Tensor::build(prototype.data, &layout, prototype.device, prototype.byte_offset, self.clone()))
        }
    }

    /// The tensor that an argument describes without owning it (`DLTensor*`); `None` where the argument is no such thing.
    ///
    /// # Safety
    /// The argument is that of a call which is running, and the tensor is not used beyond that call: its memory is the
    /// caller's.
    pub unsafe fn borrowed(argument: AnyView<'_>) -> Option<Result<Tensor, Error>> {
        if argument.type_index() != type_index::DL_TENSOR_PTR {
            return None;
        }
        // SAFETY: the kind says that the payload is null or addresses a tensor, which the caller keeps for the call.
        let described = unsafe { (argument.raw().word() as *const DLTensor).as_ref() };
        let Some(described) = described else {
            return Some(Err(Error::new(ErrorKind::ValueError, "the tensor is null")));
        };
        // SAFETY: as above; the memory is as long there as the tensor is used.
        let made = unsafe { read_layout(described) }.and_then(|layout| {
            layout.byte_size()?;
            // SAFETY: as above.
            Ok(unsafe { Tensor::build(described.data, &layout, described.device, described.byte_offset, ()) })
        });
        Some(made)
    }

    /// Exports the tensor. The receiver must call the structure's deleter.
    pub fn to_dlpack(&self) -> NonNull<DLManagedTensor> {
        export(self)
    }

    /// Exports the tensor. The receiver must call the structure's deleter.
    pub fn to_dlpack_versioned(&self) -> NonNull<DLManagedTensorVersioned> {
        export(self)
    }
}

unsafe fn take<M: Managed>(from: *mut M, require: Requirements) -> Result<Tensor, Error> {
    let Some(from) = NonNull::new(from) else {
        return Err(Error::new(ErrorKind::ValueError, "the DLPack tensor is null"));
    };
    // SAFETY: the caller's promise: the description is true.
    unsafe {
        let tensor = *from.as_ref().tensor();
        let layout = read_layout(&tensor)?;
        check(&tensor, &layout, require)?;
        Ok(Tensor::build(tensor.data, &layout, tensor.device, tensor.byte_offset, Foreign(from)))
    }
}

/// Copies a foreign tensor's shape and strides; fills the strides in if it has none.
///
/// # Safety
/// The description is true.
unsafe fn read_layout(tensor: &DLTensor) -> Result<Layout, Error> {
    let invalid = |what: &str| Error::new(ErrorKind::ValueError, format!("the DLPack tensor has {what}"));
    let ndim = usize::try_from(tensor.ndim).map_err(|_| invalid("a negative number of dimensions"))?;
    if ndim > 0 && tensor.shape.is_null() {
        return Err(invalid("dimensions but no shape"));
    }
    // SAFETY: shape and strides, where present, have `ndim` elements.
    let copy = |from: *mut i64| unsafe { std::slice::from_raw_parts(from, ndim) }.to_vec();
    let shape = if ndim == 0 { Vec::new() } else { copy(tensor.shape) };
    if shape.iter().any(|dim| *dim < 0) {
        return Err(invalid("a negative dimension"));
    }
    let strides = match tensor.strides.is_null() || ndim == 0 {
        true => compact_strides(&shape)?,
        false => copy(tensor.strides),
    };
    Ok(Layout { shape, strides, dtype: tensor.dtype })
}

fn check(tensor: &DLTensor, layout: &Layout, require: Requirements) -> Result<(), Error> {
    layout.byte_size()?;
    if require.contiguous && !layout.is_contiguous() {
        return Err(Error::new(ErrorKind::ValueError, "the DLPack tensor is not contiguous"));
    }
    let first = (tensor.data as usize).wrapping_add(tensor.byte_offset as usize);
    if require.alignment > 1 && !first.is_multiple_of(require.alignment) {
        let message = format!("the DLPack tensor's data is not aligned to {} bytes", require.alignment);
        return Err(Error::new(ErrorKind::ValueError, message));
    }
    Ok(())
}

fn export<M: Managed>(tensor: &Tensor) -> NonNull<M> {
    unsafe extern "C" fn release<M: Managed>(managed: *mut M) {
        if managed.is_null() {
            return;
        }
        // SAFETY: `export` made the structure and the tensor behind its context by `Box`, for this function to take back.
        unsafe { drop(Box::from_raw(managed.cast::<Exported<M>>())) };
    }
    let description = *tensor.dl_tensor();
    let exported = Box::new(Exported {
        managed: M::managing(description, std::ptr::null_mut(), release::<M>),
        _tensor: tensor.clone(),
    });
    NonNull::from(Box::leak(exported)).cast()
}

/// A managed tensor and the handle that keeps its memory.
#[repr(C)]
struct Exported<M> {
    managed: M,
    _tensor: Tensor,
}
