//! The slot in which a library finds its own module.
//!
//! Code of a library that calls a function by name looks it up in the imports of the module whose address is in this slot.
//! The dynamic linker gives the same library to everybody who opens its file, so there may be several modules and one slot:
//! it leads to the oldest that is alive. All of them were made of the same bytes. The code reads the slot without a lock;
//! what it finds was entered before the module that it was called through, so that whoever calls has seen it complete.

use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

use relaxide_ffi::fork::{self, Held};

use super::module::fill;

/// All that are entered, the oldest first.
static ENTERED: Mutex<Vec<ModuleInSlot>> = Mutex::new(Vec::new());

/// Holds the lock across a fork.
pub(super) fn hold() -> Option<Held> {
    fork::hold(&ENTERED)
}

#[derive(Clone, Copy, PartialEq)]
struct ModuleInSlot {
    slot: usize,
    module: usize,
}

/// A module's place in a slot, until it is dropped.
pub(super) struct Context(ModuleInSlot);

impl Context {
    /// Leads a slot to a module, unless it leads to another.
    ///
    /// # Safety
    /// `slot` is a writable pointer of a library that stays loaded as long as the context is; `module` is the module that
    /// keeps the context.
    pub(super) unsafe fn enter(slot: *mut c_void, module: *mut c_void) -> Self {
        let entry = ModuleInSlot { slot: slot as usize, module: module as usize };
        let mut entered = entered();
        let is_first = entered.iter().all(|other| other.slot != entry.slot);
        entered.push(entry);
        if is_first {
            // SAFETY: the caller's promise.
            unsafe { fill(slot.cast(), module) };
        }
        Self(entry)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let mut entered = entered();
        entered.retain(|entry| *entry != self.0);
        let heir = entered.iter().find(|entry| entry.slot == self.0.slot);
        let heir = heir.map_or(std::ptr::null_mut(), |entry| entry.module as *mut c_void);
        // SAFETY: the library is loaded as long as the context is, as was promised when it was made; the module that is
        // entered has not dropped its context.
        unsafe { fill(self.0.slot as *mut *mut c_void, heir) };
    }
}

fn entered() -> MutexGuard<'static, Vec<ModuleInSlot>> {
    ENTERED.lock().unwrap_or_else(PoisonError::into_inner)
}
