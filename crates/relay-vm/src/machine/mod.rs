//! The machine: a verified executable with its kernels, devices and allocators.

mod compact;
mod module;
mod profile;
mod program;
mod run;
mod slots;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use relaxide_ffi::{Any, AnyView, Array, Device, Error, ErrorKind, Function, Module, Tensor};
use relaxide_runtime::device::to_device;
use relaxide_runtime::memory::{self, Allocator, AllocatorKind};
pub use relaxide_vm::Limits;
use relaxide_vm::limits::{Limited, VmDevice};

pub use module::register;
pub use profile::ProfileRow;

use crate::executable::Constant;
use crate::object::{Adt, Closure};
use crate::verify::VerifiedExecutable;
use profile::Profile;
use program::{Code, INTRINSICS};
use run::State;

/// How much memory the registers of one run may take, unless more is allowed.
const STACK_BYTES: usize = 4 << 30;

/// What all copies of a machine share.
pub(crate) struct Machine {
    executable: VerifiedExecutable,
    program: Vec<Code>,
    kernels: Vec<OnceLock<Function>>,
    library: Option<Module>,
    places: Vec<VmDevice>,
    constants: Vec<OnceLock<Any>>,
    /// Tells the closures of machines apart.
    identity: u64,
    stack_bytes: usize,
    idle: Mutex<Vec<State>>,
    profile: Profile,
    /// The limits of runs, if there are any.
    limited: Mutex<Option<Arc<Limited>>>,
    inputs: Mutex<HashMap<usize, Vec<Any>>>,
    outputs: Mutex<Option<Any>>,
}

/// Runs the functions of an executable. Copies are the same machine; calls from several threads run side by side.
#[derive(Clone)]
pub struct VirtualMachine(Arc<Machine>);

/// What a machine is made with beside its executable.
pub struct MachineOptions {
    /// The devices, each with the kind of its allocator. The host is added if it is not among them.
    pub devices: Vec<(Device, AllocatorKind)>,
    /// What the program may use.
    pub limits: Limits,
    /// How much memory the registers of one run may take.
    pub stack_bytes: usize,
}

impl Default for MachineOptions {
    fn default() -> Self {
        let devices = vec![(Device::cpu(0), AllocatorKind::Pooled)];
        MachineOptions { devices, limits: Limits::default(), stack_bytes: STACK_BYTES }
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::ValueError, message.into())
}

impl VirtualMachine {
    /// A machine on the CPU.
    pub fn on_cpu(executable: VerifiedExecutable, library: Option<Module>) -> Result<Self, Error> {
        Self::new(executable, library, MachineOptions::default())
    }

