//! A device like a CPU, with memory that only it can reach.
//!
//! Devices of the type `ext_dev` here have handles in place of addresses: whoever follows one, or adds an offset to it, is found out.
//! Copies are counted by their direction, and allocations and copies fail when they are told to. Kernels run on the CPU, over the
//! memory behind the handles ([`on_handles`]).
//!
//! The device's counts are the process's: tests that look at them take [`alone`] first.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use relaxide_ffi::{Any, AnyView, Device, Error, ErrorKind, Function, Module, ModuleImpl, ModuleProperties, Tensor};
use relaxide_runtime::device::{Attribute, DeviceApi, Memory, Stream, register_device};
use relaxide_vm::Executable;

/// The type of the devices: DLPack's for devices of somebody's own.
pub const TYPE: i32 = 12;
/// How many there are.
pub const COUNT: i32 = 4;
/// The text of a target whose kernels are native code and whose data lives on such a device.
pub const TARGET: &str = r#"{"kind": "llvm", "target_device_type": 12}"#;

/// One of the devices.
pub fn device(id: i32) -> Device {
    enter();
    Device::new(TYPE, id)
}

/// Enters the devices into the process's registry.
pub fn enter() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| register_device(TYPE, &HANDLES).expect("nobody else has devices of this type"));
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Copies from the host.
    pub in_: usize,
    /// Copies to the host.
    pub out: usize,
    /// Copies between devices of this type.
    pub within: usize,
    /// Allocations that are alive.
    pub alive: usize,
}

/// What the devices have done since the process began.
pub fn counts() -> Counts {
    let state = state();
    Counts { alive: state.memory.len(), ..state.counts }
}

/// What was copied while something ran, and its result. What is alive is counted at the end.
pub fn copies<T>(run: impl FnOnce() -> T) -> (T, Counts) {
    let before = counts();
    let result = run();
    let after = counts();
    let counts = Counts {
        in_: after.in_ - before.in_,
        out: after.out - before.out,
        within: after.within - before.within,
        alive: after.alive,
    };
    (result, counts)
}

/// Has the next call but so many of that kind fail; nothing: none does.
pub fn fail(what: Fails, after: Option<usize>) {
    let counter = match what {
        Fails::Allocation => &ALLOCATIONS_LEFT,
        Fails::Copy => &COPIES_LEFT,
    };
    counter.store(after.map_or(NEVER, |after| after), Ordering::Relaxed);
}

/// What fails.
#[derive(Clone, Copy, Debug)]
pub enum Fails {
    /// Taking memory.
    Allocation,
    /// Copies in any direction.
    Copy,
}

/// Keeps other tests from using the devices meanwhile.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

const NEVER: usize = usize::MAX;
static ALLOCATIONS_LEFT: AtomicUsize = AtomicUsize::new(NEVER);
static COPIES_LEFT: AtomicUsize = AtomicUsize::new(NEVER);

/// Counts a call down: an error when its turn has come.
fn count_down(left: &AtomicUsize, what: &str, kind: ErrorKind) -> Result<(), Error> {
    let step = |left: usize| (left != NEVER).then(|| left.checked_sub(1).unwrap_or(NEVER));
    match left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step) {
        Ok(0) => Err(Error::new(kind, format!("{what}: this was asked for"))),
        _ => Ok(()),
    }
}

/// Handles begin far from anything that is an address, and are odd.
const FIRST: usize = 0x0dd;
/// The distance between two handles: less than an allocation of tests has bytes, so that sums lead nowhere.
const STEP: usize = 2;

struct DeviceBlock {
    device: Device,
    // Words, so that elements are aligned.
    words: Vec<u128>,
    bytes: usize,
}

#[derive(Default)]
struct DeviceState {
    memory: HashMap<usize, DeviceBlock>,
    made: usize,
    counts: Counts,
}

static STATE: Mutex<Option<DeviceState>> = Mutex::new(None);

struct Locked(MutexGuard<'static, Option<DeviceState>>);

impl std::ops::Deref for Locked {
    type Target = DeviceState;

    fn deref(&self) -> &DeviceState {
        self.0.as_ref().expect("it was made when it was locked")
    }
}

impl std::ops::DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut DeviceState {
        self.0.as_mut().expect("it was made when it was locked")
    }
}

fn state() -> Locked {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    state.get_or_insert_with(DeviceState::default);
    Locked(state)
}

impl DeviceState {
    /// The host's address behind a place on a device.
    fn resolve(&mut self, place: Memory, bytes: usize) -> Result<*mut u8, Error> {
        let wrong = |what: String| Error::new(ErrorKind::RuntimeError, what);
        let handle = place.handle.addr();
        let block = self.memory.get_mut(&handle);
        let block = block.ok_or_else(|| wrong(format!("{handle:#x} is no handle of {}", place.device)))?;
        if block.device != place.device {
            return Err(wrong(format!("{handle:#x} is a handle of {}, not of {}", block.device, place.device)));
        }
        if place.offset.checked_add(bytes).is_none_or(|end| end > block.bytes) {
            let message = format!("{bytes} bytes at {} are not in an allocation of {}", place.offset, block.bytes);
            return Err(wrong(message));
        }
        Ok(block.words.as_mut_ptr().cast::<u8>().wrapping_add(place.offset))
    }
}

struct Handles;

static HANDLES: Handles = Handles;

impl DeviceApi for Handles {
    fn exists(&self, device: Device) -> bool {
        (0..COUNT).contains(&device.device_id)
    }

