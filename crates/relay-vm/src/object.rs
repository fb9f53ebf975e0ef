//! What registers hold beside tensors.

use relaxide_ffi::{Any, Array, Field, Object, Ref, StructuralEqual, StructuralHash};

/// How many fields lie in the object itself: those of lists, options, trees and pairs.
const FEW: usize = 3;

/// The fields of a value. A few lie in the object that has them, so that making a value is one allocation.
pub struct Fields(Place);

enum Place {
    /// The first `count` are fields, the others are nothing.
    Inside {
        values: [Any; FEW],
        count: usize,
    },
    Outside(Box<[Any]>),
}

impl std::ops::Deref for Fields {
    type Target = [Any];

    #[inline]
    fn deref(&self) -> &[Any] {
        match &self.0 {
            Place::Inside { values, count } => values.get(..*count).unwrap_or(values),
            Place::Outside(values) => values,
        }
    }
}

impl<'f> IntoIterator for &'f Fields {
    type Item = &'f Any;
    type IntoIter = std::slice::Iter<'f, Any>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl FromIterator<Any> for Fields {
    #[inline]
    fn from_iter<I: IntoIterator<Item = Any>>(values: I) -> Fields {
        let mut values = values.into_iter();
        let mut inside = [const { Any::none() }; FEW];
        for count in 0..FEW {
            match values.next() {
                Some(value) => inside[count] = value,
                None => return Fields(Place::Inside { values: inside, count }),
            }
        }
        match values.next() {
            Some(next) => Fields(Place::Outside(inside.into_iter().chain([next]).chain(values).collect())),
            None => Fields(Place::Inside { values: inside, count: FEW }),
        }
    }
}

impl From<Vec<Any>> for Fields {
    fn from(values: Vec<Any>) -> Fields {
        if values.len() > FEW { Fields(Place::Outside(values.into())) } else { values.into_iter().collect() }
    }
}

impl Field for Fields {
    fn schema() -> String {
        <Vec<Any> as Field>::schema()
    }

    fn to_any(&self) -> Any {
        Array::from_iter(self.iter().cloned()).into()
    }

    fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        self.to_vec().s_equal(&other.to_vec(), eq)
    }

    fn s_hash(&self, hash: &mut StructuralHash) {
        self.to_vec().s_hash(hash);
    }
}

/// A value of a data type, or a tuple.
#[derive(Object)]
#[object(key = "relay.vm.ADT")]
pub struct Adt {
    /// What constructor made it; 0 for a tuple.
    pub tag: i64,
    /// The fields.
    pub fields: Fields,
}

impl Adt {
    /// A value.
    pub fn new(tag: i64, fields: Vec<Any>) -> Ref<Adt> {
        Ref::new(Adt { tag, fields: fields.into() })
    }

    /// A tuple.
    pub fn tuple(fields: Vec<Any>) -> Ref<Adt> {
        Adt::new(0, fields)
    }
}

impl std::fmt::Debug for Adt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Adt({}, {} fields)", self.tag, self.fields.len())
    }
}

/// A function with what it captured.
#[derive(Object)]
#[object(key = "relay.vm.Closure")]
pub struct Closure {
    /// The function's index in its executable.
    pub func: i64,
    /// What it captured, which stands in front of the arguments.
    pub free: Vec<Any>,
    /// Which machine it belongs to: no other may run it.
    #[field(hidden)]
    pub(crate) machine: u64,
}

impl std::fmt::Debug for Closure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Closure({}, {} captured)", self.func, self.free.len())
    }
}
