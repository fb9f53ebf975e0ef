//! The header in front of every object: count, type index, deleter; and the allocation around it.

use std::alloc::{Layout, handle_alloc_error};
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering, fence};

use super::destroy;
use super::space::{FreeFunction, PREFIX, allocate_space};

/// Destroys the value (flag 1), frees the memory (flag 2), or both.
pub(crate) type Deleter = unsafe extern "C" fn(this: *mut c_void, flags: c_int);

const STRONG_ONE: u64 = 1;
const WEAK_ONE: u64 = 1 << 32;
const LAST_OF_BOTH: u64 = STRONG_ONE | WEAK_ONE;
pub(crate) const DESTROY: c_int = 1;
pub(crate) const FREE: c_int = 2;
/// Counts beyond this can only come from handles that were leaked on purpose.
const MAX_STRONG: u32 = i32::MAX as u32;

/// `TVMFFIObject`: what every object begins with.
#[repr(C)]
pub struct ObjectHeader {
    counts: AtomicU64,
    type_index: i32,
    padding: u32,
    deleter: Option<Deleter>,
}

impl ObjectHeader {
    /// A header with one strong reference.
    pub(crate) const fn new(type_index: i32, deleter: Deleter) -> ObjectHeader {
        ObjectHeader { counts: AtomicU64::new(LAST_OF_BOTH), type_index, padding: 0, deleter: Some(deleter) }
    }

    /// The index of the object's type.
    #[inline]
    pub fn type_index(&self) -> i32 {
        self.type_index
    }

    /// How many strong references there are at this moment.
    pub fn strong_count(&self) -> u32 {
        self.counts.load(Ordering::Relaxed) as u32
    }

    /// How many weak references there are, not counting the one that the strong ones share.
    pub fn weak_count(&self) -> u32 {
        let counts = self.counts.load(Ordering::Relaxed);
        ((counts >> 32) as u32).saturating_sub(u32::from(counts as u32 != 0))
    }

    /// True if the caller's reference is the only one of any kind.
    #[inline]
    pub fn is_unique(&self) -> bool {
        self.counts.load(Ordering::Acquire) == LAST_OF_BOTH
    }

    /// Adds a strong reference.
    #[inline]
    pub(crate) fn inc_ref(&self) {
        let old = self.counts.fetch_add(STRONG_ONE, Ordering::Relaxed);
        if old as u32 > MAX_STRONG {
            std::process::abort();
        }
    }

    /// Gives up a strong reference.
    ///
    /// # Safety
    /// `this` is a live object and the caller owns one strong reference, which it does not use again.
    #[inline]
    pub(crate) unsafe fn dec_ref(this: NonNull<ObjectHeader>) {
        // SAFETY: the object is alive while the caller's reference is.
        let old = unsafe { this.as_ref() }.counts.fetch_sub(STRONG_ONE, Ordering::Release);
        if old as u32 == 1 {
            // SAFETY: this was the last strong reference, so the value is ours to destroy.
            unsafe { Self::drop_last_strong(this, old) };
        }
    }

    /// Adds a weak reference.
    #[inline]
    pub(crate) fn inc_weak(&self) {
        let old = self.counts.fetch_add(WEAK_ONE, Ordering::Relaxed);
        if (old >> 32) as u32 > MAX_STRONG {
            std::process::abort();
        }
    }

    /// Gives up a weak reference.
    ///
    /// # Safety
    /// The caller owns one weak reference to `this` and does not use it again.
    pub(crate) unsafe fn dec_weak(this: NonNull<ObjectHeader>) {
        // SAFETY: the memory is there while a weak reference is.
        let header = unsafe { this.as_ref() };
        let deleter = header.deleter;
        if header.counts.fetch_sub(WEAK_ONE, Ordering::Release) == WEAK_ONE {
            fence(Ordering::Acquire);
            if let Some(deleter) = deleter {
                // SAFETY: no reference of any kind is left, so only the memory remains to be freed.
                unsafe { deleter(this.as_ptr().cast(), FREE) };
            }
        }
    }

    /// Turns a weak reference into a strong one, unless the value is gone.
    pub(crate) fn try_promote(&self) -> bool {
        let mut old = self.counts.load(Ordering::Relaxed);
        while old as u32 != 0 {
            if old as u32 > MAX_STRONG {
                std::process::abort();
            }
            match self.counts.compare_exchange_weak(old, old + STRONG_ONE, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(seen) => old = seen,
            }
        }
        false
    }

    #[cold]
    #[inline(never)]
    unsafe fn drop_last_strong(this: NonNull<ObjectHeader>, old: u64) {
        fence(Ordering::Acquire);
        // SAFETY: the strong references' shared weak one still keeps the memory.
        let Some(deleter) = (unsafe { this.as_ref() }).deleter else { return };
        if old == LAST_OF_BOTH {
            // SAFETY: nobody else refers to the object.
            unsafe { deleter(this.as_ptr().cast(), DESTROY | FREE) };
        } else {
            // SAFETY: no strong reference is left, so the value is destroyed here, once.
            unsafe { destroy::nested(this.as_ptr().cast(), Self::destroy_before_weak, DESTROY | FREE) };
        }
    }

