//! Which functions mention which.

use std::collections::HashSet;

use indexmap::IndexMap;
use relaxide_ir::IRModule;

use super::vars::all_global_vars;
use crate::*;

/// The functions of a module that each Relax function mentions, called or passed on, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallGraph(pub IndexMap<String, Vec<String>>);

/// The functions of a module that each Relax function mentions. Kernels mention none.
pub fn call_graph(module: &IRModule) -> CallGraph {
    let mentions = |f| all_global_vars(&Expr::Function(f)).iter().map(|g| g.name.clone()).collect();
    CallGraph(module.functions_of::<Function>().map(|(name, f)| (name.to_string(), mentions(f))).collect())
}

impl CallGraph {
    /// The functions that a function mentions.
    pub fn callees(&self, name: &str) -> &[String] {
        self.0.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// What these functions mention, directly or not, themselves included.
    pub fn reachable<'a>(&self, from: impl IntoIterator<Item = &'a str>) -> HashSet<String> {
        let mut pending: Vec<String> = from.into_iter().map(str::to_string).collect();
        let mut reached = HashSet::new();
        while let Some(name) = pending.pop() {
            if reached.insert(name.clone()) {
                pending.extend(self.callees(&name).iter().cloned());
            }
        }
        reached
    }

    /// Whether a function mentions itself, directly or not.
    pub fn is_recursive(&self, name: &str) -> bool {
        self.reachable(self.callees(name).iter().map(String::as_str)).contains(name)
    }
}

/// Groups of functions that call each other in circles; a function that calls itself is a group of one.
pub fn detect_recursion(module: &IRModule) -> Vec<Vec<String>> {
    let graph = call_graph(module);
    let below: IndexMap<&str, HashSet<String>> = graph
        .0
        .iter()
        .map(|(name, callees)| (name.as_str(), graph.reachable(callees.iter().map(String::as_str))))
        .collect();
    let reaches = |a: &str, b: &str| below.get(a).is_some_and(|r| r.contains(b));
    let mut grouped: HashSet<&str> = HashSet::new();
    let mut groups = Vec::new();
    for name in below.keys() {
        if grouped.contains(name) || !reaches(name, name) {
            continue;
        }
        let group: Vec<&str> = below.keys().copied().filter(|b| reaches(name, b) && reaches(b, name)).collect();
        grouped.extend(&group);
        groups.push(group.into_iter().map(str::to_string).collect());
    }
    groups
}
