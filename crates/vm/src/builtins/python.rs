//! Functions of a front end that programs call by name.
//!
//! A front end registers its functions here rather than among the global functions, so that a program can only reach what
//! was meant for it. The name is historical: any function may be registered.

use std::collections::HashMap;
use std::sync::{LazyLock, PoisonError, RwLock};

use relaxide_ffi::fork::{self, Held};
use relaxide_ffi::{Any, AnyView, Array, Error, ErrorKind, Function};

use super::{Args, Builtin};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::plain("vm.builtin.register_py_func", register),
    Builtin::plain("vm.builtin.get_py_func", get),
    Builtin::plain("vm.builtin.clear_py_func_registry", clear),
    Builtin::plain("vm.builtin.call_py_func", call),
];

static FUNCTIONS: LazyLock<RwLock<HashMap<String, Function>>> = LazyLock::new(RwLock::default);

/// Holds the table across a fork.
pub(crate) fn hold() -> Option<Held> {
    fork::hold_table(&FUNCTIONS)
}

fn find(args: &Args<'_, '_>, name: &str) -> Result<Function, Error> {
    let functions = FUNCTIONS.read().unwrap_or_else(PoisonError::into_inner);
    let found = functions.get(name).cloned();
    found.ok_or_else(|| {
        args.error(ErrorKind::ValueError, format_args!("Python function '{name}' not found in registry"))
    })
}

/// `(name, function)`.
fn register(args: &Args<'_, '_>) -> Result<Any, Error> {
    let (name, function) = (args.get(0, "name")?, args.get(1, "function")?);
    let old = FUNCTIONS.write().unwrap_or_else(PoisonError::into_inner).insert(name, function);
    // Dropped without the lock: the end of a function may run foreign code.
    drop(old);
    Ok(Any::none())
}

/// `(name)`.
fn get(args: &Args<'_, '_>) -> Result<Any, Error> {
    find(args, &args.get::<String>(0, "name")?).map(Any::from)
}

/// `()`.
fn clear(_args: &Args<'_, '_>) -> Result<Any, Error> {
    let old = std::mem::take(&mut *FUNCTIONS.write().unwrap_or_else(PoisonError::into_inner));
    drop(old);
    Ok(Any::none())
}

/// `((name, (argument…)))`: one tuple of the name and the tuple of arguments.
fn call(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(1, 1)?;
    let pair: Array = args.get(0, "name and arguments")?;
    let [name, arguments] = pair.as_slice() else {
        let message = format_args!("it takes a tuple of a name and a tuple of arguments, not one of {}", pair.len());
        return Err(args.error(ErrorKind::TypeError, message));
    };
    let (name, arguments): (String, Array) = (name.to()?, arguments.to()?);
    let views: Vec<AnyView<'_>> = arguments.iter().map(Any::as_view).collect();
    find(args, &name)?.call(&views)
}
