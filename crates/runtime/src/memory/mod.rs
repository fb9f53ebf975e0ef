//! Memory for tensors: allocators, the buffers that they hand out, and storage objects.
//!
//! An [`Allocator`] belongs to one device. The two kinds are the naive one, which asks the device every time, and the
//! pooled one, which keeps what is given back for later requests, up to a bound that follows what was in use. Allocators are shared by the
//! process ([`allocator`]), so a buffer may outlive whoever asked for it.

mod metered;
mod naive;
mod pooled;
pub mod room;
mod shape_heap;
mod storage;

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use relaxide_ffi::fork::{self, Held};
use relaxide_ffi::{DataType, Device, Error, ErrorKind};

use crate::device::{device_api, device_exists};
use crate::fork::{Side, let_go_of};

pub use metered::{Budget, Metered};
pub use shape_heap::ShapeHeap;
pub use storage::Storage;

/// A kind of allocator. The numbers are those of TVM's Python interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i64)]
pub enum AllocatorKind {
    /// Asks the device every time.
    Naive = 1,
    /// Keeps what is given back.
    Pooled = 2,
}

impl AllocatorKind {
    /// The kind that a number stands for.
    pub fn from_number(number: i64) -> Result<Self, Error> {
        match number {
            1 => Ok(Self::Naive),
            2 => Ok(Self::Pooled),
            _ => {
                let message = format!("allocator kind {number} does not exist: 1 is naive, 2 is pooled");
                Err(Error::new(ErrorKind::ValueError, message))
            }
        }
    }
}

/// What an allocator has done and holds, in bytes and counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Bytes in buffers that are in use.
    pub in_use: usize,
    /// The most that `in_use` has been.
    pub peak: usize,
    /// Bytes that are kept for reuse.
    pub cached: usize,
    /// How many buffers were handed out.
    pub requests: u64,
    /// How many of these came from the device and not from the cache.
    pub device_allocations: u64,
}

impl MemoryStats {
    fn took(&mut self, bytes: usize, from_device: bool) {
        self.in_use += bytes;
        self.peak = self.peak.max(self.in_use);
        self.requests += 1;
        self.device_allocations += u64::from(from_device);
    }
}

/// Hands out memory of one device.
pub trait Allocator: Send + Sync {
    /// The device.
    fn device(&self) -> Device;

    /// Takes at least `bytes` bytes: the address and how many there are.
    fn take(&self, bytes: usize) -> Result<(*mut c_void, usize), Error>;

    /// Takes memory back.
    ///
    /// # Safety
    /// The address and the size came from [`Allocator::take`], and nobody uses the memory any more.
    unsafe fn give_back(&self, data: *mut c_void, bytes: usize);

    /// Frees what is kept for reuse.
    fn release_cached(&self);

    /// What it has done and holds.
    fn stats(&self) -> MemoryStats;

    /// Holds its locks across a fork.
    fn hold_for_fork(self: Arc<Self>) -> Option<Held>;
}

/// Memory from an allocator, given back when it is dropped.
pub struct Buffer {
    data: *mut c_void,
    bytes: usize,
    allocator: Arc<dyn Allocator>,
}

// SAFETY: a buffer owns its memory, which is bound to no thread; allocators are `Sync`.
unsafe impl Send for Buffer {}
// SAFETY: a shared buffer only tells its address.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Takes `bytes` bytes. Their content is whatever was there.
    pub fn new(allocator: &Arc<dyn Allocator>, bytes: usize) -> Result<Self, Error> {
        let (data, bytes) = allocator.take(bytes)?;
        Ok(Self { data, bytes, allocator: Arc::clone(allocator) })
    }

    /// The address, on the buffer's device.
    pub fn data(&self) -> *mut c_void {
        self.data
    }

    /// The size in bytes; may be more than was asked for.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The device that the memory is on.
    pub fn device(&self) -> Device {
        self.allocator.device()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: this pair came from `take`, and whoever used the memory kept the buffer.
        unsafe { self.allocator.give_back(self.data, self.bytes) };
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} bytes on {})", self.bytes, self.device())
    }
}

/// How many bytes the elements of a compact tensor take.
pub(crate) fn bytes_of(shape: &[i64], dtype: DataType) -> Result<usize, Error> {
    let elements = shape.iter().try_fold(1_usize, |product, dim| product.checked_mul(usize::try_from(*dim).ok()?));
    elements.and_then(|elements| dtype.bytes_of(elements)).ok_or_else(|| {
        Error::new(ErrorKind::ValueError, format!("a tensor of shape {shape:?} and type {dtype} cannot exist"))
    })
}

type AllocatorTable = Mutex<HashMap<(Device, AllocatorKind), Arc<dyn Allocator>>>;

fn table() -> &'static AllocatorTable {
    static TABLE: OnceLock<AllocatorTable> = OnceLock::new();
    TABLE.get_or_init(AllocatorTable::default)
}

/// The process's allocator of a kind for a device.
pub fn allocator(device: Device, kind: AllocatorKind) -> Result<Arc<dyn Allocator>, Error> {
    let api = device_api(device)?;
    if !device_exists(device) {
        let why = api.why_none().map(|why| format!(": {why}")).unwrap_or_default();
        return Err(Error::new(ErrorKind::ValueError, format!("there is no device {device}{why}")));
    }
    let mut table = table().lock().unwrap_or_else(PoisonError::into_inner);
    let entry = table.entry((device, kind)).or_insert_with(|| match kind {
        AllocatorKind::Naive => Arc::new(naive::Naive::new(device, api)),
        AllocatorKind::Pooled => Arc::new(pooled::Pooled::new(device, api)),
    });
    Ok(Arc::clone(entry))
}

/// Holds the table of allocators, and each of them, across a fork.
pub(crate) fn hold_for_fork() -> Box<dyn FnOnce(Side)> {
    let allocators: Vec<_> = table().lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
    let held = allocators
        .into_iter()
        .filter_map(|allocator| allocator.hold_for_fork())
        .chain(fork::hold(table()))
        .chain(room::hold());
    let_go_of(held.collect())
}

/// Counts the calls of [`release_cached`].
static RELEASES: AtomicU64 = AtomicU64::new(0);

/// How often memory was asked back. Whoever keeps objects for later compares it with what it was, and lets go of them if
/// it has grown.
#[inline]
pub fn releases() -> u64 {
    RELEASES.load(Ordering::Relaxed)
}

/// Frees what all allocators keep for reuse.
pub fn release_cached() {
    RELEASES.fetch_add(1, Ordering::Relaxed);
    let allocators: Vec<_> = {
        let table = table().lock().unwrap_or_else(PoisonError::into_inner);
        table.values().cloned().collect()
    };
    allocators.iter().for_each(|allocator| allocator.release_cached());
}