    /// A machine. The kernels come from the library; constants that are bound later must have been given before.
    pub fn new(
        executable: VerifiedExecutable,
        library: Option<Module>,
        options: MachineOptions,
    ) -> Result<Self, Error> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        if executable.constants.iter().any(|c| matches!(c, Constant::LateBound(_))) {
            return Err(invalid("Need to load late-bound-constants before creating VM"));
        }
        let program = program::decode(&executable);
        let kernels = executable.primitives.iter().map(|_| OnceLock::new()).collect();
        let constants = executable.constants.iter().map(|_| OnceLock::new()).collect();
        let places = places(&executable, &options)?;
        let limited = Limited::new(options.limits, &places);
        let machine = Machine {
            program,
            kernels,
            library,
            places,
            constants,
            executable,
            identity: NEXT.fetch_add(1, Ordering::Relaxed),
            stack_bytes: options.stack_bytes,
            idle: Mutex::default(),
            profile: Profile::default(),
            limited: Mutex::new(limited),
            inputs: Mutex::default(),
            outputs: Mutex::default(),
        };
        (0..machine.kernels.len()).try_for_each(|index| machine.kernel(index).map(drop))?;
        Ok(VirtualMachine(Arc::new(machine)))
    }

    /// What it runs.
    pub fn executable(&self) -> &VerifiedExecutable {
        &self.0.executable
    }

    /// Calls a function. Lists become tuples.
    pub fn invoke(&self, name: &str, args: &[AnyView<'_>]) -> Result<Any, Error> {
        let func = self.0.index_of(name)?;
        let args = self.0.arguments(func, args)?;
        self.0.call(func, &args)
    }

    /// Calls `main`.
    pub fn run(&self, args: &[AnyView<'_>]) -> Result<Any, Error> {
        self.invoke("main", args)
    }

    /// Calls a closure that a program of this machine returned.
    pub fn invoke_closure(&self, closure: AnyView<'_>, args: &[AnyView<'_>]) -> Result<Any, Error> {
        let closure = closure.downcast_ref::<Closure>().ok_or_else(|| {
            Error::new(
                ErrorKind::TypeError,
                format!("a closure of the Relay VM is expected, not {}", closure.type_key()),
            )
        })?;
        self.0.check_closure(closure, args.len())?;
        let (func, first) = (closure.func as usize, closure.free.len());
        let given = args.iter().enumerate().map(|(i, value)| self.0.argument(func, first + i, *value));
        let all = closure.free.iter().cloned().map(Ok).chain(given).collect::<Result<Vec<_>, _>>()?;
        self.0.call(func, &all)
    }

    /// Keeps arguments for [`invoke_stateful`](Self::invoke_stateful).
    pub fn set_input(&self, name: &str, args: &[AnyView<'_>]) -> Result<(), Error> {
        let func = self.0.index_of(name)?;
        let args = self.0.arguments(func, args)?;
        self.0.inputs.lock().unwrap_or_else(PoisonError::into_inner).insert(func, args);
        Ok(())
    }

    /// Keeps one argument, by its place.
    pub fn set_one_input(&self, name: &str, index: usize, value: AnyView<'_>) -> Result<(), Error> {
        let func = self.0.index_of(name)?;
        let count = self.0.executable.functions[func].params.len();
        if index >= count {
            return Err(invalid(format!("function {name} has {count} inputs, and {index} is none of them")));
        }
        let value = self.0.argument(func, index, value)?;
        let mut inputs = self.0.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        let list = inputs.entry(func).or_insert_with(|| vec![Any::none(); count]);
        list[index] = value;
        Ok(())
    }

    /// The place of an input by its name.
    pub fn input_index(&self, name: &str, input: &str) -> Result<Option<usize>, Error> {
        let func = self.0.index_of(name)?;
        Ok(self.0.executable.functions[func].params.iter().position(|param| param == input))
    }

    /// Calls a function on the arguments that were kept, and keeps its result.
    pub fn invoke_stateful(&self, name: &str) -> Result<(), Error> {
        let func = self.0.index_of(name)?;
        let function = &self.0.executable.functions[func];
        let args = self.0.inputs.lock().unwrap_or_else(PoisonError::into_inner).get(&func).cloned();
        let args = match args {
            Some(args) => args,
            None if function.params.is_empty() => Vec::new(),
            None => return Err(invalid(format!("Input has not been set for function {name}"))),
        };
        if let Some(missing) = args.iter().position(Any::is_none) {
            return Err(invalid(format!("the input {} of function {name} has not been set", function.params[missing])));
        }
        let result = self.0.call(func, &args)?;
        *self.0.outputs.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        Ok(())
    }

    /// How many results the last stateful call had: the fields of a tuple, or one.
    pub fn num_outputs(&self) -> Result<usize, Error> {
        self.with_outputs(|value| value.downcast_ref::<Adt>().map_or(1, |adt| adt.fields.len()))
    }

    /// A result of the last stateful call.
    pub fn output(&self, index: usize) -> Result<Any, Error> {
        let found = self.with_outputs(|value| match value.downcast_ref::<Adt>() {
            Some(adt) => adt.fields.get(index).cloned(),
            None => (index == 0).then(|| value.clone()),
        })?;
        found.ok_or_else(|| invalid(format!("there is no output {index}")))
    }

    fn with_outputs<T>(&self, look: impl FnOnce(&Any) -> T) -> Result<T, Error> {
        let outputs = self.0.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        outputs.as_ref().map(look).ok_or_else(|| invalid("there are no outputs yet: invoke_stateful makes them"))
    }

    /// What programs may use from the next call on. Memory counts from now on, over all runs: tensors that callers still hold
    /// are in use.
    pub fn set_limits(&self, limits: Limits) {
        let limited = Limited::new(limits, &self.0.places);
        *self.0.limited.lock().unwrap_or_else(PoisonError::into_inner) = limited;
    }

    /// What programs may use.
    pub fn limits(&self) -> Limits {
        self.0.limited().map_or(Limits::default(), |limited| limited.limits())
    }

    /// How many bytes the tensors take that the program has made since limits were set, results that callers hold included; 0 if there
    /// are none.
    pub fn memory_in_use(&self) -> usize {
        self.0.limited().map_or(0, |limited| limited.memory_in_use())
    }

    /// Calls a function and says what its kernels took.
    pub fn profile(&self, name: &str, args: &[AnyView<'_>]) -> Result<(Any, Vec<ProfileRow>), Error> {
        self.0.profile.start();
        let result = self.invoke(name, args);
        let rows = self.0.profile.stop(&self.0.executable.primitives);
        Ok((result?, rows))
    }
}

impl std::fmt::Debug for VirtualMachine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "VirtualMachine({} functions of Relay)", self.0.program.len())
    }
}

