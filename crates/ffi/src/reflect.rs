//! Reflection: the fields of object types by name, for front ends, printers and the C ABI.

use std::ffi::{c_int, c_void};

use crate::abi::RawAny;
use crate::object::{ObjectHeader, ObjectRef};
use crate::type_info::type_info;
use crate::{Any, Field};

/// Reads a field, given its address; returns 0 on success.
pub type Getter = unsafe extern "C" fn(field: *mut c_void, out: *mut RawAny) -> c_int;

/// How a field takes part in structural equality and hashing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldRole {
    /// It is compared.
    Compared,
    /// It is left out, as a source location is.
    Ignored,
    /// It defines the free variables in it, as a parameter list does.
    Defines,
}

/// One reflected field.
#[derive(Clone, Copy, Debug)]
pub struct FieldInfo {
    name: &'static str,
    offset: usize,
    size: usize,
    align: usize,
    role: FieldRole,
    getter: Getter,
}

impl FieldInfo {
    /// Describes a field of type `F` that lies `offset` bytes into its struct. Called by `#[derive(Object)]`.
    ///
    /// # Safety
    /// The struct that the description is attached to has an `F` at that offset.
    #[doc(hidden)]
    pub const unsafe fn new<F: Field>(name: &'static str, offset: usize, role: FieldRole) -> FieldInfo {
        FieldInfo { name, offset, size: size_of::<F>(), align: align_of::<F>(), role, getter: get::<F> }
    }

    /// The field's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// How many bytes lie between the object's address and the field.
    pub fn offset(&self) -> usize {
        size_of::<ObjectHeader>() + self.offset
    }

    /// The size of the field in memory.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The alignment of the field in memory.
    pub fn align(&self) -> usize {
        self.align
    }

    /// How structural equality treats the field.
    pub fn role(&self) -> FieldRole {
        self.role
    }

    /// The function that reads the field from C.
    pub fn getter(&self) -> Getter {
        self.getter
    }
}

/// The names of an object's reflected fields, in the order of declaration.
pub fn field_names(object: &ObjectRef) -> Vec<&'static str> {
    type_info(object.type_index()).map_or(Vec::new(), |info| info.fields().iter().map(FieldInfo::name).collect())
}

/// The value of an object's field; `None` if its type has no field of that name.
pub fn field_of(object: &ObjectRef, name: &str) -> Option<Any> {
    let fields = type_info(object.type_index())?.fields();
    let field = fields.iter().find(|field| field.name == name)?;
    let mut out = RawAny::NONE;
    // SAFETY: the object's type index belongs to the type that the description is attached to, so the field lies there;
    // the getter writes an owned value and cannot fail.
    unsafe {
        let address = object.as_ptr().cast::<c_void>().byte_add(field.offset());
        (field.getter)(address, &raw mut out);
        Some(Any::from_raw(out))
    }
}

unsafe extern "C" fn get<F: Field>(field: *mut c_void, out: *mut RawAny) -> c_int {
    // SAFETY: the caller passes the address of an `F` in a live object and a place for the result.
    unsafe { out.write((*field.cast::<F>()).to_any().into_raw()) };
    0
}
