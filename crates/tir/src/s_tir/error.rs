//! Why a step is refused.

use relaxide_ir::diagnostic::{Code, Diagnostic, Lines};

use super::Schedule;

/// Why a step is not executed. The fault of whoever wrote the schedule, but for [`ScheduleError::Unsupported`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The module has no kernel of the name.
    #[error("the module has no kernel `{name}`")]
    NoFunction {
        /// The name.
        name: String,
    },
    /// No function was chosen, and the module has several kernels, none of them `main`.
    #[error("the module has several kernels and none is `main`: `work_on` chooses one")]
    NoChoice,
    /// No block has the name.
    #[error("no block is named `{name}`")]
    NoBlock {
        /// The name.
        name: String,
        /// The names that blocks have.
        there: Vec<String>,
    },
    /// Several blocks have the name.
    #[error("{count} blocks are named `{name}`")]
    SeveralBlocks {
        /// The name.
        name: String,
        /// How many.
        count: usize,
    },
    /// A random variable of another schedule.
    #[error("the random variable of a {what} is not of this schedule")]
    UnknownVariable {
        /// `block`, `loop` or `number`.
        what: &'static str,
    },
    /// What the random variable stood for is no longer there.
    #[error("the {what} that a random variable stood for is no longer there: an earlier step replaced it")]
    Expired {
        /// `block` or `loop`.
        what: &'static str,
    },
    /// A sampled place that is under no loop, where a loop is needed.
    #[error("the place that was sampled is no loop: the block stays where it stands, or is inlined")]
    NoLoop,
    /// An operand of a wrong kind or value.
    #[error("{0}")]
    Operand(String),
    /// The step is not legal at this loop.
    #[error("{reason}")]
    Loop {
        /// Name of the loop's counter.
        var: String,
        /// Why not.
        reason: String,
        /// What to try.
        help: Option<String>,
    },
    /// The step is not legal for this block.
    #[error("{reason}")]
    Block {
        /// Name of the block.
        block: String,
        /// Why not.
        reason: String,
        /// What to try.
        help: Option<String>,
    },
    /// Legal perhaps, but more than this implementation does.
    #[error("{0} is not supported")]
    Unsupported(String),
}

impl ScheduleError {
    /// A step that is not legal at a loop.
    pub fn at_loop(loop_: &crate::For, reason: impl Into<String>) -> ScheduleError {
        ScheduleError::Loop { var: loop_.var.name.clone(), reason: reason.into(), help: None }
    }

    /// A step that is not legal for a block.
    pub fn at_block(block: &crate::SBlock, reason: impl Into<String>) -> ScheduleError {
        ScheduleError::Block { block: block.name.clone(), reason: reason.into(), help: None }
    }

    /// The same with something to try.
    pub fn with_help(self, text: impl Into<String>) -> ScheduleError {
        let help = Some(text.into());
        match self {
            ScheduleError::Loop { var, reason, .. } => ScheduleError::Loop { var, reason, help },
            ScheduleError::Block { block, reason, .. } => ScheduleError::Block { block, reason, help },
            other => other,
        }
    }

    /// What to try.
    fn help(&self) -> Option<String> {
        match self {
            ScheduleError::Loop { help, .. } | ScheduleError::Block { help, .. } => help.clone(),
            ScheduleError::NoBlock { name, there } => {
                let near = relaxide_ir::diagnostic::closest(name, there.iter().map(String::as_str));
                near.map(|near| format!("did you mean `{near}`?"))
                    .or_else(|| Some(format!("there are {}", there.join(", "))))
            }
            ScheduleError::SeveralBlocks { .. } => {
                Some("reach it through get_child_blocks, get_producers or get_consumers".into())
            }
            ScheduleError::NoLoop => Some("give it to compute_at or reverse_compute_at, which take such places".into()),
            ScheduleError::Expired { .. } => Some("ask for it anew, with get_sblock or get_loops".into()),
            _ => None,
        }
    }

    /// The beginning of the line of the program's text that it is about.
    fn line_start(&self) -> Option<String> {
        match self {
            ScheduleError::Loop { var, .. } => Some(format!("for {var} in ")),
            ScheduleError::Block { block, .. } => Some(format!("block {block}:")),
            _ => None,
        }
    }
}

/// A step that was refused: which, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", diagnostic(primitive, error, program))]
pub struct StepError {
    /// Name of the step, as Python writes it.
    pub primitive: &'static str,
    /// Why it was refused.
    pub error: ScheduleError,
    /// The functions of the module at that time.
    pub program: String,
}

impl StepError {
    /// A step of a schedule that was refused.
    pub fn new(primitive: &'static str, error: ScheduleError, schedule: &Schedule) -> StepError {
        let program = schedule.module().functions_of::<crate::PrimFunc>().map(|(_, func)| func.to_string()).collect();
        StepError { primitive, error, program }
    }

    /// The diagnostic, which shows the place in the program.
    pub fn diagnostic(&self) -> Diagnostic {
        diagnostic(self.primitive, &self.error, &self.program)
    }
}

fn diagnostic(primitive: &str, error: &ScheduleError, program: &str) -> Diagnostic {
    let message = format!("`{primitive}` cannot be executed: {error}");
    let place = error.line_start().and_then(|start| Some((program.find(&start)?, start.trim_end().len())));
    let found = match place {
        Some((at, width)) => Diagnostic::at(Code::ScheduleStep, message, "kernel", &Lines::of(program), at, at + width),
        None => Diagnostic::new(Code::ScheduleStep, message),
    };
    match error.help() {
        Some(help) => found.with_help(help),
        None => found,
    }
}
