//! The functions of CUDA's driver that are used here, found in a library that is opened at run time.

use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;

use libloading::os::unix::Library;
use relaxide_ffi::{Error, ErrorKind};

use crate::device::driver::{NoDriver, open_first};

/// What the driver names contexts, streams, events, modules and functions by.
pub(super) type Raw = *mut c_void;

/// An address of a device.
pub(super) type Address = u64;

pub(super) const SUCCESS: i32 = 0;
pub(super) const OUT_OF_MEMORY: i32 = 2;

/// A stream that does not wait for the default one.
pub(super) const STREAM_NON_BLOCKING: u32 = 1;
/// An event without a time.
pub(super) const EVENT_DISABLE_TIMING: u32 = 2;

/// Options of compiling PTX: where its errors go, and how many bytes there is room for.
pub(super) const JIT_ERROR_LOG: i32 = 5;
pub(super) const JIT_ERROR_LOG_BYTES: i32 = 6;

/// Numbers of what a device says of itself.
pub(super) mod info {
    pub const MAX_THREADS_PER_BLOCK: i32 = 1;
    pub const MAX_BLOCK_DIMENSIONS: [i32; 3] = [2, 3, 4];
    pub const MAX_SHARED_MEMORY_PER_BLOCK: i32 = 8;
    pub const WARP_SIZE: i32 = 10;
    pub const MAX_REGISTERS_PER_BLOCK: i32 = 12;
    pub const CLOCK_RATE: i32 = 13;
    pub const MULTIPROCESSOR_COUNT: i32 = 16;
    pub const L2_CACHE_SIZE: i32 = 38;
    pub const COMPUTE_CAPABILITY: [i32; 2] = [75, 76];
}

macro_rules! functions {
    ($($field:ident = $name:literal: fn($($arg:ty),* $(,)?);)*) => {
        /// The functions, by what they do. Each returns a code, of which zero is success.
        pub(super) struct Driver {
            $(pub(super) $field: unsafe extern "C" fn($($arg),*) -> i32,)*
            /// Keeps them.
            _library: Library,
        }

        impl Driver {
            fn of(name: &'static str, library: Library) -> Result<Driver, NoDriver> {
                $(
                    // SAFETY: the name is that of a function of the driver's interface, whose type the table gives.
                    let symbol = unsafe { library.get::<unsafe extern "C" fn($($arg),*) -> i32>($name) };
                    let $field = *symbol.map_err(|why| {
                        let function = std::str::from_utf8($name).unwrap_or_default().trim_end_matches('\0');
                        NoDriver::Function { name, function, why }
                    })?;
                )*
                Ok(Driver { $($field,)* _library: library })
            }
        }
    };
}

functions! {
    init = b"cuInit\0": fn(u32);
    version = b"cuDriverGetVersion\0": fn(*mut i32);
    error_name = b"cuGetErrorName\0": fn(i32, *mut *const c_char);
    error_text = b"cuGetErrorString\0": fn(i32, *mut *const c_char);
    device_count = b"cuDeviceGetCount\0": fn(*mut i32);
    device = b"cuDeviceGet\0": fn(*mut i32, i32);
    device_name = b"cuDeviceGetName\0": fn(*mut c_char, i32, i32);
    device_memory = b"cuDeviceTotalMem_v2\0": fn(*mut usize, i32);
    device_info = b"cuDeviceGetAttribute\0": fn(*mut i32, i32, i32);
    retain_context = b"cuDevicePrimaryCtxRetain\0": fn(*mut Raw, i32);
    set_context = b"cuCtxSetCurrent\0": fn(Raw);
    free_memory = b"cuMemGetInfo_v2\0": fn(*mut usize, *mut usize);
    allocate = b"cuMemAlloc_v2\0": fn(*mut Address, usize);
    free = b"cuMemFree_v2\0": fn(Address);
    copy_in = b"cuMemcpyHtoDAsync_v2\0": fn(Address, *const c_void, usize, Raw);
    copy_out = b"cuMemcpyDtoHAsync_v2\0": fn(*mut c_void, Address, usize, Raw);
    copy = b"cuMemcpyDtoDAsync_v2\0": fn(Address, Address, usize, Raw);
    copy_peer = b"cuMemcpyPeerAsync\0": fn(Address, Raw, Address, Raw, usize, Raw);
    create_stream = b"cuStreamCreate\0": fn(*mut Raw, u32);
    destroy_stream = b"cuStreamDestroy_v2\0": fn(Raw);
    synchronize = b"cuStreamSynchronize\0": fn(Raw);
    wait_event = b"cuStreamWaitEvent\0": fn(Raw, Raw, u32);
    create_event = b"cuEventCreate\0": fn(*mut Raw, u32);
    record_event = b"cuEventRecord\0": fn(Raw, Raw);
    destroy_event = b"cuEventDestroy_v2\0": fn(Raw);
    load_module = b"cuModuleLoadDataEx\0": fn(*mut Raw, *const c_void, u32, *mut i32, *mut *mut c_void);
    unload_module = b"cuModuleUnload\0": fn(Raw);
    function = b"cuModuleGetFunction\0": fn(*mut Raw, Raw, *const c_char);
    launch = b"cuLaunchKernel\0":
        fn(Raw, u32, u32, u32, u32, u32, u32, u32, Raw, *mut *mut c_void, *mut *mut c_void);
}

const NAMES: &[&str] = &["libcuda.so.1", "libcuda.so"];

/// The driver, opened and started once. An error says why there is none.
pub(super) fn driver() -> Result<&'static Driver, Error> {
    static DRIVER: OnceLock<Result<Driver, NoDriver>> = OnceLock::new();
    let opened = DRIVER.get_or_init(|| {
        let driver = open()?;
        // SAFETY: the driver's flags are none, as it wants.
        match unsafe { (driver.init)(0) } {
            SUCCESS => Ok(driver),
            code => Err(NoDriver::Start(driver.code_name(code))),
        }
    });
    opened.as_ref().map_err(|why| {
        let message = format!("CUDA is not available: {why}; install NVIDIA's driver (no toolkit is needed)");
        Error::new(ErrorKind::RuntimeError, message)
    })
}

fn open() -> Result<Driver, NoDriver> {
    let (name, library) = open_first(NAMES)?;
    Driver::of(name, library)
}

impl Driver {
    /// An error code, by its name and what the driver says of it.
    pub(super) fn code_name(&self, code: i32) -> String {
        let said = |ask: unsafe extern "C" fn(i32, *mut *const c_char) -> i32| {
            let mut place: *const c_char = std::ptr::null();
            // SAFETY: the driver leaves the place alone, or puts the address of a text there that it keeps.
            let code = unsafe { ask(code, &raw mut place) };
            // SAFETY: as above.
            (code == SUCCESS && !place.is_null())
                .then(|| unsafe { CStr::from_ptr(place) }.to_string_lossy().into_owned())
        };
        match (said(self.error_name), said(self.error_text)) {
            (Some(name), Some(text)) => format!("{name} ({code}, {text})"),
            (Some(name), None) => format!("{name} ({code})"),
            _ => format!("code {code}"),
        }
    }
}
