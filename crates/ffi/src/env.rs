//! Addresses by name: what the loader writes into libraries, and what libraries linked into the process offer.
//!
//! A compiled library does not link against a runtime. It has slots, named with two leading underscores, that its loader
//! fills with the context symbols of this table. This crate enters its own; the runtime adds those of its thread pool and
//! workspaces.

use std::ffi::c_void;
use std::sync::{LazyLock, PoisonError, RwLock};

use crate::fork::{self, Held};

use indexmap::IndexMap;

use crate::capi;

/// An address that is only passed on.
#[derive(Clone, Copy)]
struct Address(*mut c_void);

// SAFETY: the address is never followed here.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

type SymbolTable = LazyLock<RwLock<IndexMap<String, Address>>>;

static CONTEXT: SymbolTable = LazyLock::new(|| {
    let own: [(&str, *mut c_void); 4] = [
        ("__TVMFFIFunctionCall", capi::TVMFFIFunctionCall as *mut c_void),
        ("__TVMFFIEnvModLookupFromImports", capi::TVMFFIEnvModLookupFromImports as *mut c_void),
        ("__TVMFFIHandleInitOnce", capi::TVMFFIHandleInitOnce as *mut c_void),
        ("__TVMFFIErrorSetRaisedFromCStr", capi::TVMFFIErrorSetRaisedFromCStr as *mut c_void),
    ];
    RwLock::new(own.into_iter().map(|(name, symbol)| (name.to_string(), Address(symbol))).collect())
});

static SYSTEM: SymbolTable = LazyLock::new(RwLock::default);

/// Makes the tables, if nothing has used them yet.
pub(crate) fn make() {
    LazyLock::force(&CONTEXT);
    LazyLock::force(&SYSTEM);
}

/// Holds the locks across a fork.
pub(crate) fn hold() -> impl Iterator<Item = Held> {
    [&CONTEXT, &SYSTEM].into_iter().filter_map(|table| fork::hold_table(table))
}

/// Enters a context symbol, with its underscores; one of the same name is replaced.
pub fn register_context_symbol(name: &str, symbol: *mut c_void) {
    enter(&CONTEXT, name, symbol);
}

/// All context symbols, with their underscores.
pub fn context_symbols() -> Vec<(String, *mut c_void)> {
    let table = CONTEXT.read().unwrap_or_else(PoisonError::into_inner);
    table.iter().map(|(name, symbol)| (name.clone(), symbol.0)).collect()
}

/// Enters a symbol of a library that is linked into the process.
pub fn register_system_symbol(name: &str, symbol: *mut c_void) {
    enter(&SYSTEM, name, symbol);
}

/// A symbol of a library that is linked into the process.
pub fn system_symbol(name: &str) -> Option<*mut c_void> {
    SYSTEM.read().unwrap_or_else(PoisonError::into_inner).get(name).map(|symbol| symbol.0)
}

fn enter(table: &SymbolTable, name: &str, symbol: *mut c_void) {
    table.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_string(), Address(symbol));
}
