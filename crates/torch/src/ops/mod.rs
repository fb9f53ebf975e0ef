//! One rule for each ATen operator.
//!
//! Rules are found by the operator's name, with its overload (`aten.max.dim`) where overloads differ in what they do and
//! without it (`aten.add`) where their parameters say enough. A rule need not give the declared element type or dimensions
//! to the letter: the graph's walk converts and checks ([`crate::rule::Cx::declared`]).

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::rule::{Cx, Outputs};

mod activation;
mod attention;
mod conv;
mod create;
mod elementwise;
mod index;
mod linear;
mod manipulate;
mod norm;
mod pool;
mod quantized;
mod recurrent;
mod reduce;
mod resize;
mod sort;
mod transcendental;
mod vision;

/// A rule.
pub type Rule = fn(&mut Cx<'_>) -> Outputs;

/// The rules of one file.
pub type Table = &'static [(&'static str, Rule)];

const TABLES: &[Table] = &[
    activation::TABLE,
    attention::TABLE,
    conv::TABLE,
    create::TABLE,
    elementwise::TABLE,
    index::TABLE,
    linear::TABLE,
    norm::TABLE,
    pool::TABLE,
    quantized::TABLE,
    recurrent::TABLE,
    reduce::TABLE,
    resize::TABLE,
    manipulate::TABLE,
    sort::TABLE,
    vision::TABLE,
];

/// The rule of an operator.
pub fn find(name: &str) -> Option<Rule> {
    static ALL: OnceLock<HashMap<&'static str, Rule>> = OnceLock::new();
    let all = ALL.get_or_init(|| TABLES.iter().flat_map(|table| table.iter().copied()).collect());
    all.get(name).copied()
}

/// Whether an operator, by its name with overload, becomes a loop, for which there is no room in a dataflow block.
pub fn is_loop(full: &str) -> bool {
    recurrent::TABLE.iter().any(|(name, _)| *name == full)
}

/// The names of all operators that have rules, in alphabetical order.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = TABLES.iter().flat_map(|table| table.iter().map(|(name, _)| *name)).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_operator_has_one_rule() {
        let mut names = super::names();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
