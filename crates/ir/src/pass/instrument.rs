//! What is called around every pass, and the instruments that come ready-made.
//!
//! An instrument is shared and may be called again while one of its calls runs (a pass may run passes), so its methods take
//! `&self` and keep what changes behind locks that they do not hold while they call out.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Pass, PassError, Refusal};
use crate::{Code, IRModule};

/// What is called around every pass. An error stops the pipeline.
pub trait PassInstrument: Send + Sync {
    /// Called when a context comes into force.
    fn enter(&self) -> Result<(), PassError> {
        Ok(())
    }

    /// Called when a context is no longer in force.
    fn exit(&self) -> Result<(), PassError> {
        Ok(())
    }

    /// Whether a pass is to run.
    fn should_run(&self, _pass: &Pass, _module: &IRModule) -> Result<bool, PassError> {
        Ok(true)
    }

    /// Called before a pass.
    fn before(&self, _pass: &Pass, _module: &IRModule) -> Result<(), PassError> {
        Ok(())
    }

    /// Called behind a pass that succeeded.
    fn after(&self, _pass: &Pass, _module: &IRModule) -> Result<(), PassError> {
        Ok(())
    }
}

/// Turns a module into text.
pub type Printer = Arc<dyn Fn(&IRModule) -> String + Send + Sync>;

/// Which side of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Before it runs.
    Before,
    /// Once it has run.
    After,
}

/// Measures passes and, below them, the passes that they run.
#[derive(Default)]
pub struct Timing(Mutex<TimingState>);

#[derive(Default)]
struct TimingState {
    /// Depth, name and time of each pass, in the order in which they began.
    rows: Vec<(usize, String, Duration)>,
    /// Rows that still run, with their beginnings.
    open: Vec<(usize, Instant)>,
}

impl Timing {
    /// No measurements yet.
    pub fn new() -> Arc<Timing> {
        Arc::default()
    }

    /// One line a pass: its time and its name, indented below the pass that ran it.
    pub fn report(&self) -> String {
        let state = locked(&self.0);
        let mut out = String::new();
        for (depth, name, took) in &state.rows {
            let _ = writeln!(out, "{:>10.3} ms  {}{name}", took.as_secs_f64() * 1e3, "  ".repeat(*depth));
        }
        let total: Duration = state.rows.iter().filter(|(depth, ..)| *depth == 0).map(|(.., took)| *took).sum();
        let _ = writeln!(out, "{:>10.3} ms  total", total.as_secs_f64() * 1e3);
        out
    }
}

impl PassInstrument for Timing {
    fn enter(&self) -> Result<(), PassError> {
        *locked(&self.0) = TimingState::default();
        Ok(())
    }

    fn before(&self, pass: &Pass, _: &IRModule) -> Result<(), PassError> {
        let mut state = locked(&self.0);
        let (row, depth) = (state.rows.len(), state.open.len());
        state.rows.push((depth, pass.name().to_string(), Duration::ZERO));
        state.open.push((row, Instant::now()));
        Ok(())
    }

    fn after(&self, _: &Pass, _: &IRModule) -> Result<(), PassError> {
        let mut state = locked(&self.0);
        if let Some((row, begin)) = state.open.pop()
            && let Some(row) = state.rows.get_mut(row)
        {
            row.2 = begin.elapsed();
        }
        Ok(())
    }
}

/// Prints the module before or behind passes.
pub struct Print {
    when: When,
    passes: Option<Vec<String>>,
    printer: Printer,
    out: Box<dyn Fn(&str) + Send + Sync>,
}

impl Print {
    /// Prints around the passes of these names, or around all; `out` gets a heading and the text.
    pub fn new(
        when: When,
        passes: Option<Vec<String>>,
        printer: Printer,
        out: impl Fn(&str) + Send + Sync + 'static,
    ) -> Arc<Print> {
        Arc::new(Print { when, passes, printer, out: Box::new(out) })
    }

    fn print(&self, when: When, pass: &Pass, module: &IRModule) {
        if when == self.when && self.passes.as_ref().is_none_or(|names| names.iter().any(|n| n == pass.name())) {
            let side = if when == When::Before { "before" } else { "after" };
            (self.out)(&format!("# {side} {}\n{}\n", pass.name(), (self.printer)(module)));
        }
    }
}

impl PassInstrument for Print {
    fn before(&self, pass: &Pass, module: &IRModule) -> Result<(), PassError> {
        self.print(When::Before, pass, module);
        Ok(())
    }

    fn after(&self, pass: &Pass, module: &IRModule) -> Result<(), PassError> {
        self.print(When::After, pass, module);
        Ok(())
    }
}

/// Writes the module behind every pass to a file of a folder: `000_LegalizeOps.py`, `001_FuseOps.py` …
pub struct Dump {
    folder: PathBuf,
    printer: Printer,
    count: AtomicUsize,
}

impl Dump {
    /// Writes below a folder, which is made if there is none.
    pub fn new(folder: impl Into<PathBuf>, printer: Printer) -> Arc<Dump> {
        Arc::new(Dump { folder: folder.into(), printer, count: AtomicUsize::new(0) })
    }
}

impl PassInstrument for Dump {
    fn after(&self, pass: &Pass, module: &IRModule) -> Result<(), PassError> {
        let safe = |c: char| if c.is_alphanumeric() || c == '.' { c } else { '_' };
        let name: String = pass.name().chars().map(safe).collect();
        let path = self.folder.join(format!("{:03}_{name}.py", self.count.fetch_add(1, Ordering::Relaxed)));
        let written =
            std::fs::create_dir_all(&self.folder).and_then(|()| std::fs::write(&path, (self.printer)(module)));
        written.map_err(|e| {
            PassError::new(pass.name(), format!("its result cannot be written to {}: {e}", path.display()))
        })
    }
}

/// Checks the module behind every pass, such as for well-formedness.
pub struct Check(Box<Problems>);

type Problems = dyn Fn(&IRModule) -> Vec<String> + Send + Sync;

impl Check {
    /// `problems` says what is wrong with a module.
    pub fn new(problems: impl Fn(&IRModule) -> Vec<String> + Send + Sync + 'static) -> Arc<Check> {
        Arc::new(Check(Box::new(problems)))
    }
}

impl PassInstrument for Check {
    fn after(&self, pass: &Pass, module: &IRModule) -> Result<(), PassError> {
        match (self.0)(module) {
            problems if problems.is_empty() => Ok(()),
            problems => {
                let message = format!("gives a program that is not well-formed:\n{}", problems.join("\n"));
                Err(PassError::new(pass.name(), Refusal::new(Code::BrokenByPass, message)))
            }
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
