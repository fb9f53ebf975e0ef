//! What a model says of itself beside its inputs and outputs.

use std::ffi::c_char;

use crate::border::{check_place, put, text};
use crate::handle::{Handle, HandleKind, at, release};
use crate::memory::{OrtAllocator, allocate_array, allocate_text};
use crate::model::Notes;
use crate::status::{OrtStatus, guard};

/// What a model says of itself.
pub struct Metadata(Notes);

/// The same for C.
pub type OrtModelMetadata = Handle<Metadata>;

impl HandleKind for Metadata {
    const NAME: &str = "OrtModelMetadata";
}

impl Metadata {
    /// That of a session's model.
    pub fn of(notes: &Notes) -> Metadata {
        Metadata(notes.clone())
    }
}

/// # Safety
/// As for [`at`] and [`allocate_text`].
unsafe fn give_text(
    metadata: *const OrtModelMetadata,
    which: fn(&Notes) -> &str,
    allocator: *mut OrtAllocator,
    out: *mut *mut c_char,
) -> *mut OrtStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        check_place(out)?;
        put(out, allocate_text(allocator, which(&at(metadata, "model metadata")?.0))?)
    })
}

macro_rules! texts {
    ($($name:ident => $field:ident;)*) => {$(
        pub unsafe extern "C" fn $name(
            metadata: *const OrtModelMetadata,
            allocator: *mut OrtAllocator,
            out: *mut *mut c_char,
        ) -> *mut OrtStatus {
            // SAFETY: the interface's contract.
            unsafe { give_text(metadata, |notes| &notes.$field, allocator, out) }
        }
    )*};
}

texts! {
    producer => producer;
    graph_name => graph;
    domain => domain;
    description => description;
    graph_description => graph_description;
}

pub unsafe extern "C" fn version(metadata: *const OrtModelMetadata, out: *mut i64) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put(out, at(metadata, "model metadata")?.0.version) })
}

pub unsafe extern "C" fn look_up(
    metadata: *const OrtModelMetadata,
    allocator: *mut OrtAllocator,
    key: *const c_char,
    out: *mut *mut c_char,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract. A key that is not there is no error.
    guard(|| unsafe {
        check_place(out)?;
        let found = at(metadata, "model metadata")?.0.custom.get(text(key, "key")?);
        put(out, found.map_or(Ok(std::ptr::null_mut()), |value| allocate_text(allocator, value))?)
    })
}

pub unsafe extern "C" fn keys(
    metadata: *const OrtModelMetadata,
    allocator: *mut OrtAllocator,
    out: *mut *mut *mut c_char,
    count: *mut i64,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        check_place(out)?;
        let custom = &at(metadata, "model metadata")?.0.custom;
        put(count, i64::try_from(custom.len()).unwrap_or(i64::MAX))?;
        if custom.is_empty() {
            return put(out, std::ptr::null_mut());
        }
        let keys = custom.keys().map(|key| allocate_text(allocator, key)).collect::<Result<Vec<_>, _>>()?;
        put(out, allocate_array(allocator, &keys)?)
    })
}

pub unsafe extern "C" fn release_metadata(metadata: *mut OrtModelMetadata) {
    // SAFETY: the interface's contract.
    unsafe { release(metadata) }
}
