//! Recording what the calls of a run take.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use relaxide_ffi::{Any, AnyView, Array, Error, Ref};
use relaxide_runtime::memory::{Allocator, Storage};

use super::report::{Argument, Event, ProfileReport};
use super::{VirtualMachine, Vm, check_arity};
use crate::executable::FuncKind;
use crate::host::Host;

/// How many calls are kept one by one. Calls beyond them are still counted and summed up.
const MAX_EVENTS: usize = 1 << 20;

/// How many different lists of arguments are kept. A program in a loop may make a new one with every step.
const MAX_LISTS: usize = 1 << 16;

/// A call that has not ended.
struct Open {
    func: u32,
    start: Duration,
    /// What calls inside took.
    inner: Duration,
    bytes: usize,
    /// Which list of arguments.
    arguments: u32,
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
    /// The lists of arguments that calls had, each once; the first is that of which nothing is known.
    pub(super) lists: Vec<Vec<Argument>>,
    /// Where each of them is.
    places: HashMap<Vec<Argument>, u32>,
    /// Where the machine's memory comes from.
    allocator: Option<Arc<dyn Allocator>>,
    /// How many calls are not among the events.
    pub(super) omitted: u64,
}

impl Profile {
    fn new(functions: usize, allocator: Option<Arc<dyn Allocator>>) -> Self {
        Self {
            epoch: Instant::now(),
            open: Vec::new(),
            sums: vec![Sum::default(); functions],
            events: Vec::new(),
            lists: vec![Vec::new()],
            places: HashMap::new(),
            allocator,
            omitted: 0,
        }
    }

    /// A call begins.
    pub(super) fn begin(&mut self, func: u32, args: &[AnyView<'_>]) {
        let (bytes, arguments) = (bytes_of(args), self.list(args));
        self.open.push(Open { func, start: self.epoch.elapsed(), inner: Duration::ZERO, bytes, arguments });
    }

    /// The place of a list of arguments.
    fn list(&mut self, args: &[AnyView<'_>]) -> u32 {
        let list: Vec<Argument> = args.iter().flat_map(Argument::of).collect();
        if let Some(place) = self.places.get(&list) {
            return *place;
        }
        if self.lists.len() >= MAX_LISTS {
            return 0;
        }
        let place = self.lists.len() as u32;
        self.lists.push(list.clone());
        self.places.insert(list, place);
        place
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
            let memory = self.allocator.as_ref().map_or(0, |allocator| allocator.stats().in_use);
            let Open { func, start, arguments, .. } = call;
            self.events.push(Event { func, start, time, bytes, arguments, memory });
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
        let allocator = vm.places.first().map(|place| Arc::clone(&place.allocator));
        let mut profile = Profile::new(vm.executable.functions().len(), allocator);
        let result = vm.invoke_profiled(index, args, &mut profile)?;
        let report = ProfileReport::new(profile, vm.executable.functions(), vm.main_device());
        Ok((result, Ref::new(report)))
    }
}

impl Vm {
    fn invoke_profiled(&self, index: usize, args: &[AnyView<'_>], profile: &mut Profile) -> Result<Any, Error> {
        let info = self.info(index)?;
        if info.kind == FuncKind::Packed {
            profile.begin(index as u32, args);
            let result = self.invoke(index, args)?;
            profile.end(bytes_of(&[result.as_view()]));
            return Ok(result);
        }
        check_arity(info, args.len())?;
        let args = self.compacted(index, args)?;
        let args: Vec<_> = args.iter().map(Any::as_view).collect();
        self.with_stack(|stack| self.run_instrumented(stack, index, &args, Some(profile)))
    }
}
