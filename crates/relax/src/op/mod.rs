//! Operators: one definition each, in one table.

use relaxide_ffi::{Object, Ref};

/// An operator as a callee. Two of one name are equal.
#[derive(Object, Debug)]
#[object(key = "ir.Op")]
pub struct Op {
    /// The name without the `relax.` prefix: `"add"`, `"nn.conv2d"` …
    pub name: String,
}

impl Op {
    /// The operator of a name.
    pub fn get(name: impl Into<String>) -> Ref<Op> {
        Ref::new(Op { name: name.into() })
    }
}
