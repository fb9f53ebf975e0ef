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

pub use equal::{Mismatch, PathStep, StructuralEqual};
pub use hash::StructuralHash;
pub(crate) use hash::bytes_hash;

use crate::object::Handle;

/// Compares two graphs. With `map_free_vars`, variables that neither defines are matched by position as well.
pub fn structural_equal<A: Handle, B: Handle>(a: &A, b: &B, map_free_vars: bool) -> Result<(), Mismatch> {
    let mut eq = StructuralEqual::new();
    let equal = if map_free_vars {
        eq.def_region(|eq| eq.objects(a.as_object(), b.as_object()))
    } else {
        eq.objects(a.as_object(), b.as_object())
    };
    if equal { Ok(()) } else { Err(eq.into_mismatch()) }
}

/// The hash that goes with [`structural_equal`].
pub fn structural_hash<A: Handle>(a: &A, map_free_vars: bool) -> u64 {
    let mut hash = StructuralHash::new();
    if map_free_vars {
        hash.def_region(|hash| hash.object(a.as_object()));
    } else {
        hash.object(a.as_object());
    }
    hash.finish()
}
