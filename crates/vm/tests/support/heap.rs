//! Counts what a thread takes from the heap, whoever takes it.
//!
//! Objects come from libc's `malloc`, as the C ABI has it, and everything else from Rust's allocator, which asks `malloc`
//! too. So a test program that includes this file has a `malloc` of its own, in front of libc's: it counts and asks
//! libc's under its other name. Where memory is watched by a sanitizer, which has its own, nothing is counted.
#![allow(dead_code, reason = "each test file is a program of its own and uses a part")]

use std::cell::Cell;

/// What was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// How often.
    pub requests: usize,
    /// How many bytes, whether or not they were given back meanwhile.
    pub bytes: usize,
    /// The largest request.
    pub largest: usize,
}

thread_local! {
    static TAKEN: Cell<Taken> = const { Cell::new(Taken { requests: 0, bytes: 0, largest: 0 }) };
}

/// Whether anything is counted.
pub const COUNTS: bool = cfg!(all(target_os = "linux", target_env = "gnu", not(relaxide_sanitizer)));

/// Runs something and says what it took.
pub fn taken_by<T>(body: impl FnOnce() -> T) -> (T, Taken) {
    TAKEN.set(Taken::default());
    let result = body();
    (result, TAKEN.replace(Taken::default()))
}

#[cfg(all(target_os = "linux", target_env = "gnu", not(relaxide_sanitizer)))]
mod malloc {
    use std::ffi::{c_int, c_void};

    use super::TAKEN;

    unsafe extern "C" {
        fn __libc_malloc(size: usize) -> *mut c_void;
        fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
        fn __libc_realloc(old: *mut c_void, size: usize) -> *mut c_void;
        fn __libc_memalign(alignment: usize, size: usize) -> *mut c_void;
    }

    fn count(size: usize) {
        let mut taken = TAKEN.get();
        taken.requests += 1;
        taken.bytes = taken.bytes.saturating_add(size);
        taken.largest = taken.largest.max(size);
        TAKEN.set(taken);
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
        count(size);
        // SAFETY: the same function under libc's other name.
        unsafe { __libc_malloc(size) }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn calloc(number: usize, size: usize) -> *mut c_void {
        count(number.saturating_mul(size));
        // SAFETY: as above.
        unsafe { __libc_calloc(number, size) }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
        count(size);
        // SAFETY: as above.
        unsafe { __libc_realloc(old, size) }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
        count(size);
        // SAFETY: as above.
        unsafe { __libc_memalign(alignment, size) }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn posix_memalign(place: *mut *mut c_void, alignment: usize, size: usize) -> c_int {
        const NO_MEMORY: c_int = 12;
        count(size);
        // SAFETY: as above.
        let memory = unsafe { __libc_memalign(alignment, size) };
        if memory.is_null() {
            return NO_MEMORY;
        }
        // SAFETY: the caller gives a place for the address.
        unsafe { place.write(memory) };
        0
    }
}
