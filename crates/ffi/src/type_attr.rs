//! Attributes of types: one column for each name, one value for each type.
//!
//! Hooks are kept here: how to print a type, compare it, copy it, turn it into JSON. Code of other languages reads the
//! columns in memory and remembers their addresses, so that a column never moves, and values that it may have seen are
//! never freed, only outgrown. An attribute of a type is set once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::abi::type_index;
use crate::append_only::AppendOnly;
use crate::capi::CTypeAttrColumn;
use crate::fork::{self, Held};
use crate::type_info;
use crate::{Any, Error, ErrorKind};

macro_rules! attributes {
    ($($(#[$doc:meta])* $attr:ident = $name:literal,)*) => {
        /// The attributes that this crate acts on. Front ends are free to keep others.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Attr {
            $($(#[$doc])* $attr,)*
        }

        impl Attr {
            /// The name by which every language knows the attribute.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Attr::$attr => $name,)*
                }
            }
        }

        const ALL: &[Attr] = &[$(Attr::$attr),*];
    };
}

attributes! {
    /// `() -> object`: makes an object whose fields are empty.
    New = "__ffi_new__",
    /// `(arguments…) -> object`: makes an object of arguments by position and by name.
    Init = "__ffi_init__",
    /// `(any) -> object`: turns a value into one of the type.
    Convert = "__ffi_convert__",
    /// `(object) -> object`: a copy that shares what the fields hold.
    ShallowCopy = "__ffi_shallow_copy__",
    /// `(object, print) -> str`.
    Repr = "__ffi_repr__",
    /// `(object, hash) -> int`.
    Hash = "__ffi_hash__",
    /// `(object, object, equal) -> bool`.
    Eq = "__ffi_eq__",
    /// `(object, object, compare) -> int`.
    Compare = "__ffi_compare__",
    /// `(any) -> int`: the hash of a key.
    AnyHash = "__any_hash__",
    /// `(any, any) -> bool`: whether keys are the same.
    AnyEqual = "__any_equal__",
    /// `(object, hash so far, hash) -> int`: the structural hash.
    StructuralHash = "__s_hash__",
    /// `(object, object, equal) -> bool`: structural equality.
    StructuralEqual = "__s_equal__",
    /// `(visitor, object) -> interrupt or None`.
    StructuralVisit = "__s_visit__",
    /// `(mutator, object) -> any`.
    StructuralMutate = "__s_mutate__",
    /// `(mutator, object) -> any`: may change the object, which nobody else has.
    StructuralMutateInPlace = "__s_maybe_inplace_mutate__",
    /// `(object) -> JSON`.
    DataToJson = "__data_to_json__",
    /// `(JSON) -> object`.
    DataFromJson = "__data_from_json__",
    /// The members of an enumeration.
    EnumState = "__ffi_enum__",
}

/// An attribute's column as C sees it, and its values.
struct Column {
    view: *mut CTypeAttrColumn,
    values: AppendOnly<Any>,
}

// SAFETY: the view is written under the table's lock only; values are `Send + Sync`.
unsafe impl Send for Column {}

static COLUMNS: LazyLock<Mutex<HashMap<String, Column>>> = LazyLock::new(|| {
    let mut columns = HashMap::new();
    for attr in ALL {
        columns.insert(attr.name().to_string(), Column::new());
    }
    crate::builtin::attributes(&mut |index, attr, value| {
        if let (Ok(index), Some(column)) = (usize::try_from(index), columns.get_mut(attr.name())) {
            column.put(index, value);
        }
    });
    Mutex::new(columns)
});

/// Makes the table, if nothing has used it yet.
pub(crate) fn make() {
    LazyLock::force(&COLUMNS);
}

/// Holds the lock across a fork.
pub(crate) fn hold() -> Option<Held> {
    fork::hold(&COLUMNS)
}

/// True once a type outside of this crate hashes its own keys.
static FOREIGN_HASH: AtomicBool = AtomicBool::new(false);

fn columns() -> MutexGuard<'static, HashMap<String, Column>> {
    COLUMNS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The value of a type's attribute.
pub fn get(attr: Attr, index: i32) -> Option<Any> {
    let columns = columns();
    let value = columns.get(attr.name())?.values.get(usize::try_from(index).ok()?)?;
    (!value.is_none()).then(|| value.clone())
}

/// Sets an attribute of a type; an error if it is set already. For the index of None, only the column is made.
pub fn set(name: &str, index: i32, value: Any) -> Result<(), Error> {
    let position = usize::try_from(index)
        .ok()
        .filter(|_| type_info::type_info(index).is_some())
        .ok_or_else(|| Error::new(ErrorKind::ValueError, format!("no type has the index {index}")))?;
    if name == Attr::AnyHash.name() && index != type_index::NONE {
        FOREIGN_HASH.store(true, Ordering::Relaxed);
    }
    let mut columns = columns();
    let column = columns.entry(name.to_string()).or_insert_with(Column::new);
    if index == type_index::NONE {
        return Ok(());
    }
    if column.values.get(position).is_some_and(|old| !old.is_none()) {
        let key = type_info::key_of(index);
        let message = format!("TypeAttr `{name}` is already registered for type `{key}` (index {index})");
        return Err(Error::new(ErrorKind::RuntimeError, message));
    }
    column.put(position, value);
    Ok(())
}

/// The column of an attribute as C reads it; null if there is none.
pub(crate) fn column(name: &str) -> *const CTypeAttrColumn {
    columns().get(name).map_or(std::ptr::null(), |column| column.view.cast_const())
}

/// True if types outside of this crate have hooks for hashing keys.
pub(crate) fn has_foreign_hash() -> bool {
    FOREIGN_HASH.load(Ordering::Relaxed)
}

impl Column {
    fn new() -> Column {
        let view = CTypeAttrColumn { data: std::ptr::null(), size: 0, begin_index: 0 };
        Column { view: Box::into_raw(Box::new(view)), values: AppendOnly::new() }
    }

    fn put(&mut self, position: usize, value: Any) {
        self.values.fill(position + 1, Any::none());
        self.values[position] = value;
        let (data, size) = (self.values.as_ptr().cast(), self.values.len() as i32);
        // SAFETY: the view was leaked by `new`; the caller has the table to itself.
        unsafe { self.view.write(CTypeAttrColumn { data, size, begin_index: 0 }) };
    }
}
