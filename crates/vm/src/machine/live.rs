//! From the handle that programs see back to the machine.
//!
//! Compiled code passes `%vm` around as a plain address, and it comes back as the first argument of builtins. An address
//! from outside is not followed; it is looked up among the machines that are alive.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, PoisonError, RwLock, Weak};

use relaxide_ffi::abi::type_index;
use relaxide_ffi::fork::{self, Held};
use relaxide_ffi::{AnyView, Error, ErrorKind};

use super::Vm;

static LIVE: LazyLock<RwLock<HashMap<usize, Weak<Vm>>>> = LazyLock::new(RwLock::default);

/// Holds the table across a fork.
pub(crate) fn hold() -> Option<Held> {
    fork::hold_table(&LIVE)
}

/// Enters a machine.
pub(super) fn enter(vm: &Arc<Vm>) {
    let mut live = LIVE.write().unwrap_or_else(PoisonError::into_inner);
    live.insert(Arc::as_ptr(vm) as usize, Arc::downgrade(vm));
}

/// Takes a machine out that is about to go.
pub(super) fn leave(vm: &Vm) {
    let mut live = LIVE.write().unwrap_or_else(PoisonError::into_inner);
    live.remove(&(std::ptr::from_ref(vm) as usize));
}

/// The machine that a handle means.
pub(crate) fn find(handle: AnyView<'_>) -> Result<Arc<Vm>, Error> {
    if handle.type_index() != type_index::OPAQUE_PTR {
        return Err(Error::type_mismatch("the handle of a virtual machine", handle.type_key()));
    }
    let live = LIVE.read().unwrap_or_else(PoisonError::into_inner);
    let found = live.get(&(handle.raw().word() as usize)).and_then(Weak::upgrade);
    found.ok_or_else(|| Error::new(ErrorKind::ValueError, "the handle is not that of a living virtual machine"))
}
