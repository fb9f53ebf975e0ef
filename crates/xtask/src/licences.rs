//! `cargo xtask licences`: every crate that Relaxide is made of has a licence that `deny.toml` allows.
//!
//! Needs nothing but cargo and the crates' sources. `cargo deny check`, where it is installed, reads the same list and also knows
//! advisories and sources.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// What is wrong: crates whose licence is not allowed, or why they cannot be listed.
pub fn check(root: &Path) -> Vec<String> {
    match (allowed(root), crates(root)) {
        (Ok(allowed), Ok(crates)) => {
            let refused = |(name, licence): &(String, String)| match evaluate(licence, &allowed) {
                true => None,
                false => Some(format!("{name}: the licence {licence:?} is not allowed by deny.toml")),
            };
            crates.iter().filter_map(refused).collect()
        }
        (Err(problem), _) | (_, Err(problem)) => vec![problem],
    }
}

/// The list `allow` of `deny.toml`.
fn allowed(root: &Path) -> Result<BTreeSet<String>, String> {
    let text = std::fs::read_to_string(root.join("deny.toml")).map_err(|e| format!("deny.toml: {e}"))?;
    let list = text.split_once("\nallow = [").and_then(|(_, rest)| rest.split_once(']')).map(|(list, _)| list);
    let list = list.ok_or("deny.toml: there is no list `allow = [...]`")?;
    Ok(list.split('"').skip(1).step_by(2).map(str::to_string).collect())
}

/// Every crate of a build or of the tests, with its licence.
fn crates(root: &Path) -> Result<Vec<(String, String)>, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let words = ["tree", "--workspace", "--locked", "--prefix", "none", "-e", "normal,build,dev", "-f", "{p}\t{l}"];
    let output = Command::new(cargo).args(words).current_dir(root).output().map_err(|e| format!("cargo tree: {e}"))?;
    if !output.status.success() {
        return Err(format!("cargo tree: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: BTreeSet<&str> =
        text.lines().filter(|line| !line.is_empty()).map(|l| l.trim_end_matches(" (*)")).collect();
    Ok(lines.iter().filter_map(|line| line.split_once('\t')).map(|(p, l)| (p.to_string(), l.to_string())).collect())
}

/// Whether an expression of SPDX, or of the older form with a slash, is met by allowed licences.
fn evaluate(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let text = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut at = 0;
    let met = any_of(&words, &mut at, allowed);
    met && at == words.len()
}

fn any_of(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut met = all_of(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        met |= all_of(words, at, allowed);
    }
    met
}

fn all_of(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut met = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        met &= one(words, at, allowed);
    }
    met
}

fn one(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let Some(word) = words.get(*at) else { return false };
    *at += 1;
    if *word == "(" {
        let met = any_of(words, at, allowed);
        let closed = words.get(*at) == Some(&")");
        *at += usize::from(closed);
        return met && closed;
    }
    if words.get(*at) == Some(&"WITH") {
        let exception = words.get(*at + 1).copied().unwrap_or_default();
        *at += 2;
        return allowed.contains(&format!("{word} WITH {exception}"));
    }
    allowed.contains(*word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_met_by_what_is_allowed() {
        let allowed = ["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"].map(str::to_string).into();
        let met = |expression| evaluate(expression, &allowed);
        assert!(met("MIT"));
        assert!(met("GPL-3.0 OR MIT"));
        assert!(met("MIT/Apache-2.0"));
        assert!(met("(GPL-3.0 OR MIT) AND Zlib"));
        assert!(met("Apache-2.0 WITH LLVM-exception"));
        assert!(!met("GPL-3.0"));
        assert!(!met("MIT AND GPL-3.0"));
        assert!(!met("Apache-2.0"));
        assert!(!met("(MIT OR Zlib"));
        assert!(!met(""));
    }
}
