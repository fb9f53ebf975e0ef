//! CUDA: devices whose driver is loaded at run time, and modules of kernels for them.
//!
//! Nothing here links to a driver, and no toolkit is needed: `libcuda` is opened when somebody first asks for a device. Where there is
//! none, or it has no devices, each call says so and the process goes on.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`driver`] | the functions of the driver, and its errors by name |
//! | [`devices`] | the devices, their contexts, streams, memory and copies |
//! | [`kernels`] | loading and launching kernels |
//!
//! A handle of memory is an address of the device. A device's context is its primary one, which it shares with other libraries of the
//! process. A thread's work goes into the stream that it has set for the device; copies from one device to another go from peer to peer.
//! Managed memory, graphs and sources of CUDA C++ are not here.
//!
//! Source: the documentation of CUDA's driver interface, version 12; for modules and launches, what TVM 0.27 writes and calls.

mod devices;
mod driver;
mod kernels;

use relaxide_ffi::{Bytes, Device, Function};

use crate::device::register_device;
use crate::register::enter;

/// Enters the devices, and the loader of modules of kernels.
pub(crate) fn register() {
    // Somebody who has entered devices of this kind before keeps them.
    let _ = register_device(Device::CUDA, &devices::Cuda);
    enter("ffi.Module.load_from_bytes.cuda", Function::typed(|bytes: Bytes| kernels::Kernels::load(bytes.as_slice())));
}
