//! A piece of device memory as an object: what the VM allocates tensors from.

use relaxide_ffi::{DataType, Error, ErrorKind, Object, Ref, Tensor};

use super::Buffer;
use crate::device::{ALIGNMENT, begin};

/// A buffer that tensors are placed in. Each tensor keeps it.
#[derive(Debug, Object)]
#[object(key = "vm.Storage")]
pub struct Storage {
    #[field(hidden)]
    buffer: Buffer,
}

impl Storage {
    /// An object over a buffer.
    pub fn new(buffer: Buffer) -> Ref<Self> {
        Ref::new(Self { buffer })
    }

    /// The memory.
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// A compact tensor `offset` bytes into the storage. Where addresses are plain numbers, the offset goes into the
    /// tensor's address, for kernels want tensors that begin at theirs.
    pub fn tensor(this: &Ref<Self>, offset: usize, shape: &[i64], dtype: DataType) -> Result<Tensor, Error> {
        let buffer = &this.buffer;
        let elements = shape.iter().try_fold(1_usize, |product, dim| product.checked_mul(usize::try_from(*dim).ok()?));
        let bytes = elements.and_then(|elements| dtype.bytes_of(elements));
        let end = bytes.and_then(|bytes| bytes.checked_add(offset));
        if end.is_none_or(|end| isize::try_from(end).is_err()) && shape.iter().all(|dim| *dim >= 0) {
            // The size of its storage was computed in 64 bits, and is another number than was meant.
            let message = format!("a tensor of shape {shape:?} and type {dtype} has more bytes than a memory can have");
            return Err(Error::new(ErrorKind::MemoryError, message));
        }
        if end.is_none_or(|end| end > buffer.bytes()) {
            let message = format!(
                "a tensor of shape {shape:?} and type {dtype} at offset {offset} does not fit the storage of {} bytes",
                buffer.bytes()
            );
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        if !offset.is_multiple_of(ALIGNMENT) {
            let message = format!(
                "a tensor cannot begin at offset {offset} of a storage: kernels load whole vectors, so offsets are multiples \
                 of {ALIGNMENT}"
            );
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        let (data, rest) = match offset {
            // The way of nearly all tensors, which asks no device.
            0 => (buffer.data(), 0),
            _ => begin(buffer.device(), buffer.data(), offset)?,
        };
        // SAFETY: the elements lie inside the buffer, as was just checked, and the tensor keeps the storage, which keeps
        // the buffer.
        unsafe { Tensor::from_parts(data, shape, dtype, buffer.device(), rest, this.clone()) }
    }
}
