//! The virtual machine: an executable, linked and ready to run.
//!
//! [`VirtualMachine::new`] verifies an executable, finds every function that it names, decodes its code once into a form
//! without checks ([`program`]), and puts its constants on the device. Running happens in [`interpreter`].
//!
//! A virtual machine may be used from several threads at once, and calls run side by side: what a call changes is its own
//! stack, taken from a list of idle ones; everything else is constant, or behind a lock that is not held while a program
//! runs. What is set on a machine (inputs, saved functions, limits, an instrument) is one for all threads.

mod allocation_cache;
mod instrument;
mod instrumented;
mod interpreter;
mod limits;
mod link;
mod module;
mod placed;
mod plan;
mod profile;
mod program;
mod report;
mod resolve;
mod stack;
mod stateful;
mod strided;
mod watch;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use relaxide_ffi::{Any, AnyView, Device, Error, ErrorKind, Function, Module, Tensor};
use relaxide_runtime::device;
use relaxide_runtime::memory::{self, AllocatorKind, Buffer};

pub use instrument::InstrumentReturn;
pub use link::NATIVE_PREFIX;
pub use module::MACHINE_KIND;
pub(crate) use module::initialize_later;
pub(crate) use report::register as register_reports;
pub use report::{Argument, ProfileReport, ProfileRow, ProfiledCall};
pub use stateful::Returns;

use crate::builtins;
use crate::executable::module::ExecutableModule;
use crate::executable::{FuncInfo, FuncKind};
use crate::host::{self, Host};
use crate::limits::VmDevice;
use crate::verifier::VerifiedExecutable;
use link::Callee;
use placed::Placed;
use program::Program;
use stack::Stack;
use stateful::Stateful;
use watch::Watch;

/// Runs the functions of an executable. Copies are the same machine.
#[derive(Clone)]
pub struct VirtualMachine(Arc<Vm>);

/// Stacks that no call is on. One is taken and put back at every call; moving its address is quicker.
type IdleStacks = Vec<Box<Stack>>;

/// The machine itself.
pub(crate) struct Vm {
    executable: VerifiedExecutable,
    program: Program,
    callees: Vec<Callee>,
    /// The functions as values, by index in the function table.
    pool: Vec<Any>,
    constants: Vec<Any>,
    places: Vec<VmDevice>,
    /// What the program sees as `%vm`.
    handle: Any,
    idle: Mutex<IdleStacks>,
    stateful: Mutex<Stateful>,
    /// Whether functions were ever saved, so that calls by name need no lock.
    has_saved: AtomicBool,
    /// Whether callers take results with strides.
    strided_results: AtomicBool,
    watch: Watch,
    /// Keeps the modules that functions came from.
    module: Module,
}

impl VirtualMachine {
    /// A machine for a module of kind `relax.VMExecutable`. The first device is the one that constants are put on; the
    /// host is added behind the others if it is not among them.
    pub fn new(module: &Module, devices: &[(Device, AllocatorKind)]) -> Result<Self, Error> {
        crate::register();
        let executable = module.downcast::<ExecutableModule>().ok_or_else(|| {
            let message = format!("a module of kind {} is not a VM executable", module.kind());
            Error::new(ErrorKind::TypeError, message)
        })?;
        let executable = executable.verified()?;
        let places = places(devices)?;
        let first = places.first().map_or(Device::cpu(0), |place| place.device);
        let mut constants: Vec<Any> =
            executable.constants().iter().map(|constant| on_device(constant, first)).collect::<Result<_, _>>()?;
        let callees = link::link(&executable, module)?;
        let mut placed = Placed::new(&executable);
        let program = Program::decode(&executable, &callees, &mut placed)?;
        constants.extend(placed.make()?);
        let vm = Arc::new_cyclic(|weak| Vm {
            pool: link::pool(&executable, &callees, weak),
            executable,
            program,
            callees,
            constants,
            places,
            handle: Any::from_ptr(weak.as_ptr().cast_mut().cast()),
            idle: Mutex::default(),
            stateful: Mutex::default(),
            has_saved: AtomicBool::new(false),
            strided_results: AtomicBool::new(false),
            watch: Watch::default(),
            module: module.clone(),
        });
        host::enter(&vm);
        Ok(Self(vm))
    }

    /// Calls a function by name.
    pub fn invoke(&self, name: &str, args: &[AnyView<'_>]) -> Result<Any, Error> {
        if let Some(result) = self.0.invoke_saved(name, args) {
            return result;
        }
        self.0.invoke(self.0.index_of(name)?, args)
    }

    /// A function by name, to be called again and again without looking it up. It keeps the machine.
    pub fn function(&self, name: &str) -> Option<Function> {
        let vm = Arc::clone(&self.0);
        if vm.has_saved(name) {
            let name = name.to_owned();
            return Some(Function::new(move |args| {
                let lost = || Error::new(ErrorKind::ValueError, format!("the saved function {name} was removed"));
                vm.invoke_saved(&name, args).ok_or_else(lost)?
            }));
        }
        let index = vm.index_of(name).ok()?;
        Some(Function::new(move |args| vm.invoke(index, args)))
    }

    /// Calls a closure or a function that a program has returned.
    pub fn invoke_closure(&self, closure: AnyView<'_>, args: &[AnyView<'_>]) -> Result<Any, Error> {
        host::call_value(&*self.0, closure, args)
    }

