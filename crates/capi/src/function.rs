//! Functions of the program that models call.
//!
//! A callback gets values that are valid during the call, and makes a value of its own or fails. Why it failed is the
//! thread's last error: one that a function of this interface left, or one that the callback set itself.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use relaxide_ffi::{Any, AnyView, Error, ErrorKind, Function, register_global, remove_global};

use crate::border::{guard, null, text};
use crate::error;
use crate::tensor::Release;
use crate::value::RelaxideValue;

/// A function of the program: 0 with the result (null for none), or another number with the thread's last error.
pub type RelaxideCallback = unsafe extern "C" fn(
    context: *mut c_void,
    args: *const *const RelaxideValue,
    num_args: usize,
    result: *mut *mut RelaxideValue,
) -> c_int;

/// A callback with its context, which is released with it.
struct Callback {
    call: RelaxideCallback,
    /// Set when the function is in the table: a failure before leaves the context to the caller.
    entered: AtomicBool,
    release: Option<Release>,
    context: *mut c_void,
}

// SAFETY: the interface says that any thread may call and release; the context is not followed here.
unsafe impl Send for Callback {}
// SAFETY: as above.
unsafe impl Sync for Callback {}

impl Drop for Callback {
    fn drop(&mut self) {
        if let Some(release) = self.release.filter(|_| self.entered.load(Ordering::Acquire)) {
            // SAFETY: the function is gone, and this is the only call.
            unsafe { release(self.context) };
        }
    }
}

impl Callback {
    fn run(&self, args: &[AnyView<'_>]) -> Result<Any, Error> {
        let owned: Vec<RelaxideValue> = args.iter().map(|arg| RelaxideValue::new(Any::from(*arg))).collect();
        let borrowed: Vec<*const RelaxideValue> = owned.iter().map(std::ptr::from_ref).collect();
        let failures = error::failures();
        let mut result = std::ptr::null_mut();
        // SAFETY: the interface's contract: the callback may be called with its context; the values live during the call.
        let code = unsafe { (self.call)(self.context, borrowed.as_ptr(), borrowed.len(), &raw mut result) };
        if code != 0 {
            return Err(error::since(failures).unwrap_or_else(|| unexplained(code)));
        }
        if result.is_null() {
            return Ok(Any::none());
        }
        // SAFETY: the interface's contract: the result is a handle of this library, given up by the callback.
        Ok(unsafe { Box::from_raw(result) }.into_value())
    }
}

fn unexplained(code: c_int) -> Error {
    let message = format!("a function of the program failed with code {code} and set no error (relaxide_error_set)");
    Error::new(ErrorKind::RuntimeError, message)
}

/// Enters a function of the program under a name that models call. If this fails, `release` is not called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_function_register(
    name: *const c_char,
    call: Option<RelaxideCallback>,
    release: Option<Release>,
    context: *mut c_void,
) -> c_int {
    guard(|| {
        // SAFETY: the interface's contract.
        let name = unsafe { text(name, "name")? };
        let call = call.ok_or_else(|| null("call"))?;
        let callback = Arc::new(Callback { call, entered: AtomicBool::new(false), release, context });
        let body = callback.clone();
        register_global(name, Function::new(move |args| body.run(args)))?;
        callback.entered.store(true, Ordering::Release);
        Ok(())
    })
}

/// Takes the function of a name out again. Models that have found it keep it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_function_remove(name: *const c_char) -> c_int {
    guard(|| {
        // SAFETY: the interface's contract.
        let name = unsafe { text(name, "name")? };
        let unknown = || Error::new(ErrorKind::KeyError, format!("no function is entered as {name:?}"));
        remove_global(name).map(drop).ok_or_else(unknown)
    })
}

/// Sets the calling thread's last error: what a callback says before it fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_error_set(kind: *const c_char, message: *const c_char) -> c_int {
    guard(|| {
        // SAFETY: the interface's contract.
        let (kind, message) = unsafe { (text(kind, "kind")?, text(message, "message")?) };
        error::set(&Error::new(kind, message));
        Ok(())
    })
}
