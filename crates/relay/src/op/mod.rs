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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::schema::Mapping;

    #[test]
    fn names_are_unique_and_attribute_nodes_exist() {
        assert_eq!(BY_NAME.len(), table::TABLE.len());
        for def in all() {
            assert!(def.attrs.is_empty() || def.attrs_def().is_some(), "{}: no node {}", def.name, def.attrs);
        }
    }

    #[test]
    fn what_a_row_names_in_relax_exists_there() {
        for def in all() {
            let name = match def.mapping {
                Mapping::Same => def.name,
                Mapping::As(name) | Mapping::Binary(name) => name,
                _ => continue,
            };
            assert!(relaxide_relax::op::lookup(name).is_some(), "{}: Relax has no `{name}`", def.name);
        }
    }
}
