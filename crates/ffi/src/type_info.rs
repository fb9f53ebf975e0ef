//! The table of object types of this process: key, index, ancestry, and what reflection and equality need.
//!
//! A type enters the table when its index is first asked for, or when a C caller registers it, and never leaves. Indices
//! from 128 on follow the order of registration, so they mean nothing outside the process.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{LazyLock, OnceLock, PoisonError, RwLock};

use crate::fork::{self, Held};

use crate::Error;
use crate::abi::{ByteArray, type_index};
use crate::array::ArrayObj;
use crate::big_int::BigIntObj;
use crate::capi::CTypeMetadata;
use crate::error::ErrorObj;
use crate::function::FunctionObj;
use crate::list::ListObj;
use crate::map::{DictObj, MapObj};
use crate::module::ModuleObj;
use crate::object::{NodeKind, Object, ObjectHeader, ObjectRef, Ref};
use crate::reflect::{FieldInfo, FieldReader};
use crate::reflected::Reflected;
use crate::shape::ShapeObj;
use crate::string::{HeapBytes, HeapStr};
use crate::structural::{StructuralEqual, StructuralHash, kind};
use crate::tensor::TensorObj;

/// What is known of one type.
pub struct TypeInfo {
    key: &'static str,
    index: i32,
    parent: Option<i32>,
    ancestors: Vec<i32>,
    rust: OnceLock<RustType>,
    reflected: Reflected,
}

/// What a Rust type adds to its entry.
pub(crate) struct RustType {
    id: TypeId,
    pub(crate) fields: fn() -> &'static [FieldInfo],
    /// Makes an object of its fields.
    pub(crate) create: fn(FieldReader<'_>) -> Result<ObjectRef, Error>,
    pub(crate) equal: fn(&ObjectRef, &ObjectRef, &mut StructuralEqual) -> bool,
    pub(crate) hash: fn(&ObjectRef, &mut StructuralHash) -> u64,
}

impl RustType {
    fn of<T: Object>() -> RustType {
        RustType {
            id: TypeId::of::<T>(),
            fields: T::fields,
            create: |fields| Ok(Ref::new(T::from_fields(fields)?).into()),
            equal: |a, b, eq| match (a.downcast_ref::<T>(), b.downcast_ref::<T>()) {
                (Some(a), Some(b)) => eq.nodes(a, b),
                _ => eq.differ_in_type(a, b),
            },
            hash: |object, hash| object.downcast_ref::<T>().map_or(0, |node| hash.own_node(node)),
        }
    }
}

/// What reflection knows of a Rust type besides its fields. Of types that are built in it knows their names only: front
/// ends neither make them nor refine them.
fn metadata_of<T: Object>() -> Option<CTypeMetadata> {
    if T::STATIC_INDEX.is_some() {
        return None;
    }
    let structural_kind = match T::KIND {
        NodeKind::Tree => kind::TREE,
        NodeKind::Var => kind::VARIABLE,
        NodeKind::Unique => kind::UNIQUE,
    };
    let total_size = i32::try_from(size_of::<ObjectHeader>() + size_of::<T>()).unwrap_or(0);
    Some(CTypeMetadata { doc: ByteArray::new(b""), creator: None, total_size, structural_kind })
}

/// What reflection knows of the type that all others refine: an object is at least a header.
const ROOT: CTypeMetadata = CTypeMetadata {
    doc: ByteArray::new(b""),
    creator: None,
    total_size: size_of::<ObjectHeader>() as i32,
    structural_kind: kind::UNSUPPORTED,
};

impl TypeInfo {
    /// The name that every language knows the type by.
    pub fn key(&self) -> &'static str {
        self.key
    }

    /// The index in this process.
    pub fn index(&self) -> i32 {
        self.index
    }

    /// The index of the type that this one refines; `None` for the root.
    pub fn parent(&self) -> Option<i32> {
        self.parent
    }

    /// The indices from the root down to the parent.
    pub fn ancestors(&self) -> &[i32] {
        &self.ancestors
    }

    /// The reflected fields of a type that Rust declares.
    pub fn fields(&self) -> &'static [FieldInfo] {
        self.rust.get().map_or(&[], |rust| (rust.fields)())
    }

    /// The type as C reads it.
    pub(crate) fn reflected(&self) -> &Reflected {
        &self.reflected
    }

    /// Says what Rust knows of the type.
    fn attach<T: Object>(&self) -> &RustType {
        self.rust.get_or_init(|| {
            self.reflected.declare(T::fields(), metadata_of::<T>());
            RustType::of::<T>()
        })
    }

    pub(crate) fn rust(&self) -> Option<&RustType> {
        self.rust.get()
    }
}

/// Where a Rust type remembers its index.
#[derive(Debug, Default)]
pub struct TypeSlot(AtomicI32);

impl TypeSlot {
    /// A slot that has not asked yet.
    pub const fn new() -> TypeSlot {
        TypeSlot(AtomicI32::new(0))
    }

