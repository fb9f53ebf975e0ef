//! Where the memory of objects comes from: `malloc`, and for small objects what their thread gave up before.
//!
//! A program on lists makes and ends an object with every step. `malloc` keeps seven blocks of a size where it finds them at
//! once; behind those, making and giving back a block cost more than the rest of the step. So a thread keeps the small blocks
//! that it frees, a list for each size, up to [`KEPT_BYTES`] in all, and takes new ones from there. Each block is one of
//! `malloc`'s own: what is beyond the bound goes back there, and all of it when the thread ends.
//!
//! In front of an object stands the function that frees it, so that another runtime can free what was allocated here, and the
//! other way round. There is one for each size of small blocks, so nothing else has to remember the size.
//!
//! Sanitizers see every use of freed memory only if it is freed: under them nothing is kept.

use std::cell::Cell;
use std::ffi::c_void;

use crate::malloc;

/// What precedes an object: the function that frees its memory.
pub(super) type FreeFunction = unsafe extern "C" fn(body: *mut c_void);
/// The room for that function. It is what objects are aligned to, also where an address takes half of it.
pub(super) const PREFIX: usize = 8;

/// The sizes of small blocks are the multiples of this, less the word that `malloc` has in front of a block.
const STEP: usize = 16;
const WORD: usize = 8;
/// How many sizes are kept: blocks of up to 120 bytes.
const SIZES: usize = 8;
/// How much a thread keeps: the cells of a list of 100,000.
const KEPT_BYTES: usize = 8 << 20;

/// The functions that free blocks of each size.
const FREE: [FreeFunction; SIZES] = [
    free_small::<0>,
    free_small::<1>,
    free_small::<2>,
    free_small::<3>,
    free_small::<4>,
    free_small::<5>,
    free_small::<6>,
    free_small::<7>,
];

/// A free block: it begins with the address of the next.
struct FreeBlock {
    next: *mut FreeBlock,
}

/// The blocks that a thread keeps.
struct ThreadBlocks {
    lists: [Cell<*mut FreeBlock>; SIZES],
    bytes: Cell<usize>,
}

thread_local! {
    static KEPT: ThreadBlocks = const { ThreadBlocks { lists: [const { Cell::new(std::ptr::null_mut()) }; SIZES], bytes: Cell::new(0) } };
}

impl Drop for ThreadBlocks {
    fn drop(&mut self) {
        for list in &self.lists {
            let mut block = list.replace(std::ptr::null_mut());
            while !block.is_null() {
                // SAFETY: the list holds free blocks of `malloc`, each of which begins with the address of the next.
                unsafe {
                    let next = (*block).next;
                    malloc::free(block.cast());
                    block = next;
                }
            }
        }
    }
}

/// How large the blocks of a size are.
const fn block_bytes(size: usize) -> usize {
    (size + 1) * STEP - WORD
}

/// Memory for an object of that many bytes behind its prefix; null if there is none.
pub(super) unsafe extern "C" fn allocate_space(
    size: usize,
    _align: usize,
    _type: i32,
    _context: *mut c_void,
) -> *mut c_void {
    let Some(bytes) = size.checked_add(PREFIX) else { return std::ptr::null_mut() };
    let class = (bytes + WORD - 1) / STEP;
    let (base, free) = match FREE.get(class) {
        Some(free) => (take(class), *free),
        // SAFETY: any size may be asked of `malloc`.
        None => (unsafe { malloc::malloc(bytes) }, free_large as FreeFunction),
    };
    if base.is_null() {
        return base;
    }
    // SAFETY: the block has room for the prefix.
    unsafe {
        base.cast::<FreeFunction>().write(free);
        base.byte_add(PREFIX)
    }
}

