//! What this crate enters among the global functions.

use std::sync::Once;

use relaxide_ffi::{Device, Error, Function, get_global, register_global};

use crate::{device, library, timing};

/// Whether there is what only front ends ask for; a deployed runtime, which none uses, is smaller without.
const FRONT_ENDS: bool = cfg!(feature = "front-ends");

/// Enters devices that have a driver, the loader of shared libraries (`ffi.Module.load_from_file.so`), the libraries linked into the program
/// (`ffi.SystemLib`) and, for front ends, the time evaluator (`runtime.RPCTimeEvaluator`) and what they ask of devices
/// (`runtime.GetDeviceAttr` and others). Calling it again does nothing.
pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        crate::fork::register();
        enter(
            "ffi.Module.load_from_file.so",
            Function::typed(|path: String, _format: String| library::load_shared(path)),
        );
        enter(
            "ffi.SystemLib",
            Function::new(|args| match args {
                [] => library::system_library("").map(Into::into),
                [prefix] => library::system_library(&prefix.to::<String>()?).map(Into::into),
                _ => Err(Error::new(
                    relaxide_ffi::ErrorKind::TypeError,
                    format!("ffi.SystemLib takes at most a prefix, and has {} arguments", args.len()),
                )),
            }),
        );
        #[cfg(any(feature = "opencl", feature = "cuda"))]
        device::faults::register();
        #[cfg(feature = "cuda")]
        crate::cuda::register();
        #[cfg(feature = "opencl")]
        crate::opencl::register();
        enter(
            "__tvm_set_device",
            Function::typed(|device_type: i32, device_id: i32| {
                device::set_current_device(Device::new(device_type, device_id));
                Ok::<_, Error>(())
            }),
        );
        if FRONT_ENDS {
            enter("runtime.RPCTimeEvaluator", Function::new(timing::evaluator));
            #[cfg(feature = "memory")]
            device::functions().for_each(|(name, function)| enter(name, function));
        }
    });
}

/// Enters a function unless one of that name is there.
pub(crate) fn enter(name: &str, function: Function) {
    if get_global(name).is_none() {
        // Only another thread's registration of the same function can come between.
        let _ = register_global(name, function);
    }
}
