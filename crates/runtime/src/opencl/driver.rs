//! The functions of OpenCL that are used here, found in a library that is opened at run time.

use std::ffi::{c_char, c_void};
use std::sync::OnceLock;

use libloading::os::unix::Library;
use relaxide_ffi::{Error, ErrorKind};

use crate::device::driver::{NoDriver, open_first};

/// What the driver names things by.
pub(super) type Raw = *mut c_void;

pub(super) const SUCCESS: i32 = 0;
pub(super) const DEVICE_NOT_FOUND: i32 = -1;
pub(super) const DEVICE_TYPE_ALL: u64 = 0xFFFF_FFFF;
pub(super) const MEM_READ_WRITE: u64 = 1;

/// Names of what a device says of itself.
pub(super) mod info {
    pub const TYPE: u32 = 0x1000;
    pub const MAX_COMPUTE_UNITS: u32 = 0x1002;
    pub const MAX_WORK_GROUP_SIZE: u32 = 0x1004;
    pub const MAX_WORK_ITEM_SIZES: u32 = 0x1005;
    pub const MAX_CLOCK_FREQUENCY: u32 = 0x100C;
    pub const GLOBAL_MEM_SIZE: u32 = 0x101F;
    pub const LOCAL_MEM_SIZE: u32 = 0x1023;
    pub const NAME: u32 = 0x102B;
    pub const DRIVER_VERSION: u32 = 0x102D;
    pub const VERSION: u32 = 0x102F;
}

pub(super) const PROGRAM_BUILD_LOG: u32 = 0x1183;
pub(super) const PROGRAM_BINARY_SIZES: u32 = 0x1165;
pub(super) const PROGRAM_BINARIES: u32 = 0x1166;

