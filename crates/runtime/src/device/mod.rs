//! Devices: where data lives and how it gets there.
//!
//! A kind of device is one implementation of [`DeviceApi`], entered with [`register_device`]. The rest of the runtime knows devices
//! only through it.

mod attribute;
mod cpu;
mod current;
#[cfg(any(feature = "opencl", feature = "cuda"))]
pub(crate) mod driver;
#[cfg(any(feature = "opencl", feature = "cuda"))]
pub(crate) mod faults;
#[cfg(feature = "memory")]
mod functions;
#[cfg(any(feature = "opencl", feature = "cuda"))]
pub(crate) mod launch;
#[cfg(any(feature = "opencl", feature = "cuda"))]
pub mod payload;
mod registry;
pub mod remote;
#[cfg(feature = "memory")]
mod transfer;
mod view;

use std::ffi::c_void;

use relaxide_ffi::{Any, Device, Error, Tensor};

pub use attribute::Attribute;
pub use current::{current_device, set_current_device};
#[cfg(feature = "memory")]
pub(crate) use functions::functions;
#[cfg(any(feature = "opencl", feature = "cuda"))]
pub use launch::Axis;
pub use registry::{device_api, device_exists, device_kinds, register_device};
#[cfg(feature = "memory")]
pub use transfer::{copy_into, copy_tensor, empty_tensor, on_host, to_device};
#[cfg(feature = "memory")]
pub(crate) use view::begin;
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

/// Bytes on a device: an allocation, and how far inside of it they begin.
///
/// What a handle is is the device's own. Where handles are addresses ([`DeviceApi::has_addresses`]), offsets may be added to them;
/// elsewhere, as with OpenCL, a handle names a buffer and the offset stays apart.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// The device.
    pub device: Device,
    /// The allocation, or an address inside of it.
    pub handle: *mut c_void,
    /// How many bytes behind the handle.
    pub offset: usize,
}

impl Memory {
    /// Where a tensor's elements are.
    pub fn of(tensor: &Tensor) -> Memory {
        let dl = tensor.dl_tensor();
        Memory { device: tensor.device(), handle: dl.data, offset: dl.byte_offset as usize }
    }

    /// The address, where handles are addresses.
    pub fn address(self) -> *mut c_void {
        self.handle.wrapping_byte_add(self.offset)
    }
}

/// What the runtime needs from a kind of device. Only addresses of the CPU may be followed by the host.
///
/// Copies are put into a queue and may still be under way when they return, as long as the device reads the host's memory before and
/// writes it when the queue is waited for; callers wait with [`DeviceApi::synchronize`] before they use what was copied.
pub trait DeviceApi: Send + Sync {
    /// Whether a device of this number exists.
    fn exists(&self, device: Device) -> bool;

    /// Why there is no device of this kind, where there is none.
    fn why_none(&self) -> Option<String> {
        None
    }

    /// Whether handles are addresses, to which offsets may be added.
    fn has_addresses(&self) -> bool {
        true
    }

    /// The device whose memory a handle names, or an address lies in; nothing where it is none of this kind's. Devices that run kernels of
    /// modules tell.
    fn place_of(&self, _handle: usize) -> Option<Device> {
        None
    }

    /// Allocates `bytes` bytes, aligned to [`ALIGNMENT`]. Not null, not even for no bytes.
    fn allocate(&self, device: Device, bytes: usize) -> Result<*mut c_void, Error>;

    /// Frees an allocation.
    ///
    /// # Safety
    /// `handle` came from [`DeviceApi::allocate`] with the same device and size, and nobody uses it any more.
    unsafe fn free(&self, device: Device, handle: *mut c_void, bytes: usize);

    /// Copies bytes between devices of this kind.
    ///
    /// # Safety
    /// Both ranges are inside live allocations and do not overlap.
    unsafe fn copy(&self, from: Memory, to: Memory, bytes: usize, stream: Stream) -> Result<(), Error>;

    /// Copies bytes from the host to the device.
    ///
    /// # Safety
    /// `from` has that many bytes of the host, and `to` is inside of a live allocation.
    unsafe fn copy_from_host(&self, from: *const c_void, to: Memory, bytes: usize, stream: Stream)
    -> Result<(), Error>;

    /// Copies bytes from the device to the host.
    ///
    /// # Safety
    /// `from` is inside of a live allocation, and `to` has room for that many bytes of the host, which nobody uses meanwhile.
    unsafe fn copy_to_host(&self, from: Memory, to: *mut c_void, bytes: usize, stream: Stream) -> Result<(), Error>;

    /// The queue that the calling thread's work for a device goes into.
    fn current_stream(&self, _device: Device) -> Stream {
        Stream::DEFAULT
    }

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
