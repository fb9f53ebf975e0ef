//! Limits of a machine: what runs of the same machine inside each other have used counts together.
//!
//! Runs with [limits](crate::limits) go through [`instrumented`](super::instrumented), which counts; a machine without limits pays nothing
//! for them.

use std::cell::Cell;
use std::sync::Arc;

use relaxide_ffi::{Any, Device, Error, ErrorKind};

use super::stack::{Frame, Stack};
use super::{VirtualMachine, Vm};
use crate::host::HOST_DEVICE;
use crate::limits::{Limited, Limits, Usage, VmDevice};

thread_local! {
    /// The address of the machine that runs on this thread, which is only compared, and what its run has used.
    static USED: Cell<(usize, Usage)> = const { Cell::new((0, Usage::NOTHING)) };
}

/// A limited run. Ending it brings back what the run outside of it, of another machine, has used.
pub(super) struct LimitedRun {
    limited: Arc<Limited>,
    outer: Option<(usize, Usage)>,
}

impl LimitedRun {
    pub(super) fn enter(vm: &Vm, limited: Arc<Limited>) -> Self {
        let (machine, used) = (std::ptr::from_ref(vm) as usize, USED.get());
        if used.0 == machine {
            return Self { limited, outer: None };
        }
        USED.set((machine, limited.begin()));
        Self { limited, outer: Some(used) }
    }

    /// Counts an instruction that is about to be executed.
    pub(super) fn step(&self) -> Result<(), Error> {
        let (machine, mut usage) = USED.get();
        self.limited.step(&mut usage)?;
        USED.set((machine, usage));
        Ok(())
    }

    /// Checks the stack after a frame was pushed.
    pub(super) fn check_new_frame(&self, stack: &Stack) -> Result<(), Error> {
        let depth = stack.frames.len();
        self.limited.check_stack(depth, stack.registers.len() * size_of::<Any>() + depth * size_of::<Frame>())
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
        vm.watch.set_limited(Limited::new(limits, &vm.places));
    }

    /// What programs may use.
    pub fn limits(&self) -> Limits {
        self.vm().watch.limited().map_or(Limits::default(), |limited| limited.limits())
    }

    /// How many bytes the tensors take that the program has made since limits were set, results that callers hold
    /// included; 0 if there are none.
    pub fn memory_in_use(&self) -> usize {
        self.vm().watch.limited().map_or(0, |limited| limited.memory_in_use())
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
