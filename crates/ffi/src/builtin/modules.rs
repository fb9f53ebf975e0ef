//! Functions that front ends use modules by.

use std::sync::{Mutex, PoisonError};

use super::Arity::Exactly;
use super::{Arguments, BuiltinRow, nothing};
use crate::fork::{self, Held};
use crate::{Any, Array, Error, ErrorKind, Module, get_global};

pub(super) const TABLE: &[BuiltinRow] = &[
    ("ffi.ModuleLoadFromFile", Exactly(1), load),
    ("ffi.ModuleImplementsFunction", Exactly(3), |args| {
        Ok(module(args)?.implements_function(&name(args)?, args.get(2)?).into())
    }),
    ("ffi.ModuleGetFunctionMetadata", Exactly(3), |args| {
        Ok(describe(&module(args)?, args.get(2)?, &|module| module.body().function_metadata(&name(args).ok()?)).into())
    }),
    ("ffi.ModuleGetFunctionDoc", Exactly(3), |args| {
        Ok(describe(&module(args)?, args.get(2)?, &|module| module.body().function_doc(&name(args).ok()?)).into())
    }),
    ("ffi.ModuleGetFunction", Exactly(3), |args| Ok(module(args)?.get_function(&name(args)?, args.get(2)?).into())),
    ("ffi.ModuleGetPropertyMask", Exactly(1), |args| Ok(module(args)?.body().properties().0.into())),
    ("ffi.ModuleInspectSource", Exactly(2), |args| Ok(module(args)?.body().inspect_source(&name(args)?)?.into())),
    ("ffi.ModuleGetKind", Exactly(1), |args| Ok(module(args)?.kind().into())),
    ("ffi.ModuleGetWriteFormats", Exactly(1), |args| {
        Ok(module(args)?.body().write_formats().into_iter().map(Any::from).collect::<Array>().into())
    }),
    ("ffi.ModuleWriteToFile", Exactly(3), |args| {
        module(args)?.body().write_to_file(&name(args)?, &args.get::<String>(2)?)?;
        nothing()
    }),
    ("ffi.ModuleImportModule", Exactly(2), |args| {
        module(args)?.import(args.get(1)?)?;
        nothing()
    }),
    ("ffi.ModuleClearImports", Exactly(1), |args| {
        module(args)?.clear_imports();
        nothing()
    }),
    ("ffi.ModuleGlobalsAdd", Exactly(1), |args| {
        let module = module(args)?;
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if !kept.contains(&module) {
            kept.push(module);
        }
        nothing()
    }),
    ("ffi.ModuleGlobalsRemove", Exactly(1), |args| {
        let module = module(args)?;
        KEPT.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| *other != module);
        nothing()
    }),
];

/// Modules that stay loaded, because functions of theirs may have gone anywhere.
static KEPT: Mutex<Vec<Module>> = Mutex::new(Vec::new());

/// Holds the lock across a fork.
pub(crate) fn hold() -> Option<Held> {
    fork::hold(&KEPT)
}

fn module(args: Arguments<'_, '_>) -> Result<Module, Error> {
    args.get(0)
}

fn name(args: Arguments<'_, '_>) -> Result<String, Error> {
    args.get(1)
}

fn describe(module: &Module, imports: bool, what: &dyn Fn(&Module) -> Option<String>) -> Option<String> {
    let found = what(module);
    if found.is_some() || !imports {
        return found;
    }
    module.imports().iter().find_map(|import| describe(import, true, what))
}

/// Loads a file by the loader that is registered for its ending.
fn load(args: Arguments<'_, '_>) -> Result<Any, Error> {
    let path: String = args.get(0)?;
    let fail = |message: String| Err(Error::new(ErrorKind::RuntimeError, message));
    let Some((_, ending)) = path.rsplit_once('.') else {
        return fail(format!("Failed to get file format from {path}"));
    };
    let format = if matches!(ending, "dll" | "dylib" | "dso") { "so" } else { ending };
    let loader = format!("ffi.Module.load_from_file.{format}");
    match get_global(&loader) {
        Some(loader) => loader.call(&[(&Any::from(path.as_str())).into(), (&Any::from(format)).into()]),
        None => fail(format!("Loader for `.{format}` files is not registered: there is no global function `{loader}`")),
    }
}
