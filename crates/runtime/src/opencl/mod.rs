//! OpenCL: devices whose driver is loaded at run time, and modules of kernels for them.
//!
//! Nothing here links to a driver. The loader `libOpenCL` is opened when somebody first asks for a device; where there is none, or it has
//! no devices, each call says so and the process goes on.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`driver`] | the functions of the loader, and its errors by name |
//! | [`devices`] | the devices, their queues, memory and copies |
//! | [`kernels`] | building and launching kernels |
//! | [`binaries`] | what was built, kept for other processes |
//!
//! A handle of memory is the driver's own (`cl_mem`). Each device has a context and one queue of its own, in order; a copy from one device
//! to another goes through the host. Images and the scopes of textures are not here.
//!
//! Source: the OpenCL 1.2 specification; for modules and launches, what TVM 0.27 writes and calls.

mod binaries;
mod devices;
mod driver;
mod kernels;

use relaxide_ffi::{Bytes, Device, Function};

use crate::device::register_device;
use crate::register::enter;

/// Enters the devices, and the loader of modules of kernels.
pub(crate) fn register() {
    // Somebody who has entered devices of this kind before keeps them.
    let _ = register_device(Device::OPENCL, &devices::OpenCl);
    enter(
        "ffi.Module.load_from_bytes.opencl",
        Function::typed(|bytes: Bytes| kernels::Kernels::load(bytes.as_slice())),
    );
}
