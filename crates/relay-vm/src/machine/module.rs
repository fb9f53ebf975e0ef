//! Executable and machine as modules, for callers that know only modules; the names are those of the reference.

use std::collections::HashMap;
use std::sync::{Mutex, Once, OnceLock, PoisonError};

use relaxide_ffi::{
    Any, AnyView, Array, Bytes, Device, Error, ErrorKind, Function, Map, Module, ModuleImpl, ModuleProperties, Tensor,
    get_global, register_global,
};
use relaxide_runtime::memory::AllocatorKind;

use super::{MachineOptions, VirtualMachine, invalid};
use crate::executable::{Constant, Executable};
use crate::{params, read, verify, write};

/// The kind of an executable's module.
pub(crate) const EXECUTABLE_KIND: &str = "VMExecutable";
/// The kind of a machine's module.
pub(crate) const MACHINE_KIND: &str = "VirtualMachine";

/// Enters the loader of executables among the global functions. Calling it again does nothing.
pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        relaxide_runtime::register();
        crate::graph::register();
        let load = Function::new(|args| {
            let missing = || Error::new(ErrorKind::TypeError, "load_from_bytes takes the bytes of an executable");
            let bytes = args.first().and_then(AnyView::as_bytes).ok_or_else(missing)?;
            Executable::from_bytes(bytes).map(|e| Any::from(e.into_module()))
        });
        for name in [format!("ffi.Module.load_from_bytes.{EXECUTABLE_KIND}"), "relay.vm.load_executable".to_string()] {
            if get_global(&name).is_none() {
                // Only another thread's registration of the same function can come between.
                let _ = register_global(&name, load.clone());
            }
        }
    });
}

