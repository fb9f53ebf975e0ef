//! The devices: what there is, their contexts, streams, memory and copies.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{c_char, c_void};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

use relaxide_ffi::{Any, Device, Error, ErrorKind};

use super::driver::{
    Address, Driver, EVENT_DISABLE_TIMING, OUT_OF_MEMORY, Raw, STREAM_NON_BLOCKING, SUCCESS, driver, info,
};
use crate::device::{Attribute, DeviceApi, Memory, Stream};

/// A device with its context.
pub(super) struct Opened {
    pub(super) driver: &'static Driver,
    context: Raw,
    device: Device,
}

// SAFETY: the driver's objects may be used from any thread.
unsafe impl Send for Opened {}
// SAFETY: as above.
unsafe impl Sync for Opened {}

/// A device by its number in the driver, and what opening it came to.
type Slot = (i32, OnceLock<Result<Opened, Error>>);

/// All devices. An error says why there are none.
fn slots() -> Result<&'static [Slot], Error> {
    static FOUND: OnceLock<Result<Vec<Slot>, Error>> = OnceLock::new();
    static PROCESS: OnceLock<u32> = OnceLock::new();
    if *PROCESS.get_or_init(std::process::id) != std::process::id() {
        let message = "CUDA was started before this process was forked, and its driver does not go on in it: begin with CUDA in the \
                       child alone, or start the child anew (`multiprocessing.set_start_method(\"spawn\")`)";
        return Err(Error::new(ErrorKind::RuntimeError, message));
    }
    let found = FOUND.get_or_init(|| {
        let driver = driver()?;
        let mut count = 0;
        // SAFETY: the place is a number's.
        checked(driver, "count devices", None, unsafe { (driver.device_count)(&raw mut count) })?;
        let device = |at| {
            let mut id = 0;
            // SAFETY: the place is a number's, and there are more devices than `at`.
            checked(driver, "find a device", None, unsafe { (driver.device)(&raw mut id, at) })?;
            Ok((id, OnceLock::new()))
        };
        (0..count).map(device).collect()
    });
    match found {
        Ok(slots) if slots.is_empty() => {
            let message = "CUDA is not available: its driver finds no device; is `CUDA_VISIBLE_DEVICES` empty?";
            Err(Error::new(ErrorKind::RuntimeError, message))
        }
        Ok(slots) => Ok(slots),
        Err(error) => Err(error.clone()),
    }
}

/// The error of a call, if it failed: what was to be done, where, and what the driver says.
fn checked(driver: &Driver, what: &str, device: Option<Device>, code: i32) -> Result<(), Error> {
    if code == SUCCESS {
        return Ok(());
    }
    let place = device.map_or_else(|| "CUDA".to_owned(), |device| device.to_string());
    let kind = if code == OUT_OF_MEMORY { ErrorKind::MemoryError } else { ErrorKind::RuntimeError };
    Err(Error::new(kind, format!("{place}: cannot {what}: {}", driver.code_name(code))))
}

fn slot(device: Device) -> Result<&'static Slot, Error> {
    let slots = slots()?;
    let found = usize::try_from(device.device_id).ok().and_then(|index| slots.get(index));
    found.ok_or_else(|| {
        let message = format!("there is no device {device}: CUDA has {} here, from 0", slots.len());
        Error::new(ErrorKind::ValueError, message)
    })
}

/// A device, which is opened when it is first used; the thread works with its context from then on.
pub(super) fn opened(device: Device) -> Result<&'static Opened, Error> {
    let (id, slot) = slot(device)?;
    let opened = slot.get_or_init(|| open(device, *id)).as_ref().map_err(Error::clone)?;
    // SAFETY: the context is live for as long as the process.
    opened.check("enter its context", unsafe { (opened.driver.set_context)(opened.context) })?;
    Ok(opened)
}

fn open(device: Device, id: i32) -> Result<Opened, Error> {
    let (driver, mut context) = (driver()?, std::ptr::null_mut());
    // SAFETY: the place is a pointer's.
    checked(driver, "make a context", Some(device), unsafe { (driver.retain_context)(&raw mut context, id) })?;
    Ok(Opened { driver, context, device })
}

impl Opened {
    pub(super) fn check(&self, what: &str, code: i32) -> Result<(), Error> {
        checked(self.driver, what, Some(self.device), code)
    }
}

/// What is allocated, by its address: bytes, and where.
static ALIVE: LazyLock<Mutex<BTreeMap<usize, (usize, Device)>>> = LazyLock::new(Mutex::default);

fn alive<T>(work: impl FnOnce(&mut BTreeMap<usize, (usize, Device)>) -> T) -> T {
    work(&mut ALIVE.lock().unwrap_or_else(PoisonError::into_inner))
}

