//! The executable as a runtime module of kind `relax.VMExecutable`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use relaxide_ffi::{Any, Error, ErrorKind, Function, Module, ModuleImpl, ModuleProperties, SavedBytes};
use relaxide_runtime::file;

use relaxide_runtime::weights::WeightsFile;

use super::Executable;
use super::weights::WeightsApart;
use crate::FRONT_ENDS;
use crate::machine;
use crate::verifier::{VerifiedExecutable, verify};

/// Whether programs are run and neither written nor completed from files: inside of a WebAssembly module, of which there are none.
const ONLY_RUNS: bool = cfg!(target_family = "wasm");

fn only_runs() -> Error {
    Error::new(ErrorKind::RuntimeError, "a program inside of a WebAssembly module cannot be saved")
}

/// The kind of the module.
pub const KIND: &str = "relax.VMExecutable";

/// An executable in a module; the kernels that it calls are the module's imports.
pub struct ExecutableModule {
    executable: Arc<Executable>,
    /// The library that it came from.
    origin: OnceLock<PathBuf>,
    /// With its weights, once they are there.
    verified: Mutex<Option<VerifiedExecutable>>,
}

impl Executable {
    /// The executable as a module.
    pub fn into_module(self) -> Module {
        Module::new(ExecutableModule {
            executable: Arc::new(self),
            origin: OnceLock::new(),
            verified: Mutex::default(),
        })
    }

    /// The executable in a module, if there is one. Weights that lie in a file of their own are not in it.
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

    /// The executable with its weights, checked; the check happens once.
    pub(crate) fn verified(&self) -> Result<VerifiedExecutable, Error> {
        let mut verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(verified) = &*verified {
            return Ok(verified.clone());
        }
        let made = match self.executable.weights_apart()? {
            None => verify(Arc::clone(&self.executable)).map_err(|error| invalid(&error))?,
            Some(weights) => self.complete(&weights, &open_weights(&self.folder().join(&weights.file))?)?,
        };
        Ok(verified.insert(made).clone())
    }

    /// Takes the weights from a file; an error if there are none to take, or they are taken already.
    fn take_weights(&self, open: impl FnOnce() -> Result<WeightsFile, Error>) -> Result<(), Error> {
        let refuse = |why: &str| Error::new(ErrorKind::ValueError, format!("the program takes no weights: {why}"));
        let weights = self.executable.weights_apart()?.ok_or_else(|| refuse("it has them inside"))?;
        let mut verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        if verified.is_some() {
            return Err(refuse("it has been loaded with them already"));
        }
        *verified = Some(self.complete(&weights, &open()?)?);
        Ok(())
    }

    fn complete(&self, weights: &WeightsApart, file: &WeightsFile) -> Result<VerifiedExecutable, Error> {
        let whole = self.executable.with_weights(weights, file)?;
        verify(Arc::new(whole)).map_err(|error| invalid(&error))
    }

    /// Where files beside the program are looked for: the folder of its library, or of the program that it is linked into.
    fn folder(&self) -> PathBuf {
        let file = self.origin.get().cloned().or_else(|| std::env::current_exe().ok());
        file.and_then(|file| file.parent().map(Path::to_path_buf)).unwrap_or_default()
    }
}

/// Takes the weights of a program that are not in its library from that file, whatever its name is, in the place of the one beside the
/// library.
pub fn load_weights(module: &Module, file: &Path) -> Result<(), Error> {
    executable_of(module)?.take_weights(|| open_weights(file))
}

/// Takes the weights of a program that are not in its library from memory.
pub fn take_weights(module: &Module, weights: WeightsFile) -> Result<(), Error> {
    executable_of(module)?.take_weights(|| Ok(weights))
}

fn executable_of(module: &Module) -> Result<&ExecutableModule, Error> {
    module.downcast::<ExecutableModule>().ok_or_else(|| {
        let message = format!("a module of kind {} is not a VM executable, and takes no weights", module.kind());
        Error::new(ErrorKind::TypeError, message)
    })
}

fn open_weights(file: &Path) -> Result<WeightsFile, Error> {
    if ONLY_RUNS || !file.exists() {
        let message = format!(
            "the weights of the program are in another file, which is not there: {}; put it beside the library, or say \
             where it is (--weights FILE, load_weights)",
            file.display()
        );
        return Err(Error::new(ErrorKind::OSError, message));
    }
    WeightsFile::open(file)
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
        let module = module.clone();
        match name {
            "vm_load_executable" => {
                Some(Function::new(move |_args| Ok(machine::initialize_later(module.clone()).into())))
            }
            "load_weights" => {
                Some(Function::typed(move |file: String| load_weights(&module, Path::new(&file)).map(|()| Any::none())))
            }
            _ => self.get_function(name),
        }
    }

    fn loaded_from(&self, file: &Path) {
        // A module is loaded once; who says so again is not believed.
        let _ = self.origin.set(file.to_path_buf());
    }

    fn properties(&self) -> ModuleProperties {
        ModuleProperties::BINARY_SERIALIZABLE
    }

    fn save_to_bytes(&self) -> Result<Vec<u8>, Error> {
        if ONLY_RUNS {
            return Err(only_runs());
        }
        self.executable.to_bytes().map_err(|error| invalid(&error))
    }

    fn save(&self) -> Result<SavedBytes, Error> {
        if ONLY_RUNS {
            return Err(only_runs());
        }
        self.executable.save().map_err(|error| invalid(&error))
    }

    fn write_to_file(&self, path: &str, _format: &str) -> Result<(), Error> {
        if ONLY_RUNS {
            return Err(only_runs());
        }
        let bytes = self.save_to_bytes()?;
        let written = file::write_whole(Path::new(path), 0o644, |out| out.write_all(&bytes));
        written.map_err(|error: std::io::Error| Error::new(ErrorKind::OSError, format!("cannot write {path}: {error}")))
    }
}
