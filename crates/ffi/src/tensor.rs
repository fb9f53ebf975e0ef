//! [`Tensor`]: an n-dimensional array, described as DLPack does, over memory that something owns.
//!
//! A tensor's object holds the `DLTensor`, then whatever owns the memory, then the shape and the strides, all in one
//! allocation. Dropping the last handle drops the owner.
//!
//! Handles share the memory, and kernels write to it while others hold handles; Rust's view of it is therefore a promise
//! between callers, as it is in every tensor library: who reads through [`Tensor::as_slice`] must not let anybody write
//! at the same time.

use std::alloc::{Layout as MemoryLayout, alloc_zeroed, dealloc};
use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;

use crate::abi::type_index;
use crate::dlpack::DLTensor;
use crate::handle::{exact_from_any, object_handle};
use crate::object::{Ref, allocate, deleter};
use crate::{Any, AnyView, DataType, Device, Error, ErrorKind, StructuralEqual, StructuralHash};

/// Compiled kernels may load whole vectors, so data begins at a multiple of this.
pub const ALIGNMENT: usize = 64;

/// The object behind a [`Tensor`], as far as the interface knows it.
#[repr(C)]
pub(crate) struct TensorObj {
    dl: DLTensor,
}

/// The whole object: the owner of the memory follows the cell, and the shape and strides follow it.
#[repr(C)]
struct Owned<O> {
    tensor: TensorObj,
    owner: O,
}

// SAFETY: shape and strides are immutable and part of the object; the data is shared by agreement (see the module).
unsafe impl Send for TensorObj {}
// SAFETY: as above.
unsafe impl Sync for TensorObj {}

/// An n-dimensional array. Copies share its memory.
#[derive(Clone, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Tensor(Ref<TensorObj>);

object_handle!(Tensor, TensorObj, "ffi.Tensor", type_index::TENSOR, by content);
exact_from_any!(Tensor);

/// The Rust types that are elements, and the element types that they are.
///
/// # Safety
/// Every bit pattern is a value, and the element types that match have the size of the Rust type.
pub unsafe trait Element: Copy + Send + Sync + 'static {
    /// The element type.
    const DTYPE: DataType;

    /// True if a tensor of that element type holds such elements.
    fn matches(dtype: DataType) -> bool {
        dtype == Self::DTYPE
    }
}

macro_rules! elements {
    ($($element:ty: $dtype:expr;)*) => {$(
        // SAFETY: a plain number of the size that the element type names.
        unsafe impl Element for $element {
            const DTYPE: DataType = $dtype;
        }
    )*};
}

elements! {
    i8: DataType::int(8);
    i16: DataType::int(16);
    i32: DataType::int(32);
    i64: DataType::int(64);
    u16: DataType::uint(16);
    u32: DataType::uint(32);
    u64: DataType::uint(64);
    f32: DataType::float(32);
    f64: DataType::float(64);
    half::f16: DataType::float(16);
    half::bf16: DataType::bfloat16();
}

/// A byte is also how a bool is kept.
// SAFETY: as above; bools take one byte.
unsafe impl Element for u8 {
    const DTYPE: DataType = DataType::uint(8);

    fn matches(dtype: DataType) -> bool {
        dtype == DataType::uint(8) || dtype == DataType::bool()
    }
}

/// Shape, strides and element type.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) shape: Vec<i64>,
    pub(crate) strides: Vec<i64>,
    pub(crate) dtype: DataType,
}

impl Layout {
    fn compact(shape: &[i64], dtype: DataType) -> Result<Layout, Error> {
        if let Some(dim) = shape.iter().find(|dim| **dim < 0) {
            return Err(Error::new(ErrorKind::ValueError, format!("a tensor cannot have a dimension of {dim}")));
        }
        let layout = Layout { shape: shape.to_vec(), strides: compact_strides(shape)?, dtype };
        layout.byte_size()?;
        Ok(layout)
    }

    pub(crate) fn is_contiguous(&self) -> bool {
        is_contiguous(&self.shape, &self.strides)
    }

    pub(crate) fn byte_size(&self) -> Result<usize, Error> {
        byte_size(&self.shape, self.dtype)
    }
}

/// The strides of a row-major array.
pub(crate) fn compact_strides(shape: &[i64]) -> Result<Vec<i64>, Error> {
    let mut strides = vec![1; shape.len()];
    for i in (1..shape.len()).rev() {
        // A dimension of zero leaves nothing to stride over; strides before it count it as one.
        strides[i - 1] = shape[i].max(1).checked_mul(strides[i]).ok_or_else(|| too_large(shape))?;
    }
    Ok(strides)
}