thread_local! {
    /// The streams that the thread has set.
    static STREAMS: RefCell<HashMap<i32, Stream>> = RefCell::new(HashMap::new());
}

pub(super) fn raw(stream: Stream) -> Raw {
    std::ptr::with_exposed_provenance_mut(stream.0)
}

fn address(memory: Memory) -> Address {
    memory.address().addr() as Address
}

/// The devices as the runtime sees them.
pub(super) struct Cuda;

impl DeviceApi for Cuda {
    fn exists(&self, device: Device) -> bool {
        slot(device).is_ok()
    }

    fn why_none(&self) -> Option<String> {
        slots().err().map(|error| error.message().to_owned())
    }

    fn place_of(&self, handle: usize) -> Option<Device> {
        alive(|alive| {
            let (begin, (bytes, device)) = alive.range(..=handle).next_back()?;
            (handle - begin < (*bytes).max(1)).then_some(*device)
        })
    }

    fn allocate(&self, device: Device, bytes: usize) -> Result<*mut c_void, Error> {
        let (opened, mut place) = (opened(device)?, 0);
        // SAFETY: the place is an address's.
        let code = unsafe { (opened.driver.allocate)(&raw mut place, bytes.max(1)) };
        opened.check(&format!("allocate {bytes} bytes"), code)?;
        alive(|alive| alive.insert(place as usize, (bytes, device)));
        Ok(std::ptr::with_exposed_provenance_mut(place as usize))
    }

    unsafe fn free(&self, device: Device, handle: *mut c_void, _bytes: usize) {
        alive(|alive| alive.remove(&handle.addr()));
        if let Ok(opened) = opened(device) {
            // SAFETY: the address is one of `allocate`, which nobody uses any more; the driver waits for what is queued.
            unsafe { (opened.driver.free)(handle.addr() as Address) };
        }
    }

    unsafe fn copy(&self, from: Memory, to: Memory, bytes: usize, stream: Stream) -> Result<(), Error> {
        if bytes == 0 {
            return Ok(());
        }
        let what = || format!("copy {bytes} bytes from {}", from.device);
        if from.device == to.device {
            let opened = opened(to.device)?;
            // SAFETY: the caller says that both ranges lie in live allocations.
            let code = unsafe { (opened.driver.copy)(address(to), address(from), bytes, raw(stream)) };
            return opened.check(&what(), code);
        }
        let target = opened(to.device)?;
        // The stream is one of the source's.
        let source = opened(from.device)?;
        // SAFETY: as above; both contexts are live.
        let code = unsafe {
            let (to, from) = (address(to), address(from));
            (source.driver.copy_peer)(to, target.context, from, source.context, bytes, raw(stream))
        };
        target.check(&what(), code)?;
        self.synchronize(from.device, stream)
    }

    unsafe fn copy_from_host(
        &self,
        from: *const c_void,
        to: Memory,
        bytes: usize,
        stream: Stream,
    ) -> Result<(), Error> {
        if bytes == 0 {
            return Ok(());
        }
        let opened = opened(to.device)?;
        // SAFETY: the caller says that the target lies in a live allocation, and that the source lives until the stream was waited for.
        let code = unsafe { (opened.driver.copy_in)(address(to), from, bytes, raw(stream)) };
        opened.check(&format!("copy {bytes} bytes from the host"), code)
    }

    unsafe fn copy_to_host(&self, from: Memory, to: *mut c_void, bytes: usize, stream: Stream) -> Result<(), Error> {
        if bytes == 0 {
            return Ok(());
        }
        let opened = opened(from.device)?;
        // SAFETY: the caller says that the source lies in a live allocation, and that the target is nobody else's until the stream was
        // waited for.
        let code = unsafe { (opened.driver.copy_out)(to, address(from), bytes, raw(stream)) };
        opened.check(&format!("copy {bytes} bytes to the host"), code)
    }

    fn current_stream(&self, device: Device) -> Stream {
        STREAMS.with_borrow(|streams| streams.get(&device.device_id).copied().unwrap_or(Stream::DEFAULT))
    }