macro_rules! functions {
    ($($field:ident = $name:literal: fn($($arg:ty),* $(,)?) -> $result:ty;)*) => {
        /// The functions, by what they do.
        pub(super) struct Driver {
            $(pub(super) $field: unsafe extern "C" fn($($arg),*) -> $result,)*
            /// Keeps them.
            _library: Library,
        }

        impl Driver {
            fn of(name: &'static str, library: Library) -> Result<Driver, NoDriver> {
                $(
                    // SAFETY: the name is that of a function of the standard's, whose type the table gives.
                    let symbol = unsafe { library.get::<unsafe extern "C" fn($($arg),*) -> $result>($name) };
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

type Callback = *const c_void;

functions! {
    platforms = b"clGetPlatformIDs\0": fn(u32, *mut Raw, *mut u32) -> i32;
    device_ids = b"clGetDeviceIDs\0": fn(Raw, u64, u32, *mut Raw, *mut u32) -> i32;
    device_info = b"clGetDeviceInfo\0": fn(Raw, u32, usize, *mut c_void, *mut usize) -> i32;
    create_context = b"clCreateContext\0": fn(*const isize, u32, *const Raw, Callback, *mut c_void, *mut i32) -> Raw;
    create_queue = b"clCreateCommandQueue\0": fn(Raw, Raw, u64, *mut i32) -> Raw;
    create_buffer = b"clCreateBuffer\0": fn(Raw, u64, usize, *mut c_void, *mut i32) -> Raw;
    release_memory = b"clReleaseMemObject\0": fn(Raw) -> i32;
    read = b"clEnqueueReadBuffer\0":
        fn(Raw, Raw, u32, usize, usize, *mut c_void, u32, *const Raw, *mut Raw) -> i32;
    write = b"clEnqueueWriteBuffer\0":
        fn(Raw, Raw, u32, usize, usize, *const c_void, u32, *const Raw, *mut Raw) -> i32;
    copy = b"clEnqueueCopyBuffer\0": fn(Raw, Raw, Raw, usize, usize, usize, u32, *const Raw, *mut Raw) -> i32;
    create_program = b"clCreateProgramWithSource\0":
        fn(Raw, u32, *const *const c_char, *const usize, *mut i32) -> Raw;
    create_from_binary = b"clCreateProgramWithBinary\0":
        fn(Raw, u32, *const Raw, *const usize, *const *const u8, *mut i32, *mut i32) -> Raw;
    program_info = b"clGetProgramInfo\0": fn(Raw, u32, usize, *mut c_void, *mut usize) -> i32;
    build_program = b"clBuildProgram\0":
        fn(Raw, u32, *const Raw, *const c_char, Callback, *mut c_void) -> i32;
    build_info = b"clGetProgramBuildInfo\0": fn(Raw, Raw, u32, usize, *mut c_void, *mut usize) -> i32;
    release_program = b"clReleaseProgram\0": fn(Raw) -> i32;
    create_kernel = b"clCreateKernel\0": fn(Raw, *const c_char, *mut i32) -> Raw;
    release_kernel = b"clReleaseKernel\0": fn(Raw) -> i32;
    set_argument = b"clSetKernelArg\0": fn(Raw, u32, usize, *const c_void) -> i32;
    launch = b"clEnqueueNDRangeKernel\0":
        fn(Raw, Raw, u32, *const usize, *const usize, *const usize, u32, *const Raw, *mut Raw) -> i32;
    finish = b"clFinish\0": fn(Raw) -> i32;
}

const NAMES: &[&str] = &["libOpenCL.so.1", "libOpenCL.so"];

/// The loader, opened once. An error says why there is none.
pub(super) fn driver() -> Result<&'static Driver, Error> {
    static DRIVER: OnceLock<Result<Driver, NoDriver>> = OnceLock::new();
    let opened = DRIVER.get_or_init(|| {
        let (name, library) = open_first(NAMES)?;
        Driver::of(name, library)
    });
    opened.as_ref().map_err(|why| {
        let message = format!("OpenCL is not available: {why}; install an OpenCL loader and a driver");
        Error::new(ErrorKind::RuntimeError, message)
    })
}

/// An error code of the driver, by its name where it has one.
pub(super) fn code_name(code: i32) -> String {
    let name = match code {
        -1 => "CL_DEVICE_NOT_FOUND",
        -2 => "CL_DEVICE_NOT_AVAILABLE",
        -3 => "CL_COMPILER_NOT_AVAILABLE",
        -4 => "CL_MEM_OBJECT_ALLOCATION_FAILURE",
        -5 => "CL_OUT_OF_RESOURCES",
        -6 => "CL_OUT_OF_HOST_MEMORY",
        -8 => "CL_MEM_COPY_OVERLAP",
        -11 => "CL_BUILD_PROGRAM_FAILURE",
        -30 => "CL_INVALID_VALUE",
        -33 => "CL_INVALID_DEVICE",
        -34 => "CL_INVALID_CONTEXT",
        -36 => "CL_INVALID_COMMAND_QUEUE",
        -38 => "CL_INVALID_MEM_OBJECT",
        -44 => "CL_INVALID_PROGRAM",
        -45 => "CL_INVALID_PROGRAM_EXECUTABLE",
        -46 => "CL_INVALID_KERNEL_NAME",
        -48 => "CL_INVALID_KERNEL",
        -49 => "CL_INVALID_ARG_INDEX",
        -50 => "CL_INVALID_ARG_VALUE",
        -51 => "CL_INVALID_ARG_SIZE",
        -52 => "CL_INVALID_KERNEL_ARGS",
        -53 => "CL_INVALID_WORK_DIMENSION",
        -54 => "CL_INVALID_WORK_GROUP_SIZE",
        -55 => "CL_INVALID_WORK_ITEM_SIZE",
        -61 => "CL_INVALID_BUFFER_SIZE",
        -63 => "CL_INVALID_GLOBAL_WORK_SIZE",
        -1001 => "CL_PLATFORM_NOT_FOUND_KHR",
        _ => return format!("code {code}"),
    };
    format!("{name} ({code})")
}
