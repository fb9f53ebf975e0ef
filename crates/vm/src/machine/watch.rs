//! What asks for runs to be instrumented call by call: an instrument, or limits.
//!
//! Every call of a machine looks here, so a place that is empty costs one load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use relaxide_ffi::Function;

use super::limits::Limited;

/// A value that is rarely there.
struct Place<T> {
    is_set: AtomicBool,
    value: RwLock<Option<T>>,
}

impl<T> Default for Place<T> {
    fn default() -> Self {
        Self { is_set: AtomicBool::new(false), value: RwLock::new(None) }
    }
}

impl<T: Clone> Place<T> {
    fn set(&self, value: Option<T>) {
        let mut place = self.value.write().unwrap_or_else(PoisonError::into_inner);
        self.is_set.store(value.is_some(), Ordering::Relaxed);
        let old = std::mem::replace(&mut *place, value);
        drop(place);
        // Dropped without the lock: the end of a function may run foreign code.
        drop(old);
    }

    #[inline]
    fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }

    /// A copy, for use without the lock.
    #[inline]
    fn get(&self) -> Option<T> {
        if !self.is_set() {
            return None;
        }
        self.value.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What watches the runs of a machine.
#[derive(Default)]
pub(super) struct Watch {
    instrument: Place<Function>,
    limited: Place<Arc<Limited>>,
}

impl Watch {
    /// Whether anything does.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.has_instrument() || self.limited.is_set()
    }

    #[inline]
    pub(super) fn has_instrument(&self) -> bool {
        self.instrument.is_set()
    }

    pub(super) fn instrument(&self) -> Option<Function> {
        self.instrument.get()
    }

    pub(super) fn set_instrument(&self, instrument: Option<Function>) {
        self.instrument.set(instrument);
    }

    #[inline]
    pub(super) fn limited(&self) -> Option<Arc<Limited>> {
        self.limited.get()
    }

    pub(super) fn set_limited(&self, limited: Option<Arc<Limited>>) {
        self.limited.set(limited);
    }
}
