//! Limits on what a program may use, for programs that nobody vouches for.
//!
//! A verified program cannot do harm to memory, but it can loop for ever, recurse without end and allocate all there is.
//! With limits, each of these ends in an error that names the limit. Runs then go through [`instrumented`](super::instrumented),
//! which counts; a machine without limits pays nothing for them.
//!
//! What counts is what a *run* uses: from a call of the machine from outside until it returns, with the calls that
//! functions from outside make back into the same machine on the same thread. Memory counts over all runs: tensors that
//! callers still hold are in use.
//!
//! What is not counted: the time inside one kernel or one function from outside (the clock is looked at between
//! instructions), what such functions allocate by themselves, and objects other than tensors (tuples, shapes, closures).
//! Of these an instruction makes no more than its own size, so the limit on instructions bounds them.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use relaxide_ffi::{Any, Device, Error, ErrorKind};
use relaxide_runtime::memory::{Allocator, Budget, Metered};

use super::stack::{Frame, Stack};
use super::{VirtualMachine, Vm, VmDevice};
use crate::host::HOST_DEVICE;

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

/// Limits in force.
pub(super) struct Limited {
    limits: Limits,
    budget: Arc<Budget>,
    /// The machine's places, with allocators that keep to the budget.
    places: Vec<VmDevice>,
}

/// What the run on this thread has used.
#[derive(Clone, Copy)]
struct Used {
    /// The address of the machine, which is only compared.
    machine: usize,
    instructions: u64,
    deadline: Option<Instant>,
}

thread_local! {
    static USED: Cell<Used> = const { Cell::new(Used { machine: 0, instructions: 0, deadline: None }) };
}

/// A limited run. Ending it brings back what the run outside of it, of another machine, has used.
pub(super) struct LimitedRun {
    limited: Arc<Limited>,
    outer: Option<Used>,
}

impl Limited {
    fn new(vm: &Vm, limits: Limits) -> Self {
        let budget = Arc::new(Budget::new(limits.memory.unwrap_or(usize::MAX)));
        let metered = |place: &VmDevice| {
            let allocator: Arc<dyn Allocator> =
                Arc::new(Metered::new(Arc::clone(&place.allocator), Arc::clone(&budget)));
            VmDevice { device: place.device, allocator }
        };
        Self { limits, places: vm.places.iter().map(metered).collect(), budget }
    }

    pub(super) fn places(&self) -> &[VmDevice] {
        &self.places
    }
}

impl LimitedRun {
    pub(super) fn enter(vm: &Vm, limited: Arc<Limited>) -> Self {
        let (machine, used) = (std::ptr::from_ref(vm) as usize, USED.get());
        if used.machine == machine {
            return Self { limited, outer: None };
        }
        let deadline = limited.limits.time.and_then(|time| Instant::now().checked_add(time));
        USED.set(Used { machine, instructions: 0, deadline });
        Self { limited, outer: Some(used) }
    }

    /// Counts an instruction that is about to be executed.
    pub(super) fn step(&self) -> Result<(), Error> {
        let mut used = USED.get();
        if let Some(limit) = self.limited.limits.instructions
            && used.instructions >= limit
        {
            let message = format!("the limit of {limit} instructions is reached: the program was stopped");
            return Err(Error::new(ErrorKind::RuntimeError, message));
        }
        if used.instructions.is_multiple_of(CLOCK_PERIOD)
            && used.deadline.is_some_and(|deadline| Instant::now() >= deadline)
        {
            let time = self.limited.limits.time.unwrap_or_default();
            let message = format!("the time limit of {time:?} is reached: the program was stopped");
            return Err(Error::new("TimeoutError", message));
        }
        used.instructions += 1;
        USED.set(used);
        Ok(())
    }

    /// Checks the stack after a frame was pushed.
    pub(super) fn check_new_frame(&self, stack: &Stack) -> Result<(), Error> {
        let depth = stack.frames.len();
        if let Some(limit) = self.limited.limits.depth
            && depth > limit
        {
            let message = format!("the depth limit of {limit} functions, one inside the other, is reached");
            return Err(Error::new("RecursionError", message));
        }
        let bytes = stack.registers.len() * size_of::<Any>() + depth * size_of::<Frame>();
        let budget = &self.limited.budget;
        if bytes > budget.limit().saturating_sub(budget.used()) {
            return Err(budget.exceeded(budget.used(), bytes).context("the stack"));
        }
        Ok(())
    }
}

impl Drop for LimitedRun {
    fn drop(&mut self) {
        self.outer.into_iter().for_each(|outer| USED.set(outer));
    }
}

impl VirtualMachine {
    /// Sets what programs may use from now on. Runs that have begun go on as they were.
    pub fn set_limits(&self, limits: Limits) {
        let vm = self.vm();
        let limited = (limits != Limits::default()).then(|| Arc::new(Limited::new(vm, limits)));
        vm.watch.set_limited(limited);
    }

    /// What programs may use.
    pub fn limits(&self) -> Limits {
        self.vm().watch.limited().map_or(Limits::default(), |limited| limited.limits)
    }

    /// How many bytes the tensors take that the program has made since limits were set, results that callers hold
    /// included; 0 if there are none.
    pub fn memory_in_use(&self) -> usize {
        self.vm().watch.limited().map_or(0, |limited| limited.budget.used())
    }
}

impl Vm {
    /// Runs `with` on the place that an index in the program means, with the allocator that is to be used; -1 is the host.
    pub(crate) fn with_place<T>(
        &self,
        index: i64,
        with: impl FnOnce(&VmDevice) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match self.watch.limited() {
            Some(limited) => with(self.find_place(limited.places(), index)?),
            None => with(self.find_place(&self.places, index)?),
        }
    }

    fn find_place<'a>(&self, places: &'a [VmDevice], index: i64) -> Result<&'a VmDevice, Error> {
        let place = match index {
            HOST_DEVICE => places.last(),
            _ => usize::try_from(index).ok().and_then(|index| places.get(index)),
        };
        place.ok_or_else(|| {
            let devices: Vec<Device> = places.iter().map(|place| place.device).collect();
            let message =
                format!("device index {index} does not exist: the VM has {} devices, {devices:?}", devices.len());
            Error::new(ErrorKind::ValueError, message)
        })
    }
}
