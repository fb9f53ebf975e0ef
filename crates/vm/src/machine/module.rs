//! The virtual machine as a module, for callers that know only modules.
//!
//! The module is made before its devices are known and initialised by its function `vm_initialization`. Then its
//! functions are those below and those of the executable.

use std::sync::OnceLock;
use std::time::Duration;

use relaxide_ffi::{
    Any, AnyView, Array, Device, Error, ErrorKind, FromAny, Function, Module, ModuleImpl, Ref, get_global,
};
use relaxide_runtime::memory::AllocatorKind;

use super::stateful::Returns;
use super::{ProfileReport, VirtualMachine};
use crate::FRONT_ENDS;
use crate::limits::Limits;

/// The kind of the module.
pub const MACHINE_KIND: &str = "relax.VirtualMachine";

/// A machine that may not be initialised yet.
struct MachineModule {
    executable: Module,
    machine: OnceLock<VirtualMachine>,
}

/// A module of kind [`MACHINE_KIND`] for an executable.
pub fn initialize_later(executable: Module) -> Module {
    Module::new(MachineModule { executable, machine: OnceLock::new() })
}

impl VirtualMachine {
    /// The machine as a module, already initialised.
    pub fn to_module(&self) -> Module {
        let executable = self.vm().module.clone();
        Module::new(MachineModule { executable, machine: OnceLock::from(self.clone()) })
    }
}

