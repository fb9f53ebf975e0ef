//! RemoveUnusedFunctions: functions that the entries do not reach are dropped.

use std::collections::HashSet;

use crate::visit::globals;
use crate::*;

/// A module without the functions that no entry reaches; all stay if no entry exists.
pub fn remove_unused_functions(module: &Module, entries: &[&str]) -> Module {
    let mut work: Vec<String> =
        entries.iter().filter(|name| module.functions.contains_key(**name)).map(|name| name.to_string()).collect();
    if work.is_empty() {
        return module.clone();
    }
    let mut reached = HashSet::new();
    while let Some(name) = work.pop() {
        if let Some(function) = module.functions.get(&name)
            && reached.insert(name)
        {
            work.extend(globals(&function.body));
        }
    }
    let mut out = module.clone();
    out.functions.retain(|name, _| reached.contains(name));
    out
}
