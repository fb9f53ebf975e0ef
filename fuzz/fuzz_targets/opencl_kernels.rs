//! Bytes as a module of OpenCL kernels: an error, or a module that is written as the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relaxide_ffi::{AnyView, Module, get_global};

fuzz_target!(|data: &[u8]| {
    relaxide_runtime::register();
    let loader = get_global("ffi.Module.load_from_bytes.opencl").expect("the runtime has the loader");
    let Ok(module) = AnyView::with_bytes(data, |bytes| loader.call(&[bytes])) else { return };
    let module: Module = module.to().expect("the loader gives a module");
    assert_eq!(module.body().save().expect("it can be saved").into_bytes(), data);
});
