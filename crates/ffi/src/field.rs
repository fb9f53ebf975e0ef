//! [`Field`]: what a type must offer to be a field of an object.

use std::collections::BTreeMap;

use indexmap::IndexMap;

use crate::abi::type_index;
use crate::object::{Object, ObjectRef, Ref};
use crate::reflect::Setter;
use crate::structural::{StructuralEqual, StructuralHash, bytes_hash, combine};
use crate::type_info;
use crate::{Any, Array, Bytes, DataType, Device, Map, Str};

/// How a field lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Plain bits, for which zeros are a value.
    Plain,
    /// A value as it crosses the border.
    Any,
    /// The address of an object, or null.
    Object,
    /// A Rust type, which only Rust understands.
    Rust,
}

/// A type that can be a reflected field: it can be read as a value, compared and hashed.
pub trait Field {
    /// How the field lies in memory, as far as other languages may know.
    const STORAGE: Storage = Storage::Rust;
    /// The type index that front ends may rely on; any value if it says nothing.
    const STATIC_INDEX: i32 = type_index::ANY;
    /// Writes the field, for fields that may change while others hold the object.
    #[doc(hidden)]
    const SETTER: Option<Setter> = None;

    /// The type as the interface's tools read it: JSON with the type's key and those of its parts.
    fn schema() -> String {
        schema_of(type_info::builtin_key(Self::STATIC_INDEX).unwrap_or("Any"), &[])
    }

    /// The field's value, for reflection.
    fn to_any(&self) -> Any;

    /// True if both are structurally equal; records the first difference in `eq`.
    fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool;

    /// Adds what `s_equal` compares to the hash.
    fn s_hash(&self, hash: &mut StructuralHash);
}

/// The schema of a type with those parts.
pub(crate) fn schema_of(key: &str, parts: &[String]) -> String {
    match parts {
        [] => format!("{{\"type\":\"{key}\"}}"),
        _ => format!("{{\"type\":\"{key}\",\"args\":[{}]}}", parts.join(",")),
    }
}

/// Sequences of Rust hash as arrays do, maps as maps.
const ARRAY_KEY: &str = "ffi.Array";
const MAP_KEY: &str = "ffi.Map";

/// Implements fields that are compared by `==` and hashed as one word.
macro_rules! plain_field {
    ($($field:ty, $index:ident: |$value:ident| $word:expr;)*) => {$(
        impl Field for $field {
            const STORAGE: Storage = Storage::Plain;
            const STATIC_INDEX: i32 = type_index::$index;

            fn to_any(&self) -> Any {
                (*self).into()
            }

            fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
                self == other || eq.fail(format_args!("{self:?} differs from {other:?}"))
            }

            fn s_hash(&self, hash: &mut StructuralHash) {
                let $value = *self;
                hash.word(type_index::$index, $word);
            }
        }
    )*};
}

plain_field! {
    bool, BOOL: |value| value.into();
    i64, INT: |value| value as u64;
    i32, INT: |value| value as i64 as u64;
    i16, INT: |value| value as i64 as u64;
    i8, INT: |value| value as i64 as u64;
    u64, INT: |value| value;
    u32, INT: |value| value.into();
    u16, INT: |value| value.into();
    u8, INT: |value| value.into();
    usize, INT: |value| value as u64;
    DataType, DATA_TYPE: |value| value.to_word() as u64;
    Device, DEVICE: |value| Any::from(value).as_view().raw().word() as u64;
}

/// All NaNs are one; otherwise floats are equal when their bits are, so `0.0` is not `-0.0`.
pub(crate) fn float_bits(value: f64) -> u64 {
    if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() }
}

impl Field for f64 {
    const STORAGE: Storage = Storage::Plain;
    const STATIC_INDEX: i32 = type_index::FLOAT;

    fn to_any(&self) -> Any {
        (*self).into()
    }

    fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        float_bits(*self) == float_bits(*other) || eq.fail(format_args!("{self:?} differs from {other:?}"))
    }

    fn s_hash(&self, hash: &mut StructuralHash) {
        hash.word(type_index::FLOAT, float_bits(*self));
    }
}

impl Field for f32 {
    const STORAGE: Storage = Storage::Plain;
    const STATIC_INDEX: i32 = type_index::FLOAT;

    fn to_any(&self) -> Any {
        (*self).into()
    }

    fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        f64::from(*self).s_equal(&f64::from(*other), eq)
    }

    fn s_hash(&self, hash: &mut StructuralHash) {
        f64::from(*self).s_hash(hash);
    }
}

impl Field for Bytes {
    const STORAGE: Storage = Storage::Any;

    fn schema() -> String {
        schema_of("ffi.Bytes", &[])
    }

    fn to_any(&self) -> Any {
        self.clone().into()
    }

    fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        self == other || eq.fail("the bytes differ")
    }

    fn s_hash(&self, hash: &mut StructuralHash) {
        hash.word(type_index::BYTES, bytes_hash(self));
    }
}

/// Implements fields of text.
macro_rules! text_field {
    ($($field:ty: $storage:ident)*) => {$(
        impl Field for $field {
            const STORAGE: Storage = Storage::$storage;

            fn schema() -> String {
                schema_of("ffi.String", &[])
            }

            fn to_any(&self) -> Any {
                self.clone().into()
            }

            fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
                self == other || eq.fail(format_args!("{self:?} differs from {other:?}"))
            }

            fn s_hash(&self, hash: &mut StructuralHash) {
                hash.word(type_index::STR, bytes_hash(self.as_bytes()));
            }
        }
    )*};
}

