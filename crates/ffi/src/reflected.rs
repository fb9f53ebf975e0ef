//! A type's reflection as C reads it: one structure whose address never changes, over tables that only grow.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::abi::{ByteArray, RawAny};
use crate::append_only::AppendOnly;
use crate::capi::{CFieldInfo, CMethodInfo, CTypeInfo, CTypeMetadata};
use crate::reflect::{FieldInfo, FieldRole, flags};
use crate::{Error, ErrorKind};

/// The structure, and what it points at. Tables that were outgrown stay, since readers in C take no lock.
pub(crate) struct Reflected {
    view: UnsafeCell<CTypeInfo>,
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    fields: AppendOnly<CFieldInfo>,
    methods: AppendOnly<CMethodInfo>,
}

// SAFETY: the view is written under the lock only, except for its constant part; what it points at lives for ever.
unsafe impl Send for Reflected {}
// SAFETY: as above.
unsafe impl Sync for Reflected {}

impl Reflected {
    /// A type without members. The ancestors live as long as the process.
    pub(crate) fn new(index: i32, key: &'static str, ancestors: Vec<*const CTypeInfo>) -> Reflected {
        let view = CTypeInfo {
            type_index: index,
            type_depth: ancestors.len() as i32,
            type_key: ByteArray::new(key.as_bytes()),
            ancestors: Box::leak(ancestors.into_boxed_slice()).as_ptr(),
            key_hash: crate::structural::key_hash(key),
            num_fields: 0,
            num_methods: 0,
            fields: std::ptr::null(),
            methods: std::ptr::null(),
            metadata: std::ptr::null(),
        };
        Reflected { view: UnsafeCell::new(view), tables: Mutex::default() }
    }

    /// The structure's address.
    pub(crate) fn view(&self) -> *const CTypeInfo {
        self.view.get()
    }

    /// The fields that the type itself has. Entries that were handed out never change.
    pub(crate) fn fields(&self) -> &'static [CFieldInfo] {
        let tables = self.lock();
        // SAFETY: a table is only added to, or outgrown and left where it is.
        unsafe { std::slice::from_raw_parts(tables.fields.as_ptr(), tables.fields.len()) }
    }

    /// What reflection knows of the type besides its members.
    pub(crate) fn metadata(&self) -> Option<&'static CTypeMetadata> {
        let _tables = self.lock();
        // SAFETY: the lock is held; metadata live for ever.
        unsafe { (*self.view.get()).metadata.as_ref() }
    }

    /// Describes what Rust declares, once.
    pub(crate) fn declare(&self, fields: &[FieldInfo], metadata: Option<CTypeMetadata>) {
        let mut tables = self.lock();
        // SAFETY: the lock is held.
        let view = unsafe { &mut *self.view.get() };
        fields.iter().for_each(|field| tables.fields.push(describe(field)));
        if let Some(metadata) = metadata {
            view.metadata = Box::leak(Box::new(metadata));
        }
        self.publish(&mut tables);
    }

    /// Adds a field; an error if the type has one of that name.
    pub(crate) fn add_field(&self, field: CFieldInfo) -> Result<(), Error> {
        let mut tables = self.lock();
        // SAFETY: names in the tables live for ever.
        let taken = tables.fields.iter().any(|other| unsafe { other.name.as_slice() == field.name.as_slice() });
        if taken {
            // SAFETY: as above.
            let name = String::from_utf8_lossy(unsafe { field.name.as_slice() }).into_owned();
            // SAFETY: the key lives for ever and does not change.
            let key = String::from_utf8_lossy(unsafe { (*self.view.get()).type_key.as_slice() }).into_owned();
            let message = format!("Duplicate field name \"{name}\" in type \"{key}\"");
            return Err(Error::new(ErrorKind::RuntimeError, message));
        }
        tables.fields.push(field);
        self.publish(&mut tables);
        Ok(())
    }

    /// Adds a method; a later one of the same name stands beside the earlier.
    pub(crate) fn add_method(&self, method: CMethodInfo) {
        let mut tables = self.lock();
        tables.methods.push(method);
        self.publish(&mut tables);
    }

    /// Sets the metadata; an error if it is set.
    pub(crate) fn set_metadata(&self, metadata: CTypeMetadata) -> Result<(), Error> {
        let _tables = self.lock();
        // SAFETY: the lock is held.
        let view = unsafe { &mut *self.view.get() };
        if !view.metadata.is_null() {
            return Err(Error::new(ErrorKind::RuntimeError, "the type's metadata is registered already"));
        }
        view.metadata = Box::leak(Box::new(metadata));
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, tables: &mut MutexGuard<'_, Tables>) {
        // SAFETY: the lock is held.
        let view = unsafe { &mut *self.view.get() };
        (view.fields, view.num_fields) = (tables.fields.as_ptr(), tables.fields.len() as i32);
        (view.methods, view.num_methods) = (tables.methods.as_ptr(), tables.methods.len() as i32);
    }
}

fn describe(field: &FieldInfo) -> CFieldInfo {
    let nothing = ByteArray::new(b"");
    let role = match field.role() {
        FieldRole::Compared => 0,
        FieldRole::Ignored => flags::IGNORED,
        FieldRole::Defines => flags::DEFINES,
    };
    CFieldInfo {
        name: ByteArray::new(field.name().as_bytes()),
        doc: nothing,
        metadata: schema_metadata(&field.schema()),
        flags: role
            | if field.writable() { flags::WRITABLE } else { 0 }
            | if field.in_constructor() { 0 } else { flags::INIT_OFF },
        size: field.size() as i64,
        alignment: field.align() as i64,
        offset: field.offset() as i64,
        getter: Some(field.getter()),
        setter: field.setter().map_or(std::ptr::null_mut(), |setter| setter as *mut c_void),
        default: RawAny::NONE,
        static_type_index: field.static_index(),
    }
}

/// The schema of a type as metadata, which is JSON that has JSON in it. It lives as long as the process, as types do.
pub(crate) fn schema_metadata(schema: &str) -> ByteArray {
    if schema.is_empty() {
        return ByteArray::new(b"");
    }
    let metadata = format!("{{\"type_schema\":\"{}\"}}", schema.replace('"', "\\\""));
    ByteArray::new(Box::leak(metadata.into_boxed_str()).as_bytes())
}