/// A block of that size.
#[inline]
fn take(class: usize) -> *mut c_void {
    let kept = KEPT.try_with(|kept| {
        let block = kept.lists[class].get();
        if block.is_null() {
            return block;
        }
        // SAFETY: a block in the list is free memory that begins with the address of the next.
        let next = unsafe { (*block).next };
        prefetch(next);
        kept.lists[class].set(next);
        kept.bytes.set(kept.bytes.get() - block_bytes(class));
        block
    });
    match kept {
        Ok(block) if !block.is_null() => block.cast(),
        // SAFETY: any size may be asked of `malloc`.
        _ => unsafe { malloc::malloc(block_bytes(class)) },
    }
}

/// Has the block that is taken next come into the cache: a long list of them was freed a while ago.
#[inline]
fn prefetch(block: *mut FreeBlock) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction reads nothing, whatever the address is.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(block.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = block;
}

unsafe extern "C" fn free_small<const CLASS: usize>(body: *mut c_void) {
    // SAFETY: `allocate_space` made `body` by adding the prefix to the block.
    let base = unsafe { body.byte_sub(PREFIX) };
    let kept = KEPT.try_with(|kept| {
        let bytes = kept.bytes.get() + block_bytes(CLASS);
        let keeps = bytes <= KEPT_BYTES && !cfg!(relaxide_sanitizer);
        if keeps {
            let block = base.cast::<FreeBlock>();
            // SAFETY: nothing refers to the memory any more, which is aligned as `malloc` aligns and has room for an address.
            unsafe { block.write(FreeBlock { next: kept.lists[CLASS].replace(block) }) };
            kept.bytes.set(bytes);
        }
        keeps
    });
    if !kept.unwrap_or(false) {
        // SAFETY: the block came from `malloc`, and nothing refers to it any more.
        unsafe { malloc::free(base) }
    }
}

unsafe extern "C" fn free_large(body: *mut c_void) {
    // SAFETY: `allocate_space` made `body` by adding the prefix to what `malloc` returned.
    unsafe { malloc::free(body.byte_sub(PREFIX)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_takes_the_smallest_block_that_holds_it() {
        for size in 0..200 {
            // SAFETY: what is allocated is freed by the function in front of it, once.
            unsafe {
                let body = allocate_space(size, 8, 0, std::ptr::null_mut());
                body.cast::<u8>().write_bytes(0xa5, size);
                body.byte_sub(PREFIX).cast::<FreeFunction>().read()(body);
            }
        }
    }

    // WASI has no threads.
    #[cfg(not(target_family = "wasm"))]
    #[test]
    fn what_a_thread_frees_it_takes_again_and_no_other_thread_does() {
        let address = |body: *mut c_void| body as usize;
        // SAFETY: what is allocated is freed once, by the function in front of it.
        unsafe {
            let first = allocate_space(56, 8, 0, std::ptr::null_mut());
            first.byte_sub(PREFIX).cast::<FreeFunction>().read()(first);
            let other = std::thread::spawn(move || address(allocate_space(56, 8, 0, std::ptr::null_mut())));
            let there = other.join().unwrap();
            let again = allocate_space(56, 8, 0, std::ptr::null_mut());
            assert!(cfg!(relaxide_sanitizer) || address(again) == address(first));
            assert_ne!(there, address(again));
            // Freed by this thread, whoever made it.
            let there = there as *mut c_void;
            there.byte_sub(PREFIX).cast::<FreeFunction>().read()(there);
            again.byte_sub(PREFIX).cast::<FreeFunction>().read()(again);
        }
    }

    #[test]
    fn a_thread_keeps_no_more_than_the_bound() {
        let count = 2 * KEPT_BYTES / block_bytes(SIZES - 1);
        // SAFETY: what is allocated is freed once, by the function in front of it.
        unsafe {
            let bodies: Vec<_> = (0..count).map(|_| allocate_space(100, 8, 0, std::ptr::null_mut())).collect();
            for body in bodies {
                body.byte_sub(PREFIX).cast::<FreeFunction>().read()(body);
            }
        }
        KEPT.with(|kept| assert!(kept.bytes.get() <= KEPT_BYTES));
    }
}
