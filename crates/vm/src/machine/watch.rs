//! What asks for runs to be instrumented call by call: an instrument, or limits.
//!
//! Every call of a machine looks here, so a place that is empty costs one load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use relaxide_ffi::{Any, AnyView, Error, Function};

use super::Vm;
use super::profile::Profile;
use super::stack::Stack;
use crate::limits::Limited;

/// A value that is rarely there.
struct RareCell<T> {
    is_set: AtomicBool,
    value: RwLock<Option<T>>,
}

impl<T> Default for RareCell<T> {
    fn default() -> Self {
        Self { is_set: AtomicBool::new(false), value: RwLock::new(None) }
    }
}

impl<T: Clone> RareCell<T> {
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

/// An instrumented run of a function of the table.
pub(super) type InstrumentedRun =
    fn(&Vm, &mut Stack, usize, &[AnyView<'_>], Option<&mut Profile>) -> Result<Any, Error>;

/// What watches the runs of a machine.
#[derive(Default)]
pub(super) struct Watch {
    /// How they run then: kept by what sets a watch, so that programs that never do are linked without it.
    run: OnceLock<InstrumentedRun>,
    instrument: RareCell<Function>,
    limited: RareCell<Arc<Limited>>,
}

impl Watch {
    /// Whether anything does.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.has_instrument() || self.limited.is_set()
    }

    /// How a run goes that something watches.
    #[inline]
    pub(super) fn instrumented_run(&self) -> Option<InstrumentedRun> {
        if self.is_on() { self.run.get().copied() } else { None }
    }

    #[inline]
    pub(super) fn has_instrument(&self) -> bool {
        self.instrument.is_set()
    }

    pub(super) fn instrument(&self) -> Option<Function> {
        self.instrument.get()
    }

    pub(super) fn set_instrument(&self, instrument: Option<Function>) {
        self.run.get_or_init(|| Vm::run_instrumented);
        self.instrument.set(instrument);
    }

    #[inline]
    pub(super) fn limited(&self) -> Option<Arc<Limited>> {
        self.limited.get()
    }

    pub(super) fn set_limited(&self, limited: Option<Arc<Limited>>) {
        self.run.get_or_init(|| Vm::run_instrumented);
        self.limited.set(limited);
    }
}
