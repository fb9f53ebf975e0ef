//! The process's table of functions by name: how parts that do not know each other meet.

use std::sync::{LazyLock, PoisonError, RwLock};

use indexmap::IndexMap;

use crate::fork::{self, Held};
use crate::{Error, ErrorKind, Function};

/// A function of the table, and what is known of it.
#[derive(Clone, Debug)]
pub struct GlobalFunction {
    /// The function.
    pub function: Function,
    /// Its documentation; may be empty.
    pub doc: String,
    /// Its types and whatever else is known, as JSON; may be empty.
    pub metadata: String,
}

impl From<Function> for GlobalFunction {
    fn from(function: Function) -> GlobalFunction {
        GlobalFunction { function, doc: String::new(), metadata: String::new() }
    }
}

static FUNCTIONS: LazyLock<RwLock<IndexMap<String, GlobalFunction>>> = LazyLock::new(|| {
    let mut functions = IndexMap::new();
    crate::builtin::global_functions(&mut |name, function| {
        functions.insert(name.to_string(), function.into());
    });
    RwLock::new(functions)
});

/// Makes the table, if nothing has used it yet.
pub(crate) fn make() {
    LazyLock::force(&FUNCTIONS);
}

/// Holds the lock across a fork.
pub(crate) fn hold() -> Option<Held> {
    fork::hold_table(&FUNCTIONS)
}

/// Enters a function; an error if the name is taken.
pub fn register_global(name: &str, function: impl Into<GlobalFunction>) -> Result<(), Error> {
    let mut functions = FUNCTIONS.write().unwrap_or_else(PoisonError::into_inner);
    if functions.contains_key(name) {
        return Err(Error::new(ErrorKind::RuntimeError, format!("Global Function `{name}` is already registered")));
    }
    functions.insert(name.to_string(), function.into());
    Ok(())
}

/// Enters a function in place of one of the same name, which is returned.
pub fn replace_global(name: &str, function: impl Into<GlobalFunction>) -> Option<Function> {
    let old = FUNCTIONS.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_string(), function.into());
    old.map(|old| old.function)
}

/// The function of a name.
pub fn get_global(name: &str) -> Option<Function> {
    FUNCTIONS.read().unwrap_or_else(PoisonError::into_inner).get(name).map(|entry| entry.function.clone())
}

/// The function of a name with what is known of it.
pub fn describe_global(name: &str) -> Option<GlobalFunction> {
    FUNCTIONS.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
}

/// Takes a function out of the table.
pub fn remove_global(name: &str) -> Option<Function> {
    let old = FUNCTIONS.write().unwrap_or_else(PoisonError::into_inner).shift_remove(name);
    old.map(|old| old.function)
}

/// All names, in the order of registration.
pub fn global_names() -> Vec<String> {
    FUNCTIONS.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
}
