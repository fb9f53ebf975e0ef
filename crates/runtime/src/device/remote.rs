//! Devices of other machines, as this process sees them.
//!
//! A remote device has the number of its kind plus a multiple of [`Device::SESSION_STRIDE`], which says through which session it
//! is reached. This module knows no session: whoever keeps them gives an implementation of [`RemoteMemory`], once. Addresses of
//! remote memory are numbers that the implementation makes up; nothing here, and no kernel, follows them.

use std::ffi::c_void;
use std::sync::OnceLock;

use relaxide_ffi::{Any, DataType, Device, Error, ErrorKind, Tensor};

use super::{Attribute, DeviceApi, Memory, Stream};

/// Memory and queues on the far sides of sessions. Addresses are those that `allocate` made up, and numbers between them.
pub trait RemoteMemory: Send + Sync {
    /// Whether the device is there.
    fn exists(&self, device: Device) -> bool;

    /// Allocates memory there. Not zero.
    fn allocate(&self, device: Device, bytes: usize) -> Result<usize, Error>;

    /// Frees memory that `allocate` made.
    fn free(&self, address: usize);

    /// Copies bytes there.
    fn write(&self, address: usize, bytes: &[u8]) -> Result<(), Error>;

    /// Copies bytes here.
    fn read(&self, address: usize, bytes: &mut [u8]) -> Result<(), Error>;

    /// Copies bytes from one place there to another.
    fn copy(&self, from: usize, to: usize, bytes: usize) -> Result<(), Error>;

    /// A property of the device.
    fn attribute(&self, device: Device, attribute: Attribute) -> Result<Option<Any>, Error>;

    /// Makes a queue.
    fn create_stream(&self, device: Device) -> Result<Stream, Error>;

    /// Ends a queue.
    fn free_stream(&self, device: Device, stream: Stream) -> Result<(), Error>;

    /// Makes a queue the current one.
    fn set_stream(&self, device: Device, stream: Stream) -> Result<(), Error>;

    /// Waits until what is in a queue is done.
    fn synchronize(&self, device: Device, stream: Stream) -> Result<(), Error>;
}

static REMOTE: OnceLock<Remote> = OnceLock::new();

struct Remote(&'static dyn RemoteMemory);

/// Says who keeps the sessions. The first who says so does.
pub fn set_remote_memory(memory: &'static dyn RemoteMemory) {
    let _ = REMOTE.set(Remote(memory));
}

pub(super) fn api(device: Device) -> Result<&'static dyn DeviceApi, Error> {
    let lost =
        || Error::new(ErrorKind::RuntimeError, format!("device {device} belongs to a session, and there is none"));
    REMOTE.get().map(|remote| remote as &dyn DeviceApi).ok_or_else(lost)
}

/// A compact tensor on a remote device, which `owner` keeps there.
pub fn tensor<O: Send + Sync + 'static>(
    address: usize,
    shape: &[i64],
    dtype: DataType,
    device: Device,
    owner: O,
) -> Result<Tensor, Error> {
    if device.remote().is_none() {
        return Err(Error::new(ErrorKind::InternalError, format!("{device} is no remote device")));
    }
    let data = std::ptr::without_provenance_mut::<c_void>(address);
    // SAFETY: the address is never followed here: all that touches memory of a remote device goes through `Remote`, whose
    // methods check that the bytes lie in what `owner` keeps.
    unsafe { Tensor::from_parts(data, shape, dtype, device, 0, owner) }
}

impl DeviceApi for Remote {
    fn exists(&self, device: Device) -> bool {
        self.0.exists(device)
    }

    fn allocate(&self, device: Device, bytes: usize) -> Result<*mut c_void, Error> {
        self.0.allocate(device, bytes).map(std::ptr::without_provenance_mut)
    }

    unsafe fn free(&self, _device: Device, data: *mut c_void, _bytes: usize) {
        self.0.free(data.addr());
    }

    unsafe fn copy(&self, from: Memory, to: Memory, bytes: usize, _stream: Stream) -> Result<(), Error> {
        self.0.copy(from.address().addr(), to.address().addr(), bytes)
    }

    unsafe fn copy_from_host(
        &self,
        from: *const c_void,
        to: Memory,
        bytes: usize,
        _stream: Stream,
    ) -> Result<(), Error> {
        // SAFETY: the caller says that the host's range is live.
        let bytes = if bytes == 0 { &[] } else { unsafe { std::slice::from_raw_parts(from.cast::<u8>(), bytes) } };
        self.0.write(to.address().addr(), bytes)
    }

    unsafe fn copy_to_host(&self, from: Memory, to: *mut c_void, bytes: usize, _stream: Stream) -> Result<(), Error> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the caller says that the host's range is live, and nobody else uses it meanwhile.
        let place = unsafe { std::slice::from_raw_parts_mut(to.cast::<u8>(), bytes) };
        self.0.read(from.address().addr(), place)
    }

    fn attribute(&self, device: Device, attribute: Attribute) -> Result<Option<Any>, Error> {
        self.0.attribute(device, attribute)
    }

    fn create_stream(&self, device: Device) -> Result<Stream, Error> {
        self.0.create_stream(device)
    }

    fn free_stream(&self, device: Device, stream: Stream) -> Result<(), Error> {
        self.0.free_stream(device, stream)
    }

    fn set_stream(&self, device: Device, stream: Stream) -> Result<(), Error> {
        self.0.set_stream(device, stream)
    }

    fn synchronize(&self, device: Device, stream: Stream) -> Result<(), Error> {
        self.0.synchronize(device, stream)
    }
}