fn is_contiguous(shape: &[i64], strides: &[i64]) -> bool {
    if shape.contains(&0) {
        return true;
    }
    let mut expected = 1;
    shape.iter().zip(strides).rev().all(|(dim, stride)| {
        let fits = *dim == 1 || *stride == expected;
        expected *= dim;
        fits
    })
}

fn byte_size(shape: &[i64], dtype: DataType) -> Result<usize, Error> {
    let numel = shape.iter().try_fold(1i64, |product, dim| product.checked_mul(*dim));
    let size = numel.and_then(|numel| usize::try_from(numel).ok()).and_then(|numel| dtype.bytes_of(numel));
    size.filter(|size| *size <= isize::MAX as usize).ok_or_else(|| too_large(shape))
}

fn too_large(shape: &[i64]) -> Error {
    Error::new(ErrorKind::ValueError, format!("a tensor of shape {shape:?} is larger than memory can be"))
}

/// Memory on the host's heap, zeroed.
struct HostMemory {
    data: NonNull<u8>,
    layout: MemoryLayout,
}

// SAFETY: the memory belongs to the tensor, whose rules for sharing apply.
unsafe impl Send for HostMemory {}
// SAFETY: as above.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    fn new(size: usize) -> Result<HostMemory, Error> {
        let failed = || Error::new(ErrorKind::MemoryError, format!("cannot allocate {size} bytes"));
        let layout = MemoryLayout::from_size_align(size.max(1), ALIGNMENT).map_err(|_| failed())?;
        // SAFETY: the size is not zero.
        let data = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(failed)?;
        Ok(HostMemory { data, layout })
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        // SAFETY: `new` allocated the memory with this layout.
        unsafe { dealloc(self.data.as_ptr(), self.layout) };
    }
}

impl AnyView<'_> {
    /// The tensor, if the value is one, without taking a reference.
    #[inline]
    pub fn as_tensor(&self) -> Option<&Tensor> {
        let object = std::ptr::from_ref(self.downcast_ref::<TensorObj>()?);
        // SAFETY: a `Tensor` is a transparent wrapper of the reference.
        Some(unsafe { &*object.cast::<Tensor>() })
    }
}

impl Any {
    /// The tensor, if the value is one, without taking a reference.
    #[inline]
    pub fn as_tensor(&self) -> Option<&Tensor> {
        let object = std::ptr::from_ref(self.downcast_ref::<TensorObj>()?);
        // SAFETY: a `Tensor` is a transparent wrapper of the reference.
        Some(unsafe { &*object.cast::<Tensor>() })
    }
}

impl Tensor {
    /// A compact tensor of zeros in the host's memory.
    pub fn zeros(shape: &[i64], dtype: DataType) -> Result<Tensor, Error> {
        let layout = Layout::compact(shape, dtype)?;
        let memory = HostMemory::new(layout.byte_size()?)?;
        let data = memory.data.as_ptr().cast();
        // SAFETY: the memory is large enough for the layout and belongs to the tensor from here on.
        Ok(unsafe { Tensor::build(data, &layout, Device::cpu(0), 0, memory) })
    }

