//! Passes: named functions from module to module, and the context that runs them.
//!
//! A pass is a [`PassInfo`] row: a name and a function. Each crate that has passes keeps one table of rows; pipelines,
//! `--help`, timing, printing and the tests find passes by name in those tables. Whatever is to happen around every pass
//! (timing, printing, verification) is a [`PassInstrument`].

use std::time::{Duration, Instant};

use crate::{Attrs, IRModule};

/// Why a pass gave up. It names the pass; the message names the function and the construct.
#[derive(Debug, thiserror::Error)]
#[error("{pass}: {message}")]
pub struct PassError {
    /// The pass.
    pub pass: String,
    /// What went wrong, where, and what to try.
    pub message: String,
}

impl PassError {
    /// An error of a pass.
    pub fn new(pass: impl Into<String>, message: impl Into<String>) -> Self {
        PassError { pass: pass.into(), message: message.into() }
    }
}

/// The result of a pass.
pub type PassResult = Result<IRModule, PassError>;

/// One pass.
#[derive(Clone, Copy)]
pub struct PassInfo {
    /// Its name, as in pipelines and on the command line.
    pub name: &'static str,
    /// One line on what it does.
    pub doc: &'static str,
    /// The pass itself.
    pub run: fn(IRModule, &PassContext) -> PassResult,
}

/// What is called around every pass.
pub trait PassInstrument {
    /// Called before a pass.
    fn before(&mut self, _pass: &str, _module: &IRModule) {}
    /// Called behind a pass that succeeded; an error stops the pipeline.
    fn after(&mut self, _pass: &str, _module: &IRModule, _took: Duration) -> Result<(), PassError> {
        Ok(())
    }
}

/// Options and target of a compilation, which every pass may read.
#[derive(Debug, Clone, Default)]
pub struct PassContext {
    /// Options by name, such as `relax.backend.use_cuda_graph`.
    pub config: Attrs,
    /// What the kernels are compiled for.
    pub target: crate::Target,
    /// Passes that are left out by name.
    pub disabled: Vec<String>,
}

/// Runs passes in order, with instruments around each.
pub fn run_passes(
    mut module: IRModule,
    passes: &[PassInfo],
    context: &PassContext,
    instruments: &mut [&mut dyn PassInstrument],
) -> PassResult {
    for pass in passes.iter().filter(|pass| !context.disabled.iter().any(|name| name == pass.name)) {
        instruments.iter_mut().for_each(|i| i.before(pass.name, &module));
        let start = Instant::now();
        module = (pass.run)(module, context)?;
        let took = start.elapsed();
        for instrument in instruments.iter_mut() {
            instrument.after(pass.name, &module, took)?;
        }
    }
    Ok(module)
}
