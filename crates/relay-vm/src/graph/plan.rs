//! Storages that several results share, one after the other.
//!
//! A result's memory is free once the last node that takes it has run; inputs and results of the whole keep theirs. A new
//! result takes the free storage whose size is nearest to its own, as long as neither is above sixteen times the other.

use std::collections::{HashMap, HashSet};

use super::format::{Graph, NodeEntry, NodeKind};

/// How unlike the sizes of results in one storage may be.
const RATIO: usize = 16;

/// The graph with fewer storages. Each storage must hold the results of one node and of nodes that do nothing.
pub(super) fn share_storages(graph: &mut Graph) {
    let bytes = |shape: &[i64], bits: u8| {
        let count: i64 = shape.iter().fold(1i64, |n, d| n.saturating_mul(*d));
        usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(usize::from(bits.max(8)) / 8)
    };
    let mut last: HashMap<usize, usize> = HashMap::new();
    let mut kept: HashSet<usize> = HashSet::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        for entry in &node.inputs {
            last.insert(graph.entries[graph.place(*entry)].storage, at);
        }
        let own = (0..node.outputs).map(|index| graph.entries[graph.place(NodeEntry { node: at, index })].storage);
        for storage in own {
            last.entry(storage).or_insert(at);
            if node.kind == NodeKind::Input {
                kept.insert(storage);
            }
        }
    }
    kept.extend(graph.heads.iter().map(|head| graph.entries[graph.place(*head)].storage));
    let mut renamed: HashMap<usize, usize> = HashMap::new();
    let mut free: Vec<(usize, usize)> = Vec::new();
    let mut sizes: HashMap<usize, usize> = HashMap::new();
    let mut next = 0;
    for at in 0..graph.nodes.len() {
        for index in 0..graph.nodes[at].outputs {
            let place = graph.place(NodeEntry { node: at, index });
            let entry = &graph.entries[place];
            let (old, size) = (entry.storage, bytes(&entry.shape, entry.dtype.bits));
            if renamed.contains_key(&old) {
                continue;
            }
            let fits = |have: usize| have <= size.saturating_mul(RATIO) && size <= have.saturating_mul(RATIO);
            let best = match kept.contains(&old) {
                true => None,
                false => (0..free.len()).filter(|i| fits(free[*i].0)).min_by_key(|i| free[*i].0.abs_diff(size)),
            };
            let new = match best {
                Some(i) => free.swap_remove(i).1,
                None => {
                    next += 1;
                    next - 1
                }
            };
            let held = sizes.entry(new).or_insert(0);
            *held = (*held).max(size);
            renamed.insert(old, new);
        }
        let mut done: Vec<usize> = last.iter().filter(|(_, end)| **end == at).map(|(storage, _)| *storage).collect();
        done.sort_unstable();
        for storage in done.into_iter().filter(|storage| !kept.contains(storage)) {
            if let Some(new) = renamed.get(&storage) {
                free.push((sizes.get(new).copied().unwrap_or(0), *new));
            }
        }
    }
    for entry in &mut graph.entries {
        entry.storage = renamed.get(&entry.storage).copied().unwrap_or(entry.storage);
    }
}
