//! What only the runtime inside a WebAssembly module has: memory for its host to write into, the text of a panic, and the
//! builtins that not every module has.
//!
//! A panic ends the call with a trap, of which the host learns nothing but that it was one, so its text is kept where the host
//! finds it. The module must not be used any more then.

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{CString, c_char, c_void};
use std::sync::OnceLock;

use crate::error::c_string;

/// What the host's memory is aligned to.
const ALIGNMENT: usize = 16;

/// Memory for the host to write arguments into, of at least one byte; null if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn relaxide_memory_new(bytes: usize) -> *mut c_void {
    // SAFETY: the layout has a size.
    layout(bytes).map_or(std::ptr::null_mut(), |layout| unsafe { alloc(layout) }).cast()
}

/// Gives such memory back, of which the host says the size again; null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_memory_free(memory: *mut c_void, bytes: usize) {
    if let Some(layout) = layout(bytes).filter(|_| !memory.is_null()) {
        // SAFETY: the memory was allocated with the same layout, and is given up.
        unsafe { dealloc(memory.cast(), layout) };
    }
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.max(1), ALIGNMENT).ok()
}

static PANIC: OnceLock<CString> = OnceLock::new();

/// Has the text of a panic kept. Called once, before all other functions.
#[unsafe(no_mangle)]
pub extern "C" fn relaxide_start() {
    std::panic::set_hook(Box::new(|info| {
        let _ = PANIC.set(c_string(&info.to_string()));
    }));
}

/// What the module's panic said; null if there was none.
#[unsafe(no_mangle)]
pub extern "C" fn relaxide_panic_message() -> *const c_char {
    PANIC.get().map_or(std::ptr::null(), |text| text.as_ptr())
}

/// Enters the builtins that few programs call; in modules whose program calls one, right behind [`relaxide_start`].
#[unsafe(no_mangle)]
pub extern "C" fn relaxide_optional_builtins() {
    relaxide_vm::enter_optional_builtins();
}
