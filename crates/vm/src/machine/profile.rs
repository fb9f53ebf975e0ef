//! Recording what the calls of a run take.

use std::time::{Duration, Instant};

use relaxide_ffi::{Any, AnyView, Array, Error, Ref};
use relaxide_runtime::memory::Storage;

use super::report::{Event, ProfileReport};
use super::{VirtualMachine, Vm, check_arity};
use crate::executable::FuncKind;

/// How many calls are kept one by one. Calls beyond them are still counted and summed up.
const MAX_EVENTS: usize = 1 << 20;

/// A call that has not ended.
struct Open {
    func: u32,
    start: Duration,
    /// What calls inside took.
    inner: Duration,
    bytes: usize,
}

/// What the calls of one function took together.
#[derive(Clone, Copy, Default)]
pub(super) struct Sum {
    pub(super) calls: u64,
    pub(super) total: Duration,
    pub(super) own: Duration,
    pub(super) bytes: usize,
}

/// The record of one run.
pub(super) struct Profile {
    epoch: Instant,
    open: Vec<Open>,
    /// By index in the function table.
    pub(super) sums: Vec<Sum>,
    pub(super) events: Vec<Event>,
    /// How many calls are not among the events.
    pub(super) omitted: u64,
}

impl Profile {
    fn new(functions: usize) -> Self {
        let sums = vec![Sum::default(); functions];
        Self { epoch: Instant::now(), open: Vec::new(), sums, events: Vec::new(), omitted: 0 }
    }

    /// A call begins, with arguments of so many bytes.
    pub(super) fn begin(&mut self, func: u32, bytes: usize) {
        self.open.push(Open { func, start: self.epoch.elapsed(), inner: Duration::ZERO, bytes });
    }

    /// The call that began last ends, with a result of so many bytes.
    pub(super) fn end(&mut self, bytes: usize) {
        let now = self.epoch.elapsed();
        let Some(call) = self.open.pop() else { return };
        let (time, bytes) = (now.saturating_sub(call.start), call.bytes.saturating_add(bytes));
        if let Some(outer) = self.open.last_mut() {
            outer.inner += time;
        }
        if let Some(sum) = self.sums.get_mut(call.func as usize) {
            sum.calls += 1;
            sum.total += time;
            sum.own += time.saturating_sub(call.inner);
            sum.bytes = sum.bytes.saturating_add(bytes);
        }
        if self.events.len() < MAX_EVENTS {
            self.events.push(Event { func: call.func, start: call.start, time, bytes });
        } else {
            self.omitted += 1;
        }
    }
}

/// The bytes of the tensors and storages among values, and of those in tuples among them.
pub(super) fn bytes_of(values: &[AnyView<'_>]) -> usize {
    fn of(value: AnyView<'_>) -> usize {
        if let Some(tensor) = value.as_tensor() {
            return tensor.byte_size();
        }
        value.downcast_ref::<Storage>().map_or(0, |storage| storage.buffer().bytes())
    }
    let with_tuples = |value: &AnyView<'_>| match value.to::<Array>() {
        Ok(tuple) => tuple.iter().map(|element| of(Any::as_view(element))).sum(),
        Err(_) => of(*value),
    };
    values.iter().map(with_tuples).sum()
}

impl VirtualMachine {
    /// Calls a function by name and reports what each function took, with the result. Watching costs time of its own, most
    /// where calls are short.
    pub fn profile(&self, name: &str, args: &[AnyView<'_>]) -> Result<(Any, Ref<ProfileReport>), Error> {
        let vm = self.vm();
        let index = vm.index_of(name)?;
        let mut profile = Profile::new(vm.executable.functions().len());
        let result = vm.invoke_profiled(index, args, &mut profile)?;
        let report = ProfileReport::new(profile, vm.executable.functions(), vm.main_device());
        Ok((result, Ref::new(report)))
    }
}

impl Vm {
    fn invoke_profiled(&self, index: usize, args: &[AnyView<'_>], profile: &mut Profile) -> Result<Any, Error> {
        let info = self.info(index)?;
        if info.kind == FuncKind::Packed {
            profile.begin(index as u32, bytes_of(args));
            let result = self.invoke(index, args)?;
            profile.end(bytes_of(&[result.as_view()]));
            return Ok(result);
        }
        check_arity(info, args.len())?;
        self.with_stack(|stack| self.run_watched(stack, index, args, Some(profile)))
    }
}
