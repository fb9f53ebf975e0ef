//! Structural equality and hashing of object graphs.
//!
//! Two graphs are structurally equal if they have the same shape and content, up to the names of the variables that they
//! define. A type says by its [`NodeKind`](crate::NodeKind) how it takes part; a field says by `#[field(ignore)]` that it
//! does not, and by `#[field(def)]` that free variables in it are defined there. Where variables are defined, a variable
//! of one side is matched with the one that stands in its place on the other; everywhere else a variable equals its match
//! or, if it has none, itself.
//!
//! Equal graphs have equal hashes. The hash does not depend on addresses, except where a variable occurs that the graph
//! does not define.
//!
//! Shared nodes are visited once: a pair found equal stays equal, because matches are only added, and a node's hash stays
//! its hash, because a variable keeps the number that it got first.

mod equal;
mod hash;
mod key;
mod path;

pub use equal::{Mismatch, PathStep, Side, StructuralEqual};
pub use hash::StructuralHash;
pub(crate) use hash::{bytes_hash, combine, key_hash};
pub use key::StructuralKey;
pub(crate) use key::StructuralKeyObj;
pub(crate) use path::{AccessPath, AccessStep};

use crate::object::{Handle, ObjectRef};
use crate::reflect::flags;
use crate::type_info::type_info;
use crate::{Any, Error, ErrorKind};

/// Whether variables that are met are defined there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Region {
    /// They are not.
    #[default]
    None,
    /// They are, and so are those that they hold.
    Pattern,
    /// They are, but not those that they hold.
    Simple,
}

impl Region {
    /// The region inside of this one where another begins: a pattern stays one.
    pub(crate) fn enter(self, inner: Region) -> Region {
        match (self, inner) {
            (Region::Pattern, _) | (_, Region::None) => self,
            _ => inner,
        }
    }

    /// What the flags of a field say.
    pub(crate) fn of_field(field: i64) -> Region {
        match field {
            field if field & flags::DEFINES_SIMPLE != 0 => Region::Simple,
            field if field & flags::DEFINES != 0 => Region::Pattern,
            _ => Region::None,
        }
    }

    /// The region of a number of the interface.
    pub(crate) fn of_index(index: i64) -> Region {
        match index {
            1 => Region::Pattern,
            2 => Region::Simple,
            _ => Region::None,
        }
    }
}

/// How a type takes part, as reflection says it.
pub(crate) mod kind {
    pub(crate) const UNSUPPORTED: i32 = 0;
    pub(crate) const TREE: i32 = 1;
    pub(crate) const VARIABLE: i32 = 2;
    pub(crate) const DAG: i32 = 3;
    pub(crate) const CONST_TREE: i32 = 4;
    pub(crate) const UNIQUE: i32 = 5;
}

/// How the type of an object that Rust does not know takes part; an error if its declaration does not say.
pub(crate) fn structural_kind(object: &ObjectRef) -> Result<i32, Error> {
    let metadata = type_info(object.type_index()).and_then(|info| info.reflected().metadata());
    let message = match metadata.map(|metadata| metadata.structural_kind) {
        None => format!("Type metadata is not set for type `{}`", object.type_key()),
        Some(kind::UNSUPPORTED) => format!("_type_s_eq_hash_kind is not set for type `{}`", object.type_key()),
        Some(kind) => return Ok(kind),
    };
    let message = format!("{message}, so StructuralHash is not supported for this type");
    Err(Error::new(ErrorKind::TypeError, message))
}

/// The switches that front ends have.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompareOptions {
    /// Variables that neither side defines are matched by position.
    pub map_free_vars: bool,
    /// The elements of tensors do not count.
    pub skip_tensor_content: bool,
}

/// Compares two values; the first difference, or why they cannot be compared.
pub fn first_mismatch(a: &Any, b: &Any, options: CompareOptions) -> Result<Option<Mismatch>, Error> {
    let mut eq = StructuralEqual::with_options(options);
    let equal = eq.values(a, b);
    eq.conclude(equal)
}

/// The hash that goes with [`first_mismatch`].
pub fn value_hash(value: &Any, options: CompareOptions) -> Result<u64, Error> {
    StructuralHash::with_options(options).of_value(value)
}

/// How variables are compared that neither graph defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeVars {
    /// By position, as those that are defined.
    Mapped,
    /// Each is equal to itself alone.
    Same,
}

/// Compares two graphs.
pub fn structural_equal<A: Handle, B: Handle>(a: &A, b: &B, free_vars: FreeVars) -> Result<(), Mismatch> {
    let mut eq = StructuralEqual::new();
    let equal = match free_vars {
        FreeVars::Mapped => eq.def_region(|eq| eq.objects(a.as_object(), b.as_object())),
        FreeVars::Same => eq.objects(a.as_object(), b.as_object()),
    };
    if equal { Ok(()) } else { Err(eq.into_mismatch()) }
}

/// The hash that goes with [`structural_equal`].
pub fn structural_hash<A: Handle>(a: &A, free_vars: FreeVars) -> u64 {
    hash_of(StructuralHash::new(), a, free_vars)
}

/// What equal graphs have in common, to look them up by before they are compared: the hash without the elements of tensors, which
/// may be all weights of a model.
pub fn structural_key<A: Handle>(a: &A, free_vars: FreeVars) -> u64 {
    let options = CompareOptions { skip_tensor_content: true, ..CompareOptions::default() };
    hash_of(StructuralHash::with_options(options), a, free_vars)
}

fn hash_of<A: Handle>(mut hash: StructuralHash, a: &A, free_vars: FreeVars) -> u64 {
    match free_vars {
        FreeVars::Mapped => hash.def_region(|hash| hash.object(a.as_object())),
        FreeVars::Same => hash.object(a.as_object()),
    }
    hash.finish()
}
