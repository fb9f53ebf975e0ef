//! Types have telling names: one that many modules give to types of their own says nothing without its module.

use std::collections::BTreeMap;

use super::{File, Problem};

/// In so many modules a name has stopped telling its types apart.
const MANY: usize = 8;

/// Names of roles, which are the same in each module on purpose.
const ROLES: &[(&str, &str)] = &[
    ("Result", "the result of a crate or a module, as in the standard library"),
    ("Found", "what a schedule rule matched"),
    ("Decided", "the parameters of a schedule rule"),
];

/// Checks the sources of every crate.
pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let mut defined: BTreeMap<&str, Vec<(&File, usize)>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.path.starts_with("crates/") && file.path.contains("/src/")) {
        if !file.path.ends_with(".rs") {
            continue;
        }
        for (at, line) in super::code(file) {
            if let Some(name) = type_name(line) {
                defined.entry(name).or_default().push((file, at));
            }
        }
    }
    defined.retain(|name, places| places.len() >= MANY && !ROLES.iter().any(|(role, _)| role == name));
    let message = |name: &str, count: usize| {
        format!("{count} modules have a type `{name}`: say in its name what it is (xtask, types.rs)")
    };
    defined
        .iter()
        .flat_map(|(name, places)| places.iter().map(|(file, at)| file.problem(*at, message(name, places.len()))))
        .collect()
}

/// The name of the type that a line defines. Associated types are indented, and are named by their trait.
fn type_name(line: &str) -> Option<&str> {
    let line = match line.strip_prefix("pub") {
        Some(rest) => {
            rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest).trim_start()
        }
        None => line,
    };
    let rest = ["struct ", "enum ", "trait ", "type ", "union "].iter().find_map(|word| line.strip_prefix(word))?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(modules: usize, text: &str) -> usize {
        let file = |at: usize| File { path: format!("crates/a/src/m{at}.rs"), text: text.into() };
        check(&(0..modules).map(file).collect::<Vec<_>>()).len()
    }

    #[test]
    fn a_name_of_many_types_is_found_at_each() {
        assert_eq!(problems(MANY, "//! A.\n\npub(super) struct Place {\n    at: usize,\n}\n"), MANY);
        assert_eq!(problems(MANY, "enum Kind {\n}\n"), MANY);
        assert_eq!(problems(MANY - 1, "enum Kind {\n}\n"), 0);
    }

    #[test]
    fn roles_associated_types_and_tests_are_free() {
        assert_eq!(problems(MANY, "pub struct Found {\n}\n"), 0);
        assert_eq!(problems(MANY, "impl Iterator for A {\n    type Item = i64;\n}\n"), 0);
        assert_eq!(problems(MANY, "#[cfg(test)]\nmod tests {\nstruct Case;\n}\n"), 0);
    }
}