    #[inline]
    pub(crate) fn index<T: Object>(&self) -> i32 {
        match self.0.load(Ordering::Acquire) {
            0 => self.register::<T>(),
            index => index,
        }
    }

    #[cold]
    fn register<T: Object>(&self) -> i32 {
        let index = register::<T>();
        self.0.store(index, Ordering::Release);
        index
    }
}

/// Registers `T`, as its first use would, and returns its index. Front ends that look types up by key call this for
/// every type that they may be asked for.
///
/// # Panics
/// If another Rust type has the same key, which is a mistake in the program.
pub fn register<T: Object>() -> i32 {
    let entry = entry_of(T::TYPE_KEY, T::PARENT_KEY);
    let rust = entry.attach::<T>();
    assert!(rust.id == TypeId::of::<T>(), "two Rust types are registered as `{}`", T::TYPE_KEY);
    entry.index
}

/// The entry of a type that Rust declares, made where there is none.
fn entry_of(key: &'static str, parent_key: &'static str) -> &'static TypeInfo {
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let index = table.add(key, parent_key);
    table.by_index[&index]
}

/// What a C caller says of a type that it registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Declaration {
    /// The index of the type that it refines.
    pub(crate) parent: i32,
    /// The index that it must have.
    pub(crate) fixed: Option<i32>,
    /// How many indices behind its own are kept for types that refine it.
    pub(crate) child_slots: i32,
    /// True if refining types may have other indices.
    pub(crate) overflow: bool,
}

/// Registers a type that C declares, unless its key is known; `None` if the declaration cannot be met.
pub(crate) fn declare(key: &str, declaration: Declaration) -> Option<i32> {
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(entry) = table.by_key.get(key) {
        return Some(entry.index);
    }
    let index = match declaration.fixed {
        Some(index) if table.by_index.contains_key(&index) || index >= type_index::DYNAMIC_BEGIN => return None,
        Some(index) => index,
        None => table.allocate(declaration.parent, declaration.child_slots)?,
    };
    let slots = declaration.child_slots.max(0);
    let children = Children { next: index + 1, end: index + 1 + slots, overflow: declaration.overflow };
    table.children.insert(index, children);
    table.insert(Box::leak(key.into()), index, Some(declaration.parent));
    Some(index)
}

/// The entry of a type index.
pub fn type_info(index: i32) -> Option<&'static TypeInfo> {
    TABLE.read().unwrap_or_else(PoisonError::into_inner).by_index.get(&index).copied()
}

/// The index of a type key, if the type has been registered.
pub fn type_index_of_key(key: &str) -> Option<i32> {
    TABLE.read().unwrap_or_else(PoisonError::into_inner).by_key.get(key).map(|entry| entry.index)
}

/// The keys of all types, by their indices.
pub fn keys() -> Vec<&'static str> {
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    let mut entries: Vec<_> = table.by_index.values().map(|entry| (entry.index, entry.key)).collect();
    entries.sort_unstable();
    entries.into_iter().map(|(_, key)| key).collect()
}

/// The key of a type index; `ffi.Unknown` for an index that was never given out.
pub fn key_of(index: i32) -> &'static str {
    type_info(index).map_or("ffi.Unknown", TypeInfo::key)
}

/// True if a type is another or refines it.
pub fn is_instance(index: i32, ancestor: i32) -> bool {
    index == ancestor || type_info(index).is_some_and(|info| info.ancestors.contains(&ancestor))
}

static TABLE: LazyLock<RwLock<Table>> = LazyLock::new(|| RwLock::new(Table::with_builtin_types()));

/// Holds the lock across a fork.
pub(crate) fn hold() -> Option<Held> {
    fork::hold_table(&TABLE)
}

/// The table of types.
#[derive(Default)]
pub(crate) struct Table {
    by_key: HashMap<&'static str, &'static TypeInfo>,
    by_index: HashMap<i32, &'static TypeInfo>,
    next: i32,
    /// What C callers said of the types that refine theirs; other types are refined without limit.
    children: HashMap<i32, Children>,
}

/// The indices that are kept for the types that refine one.
#[derive(Clone, Copy)]
struct Children {
    next: i32,
    end: i32,
    overflow: bool,
}

/// The key of an index that the interface fixes.
pub(crate) fn builtin_key(index: i32) -> Option<&'static str> {
    BUILTIN.iter().find(|(builtin, _)| *builtin == index).map(|(_, key)| *key)
}

