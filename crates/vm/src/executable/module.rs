//! The executable as a runtime module of kind `relax.VMExecutable`.

use std::sync::{Arc, OnceLock};

use relaxide_ffi::{Any, Error, ErrorKind, Function, Module, ModuleImpl, ModuleProperties};

use super::Executable;
use crate::FRONT_ENDS;
use crate::machine;
use crate::verifier::{VerifiedExecutable, VerifyError, verify};

/// The kind of the module.
pub const KIND: &str = "relax.VMExecutable";

/// An executable in a module; the kernels that it calls are the module's imports.
pub struct ExecutableModule {
    executable: Arc<Executable>,
    verified: OnceLock<Result<VerifiedExecutable, VerifyError>>,
}

impl Executable {
    /// The executable as a module.
    pub fn into_module(self) -> Module {
        Module::new(ExecutableModule { executable: Arc::new(self), verified: OnceLock::new() })
    }

    /// The executable in a module, if there is one.
    pub fn of_module(module: &Module) -> Option<Arc<Executable>> {
        module.downcast::<ExecutableModule>().map(|module| Arc::clone(&module.executable))
    }
}

impl ExecutableModule {
    /// Reads a module from the binary form of an executable.
    pub(crate) fn load(bytes: &[u8]) -> Result<Module, Error> {
        let executable = Executable::from_bytes(bytes).map_err(|error| invalid(&error))?;
        Ok(executable.into_module())
    }

    /// The executable, checked; the check happens once.
    pub(crate) fn verified(&self) -> Result<VerifiedExecutable, Error> {
        let verified = self.verified.get_or_init(|| verify(Arc::clone(&self.executable)));
        verified.clone().map_err(|error| invalid(&error))
    }
}

fn invalid(error: &dyn std::error::Error) -> Error {
    Error::new(ErrorKind::ValueError, error.to_string())
}

/// A function without arguments that tells something of the executable.
fn tell<E: std::error::Error + 'static>(
    executable: &Arc<Executable>,
    body: fn(&Executable) -> Result<String, E>,
) -> Function {
    let executable = Arc::clone(executable);
    Function::new(move |_args| body(&executable).map(Any::from).map_err(|error| invalid(&error)))
}

impl ModuleImpl for ExecutableModule {
    fn kind(&self) -> &str {
        KIND
    }

    fn get_function(&self, name: &str) -> Option<Function> {
        match name {
            "as_text" if FRONT_ENDS => Some(tell(&self.executable, Executable::as_text)),
            "as_python" if FRONT_ENDS => Some(tell(&self.executable, Executable::as_python)),
            "as_script" if FRONT_ENDS => Some(tell(&self.executable, Executable::as_script)),
            "stats" if FRONT_ENDS => Some(tell(&self.executable, Executable::stats)),
            "output_names" if FRONT_ENDS => {
                let executable = Arc::clone(&self.executable);
                Some(Function::typed(move |name: String| Ok::<_, Error>(executable.output_names(&name))))
            }
            "has_function" => {
                let executable = Arc::clone(&self.executable);
                Some(Function::typed(move |name: String| Ok::<_, Error>(executable.function(&name).is_some())))
            }
            _ => None,
        }
    }

    fn get_bound_function(&self, module: &Module, name: &str) -> Option<Function> {
        if name != "vm_load_executable" {
            return self.get_function(name);
        }
        let module = module.clone();
        Some(Function::new(move |_args| Ok(machine::initialize_later(module.clone()).into())))
    }

    fn properties(&self) -> ModuleProperties {
        ModuleProperties::BINARY_SERIALIZABLE
    }

    fn save_to_bytes(&self) -> Result<Vec<u8>, Error> {
        self.executable.to_bytes().map_err(|error| invalid(&error))
    }

    fn write_to_file(&self, path: &str, _format: &str) -> Result<(), Error> {
        let written = std::fs::write(path, self.save_to_bytes()?);
        written.map_err(|error| Error::new(ErrorKind::OSError, format!("cannot write {path}: {error}")))
    }
}
