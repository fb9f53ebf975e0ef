//! [`Backend`]: what makes kernels of one kind of target.
//!
//! A back end says what it can make of which targets, how kernels are to be lowered for it, and makes them. [`backend`] finds the one of a
//! kind; nothing outside of a back end's own folder asks which kind it is. [`register_backend`] adds others.

use std::sync::{PoisonError, RwLock};

use relaxide_ffi::Module;
use relaxide_ir::{Ref, Target, target::TargetKind};
use relaxide_runtime::processor::Needed;
use relaxide_tir::PrimFunc;
use relaxide_tir::lower::Launch;

use crate::{CSource, CodegenError, CompileSettings, CompiledLib, c, cuda, llvm, opencl};

/// How kernels are lowered for a back end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Loops stay loops: what compiles the text makes vectors of them and unrolls them itself.
    pub keep_loops: bool,
    /// What is made can be loaded into the process that made it, if it is for this machine.
    pub is_loadable: bool,
    /// Instructions can say which line of the printed kernels they come from.
    pub has_lines: bool,
    /// Whether kernels run on a device, and are called by code of a host.
    pub is_device: bool,
}

/// What kernels were translated to.
#[derive(Debug)]
pub enum Artifact {
    /// Native code.
    Library(Box<CompiledLib>),
    /// C.
    Source(Box<CSource>),
    /// Functions of a module, which is run as it is and travels in a library as its bytes, if it has any.
    Functions(Module),
}

/// Functions of a kind of device, as the bytes of a module that rides in the library of their host.
#[derive(Clone, Debug)]
pub struct DeviceCode {
    /// The kind of module, whose loader the runtime knows.
    pub kind: &'static str,
    /// The module as its loader reads it.
    pub bytes: Vec<u8>,
}

/// The processor that kernels are made for, spelled out.
#[derive(Clone, Debug)]
pub struct Processor {
    /// The target with the processor's name, where it was left to the host.
    pub named: Target,
    /// What a processor must have to run the kernels.
    pub needed: Needed,
}

/// What makes kernels of one kind of target.
pub trait Backend: Sync {
    /// The kind.
    fn kind(&self) -> TargetKind;

    /// How kernels are lowered for it.
    fn profile(&self) -> Profile;

    /// The ending of the file that a program for a target is exported to where nothing is said.
    fn ending(&self, _target: &Target) -> Result<&'static str, CodegenError> {
        Ok("so")
    }

    /// Says what is wrong with a target of the kind, if anything is.
    fn check(&self, target: &Target) -> Result<(), CodegenError>;

    /// The processor that a target means, if kernels are bound to one.
    fn processor(&self, _target: &Target) -> Result<Option<Processor>, CodegenError> {
        Ok(None)
    }

    /// Makes lowered kernels, and tells `progress` how many steps of how many are done; an error from a back end of devices.
    fn emit(
        &self,
        _kernels: &[Ref<PrimFunc>],
        target: &Target,
        _settings: CompileSettings<'_>,
        _progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Artifact, CodegenError> {
        Err(CodegenError::DeviceAsHost(target.to_string()))
    }

    /// Makes the functions of a device; an error from a back end of hosts.
    fn device_code(&self, launches: &[Launch], _target: &Target) -> Result<DeviceCode, CodegenError> {
        let name = launches.first().map_or(String::new(), |launch| launch.kernel.clone());
        Err(CodegenError::HostAsDevice { kernel: name, kind: self.kind().to_string() })
    }

    /// Kernels as text in a form that it knows; the empty form is its own. Nothing for other forms.
    fn text(&self, kernels: &[Ref<PrimFunc>], target: &Target, form: &str) -> Option<Result<String, CodegenError>>;
}

static BACKENDS: &[&dyn Backend] = &[&llvm::Llvm, &c::C, &opencl::OpenCl, &cuda::CUDA, &cuda::NVPTX];

/// Back ends that were registered.
static REGISTERED: RwLock<Vec<&'static dyn Backend>> = RwLock::new(Vec::new());

/// Adds a back end for as long as the process lives; an error where its kind has one.
pub fn register_backend(backend: &'static dyn Backend) -> Result<(), CodegenError> {
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    if BACKENDS.iter().chain(registered.iter()).any(|known| known.kind() == backend.kind()) {
        return Err(CodegenError::SecondBackend(backend.kind().to_string()));
    }
    registered.push(backend);
    Ok(())
}

/// The back end of a kind; an error that says which kinds have one.
pub fn backend(target: &Target) -> Result<&'static dyn Backend, CodegenError> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    let found = BACKENDS.iter().chain(registered.iter()).find(|backend| backend.kind() == target.kind);
    found.copied().ok_or_else(|| CodegenError::UnsupportedTarget(target.to_string()))
}

/// Says what is wrong with a target, if anything is.
pub fn check_target(target: &Target) -> Result<(), CodegenError> {
    backend(target)?.check(target)
}

/// Refuses options that a back end does not know what to do with. `known` are those that it does, beside what only describes.
pub(crate) fn check_options(target: &Target, known: &[&str]) -> Result<(), CodegenError> {
    const DESCRIPTIONS: [&str; 5] = ["keys", "tag", "device", "model", "libs"];
    let is_known = |name: &&String| known.contains(&name.as_str()) || DESCRIPTIONS.contains(&name.as_str());
    match target.attrs.0.keys().find(|name| !is_known(name)) {
        None => Ok(()),
        Some(option) => Err(CodegenError::UnsupportedOption { target: target.to_string(), option: option.clone() }),
    }
}