/// The keys whose indices the interface fixes. Those below 64 name plain values.
const BUILTIN: &[(i32, &str)] = &[
    (type_index::NONE, "None"),
    (type_index::INT, "int"),
    (type_index::BOOL, "bool"),
    (type_index::FLOAT, "float"),
    (type_index::OPAQUE_PTR, "void*"),
    (type_index::DATA_TYPE, "DataType"),
    (type_index::DEVICE, "Device"),
    (type_index::DL_TENSOR_PTR, "DLTensor*"),
    (type_index::RAW_STR, "const char*"),
    (type_index::BYTE_ARRAY_PTR, "TVMFFIByteArray*"),
    (type_index::OBJECT_RVALUE_REF, "ObjectRValueRef"),
    (type_index::SMALL_STR, "ffi.SmallStr"),
    (type_index::SMALL_BYTES, "ffi.SmallBytes"),
    (type_index::UNCHANGED, "ffi.Unchanged"),
    (type_index::OBJECT, "ffi.Object"),
    (type_index::STR, "ffi.String"),
    (type_index::BYTES, "ffi.Bytes"),
    (type_index::ERROR, "ffi.Error"),
    (type_index::FUNCTION, "ffi.Function"),
    (type_index::SHAPE, "ffi.Shape"),
    (type_index::TENSOR, "ffi.Tensor"),
    (type_index::ARRAY, "ffi.Array"),
    (type_index::MAP, "ffi.Map"),
    (type_index::MODULE, "ffi.Module"),
    (type_index::OPAQUE_PY_OBJECT, "ffi.OpaquePyObject"),
    (type_index::LIST, "ffi.List"),
    (type_index::DICT, "ffi.Dict"),
    (type_index::VISIT_INTERRUPT, "ffi.VisitInterrupt"),
    (type_index::BIG_INT, "ffi.BigInt"),
];

impl Table {
    fn with_builtin_types() -> Table {
        let mut table = Table { next: type_index::DYNAMIC_BEGIN, ..Table::default() };
        for (index, key) in BUILTIN {
            let parent = (*index > type_index::OBJECT).then_some(type_index::OBJECT);
            table.insert(key, *index, parent);
        }
        table.by_index[&type_index::OBJECT].reflected.declare(&[], Some(ROOT));
        // The field cannot be in the way: the type has no other of its own.
        let _ = table.by_index[&type_index::MODULE].reflected.add_field(crate::module::imports_field());
        table.attach::<HeapStr>();
        table.attach::<HeapBytes>();
        table.attach::<ErrorObj>();
        table.attach::<FunctionObj>();
        table.attach::<ShapeObj>();
        table.attach::<TensorObj>();
        table.attach::<ArrayObj>();
        table.attach::<MapObj>();
        table.attach::<ModuleObj>();
        table.attach::<ListObj>();
        table.attach::<DictObj>();
        table.attach::<BigIntObj>();
        crate::builtin::declare_types(&mut table);
        table
    }

    /// Enters a type of this crate that front ends may look up before Rust needs it.
    pub(crate) fn declare<T: Object>(&mut self) -> &'static TypeInfo {
        let index = self.add(T::TYPE_KEY, T::PARENT_KEY);
        let entry = self.by_index[&index];
        entry.attach::<T>();
        entry
    }

    /// Says what Rust knows of a type that the interface knows.
    fn attach<T: Object>(&mut self) {
        if let Some(entry) = self.by_key.get(T::TYPE_KEY) {
            entry.attach::<T>();
        }
    }

    /// The index of `key`, which is entered if it is new. An unknown parent is entered below the root.
    fn add(&mut self, key: &'static str, parent_key: &'static str) -> i32 {
        if let Some(entry) = self.by_key.get(key) {
            return entry.index;
        }
        let parent = if parent_key == key { type_index::OBJECT } else { self.add(parent_key, "ffi.Object") };
        // A parent that keeps its children together was declared by C, which Rust types do not refine.
        let index = self.allocate(parent, 0).unwrap_or_else(|| self.take(1));
        self.insert(key, index, Some(parent));
        index
    }

    /// An index with room for `child_slots` behind it: among those that the parent keeps, if they suffice.
    fn allocate(&mut self, parent: i32, child_slots: i32) -> Option<i32> {
        let needed = child_slots.clamp(0, 1 << 16) + 1;
        match self.children.get_mut(&parent) {
            Some(children) if children.end - children.next >= needed => {
                children.next += needed;
                Some(children.next - needed)
            }
            Some(children) if !children.overflow => None,
            _ => Some(self.take(needed)),
        }
    }

    fn take(&mut self, count: i32) -> i32 {
        self.next += count;
        self.next - count
    }

    fn insert(&mut self, key: &'static str, index: i32, parent: Option<i32>) {
        let mut ancestors = Vec::new();
        if let Some(info) = parent.and_then(|parent| self.by_index.get(&parent)) {
            ancestors.extend_from_slice(&info.ancestors);
            ancestors.push(info.index);
        }
        let views = ancestors.iter().map(|ancestor| self.by_index[ancestor].reflected.view()).collect();
        let reflected = Reflected::new(index, key, views);
        // Entries live as long as the process, so that keys and entries can be handed out as plain references.
        let entry: &'static TypeInfo =
            Box::leak(Box::new(TypeInfo { key, index, parent, ancestors, rust: OnceLock::new(), reflected }));
        self.by_key.insert(key, entry);
        self.by_index.insert(index, entry);
    }
}
