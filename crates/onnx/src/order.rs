//! Nodes in an order in which what a node uses is made before it.
//!
//! ONNX asks for that order, and ONNX Runtime does not insist on it: its quantizer and its fusions write files in which nodes,
//! or what a branch inside of a node uses, stand behind their use. Nodes that are in order stay as they are; others are
//! sorted, each as near to its place as what it needs allows. What depends on itself stays where it is, so that the import
//! says what is missing.
//!
//! Cost: one visit of each node and of each name in it.

use std::collections::{HashMap, HashSet};

use crate::proto::{GraphProto, NodeProto};

/// The nodes in order; `None` where they are already.
pub fn sorted(nodes: &[NodeProto]) -> Option<Vec<NodeProto>> {
    let mut makers: HashMap<&str, usize> = HashMap::new();
    for (i, node) in nodes.iter().enumerate() {
        for name in node.output.iter().filter(|name| !name.is_empty()) {
            makers.entry(name).or_insert(i);
        }
    }
    let needs: Vec<Vec<usize>> = nodes.iter().enumerate().map(|(i, node)| needed(node, i, &makers)).collect();
    if needs.iter().enumerate().all(|(i, needs)| needs.iter().all(|need| *need < i)) {
        return None;
    }
    let order = visit_all(&needs)?;
    Some(order.into_iter().map(|i| nodes[i].clone()).collect())
}

/// The other nodes that a node needs.
fn needed(node: &NodeProto, own: usize, makers: &HashMap<&str, usize>) -> Vec<usize> {
    let mut names: HashSet<&str> = node.input.iter().map(String::as_str).collect();
    for graph in graphs(node) {
        captured(graph, &mut names);
    }
    let mut needs: Vec<usize> =
        names.iter().filter_map(|name| makers.get(name)).copied().filter(|i| *i != own).collect();
    needs.sort_unstable();
    needs.dedup();
    needs
}

fn graphs(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    node.attribute.iter().flat_map(|a| a.g.iter().chain(&a.graphs))
}

/// Adds the names that a graph uses and does not make.
fn captured<'a>(graph: &'a GraphProto, names: &mut HashSet<&'a str>) {
    let mut used: HashSet<&str> = graph.output.iter().map(|o| o.name.as_str()).collect();
    let mut made: HashSet<&str> = graph.input.iter().map(|i| i.name.as_str()).collect();
    made.extend(graph.initializer.iter().map(|i| i.name.as_str()));
    for node in &graph.node {
        used.extend(node.input.iter().map(String::as_str));
        made.extend(node.output.iter().map(String::as_str));
        graphs(node).for_each(|inner| captured(inner, &mut used));
    }
    names.extend(used.difference(&made));
}

/// Every node behind those that it needs; `None` where one needs itself.
fn visit_all(needs: &[Vec<usize>]) -> Option<Vec<usize>> {
    let (mut order, mut done, mut open) = (Vec::new(), vec![false; needs.len()], vec![false; needs.len()]);
    for start in 0..needs.len() {
        // Nodes on the way, and how many of what each needs were looked at.
        let mut path = vec![(start, 0)];
        while let Some((node, next)) = path.pop() {
            if done[node] {
                continue;
            }
            open[node] = true;
            match needs[node].get(next) {
                Some(need) => {
                    path.push((node, next + 1));
                    if open[*need] && !done[*need] {
                        return None;
                    }
                    path.push((*need, 0));
                }
                None => {
                    done[node] = true;
                    order.push(node);
                }
            }
        }
    }
    Some(order)
}
