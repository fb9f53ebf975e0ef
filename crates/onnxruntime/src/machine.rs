//! What this library is and runs on, and objects that say something of memory, of which nothing follows here.

use std::ffi::{c_char, c_int};

use crate::border::{array, check_place, put};
use crate::handle::{Handle, HandleKind, put_new, release};
use crate::memory::{allocate_array, allocate_text, default_allocator, free};
use crate::options::PROVIDER;
use crate::status::{OrtStatus, guard};

/// The version of ONNX Runtime whose interface this is, for C.
pub const VERSION: &std::ffi::CStr = c"1.31.0";

/// What this is, for C.
const BUILD: &str = concat!("Relaxide ", env!("CARGO_PKG_VERSION"), "\0");

pub extern "C" fn build_info() -> *const c_char {
    BUILD.as_ptr().cast()
}

pub unsafe extern "C" fn providers(out: *mut *mut *mut c_char, count: *mut c_int) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        check_place(out)?;
        put(count, 1)?;
        let name = allocate_text(default_allocator(), PROVIDER)?;
        put(out, allocate_array(default_allocator(), &[name])?)
    })
}

pub unsafe extern "C" fn release_providers(list: *mut *mut c_char, count: c_int) -> *mut OrtStatus {
    // SAFETY: the interface's contract: the list is that of `providers`.
    guard(|| unsafe {
        for name in array(list, usize::try_from(count).unwrap_or(0), "providers")? {
            free(default_allocator(), name.cast());
        }
        free(default_allocator(), list.cast());
        Ok(())
    })
}

pub unsafe extern "C" fn gpu_device(out: *mut c_int) -> *mut OrtStatus {
    // SAFETY: the interface's contract. There is none; zero is what builds without one say.
    guard(|| unsafe { put(out, 0) })
}

/// Weights that sessions share: they lay them out when they are compiled, so it stays empty.
pub struct Container;

/// The same for C.
pub type OrtPrepackedWeightsContainer = Handle<Container>;

impl HandleKind for Container {
    const NAME: &str = "OrtPrepackedWeightsContainer";
}

pub unsafe extern "C" fn create_container(out: *mut *mut OrtPrepackedWeightsContainer) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put_new(out, Container) })
}

pub unsafe extern "C" fn release_container(container: *mut OrtPrepackedWeightsContainer) {
    // SAFETY: the interface's contract.
    unsafe { release(container) }
}

/// How an allocator is to grow; that of the runtime grows by itself.
pub struct Arena;

/// The same for C.
pub type OrtArenaCfg = Handle<Arena>;

impl HandleKind for Arena {
    const NAME: &str = "OrtArenaCfg";
}

pub unsafe extern "C" fn create_arena(
    _limit: usize,
    _strategy: c_int,
    _first_chunk: c_int,
    _largest_waste: c_int,
    out: *mut *mut OrtArenaCfg,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put_new(out, Arena) })
}

pub unsafe extern "C" fn create_arena_of_keys(
    _keys: *const *const c_char,
    _values: *const usize,
    _count: usize,
    out: *mut *mut OrtArenaCfg,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put_new(out, Arena) })
}

pub unsafe extern "C" fn release_arena(arena: *mut OrtArenaCfg) {
    // SAFETY: the interface's contract.
    unsafe { release(arena) }
}