    fn has_addresses(&self) -> bool {
        false
    }

    fn allocate(&self, device: Device, bytes: usize) -> Result<*mut c_void, Error> {
        count_down(&ALLOCATIONS_LEFT, "out of memory", ErrorKind::MemoryError)?;
        let mut state = state();
        let handle = FIRST + state.made * STEP;
        state.made += 1;
        state.memory.insert(handle, DeviceBlock { device, words: vec![0; bytes.div_ceil(16) + 4], bytes });
        Ok(std::ptr::without_provenance_mut(handle))
    }

    unsafe fn free(&self, _device: Device, handle: *mut c_void, _bytes: usize) {
        assert!(state().memory.remove(&handle.addr()).is_some(), "{handle:p} was freed and is no handle");
    }

    unsafe fn copy(&self, from: Memory, to: Memory, bytes: usize, _stream: Stream) -> Result<(), Error> {
        count_down(&COPIES_LEFT, "a copy fails", ErrorKind::RuntimeError)?;
        let mut state = state();
        state.counts.within += 1;
        let (from, to) = (state.resolve(from, bytes)?, state.resolve(to, bytes)?);
        // SAFETY: both ranges were just found to lie in their allocations.
        unsafe { to.copy_from(from, bytes) };
        Ok(())
    }

    unsafe fn copy_from_host(
        &self,
        from: *const c_void,
        to: Memory,
        bytes: usize,
        _stream: Stream,
    ) -> Result<(), Error> {
        count_down(&COPIES_LEFT, "a copy fails", ErrorKind::RuntimeError)?;
        let mut state = state();
        state.counts.in_ += 1;
        let to = state.resolve(to, bytes)?;
        // SAFETY: the target was just found to lie in its allocation; the caller vouches for the source.
        unsafe { to.copy_from(from.cast(), bytes) };
        Ok(())
    }

    unsafe fn copy_to_host(&self, from: Memory, to: *mut c_void, bytes: usize, _stream: Stream) -> Result<(), Error> {
        count_down(&COPIES_LEFT, "a copy fails", ErrorKind::RuntimeError)?;
        let mut state = state();
        state.counts.out += 1;
        let from = state.resolve(from, bytes)?;
        // SAFETY: the source was just found to lie in its allocation; the caller vouches for the target.
        unsafe { to.cast::<u8>().copy_from(from, bytes) };
        Ok(())
    }

    fn attribute(&self, device: Device, attribute: Attribute) -> Result<Option<Any>, Error> {
        Ok((attribute == Attribute::Exists).then(|| self.exists(device).into()))
    }

    fn synchronize(&self, _device: Device, _stream: Stream) -> Result<(), Error> {
        Ok(())
    }
}

/// A module whose kernels take tensors of these devices: it gives the kernels of the CPU the memory behind the handles. All tensors of a
/// call must be on one device, as for any kernel.
pub fn on_handles(kernels: Module) -> Module {
    Module::new(OnHandles(kernels))
}

/// The same program over kernels that take tensors of these devices too.
pub fn program(module: &Module) -> Result<Module, Error> {
    enter();
    let missing = || Error::new(ErrorKind::TypeError, "the module is no executable");
    let executable = Executable::of_module(module).ok_or_else(missing)?;
    let program = Executable::clone(&executable).into_module();
    for import in module.imports() {
        program.import(on_handles(import))?;
    }
    Ok(program)
}

/// The same for a program of the Relay VM.
pub fn relay_program(module: &Module) -> Result<Module, Error> {
    enter();
    let missing = || Error::new(ErrorKind::TypeError, "the module is no executable of the Relay VM");
    let program = relaxide::relay_vm::Executable::of_module(module).ok_or_else(missing)?.into_module();
    for import in module.imports() {
        program.import(on_handles(import))?;
    }
    Ok(program)
}

struct OnHandles(Module);

impl ModuleImpl for OnHandles {
    fn kind(&self) -> &str {
        "testkit.on_handles"
    }

    fn get_function(&self, name: &str) -> Option<Function> {
        let kernel = self.0.get_function(name, true)?;
        let name = name.to_owned();
        Some(Function::new(move |args| {
            let devices: Vec<Device> = args.iter().filter_map(|arg| Some(arg.as_tensor()?.device())).collect();
            if let Some(other) = devices.iter().find(|device| **device != devices[0]) {
                let message = format!("{name}: a tensor is on {other} and the first is on {}", devices[0]);
                return Err(Error::new(ErrorKind::ValueError, message));
            }
            let here = args.iter().map(behind).collect::<Result<Vec<Any>, Error>>()?;
            let views: Vec<AnyView<'_>> = here.iter().map(Any::as_view).collect();
            kernel.call(&views)
        }))
    }

    fn properties(&self) -> ModuleProperties {
        ModuleProperties::RUNNABLE
    }
}

/// A tensor of such a device as one of the CPU; any other value as it is.
fn behind(arg: &AnyView<'_>) -> Result<Any, Error> {
    let Some(tensor) = arg.as_tensor().filter(|tensor| tensor.device().device_type == TYPE) else {
        return Ok(arg.to_owned());
    };
    let address = state().resolve(Memory::of(tensor), tensor.byte_size())?;
    // SAFETY: the elements lie at the address for as long as the allocation lives, which the tensor keeps.
    let view = unsafe {
        Tensor::from_parts(address.cast(), tensor.shape(), tensor.dtype(), Device::cpu(0), 0, tensor.to_owned())
    };
    view.map(Any::from)
}
