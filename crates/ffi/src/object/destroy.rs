//! Destroying objects that hold objects.
//!
//! The last reference to an object releases what it holds, which may be the last reference to the next object, and so on: a
//! chain of a million nodes would take a million frames of the native stack. Behind a depth the rest is put aside and
//! destroyed from the outermost call.

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};

use super::header::{DESTROY, Deleter, FREE};

/// How deep destruction goes before it puts aside. A level takes three small frames.
const MAX_DEPTH: u32 = 64;
/// The mark, beside the depth, that something was put aside.
const HAS_ASIDE: u32 = 1 << 31;

/// Objects whose destruction was put aside, with what asks for it.
type Aside = Vec<(*mut c_void, Deleter, c_int)>;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static ASIDE: RefCell<Aside> = const { RefCell::new(Vec::new()) };
}

/// Has `end` end an object, now or before the outermost destruction is over.
///
/// # Safety
/// `end` may be called once with the object and the flags, by this thread.
#[inline]
pub(crate) unsafe fn nested(object: *mut c_void, end: Deleter, flags: c_int) {
    DEPTH.with(|state| {
        let before = state.get();
        let depth = before & !HAS_ASIDE;
        // Where destruction and release are asked for apart, the second does not wait for the first.
        if depth >= MAX_DEPTH && flags == DESTROY | FREE && put_aside(object, end, flags) {
            state.set(before | HAS_ASIDE);
            return;
        }
        state.set(before + 1);
        // SAFETY: passed on to the caller.
        unsafe { end(object, flags) };
        // The outermost level stays open while it empties the aside, so that what that destroys comes here too.
        if depth == 0 && state.get() & HAS_ASIDE != 0 {
            destroy_aside();
            state.set(0);
        } else {
            state.set(state.get() - 1);
        }
    });
}

/// Keeps an object to be destroyed later; false where the thread ends and its variables are gone.
#[cold]
fn put_aside(object: *mut c_void, end: Deleter, flags: c_int) -> bool {
    ASIDE.try_with(|aside| aside.borrow_mut().push((object, end, flags))).is_ok()
}

#[cold]
fn destroy_aside() {
    while let Ok(Some((object, end, flags))) = ASIDE.try_with(|aside| aside.borrow_mut().pop()) {
        // SAFETY: the counting rules asked for this once, and it was put aside instead.
        unsafe { end(object, flags) };
    }
}

#[cfg(test)]
mod tests {
    use crate::{Any, Array};

    /// As deep as no stack is.
    const DEEP: usize = 2_000_000;

    fn chain() -> Any {
        (0..DEEP).fold(Any::none(), |inner, _| Array::from_iter([inner]).into())
    }

    #[test]
    fn a_long_chain_is_destroyed() {
        drop(chain());
    }

    #[test]
    fn a_chain_with_two_holders_is_destroyed_by_the_last() {
        let first = chain();
        let second = first.clone();
        drop(first);
        assert!(second.to::<Array>().is_ok());
    }

    // WASI has no threads.
    #[cfg(not(target_family = "wasm"))]
    #[test]
    fn a_chain_is_destroyed_while_its_thread_ends() {
        thread_local! {
            static KEPT: std::cell::RefCell<Option<Any>> = const { std::cell::RefCell::new(None) };
        }
        let depth = 2_000;
        let inner = (0..depth).fold(Any::none(), |inner, _| Array::from_iter([inner]).into());
        std::thread::spawn(move || KEPT.with(|kept| *kept.borrow_mut() = Some(inner))).join().unwrap();
    }
}
