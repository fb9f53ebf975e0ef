//! What builtins and closures ask of the machine that runs them, and the way back to it from the handle that programs see.
//!
//! Compiled code passes `%vm` around as a plain address, and it comes back as the first argument of builtins. An address
//! from outside is not followed; it is looked up among the machines that are alive.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, PoisonError, RwLock, Weak};

use relaxide_ffi::abi::type_index;
use relaxide_ffi::fork::{self, Held};
use relaxide_ffi::{Any, AnyView, Device, Error, ErrorKind, Function};
use relaxide_runtime::memory::Buffer;

use crate::closure::Closure;

/// The index of the device that values lie on of which a program says nothing else.
pub(crate) const MAIN_DEVICE: i64 = 0;

/// The index that a program gives for the processor's own memory.
pub(crate) const HOST_DEVICE: i64 = -1;

/// A machine, as builtins and closures see it.
pub(crate) trait Host: Send + Sync {
    /// The first device of the program.
    fn main_device(&self) -> Device;

    /// Takes memory of a device, by its index in the machine or [`HOST_DEVICE`].
    fn buffer(&self, device: i64, bytes: usize) -> Result<Buffer, Error>;

    /// Calls a function of the program by its index in the table of functions.
    fn invoke(&self, index: usize, args: &[AnyView<'_>]) -> Result<Any, Error>;

    /// Whether whoever called the program takes tensors with strides: with gaps between their elements.
    fn gives_strided_results(&self) -> bool;
}

/// Calls a value from a machine: a closure of this machine or another, or any function.
pub(crate) fn call_value(host: &dyn Host, callee: AnyView<'_>, args: &[AnyView<'_>]) -> Result<Any, Error> {
    if let Some(closure) = callee.downcast_ref::<Closure>() {
        return closure.call(host, args);
    }
    callee.to::<Function>().map_err(|error| error.context("calling a value"))?.call(args)
}

/// The machines that are alive, by the address that is their handle.
static LIVE: LazyLock<RwLock<HashMap<usize, Weak<dyn Host>>>> = LazyLock::new(RwLock::default);

/// Holds the table across a fork.
pub(crate) fn hold() -> Option<Held> {
    fork::hold_table(&LIVE)
}

/// Enters a machine.
pub(crate) fn enter<H: Host + 'static>(host: &Arc<H>) {
    let handle = Arc::as_ptr(host) as usize;
    let host: Arc<dyn Host> = host.clone();
    LIVE.write().unwrap_or_else(PoisonError::into_inner).insert(handle, Arc::downgrade(&host));
}

/// Takes a machine out that is about to go.
pub(crate) fn leave<H: Host>(host: &H) {
    let mut live = LIVE.write().unwrap_or_else(PoisonError::into_inner);
    live.remove(&(std::ptr::from_ref(host) as usize));
}

/// The machine that a handle means.
pub(crate) fn find(handle: AnyView<'_>) -> Result<Arc<dyn Host>, Error> {
    if handle.type_index() != type_index::OPAQUE_PTR {
        return Err(Error::type_mismatch("the handle of a virtual machine", handle.type_key()));
    }
    let live = LIVE.read().unwrap_or_else(PoisonError::into_inner);
    let found = live.get(&(handle.raw().word() as usize)).and_then(Weak::upgrade);
    found.ok_or_else(|| Error::new(ErrorKind::ValueError, "the handle is not that of a living virtual machine"))
}