    /// A compact tensor in the host's memory with a copy of those elements.
    pub fn from_slice<T: Element>(values: &[T], shape: &[i64]) -> Result<Tensor, Error> {
        // SAFETY: elements are plain data without padding.
        let bytes = unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values)) };
        Tensor::from_bytes(bytes, shape, T::DTYPE)
    }

    /// A compact tensor in the host's memory with a copy of those bytes.
    pub fn from_bytes(bytes: &[u8], shape: &[i64], dtype: DataType) -> Result<Tensor, Error> {
        let tensor = Tensor::zeros(shape, dtype)?;
        tensor.copy_from_bytes(bytes)?;
        Ok(tensor)
    }

    /// A compact tensor over memory that `owner` owns and that is released by dropping it.
    ///
    /// # Safety
    /// The elements of that shape and type lie `byte_offset` bytes behind `data`, which the device can reach, for as long
    /// as `owner` lives.
    pub unsafe fn from_parts<O: Send + Sync + 'static>(
        data: *mut c_void,
        shape: &[i64],
        dtype: DataType,
        device: Device,
        byte_offset: u64,
        owner: O,
    ) -> Result<Tensor, Error> {
        // Checked without a `Layout`: this is the way that the VM's allocations take.
        if shape.iter().any(|dim| *dim < 0) {
            return Err(Error::new(ErrorKind::ValueError, format!("a tensor cannot have the shape {shape:?}")));
        }
        byte_size(shape, dtype)?;
        // SAFETY: the caller's promise.
        unsafe { Ok(Tensor::construct(data, shape, None, dtype, device, byte_offset, owner)) }
    }

    /// # Safety
    /// As for [`Tensor::from_parts`], for a layout that need not be compact.
    pub(crate) unsafe fn build<O: Send + Sync + 'static>(
        data: *mut c_void,
        layout: &Layout,
        device: Device,
        byte_offset: u64,
        owner: O,
    ) -> Tensor {
        // SAFETY: the caller's promise.
        unsafe {
            Tensor::construct(data, &layout.shape, Some(&layout.strides), layout.dtype, device, byte_offset, owner)
        }
    }

    /// # Safety
    /// As for [`Tensor::from_parts`]; strides, if given, are as many as dimensions.
    unsafe fn construct<O: Send + Sync + 'static>(
        data: *mut c_void,
        shape: &[i64],
        strides: Option<&[i64]>,
        dtype: DataType,
        device: Device,
        byte_offset: u64,
        owner: O,
    ) -> Tensor {
        let ndim = shape.len();
        let tail = ndim * 2 * size_of::<i64>();
        let object = allocate::<Owned<O>>(type_index::TENSOR, tail, deleter::<Owned<O>>);
        // SAFETY: the allocation has room for the cell, the owner, and twice `ndim` integers behind them; all of it is
        // written before the handle exists.
        unsafe {
            let cell = &raw mut (*object.as_ptr()).value;
            let dims = cell.add(1).cast::<i64>();
            dims.copy_from_nonoverlapping(shape.as_ptr(), ndim);
            let steps = dims.add(ndim);
            match strides {
                Some(strides) => steps.copy_from_nonoverlapping(strides.as_ptr(), ndim),
                None => {
                    let mut step = 1i64;
                    for i in (0..ndim).rev() {
                        steps.add(i).write(step);
                        step = step.wrapping_mul(shape[i].max(1));
                    }
                }
            }
            let ndim = ndim as i32;
            let dl = DLTensor { data, device, ndim, dtype, shape: dims, strides: steps, byte_offset };
            cell.write(Owned { tensor: TensorObj { dl }, owner });
            Tensor(Ref::from_box(object.cast()))
        }
    }

    /// The description that C and kernels read.
    #[inline]
    pub fn dl_tensor(&self) -> &DLTensor {
        &self.0.dl
    }

    /// The extents of the dimensions.
    #[inline]
    pub fn shape(&self) -> &[i64] {
        self.dims(self.0.dl.shape)
    }

    /// The distances between neighbours, in elements.
    pub fn strides(&self) -> &[i64] {
        self.dims(self.0.dl.strides)
    }

    fn dims(&self, data: *const i64) -> &[i64] {
        if self.0.dl.ndim <= 0 || data.is_null() {
            return &[];
        }
        // SAFETY: the object's shape and strides have `ndim` integers that never change.
        unsafe { std::slice::from_raw_parts(data, self.0.dl.ndim as usize) }
    }

    /// The number of dimensions.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.0.dl.ndim as usize
    }

    /// The type of one element.
    #[inline]
    pub fn dtype(&self) -> DataType {
        self.0.dl.dtype
    }

    /// Where the data lies.
    #[inline]
    pub fn device(&self) -> Device {
        self.0.dl.device
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.shape().iter().product::<i64>() as usize
    }

    /// The bytes that the elements take when they are compact.
    pub fn byte_size(&self) -> usize {
        // Making the tensor has proved that there are so many.
        self.dtype().bytes_of(self.numel()).unwrap_or(usize::MAX)
    }

    /// True if the elements follow each other in row-major order.
    pub fn is_contiguous(&self) -> bool {
        is_contiguous(self.shape(), self.strides())
    }

    /// The address of the first element.
    #[inline]
    pub fn data_ptr(&self) -> *mut u8 {
        self.0.dl.data.cast::<u8>().wrapping_add(self.0.dl.byte_offset as usize)
    }

    /// The same elements in another shape of the same number.
    pub fn reshape(&self, shape: &[i64]) -> Result<Tensor, Error> {
        let layout = Layout::compact(shape, self.dtype())?;
        if shape.iter().product::<i64>() as usize != self.numel() {
            let message = format!("cannot view a tensor of shape {:?} as {shape:?}", self.shape());
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        self.require_contiguous()?;
        let dl = &self.0.dl;
        // SAFETY: the elements are contiguous and as many; this handle keeps their memory.
        Ok(unsafe { Tensor::build(dl.data, &layout, dl.device, dl.byte_offset, self.clone()) })
    }

    /// Another view of the same memory, `offset` bytes further on. It may hold fewer bytes than there are; the tensor must be
    /// compact.
    pub fn view(&self, shape: &[i64], dtype: DataType, offset: usize) -> Result<Tensor, Error> {
        self.require_contiguous()?;
        let layout = Layout::compact(shape, dtype)?;
        let size = byte_size(shape, dtype)?;
        let end = size.checked_add(offset);
        if end.is_none_or(|end| end > self.byte_size()) {
            let end = end.map_or_else(|| "too many".into(), |end| end.to_string());
            let message = format!(
                "View with shape {shape:?} and datatype {dtype} would have a size of {size} bytes.  This would occupy bytes \
                 {offset} <= i_byte < {end} within the backing array.  However, the Tensor being viewed only contains {} \
                 bytes (shape = {:?}, dtype= {}).",
                self.byte_size(),
                self.shape(),
                self.dtype()
            );
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        let dl = &self.0.dl;
        // SAFETY: the view ends inside of the memory, which this handle keeps.
        Ok(unsafe { Tensor::build(dl.data, &layout, dl.device, dl.byte_offset + offset as u64, self.clone()) })
    }

    /// Elements of a compact tensor that lie at those distances from each other, beginning with its first. `keep` lives as long as the
    /// view does.
    pub fn strided_view<O: Send + Sync + 'static>(
        &self,
        shape: &[i64],
        strides: &[i64],
        keep: O,
    ) -> Result<Tensor, Error> {
        self.require_contiguous()?;
        let last = |(dim, stride): (&i64, &i64)| (dim - 1).checked_mul(*stride).filter(|_| *dim >= 0 && *stride >= 0);
        let last = shape.iter().zip(strides).map(last).try_fold(0_i64, |sum, part| sum.checked_add(part?));
        let is_inside = shape.contains(&0) || last.is_some_and(|last| (last as usize) < self.numel());
        if shape.len() != strides.len() || shape.iter().any(|dim| *dim < 0) || !is_inside || self.dtype().is_packed() {
            let message = format!("a view of shape {shape:?} and strides {strides:?} does not lie in {self:?}");
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        let layout = Layout { shape: shape.to_vec(), strides: strides.to_vec(), dtype: self.dtype() };
        let dl = &self.0.dl;
        // SAFETY: the last element lies inside of the memory, which this handle keeps.
        Ok(unsafe { Tensor::build(dl.data, &layout, dl.device, dl.byte_offset, (self.clone(), keep)) })
    }

    pub(crate) fn require_host(&self) -> Result<(), Error> {
        // Page-locked and managed memory of a device is the host's to read as well.
        match self.device().device_type {
            Device::CPU | 3 | 11 | 13 => Ok(()),
            _ => Err(Error::new(ErrorKind::ValueError, format!("the tensor's data lies on {}", self.device()))),
        }
    }

    pub(crate) fn require_contiguous(&self) -> Result<(), Error> {
        if self.is_contiguous() {
            return Ok(());
        }
        let message = format!("the tensor's strides {:?} are not compact", self.strides());
        Err(Error::new(ErrorKind::ValueError, message))
    }
}

impl TensorObj {
    /// Tensors are equal when type, shape and bytes are; where the bytes cannot be read, identity decides.
    fn content_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        if std::ptr::eq(self, other) {
            return true;
        }
        let (a, b) = (self.handle(), other.handle());
        if a.dtype() != b.dtype() || a.shape() != b.shape() {
            return eq.fail(format_args!("{a:?} differs from {b:?}"));
        }
        if !eq.compares_tensor_content() {
            return true;
        }
        match (a.to_bytes(), b.to_bytes()) {
            (Ok(a), Ok(b)) if a == b => true,
            _ => eq.fail("the elements differ"),
        }
    }

    fn content_hash(&self, hash: &mut StructuralHash) {
        let tensor = self.handle();
        hash.combine(tensor.ndim() as u64);
        tensor.shape().iter().for_each(|dim| hash.combine(*dim as u64));
        hash.combine(tensor.dtype().to_word() as u64);
        if hash.hashes_tensor_content()
            && let Ok(bytes) = tensor.to_bytes()
        {
            hash.bytes(&bytes);
        }
    }

    /// A handle to this very object.
    fn handle(&self) -> Tensor {
        // SAFETY: a cell exists only behind its header, at the distance that `ObjectBox` fixes; the new handle takes a
        // reference of its own.
        unsafe {
            let header = std::ptr::from_ref(self).byte_sub(size_of::<crate::ObjectHeader>()).cast_mut();
            let object = NonNull::new_unchecked(header.cast());
            let borrowed = std::mem::ManuallyDrop::new(Tensor(Ref::from_box(object)));
            Tensor::clone(&borrowed)
        }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({:?}, {}, {})", self.shape(), self.dtype(), self.device())
    }
}