/// What a function of the module does.
type ModuleFunction = fn(&VirtualMachine, &[AnyView<'_>]) -> Result<Any, Error>;

/// The functions of the module itself. In WebAssembly nobody calls the machine as a module.
const FUNCTIONS: &[(&str, ModuleFunction)] = if cfg!(target_family = "wasm") { &[] } else { ALL_FUNCTIONS };

const ALL_FUNCTIONS: &[(&str, ModuleFunction)] = &[
    ("save_function", save_function),
    ("invoke_closure", invoke_closure),
    ("invoke_stateful", |vm, args| vm.invoke_stateful(&argument::<String>(args, 0, "function name")?).map(Any::from)),
    ("set_instrument", set_instrument),
    ("set_input", |vm, args| {
        vm.set_input(&argument::<String>(args, 0, "function name")?, rest(args, 1)).map(Any::from)
    }),
    ("set_input_with_param_module", set_input_with_param_module),
    ("set_limits", set_limits),
    ("set_strided_results", |vm, args| {
        vm.set_strided_results(argument(args, 0, "allowed")?);
        Ok(Any::none())
    }),
    ("get_output", get_output),
    ("get_output_arity", get_output_arity),
    ("get_function_arity", get_function_arity),
    ("get_function_param_name", get_function_param_name),
];

/// The functions of the module that only front ends ask for.
const FRONT_END_FUNCTIONS: &[(&str, ModuleFunction)] = if FRONT_ENDS {
    &[
        ("profile", |vm, args| Ok(profile(vm, args)?.to_json().into())),
        ("get_output_names", |vm, args| {
            let name: String = argument(args, 0, "function name")?;
            Ok(vm.executable().output_names(&name).into())
        }),
        ("profile_report", |vm, args| profile(vm, args).map(Any::from)),
        ("profile_run", profile_run),
    ]
} else {
    &[]
};

const INITIALIZE: &str = "vm_initialization";

impl ModuleImpl for MachineModule {
    fn kind(&self) -> &str {
        MACHINE_KIND
    }

    fn get_function(&self, name: &str) -> Option<Function> {
        let machine = self.machine.get()?;
        if let Some((_, body)) = FUNCTIONS.iter().chain(FRONT_END_FUNCTIONS).find(|(own, _)| *own == name) {
            let machine = machine.clone();
            return Some(Function::new(move |args| body(&machine, args)));
        }
        machine.function(name)
    }

    fn get_bound_function(&self, module: &Module, name: &str) -> Option<Function> {
        if name != INITIALIZE {
            return self.get_function(name);
        }
        let module = module.clone();
        Some(Function::new(move |args| {
            let lost = || Error::new(ErrorKind::InternalError, "the module is not a virtual machine");
            module.downcast::<MachineModule>().ok_or_else(lost)?.initialize(args)
        }))
    }
}

impl MachineModule {
    /// `(device type, device id, allocator kind) × n`.
    fn initialize(&self, args: &[AnyView<'_>]) -> Result<Any, Error> {
        if args.is_empty() || !args.len().is_multiple_of(3) {
            let message = format!("{INITIALIZE} takes device type, device id and allocator kind for each device");
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        let device = |at: usize| {
            let device = Device {
                device_type: argument(args, at, "device type")?,
                device_id: argument(args, at + 1, "device id")?,
            };
            Ok((device, AllocatorKind::from_number(argument(args, at + 2, "allocator kind")?)?))
        };
        let devices = (0..args.len()).step_by(3).map(device).collect::<Result<Vec<_>, Error>>()?;
        let machine = VirtualMachine::new(&self.executable, &devices)?;
        let again = |_| Error::new(ErrorKind::RuntimeError, "the virtual machine is already initialised");
        self.machine.set(machine).map_err(again).map(Any::from)
    }
}

fn argument<T: FromAny>(args: &[AnyView<'_>], index: usize, name: &str) -> Result<T, Error> {
    let missing = || Error::new(ErrorKind::TypeError, format!("argument {index} ({name}) is missing"));
    let value: Result<T, Error> = args.get(index).ok_or_else(missing)?.to();
    value.map_err(|error| error.context(format_args!("argument {index} ({name})")))
}

fn rest<'a, 'v>(args: &'a [AnyView<'v>], from: usize) -> &'a [AnyView<'v>] {
    args.get(from..).unwrap_or_default()
}

/// `(function name, saved name, include return, argument…)`.
fn save_function(vm: &VirtualMachine, args: &[AnyView<'_>]) -> Result<Any, Error> {
    let (name, saved): (String, String) = (argument(args, 0, "function name")?, argument(args, 1, "saved name")?);
    let returns = if argument(args, 2, "include return")? { Returns::Result } else { Returns::Nothing };
    vm.save_function(&name, &saved, rest(args, 3), returns).map(Any::from)
}

/// `(closure, argument…)`.
fn invoke_closure(vm: &VirtualMachine, args: &[AnyView<'_>]) -> Result<Any, Error> {
    let closure: Any = argument(args, 0, "closure")?;
    vm.invoke_closure(closure.as_view(), rest(args, 1))
}

/// `(function or the name of a global one, or nothing)`.
fn set_instrument(vm: &VirtualMachine, args: &[AnyView<'_>]) -> Result<Any, Error> {
    let value: Any = argument(args, 0, "instrument")?;
    let function = match value.as_str() {
        Some(name) => Some(get_global(name).ok_or_else(|| {
            Error::new(ErrorKind::ValueError, format!("there is no global function {name} to instrument with"))
        })?),
        None if value.is_none() => None,
        None => Some(value.to()?),
    };
    vm.set_instrument(function);
    Ok(Any::none())
}

/// `(instructions, bytes, milliseconds, depth)`: what a run may use; nothing for what is not limited.
fn set_limits(vm: &VirtualMachine, args: &[AnyView<'_>]) -> Result<Any, Error> {
    let time: Option<u64> = argument(args, 2, "milliseconds")?;
    vm.set_limits(Limits {
        instructions: argument(args, 0, "instructions")?,
        memory: argument(args, 1, "bytes")?,
        time: time.map(Duration::from_millis),
        depth: argument(args, 3, "depth")?,
    });
    Ok(Any::none())
}

/// `(function name, argument…)`.
fn profile(vm: &VirtualMachine, args: &[AnyView<'_>]) -> Result<Ref<ProfileReport>, Error> {
    vm.profile(&argument::<String>(args, 0, "function name")?, rest(args, 1)).map(|(_, report)| report)
}

/// `(function name, argument…)`: the result, and the report of the run that gave it.
fn profile_run(vm: &VirtualMachine, args: &[AnyView<'_>]) -> Result<Any, Error> {
    let (result, report) = vm.profile(&argument::<String>(args, 0, "function name")?, rest(args, 1))?;
    Ok(Array::from_vec(vec![result, report.into()]).into())
}

/// `(function name, argument…, module)`: the last arguments are what the module's function `get_params` returns.
fn set_input_with_param_module(vm: &VirtualMachine, args: &[AnyView<'_>]) -> Result<Any, Error> {
    let name: String = argument(args, 0, "function name")?;
    let last = args.len().saturating_sub(1).max(1);
    let module: Module = argument(args, last, "parameter module")?;
    let lacking = || Error::new(ErrorKind::ValueError, "the parameter module has no function get_params");
    let params = module.get_function("get_params", true).ok_or_else(lacking)?.call(&[])?;
    let mut inputs: Vec<AnyView<'_>> = args.get(1..last).unwrap_or_default().to_vec();
    inputs.push(params.as_view());
    vm.set_input(&name, &inputs).map(Any::from)
}

fn indices(args: &[AnyView<'_>]) -> Result<Vec<i64>, Error> {
    (1..args.len()).map(|at| argument(args, at, "index")).collect()
}

/// `(function name, index…)`: a result that is not a tuple.
fn get_output(vm: &VirtualMachine, args: &[AnyView<'_>]) -> Result<Any, Error> {
    let value = vm.get_output(&argument::<String>(args, 0, "function name")?, &indices(args)?)?;
    if value.to::<relaxide_ffi::Array>().is_ok() {
        let message =
            "`get_output` cannot return a tuple for RPC compatibility. Please specify another index argument.";
        return Err(Error::new(ErrorKind::ValueError, message));
    }
    Ok(value)
}

/// `(function name, index…)`: the size of a tuple, or -1.
fn get_output_arity(vm: &VirtualMachine, args: &[AnyView<'_>]) -> Result<Any, Error> {
    let arity = vm.output_arity(&argument::<String>(args, 0, "function name")?, &indices(args)?)?;
    Ok(arity.map_or(-1, |arity| arity as i64).into())
}

/// `(function name)`: how many parameters have names.
fn get_function_arity(vm: &VirtualMachine, args: &[AnyView<'_>]) -> Result<Any, Error> {
    Ok((vm.param_names(&argument::<String>(args, 0, "function name")?)?.len() as i64).into())
}

/// `(function name, index)`.
fn get_function_param_name(vm: &VirtualMachine, args: &[AnyView<'_>]) -> Result<Any, Error> {
    let (name, index): (String, i64) = (argument(args, 0, "function name")?, argument(args, 1, "index")?);
    let names = vm.param_names(&name)?;
    let found = usize::try_from(index).ok().and_then(|index| names.get(index));
    found.map(Any::from).ok_or_else(|| {
        let message = format!("Invalid index for {name} ({index} out of {})", names.len());
        Error::new(ErrorKind::ValueError, message)
    })
}
