//! What a compilation is told: target, level, options, instruments.

use std::sync::Arc;

use relaxide_ffi::{Any, Error, ObjectRef};

use super::{Pass, PassConfig, PassError, PassInstrument};
use crate::Target;

/// Options and target of a compilation, which every pass may read.
#[derive(Clone)]
pub struct PassContext {
    /// What the kernels are compiled for.
    pub target: Target,
    /// Processors besides the target's for which kernels are made as well: what the library holds once serves all.
    pub also: Vec<Target>,
    /// Sequences leave out passes of higher levels.
    pub opt_level: u32,
    /// Passes that sequences run at any level, and that no instrument may leave out, by name.
    pub required: Vec<String>,
    /// Passes that sequences leave out, by name.
    pub disabled: Vec<String>,
    /// What is called around every pass.
    pub instruments: Vec<Arc<dyn PassInstrument>>,
    /// Options that passes read.
    pub config: PassConfig,
    /// Runs kernels on this machine, for passes that compute what is known; without one they interpret.
    pub runner: Option<KernelRunner>,
}

/// What runs a kernel.
type Run = dyn Fn(&ObjectRef, &[Any]) -> Result<(), Error> + Send + Sync;

/// Runs a kernel on values: the kernel, and its arguments, of which the last are its outputs.
#[derive(Clone)]
pub struct KernelRunner(Arc<Run>);

impl KernelRunner {
    /// A runner that calls a function.
    pub fn new(run: impl Fn(&ObjectRef, &[Any]) -> Result<(), Error> + Send + Sync + 'static) -> KernelRunner {
        KernelRunner(Arc::new(run))
    }

    /// Runs a kernel.
    pub fn run(&self, kernel: &ObjectRef, args: &[Any]) -> Result<(), Error> {
        (self.0)(kernel, args)
    }
}

impl Default for PassContext {
    fn default() -> Self {
        PassContext {
            target: Target::default(),
            also: Vec::new(),
            opt_level: 2,
            required: Vec::new(),
            disabled: Vec::new(),
            instruments: Vec::new(),
            config: PassConfig::default(),
            runner: None,
        }
    }
}

impl PassContext {
    /// Whether a sequence runs a pass.
    pub fn enables(&self, pass: &Pass) -> bool {
        let disabled = self.disabled.iter().any(|name| name == pass.name());
        !disabled && (self.requires(pass) || pass.level() <= self.opt_level)
    }

    /// Whether a pass runs at any level.
    pub fn requires(&self, pass: &Pass) -> bool {
        self.required.iter().any(|name| name == pass.name())
    }

    /// Tells the instruments that the context begins to be in force.
    pub fn enter(&self) -> Result<(), PassError> {
        self.instruments.iter().try_for_each(|instrument| instrument.enter())
    }

    /// Tells the instruments that the context is no longer in force.
    pub fn exit(&self) -> Result<(), PassError> {
        self.instruments.iter().try_for_each(|instrument| instrument.exit())
    }
}

impl std::fmt::Debug for PassContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PassContext")
            .field("target", &self.target)
            .field("also", &self.also)
            .field("opt_level", &self.opt_level)
            .field("required", &self.required)
            .field("disabled", &self.disabled)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
