//! Moving tensors between devices.

use relaxide_ffi::{DataType, Device, Error, ErrorKind, Tensor};

use super::device_api;
use crate::memory::{AllocatorKind, Buffer, Storage, allocator};

/// An uninitialised compact tensor on a device.
pub fn empty_tensor(shape: &[i64], dtype: DataType, device: Device) -> Result<Tensor, Error> {
    let elements = shape.iter().try_fold(1_usize, |product, dim| product.checked_mul(usize::try_from(*dim).ok()?));
    let bytes = elements.and_then(|elements| dtype.bytes_of(elements)).ok_or_else(|| {
        Error::new(ErrorKind::ValueError, format!("a tensor of shape {shape:?} and type {dtype} cannot exist"))
    })?;
    let buffer = Buffer::new(&allocator(device, AllocatorKind::Naive)?, bytes)?;
    Storage::tensor(&Storage::new(buffer), 0, shape, dtype)
}

/// A compact copy of a tensor on a device.
pub fn copy_tensor(tensor: &Tensor, device: Device) -> Result<Tensor, Error> {
    let out = empty_tensor(tensor.shape(), tensor.dtype(), device)?;
    copy_into(tensor, &out)?;
    Ok(out)
}

/// The tensor itself if it is on the device, else a copy there. All CPU devices share their memory.
pub fn to_device(tensor: &Tensor, device: Device) -> Result<Tensor, Error> {
    let both_host = tensor.device().device_type == Device::CPU && device.device_type == Device::CPU;
    if both_host || tensor.device() == device { Ok(tensor.clone()) } else { copy_tensor(tensor, device) }
}

/// Copies the elements of a tensor to another of the same shape and type. The target must be compact; a source on the
/// host may have any strides.
pub fn copy_into(from: &Tensor, to: &Tensor) -> Result<(), Error> {
    if (from.shape(), from.dtype()) != (to.shape(), to.dtype()) {
        return Err(Error::new(ErrorKind::ValueError, format!("cannot copy {from:?} to {to:?}")));
    }
    if !to.is_contiguous() {
        return Err(Error::new(ErrorKind::ValueError, format!("cannot copy to {to:?}: it is not compact")));
    }
    let bytes = to.byte_size();
    let (source, target) = (from.data_ptr().cast(), to.data_ptr().cast());
    match (from.device().device_type == Device::CPU, to.device().device_type == Device::CPU) {
        (true, true) => to.copy_from_bytes(&from.to_bytes()?),
        (true, false) => {
            // Only what is not compact has to be made so.
            let copy = if from.is_contiguous() { Vec::new() } else { from.to_bytes()? };
            let compact = if from.is_contiguous() { from.as_bytes()? } else { &copy };
            // SAFETY: both hold `bytes` bytes: the source, or its copy, and the compact target.
            unsafe { device_api(to.device())?.copy_from_host(compact.as_ptr().cast(), target, bytes) }
        }
        _ if !from.is_contiguous() => {
            Err(Error::new(ErrorKind::ValueError, format!("cannot copy {from:?}: it is not compact")))
        }
        // SAFETY: both tensors are compact and hold `bytes` bytes.
        (false, true) => unsafe { device_api(from.device())?.copy_to_host(source, target, bytes) },
        (false, false) if from.device() == to.device() && source == target => Ok(()),
        // SAFETY: as above; the tensors are different, so they do not overlap.
        (false, false) => unsafe { device_api(from.device())?.copy(source, target, bytes) },
    }
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
