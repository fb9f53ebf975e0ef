//! The devices: what there is, their queues, memory and copies.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

use relaxide_ffi::{Any, Device, Error, ErrorKind};

use super::driver::{DEVICE_NOT_FOUND, DEVICE_TYPE_ALL, Driver, MEM_READ_WRITE, Raw, SUCCESS, code_name, driver, info};
use crate::device::{Attribute, DeviceApi, Memory, Stream};

/// A device with its context and its queue.
pub(super) struct Opened {
    pub(super) driver: &'static Driver,
    pub(super) id: Raw,
    pub(super) context: Raw,
    pub(super) queue: Raw,
    device: Device,
}

// SAFETY: the driver's objects may be used from any thread; kernels' arguments, which may not, have a lock of their own.
unsafe impl Send for Opened {}
// SAFETY: as above.
unsafe impl Sync for Opened {}

/// An id of a device, which the driver keeps for ever.
#[derive(Clone, Copy)]
struct Id(Raw);

// SAFETY: an id is a name.
unsafe impl Send for Id {}
// SAFETY: as above.
unsafe impl Sync for Id {}

/// A device that was found, and what opening it came to.
type Slot = (Id, OnceLock<Result<Opened, Error>>);

/// All devices of all platforms: GPUs, then others, then CPUs. An error says why there are none.
fn ids() -> Result<&'static [Slot], Error> {
    static FOUND: OnceLock<Result<Vec<Slot>, Error>> = OnceLock::new();
    static PROCESS: OnceLock<u32> = OnceLock::new();
    // The driver's threads are not in a process that was forked: it would wait for them for ever.
    if *PROCESS.get_or_init(std::process::id) != std::process::id() {
        let message = "OpenCL was started before this process was forked, and its driver does not go on in it: begin with \
                       OpenCL in the child alone, or start the child anew (`multiprocessing.set_start_method(\"spawn\")`)";
        return Err(Error::new(ErrorKind::RuntimeError, message));
    }
    let found = FOUND.get_or_init(|| {
        let driver = driver()?;
        let mut ids = Vec::new();
        for platform in list(|count, place, all| {
            // SAFETY: `list` gives room for as many as it says.
            unsafe { (driver.platforms)(count, place, all) }
        })? {
            let of_platform = list(|count, place, all| {
                // SAFETY: as above.
                unsafe { (driver.device_ids)(platform, DEVICE_TYPE_ALL, count, place, all) }
            })?;
            ids.extend(of_platform.into_iter().map(Id));
        }
        // The bits of a type: 2 for CPUs, 4 for GPUs.
        ids.sort_by_key(|id| match number(driver, id.0, info::TYPE).unwrap_or(0) {
            kind if kind & 4 != 0 => 0,
            kind if kind & 2 != 0 => 2,
            _ => 1,
        });
        Ok(ids.into_iter().map(|id| (id, OnceLock::new())).collect())
    });
    match found {
        Ok(ids) if ids.is_empty() => {
            let message = "OpenCL is not available: its loader finds no device; install a driver (an ICD) for yours";
            Err(Error::new(ErrorKind::RuntimeError, message))
        }
        Ok(ids) => Ok(ids),
        Err(error) => Err(error.clone()),
    }
}

/// A list of the driver's, which is asked for its length first. None of a kind is an empty list.
fn list(ask: impl Fn(u32, *mut Raw, *mut u32) -> i32) -> Result<Vec<Raw>, Error> {
    let mut count = 0;
    match ask(0, std::ptr::null_mut(), &raw mut count) {
        SUCCESS => {}
        DEVICE_NOT_FOUND | -1001 => return Ok(Vec::new()),
        code => return Err(failed("list devices", None, code)),
    }
    let mut items = vec![std::ptr::null_mut(); count as usize];
    if count > 0 {
        let code = ask(count, items.as_mut_ptr(), std::ptr::null_mut());
        if code != SUCCESS {
            return Err(failed("list devices", None, code));
        }
    }
    Ok(items)
}

/// The error of a call: what was to be done, where, and what the driver says.
pub(super) fn failed(what: &str, device: Option<Device>, code: i32) -> Error {
    let place = device.map_or_else(|| "OpenCL".to_owned(), |device| device.to_string());
    let kind = if matches!(code, -6..=-4) { ErrorKind::MemoryError } else { ErrorKind::RuntimeError };
    Error::new(kind, format!("{place}: cannot {what}: {}", code_name(code)))
}

fn number(driver: &Driver, id: Raw, what: u32) -> Option<u64> {
    let mut value = [0_u8; 8];
    let mut size = 0;
    // SAFETY: the place has the eight bytes that the largest number takes.
    let code = unsafe { (driver.device_info)(id, what, value.len(), value.as_mut_ptr().cast(), &raw mut size) };
    (code == SUCCESS).then(|| u64::from_le_bytes(value))
}

