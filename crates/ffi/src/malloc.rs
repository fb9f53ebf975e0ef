//! `malloc` and `free`: what memory comes from that other languages may free.
//!
//! On systems with a C library they are its own. WebAssembly without one has none: there each block carries its size in front
//! of it, and comes from Rust's allocator.

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub(crate) use libc::{free, malloc};

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
pub(crate) use sized::{free, malloc};

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
mod sized {
    use std::alloc::{Layout, alloc, dealloc};
    use std::ffi::c_void;

    /// What blocks are aligned to, and how much stands in front of one.
    const ALIGNMENT: usize = 16;

    fn layout(whole: usize) -> Option<Layout> {
        Layout::from_size_align(whole, ALIGNMENT).ok()
    }

    /// Memory of that many bytes; null if there is none.
    pub(crate) unsafe fn malloc(bytes: usize) -> *mut c_void {
        let whole = bytes.saturating_add(ALIGNMENT);
        let Some(layout) = layout(whole) else { return std::ptr::null_mut() };
        // SAFETY: the layout has a size; the block has room for its own size in front.
        unsafe {
            let block = alloc(layout);
            if block.is_null() {
                return block.cast();
            }
            block.cast::<usize>().write(whole);
            block.add(ALIGNMENT).cast()
        }
    }

    /// Frees memory of [`malloc`]; null is nothing to free.
    pub(crate) unsafe fn free(data: *mut c_void) {
        if data.is_null() {
            return;
        }
        // SAFETY: the caller passes what `malloc` returned, once.
        unsafe {
            let block = data.cast::<u8>().sub(ALIGNMENT);
            if let Some(layout) = layout(block.cast::<usize>().read()) {
                dealloc(block, layout);
            }
        }
    }
}
