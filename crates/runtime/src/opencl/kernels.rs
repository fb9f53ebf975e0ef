//! [`Kernels`]: a module of kernels, which are built for a device when they are first called there, or were so by an earlier process
//! ([`super::binaries`]).

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError};

use relaxide_ffi::{AnyView, Device, Error, ErrorKind, Function, Module, ModuleImpl, ModuleProperties, SavedBytes};

use super::binaries;
use super::devices::{Opened, opened};
use super::driver::{PROGRAM_BUILD_LOG, Raw, SUCCESS};
use crate::device::launch::{self, Call, ParamValue};
use crate::device::payload::{Info, Payload};

/// The kind of the modules.
const KIND: &str = "opencl";

/// A module of kernels.
pub(super) struct Kernels(Arc<Shared>);

struct Shared {
    payload: Payload,
    built: Mutex<HashMap<(usize, Device), Arc<Built>>>,
}

/// A kernel of a device. Its arguments are set and it is launched under the lock.
struct Built {
    opened: &'static Opened,
    program: Raw,
    kernel: Mutex<Raw>,
}

// SAFETY: the driver's objects may be used from any thread, and the kernel is behind a lock.
unsafe impl Send for Built {}
// SAFETY: as above.
unsafe impl Sync for Built {}

impl Drop for Built {
    fn drop(&mut self) {
        let kernel = *self.kernel.get_mut().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: both are live, and are not used again; launches that are queued keep what they need.
        unsafe {
            (self.opened.driver.release_kernel)(kernel);
            (self.opened.driver.release_program)(self.program);
        }
    }
}

fn refused(name: &str, why: impl std::fmt::Display) -> Error {
    launch::refused("OpenCL", name, why)
}

impl Kernels {
    /// Loads a module.
    pub(super) fn load(bytes: &[u8]) -> Result<Module, Error> {
        let payload = Payload::read(bytes).map_err(|why| {
            Error::new(ErrorKind::ValueError, format!("the module of OpenCL kernels is malformed: {why}"))
        })?;
        if payload.format != "cl" {
            let message =
                format!("a module of OpenCL kernels is in the form {:?}, and only source (cl) is read", payload.format);
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        Ok(Module::new(Kernels(Arc::new(Shared { payload, built: Mutex::default() }))))
    }
}

impl ModuleImpl for Kernels {
    fn kind(&self) -> &str {
        KIND
    }

    fn get_function(&self, name: &str) -> Option<Function> {
        let index = self.0.payload.kernels.iter().position(|(key, _)| key == name)?;
        let shared = Arc::clone(&self.0);
        Some(Function::new(move |args| shared.call(index, args).map(|()| relaxide_ffi::Any::none())))
    }

    fn properties(&self) -> ModuleProperties {
        ModuleProperties::RUNNABLE.and(ModuleProperties::BINARY_SERIALIZABLE)
    }

    fn save(&self) -> Result<SavedBytes, Error> {
        Ok(self.0.payload.write().into())
    }