fn bytes(driver: &Driver, id: Raw, what: u32) -> Option<Vec<u8>> {
    let mut size = 0;
    // SAFETY: only the size is asked for.
    let code = unsafe { (driver.device_info)(id, what, 0, std::ptr::null_mut(), &raw mut size) };
    // No answer of a device is longer.
    if code != SUCCESS || size > 1 << 20 {
        return None;
    }
    let mut value = vec![0_u8; size];
    // SAFETY: the place has as many bytes as the driver asked for.
    let code = unsafe { (driver.device_info)(id, what, size, value.as_mut_ptr().cast(), std::ptr::null_mut()) };
    (code == SUCCESS).then_some(value)
}

fn text(driver: &Driver, id: Raw, what: u32) -> Option<String> {
    let value = bytes(driver, id, what)?;
    Some(String::from_utf8_lossy(&value).trim_end_matches('\0').trim().to_owned())
}

fn id_of(device: Device) -> Result<Raw, Error> {
    let ids = ids()?;
    let found = usize::try_from(device.device_id).ok().and_then(|index| ids.get(index));
    found.map(|(id, _)| id.0).ok_or_else(|| absent(device, ids.len()))
}

fn absent(device: Device, count: usize) -> Error {
    Error::new(ErrorKind::ValueError, format!("there is no device {device}: OpenCL has {count} here, from 0"))
}

/// A device, which is opened when it is first used.
pub(super) fn opened(device: Device) -> Result<&'static Opened, Error> {
    let ids = ids()?;
    let found = usize::try_from(device.device_id).ok().and_then(|index| ids.get(index));
    let (id, slot) = found.ok_or_else(|| absent(device, ids.len()))?;
    slot.get_or_init(|| open(device, id.0)).as_ref().map_err(Error::clone)
}

fn open(device: Device, id: Raw) -> Result<Opened, Error> {
    let driver = driver()?;
    let mut code = SUCCESS;
    let none = std::ptr::null_mut();
    // SAFETY: one id is given; no properties and no callback are.
    let context = unsafe { (driver.create_context)(std::ptr::null(), 1, &raw const id, none, none, &raw mut code) };
    if code != SUCCESS || context.is_null() {
        return Err(failed("make a context", Some(device), code));
    }
    // SAFETY: the context is that of the device.
    let queue = unsafe { (driver.create_queue)(context, id, 0, &raw mut code) };
    if code != SUCCESS || queue.is_null() {
        return Err(failed("make a queue", Some(device), code));
    }
    Ok(Opened { driver, id, context, queue, device })
}

impl Opened {
    /// What binaries depend on beside their source: the device, and its driver.
    pub(super) fn identity(&self) -> Vec<Vec<u8>> {
        [info::NAME, info::VERSION, info::DRIVER_VERSION]
            .map(|what| bytes(self.driver, self.id, what).unwrap_or_default())
            .into()
    }

    pub(super) fn check(&self, what: &str, code: i32) -> Result<(), Error> {
        if code == SUCCESS { Ok(()) } else { Err(failed(what, Some(self.device), code)) }
    }

    fn finish(&self) -> Result<(), Error> {
        // SAFETY: the queue is live.
        self.check("wait for its queue", unsafe { (self.driver.finish)(self.queue) })
    }
}

/// The buffers that are alive, by their handles, and where they are.
static ALIVE: LazyLock<Mutex<HashMap<usize, Device>>> = LazyLock::new(Mutex::default);

/// The devices as the runtime sees them.
pub(super) struct OpenCl;

const NO_EVENTS: (u32, *const Raw, *mut Raw) = (0, std::ptr::null(), std::ptr::null_mut());

impl DeviceApi for OpenCl {
    fn exists(&self, device: Device) -> bool {
        id_of(device).is_ok()
    }

    fn why_none(&self) -> Option<String> {
        ids().err().map(|error| error.message().to_owned())
    }

    fn has_addresses(&self) -> bool {
        false
    }

    fn place_of(&self, handle: usize) -> Option<Device> {
        ALIVE.lock().unwrap_or_else(PoisonError::into_inner).get(&handle).copied()
    }

    fn allocate(&self, device: Device, bytes: usize) -> Result<*mut c_void, Error> {
        let opened = opened(device)?;
        let mut code = SUCCESS;
        // SAFETY: the context is live; no host memory is given.
        let memory = unsafe {
            (opened.driver.create_buffer)(
                opened.context,
                MEM_READ_WRITE,
                bytes.max(1),
                std::ptr::null_mut(),
                &raw mut code,
            )
        };
        opened.check(&format!("allocate {bytes} bytes"), code)?;
        ALIVE.lock().unwrap_or_else(PoisonError::into_inner).insert(memory.addr(), device);
        Ok(memory)
    }

