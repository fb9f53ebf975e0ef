//! Relay's operators: one table, and what each is in Relax.
//!
//! Nothing is computed here. A row of [`table`] names the operator of Relax, and where arguments or attributes differ, a
//! function in one of the files beside it says how ([`LowerCx`] is what it works with). Type inference asks the same
//! function, so the type of a call follows from the definition that computes it.

mod agreed;
mod basic;
mod bits;
mod boxes;
mod conv;
mod create;
pub mod cx;
mod displaced;
mod dynamic;
mod found;
mod gradient;
mod image;
mod index;
mod manipulate;
mod multibox;
mod nn;
mod nodes;
pub(crate) mod older;
mod pooling;
pub mod properties;
mod proposal;
mod qnn;
mod random;
mod reduce;
mod regular_nms;
mod relayout;
mod schema;
mod signal;
mod sparse;
mod table;
mod tiled;
mod unique;

use std::collections::HashMap;
use std::sync::LazyLock;

pub use agreed::Agreed;
pub use cx::{DimDef, LowerCx, LowerError, NewDims};
pub use schema::{AttrError, AttrKind, AttrsDef, Default, Field, Mapping, OpDef, attrs_def};

static BY_NAME: LazyLock<HashMap<&'static str, &'static OpDef>> =
    LazyLock::new(|| table::TABLE.iter().map(|def| (def.name, def)).collect());

/// The operator of a name.
pub fn lookup(name: &str) -> Option<&'static OpDef> {
    BY_NAME.get(name).copied()
}

/// Whether an operator takes the shape of its result from what its operands hold.
pub fn shape_is_data(name: &str) -> bool {
    name.starts_with("dyn.") || name == "argwhere"
}

/// Every operator, in the order of names.
pub fn all() -> impl Iterator<Item = &'static OpDef> {
    table::TABLE.iter()
}
