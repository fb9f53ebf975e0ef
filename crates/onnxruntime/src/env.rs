//! The environment: where messages go. Sessions need nothing else of it.

use std::ffi::{CString, c_char, c_int, c_void};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::border::{c_string, check_place, text};
use crate::handle::{Handle, HandleKind, at, at_mut, put_new, release};
use crate::pairs::OrtKeyValuePairs;
use crate::status::{OrtStatus, Result, guard, invalid};

/// What the caller gives to be told of warnings.
pub type LoggingFunction =
    unsafe extern "C" fn(*mut c_void, c_int, *const c_char, *const c_char, *const c_char, *const c_char);

/// The severity of warnings.
const WARNING: c_int = 2;

/// Where warnings go: to the caller's function, or to the standard error.
#[derive(Debug)]
pub struct Log {
    function: Option<LoggingFunction>,
    param: *mut c_void,
    id: CString,
    least: AtomicI32,
}

// SAFETY: the interface says that the function is called from any thread; its parameter is not followed here.
unsafe impl Send for Log {}
// SAFETY: as above.
unsafe impl Sync for Log {}

impl Log {
    /// Where warnings of a session go that has a function of its own.
    pub fn to_function(function: LoggingFunction, param: *mut c_void) -> Log {
        Log { function: Some(function), param, id: CString::default(), least: AtomicI32::new(WARNING) }
    }

    /// Says what is not as it should be, and stops nobody.
    pub fn warn(&self, message: &str) {
        if self.least.load(Ordering::Relaxed) > WARNING {
            return;
        }
        let Some(function) = self.function else {
            // Where there is no standard error, nobody is told.
            let _ = writeln!(std::io::stderr(), "relaxide: warning: {message}");
            return;
        };
        let message = c_string(message);
        // SAFETY: the interface's contract; the texts live through the call.
        unsafe {
            function(self.param, WARNING, c"relaxide".as_ptr(), self.id.as_ptr(), c"".as_ptr(), message.as_ptr());
        }
    }
}

/// The environment.
#[derive(Debug)]
pub struct Env {
    /// Where warnings go.
    pub log: Arc<Log>,
}

/// The environment for C.
pub type OrtEnv = Handle<Env>;

impl HandleKind for Env {
    const NAME: &str = "OrtEnv";
}

/// How many threads sessions are to have that have none of their own. They share those of the process in any case.
#[derive(Clone, Debug, Default)]
pub struct ThreadingOptions {
    intra_op: c_int,
}

/// The same for C.
pub type OrtThreadingOptions = Handle<ThreadingOptions>;

impl HandleKind for ThreadingOptions {
    const NAME: &str = "OrtThreadingOptions";
}

/// # Safety
/// The texts are texts of C, and the function is callable, or they are null.
unsafe fn make(
    function: Option<LoggingFunction>,
    param: *mut c_void,
    least: c_int,
    id: *const c_char,
    threading: *const OrtThreadingOptions,
    out: *mut *mut OrtEnv,
) -> Result<()> {
    check_place(out)?;
    if !(0..=4).contains(&least) {
        return Err(invalid(format!("{least} is no severity of messages: 0 (verbose) to 4 (fatal) is expected")));
    }
    // SAFETY: the caller's promise.
    let id = c_string(unsafe { text(id, "logid")? });
    if !threading.is_null() {
        // SAFETY: as above.
        set_threads(unsafe { at(threading, "threading options")? }.intra_op)?;
    }
    let log = Arc::new(Log { function, param, id, least: AtomicI32::new(least) });
    // SAFETY: as above.
    unsafe { put_new(out, Env { log }) }
}

/// Sets how many threads kernels use; zero leaves it as it is.
pub fn set_threads(count: c_int) -> Result<()> {
    match usize::try_from(count) {
        Ok(0) => Ok(()),
        Ok(count) => Ok(relaxide::set_num_threads(count)?),
        Err(_) => Err(invalid(format!("{count} threads can run nothing; give 1 or more, or 0 for as many as fit"))),
    }
}

pub unsafe extern "C" fn create(least: c_int, id: *const c_char, out: *mut *mut OrtEnv) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { make(None, std::ptr::null_mut(), least, id, std::ptr::null(), out) })
}

pub unsafe extern "C" fn create_with_logger(
    function: Option<LoggingFunction>,
    param: *mut c_void,
    least: c_int,
    id: *const c_char,
    out: *mut *mut OrtEnv,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { make(function, param, least, id, std::ptr::null(), out) })
}

pub unsafe extern "C" fn create_with_threads(
    least: c_int,
    id: *const c_char,
    threading: *const OrtThreadingOptions,
    out: *mut *mut OrtEnv,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { make(None, std::ptr::null_mut(), least, id, threading, out) })
}

pub unsafe extern "C" fn create_with_logger_and_threads(
    function: Option<LoggingFunction>,
    param: *mut c_void,
    least: c_int,
    id: *const c_char,
    threading: *const OrtThreadingOptions,
    out: *mut *mut OrtEnv,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { make(function, param, least, id, threading, out) })
}

/// `OrtEnvCreationOptions`, as far as it is read.
#[repr(C)]
pub struct OrtEnvCreationOptions {
    version: u32,
    least: i32,
    id: *const c_char,
    function: Option<LoggingFunction>,
    param: *mut c_void,
    threading: *const OrtThreadingOptions,
    config: *const OrtKeyValuePairs,
}

pub unsafe extern "C" fn create_with_options(
    options: *const OrtEnvCreationOptions,
    out: *mut *mut OrtEnv,
) -> *mut OrtStatus {
    guard(|| {
        // SAFETY: the interface's contract.
        let options = unsafe { options.as_ref() }.ok_or_else(|| invalid("the options are null"))?;
        if !options.config.is_null() {
            // SAFETY: as above. Its entries are for providers, and none of them is here.
            unsafe { at(options.config, "config entries")? };
        }
        // SAFETY: as above.
        unsafe { make(options.function, options.param, options.least, options.id, options.threading, out) }
    })
}

pub unsafe extern "C" fn update_log_level(env: *mut OrtEnv, least: c_int) -> *mut OrtStatus {
    guard(|| {
        // SAFETY: the interface's contract.
        unsafe { at(env, "env")? }.log.least.store(least, Ordering::Relaxed);
        Ok(())
    })
}

/// `EnableTelemetryEvents`, `DisableTelemetryEvents`: nothing is reported to anybody. `SetLanguageProjection`: nobody asks.
pub unsafe extern "C" fn accept_env(env: *const OrtEnv, _more: c_int) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { at(env, "env").map(drop) })
}

pub unsafe extern "C" fn release_env(env: *mut OrtEnv) {
    // SAFETY: the interface's contract.
    unsafe { release(env) }
}

pub unsafe extern "C" fn create_threading(out: *mut *mut OrtThreadingOptions) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put_new(out, ThreadingOptions::default()) })
}

pub unsafe extern "C" fn set_global_intra_op(options: *mut OrtThreadingOptions, count: c_int) -> *mut OrtStatus {
    guard(|| {
        // SAFETY: the interface's contract.
        unsafe { at_mut(options, "threading options")? }.intra_op = count;
        Ok(())
    })
}

/// Options of the threads that change nothing here: how many operators run side by side, spinning, denormal numbers.
pub unsafe extern "C" fn accept_threading(options: *mut OrtThreadingOptions, _value: c_int) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { at(options, "threading options").map(drop) })
}

pub unsafe extern "C" fn release_threading(options: *mut OrtThreadingOptions) {
    // SAFETY: the interface's contract.
    unsafe { release(options) }
}