/// The real device of each device that the program names.
fn places(executable: &VerifiedExecutable, options: &MachineOptions) -> Result<Vec<VmDevice>, Error> {
    let mut given = options.devices.clone();
    if !given.iter().any(|(device, _)| device.device_type == Device::CPU) {
        given.push((Device::cpu(0), AllocatorKind::Pooled));
    }
    let mut places = Vec::new();
    for named in &executable.virtual_devices {
        let mut fitting = given.iter().filter(|(device, _)| device.device_type == named.device_type);
        let wanted = usize::try_from(named.device_id).unwrap_or(0);
        let found = match named.device_type {
            // The program does not care.
            -1 | 0 => given.first(),
            _ => fitting.nth(wanted).or_else(|| given.iter().find(|(d, _)| d.device_type == named.device_type)),
        };
        let (device, kind) = found.copied().ok_or_else(|| {
            let names: Vec<String> = given.iter().map(|(device, _)| device.to_string()).collect();
            let wanted = Device { device_type: named.device_type, device_id: named.device_id };
            invalid(format!("the program needs the device {wanted}; the machine was given {}", names.join(", ")))
        })?;
        places.push(VmDevice { device, allocator: memory::allocator(device, kind)? });
    }
    Ok(places)
}

impl Machine {
    fn index_of(&self, name: &str) -> Result<usize, Error> {
        self.executable.index_of(name).ok_or_else(|| {
            let known = self.executable.globals.join(", ");
            invalid(format!("Cannot find function {name} in the executable; there are {known}"))
        })
    }

    fn call(&self, func: usize, args: &[Any]) -> Result<Any, Error> {
        let mut state = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        let limited = self.limited();
        let result = self.run(&mut state, func, args, limited.as_deref());
        state.clear();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(state);
        result
    }