impl Executable {
    /// The executable of its bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Executable, Error> {
        read(bytes).map_err(|error| invalid(error.to_string()))
    }

    /// Its bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        write(self)
    }

    /// As a module. Its kernels are the module's imports.
    pub fn into_module(self) -> Module {
        register();
        Module::new(ExecutableModule(Mutex::new(self)))
    }

    /// The executable in a module, if there is one.
    pub fn of_module(module: &Module) -> Option<Executable> {
        let module = module.downcast::<ExecutableModule>()?;
        Some(module.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

struct ExecutableModule(Mutex<Executable>);

fn arg<T: relaxide_ffi::FromAny>(args: &[AnyView<'_>], index: usize, what: &str) -> Result<T, Error> {
    let missing = || Error::new(ErrorKind::TypeError, format!("argument {index} is missing: {what}"));
    args.get(index).ok_or_else(missing)?.to().map_err(|e| e.context(what))
}

type Tell = fn(&mut Executable, &[AnyView<'_>]) -> Result<Any, Error>;

const TELL: &[(&str, Tell)] = &[
    ("get_bytecode", |e, _| e.bytecode().map(|t| Any::from(t.as_str())).map_err(|why| invalid(why.to_string()))),
    ("get_stats", |e, _| Ok(Any::from(e.stats().as_str()))),
    ("get_constants", |e, _| Ok(Any::from(e.constants_text().as_str()))),
    ("get_virtual_devices", |e, _| Ok(Any::from(e.virtual_devices_text().as_str()))),
    ("get_primitives", |e, _| Ok(Any::from(e.primitives_text().as_str()))),
    ("save", |e, _| write(e).map(|bytes| Any::from(Bytes::from(bytes.as_slice())))),
    ("get_function_arity", |e, args| function(e, args).map(|f| Any::from(e.functions[f].params.len() as i64))),
    ("get_function_param_name", |e, args| {
        let func = function(e, args)?;
        let index: i64 = arg(args, 1, "the parameter's place")?;
        let name = usize::try_from(index).ok().and_then(|i| e.functions[func].params.get(i));
        name.map(|n| Any::from(n.as_str())).ok_or_else(|| invalid(format!("there is no parameter {index}")))
    }),
    ("move_late_bound_consts", |e, args| {
        let (path, limit): (String, i64) = (arg(args, 0, "a path")?, arg(args, 1, "a number of bytes")?);
        let moved = e.move_late_bound_constants(usize::try_from(limit).unwrap_or(0));
        let bytes = params::save_params(moved.iter().map(|(name, tensor)| (name.as_str(), tensor)))?;
        std::fs::write(&path, bytes).map_err(|error| invalid(format!("cannot write {path}: {error}")))?;
        Ok(Any::none())
    }),
    ("load_late_bound_consts", |e, args| {
        let path: String = arg(args, 0, "a path")?;
        let bytes = std::fs::read(&path).map_err(|error| invalid(format!("cannot read {path}: {error}")))?;
        let tensors: HashMap<String, Tensor> = params::load_params(&bytes)?.into_iter().collect();
        super::bind_constants(e, &tensors).map(|()| Any::none())
    }),
    ("load_late_bound_consts_from_map", |e, args| {
        let map: Map = arg(args, 0, "tensors by name")?;
        let tensors = map.iter().map(|(k, v)| Ok((k.to::<String>()?, v.to::<Tensor>()?)));
        let tensors = tensors.collect::<Result<HashMap<_, _>, Error>>()?;
        super::bind_constants(e, &tensors).map(|()| Any::none())
    }),
];

fn function(e: &Executable, args: &[AnyView<'_>]) -> Result<usize, Error> {
    let name: String = arg(args, 0, "the name of a function")?;
    e.index_of(&name).ok_or_else(|| invalid(format!("Cannot find function {name} in the executable")))
}

impl Executable {
    /// One line for each constant.
    pub fn constants_text(&self) -> String {
        let line = |(i, (constant, device)): (usize, (&Constant, &i64))| match constant {
            Constant::Immediate(t) => {
                let dims: Vec<String> = t.shape().iter().map(i64::to_string).collect();
                format!("VM Const[{i}]: ({}){}  on device index {device}\n", dims.join(", "), t.dtype())
            }
            Constant::LateBound(name) => format!("VM Const[{i}]: <late bound as '{name}'>  on device index {device}\n"),
        };
        self.constants.iter().zip(&self.constant_devices).enumerate().map(line).collect()
    }

    /// One line for each device.
    pub fn virtual_devices_text(&self) -> String {
        let line = |(i, device): (usize, &crate::VirtualDevice)| {
            let host = if i as i32 == self.host_device { " (host)" } else { "" };
            let scope = if device.scope.is_empty() { String::new() } else { format!(", scope {}", device.scope) };
            let (kind, id) = (device.device_type, device.device_id);
            format!("VM VirtualDevice[{i}]: device type {kind}, id {id}{scope}{host}\n")
        };
        self.virtual_devices.iter().enumerate().map(line).collect()
    }

    /// One line for each kernel.
    pub fn primitives_text(&self) -> String {
        let line = |(i, name): (usize, &String)| format!("VM PackedFunc[{i}]: {name}\n");
        self.primitives.iter().enumerate().map(line).collect()
    }
}

impl ModuleImpl for ExecutableModule {
    fn kind(&self) -> &str {
        EXECUTABLE_KIND
    }

    fn get_function(&self, _: &str) -> Option<Function> {
        None
    }

    fn get_bound_function(&self, module: &Module, name: &str) -> Option<Function> {
        let module = module.clone();
        if name == "vm_load_executable" {
            return Some(Function::new(move |_| Ok(Any::from(machine_module(&module)))));
        }
        if name == "get_lib" {
            return Some(Function::new(move |_| {
                Ok(module.imports().into_iter().next().map_or(Any::none(), Any::from))
            }));
        }
        let (_, tell) = TELL.iter().find(|(own, _)| *own == name)?;
        Some(Function::new(move |args| {
            let own = module.downcast::<ExecutableModule>().ok_or_else(|| invalid("not an executable"))?;
            let mut executable = own.0.lock().unwrap_or_else(PoisonError::into_inner);
            tell(&mut executable, args)
        }))
    }

    fn properties(&self) -> ModuleProperties {
        ModuleProperties::BINARY_SERIALIZABLE
    }

    fn save_to_bytes(&self) -> Result<Vec<u8>, Error> {
        write(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A machine that gets its devices by `init`.
struct MachineModule {
    executable: Module,
    machine: OnceLock<VirtualMachine>,
}

fn machine_module(executable: &Module) -> Module {
    Module::new(MachineModule { executable: executable.clone(), machine: OnceLock::new() })
}

impl VirtualMachine {
    /// A machine for a module of an executable, whose imports hold the kernels.
    pub fn of_module(module: &Module, options: MachineOptions) -> Result<VirtualMachine, Error> {
        let executable = Executable::of_module(module)
            .ok_or_else(|| invalid(format!("a module of kind {} is no executable of the Relay VM", module.kind())))?;
        let verified = verify(executable).map_err(|e| invalid(e.to_string()))?;
        VirtualMachine::new(verified, Some(module.clone()), options)
    }
}

impl MachineModule {
    /// `(device type, device id, allocator)` for each device.
    fn init(&self, args: &[AnyView<'_>]) -> Result<Any, Error> {
        let numbers = args.iter().map(AnyView::to::<i64>).collect::<Result<Vec<_>, _>>()?;
        let mut devices = Vec::new();
        for triple in numbers.chunks(3) {
            let [kind, id, allocator] = *triple else {
                return Err(invalid("init takes three numbers for each device"));
            };
            let int = |v: i64| i32::try_from(v).map_err(|_| invalid(format!("{v} is no device")));
            let device = Device { device_type: int(kind)?, device_id: int(id)? };
            devices.push((device, AllocatorKind::from_number(allocator)?));
        }
        let machine =
            VirtualMachine::of_module(&self.executable, MachineOptions { devices, ..MachineOptions::default() })?;
        self.machine.set(machine).map_err(|_| invalid("the machine is initialised already"))?;
        Ok(Any::none())
    }
}

type MachineFunction = fn(&VirtualMachine, &[AnyView<'_>]) -> Result<Any, Error>;

fn rest<'a, 'b>(args: &'a [AnyView<'b>], from: usize) -> &'a [AnyView<'b>] {
    args.get(from..).unwrap_or_default()
}

const FUNCTIONS: &[(&str, MachineFunction)] = &[
    ("invoke", |vm, args| vm.invoke(&arg::<String>(args, 0, "the name of a function")?, rest(args, 1))),
    ("invoke_closure", |vm, args| {
        let closure = args.first().ok_or_else(|| invalid("a closure is missing"))?;
        vm.invoke_closure(*closure, rest(args, 1))
    }),
    ("set_input", |vm, args| {
        vm.set_input(&arg::<String>(args, 0, "the name of a function")?, rest(args, 1)).map(|()| Any::none())
    }),
    ("set_one_input", |vm, args| {
        let (name, value) = (arg::<String>(args, 0, "the name of a function")?, args.get(2).copied());
        let value = value.ok_or_else(|| invalid("the value is missing"))?;
        let index = match arg::<i64>(args, 1, "the input") {
            Ok(index) => usize::try_from(index).map_err(|_| invalid(format!("there is no input {index}")))?,
            Err(_) => {
                let input: String = arg(args, 1, "the input's name or place")?;
                let missing = || invalid(format!("function {name} has no input {input}"));
                vm.input_index(&name, &input)?.ok_or_else(missing)?
            }
        };
        vm.set_one_input(&name, index, value).map(|()| Any::none())
    }),
    ("invoke_stateful", |vm, args| {
        vm.invoke_stateful(&arg::<String>(args, 0, "the name of a function")?).map(|()| Any::none())
    }),
    ("get_output", |vm, args| {
        let index: i64 = arg(args, 0, "the output's place")?;
        vm.output(usize::try_from(index).map_err(|_| invalid(format!("there is no output {index}")))?)
    }),
    ("get_num_outputs", |vm, _| vm.num_outputs().map(|n| Any::from(n as i64))),
    ("get_input_index", |vm, args| {
        let (input, name) = (arg::<String>(args, 0, "the input's name")?, arg::<String>(args, 1, "the function")?);
        Ok(Any::from(vm.input_index(&name, &input)?.map_or(-1, |i| i as i64)))
    }),
    ("invoke_return_to_device", |vm, args| {
        let (kind, id): (i64, i64) = (arg(args, 0, "the device's type")?, arg(args, 1, "the device's number")?);
        let name: String = arg(args, 2, "the name of a function")?;
        let int = |v: i64| i32::try_from(v).map_err(|_| invalid(format!("{v} is no device")));
        let device = Device { device_type: int(kind)?, device_id: int(id)? };
        let result = vm.invoke(&name, rest(args, 3))?;
        match result.as_tensor() {
            Some(tensor) => relaxide_runtime::device::to_device(tensor, device).map(Any::from),
            None => Ok(result),
        }
    }),
    ("get_adt_fields", |_, args| {
        let value = args.first().and_then(|v| v.downcast_ref::<crate::Adt>());
        let adt = value.ok_or_else(|| invalid("a tuple or a value of a data type is expected"))?;
        Ok(Any::from(Array::from_iter(adt.fields.iter().cloned())))
    }),
];

impl ModuleImpl for MachineModule {
    fn kind(&self) -> &str {
        MACHINE_KIND
    }

    fn get_function(&self, _: &str) -> Option<Function> {
        None
    }

    fn get_bound_function(&self, module: &Module, name: &str) -> Option<Function> {
        let module = module.clone();
        fn own(module: &Module) -> Result<&MachineModule, Error> {
            module.downcast::<MachineModule>().ok_or_else(|| invalid("not a machine"))
        }
        if name == "init" {
            return Some(Function::new(move |args| own(&module)?.init(args)));
        }
        let (name, body) = FUNCTIONS.iter().find(|(own, _)| *own == name)?;
        Some(Function::new(move |args| {
            let missing = || invalid(format!("{name} needs a machine that is initialised: call init first"));
            body(own(&module)?.machine.get().ok_or_else(missing)?, args)
        }))
    }
}
