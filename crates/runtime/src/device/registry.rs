//! Which kinds of devices this process drives.
//!
//! The CPU and remote devices are always there. Every other kind is entered by whoever brings its implementation
//! ([`register_device`]), once; it stays for as long as the process lives, as memory of it may.

use std::sync::{PoisonError, RwLock};

use relaxide_ffi::{Device, Error, ErrorKind};

use super::{DeviceApi, cpu, remote};

/// The kinds that were entered, by their numbers.
static REGISTERED: RwLock<Vec<(i32, &'static dyn DeviceApi)>> = RwLock::new(Vec::new());

/// Enters the implementation for a kind of device, by DLPack's number. A kind is entered once.
pub fn register_device(device_type: i32, api: &'static dyn DeviceApi) -> Result<(), Error> {
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    let is_known = registered.iter().any(|(known, _)| *known == device_type);
    if is_known || device_type == Device::CPU || Device::new(device_type, 0).remote().is_some() {
        let name = Device::new(device_type, 0).type_name().map_or_else(|| device_type.to_string(), str::to_owned);
        return Err(Error::new(ErrorKind::ValueError, format!("devices of the kind {name} have an implementation")));
    }
    registered.push((device_type, api));
    Ok(())
}

/// The implementation for a kind of device.
pub fn device_api(device: Device) -> Result<&'static dyn DeviceApi, Error> {
    if device.device_type == Device::CPU {
        return Ok(&cpu::Cpu);
    }
    if device.remote().is_some() {
        return remote::api(device);
    }
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    let found = registered.iter().find(|(kind, _)| *kind == device.device_type);
    found.map(|(_, api)| *api).ok_or_else(|| {
        let message = format!("device {device} is not available: this process has no driver for devices of that kind");
        Error::new(ErrorKind::RuntimeError, message)
    })
}

/// Whether a device can be used.
pub fn device_exists(device: Device) -> bool {
    device_api(device).is_ok_and(|api| api.exists(device))
}

/// The kinds of devices that were entered, and the CPU.
pub fn device_kinds() -> Vec<i32> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    std::iter::once(Device::CPU).chain(registered.iter().map(|(kind, _)| *kind)).collect()
}
