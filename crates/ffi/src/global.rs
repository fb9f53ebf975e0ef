//! The process's table of functions by name: how parts that do not know each other meet.

use std::sync::{LazyLock, PoisonError, RwLock};

use indexmap::IndexMap;

use crate::{Error, ErrorKind, Function};

static FUNCTIONS: LazyLock<RwLock<IndexMap<String, Function>>> = LazyLock::new(RwLock::default);

/// Enters a function; an error if the name is taken.
pub fn register_global(name: &str, function: Function) -> Result<(), Error> {
    let mut functions = FUNCTIONS.write().unwrap_or_else(PoisonError::into_inner);
    if functions.contains_key(name) {
        return Err(Error::new(ErrorKind::RuntimeError, format!("a global function `{name}` is already registered")));
    }
    functions.insert(name.to_string(), function);
    Ok(())
}

/// Enters a function in place of one of the same name, which is returned.
pub fn replace_global(name: &str, function: Function) -> Option<Function> {
    FUNCTIONS.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_string(), function)
}

/// The function of a name.
pub fn get_global(name: &str) -> Option<Function> {
    FUNCTIONS.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
}

/// Takes a function out of the table.
pub fn remove_global(name: &str) -> Option<Function> {
    FUNCTIONS.write().unwrap_or_else(PoisonError::into_inner).shift_remove(name)
}

/// All names, in the order of registration.
pub fn global_names() -> Vec<String> {
    FUNCTIONS.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
}