    fn inspect_source(&self, format: &str) -> Result<String, Error> {
        match format {
            "" | "cl" => Ok(String::from_utf8_lossy(&self.0.payload.code).into_owned()),
            _ => {
                Err(Error::new(ErrorKind::ValueError, format!("OpenCL kernels are shown as \"cl\", not as {format:?}")))
            }
        }
    }
}

impl Shared {
    fn call(&self, index: usize, args: &[AnyView<'_>]) -> Result<(), Error> {
        let (name, info) = &self.payload.kernels[index];
        let call = Call::of("OpenCL", Device::OPENCL, name, info, args)?;
        let mut global = call.threads;
        for (threads, blocks) in global.iter_mut().zip(call.blocks) {
            let all = threads.checked_mul(blocks);
            *threads = all.ok_or_else(|| refused(name, "more threads than can be counted"))?;
        }
        self.built(index, call.device)?.launch(name, &call.values, call.dimensions, &global, &call.threads)
    }

    fn built(&self, index: usize, device: Device) -> Result<Arc<Built>, Error> {
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = built.get(&(index, device)) {
            return Ok(Arc::clone(known));
        }
        let (_, info) = &self.payload.kernels[index];
        let made = Arc::new(self.build(info, device)?);
        built.insert((index, device), Arc::clone(&made));
        Ok(made)
    }

    fn build(&self, info: &Info, device: Device) -> Result<Built, Error> {
        let name = &info.name;
        let opened = opened(device)?;
        let driver = opened.driver;
        let source =
            self.payload.source(name).ok_or_else(|| refused(name, "the module's source has no such kernel"))?;
        if let Some(program) = binaries::find(opened, source.as_bytes()) {
            match kernel_of(opened, program, name) {
                Ok(kernel) => return Ok(Built { opened, program, kernel: Mutex::new(kernel) }),
                // SAFETY: the program is live and is not used again.
                Err(_) => drop(unsafe { (driver.release_program)(program) }),
            }
        }
        let mut code = SUCCESS;
        let (place, length) = (source.as_ptr().cast(), source.len());
        // SAFETY: one text of that length is given; the driver copies it.
        let program =
            unsafe { (driver.create_program)(opened.context, 1, &raw const place, &raw const length, &raw mut code) };
        opened.check(&format!("make a program of the kernel {name}"), code)?;
        let none = std::ptr::null_mut();
        // SAFETY: the program is live and the device is that of its context.
        let code = unsafe { (driver.build_program)(program, 1, &raw const opened.id, c"".as_ptr(), none, none) };
        let made =
            opened.check(&format!("build the kernel {name}"), code).and_then(|()| kernel_of(opened, program, name));
        match made {
            Ok(kernel) => {
                binaries::keep(opened, source.as_bytes(), program);
                Ok(Built { opened, program, kernel: Mutex::new(kernel) })
            }
            Err(error) => {
                let log = build_log(opened, program);
                // SAFETY: the program is live and is not used again.
                unsafe { (driver.release_program)(program) };
                let message = format!("{}{}{log}", error.message(), if log.is_empty() { "" } else { "\n" });
                Err(Error::new(error.kind(), message))
            }
        }
    }
}

/// A kernel of a program that is built.
fn kernel_of(opened: &Opened, program: Raw, name: &str) -> Result<Raw, Error> {
    let text = CString::new(name).map_err(|_| refused(name, "its name has a NUL in it"))?;
    let mut code = SUCCESS;
    // SAFETY: the program is built.
    let kernel = unsafe { (opened.driver.create_kernel)(program, text.as_ptr(), &raw mut code) };
    opened.check(&format!("make the kernel {name}"), code).map(|()| kernel)
}

/// What the driver's compiler says of a program.
fn build_log(opened: &Opened, program: Raw) -> String {
    let mut log = vec![0_u8; 16 << 10];
    let mut size = 0;
    let (place, room) = (log.as_mut_ptr().cast(), log.len());
    // SAFETY: the place has as many bytes as are said. A log that is longer is refused, and left out.
    let code = unsafe { (opened.driver.build_info)(program, opened.id, PROGRAM_BUILD_LOG, room, place, &raw mut size) };
    if code != SUCCESS {
        return String::new();
    }
    String::from_utf8_lossy(&log[..size.min(room)]).trim_end_matches('\0').trim().to_owned()
}

impl Built {
    fn launch(
        &self,
        name: &str,
        values: &[ParamValue],
        dims: usize,
        global: &[usize; 3],
        local: &[usize; 3],
    ) -> Result<(), Error> {
        let opened = self.opened;
        let kernel = self.kernel.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, value) in values.iter().enumerate() {
            let bytes = value.bytes();
            // SAFETY: the kernel is live, and as many bytes are given as are said; the driver copies them. Whether they are what the
            // kernel's parameter takes is checked by the driver, and was said by who made the module.
            let code = unsafe { (opened.driver.set_argument)(*kernel, at as u32, bytes.len(), bytes.as_ptr().cast()) };
            opened.check(&format!("set argument {at} of the kernel {name}"), code)?;
        }
        // SAFETY: the queue and the kernel are live and all arguments are set; three sizes are given for at most three dimensions.
        let code = unsafe {
            (opened.driver.launch)(
                opened.queue,
                *kernel,
                dims as u32,
                std::ptr::null(),
                global.as_ptr(),
                local.as_ptr(),
                0,
                std::ptr::null(),
                std::ptr::null_mut(),
            )
        };
        opened.check(&format!("launch the kernel {name} over {global:?} threads in blocks of {local:?}"), code)
    }
}
