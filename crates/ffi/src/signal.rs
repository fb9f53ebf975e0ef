//! Asking the front end whether the user wants to interrupt.
//!
//! A front end with an interpreter lends three functions of it by name; without them nothing ever interrupts. Loops that
//! run long call [`check`] now and then.

use std::ffi::{c_int, c_void};
use std::sync::{PoisonError, RwLock};

use crate::fork::{self, Held};
use crate::{Error, ErrorKind};

/// What a pending interrupt is called; the front end has its own exception set and raises that.
pub const ALREADY_SET: &str = "EnvErrorAlreadySet";

type Query = unsafe extern "C" fn() -> c_int;
type Release = unsafe extern "C" fn(state: c_int);

/// The interpreter's functions, once it has lent them.
#[derive(Clone, Copy)]
struct Interpreter {
    check_signals: Option<Query>,
    ensure_lock: Option<Query>,
    release_lock: Option<Release>,
}

static INTERPRETER: RwLock<Interpreter> =
    RwLock::new(Interpreter { check_signals: None, ensure_lock: None, release_lock: None });

/// Holds the lock across a fork.
pub(crate) fn hold() -> Option<Held> {
    fork::hold_table(&INTERPRETER)
}

/// Takes a function of the interpreter by its name in Python's C API; an error for a name that is not used here.
///
/// # Safety
/// `symbol` is that function, or null to withdraw it, and stays callable.
pub unsafe fn register(name: &str, symbol: *mut c_void) -> Result<(), Error> {
    let mut interpreter = INTERPRETER.write().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the caller's promise; a null address is `None`.
    unsafe {
        match name {
            "PyErr_CheckSignals" => {
                interpreter.check_signals = std::mem::transmute::<*mut c_void, Option<Query>>(symbol)
            }
            "PyGILState_Ensure" => interpreter.ensure_lock = std::mem::transmute::<*mut c_void, Option<Query>>(symbol),
            "PyGILState_Release" => {
                interpreter.release_lock = std::mem::transmute::<*mut c_void, Option<Release>>(symbol)
            }
            _ => return Err(Error::new(ErrorKind::ValueError, format!("unknown environment function `{name}`"))),
        }
    }
    Ok(())
}

/// Fails if the user wants to interrupt.
pub fn check() -> Result<(), Error> {
    let interpreter = *INTERPRETER.read().unwrap_or_else(PoisonError::into_inner);
    let (Some(check), Some(ensure), Some(release)) =
        (interpreter.check_signals, interpreter.ensure_lock, interpreter.release_lock)
    else {
        return Ok(());
    };
    // SAFETY: the functions are the interpreter's; the check needs its lock, which the calling thread may not hold.
    let pending = unsafe {
        let state = ensure();
        let pending = check();
        release(state);
        pending
    };
    if pending == 0 { Ok(()) } else { Err(Error::new(ALREADY_SET, "interrupted")) }
}
