//! Moving tensors between devices.

use relaxide_ffi::{DataType, Device, Error, ErrorKind, Tensor};

use super::{Memory, device_api, fill_host};
use crate::memory::{AllocatorKind, Buffer, Storage, allocator, bytes_of};

/// An uninitialised compact tensor on a device.
pub fn empty_tensor(shape: &[i64], dtype: DataType, device: Device) -> Result<Tensor, Error> {
    let buffer = Buffer::new(&allocator(device, AllocatorKind::Naive)?, bytes_of(shape, dtype)?)?;
    Storage::tensor(&Storage::new(buffer), 0, shape, dtype)
}

/// A compact copy of a tensor on a device.
pub fn copy_tensor(tensor: &Tensor, device: Device) -> Result<Tensor, Error> {
    let out = empty_tensor(tensor.shape(), tensor.dtype(), device)?;
    copy_into(tensor, &out)?;
    Ok(out)
}

/// The tensor itself if it is on the device, else a copy there.
pub fn to_device(tensor: &Tensor, device: Device) -> Result<Tensor, Error> {
    if tensor.device() == device { Ok(tensor.clone()) } else { copy_tensor(tensor, device) }
}

/// The tensor itself if the host can read it, else a copy that it can. All CPU devices share the host's memory.
pub fn on_host(tensor: &Tensor) -> Result<Tensor, Error> {
    match tensor.device().device_type {
        Device::CPU => Ok(tensor.clone()),
        _ => copy_tensor(tensor, Device::cpu(0)),
    }
}

/// Copies the elements of a tensor to another of the same shape and type, and waits until they are there. The target must be compact;
/// a source on the host may have any strides. Between devices of different kinds, elements go through the host's memory.
pub fn copy_into(from: &Tensor, to: &Tensor) -> Result<(), Error> {
    if (from.shape(), from.dtype()) != (to.shape(), to.dtype()) {
        return Err(Error::new(ErrorKind::ValueError, format!("cannot copy {from:?} to {to:?}")));
    }
    if !to.is_contiguous() {
        return Err(Error::new(ErrorKind::ValueError, format!("cannot copy to {to:?}: it is not compact")));
    }
    match (from.device().device_type == Device::CPU, to.device().device_type == Device::CPU) {
        (true, true) => to.copy_from_bytes(&from.to_bytes()?),
        (true, false) => {
            // Only what is not compact has to be made so.
            let copy = if from.is_contiguous() { Vec::new() } else { from.to_bytes()? };
            write(if from.is_contiguous() { from.as_bytes()? } else { &copy }, to)
        }
        _ if !from.is_contiguous() => {
            Err(Error::new(ErrorKind::ValueError, format!("cannot copy {from:?}: it is not compact")))
        }
        (false, true) => fill_host(to, |place| read(from, place)),
        (false, false) => {
            let (source, target) = (Memory::of(from), Memory::of(to));
            if source.device == target.device && source.address() == target.address() {
                return Ok(());
            }
            if source.device.device_type != target.device.device_type {
                let mut bytes = vec![0; from.byte_size()];
                read(from, &mut bytes)?;
                return write(&bytes, to);
            }
            let (api, device) = (device_api(target.device)?, target.device);
            let stream = api.current_stream(device);
            // SAFETY: both tensors are compact and hold that many bytes, and are different, so they do not overlap.
            unsafe { api.copy(source, target, from.byte_size(), stream)? };
            api.synchronize(device, stream)
        }
    }
}

/// Copies the host's bytes to a compact tensor of a device, of as many.
fn write(bytes: &[u8], to: &Tensor) -> Result<(), Error> {
    let (api, device) = (device_api(to.device())?, to.device());
    let stream = api.current_stream(device);
    // SAFETY: the tensor is compact and of as many bytes; they stay until the queue was waited for.
    let copied = unsafe { api.copy_from_host(bytes.as_ptr().cast(), Memory::of(to), bytes.len(), stream) };
    // Waited for in any case: a part of the copy may be under way.
    api.synchronize(device, stream).and(copied)
}

/// Copies a compact tensor of a device into the host's memory, of as many bytes.
fn read(from: &Tensor, place: &mut [u8]) -> Result<(), Error> {
    let (api, device) = (device_api(from.device())?, from.device());
    let stream = api.current_stream(device);
    // SAFETY: the tensor is compact and of as many bytes; the place is borrowed until the queue was waited for.
    let copied = unsafe { api.copy_to_host(Memory::of(from), place.as_mut_ptr().cast(), place.len(), stream) };
    api.synchronize(device, stream).and(copied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_equal_and_independent() {
        let source = Tensor::from_slice(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2]).unwrap();
        let copy = copy_tensor(&source, Device::cpu(0)).unwrap();
        source.copy_from_slice(&[0.0_f32; 4]).unwrap();
        assert_eq!(copy.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(copy.data_ptr() as usize % crate::device::ALIGNMENT, 0);
    }

    #[test]
    fn impossible_tensors_and_copies_are_refused() {
        for shape in [&[-1][..], &[i64::MAX, 3], &[1 << 62, 2]] {
            assert!(empty_tensor(shape, DataType::float(32), Device::cpu(0)).is_err(), "{shape:?}");
        }
        let a = Tensor::zeros(&[2], DataType::float(32)).unwrap();
        let b = Tensor::zeros(&[2], DataType::int(32)).unwrap();
        assert!(copy_into(&a, &b).is_err());
        assert!(copy_tensor(&a, Device::new(Device::CUDA, 0)).is_err());
    }
}
