//! What registers hold beside tensors.

use relaxide_ffi::{Any, Object, Ref, Tail};

/// A value of a data type, or a tuple. Its fields lie behind it, so making one is one allocation.
#[derive(Object)]
#[object(key = "relay.vm.ADT", tail)]
#[repr(C)]
pub struct Adt {
    /// What constructor made it; 0 for a tuple.
    pub tag: i32,
    /// The fields.
    pub fields: Tail,
}

impl Adt {
    /// A value.
    pub fn new(tag: i32, fields: Vec<Any>) -> Ref<Adt> {
        Adt::of(tag, fields)
    }

    /// A value of fields that are made one by one.
    #[inline]
    pub(crate) fn of<I>(tag: i32, fields: I) -> Ref<Adt>
    where
        I: IntoIterator<Item = Any>,
        I::IntoIter: ExactSizeIterator,
    {
        Ref::with_tail(Adt { tag, fields: Tail::default() }, fields)
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

/// A function with what it captured, which lies behind it.
#[derive(Object)]
#[object(key = "relay.vm.Closure", tail)]
#[repr(C)]
pub struct Closure {
    /// Which machine it belongs to: no other may run it.
    #[field(hidden)]
    pub(crate) machine: u64,
    /// The function's index in its executable.
    pub func: u32,
    /// What it captured, which stands in front of the arguments.
    pub free: Tail,
}

impl std::fmt::Debug for Closure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Closure({}, {} captured)", self.func, self.free.len())
    }
}