    fn attribute(&self, device: Device, attribute: Attribute) -> Result<Option<Any>, Error> {
        if attribute == Attribute::Exists {
            return Ok(Some(self.exists(device).into()));
        }
        let (driver, (id, _)) = (driver()?, slot(device)?);
        let number = |what| {
            let mut value = 0;
            // SAFETY: the place is a number's.
            let code = unsafe { (driver.device_info)(&raw mut value, what, *id) };
            (code == SUCCESS).then_some(i64::from(value))
        };
        let int = |what| number(what).map(Any::from);
        Ok(match attribute {
            Attribute::MaxThreadsPerBlock => int(info::MAX_THREADS_PER_BLOCK),
            Attribute::WarpSize => int(info::WARP_SIZE),
            Attribute::MaxSharedMemoryPerBlock => int(info::MAX_SHARED_MEMORY_PER_BLOCK),
            Attribute::ComputeVersion => {
                let [major, minor] = info::COMPUTE_CAPABILITY.map(number);
                major.zip(minor).map(|(major, minor)| Any::from(format!("{major}.{minor}")))
            }
            Attribute::DeviceName => name(driver, *id).map(Any::from),
            Attribute::MaxClockRate => int(info::CLOCK_RATE),
            Attribute::MultiProcessorCount => int(info::MULTIPROCESSOR_COUNT),
            Attribute::MaxThreadDimensions => {
                let sizes = info::MAX_BLOCK_DIMENSIONS.map(number);
                let sizes: Option<Vec<String>> = sizes.iter().map(|size| size.map(|size| size.to_string())).collect();
                sizes.map(|sizes| Any::from(format!("[{}]", sizes.join(", "))))
            }
            Attribute::MaxRegistersPerBlock => int(info::MAX_REGISTERS_PER_BLOCK),
            Attribute::L2CacheSizeBytes => int(info::L2_CACHE_SIZE),
            Attribute::ApiVersion | Attribute::DriverVersion => {
                let mut version = 0;
                // SAFETY: the place is a number's.
                let code = unsafe { (driver.version)(&raw mut version) };
                (code == SUCCESS).then(|| Any::from(i64::from(version)))
            }
            Attribute::TotalGlobalMemory => {
                let mut bytes = 0;
                // SAFETY: the place is a size's.
                let code = unsafe { (driver.device_memory)(&raw mut bytes, *id) };
                (code == SUCCESS).then(|| Any::from(bytes as i64))
            }
            Attribute::AvailableGlobalMemory => {
                let (opened, mut free, mut total) = (opened(device)?, 0, 0);
                // SAFETY: both places are sizes'.
                let code = unsafe { (opened.driver.free_memory)(&raw mut free, &raw mut total) };
                (code == SUCCESS).then(|| Any::from(free as i64))
            }
            _ => None,
        })
    }

    fn create_stream(&self, device: Device) -> Result<Stream, Error> {
        let (opened, mut stream) = (opened(device)?, std::ptr::null_mut());
        // SAFETY: the place is a pointer's.
        let code = unsafe { (opened.driver.create_stream)(&raw mut stream, STREAM_NON_BLOCKING) };
        opened.check("make a stream", code)?;
        Ok(Stream(stream.expose_provenance()))
    }

    fn free_stream(&self, device: Device, stream: Stream) -> Result<(), Error> {
        if stream == Stream::DEFAULT {
            return Ok(());
        }
        STREAMS.with_borrow_mut(|streams| streams.retain(|_, known| *known != stream));
        let opened = opened(device)?;
        // SAFETY: the caller says that the stream is one of `create_stream`, which nobody uses any more.
        opened.check("end a stream", unsafe { (opened.driver.destroy_stream)(raw(stream)) })
    }

    fn set_stream(&self, device: Device, stream: Stream) -> Result<(), Error> {
        STREAMS.with_borrow_mut(|streams| streams.insert(device.device_id, stream));
        Ok(())
    }

    fn order_streams(&self, device: Device, from: Stream, to: Stream) -> Result<(), Error> {
        let (opened, mut event) = (opened(device)?, std::ptr::null_mut());
        let driver = opened.driver;
        // SAFETY: the place is a pointer's.
        opened.check("make an event", unsafe { (driver.create_event)(&raw mut event, EVENT_DISABLE_TIMING) })?;
        // SAFETY: the event is live, and so are the streams, as the caller says; what waits for the event keeps it.
        unsafe {
            let recorded = (driver.record_event)(event, raw(from));
            let waits = if recorded == SUCCESS { (driver.wait_event)(raw(to), event, 0) } else { recorded };
            (driver.destroy_event)(event);
            opened.check("order its streams", waits)
        }
    }

    fn synchronize(&self, device: Device, stream: Stream) -> Result<(), Error> {
        let opened = opened(device)?;
        // SAFETY: the stream is live, as the caller says.
        opened.check("wait for its stream", unsafe { (opened.driver.synchronize)(raw(stream)) })
    }
}

fn name(driver: &Driver, id: i32) -> Option<String> {
    let mut text = [0_u8; 256];
    // SAFETY: the place has as many bytes as are said.
    let code = unsafe { (driver.device_name)(text.as_mut_ptr().cast::<c_char>(), text.len() as i32, id) };
    let said = text.split(|byte| *byte == 0).next().unwrap_or_default();
    (code == SUCCESS).then(|| String::from_utf8_lossy(said).trim().to_owned())
}
