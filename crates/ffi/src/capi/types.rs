//! The type table for C: registering types, their reflection, and attributes by type.

use std::ffi::{c_int, c_void};

use super::{bytes, input, place, text};
use crate::abi::{ByteArray, RawAny, type_index};
use crate::reflect::flags;
use crate::type_info::{self, Declaration, TypeInfo, type_index_of_key};
use crate::{Any, Error, ErrorKind, error_slot, type_attr};

/// `TVMFFIFieldInfo`: one reflected field.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CFieldInfo {
    /// The field's name.
    pub name: ByteArray,
    /// Its documentation.
    pub doc: ByteArray,
    /// What else is known of it, as JSON.
    pub metadata: ByteArray,
    /// How it takes part in what reflection drives.
    pub flags: i64,
    /// Its size.
    pub size: i64,
    /// Its alignment.
    pub alignment: i64,
    /// Its distance from the object's address.
    pub offset: i64,
    /// Reads it, given its address.
    pub getter: Option<crate::reflect::Getter>,
    /// Writes it: a C function or, if a flag says so, a function object.
    pub setter: *mut c_void,
    /// Its default, or the function that makes one.
    pub default: RawAny,
    /// The index of its declared type; -1 if that says nothing.
    pub static_type_index: i32,
}

// SAFETY: what a description of the type table points at lives as long as the process and does not change.
unsafe impl Send for CFieldInfo {}
// SAFETY: as above.
unsafe impl Sync for CFieldInfo {}

/// `TVMFFIMethodInfo`: one reflected method.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CMethodInfo {
    /// The method's name.
    pub name: ByteArray,
    /// Its documentation.
    pub doc: ByteArray,
    /// What else is known of it, as JSON.
    pub metadata: ByteArray,
    /// Whether it takes an object.
    pub flags: i64,
    /// The function.
    pub method: RawAny,
}

/// `TVMFFITypeMetadata`: what reflection may know of a type besides its members.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CTypeMetadata {
    /// The type's documentation.
    pub doc: ByteArray,
    /// Makes an empty object.
    pub creator: Option<unsafe extern "C" fn(result: *mut *mut c_void) -> c_int>,
    /// The size of an object; 0 if it varies.
    pub total_size: i32,
    /// How structural equality treats the type.
    pub structural_kind: i32,
}

/// `TVMFFITypeInfo`: a type as C reads it.
#[repr(C)]
pub struct CTypeInfo {
    /// The type's index.
    pub type_index: i32,
    /// How many ancestors it has.
    pub type_depth: i32,
    /// The type's key.
    pub type_key: ByteArray,
    /// Its ancestors, the root first.
    pub ancestors: *const *const CTypeInfo,
    /// The hash of the key.
    pub key_hash: u64,
    /// How many fields there are.
    pub num_fields: i32,
    /// How many methods there are.
    pub num_methods: i32,
    /// The fields.
    pub fields: *const CFieldInfo,
    /// The methods.
    pub methods: *const CMethodInfo,
    /// What else is known, if anything.
    pub metadata: *const CTypeMetadata,
}

/// `TVMFFITypeAttrColumn`: one attribute of all types, by type index.
#[repr(C)]
pub struct CTypeAttrColumn {
    /// The values; None where a type has none.
    pub data: *const RawAny,
    /// How many values there are.
    pub size: i32,
    /// The type index of the first value.
    pub begin_index: i32,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<CFieldInfo>() == 120 && std::mem::offset_of!(CFieldInfo, default) == 96);
    assert!(size_of::<CMethodInfo>() == 72 && std::mem::offset_of!(CMethodInfo, method) == 56);
    assert!(size_of::<CTypeMetadata>() == 32);
    assert!(size_of::<CTypeInfo>() == 72 && std::mem::offset_of!(CTypeInfo, fields) == 48);
    assert!(size_of::<CTypeAttrColumn>() == 16);
};

/// The index of a type key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFITypeKeyToIndex(key: *const ByteArray, out: *mut i32) -> c_int {
    error_slot::guard(|| {
        // SAFETY: the interface's contract.
        let key = unsafe { text(key)? };
        let index = type_index_of_key(key)
            .ok_or_else(|| Error::new(ErrorKind::InternalError, format!("Cannot find type `{key}`")))?;
        // SAFETY: the interface's contract.
        unsafe { place(out)?.write(index) };
        Ok(())
    })
}

/// The index of a type key, which is registered if it is new; -2 if that was not wanted (the parent is -2) or cannot be
/// done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFITypeGetOrAllocIndex(
    key: *const ByteArray,
    static_type_index: i32,
    type_depth: i32,
    num_child_slots: i32,
    child_slots_can_overflow: i32,
    parent_type_index: i32,
) -> i32 {
    const NOT_FOUND: i32 = -2;
    // SAFETY: the interface's contract.
    let Ok(key) = (unsafe { text(key) }) else { return NOT_FOUND };
    if let Some(index) = type_index_of_key(key) {
        return index;
    }
    let depth_fits = |parent: &TypeInfo| usize::try_from(type_depth) == Ok(parent.ancestors().len() + 1);
    let parent = match parent_type_index {
        NOT_FOUND => return NOT_FOUND,
        -1 => type_index::OBJECT,
        index if type_info::type_info(index).is_some_and(depth_fits) => index,
        _ => return NOT_FOUND,
    };
    let fixed = (static_type_index >= 0).then_some(static_type_index);
    let declaration =
        Declaration { parent, fixed, child_slots: num_child_slots, overflow: child_slots_can_overflow != 0 };
    type_info::declare(key, declaration).unwrap_or(NOT_FOUND)
}