    unsafe fn free(&self, device: Device, handle: *mut c_void, _bytes: usize) {
        ALIVE.lock().unwrap_or_else(PoisonError::into_inner).remove(&handle.addr());
        if let Ok(opened) = opened(device) {
            // SAFETY: the handle is a buffer of `allocate`, which nobody uses any more; what is queued keeps it until it is done.
            unsafe { (opened.driver.release_memory)(handle) };
        }
    }

    unsafe fn copy(&self, from: Memory, to: Memory, bytes: usize, stream: Stream) -> Result<(), Error> {
        if bytes == 0 {
            return Ok(());
        }
        if from.device != to.device {
            let mut staged = vec![0_u8; bytes];
            // SAFETY: the caller's promise for both ranges; the host's memory lives until both queues were waited for.
            unsafe {
                self.copy_to_host(from, staged.as_mut_ptr().cast(), bytes, stream)?;
                self.synchronize(from.device, stream)?;
                self.copy_from_host(staged.as_ptr().cast(), to, bytes, stream)?;
            }
            return self.synchronize(to.device, stream);
        }
        let opened = opened(to.device)?;
        let (count, waits, event) = NO_EVENTS;
        // SAFETY: the caller says that both ranges lie in live buffers.
        let code = unsafe {
            let (source, target) = (from.handle, to.handle);
            (opened.driver.copy)(opened.queue, source, target, from.offset, to.offset, bytes, count, waits, event)
        };
        opened.check(&format!("copy {bytes} bytes"), code)
    }

    unsafe fn copy_from_host(
        &self,
        from: *const c_void,
        to: Memory,
        bytes: usize,
        _stream: Stream,
    ) -> Result<(), Error> {
        if bytes == 0 {
            return Ok(());
        }
        let opened = opened(to.device)?;
        let (count, waits, event) = NO_EVENTS;
        // SAFETY: the caller says that the target lies in a live buffer, and that the source lives until the queue was waited for.
        let code =
            unsafe { (opened.driver.write)(opened.queue, to.handle, 0, to.offset, bytes, from, count, waits, event) };
        opened.check(&format!("copy {bytes} bytes from the host"), code)
    }

    unsafe fn copy_to_host(&self, from: Memory, to: *mut c_void, bytes: usize, _stream: Stream) -> Result<(), Error> {
        if bytes == 0 {
            return Ok(());
        }
        let opened = opened(from.device)?;
        let (count, waits, event) = NO_EVENTS;
        // SAFETY: the caller says that the source lies in a live buffer, and that the target is nobody else's until the queue was waited
        // for.
        let code =
            unsafe { (opened.driver.read)(opened.queue, from.handle, 0, from.offset, bytes, to, count, waits, event) };
        opened.check(&format!("copy {bytes} bytes to the host"), code)
    }

    fn attribute(&self, device: Device, attribute: Attribute) -> Result<Option<Any>, Error> {
        if attribute == Attribute::Exists {
            return Ok(Some(self.exists(device).into()));
        }
        let (driver, id) = (driver()?, id_of(device)?);
        let int = |what| number(driver, id, what).and_then(|value| i64::try_from(value).ok()).map(Any::from);
        let said = |what| text(driver, id, what).map(Any::from);
        Ok(match attribute {
            Attribute::MaxThreadsPerBlock => int(info::MAX_WORK_GROUP_SIZE),
            // No call tells it for all devices.
            Attribute::WarpSize => Some(1_i64.into()),
            Attribute::MaxSharedMemoryPerBlock => int(info::LOCAL_MEM_SIZE),
            Attribute::ComputeVersion => said(info::VERSION),
            Attribute::DeviceName => said(info::NAME),
            Attribute::MaxClockRate => number(driver, id, info::MAX_CLOCK_FREQUENCY)
                .and_then(|megahertz| i64::try_from(megahertz).ok()?.checked_mul(1000))
                .map(Any::from),
            Attribute::MultiProcessorCount => int(info::MAX_COMPUTE_UNITS),
            Attribute::MaxThreadDimensions => bytes(driver, id, info::MAX_WORK_ITEM_SIZES).map(|sizes| {
                let sizes = sizes.as_chunks::<8>().0.iter().map(|size| u64::from_le_bytes(*size).to_string());
                Any::from(format!("[{}]", sizes.collect::<Vec<_>>().join(", ")))
            }),
            Attribute::DriverVersion => said(info::DRIVER_VERSION),
            Attribute::TotalGlobalMemory => int(info::GLOBAL_MEM_SIZE),
            _ => None,
        })
    }

    fn synchronize(&self, device: Device, _stream: Stream) -> Result<(), Error> {
        opened(device)?.finish()
    }
}
