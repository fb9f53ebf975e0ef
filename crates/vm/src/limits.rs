//! Limits on what a program may use, for programs that nobody vouches for. Both machines, of Relax and of Relay, keep to them.
//!
//! A verified program cannot do harm to memory, but it can loop for ever, recurse without end and allocate all there is.
//! With limits, each of these ends in an error that names the limit. What counts is what a *run* uses: from a call of the machine from
//! outside until it returns, with the calls that functions from outside make back into the same machine on the same thread. Memory
//! counts over all runs: tensors that callers still hold are in use.
//!
//! What is not counted: the time inside one kernel or one function from outside (the clock is looked at between
//! instructions), what such functions allocate by themselves, and objects other than tensors (tuples, shapes, closures).
//! Of these an instruction makes no more than its own size, so the limit on instructions bounds them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use relaxide_ffi::{Device, Error, ErrorKind};
use relaxide_runtime::memory::{Allocator, Budget, Metered};

/// How many instructions pass between two looks at the clock.
const CLOCK_PERIOD: u64 = 16;

/// What a program may use. Nothing is limited by default, except that recursion has a depth at which it ends anyway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// How many instructions a run may execute.
    pub instructions: Option<u64>,
    /// How many bytes the machine's tensors and the run's stack may take at a time.
    pub memory: Option<usize>,
    /// How long a run may last.
    pub time: Option<Duration>,
    /// How many functions of the program may be active, one inside the other.
    pub depth: Option<usize>,
}

/// A device of a machine and the allocator for it.
pub struct VmDevice {
    /// The device.
    pub device: Device,
    /// Where its memory comes from.
    pub allocator: Arc<dyn Allocator>,
}

/// Limits in force on a machine.
pub struct Limited {
    limits: Limits,
    budget: Arc<Budget>,
    /// The machine's places, with allocators that keep to the budget.
    places: Vec<VmDevice>,
}

/// What a run has used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    instructions: u64,
    deadline: Option<Instant>,
}

impl Usage {
    /// That of no run.
    pub(crate) const NOTHING: Usage = Usage { instructions: 0, deadline: None };
}

impl Limited {
    /// Limits of a machine with some places; nothing if there is no limit.
    pub fn new(limits: Limits, places: &[VmDevice]) -> Option<Arc<Limited>> {
        if limits == Limits::default() {
            return None;
        }
        let budget = Arc::new(Budget::new(limits.memory.unwrap_or(usize::MAX)));
        let metered = |place: &VmDevice| {
            let allocator: Arc<dyn Allocator> =
                Arc::new(Metered::new(Arc::clone(&place.allocator), Arc::clone(&budget)));
            VmDevice { device: place.device, allocator }
        };
        Some(Arc::new(Limited { limits, places: places.iter().map(metered).collect(), budget }))
    }

    /// The limits.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The machine's places, with allocators that keep to the limit on memory.
    pub fn places(&self) -> &[VmDevice] {
        &self.places
    }

    /// How many bytes the tensors take that were made under these limits.
    pub fn memory_in_use(&self) -> usize {
        self.budget.used()
    }

    /// What a run that begins now has used.
    pub fn begin(&self) -> Usage {
        Usage { instructions: 0, deadline: self.limits.time.and_then(|time| Instant::now().checked_add(time)) }
    }

    /// Counts an instruction that is about to be executed.
    pub fn step(&self, usage: &mut Usage) -> Result<(), Error> {
        if let Some(limit) = self.limits.instructions
            && usage.instructions >= limit
        {
            let message = format!("the limit of {limit} instructions is reached: the program was stopped");
            return Err(Error::new(ErrorKind::RuntimeError, message));
        }
        if usage.instructions.is_multiple_of(CLOCK_PERIOD)
            && usage.deadline.is_some_and(|deadline| Instant::now() >= deadline)
        {
            let time = self.limits.time.unwrap_or_default();
            let message = format!("the time limit of {time:?} is reached: the program was stopped");
            return Err(Error::new("TimeoutError", message));
        }
        usage.instructions += 1;
        Ok(())
    }

    /// Checks a stack on which so many functions are active, and which takes so many bytes.
    pub fn check_stack(&self, functions: usize, bytes: usize) -> Result<(), Error> {
        if let Some(limit) = self.limits.depth
            && functions > limit
        {
            let message = format!("the depth limit of {limit} functions, one inside the other, is reached");
            return Err(Error::new("RecursionError", message));
        }
        let budget = &self.budget;
        if bytes > budget.limit().saturating_sub(budget.used()) {
            return Err(budget.exceeded(budget.used(), bytes).context("the stack"));
        }
        Ok(())
    }
}
