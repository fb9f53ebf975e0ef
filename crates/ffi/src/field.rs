//! [`Field`]: what a type must offer to be a field of an object.

use std::collections::BTreeMap;

use indexmap::IndexMap;

use crate::object::{Object, ObjectRef, Ref};
use crate::structural::{StructuralEqual, StructuralHash};
use crate::{Any, Array, Bytes, DataType, Device, Map, Str};

/// A type that can be a reflected field: it can be read as a value, compared and hashed.
pub trait Field {
    /// The field's value, for reflection.
    fn to_any(&self) -> Any;

    /// True if both are structurally equal; records the first difference in `eq`.
    fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool;

    /// Adds what `s_equal` compares to the hash.
    fn s_hash(&self, hash: &mut StructuralHash);
}

/// Implements fields that are compared by `==` and hashed as one word.
macro_rules! plain_field {
    ($($field:ty: |$value:ident| $word:expr;)*) => {$(
        impl Field for $field {
            fn to_any(&self) -> Any {
                (*self).into()
            }

            fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
                self == other || eq.fail(format_args!("{self:?} differs from {other:?}"))
            }

            fn s_hash(&self, hash: &mut StructuralHash) {
                let $value = *self;
                hash.combine($word);
            }
        }
    )*};
}

plain_field! {
    bool: |value| value.into();
    i64: |value| value as u64;
    i32: |value| value as i64 as u64;
    i16: |value| value as i64 as u64;
    i8: |value| value as i64 as u64;
    u64: |value| value;
    u32: |value| value.into();
    u16: |value| value.into();
    u8: |value| value.into();
    usize: |value| value as u64;
    DataType: |value| value.to_word() as u64;
    Device: |value| (value.device_type as u64) << 32 | u64::from(value.device_id as u32);
}

/// All NaNs are one; otherwise floats are equal when their bits are, so `0.0` is not `-0.0`.
pub(crate) fn float_bits(value: f64) -> u64 {
    if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() }
}

impl Field for f64 {
    fn to_any(&self) -> Any {
        (*self).into()
    }

    fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        float_bits(*self) == float_bits(*other) || eq.fail(format_args!("{self:?} differs from {other:?}"))
    }

    fn s_hash(&self, hash: &mut StructuralHash) {
        hash.combine(float_bits(*self));
    }
}

impl Field for f32 {
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
    fn to_any(&self) -> Any {
        self.clone().into()
    }

    fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        self == other || eq.fail("the bytes differ")
    }

    fn s_hash(&self, hash: &mut StructuralHash) {
        hash.bytes(self);
    }
}

/// Implements fields of text.
macro_rules! text_field {
    ($($field:ty)*) => {$(
        impl Field for $field {
            fn to_any(&self) -> Any {
                self.clone().into()
            }

            fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
                self == other || eq.fail(format_args!("{self:?} differs from {other:?}"))
            }

            fn s_hash(&self, hash: &mut StructuralHash) {
                hash.bytes(self.as_bytes());
            }
        }
    )*};
}

text_field!(String Str &'static str);

impl<T: Field> Field for Option<T> {
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
        hash.combine(self.is_some().into());
        if let Some(value) = self {
            value.s_hash(hash);
        }
    }
}

impl<T: Field> Field for Vec<T> {
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
        hash.combine(self.len() as u64);
        self.iter().for_each(|item| item.s_hash(hash));
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
    ($($name:ident $position:tt)*) => {
        impl<$($name: Field),*> Field for ($($name,)*) {
            fn to_any(&self) -> Any {
                Array::from_vec(vec![$(self.$position.to_any()),*]).into()
            }

            fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
                $(eq.index($position, |eq| self.$position.s_equal(&other.$position, eq)))&&*
            }

            fn s_hash(&self, hash: &mut StructuralHash) {
                $(self.$position.s_hash(hash);)*
            }
        }
    };
}

tuple_field!(A 0 B 1);
tuple_field!(A 0 B 1 C 2);
tuple_field!(A 0 B 1 C 2 D 3);

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
                let mut entries: Vec<_> = self.iter().collect();
                entries.sort_by_key(|(key, _)| *key);
                hash.combine(entries.len() as u64);
                for (key, value) in entries {
                    hash.bytes(key.as_bytes());
                    value.s_hash(hash);
                }
            }
        }
    )*};
}

map_field!(IndexMap BTreeMap);

impl<T: Object> Field for Ref<T> {
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
