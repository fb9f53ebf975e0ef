//! Tensors and where they lie.

use relaxide_ffi::{Any, Array, Device, Error, ErrorKind, Tensor};
use relaxide_runtime::device;

use super::{Args, Builtin};

/// Copies a tensor to a device. The machine knows it: constants are copied once.
pub(crate) const TO_DEVICE: &str = "vm.builtin.to_device";

pub(super) const TABLE: &[Builtin] =
    &[Builtin::plain(TO_DEVICE, to_device), Builtin::plain("vm.builtin.ensure_zero_offset", ensure_zero_offset)];

/// `(tensor, device type, device id[, scope])`: the tensor itself if it is there already.
fn to_device(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(3, 4)?;
    let tensor: Tensor = args.get(0, "tensor")?;
    let target = Device { device_type: args.get(1, "device type")?, device_id: args.get(2, "device id")? };
    if !device::device_exists(target) {
        return Err(args.error(ErrorKind::ValueError, format_args!("device {target} is not available")));
    }
    device::to_device(&tensor, target).map(Any::from)
}

/// A tensor of the host, or the tensors of a list, where values without a device are.
pub(super) fn placed(value: Any, first: Device) -> Result<Any, Error> {
    if first.device_type == Device::CPU {
        return Ok(value);
    }
    if let Ok(tensor) = value.to::<Tensor>() {
        return device::to_device(&tensor, first).map(Any::from);
    }
    match value.to::<Array>() {
        Ok(parts) => {
            let parts = parts.as_slice().iter().map(|part| placed(part.clone(), first));
            Ok(Array::from_vec(parts.collect::<Result<_, _>>()?).into())
        }
        Err(_) => Ok(value),
    }
}

/// `(tensor)`: a tensor whose elements begin at its address.
fn ensure_zero_offset(args: &Args<'_, '_>) -> Result<Any, Error> {
    let tensor: Tensor = args.get(0, "tensor")?;
    if tensor.dl_tensor().byte_offset == 0 {
        return Ok(tensor.into());
    }
    device::copy_tensor(&tensor, tensor.device()).map(Any::from)
}