    fn limited(&self) -> Option<Arc<Limited>> {
        self.limited.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The allocator of a device in a run: one that keeps to the limits, if there are any.
    fn allocator<'a>(&'a self, limited: Option<&'a Limited>, index: usize) -> Result<&'a Arc<dyn Allocator>, Error> {
        let places = limited.map_or(self.places.as_slice(), Limited::places);
        places.get(index).map(|place| &place.allocator).ok_or_else(|| invalid(format!("there is no device {index}")))
    }

    /// Arguments as the program takes them, on its devices.
    fn arguments(&self, func: usize, args: &[AnyView<'_>]) -> Result<Vec<Any>, Error> {
        let function = &self.executable.functions[func];
        if args.len() != function.params.len() {
            let (name, params) = (&function.name, function.params.join(", "));
            let count = function.params.len();
            return Err(invalid(format!(
                "function {name} takes {count} arguments ({params}), and {} are given",
                args.len()
            )));
        }
        args.iter().enumerate().map(|(i, value)| self.argument(func, i, *value)).collect()
    }

    fn argument(&self, func: usize, index: usize, value: AnyView<'_>) -> Result<Any, Error> {
        let function = &self.executable.functions[func];
        let device = function.param_devices.get(index).copied().unwrap_or(0);
        self.value(value, device as usize)
            .map_err(|e| e.context(format!("function {}, argument {}", function.name, function.params[index])))
    }

    /// A value from outside: tensors on the device, lists as tuples.
    fn value(&self, value: AnyView<'_>, device: usize) -> Result<Any, Error> {
        if let Some(tensor) = value.as_tensor() {
            let device = self.device(device)?;
            return to_device(tensor, device).map(Any::from);
        }
        if let Ok(list) = value.to::<Array>() {
            let fields = list.iter().map(|field| self.value(field.as_view(), device)).collect::<Result<_, _>>()?;
            return Ok(Adt::tuple(fields).into());
        }
        let is_object = value.downcast_ref::<Adt>().is_some()
            || value.downcast_ref::<Closure>().is_some()
            || value.downcast_ref::<crate::RefValue>().is_some();
        if is_object {
            return Ok(value.to_owned());
        }
        let message = format!("tensors, lists and values of data types are taken, not {}", value.type_key());
        Err(Error::new(ErrorKind::TypeError, message))
    }

    fn check_closure(&self, closure: &Closure, args: usize) -> Result<(), Error> {
        if closure.machine != self.identity {
            return Err(invalid("the closure belongs to another machine"));
        }
        let function = self.executable.functions.get(closure.func as usize);
        let function = function.ok_or_else(|| invalid("the closure's function does not exist"))?;
        let (needed, captured) = (function.params.len(), closure.free.len());
        if captured + args != needed {
            let needed = needed.saturating_sub(captured);
            return Err(invalid(format!(
                "the closure of {} takes {needed} arguments, and {args} are given",
                function.name
            )));
        }
        Ok(())
    }

    fn device(&self, index: usize) -> Result<Device, Error> {
        let place = self.places.get(index).ok_or_else(|| invalid(format!("there is no device {index}")))?;
        Ok(place.device)
    }

    /// A constant on its device: put there where it is used first.
    #[inline]
    fn constant(&self, index: usize, device: usize) -> Result<Any, Error> {
        let slot = &self.constants[index];
        if let Some(value) = slot.get() {
            return Ok(value.clone());
        }
        let Some(Constant::Immediate(tensor)) = self.executable.constants.get(index) else {
            return Err(invalid(format!("No binding for late-bound constant at index {index}")));
        };
        let value = Any::from(to_device(tensor, self.device(device)?)?);
        Ok(slot.get_or_init(|| value).clone())
    }

    /// The function of a kernel.
    fn kernel(&self, index: usize) -> Result<&Function, Error> {
        let slot = &self.kernels[index];
        if let Some(function) = slot.get() {
            return Ok(function);
        }
        let name = &self.executable.primitives[index];
        if INTRINSICS.iter().any(|(own, _, _)| own == name) {
            let wrong = format!("{name} is the machine's own, and is called with another number of arguments here");
            return Ok(slot.get_or_init(|| Function::new(move |_| Err(invalid(wrong.clone())))));
        }
        let found = self.library.as_ref().and_then(|library| library.get_function(name, true));
        let missing = || invalid(format!("Cannot find function in module: {name}"));
        let function = found.or_else(|| relaxide_ffi::get_global(name)).ok_or_else(missing)?;
        Ok(slot.get_or_init(|| function))
    }
}

/// Gives the tensors of constants that are bound later.
pub(crate) fn bind_constants(
    executable: &mut crate::Executable,
    tensors: &HashMap<String, Tensor>,
) -> Result<(), Error> {
    let mut used = 0usize;
    for (index, constant) in executable.constants.iter_mut().enumerate() {
        if let Constant::LateBound(name) = constant {
            let found = tensors.get(name).cloned();
            let tensor = found.ok_or_else(|| {
                invalid(format!("No binding for late-bound constant at index {index} with name '{name}'"))
            })?;
            *constant = Constant::Immediate(tensor);
            used += 1;
        }
    }
    match tensors.len().saturating_sub(used) {
        0 => Ok(()),
        left => Err(invalid(format!("Have {left} unused late-bound constants"))),
    }
}

impl crate::Executable {
    /// Takes the constants of at least so many bytes out, under the names `const_0` …; they are bound when it is loaded.
    pub fn move_late_bound_constants(&mut self, byte_limit: usize) -> Vec<(String, Tensor)> {
        let mut moved = Vec::new();
        for (index, constant) in self.constants.iter_mut().enumerate() {
            if let Constant::Immediate(tensor) = constant
                && tensor.byte_size() >= byte_limit
            {
                let name = format!("const_{index}");
                moved.push((name.clone(), tensor.clone()));
                *constant = Constant::LateBound(name);
            }
        }
        moved
    }

    /// Gives the constants that are bound later.
    pub fn load_late_bound_constants(&mut self, tensors: &HashMap<String, Tensor>) -> Result<(), Error> {
        bind_constants(self, tensors)
    }
}