/// A type as C reads it; null for an index that was never given out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIGetTypeInfo(type_index: i32) -> *const CTypeInfo {
    type_info::type_info(type_index).map_or(std::ptr::null(), |info| info.reflected().view())
}

/// Adds a field to a type's reflection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFITypeRegisterField(type_index: i32, info: *const CFieldInfo) -> c_int {
    error_slot::guard(|| {
        // SAFETY: the interface's contract: the description is readable, and true.
        let (field, setter) = unsafe {
            let info = *input(info, "the description of the field")?;
            let is_function = info.flags & flags::SETTER_IS_FUNCTION != 0;
            let setter = if is_function { Some(super::borrow_object(info.setter)?) } else { None };
            let field = CFieldInfo {
                name: keep(&info.name)?,
                doc: keep(&info.doc)?,
                metadata: keep(&info.metadata)?,
                default: match info.flags & flags::HAS_DEFAULT {
                    0 => RawAny::NONE,
                    _ => super::view(info.default)?.to_owned().into_raw(),
                },
                ..info
            };
            (field, setter)
        };
        match known(type_index).and_then(|info| info.reflected().add_field(field)) {
            Ok(()) => std::mem::forget(setter), // The table has it now.
            // SAFETY: nobody has seen the copies.
            Err(error) => unsafe {
                give_back([field.name, field.doc, field.metadata]);
                drop(Any::from_raw(field.default));
                return Err(error);
            },
        }
        Ok(())
    })
}

/// Adds a method to a type's reflection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFITypeRegisterMethod(type_index: i32, info: *const CMethodInfo) -> c_int {
    error_slot::guard(|| {
        // SAFETY: the interface's contract: the description is readable, and true.
        let method = unsafe {
            let info = *input(info, "the description of the method")?;
            CMethodInfo {
                name: keep(&info.name)?,
                doc: keep(&info.doc)?,
                metadata: keep(&info.metadata)?,
                method: super::view(info.method)?.to_owned().into_raw(),
                ..info
            }
        };
        // SAFETY: nobody has seen the copies.
        let refused = |_: &Error| unsafe {
            give_back([method.name, method.doc, method.metadata]);
            drop(Any::from_raw(method.method));
        };
        known(type_index).map(|info| info.reflected().add_method(method)).inspect_err(refused)
    })
}

/// Says once what else reflection knows of a type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFITypeRegisterMetadata(type_index: i32, metadata: *const CTypeMetadata) -> c_int {
    error_slot::guard(|| {
        // SAFETY: the interface's contract: the description is readable, and true.
        let metadata = unsafe {
            let metadata = input(metadata, "the description of the type")?;
            CTypeMetadata { doc: keep(&metadata.doc)?, ..*metadata }
        };
        // SAFETY: nobody has seen the copy.
        let refused = |_: &Error| unsafe { give_back([metadata.doc]) };
        known(type_index).and_then(|info| info.reflected().set_metadata(metadata)).inspect_err(refused)
    })
}

fn known(index: i32) -> Result<&'static TypeInfo, Error> {
    type_info::type_info(index)
        .ok_or_else(|| Error::new(ErrorKind::ValueError, format!("no type has the index {index}")))
}

/// A copy of bytes for as long as the process lives, as types do.
///
/// # Safety
/// `array` is a readable byte array.
unsafe fn keep(array: &ByteArray) -> Result<ByteArray, Error> {
    // SAFETY: the caller's promise.
    let copy: Box<[u8]> = unsafe { bytes(array)? }.into();
    Ok(ByteArray::new(Box::leak(copy)))
}

/// Frees copies that [`keep`] made, where what they are part of was refused.
///
/// # Safety
/// They came from `keep`, and nobody uses them.
unsafe fn give_back<const N: usize>(kept: [ByteArray; N]) {
    for array in kept {
        // SAFETY: `keep` has leaked a box of these bytes.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(array.data.cast_mut(), array.size)) });
    }
}

/// Sets an attribute of a type; an error if it is set already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFITypeRegisterAttr(
    type_index: i32,
    name: *const ByteArray,
    value: *const RawAny,
) -> c_int {
    error_slot::guard(|| {
        // SAFETY: the interface's contract.
        let (name, value) = unsafe { (text(name)?, super::view(*input(value, "the attribute")?)?.to_owned()) };
        type_attr::set(name, type_index, value)
    })
}

/// The column of an attribute; null if no type has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIGetTypeAttrColumn(name: *const ByteArray) -> *const CTypeAttrColumn {
    // SAFETY: the interface's contract.
    unsafe { text(name) }.map_or(std::ptr::null(), type_attr::column)
}
