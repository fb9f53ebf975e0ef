//! Schedule rules as a pass over the kernels of a module, for the target of its context.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use relaxide_ir::Code;
use relaxide_ir::pass::{Pass, PassContext, PassError, PassInfo, PassResult, Refusal};
use relaxide_ir::{Attrs, IRModule};

use super::{Note, OverrideError, Overrides, ScheduleError, apply_with};
use crate::lower::on_kernels;
use crate::verify::verify;

/// The option of a [`PassContext`] that names a file of decisions for kernels.
pub const SCHEDULE_OPTION: &str = "relaxide.schedule";

const NAME: &str = "s_tir.transform.ApplyScheduleRules";

/// The row of the pass.
pub(crate) const PASS: PassInfo = PassInfo::new(
    NAME,
    "Makes of blocks the loops that suit the target, by schedule rules.",
    |module, context, _: &Attrs| {
        let overrides = Overrides::of_context(context).map_err(|error| PassError::new(NAME, error))?;
        run(module, context, &overrides, &Notes::default())
    },
);

/// How the loops of a kernel came about.
#[derive(Clone, Debug)]
pub struct KernelNote {
    /// The kernel.
    pub kernel: String,
    /// What its pieces were scheduled by.
    pub notes: Vec<Note>,
}

impl std::fmt::Display for KernelNote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:", self.kernel)?;
        self.notes.iter().try_for_each(|note| write!(f, "\n  {}", note.explained().replace('\n', "\n  ")))
    }
}

impl KernelNote {
    /// The decisions as JSON, in the form of [`Overrides`].
    pub fn to_json(&self) -> serde_json::Value {
        let pieces: Vec<_> = self.notes.iter().map(Note::to_json).collect();
        serde_json::json!({ "kernel": self.kernel, "pieces": pieces })
    }
}

/// Where a pass leaves what it noted, in the order in which kernels were done.
#[derive(Clone, Debug, Default)]
pub struct Notes(Arc<Mutex<Vec<KernelNote>>>);

impl Notes {
    fn push(&self, note: KernelNote) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(note);
    }

    /// What was noted since it was taken last.
    pub fn take(&self) -> Vec<KernelNote> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The pass with decisions of its own, which leaves notes.
pub fn pass(overrides: Overrides, notes: Notes) -> Pass {
    Pass::new(NAME, move |module, context| run(module, context, &overrides, &notes))
}

fn run(module: IRModule, context: &PassContext, overrides: &Overrides, notes: &Notes) -> PassResult {
    on_kernels(module, NAME, &|kernel, func| {
        let scheduled = apply_with(func, &context.target, overrides.of_kernel(kernel))?;
        verify(&scheduled.func).map_err(crate::lower::LowerError::from)?;
        notes.push(KernelNote { kernel: kernel.to_string(), notes: scheduled.notes });
        Ok(scheduled.func)
    })
}

impl Overrides {
    /// The decisions that a context asks for; none where it names no file of such.
    pub fn of_context(context: &PassContext) -> Result<Overrides, OverrideError> {
        let Some(file) = context.config.text(SCHEDULE_OPTION) else { return Ok(Overrides::default()) };
        let failed = |error: std::io::Error| OverrideError::File {
            file: file.to_string(),
            kind: error.kind(),
            reason: error.to_string(),
        };
        Overrides::from_json(&std::fs::read_to_string(Path::new(file)).map_err(failed)?)
    }
}

/// What to try where decisions do not fit.
const HELP: &str = "compile for this target without a schedule and with `--explain --json`: what it prints can be changed and given \
                    to `--schedule`";

impl From<OverrideError> for Refusal {
    fn from(error: OverrideError) -> Refusal {
        match &error {
            OverrideError::File { .. } => Refusal::new(Code::File, error.to_string()),
            _ => Refusal::new(Code::Schedule, error.to_string()).help(HELP),
        }
    }
}

impl From<ScheduleError> for Refusal {
    fn from(error: ScheduleError) -> Refusal {
        match &error {
            ScheduleError::NoRule { .. } => Refusal::new(Code::Kernel, error.to_string()),
            ScheduleError::Piece(_) => Refusal::new(Code::Schedule, error.to_string()).help(HELP),
        }
    }
}
