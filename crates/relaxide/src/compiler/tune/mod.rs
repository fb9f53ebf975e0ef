//! Search over the parameters of schedule rules: what `relaxide tune` does.
//!
//! The kernels of a program are taken one by one, those that take most of a run's time most often. A trial changes one parameter of one
//! piece of a kernel to another value of its domain, compiles the kernel alone, and has it timed beside the one that it would replace, in
//! turns ([`Measure`]). It takes that one's place where it computes the same and is faster by more than the noise, twice; otherwise nothing
//! changes.
//!
//! What is found is written as decisions ([`Database`]): the file that a compilation reads. Decisions that have become wrong, as the program
//! or the compiler changed, are told and left out.
//!
//! What is not here: how a kernel is run, which may crash or hang and is whoever measures' affair; and any model of what would be fast.

mod database;
mod search;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use relaxide_codegen::{Artifact, Emitted, Share, export_library};
use relaxide_ffi::{DataType, SavedBytes};
use relaxide_ir::IRModule;
use relaxide_tir::PrimFunc;
use relaxide_tir::schedule::{KernelNote, Override, Overrides};
use relaxide_vm::{Argument, ProfileReport};

pub use database::Database;
pub use search::{Trial, Tuned, Tuner};

use crate::compiler::compile::{kernels_of, translate};
use crate::compiler::kernels::lower_kernels;
use crate::{CompileOptions, Error};

/// How long a search lasts, and where it begins.
#[derive(Clone, Copy, Debug)]
pub struct TuneOptions {
    /// How many candidates are measured at most.
    pub trials: usize,
    /// How long it takes at most.
    pub limit: Option<Duration>,
    /// Where the choice of candidates begins.
    pub seed: u64,
}

/// An argument that a kernel is timed with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelArg {
    /// A tensor.
    Tensor(DataType, Vec<i64>),
    /// An integer.
    Int(i64),
}

/// Two libraries with the same kernel.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// The one that is there.
    pub incumbent: &'a Path,
    /// The one that would take its place.
    pub candidate: &'a Path,
    /// The kernel.
    pub kernel: &'a str,
    /// What it is called with.
    pub arguments: &'a [KernelArg],
}

/// How two kernels did, timed in turns.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    /// The median of the one that was there, in seconds.
    pub incumbent: f64,
    /// The median of the other.
    pub candidate: f64,
    /// In what share of the rounds the other was faster.
    pub wins: f64,
    /// Whether both computed the same.
    pub agrees: bool,
}

impl Comparison {
    /// A smaller gain is noise.
    const GAIN: f64 = 0.97;
    /// A gain that shows in fewer rounds is noise.
    const WINS: f64 = 0.75;

    /// Whether the candidate is right, and faster by more than the noise.
    pub fn is_won(&self) -> bool {
        self.agrees && self.candidate < Self::GAIN * self.incumbent && self.wins >= Self::WINS
    }
}

/// Why two kernels could not be timed.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// What was to run them did not start, or could not be asked.
    #[error(transparent)]
    Process(#[from] std::io::Error),
    /// It ended otherwise than it should.
    #[error("{status}: {said}")]
    Ended {
        /// How.
        status: std::process::ExitStatus,
        /// What it said before.
        said: String,
    },
    /// The machine that is to run them cannot be reached: the search ends.
    #[error("{0}")]
    Unreachable(String),
    /// It went on for longer than a candidate may.
    #[error("it takes too long")]
    TooLong,
    /// What it said is no answer.
    #[error("no answer: {0}")]
    Answer(String),
}

/// What runs kernels and times them.
pub trait Measure {
    /// Times two kernels in turns; why not, where one of them failed, crashed or took too long.
    fn compare(&mut self, pair: Pair<'_>) -> Result<Comparison, MeasureError>;
}

/// A kernel of the program.
struct Kernel {
    name: String,
    func: relaxide_ffi::Ref<PrimFunc>,
    arguments: Vec<KernelArg>,
    /// What it takes of a run.
    time: Duration,
}

/// The kernels that can be run alone, with what they are called with, the one that takes most of a run first.
fn kernels(program: &IRModule, report: &ProfileReport, options: &mut CompileOptions<'_>) -> Result<Vec<Kernel>, Error> {
    let module = kernels_of(program, options)?;
    let mut sums: HashMap<&str, (Duration, Duration, &[Argument])> = HashMap::new();
    let calls: Vec<_> = report.calls().collect();
    for call in &calls {
        let (sum, longest, arguments) = sums.entry(call.name).or_default();
        *sum += call.time;
        // The call that took longest says most of what to tune for.
        if call.time >= *longest {
            (*longest, *arguments) = (call.time, call.arguments);
        }
    }
    let mut found = Vec::new();
    for (name, func) in module.functions_of::<PrimFunc>() {
        let Some((time, _, given)) = sums.get(name) else { continue };
        let Some(arguments) = arguments_of(&func, given) else { continue };
        found.push(Kernel { name: name.to_string(), func, arguments, time: *time });
    }
    found.sort_by_key(|kernel| std::cmp::Reverse(kernel.time));
    Ok(found)
}

/// A kernel's arguments; none where what a call was given does not say them.
fn arguments_of(func: &PrimFunc, given: &[Argument]) -> Option<Vec<KernelArg>> {
    if func.buffers.len() != given.len() || given.is_empty() {
        return None;
    }
    let one = |(buffer, given): (&Option<relaxide_ffi::Ref<relaxide_ir::Buffer>>, &Argument)| match (buffer, given) {
        (Some(buffer), Argument::Tensor(dims)) => Some(KernelArg::Tensor(buffer.dtype, dims.clone())),
        (None, Argument::Int(value)) => Some(KernelArg::Int(*value)),
        _ => None,
    };
    func.buffers.iter().zip(given).map(one).collect()
}

/// A library with one kernel by some decisions, and how its loops came about.
fn build(
    kernel: &Kernel,
    decisions: &[Override],
    options: &mut CompileOptions<'_>,
    path: PathBuf,
) -> Result<(PathBuf, KernelNote), Error> {
    let mut module = IRModule::new();
    module.insert(&kernel.name, kernel.func.clone());
    let before = options.schedule.replace(Overrides::of(vec![(kernel.name.clone(), decisions.to_vec())]));
    let made = (|| {
        let (functions, mut notes) = lower_kernels(&module, options, "", &[])?;
        let Emitted { host, .. } = translate(&functions, options, Share::Whole)?;
        let alone = || Error::Kernel { kernel: kernel.name.clone(), message: "it is no native code of its own".into() };
        let (Artifact::Library(library), Some(note)) = (host, notes.pop()) else { return Err(alone()) };
        export_library(&SavedBytes::default(), &library, &path)?;
        Ok((path, note))
    })();
    options.schedule = before;
    made
}
