//! What a forked child needs of the process before it.
//!
//! `fork` copies the memory of a process with one of its threads. A lock that another thread held stays locked in the child
//! for ever, and threads that others wait for are not there. So whoever owns such a thing says here what to do: take its
//! locks before the fork and give them back behind it, in both processes ([`at_fork`]); or begin anew in the child.
//!
//! Python's servers fork with models loaded (`gunicorn --preload`, `multiprocessing`).

use std::sync::{Arc, Mutex, Once, PoisonError};

use relaxide_ffi::fork::{Held, hold};

#[cfg(feature = "memory")]
use crate::memory;
use crate::{library, threads};

/// What is done around a fork. `prepare` is called before it; what it gives back is called behind it, and told on which
/// side.
pub struct AtFork {
    /// Takes locks; gives back what lets go of them.
    pub prepare: fn() -> Box<dyn FnOnce(Side)>,
}

/// One of the two processes behind a fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The process that forked.
    Parent,
    /// The new one, with one thread.
    Child,
}

/// What is done, in the order in which it was registered: from the bottom up.
static REGISTERED: Mutex<Vec<AtFork>> = Mutex::new(Vec::new());

/// What lets go behind the fork that is under way. Only the forking thread comes here: [`REGISTERED`] is held meanwhile.
#[cfg(unix)]
struct UnderWay(std::cell::UnsafeCell<Option<Begun>>);

#[cfg(unix)]
type Begun = (std::sync::MutexGuard<'static, Vec<AtFork>>, Vec<Box<dyn FnOnce(Side)>>);

// SAFETY: the cell is touched only by the thread that holds the lock of `REGISTERED`.
#[cfg(unix)]
unsafe impl Sync for UnderWay {}

#[cfg(unix)]
static UNDER_WAY: UnderWay = UnderWay(std::cell::UnsafeCell::new(None));

/// Makes forks of this process safe for what this crate and the one below it own.
pub(crate) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[cfg(unix)]
        // SAFETY: the three functions live as long as the process.
        unsafe {
            libc::pthread_atfork(Some(before), Some(behind_in_parent), Some(behind_in_child))
        };
        at_fork(AtFork { prepare: || let_go_of(relaxide_ffi::fork::hold_tables()) });
        at_fork(AtFork { prepare: library::hold_for_fork });
        #[cfg(feature = "memory")]
        at_fork(AtFork { prepare: memory::hold_for_fork });
        at_fork(AtFork { prepare: threads::prepare_fork });
    });
}

/// What lets go of locks on both sides.
pub fn let_go_of(held: Vec<Held>) -> Box<dyn FnOnce(Side)> {
    Box::new(move |_| drop(held))
}

/// Holds a lock that an object owns. `None` if it cannot be had in time.
pub fn hold_in<O: 'static, T: 'static>(owner: &Arc<O>, lock: fn(&O) -> &Mutex<T>) -> Option<Held> {
    let owner = Arc::clone(owner);
    // SAFETY: the owner is kept longer than the guard, and an `Arc`'s content does not move.
    let mutex: &'static Mutex<T> = unsafe { &*std::ptr::from_ref(lock(&owner)) };
    let guard = hold(mutex)?;
    // Fields are dropped in order: the guard before its mutex.
    Some(Box::new((guard, owner)))
}

/// Adds to what is done around each fork of this process.
pub fn at_fork(hook: AtFork) {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).push(hook);
}

#[cfg(unix)]
extern "C" fn before() {
    let registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    // From the top of the house down: what is made when it is first used, a lock's table among it, may need what lies below it.
    let held = registered.iter().rev().map(|hook| (hook.prepare)()).collect();
    // SAFETY: the lock is held, so nobody else is here.
    unsafe { *UNDER_WAY.0.get() = Some((registered, held)) };
}

#[cfg(unix)]
extern "C" fn behind_in_parent() {
    behind(Side::Parent);
}

#[cfg(unix)]
extern "C" fn behind_in_child() {
    behind(Side::Child);
}

#[cfg(unix)]
fn behind(side: Side) {
    // SAFETY: `before` was called on this thread, which still holds the lock.
    let Some((registered, held)) = (unsafe { (*UNDER_WAY.0.get()).take() }) else { return };
    // What was taken last is let go of first.
    held.into_iter().rev().for_each(|let_go| let_go(side));
    drop(registered);
}
