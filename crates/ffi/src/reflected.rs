//! A type's reflection as C reads it: one structure whose address never changes, over tables that only grow.

use std::cell::UnsafeCell;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::abi::{ByteArray, RawAny, type_index};
use crate::capi::{CFieldInfo, CMethodInfo, CTypeInfo, CTypeMetadata};
use crate::reflect::{FieldInfo, FieldRole};
use crate::{Error, ErrorKind};

/// The structure, and what it points at. Tables that were outgrown stay, since readers in C take no lock.
pub(crate) struct Reflected {
    view: UnsafeCell<CTypeInfo>,
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    fields: Vec<CFieldInfo>,
    methods: Vec<CMethodInfo>,
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
            key_hash: crate::structural::bytes_hash(key.as_bytes()),
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

    /// Describes the fields that Rust declares.
    pub(crate) fn declare_fields(&self, fields: &[FieldInfo]) {
        let mut tables = self.lock();
        if !fields.is_empty() && tables.fields.is_empty() {
            tables.fields = fields.iter().map(describe).collect();
            self.publish(&mut tables);
        }
    }

    /// Adds a field; an error if the type has one of that name.
    pub(crate) fn add_field(&self, field: CFieldInfo) -> Result<(), Error> {
        let mut tables = self.lock();
        // SAFETY: names in the tables live for ever.
        let taken = tables.fields.iter().any(|other| unsafe { other.name.as_slice() == field.name.as_slice() });
        if taken {
            // SAFETY: as above.
            let name = String::from_utf8_lossy(unsafe { field.name.as_slice() }).into_owned();
            return Err(Error::new(ErrorKind::RuntimeError, format!("the type has a field `{name}` already")));
        }
        grow(&mut tables.fields);
        tables.fields.push(field);
        self.publish(&mut tables);
        Ok(())
    }

    /// Adds a method; a later one of the same name stands beside the earlier.
    pub(crate) fn add_method(&self, method: CMethodInfo) -> Result<(), Error> {
        let mut tables = self.lock();
        grow(&mut tables.methods);
        tables.methods.push(method);
        self.publish(&mut tables);
        Ok(())
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

/// Makes room for one more; the old table stays where it is, for readers that found it.
fn grow<T: Clone>(table: &mut Vec<T>) {
    if table.len() == table.capacity() {
        let mut larger = Vec::with_capacity((table.len() * 2).max(8));
        larger.extend(table.iter().cloned());
        std::mem::forget(std::mem::replace(table, larger));
    }
}

fn describe(field: &FieldInfo) -> CFieldInfo {
    const IGNORED: i64 = 1 << 3;
    const DEFINES: i64 = 1 << 4;
    let nothing = ByteArray::new(b"");
    CFieldInfo {
        name: ByteArray::new(field.name().as_bytes()),
        doc: nothing,
        metadata: nothing,
        flags: match field.role() {
            FieldRole::Compared => 0,
            FieldRole::Ignored => IGNORED,
            FieldRole::Defines => DEFINES,
        },
        size: field.size() as i64,
        alignment: field.align() as i64,
        offset: field.offset() as i64,
        getter: Some(field.getter()),
        setter: std::ptr::null_mut(),
        default: RawAny::NONE,
        static_type_index: type_index::ANY,
    }
}
