//! Views that begin at an address of their own, and filling a tensor where it lies.

use std::ffi::c_void;

use relaxide_ffi::{DataType, Device, Error, ErrorKind, Tensor};

use super::{Memory, device_api};

/// Other elements over the memory of a compact tensor, `offset` bytes behind its first. Where handles are addresses, the view's is that
/// of its own first element: kernels want tensors without an offset.
pub fn view_at(tensor: &Tensor, shape: &[i64], dtype: DataType, offset: usize) -> Result<Tensor, Error> {
    let elements = shape.iter().try_fold(1_usize, |product, dim| product.checked_mul(usize::try_from(*dim).ok()?));
    let end = elements.and_then(|elements| dtype.bytes_of(elements)).and_then(|bytes| bytes.checked_add(offset));
    if !tensor.is_contiguous() || end.is_none_or(|end| end > tensor.byte_size()) {
        let message =
            format!("View with shape {shape:?} and datatype {dtype} at byte {offset} does not lie in {tensor:?}");
        return Err(Error::new(ErrorKind::ValueError, message));
    }
    let memory = Memory::of(tensor);
    let (data, rest) = begin(memory.device, memory.handle, memory.offset + offset)?;
    // SAFETY: the elements lie inside the tensor, which is compact, and the view keeps it.
    unsafe { Tensor::from_parts(data, shape, dtype, tensor.device(), rest, tensor.clone()) }
}

/// The handle and the byte offset of a tensor that begins behind a handle: the offset goes into the handle where that is an address,
/// for kernels want tensors that begin at theirs.
pub(crate) fn begin(device: Device, handle: *mut c_void, offset: usize) -> Result<(*mut c_void, u64), Error> {
    match device_api(device)?.has_addresses() {
        true => Ok((handle.wrapping_byte_add(offset), 0)),
        false => Ok((handle, offset as u64)),
    }
}

/// Has a compact tensor in the host's memory filled where it lies, as [`Tensor::copy_from_bytes`] fills it with a copy. Nobody may
/// use its elements meanwhile. Elements that an error leaves unfilled keep what they were.
pub fn fill_host<E: From<Error>>(tensor: &Tensor, fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<(), E> {
    // Asked for the check that the elements are compact and the host's.
    let length = tensor.as_bytes()?.len();
    if length == 0 {
        return fill(&mut []);
    }
    // SAFETY: the tensor has that many bytes in the host's memory, all of them initialised; that nobody else uses them is the
    // agreement that every tensor's elements are shared by.
    fill(unsafe { std::slice::from_raw_parts_mut(tensor.data_ptr(), length) })
}
