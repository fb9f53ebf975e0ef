//! Where memory is, and who allocates it: [`MemoryInfo`] and [`OrtAllocator`].

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::NonNull;
use std::sync::LazyLock;

use relaxide::ffi::ALIGNMENT;

use crate::border::{c_string, check_place, put, text};
use crate::handle::{Handle, HandleKind, at, put_new, release};
use crate::pairs::{OrtKeyValuePairs, Pairs};
use crate::status::{OrtStatus, Result, guard, invalid, quietly};

/// A place of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryInfo {
    name: CString,
    device: c_int,
    allocator: c_int,
    id: c_int,
    memory: c_int,
}

/// A place of memory for C.
pub type OrtMemoryInfo = Handle<MemoryInfo>;

impl HandleKind for MemoryInfo {
    const NAME: &str = "OrtMemoryInfo";
}

/// `OrtDeviceAllocator`.
const DEVICE_ALLOCATOR: c_int = 0;
/// `OrtArenaAllocator`.
const ARENA_ALLOCATOR: c_int = 1;

/// The processor's memory, where all values are.
static HOST: LazyLock<OrtMemoryInfo> = LazyLock::new(|| {
    Handle::new(MemoryInfo {
        name: c"Cpu".to_owned(),
        device: HOST_DEVICE,
        allocator: DEVICE_ALLOCATOR,
        id: 0,
        memory: 0,
    })
});

/// The processor's memory, to lend out.
pub fn host() -> *const OrtMemoryInfo {
    &raw const *HOST
}

/// Refuses memory that is not the processor's.
///
/// # Safety
/// As for [`at`].
pub unsafe fn check_host(info: *const OrtMemoryInfo) -> Result<()> {
    // SAFETY: the caller's promise.
    let info = unsafe { at(info, "memory info")? };
    match info.device {
        HOST_DEVICE => Ok(()),
        _ => Err(invalid(format!("values are in the processor's memory (\"Cpu\"), not in that of {:?}", info.name))),
    }
}

/// The number of the processor among types of devices.
const HOST_DEVICE: c_int = 0;

/// Memory of other devices by its names, with the type of device. Programs describe it before they know whether it is there.
const OTHERS: &[(&str, c_int)] = &[
    ("Cuda", 1),
    ("CudaPinned", 1),
    ("Hip", 1),
    ("HipPinned", 1),
    ("DML", 1),
    ("OpenVINO_CPU", 0),
    ("OpenVINO_GPU", 1),
    ("OpenVINO_RT", 0),
    ("OpenVINO_RT_NPU", 3),
    ("WebGPU_Buf", 1),
    ("WebGPU_Buffer", 1),
    ("WebNN_Ten", 1),
    ("WebNN_Tensor", 1),
    ("Cann", 3),
    ("CannPinned", 3),
    ("QnnHtpShared", 3),
];

fn new_info(name: &str, allocator: c_int, id: c_int, memory: c_int) -> Result<MemoryInfo> {
    let device = match name {
        "Cpu" => HOST_DEVICE,
        _ => OTHERS.iter().find(|(other, _)| *other == name).map(|(_, device)| *device).ok_or_else(|| {
            invalid(format!("there is no memory {name:?}: sessions run on the processor, whose memory is \"Cpu\""))
        })?,
    };
    if ![DEVICE_ALLOCATOR, ARENA_ALLOCATOR].contains(&allocator) {
        return Err(invalid(format!("{allocator} is no type of allocator: 0 (device) or 1 (arena) is expected")));
    }
    Ok(MemoryInfo { name: c_string(name), device, allocator, id, memory })
}

pub unsafe extern "C" fn create_memory_info(
    name: *const c_char,
    allocator: c_int,
    id: c_int,
    memory: c_int,
    out: *mut *mut OrtMemoryInfo,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put_new(out, new_info(text(name, "name")?, allocator, id, memory)?) })
}

pub unsafe extern "C" fn create_cpu_memory_info(
    allocator: c_int,
    memory: c_int,
    out: *mut *mut OrtMemoryInfo,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put_new(out, new_info("Cpu", allocator, 0, memory)?) })
}

#[allow(clippy::too_many_arguments, reason = "the interface's signature")]
pub unsafe extern "C" fn create_memory_info_v2(
    name: *const c_char,
    device: c_int,
    _vendor: u32,
    id: i32,
    _memory: c_int,
    _alignment: usize,
    allocator: c_int,
    out: *mut *mut OrtMemoryInfo,
) -> *mut OrtStatus {
    guard(|| {
        // SAFETY: the interface's contract. Any name will do.
        let name = unsafe { text(name, "name")? };
        let info = MemoryInfo { name: c_string(name), device, ..new_info("Cpu", allocator, id, 0)? };
        // SAFETY: the interface's contract.
        unsafe { put_new(out, info) }
    })
}

pub unsafe extern "C" fn compare_memory_info(
    one: *const OrtMemoryInfo,
    other: *const OrtMemoryInfo,
    out: *mut c_int,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract. Zero is equal.
    guard(|| unsafe { put(out, c_int::from(at(one, "info1")? != at(other, "info2")?)) })
}

