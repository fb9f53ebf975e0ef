//! Devices: where data lives and how it gets there.
//!
//! A kind of device is one implementation of [`DeviceApi`], entered in the one table behind [`device_api`]. The rest of
//! the runtime knows devices only through it.

mod attribute;
mod cpu;
mod functions;
pub mod remote;
mod transfer;
mod view;

use std::ffi::c_void;

use relaxide_ffi::{Any, Device, Error, ErrorKind};

pub use attribute::Attribute;
pub(crate) use functions::functions;
pub use transfer::{copy_into, copy_tensor, empty_tensor, to_device};
pub use view::{fill_host, view_at};

/// The alignment of every allocation: a cache line, and the widest vector of the targets.
pub const ALIGNMENT: usize = 64;

/// A queue of a device's work, as the device names it. Work in one queue is done in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream(pub usize);

impl Stream {
    /// The queue that every device has.
    pub const DEFAULT: Self = Self(0);
}

/// What the runtime needs from a kind of device. Addresses are the device's own; only CPU addresses may be followed by
/// the host.
pub trait DeviceApi: Send + Sync {
    /// Whether a device of this number exists.
    fn exists(&self, device: Device) -> bool;

    /// Allocates `bytes` bytes, aligned to [`ALIGNMENT`]. Not null, not even for no bytes.
    fn allocate(&self, device: Device, bytes: usize) -> Result<*mut c_void, Error>;

    /// Frees an allocation.
    ///
    /// # Safety
    /// `data` came from [`DeviceApi::allocate`] with the same device and size, and nobody uses it any more.
    unsafe fn free(&self, device: Device, data: *mut c_void, bytes: usize);

    /// Copies bytes on the device.
    ///
    /// # Safety
    /// Both ranges are inside live allocations of the device and do not overlap.
    unsafe fn copy(&self, from: *const c_void, to: *mut c_void, bytes: usize) -> Result<(), Error>;

    /// Copies bytes from the host to the device.
    ///
    /// # Safety
    /// As [`DeviceApi::copy`], with `from` in the host's memory.
    unsafe fn copy_from_host(&self, from: *const c_void, to: *mut c_void, bytes: usize) -> Result<(), Error>;

    /// Copies bytes from the device to the host.
    ///
    /// # Safety
    /// As [`DeviceApi::copy`], with `to` in the host's memory.
    unsafe fn copy_to_host(&self, from: *const c_void, to: *mut c_void, bytes: usize) -> Result<(), Error>;

    /// A property of the device, if it has it and tells.
    fn attribute(&self, device: Device, attribute: Attribute) -> Result<Option<Any>, Error>;

    /// Makes a queue. Devices that work at once have no other than the default.
    fn create_stream(&self, _device: Device) -> Result<Stream, Error> {
        Ok(Stream::DEFAULT)
    }

    /// Ends a queue that [`DeviceApi::create_stream`] has made; the default one stays.
    fn free_stream(&self, _device: Device, _stream: Stream) -> Result<(), Error> {
        Ok(())
    }

    /// Has the work that this thread gives the device from now on go into a queue.
    fn set_stream(&self, _device: Device, _stream: Stream) -> Result<(), Error> {
        Ok(())
    }

    /// Has a queue wait for what is in another at this moment.
    fn order_streams(&self, _device: Device, _from: Stream, _to: Stream) -> Result<(), Error> {
        Ok(())
    }

    /// Waits until the device has done what is in a queue.
    fn synchronize(&self, device: Device, stream: Stream) -> Result<(), Error>;
}

/// The implementation for a kind of device.
pub fn device_api(device: Device) -> Result<&'static dyn DeviceApi, Error> {
    match device.device_type {
        Device::CPU => Ok(&cpu::Cpu),
        _ if device.remote().is_some() => remote::api(device),
        _ => {
            let message = format!("device {device} is not available: this runtime drives the CPU only");
            Err(Error::new(ErrorKind::RuntimeError, message))
        }
    }
}

/// Whether a device can be used.
pub fn device_exists(device: Device) -> bool {
    device_api(device).is_ok_and(|api| api.exists(device))
}