    /// Destroys the value of an object that weak references may still look for.
    unsafe extern "C" fn destroy_before_weak(this: *mut c_void, _flags: c_int) {
        let header = this.cast::<ObjectHeader>();
        // SAFETY: the weak reference that the strong ones shared keeps the memory; the value is destroyed once, and no weak
        // reference touches it. Then the shared one is given up.
        unsafe {
            if let Some(deleter) = (*header).deleter {
                deleter(this, DESTROY);
            }
            Self::dec_weak(NonNull::new_unchecked(header));
        }
    }
}

/// An object as the allocator sees it.
#[repr(C)]
pub(crate) struct ObjectBox<T> {
    pub(crate) header: ObjectHeader,
    pub(crate) value: T,
}

/// `TVMFFICustomAllocator`: where the memory of objects comes from. It writes the prefix, and the memory that it returns
/// begins behind that.
#[derive(Debug)]
#[repr(C)]
pub struct CustomAllocator {
    /// Memory for an object of that size, alignment and type.
    pub allocate:
        Option<unsafe extern "C" fn(size: usize, align: usize, type_index: i32, context: *mut c_void) -> *mut c_void>,
    /// What `allocate` is given.
    pub context: *mut c_void,
}

// SAFETY: the function may be called with its context from any thread, by the rules of the interface.
unsafe impl Sync for CustomAllocator {}

static BUILTIN: CustomAllocator = CustomAllocator { allocate: Some(allocate_space), context: std::ptr::null_mut() };

/// What a front end has set; null for the allocator of this file.
static CUSTOM: AtomicPtr<CustomAllocator> = AtomicPtr::new(std::ptr::null_mut());

/// The allocator in use. It lives as long as the process.
pub fn allocator() -> *const CustomAllocator {
    let custom = CUSTOM.load(Ordering::Acquire);
    if custom.is_null() { &raw const BUILTIN } else { custom }
}

/// Makes objects come from another allocator; null brings back the one of this file.
///
/// # Safety
/// The allocator keeps the rules of the interface and lives as long as the process.
pub unsafe fn set_allocator(allocator: *mut CustomAllocator) {
    CUSTOM.store(allocator, Ordering::Release);
}

/// Allocates an object with `tail` more bytes behind it. The header is written, the value is not.
#[inline]
pub(crate) fn allocate<T>(type_index: i32, tail: usize, deleter: Deleter) -> NonNull<ObjectBox<T>> {
    const { assert!(align_of::<T>() <= 8, "objects are aligned to eight bytes") };
    let object = allocate_bytes(size_of::<ObjectBox<T>>(), tail, type_index).cast::<ObjectBox<T>>();
    // SAFETY: the memory has room for the header.
    unsafe { (&raw mut (*object.as_ptr()).header).write(ObjectHeader::new(type_index, deleter)) };
    object
}

/// Memory for an object of that size with `tail` more bytes behind it, from the allocator in use.
pub(crate) fn allocate_bytes(size: usize, tail: usize, type_index: i32) -> NonNull<c_void> {
    let layout = size.checked_add(tail).and_then(|size| Layout::from_size_align(size, 8).ok());
    let Some(layout) = layout else { handle_alloc_error(Layout::new::<ObjectHeader>()) };
    let custom = CUSTOM.load(Ordering::Acquire);
    // SAFETY: the allocator keeps the rules of the interface.
    let space = unsafe {
        match custom.as_ref().and_then(|custom| Some((custom.allocate?, custom.context))) {
            Some((allocate, context)) => allocate(layout.size(), 8, type_index, context),
            None => allocate_space(layout.size(), 8, type_index, std::ptr::null_mut()),
        }
    };
    NonNull::new(space).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Frees what [`allocate_bytes`] returned.
///
/// # Safety
/// Nothing refers to the memory any more.
pub(crate) unsafe fn free_bytes(object: *mut c_void) {
    // SAFETY: every allocator leaves the free function in front of the header.
    unsafe {
        let free = object.byte_sub(PREFIX).cast::<FreeFunction>().read();
        free(object);
    }
}

/// The deleter of an object that holds a `T`.
pub(crate) unsafe extern "C" fn deleter<T>(this: *mut c_void, flags: c_int) {
    if std::mem::needs_drop::<T>() {
        // SAFETY: passed on to the caller; `end` is called once.
        unsafe { destroy::nested(this, end::<T>, flags) };
    } else {
        // What holds nothing needs no care.
        // SAFETY: passed on to the caller.
        unsafe { end::<T>(this, flags) };
    }
}

/// Ends an object, or what the flags say of it.
#[inline]
unsafe extern "C" fn end<T>(this: *mut c_void, flags: c_int) {
    if flags & DESTROY != 0 {
        // SAFETY: the counting rules ask for this once, when the last strong reference is gone.
        unsafe { std::ptr::drop_in_place(&raw mut (*this.cast::<ObjectBox<T>>()).value) };
    }
    if flags & FREE != 0 {
        // SAFETY: `allocate` made the object; nothing refers to the memory any more.
        unsafe { free_bytes(this) };
    }
}