pub unsafe extern "C" fn memory_info_name(info: *const OrtMemoryInfo, out: *mut *const c_char) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put(out, at(info, "memory info")?.name.as_ptr()) })
}

pub unsafe extern "C" fn memory_info_id(info: *const OrtMemoryInfo, out: *mut c_int) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put(out, at(info, "memory info")?.id) })
}

pub unsafe extern "C" fn memory_info_mem_type(info: *const OrtMemoryInfo, out: *mut c_int) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put(out, at(info, "memory info")?.memory) })
}

pub unsafe extern "C" fn memory_info_type(info: *const OrtMemoryInfo, out: *mut c_int) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put(out, at(info, "memory info")?.allocator) })
}

pub unsafe extern "C" fn memory_info_device_type(info: *const OrtMemoryInfo, out: *mut c_int) {
    // SAFETY: the interface's contract.
    quietly((), || unsafe {
        if let (Ok(info), Ok(())) = (at(info, "memory info"), check_place(out)) {
            out.write(info.device);
        }
    });
}

pub extern "C" fn memory_info_device_mem_type(_info: *const OrtMemoryInfo) -> c_int {
    0
}

pub extern "C" fn memory_info_vendor_id(_info: *const OrtMemoryInfo) -> u32 {
    0
}

pub unsafe extern "C" fn release_memory_info(info: *mut OrtMemoryInfo) {
    // The processor's own is lent, not given.
    if !std::ptr::addr_eq(info, host()) {
        // SAFETY: the interface's contract.
        unsafe { release(info) }
    }
}

type Alloc = unsafe extern "C" fn(*mut OrtAllocator, usize) -> *mut c_void;

/// An allocator, of ours or of the caller's; the layout is the interface's.
#[repr(C)]
pub struct OrtAllocator {
    version: u32,
    alloc: Option<Alloc>,
    free: Option<unsafe extern "C" fn(*mut OrtAllocator, *mut c_void)>,
    info: Option<unsafe extern "C" fn(*const OrtAllocator) -> *const OrtMemoryInfo>,
    // Read of our own allocator only: a caller's may be shorter.
    reserve: Option<Alloc>,
    get_stats: Option<unsafe extern "C" fn(*const OrtAllocator, *mut *mut OrtKeyValuePairs) -> *mut OrtStatus>,
    alloc_on_stream: Option<unsafe extern "C" fn(*mut OrtAllocator, usize, *mut c_void) -> *mut c_void>,
    shrink: Option<unsafe extern "C" fn(*mut OrtAllocator) -> *mut OrtStatus>,
}

/// Ours.
static DEFAULT: OrtAllocator = OrtAllocator {
    version: crate::table::VERSION,
    alloc: Some(default_alloc),
    free: Some(default_free),
    info: Some(default_info),
    reserve: Some(default_alloc),
    get_stats: Some(default_stats),
    alloc_on_stream: Some(default_alloc_on_stream),
    shrink: Some(default_shrink),
};

/// Our allocator, to lend out. Nothing is written through the address.
pub fn default_allocator() -> *mut OrtAllocator {
    (&raw const DEFAULT).cast_mut()
}

/// In front of each block of ours: how large the whole is. As long as the alignment, so that the block is aligned too.
fn block_layout(size: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_add(ALIGNMENT)?, ALIGNMENT).ok()
}

unsafe extern "C" fn default_alloc(_this: *mut OrtAllocator, size: usize) -> *mut c_void {
    let Some(layout) = block_layout(size) else { return std::ptr::null_mut() };
    // SAFETY: the layout is not of size zero; the block begins with room for its size.
    unsafe {
        let block = alloc(layout);
        if block.is_null() {
            return std::ptr::null_mut();
        }
        block.cast::<usize>().write(size);
        block.add(ALIGNMENT).cast()
    }
}

unsafe extern "C" fn default_free(_this: *mut OrtAllocator, data: *mut c_void) {
    if data.is_null() {
        return;
    }
    // SAFETY: `default_alloc` gave the block, with its size in front; the caller gives it up.
    unsafe {
        let block = data.cast::<u8>().sub(ALIGNMENT);
        if let Some(layout) = block_layout(block.cast::<usize>().read()) {
            dealloc(block, layout);
        }
    }
}

unsafe extern "C" fn default_info(_this: *const OrtAllocator) -> *const OrtMemoryInfo {
    host()
}

unsafe extern "C" fn default_stats(_this: *const OrtAllocator, out: *mut *mut OrtKeyValuePairs) -> *mut OrtStatus {
    // SAFETY: the interface's contract. Nothing is counted.
    guard(|| unsafe { put_new(out, Pairs::default()) })
}

unsafe extern "C" fn default_alloc_on_stream(
    this: *mut OrtAllocator,
    size: usize,
    _stream: *mut c_void,
) -> *mut c_void {
    // SAFETY: the interface's contract.
    unsafe { default_alloc(this, size) }
}

