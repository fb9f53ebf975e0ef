//! Asking whether what runs is to stop: because the user wants to interrupt, or because whoever asked for it has cancelled it.
//!
//! A front end with an interpreter lends three functions of it by name; without them no user interrupts. What is done for somebody
//! who may cancel it runs within [`stoppable`]. Loops that run long call [`check`] now and then.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::fork::{self, Held};
use crate::{Error, ErrorKind};

/// What a pending interrupt is called; the front end has its own exception set and raises that.
pub const ALREADY_SET: &str = "EnvErrorAlreadySet";

/// The kind of an error of what was cancelled.
pub const CANCELLED: &str = "CancelledError";

thread_local! {
    /// Flags of what this thread is doing, outermost first.
    static STOPS: RefCell<Vec<Arc<AtomicBool>>> = const { RefCell::new(Vec::new()) };
}

/// Does work that is to stop when a flag is set: [`check`] fails then, in this thread.
pub fn stoppable<T>(stop: &Arc<AtomicBool>, work: impl FnOnce() -> T) -> T {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            STOPS.with_borrow_mut(Vec::pop);
        }
    }
    STOPS.with_borrow_mut(|stops| stops.push(Arc::clone(stop)));
    let _leave = Leave;
    work()
}

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

/// Fails if what this thread does is to stop. That costs next to nothing, and asks no front end.
pub fn check_stopped() -> Result<(), Error> {
    match STOPS.with_borrow(|stops| stops.iter().any(|stop| stop.load(Ordering::Relaxed))) {
        true => Err(Error::new(CANCELLED, "the call was cancelled")),
        false => Ok(()),
    }
}

/// Fails if the user wants to interrupt, or if what this thread does is to stop.
pub fn check() -> Result<(), Error> {
    check_stopped()?;
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

// WASI has no threads.
#[cfg(all(test, not(target_family = "wasm")))]
mod tests {
    use super::*;

    #[test]
    fn what_is_cancelled_fails_where_it_asks_and_nothing_else_does() {
        let (outer, inner) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        stoppable(&outer, || {
            stoppable(&inner, || {
                assert!(check().is_ok());
                inner.store(true, Ordering::Relaxed);
                assert_eq!(check().unwrap_err().kind(), CANCELLED);
            });
            assert!(check().is_ok(), "what was cancelled is over");
            outer.store(true, Ordering::Relaxed);
            assert!(stoppable(&Arc::default(), check).is_err(), "what is within it is cancelled too");
            std::thread::scope(|scope| scope.spawn(|| assert!(check().is_ok())).join().unwrap());
        });
        assert!(check().is_ok());
    }
}
