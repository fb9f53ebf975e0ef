//! Passes: named functions from module to module, and the context that runs them.
//!
//! A [`Pass`] is a value: a name, an optimisation level and a closure. Most are made from a [`PassInfo`], the row of a
//! table: name, documentation, parameters and a function. Pipelines, `--help`, the command line, Python and the tests find
//! passes by name in those tables and give parameters as values or as text (`ToMixedPrecision(out_dtype=float16)`). Others
//! are closures, such as a pass that is written in Python.
//!
//! ```text
//! PassInfo ──make(parameters)──► Pass ──run(module, context)──► module
//!                                 ▲ sequential(passes), Pass::new(name, closure)
//! ```
//!
//! What happens around every pass (timing, printing, verification) is a [`PassInstrument`] of the [`PassContext`]. A
//! context also says which passes of a sequence run at all: those whose level does not exceed the context's, those that it
//! requires, and none that it disables.

mod config;
mod context;
mod error;
mod instrument;
mod params;
mod text;

use std::sync::Arc;

use relaxide_ffi::{Object, Ref};

use crate::{Attrs, BaseFunc, IRModule};

pub use config::{CONFIG, ConfigEntry, ConfigKind, ConfigOption, EntryDefault, PassConfig};
pub use context::{KernelRunner, PassContext};
pub use error::{PassError, Refusal};
pub use instrument::{Check, Dump, PassInstrument, Print, Printer, Timing, When};
pub use params::{ParamDefault, ParamKind, PassParam};
pub use text::{PassCall, parse_calls, parse_value};

/// The result of a pass.
pub type PassResult = Result<IRModule, PassError>;

/// What a pass of a table does with a module, in a context, with its parameters.
pub type PassRun = fn(IRModule, &PassContext, &Attrs) -> PassResult;

/// A row of a table of passes.
#[derive(Clone, Copy)]
pub struct PassInfo {
    /// Its name, as in pipelines and on the command line.
    pub name: &'static str,
    /// One line on what it does.
    pub doc: &'static str,
    /// What it can be told.
    pub params: &'static [PassParam],
    /// The least optimisation level of a context whose sequences run it.
    pub opt_level: u32,
    /// What brings a module into the form that the pass reads; nothing where it takes any.
    pub ready: Option<Ready>,
    /// The pass itself; parameters are complete and of their kinds.
    pub run: PassRun,
}

/// What stands in front of a pass of that name.
pub type Ready = fn(IRModule, &'static str) -> PassResult;

impl PassInfo {
    /// A pass without parameters that runs at every level.
    pub const fn new(name: &'static str, doc: &'static str, run: PassRun) -> PassInfo {
        PassInfo { name, doc, params: &[], opt_level: 0, ready: None, run }
    }

    /// The same with parameters.
    pub const fn params(self, params: &'static [PassParam]) -> PassInfo {
        PassInfo { params, ..self }
    }

    /// The same at a level.
    pub const fn opt_level(self, opt_level: u32) -> PassInfo {
        PassInfo { opt_level, ..self }
    }

    /// The same behind what brings modules into the form that it reads.
    pub const fn ready(self, ready: Ready) -> PassInfo {
        PassInfo { ready: Some(ready), ..self }
    }

    /// The pass with parameters; those left out have their defaults.
    pub fn make(&self, given: &Attrs) -> Result<Pass, PassError> {
        let (row, args) = (*self, self.complete(given)?);
        Ok(Pass::new(self.name, move |module, context| row.run_with(module, context, &args)).opt_level(self.opt_level))
    }

    /// All parameters: those given, of which none may be unknown or of another kind, and the defaults of the others.
    pub fn complete(&self, given: &Attrs) -> Result<Attrs, PassError> {
        params::resolve(self, given)
    }

    /// Runs the pass with default parameters, without instruments.
    pub fn run(&self, module: IRModule, context: &PassContext) -> PassResult {
        self.run_with(module, context, &self.complete(&Attrs::new())?)
    }

    /// Runs the pass with complete parameters on a module in the form that it reads.
    fn run_with(&self, module: IRModule, context: &PassContext, args: &Attrs) -> PassResult {
        let module = match self.ready {
            Some(ready) => ready(module, self.name)?,
            None => module,
        };
        (self.run)(module, context, args)
    }
}

type PassFn = dyn Fn(IRModule, &PassContext) -> PassResult + Send + Sync;

/// A pass.
#[derive(Clone)]
pub struct Pass {
    name: String,
    opt_level: u32,
    required: Vec<Pass>,
    run: Arc<PassFn>,
}

impl Pass {
    /// A pass that is a closure.
    pub fn new(
        name: impl Into<String>,
        run: impl Fn(IRModule, &PassContext) -> PassResult + Send + Sync + 'static,
    ) -> Pass {
        Pass { name: name.into(), opt_level: 0, required: Vec::new(), run: Arc::new(run) }
    }

    /// A pass that rebuilds each function of one language by itself.
    pub fn on_functions<F: Object>(
        name: impl Into<String>,
        run: impl Fn(Ref<F>, &IRModule, &PassContext) -> Result<Ref<F>, PassError> + Send + Sync + 'static,
    ) -> Pass {
        Pass::new(name, move |module, context| {
            let mut out = module.clone();
            for (name, func) in module.functions_of::<F>() {
                let new = run(func.clone(), &module, context)?;
                if new != func {
                    out.functions.insert(name.to_string(), BaseFunc::from(new));
                }
            }
            Ok(out)
        })
    }

    /// Passes in order, as one. Each runs only if the context lets it; the passes that it requires run in front of it.
    pub fn sequential(name: impl Into<String>, passes: Vec<Pass>) -> Pass {
        Pass::new(name, move |module, context| {
            passes.iter().filter(|pass| context.enables(pass)).try_fold(module, |module, pass| {
                let module = pass.required.iter().try_fold(module, |module, pass| pass.run(module, context))?;
                pass.run(module, context)
            })
        })
    }

    /// The same at a level.
    pub fn opt_level(self, opt_level: u32) -> Pass {
        Pass { opt_level, ..self }
    }

    /// The same with passes that a sequence runs in front of it.
    pub fn requires(self, required: Vec<Pass>) -> Pass {
        Pass { required, ..self }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The least optimisation level of a context whose sequences run it.
    pub fn level(&self) -> u32 {
        self.opt_level
    }

    /// The passes that a sequence runs in front of it.
    pub fn required(&self) -> &[Pass] {
        &self.required
    }

    /// Runs the pass and, around it, the instruments of the context. One of them may leave the pass out, unless the
    /// context requires it.
    pub fn run(&self, module: IRModule, context: &PassContext) -> PassResult {
        if context.instruments.is_empty() {
            return (self.run)(module, context);
        }
        let mut wanted = true;
        for instrument in &context.instruments {
            wanted &= instrument.should_run(self, &module)?;
        }
        if !wanted && !context.requires(self) {
            return Ok(module);
        }
        for instrument in &context.instruments {
            instrument.before(self, &module)?;
        }
        let module = (self.run)(module, context)?;
        for instrument in &context.instruments {
            instrument.after(self, &module)?;
        }
        Ok(module)
    }
}

impl std::fmt::Debug for Pass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pass").field("name", &self.name).field("opt_level", &self.opt_level).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