unsafe extern "C" fn default_shrink(_this: *mut OrtAllocator) -> *mut OrtStatus {
    std::ptr::null_mut()
}

/// A block of an allocator.
///
/// # Safety
/// The allocator is null, or one of ours or the caller's that lives.
pub unsafe fn allocate(allocator: *mut OrtAllocator, size: usize) -> Result<NonNull<c_void>> {
    // SAFETY: the caller's promise.
    let called = unsafe { allocator.as_ref() }.ok_or_else(|| invalid("the allocator is null"))?;
    let alloc = called.alloc.ok_or_else(|| invalid("the allocator has no function Alloc"))?;
    // SAFETY: as above.
    let data = unsafe { alloc(allocator, size) };
    NonNull::new(data).ok_or_else(|| {
        crate::status::Status::new(crate::status::Code::Fail, format!("the allocator has no {size} bytes"))
    })
}

/// Gives a block back.
///
/// # Safety
/// As for [`allocate`], which gave the block.
pub unsafe fn free(allocator: *mut OrtAllocator, data: *mut c_void) {
    // SAFETY: the caller's promise.
    if let Some(free) = unsafe { allocator.as_ref() }.and_then(|allocator| allocator.free) {
        // SAFETY: as above.
        unsafe { free(allocator, data) }
    }
}

/// A copy of a text in a block of an allocator, with a NUL at its end.
///
/// # Safety
/// As for [`allocate`].
pub unsafe fn allocate_text(allocator: *mut OrtAllocator, text: &str) -> Result<*mut c_char> {
    let text = c_string(text);
    let bytes = text.as_bytes_with_nul();
    // SAFETY: the caller's promise; the block is as long as the text.
    unsafe {
        let block = allocate(allocator, bytes.len())?.as_ptr().cast::<u8>();
        block.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        Ok(block.cast())
    }
}

/// Copies of numbers, addresses or bytes in a block of an allocator.
///
/// # Safety
/// As for [`allocate`].
pub unsafe fn allocate_array<T: Copy>(allocator: *mut OrtAllocator, items: &[T]) -> Result<*mut T> {
    // SAFETY: the caller's promise; the block is as long as the items, and every allocator aligns to more than they need.
    unsafe {
        let block = allocate(allocator, size_of_val(items).max(1))?.as_ptr().cast::<T>();
        block.copy_from_nonoverlapping(items.as_ptr(), items.len());
        Ok(block)
    }
}

pub unsafe extern "C" fn allocator_alloc(
    allocator: *mut OrtAllocator,
    size: usize,
    out: *mut *mut c_void,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put(out, allocate(allocator, size)?.as_ptr()) })
}

pub unsafe extern "C" fn allocator_free(allocator: *mut OrtAllocator, data: *mut c_void) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    quietly((), || unsafe { free(allocator, data) });
    std::ptr::null_mut()
}

pub unsafe extern "C" fn allocator_info(
    allocator: *const OrtAllocator,
    out: *mut *const OrtMemoryInfo,
) -> *mut OrtStatus {
    guard(|| {
        // SAFETY: the interface's contract.
        let called = unsafe { allocator.as_ref() }.ok_or_else(|| invalid("the allocator is null"))?;
        let info = called.info.ok_or_else(|| invalid("the allocator has no function Info"))?;
        // SAFETY: as above.
        unsafe { put(out, info(allocator)) }
    })
}

pub unsafe extern "C" fn allocator_stats(
    allocator: *const OrtAllocator,
    out: *mut *mut OrtKeyValuePairs,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let called = allocator.as_ref().ok_or_else(|| invalid("the allocator is null"))?;
        // Shorter ones of older versions do not reach so far.
        if called.version < 23 {
            return put_new(out, Pairs::default());
        }
        let stats = called.get_stats.ok_or_else(|| invalid("the allocator has no function GetStats"))?;
        let status = stats(allocator, out);
        if status.is_null() { Ok(()) } else { Err(Box::from_raw(status).into_inner()) }
    })
}

pub unsafe extern "C" fn get_default_allocator(out: *mut *mut OrtAllocator) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put(out, default_allocator()) })
}

/// `CreateAllocator`, `GetSharedAllocator`: all memory is the processor's, and has one allocator.
pub unsafe extern "C" fn create_allocator(
    _owner: *const c_void,
    info: *const OrtMemoryInfo,
    out: *mut *mut OrtAllocator,
) -> *mut OrtStatus {
    guard(|| {
        // SAFETY: the interface's contract.
        unsafe { check_host(info)? };
        // SAFETY: as above.
        unsafe { put(out, default_allocator()) }
    })
}

/// `CreateAndRegisterAllocator`: the pooled memory of sessions is shared by all of a process as it is.
pub unsafe extern "C" fn create_and_register_allocator(
    _env: *mut c_void,
    info: *const OrtMemoryInfo,
    _config: *const c_void,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { check_host(info) })
}
