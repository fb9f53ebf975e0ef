//! [`Kernels`]: a module of kernels, which a device's driver loads when one of them is first called there.

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use relaxide_ffi::{AnyView, Device, Error, ErrorKind, Function, Module, ModuleImpl, ModuleProperties, SavedBytes};

use super::devices::{Cuda, Opened, opened, raw};
use super::driver::{JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES, Raw, SUCCESS};
use crate::device::DeviceApi;
use crate::device::launch::{self, Call};
use crate::device::payload::Payload;

/// The kind of the modules.
const KIND: &str = "cuda";

/// The forms of code that drivers load: text for any device, and code of some.
const FORMS: [&str; 3] = ["ptx", "cubin", "fatbin"];

/// A module of kernels.
pub(super) struct Kernels(Arc<Shared>);

struct Shared {
    payload: Payload,
    loaded: Mutex<HashMap<Device, Arc<Loaded>>>,
}

/// A module on a device, and its functions by the numbers of kernels.
struct Loaded {
    opened: &'static Opened,
    module: Raw,
    functions: Mutex<HashMap<usize, CudaFunction>>,
}

/// A function of a module.
#[derive(Clone, Copy)]
struct CudaFunction(Raw);

// SAFETY: the driver's objects may be used from any thread.
unsafe impl Send for CudaFunction {}
// SAFETY: as above.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: the module is live and is not used again; the driver waits for launches that are queued.
        unsafe { (self.opened.driver.unload_module)(self.module) };
    }
}

fn refused(name: &str, why: impl std::fmt::Display) -> Error {
    launch::refused("CUDA", name, why)
}

impl Kernels {
    /// Loads a module.
    pub(super) fn load(bytes: &[u8]) -> Result<Module, Error> {
        let mut payload = Payload::read(bytes).map_err(|why| {
            Error::new(ErrorKind::ValueError, format!("the module of CUDA kernels is malformed: {why}"))
        })?;
        if !FORMS.contains(&payload.format.as_str()) {
            let message = format!(
                "a module of CUDA kernels is in the form {:?}, and {} are read: compile it to PTX first",
                payload.format,
                FORMS.join(", ")
            );
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        // The driver reads text up to a zero, and knows the length of code by itself.
        payload.code.push(0);
        Ok(Module::new(Kernels(Arc::new(Shared { payload, loaded: Mutex::default() }))))
    }
}

impl Shared {
    /// The code without the zero behind it.
    fn code(&self) -> &[u8] {
        &self.payload.code[..self.payload.code.len() - 1]
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
        let payload = Payload { code: self.0.code().to_vec(), ..self.0.payload.clone() };
        Ok(payload.write().into())
    }

    fn inspect_source(&self, format: &str) -> Result<String, Error> {
        let form = &self.0.payload.format;
        match format {
            _ if form != "ptx" => {
                Err(Error::new(ErrorKind::ValueError, format!("CUDA kernels in the form {form:?} have no text")))
            }
            "" | "ptx" => Ok(String::from_utf8_lossy(self.0.code()).into_owned()),
            _ => {
                Err(Error::new(ErrorKind::ValueError, format!("CUDA kernels are shown as \"ptx\", not as {format:?}")))
            }
        }
    }
}

impl Shared {
    fn call(&self, index: usize, args: &[AnyView<'_>]) -> Result<(), Error> {
        let (name, info) = &self.payload.kernels[index];
        let call = Call::of("CUDA", Device::CUDA, name, info, args)?;
        let loaded = self.loaded(call.device)?;
        loaded.launch(name, loaded.function(index, &info.name)?, &call)
    }

    fn loaded(&self, device: Device) -> Result<Arc<Loaded>, Error> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = loaded.get(&device) {
            return Ok(Arc::clone(known));
        }
        let made = Arc::new(self.load(device)?);
        loaded.insert(device, Arc::clone(&made));
        Ok(made)
    }

    fn load(&self, device: Device) -> Result<Loaded, Error> {
        let opened = opened(device)?;
        let (mut module, mut log) = (std::ptr::null_mut(), vec![0_u8; 16 << 10]);
        let mut options = [JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES];
        let room = std::ptr::without_provenance_mut(log.len());
        let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), room];
        // SAFETY: a zero stands behind the code; two options and their values are given, the log and its room.
        let code = unsafe {
            let code = self.payload.code.as_ptr().cast();
            (opened.driver.load_module)(&raw mut module, code, 2, options.as_mut_ptr(), values.as_mut_ptr())
        };
        opened.check("load a module of kernels", code).map_err(|error| {
            let log = log.split(|byte| *byte == 0).next().unwrap_or_default();
            let log = String::from_utf8_lossy(log);
            let log = log.trim();
            Error::new(error.kind(), format!("{}{}{log}", error.message(), if log.is_empty() { "" } else { "\n" }))
        })?;
        Ok(Loaded { opened, module, functions: Mutex::default() })
    }
}

impl Loaded {
    fn function(&self, index: usize, name: &str) -> Result<CudaFunction, Error> {
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = functions.get(&index) {
            return Ok(*known);
        }
        let text = CString::new(name).map_err(|_| refused(name, "its name has a NUL in it"))?;
        let mut function = std::ptr::null_mut();
        // SAFETY: the module is live, and the name ends with a zero.
        let code = unsafe { (self.opened.driver.function)(&raw mut function, self.module, text.as_ptr()) };
        self.opened.check(&format!("find the kernel {name}"), code)?;
        functions.insert(index, CudaFunction(function));
        Ok(CudaFunction(function))
    }

    fn launch(&self, name: &str, function: CudaFunction, call: &Call) -> Result<(), Error> {
        let small = |sizes: &[usize; 3]| {
            let sizes = sizes.map(u32::try_from);
            let [Ok(x), Ok(y), Ok(z)] = sizes else { return Err(refused(name, "more threads than can be counted")) };
            Ok([x, y, z])
        };
        let ([bx, by, bz], [tx, ty, tz]) = (small(&call.blocks)?, small(&call.threads)?);
        let stream = raw(Cuda.current_stream(call.device));
        let mut values: Vec<*mut c_void> =
            call.values.iter().map(|value| value.bytes().as_ptr().cast_mut().cast()).collect();
        let none = std::ptr::null_mut();
        // SAFETY: the function is one of the live module; a value is given for each of its parameters, as who made the module says, and
        // the driver copies them.
        let code = unsafe {
            (self.opened.driver.launch)(function.0, bx, by, bz, tx, ty, tz, 0, stream, values.as_mut_ptr(), none)
        };
        if code == SUCCESS {
            return Ok(());
        }
        let (blocks, threads) = (call.blocks, call.threads);
        self.opened.check(&format!("launch the kernel {name} over {blocks:?} blocks of {threads:?} threads"), code)
    }
}
