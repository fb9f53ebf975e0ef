//! [`Pages`]: an allocator that ends each tensor, or begins it, at a page that faults.
//!
//! A kernel that reads or writes one element too many mostly does so in memory that is somebody else's, and nothing tells. In a test
//! whose binary allocates by this, the process ends with a signal instead:
//!
//! ```text
//! #[global_allocator]
//! static PAGES: Pages = Pages;
//!
//! │ no access │ … tensor ▐ fill │ no access │        one allocation
//! │ no access │ tensor fill …   │ no access │        the next one
//! ```
//!
//! Tensors and storages are what is aligned to 64 bytes; everything else goes to the system. Since tensors begin at such a
//! multiple, up to 63 bytes lie between their end and the page. They are filled and looked at when the tensor is freed, so that
//! a write there is found too, a read is not.
//!
//! Linux and other systems with `mmap` only. Each allocation costs some microseconds and three pages of addresses.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use relaxide_runtime::device::ALIGNMENT;

/// The allocator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pages;

/// What lies around a tensor within its pages: as a number it is large and negative, as a float tiny.
const FILL: u8 = 0xa5;

/// How many tensors were allocated; every second lies at the end of its pages.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// How many tensors and storages have been put at pages that fault.
pub fn allocated() -> usize {
    COUNT.load(Ordering::Relaxed)
}

fn page() -> usize {
    // SAFETY: this only asks for a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Bytes of the pages between those that fault; nothing where that is no size.
fn inner(bytes: usize, page: usize) -> Option<usize> {
    bytes.max(1).checked_next_multiple_of(page)?.checked_add(2 * page).map(|all| all - 2 * page)
}

/// Whether an allocation is that of a tensor.
fn is_tensor(layout: Layout) -> bool {
    layout.align() == ALIGNMENT
}

// SAFETY: what is aligned as tensors are comes from `mmap` with room for the size behind an aligned start, and goes back there
// by the same arithmetic; all else is the system's.
unsafe impl GlobalAlloc for Pages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !is_tensor(layout) {
            // SAFETY: the caller's promise.
            return unsafe { System.alloc(layout) };
        }
        let page = page();
        let Some(inner) = inner(layout.size(), page) else { return std::ptr::null_mut() };
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping anywhere touches no memory that is in use.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), inner + 2 * page, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return std::ptr::null_mut();
        }
        let base = base.cast::<u8>();
        // SAFETY: all addresses lie in the mapping, which is nobody else's yet.
        unsafe {
            libc::mprotect(base.cast(), page, libc::PROT_NONE);
            libc::mprotect(base.add(page + inner).cast(), page, libc::PROT_NONE);
            let first = base.add(page);
            let gap = if COUNT.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
                (inner - layout.size()) / ALIGNMENT * ALIGNMENT
            } else {
                0
            };
            let start = first.add(gap);
            start.add(layout.size()).write_bytes(FILL, inner - gap - layout.size());
            start
        }
    }

    unsafe fn dealloc(&self, data: *mut u8, layout: Layout) {
        if !is_tensor(layout) {
            // SAFETY: the caller's promise.
            return unsafe { System.dealloc(data, layout) };
        }
        let page = page();
        let Some(inner) = inner(layout.size(), page) else { return };
        // The gap in front is shorter than a page, at whose multiple the inner pages begin.
        let gap = data.addr() % page;
        // SAFETY: `alloc` has put the tensor so many bytes behind the first page that faults, and filled what is behind it.
        unsafe {
            let first = data.sub(gap);
            let behind = std::slice::from_raw_parts(data.add(layout.size()), inner - gap - layout.size());
            if behind.iter().any(|byte| *byte != FILL) {
                // Nothing may allocate here, so there is no message but this.
                const SAID: &str = "memory behind a tensor was written\n";
                libc::write(2, SAID.as_ptr().cast(), SAID.len());
                libc::abort();
            }
            libc::munmap(first.sub(page).cast(), inner + 2 * page);
        }
    }
}
