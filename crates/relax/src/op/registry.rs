//! The one table of operators.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{OpDef, registered};

/// Every family's table.
#[rustfmt::skip]
static TABLES: &[&[OpDef]] = &[
    super::core::TABLE,
    super::unary::TABLE,
    super::binary::TABLE,
    super::reduce::TABLE,
    super::manipulate::TABLE,
    super::join::TABLE,
    super::index::TABLE,
    super::create::TABLE,
    super::matmul::TABLE,
    super::norm::TABLE,
    super::activation::TABLE,
    super::conv::TABLE,
    super::pool::TABLE,
    super::resize::TABLE,
    super::adaptive_pool::TABLE,
    super::scan::TABLE,
    super::sort::TABLE,
    super::scatter::TABLE,
    super::quantize::TABLE,
    super::einsum::TABLE,
    super::composite::TABLE,
    super::collapse::TABLE,
    super::search::TABLE,
    super::advanced_index::TABLE,
    super::sequence::TABLE,
    super::layout_transform::TABLE,
    super::nll::TABLE,
    super::backward::TABLE,
    super::inspect::TABLE,
    super::distributed::TABLE,
    super::device::TABLE,
    super::attention::TABLE,
    super::grid::TABLE,
    super::roi::TABLE,
    super::detection::TABLE,
];

static BY_NAME: LazyLock<HashMap<&'static str, &'static OpDef>> =
    LazyLock::new(|| all().map(|d| (d.name, d)).collect());

/// All operators, in the order of the tables.
pub fn all() -> impl Iterator<Item = &'static OpDef> {
    TABLES.iter().flat_map(|table| table.iter())
}

/// The operator of a name, with or without the `relax.` prefix: of the tables, or one that the program has added.
pub fn lookup(name: &str) -> Option<&'static OpDef> {
    let name = name.strip_prefix("relax.").unwrap_or(name);
    BY_NAME.get(name).copied().or_else(|| registered::lookup(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Arity;

    #[test]
    fn names_are_unique_and_every_row_is_documented() {
        let mut seen = std::collections::HashSet::new();
        for def in all() {
            assert!(seen.insert(def.name), "{} is defined twice", def.name);
            assert!(!def.doc.is_empty(), "{} has no doc", def.name);
            assert!(def.args.iter().all(|a| !a.doc.is_empty()), "{}: an argument has no doc", def.name);
            assert!(def.attrs.iter().all(|a| !a.doc.is_empty()), "{}: an attribute has no doc", def.name);
        }
    }

    #[test]
    fn optional_arguments_come_behind_required_ones() {
        for def in all() {
            let mut kinds = def.args.iter().map(|a| a.arity).skip_while(|a| *a == Arity::Required);
            assert!(kinds.all(|a| a != Arity::Required), "{}: a required argument follows an optional one", def.name);
        }
    }
}
