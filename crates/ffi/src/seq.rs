//! The cell that [`Array`](crate::Array) and [`List`](crate::List) share: where the values are, how many, how many fit.
//!
//! Code of other languages reads and changes sequences through this cell alone, so that nothing about a sequence is kept
//! anywhere else. Memory for the values is taken from `malloc`: whoever outgrows it frees it with the cell's deleter.

use std::ffi::c_void;
use std::ptr::NonNull;

use crate::{Any, Error, malloc};

/// Changes one value of a container.
pub(crate) type Change<'a> = &'a mut dyn FnMut(&mut Any) -> Result<(), Error>;

/// What frees memory that a cell refers to.
pub(crate) type FreeMemory = unsafe extern "C" fn(*mut c_void);

/// Frees memory of [`allocate_memory`]; null is nothing to free.
pub(crate) unsafe extern "C" fn free_memory(data: *mut c_void) {
    // SAFETY: the caller passes what `malloc` returned.
    unsafe { malloc::free(data) };
}

/// Memory for `count` values of a type that has no stricter alignment than `malloc` gives.
///
/// Aborts, as every allocation of the standard library does, when there is none.
pub(crate) fn allocate_memory<T>(count: usize) -> NonNull<T> {
    const { assert!(align_of::<T>() <= 16, "what `malloc` aligns to") };
    let size = count.checked_mul(size_of::<T>()).filter(|size| *size <= isize::MAX as usize);
    // SAFETY: any size may be asked of `malloc`.
    let data = size.and_then(|size| NonNull::new(unsafe { malloc::malloc(size.max(1)) }));
    let Some(data) = data else { std::alloc::handle_alloc_error(std::alloc::Layout::new::<T>()) };
    data.cast()
}

/// `TVMFFISeqCell`.
#[repr(C)]
pub(crate) struct SeqCell {
    pub(crate) data: *mut Any,
    pub(crate) size: i64,
    pub(crate) capacity: i64,
    /// Frees `data`; absent while the values lie in the object itself.
    pub(crate) data_deleter: Option<FreeMemory>,
}

impl SeqCell {
    /// The values.
    ///
    /// # Safety
    /// Nobody changes the sequence for as long as the result lives.
    pub(crate) unsafe fn items(&self) -> &[Any] {
        if self.size <= 0 || self.data.is_null() {
            return &[];
        }
        // SAFETY: `data` addresses `size` values, which the caller's promise keeps.
        unsafe { std::slice::from_raw_parts(self.data, self.size as usize) }
    }

    /// The values, to be changed.
    ///
    /// # Safety
    /// Nobody else reads or changes the sequence for as long as the result lives.
    pub(crate) unsafe fn items_mut(&mut self) -> &mut [Any] {
        if self.size <= 0 || self.data.is_null() {
            return &mut [];
        }
        // SAFETY: `data` addresses `size` values, which the caller's promise keeps.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.size as usize) }
    }

    /// Takes the last value.
    pub(crate) fn pop(&mut self) -> Option<Any> {
        if self.size <= 0 {
            return None;
        }
        self.size -= 1;
        // SAFETY: the value moves out, and the cell says that it no longer has it.
        Some(unsafe { self.data.add(self.size as usize).read() })
    }

    /// Makes room for more values, if need be by moving to new memory.
    pub(crate) fn reserve(&mut self, more: usize) {
        let (size, capacity) = (self.size.max(0) as usize, self.capacity.max(0) as usize);
        let needed = size.saturating_add(more);
        if needed <= capacity {
            return;
        }
        let capacity = needed.max(capacity.saturating_mul(2)).max(4);
        let larger = allocate_memory::<Any>(capacity).as_ptr();
        if size > 0 {
            // SAFETY: the new memory has room for the values, which move; the old memory is then only freed.
            unsafe { larger.copy_from_nonoverlapping(self.data, size) };
        }
        self.release_memory();
        (self.data, self.capacity) = (larger, capacity as i64);
        self.data_deleter = Some(free_memory);
    }

    /// Takes all values out and leaves the memory.
    pub(crate) fn take(&mut self) -> Vec<Any> {
        let size = std::mem::take(&mut self.size).max(0) as usize;
        // SAFETY: the values move to the vector, and the cell says that it has none.
        (0..size).map(|i| unsafe { self.data.add(i).read() }).collect()
    }

    /// Moves values in behind those that are there.
    pub(crate) fn append(&mut self, values: Vec<Any>) {
        self.reserve(values.len());
        for value in values {
            // SAFETY: there is room for one more value at `size`.
            unsafe { self.data.add(self.size as usize).write(value) };
            self.size += 1;
        }
    }

    fn release_memory(&mut self) {
        if let Some(free) = self.data_deleter.take() {
            // SAFETY: whoever set the deleter allocated `data` for it.
            unsafe { free(self.data.cast()) };
        }
        (self.data, self.capacity) = (std::ptr::null_mut(), 0);
    }
}

impl Drop for SeqCell {
    fn drop(&mut self) {
        let values = std::ptr::slice_from_raw_parts_mut(self.data, self.size.max(0) as usize);
        if self.size > 0 {
            // SAFETY: the cell owns its values and ends here.
            unsafe { std::ptr::drop_in_place(values) };
        }
        self.release_memory();
    }
}