text_field!(String: Rust Str: Any &'static str: Rust);

impl<T: Field> Field for Option<T> {
    // Only of addresses is it fixed how absence is kept.
    const STORAGE: Storage = match T::STORAGE {
        Storage::Object => Storage::Object,
        _ => Storage::Rust,
    };

    fn schema() -> String {
        schema_of("Optional", &[T::schema()])
    }

    fn to_any(&self) -> Any {
        self.as_ref().map_or(Any::none(), Field::to_any)
    }

    fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        match (self, other) {
            (Some(a), Some(b)) => a.s_equal(b, eq),
            (None, None) => true,
            (None, Some(_)) => eq.fail("only the second has a value"),
            (Some(_), None) => eq.fail("only the first has a value"),
        }
    }

    fn s_hash(&self, hash: &mut StructuralHash) {
        match self {
            Some(value) => value.s_hash(hash),
            None => hash.word(type_index::NONE, 0),
        }
    }
}

impl<T: Field> Field for Vec<T> {
    fn schema() -> String {
        schema_of(ARRAY_KEY, &[T::schema()])
    }

    fn to_any(&self) -> Any {
        self.iter().map(Field::to_any).collect::<Array>().into()
    }

    fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        if self.len() != other.len() {
            return eq.fail(format_args!("{} elements against {}", self.len(), other.len()));
        }
        let mut pairs = self.iter().zip(other).enumerate();
        pairs.all(|(position, (a, b))| eq.index(position, |eq| a.s_equal(b, eq)))
    }

    fn s_hash(&self, hash: &mut StructuralHash) {
        hash.nested(ARRAY_KEY, |hash| {
            hash.combine(self.len() as u64);
            self.iter().for_each(|item| item.s_hash(hash));
        });
    }
}

impl<T: Field> Field for Box<T> {
    fn to_any(&self) -> Any {
        T::to_any(self)
    }

    fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        T::s_equal(self, other, eq)
    }

    fn s_hash(&self, hash: &mut StructuralHash) {
        T::s_hash(self, hash);
    }
}

/// Implements tuples as arrays of fixed length.
macro_rules! tuple_field {
    ($count:literal $($name:ident $position:tt)*) => {
        impl<$($name: Field),*> Field for ($($name,)*) {
            fn to_any(&self) -> Any {
                Array::from_vec(vec![$(self.$position.to_any()),*]).into()
            }

            fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
                $(eq.index($position, |eq| self.$position.s_equal(&other.$position, eq)))&&*
            }

            fn s_hash(&self, hash: &mut StructuralHash) {
                hash.nested(ARRAY_KEY, |hash| {
                    hash.combine($count);
                    $(self.$position.s_hash(hash);)*
                });
            }
        }
    };
}

tuple_field!(2 A 0 B 1);
tuple_field!(3 A 0 B 1 C 2);
tuple_field!(4 A 0 B 1 C 2 D 3);

/// Implements maps from text: equal when they have the same keys with equal values, in whatever order.
macro_rules! map_field {
    ($($map:ident)*) => {$(
        impl<T: Field> Field for $map<String, T> {
            fn to_any(&self) -> Any {
                self.iter().map(|(key, value)| (key.as_str(), value.to_any())).collect::<Map>().into()
            }

            fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
                if self.len() != other.len() {
                    return eq.fail(format_args!("{} entries against {}", self.len(), other.len()));
                }
                self.iter().all(|(key, a)| {
                    eq.key(key, |eq| match other.get(key) {
                        Some(b) => a.s_equal(b, eq),
                        None => eq.fail("only the first has this key"),
                    })
                })
            }

            fn s_hash(&self, hash: &mut StructuralHash) {
                let key_hash = |key: &String| combine(type_index::STR as u64, bytes_hash(key.as_bytes()));
                let mut entries: Vec<_> = self.iter().map(|(key, value)| (key_hash(key), value)).collect();
                entries.sort_by_key(|(hash, _)| *hash);
                hash.nested(MAP_KEY, |hash| {
                    hash.combine(entries.len() as u64);
                    for (key, value) in entries {
                        hash.combine(key);
                        value.s_hash(hash);
                    }
                });
            }
        }
    )*};
}

map_field!(IndexMap BTreeMap);

impl<T: Object> Field for Ref<T> {
    const STORAGE: Storage = Storage::Object;

    fn schema() -> String {
        schema_of(T::TYPE_KEY, &[])
    }

    fn to_any(&self) -> Any {
        self.clone().into()
    }

    fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        eq.nodes(self, other)
    }

    fn s_hash(&self, hash: &mut StructuralHash) {
        hash.node(self);
    }
}

impl Field for ObjectRef {
    const STORAGE: Storage = Storage::Object;

    fn schema() -> String {
        schema_of("ffi.Object", &[])
    }

    fn to_any(&self) -> Any {
        self.clone().into()
    }

    fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        eq.objects(self, other)
    }

    fn s_hash(&self, hash: &mut StructuralHash) {
        hash.object(self);
    }
}

impl Field for Any {
    const STORAGE: Storage = Storage::Any;

    fn to_any(&self) -> Any {
        self.clone()
    }

    fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        eq.values(self, other)
    }

    fn s_hash(&self, hash: &mut StructuralHash) {
        hash.value(self);
    }
}
