//! What this crate enters into the process's tables.

use std::sync::Once;

use relaxide_ffi::{Any, AnyView, Error, ErrorKind, Function, get_global, register_global};

use relaxide_runtime::fork::{self, AtFork};

use crate::FRONT_ENDS;
use crate::builtins;
use crate::executable::module::{ExecutableModule, KIND};
use crate::{host, machine};

/// Enters the builtins, the forms of profiles, the loaders of VM executables and what the runtime offers among the global
/// functions. Calling it again does nothing; everything in this crate that needs it calls it. A program that loads models
/// with [`relaxide_runtime::load_module`] calls it first.
pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        builtins::register();
        relaxide_runtime::register();
        fork::at_fork(AtFork {
            prepare: || fork::let_go_of(host::hold().into_iter().chain(builtins::hold()).collect()),
        });
        if FRONT_ENDS {
            machine::register_reports();
        }
        enter(
            &format!("ffi.Module.load_from_bytes.{KIND}"),
            // The bytes may be lent, so they are read where they are.
            Function::new(|args| {
                let missing = || Error::new(ErrorKind::TypeError, "load_from_bytes takes the bytes of an executable");
                let bytes = args.first().and_then(AnyView::as_bytes).ok_or_else(missing)?;
                ExecutableModule::load(bytes).map(Any::from)
            }),
        );
        enter(
            &format!("ffi.Module.load_from_file.{KIND}"),
            // Callers give the format behind the path or leave it out; there is only one.
            Function::new(|args| {
                let missing = || Error::new(ErrorKind::TypeError, "load_from_file takes the path of a file");
                let path: String = args.first().ok_or_else(missing)?.to()?;
                let bytes = std::fs::read(&path);
                let bytes =
                    bytes.map_err(|error| Error::new(ErrorKind::OSError, format!("cannot read {path}: {error}")))?;
                ExecutableModule::load(&bytes).map(Any::from)
            }),
        );
    });
}

fn enter(name: &str, function: Function) {
    if get_global(name).is_none() {
        // Only another thread's registration of the same function can come between.
        let _ = register_global(name, function);
    }
}
