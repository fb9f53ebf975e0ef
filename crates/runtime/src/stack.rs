//! How much of its native stack a thread has left.
//!
//! Programs call functions that call programs, and how deep that goes is decided by the program: who calls out asks first,
//! so that the depth ends in an error and not with the process.

use std::cell::Cell;
#[cfg(unix)]
use std::ffi::c_void;
use std::ops::Range;

/// What is kept back for functions that do not ask, on stacks that are large enough.
const RESERVE: usize = 256 << 10;

thread_local! {
    /// The addresses of the thread's stack that are the reserve; none where the system does not tell.
    static KEPT_BACK: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// Whether so little of the thread's stack is left that nothing deeper should be called.
#[inline]
pub fn is_low() -> bool {
    let here = 0u8;
    let (from, to) = KEPT_BACK.get().unwrap_or_else(find);
    // On a stack that is not the thread's own, as coroutines have, nothing is known.
    (from..to).contains(&(&raw const here as usize))
}

/// Asks the system, once for a thread.
#[cold]
fn find() -> (usize, usize) {
    let kept = own_stack().map_or((0, 0), |stack| (stack.start, stack.start + (stack.len() / 2).min(RESERVE)));
    KEPT_BACK.set(Some(kept));
    kept
}

#[cfg(target_os = "linux")]
fn own_stack() -> Option<Range<usize>> {
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut address, mut size, mut guard) = (std::ptr::null_mut::<c_void>(), 0, 0);
    // SAFETY: the attributes are initialised by the first call, read if it succeeds, and then released.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let found = libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut address, &raw mut size);
        // The guard pages lie at the lower end; whether they count to the stack differs between systems.
        libc::pthread_attr_getguardsize(attributes.as_ptr(), &raw mut guard);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        (found == 0).then(|| address as usize..address as usize + size).map(|stack| stack.start + guard..stack.end)
    }
}

#[cfg(target_os = "macos")]
fn own_stack() -> Option<Range<usize>> {
    // SAFETY: both calls only read what the system knows of the calling thread.
    unsafe {
        let thread = libc::pthread_self();
        let highest = libc::pthread_get_stackaddr_np(thread) as usize;
        Some(highest.checked_sub(libc::pthread_get_stacksize_np(thread))?..highest)
    }
}

/// The stack in the module's memory, for what has an address. The engine has one of its own beside it, and ends a call that
/// outgrows that with an exception.
#[cfg(target_family = "wasm")]
fn own_stack() -> Option<Range<usize>> {
    unsafe extern "C" {
        static __stack_low: u8;
        static __stack_high: u8;
    }
    Some((&raw const __stack_low).addr()..(&raw const __stack_high).addr())
}

#[cfg(not(any(target_os = "linux", target_os = "macos", target_family = "wasm")))]
fn own_stack() -> Option<Range<usize>> {
    None
}

// WASI has no threads.
#[cfg(all(test, not(target_family = "wasm")))]
mod tests {
    use super::*;

    fn deep(levels: usize) -> usize {
        let used = std::hint::black_box([0u8; 4096]);
        if levels == 0 || is_low() { levels } else { deep(levels - 1) + usize::from(used[0]) }
    }

    #[test]
    fn depth_ends_before_the_stack_does() {
        for (asked, least) in [(1 << 20, 50), (128 << 10, 3)] {
            let thread = std::thread::Builder::new().stack_size(asked);
            let thread = thread.spawn(move || (deep(100_000), own_stack().map_or(asked, |stack| stack.len()))).unwrap();
            let (levels_left, size) = thread.join().unwrap();
            // The system may hand out the stack of a thread that ended, which can be larger than the one asked for.
            let reached = 100_000 - levels_left;
            assert!((least..size / 4096).contains(&reached), "{reached} levels on {size} bytes");
        }
    }
}