    /// What the machine runs.
    pub fn executable(&self) -> &VerifiedExecutable {
        &self.0.executable
    }

    /// The devices, with the host among them.
    pub fn devices(&self) -> Vec<Device> {
        self.0.places.iter().map(|place| place.device).collect()
    }

    pub(crate) fn vm(&self) -> &Arc<Vm> {
        &self.0
    }
}

impl std::fmt::Debug for VirtualMachine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "VirtualMachine({} functions on {:?})", self.0.executable.functions().len(), self.devices())
    }
}

fn places(devices: &[(Device, AllocatorKind)]) -> Result<Vec<VmDevice>, Error> {
    let is_host = |(device, _): &(Device, AllocatorKind)| device.device_type == Device::CPU;
    let host = (!devices.last().is_some_and(is_host)).then_some((Device::cpu(0), AllocatorKind::Pooled));
    let place = |(device, kind): &(Device, AllocatorKind)| {
        Ok(VmDevice { device: *device, allocator: memory::allocator(*device, *kind)? })
    };
    devices.iter().chain(host.iter()).map(place).collect()
}

fn on_device(constant: &Any, device: Device) -> Result<Any, Error> {
    match constant.to::<Tensor>() {
        Ok(tensor) => device::to_device(&tensor, device).map(Any::from),
        Err(_) => Ok(constant.clone()),
    }
}

impl Vm {
    fn index_of(&self, name: &str) -> Result<usize, Error> {
        let found = self.executable.function(name).map(|(index, _)| index);
        found.ok_or_else(|| Error::new(ErrorKind::ValueError, format!("Unknown function: {name}")))
    }

    /// The entry of a function that has a body.
    fn info(&self, index: usize) -> Result<&FuncInfo, Error> {
        self.executable
            .functions()
            .get(index)
            .ok_or_else(|| Error::new(ErrorKind::ValueError, format!("function {index} is not in the executable")))
    }

    /// Runs `with` on an empty stack.
    fn with_stack<T>(&self, with: impl FnOnce(&mut Stack) -> T) -> T {
        let mut stack = self.idle().and_then(|mut idle| idle.pop()).unwrap_or_default();
        let result = with(&mut stack);
        stack.clear();
        if let Some(mut idle) = self.idle() {
            idle.push(stack);
        }
        result
    }

    /// The idle stacks; none where another thread is at them. Whoever held the lock when the process was forked is not in
    /// the child, so nobody waits for it.
    fn idle(&self) -> Option<MutexGuard<'_, IdleStacks>> {
        match self.idle.try_lock() {
            Ok(idle) => Some(idle),
            Err(TryLockError::Poisoned(idle)) => Some(idle.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl Host for Vm {
    fn main_device(&self) -> Device {
        self.places.first().map_or(Device::cpu(0), |place| place.device)
    }

    fn buffer(&self, device: i64, bytes: usize) -> Result<Buffer, Error> {
        self.with_place(device, |place| Buffer::new(&place.allocator, bytes))
    }

    fn invoke(&self, index: usize, args: &[AnyView<'_>]) -> Result<Any, Error> {
        let info = self.info(index)?;
        if info.kind == FuncKind::Packed {
            return match self.callees.get(index) {
                Some(Callee::Packed(function)) => function.call(args),
                Some(Callee::Builtin(builtin, _)) => builtin.run(self, args),
                _ => Err(Error::new(ErrorKind::InternalError, format!("function {} is not linked", info.name))),
            };
        }
        check_arity(info, args.len())?;
        if args.iter().any(strided::is_strided) {
            let args = self.compacted(index, args)?;
            return self.invoke_body(index, &args.iter().map(Any::as_view).collect::<Vec<_>>());
        }
        self.invoke_body(index, args)
    }

    fn gives_strided_results(&self) -> bool {
        self.strided_results.load(Ordering::Relaxed)
    }
}

impl Vm {
    /// Calls a function that has a body, with arguments that it takes.
    fn invoke_body(&self, index: usize, args: &[AnyView<'_>]) -> Result<Any, Error> {
        if let (Some(Callee::Tir(function)), false) = (self.callees.get(index), self.watch.is_on()) {
            let _depth = interpreter::NativeDepth::enter()?;
            return self.run_tir(function, index, args);
        }
        self.with_stack(|stack| match self.watch.instrumented_run() {
            Some(run) => run(self, stack, index, args, None),
            None => self.run(stack, index, args),
        })
    }
}

/// The kind of errors about numbers of arguments. In Python it is what TVM raises, an `InternalError`, and a `ValueError`.
const ARITY_ERROR: &str = "ArityError";

/// Refuses a call with another number of arguments than the function takes.
fn check_arity(info: &FuncInfo, found: usize) -> Result<(), Error> {
    if info.num_args == found as i64 {
        return Ok(());
    }
    let names = if info.param_names.is_empty() { String::new() } else { format!(" ({})", info.param_names.join(", ")) };
    let message = format!(
        "Invoking function {} expects {} arguments{names}, but {found} arguments were provided.",
        info.name, info.num_args
    );
    Err(Error::new(ARITY_ERROR, message))
}

impl Drop for Vm {
    fn drop(&mut self) {
        host::leave(self);
    }
}

/// Whether a name is a builtin of the VM.
pub fn is_builtin(name: &str) -> bool {
    builtins::find(name).is_some()
}
