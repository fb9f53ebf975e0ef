//! Places for the nodes of a graph: layers from top to bottom, with few crossings and short ways.
//!
//! The method is Sugiyama's (K. Sugiyama, S. Tagawa, M. Toda: Methods for visual understanding of hierarchical system
//! structures, 1981), in its simplest form:
//!
//! 1. A node's layer is one below the lowest of the nodes that it needs; inputs move down to just above where they are used.
//! 2. Edges over several layers get a bend in each.
//! 3. Within layers, nodes and bends are sorted by the mean place of their neighbours above, then below, a few times over.
//! 4. Each moves towards its neighbours as far as those beside it allow.

use super::Graph;

/// Height of a node, and the space between layers and between nodes.
pub(super) const HEIGHT: f64 = 36.0;
const BETWEEN_LAYERS: f64 = 34.0;
const BETWEEN_NODES: f64 = 18.0;
/// How wide a bend is.
const BEND: f64 = 4.0;
/// How often layers are sorted and moved.
const SWEEPS: usize = 6;

/// Where things are.
pub(super) struct Layout {
    /// Centres of the nodes.
    pub(super) nodes: Vec<(f64, f64)>,
    /// Points of the edges between their ends, from top to bottom.
    pub(super) bends: Vec<Vec<(f64, f64)>>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// A node or a bend.
struct Item {
    layer: usize,
    width: f64,
    x: f64,
    above: Vec<usize>,
    below: Vec<usize>,
}

/// Lays a graph out; `width` says how wide each node is.
pub(super) fn layout(graph: &Graph, width: impl Fn(usize) -> f64) -> Layout {
    let layers = layers(graph);
    let item = |i: usize| Item { layer: layers[i], width: width(i), x: 0.0, above: Vec::new(), below: Vec::new() };
    let mut items: Vec<Item> = (0..graph.nodes.len()).map(item).collect();
    let mut ways: Vec<Vec<usize>> = Vec::new();
    for &(from, to) in &graph.edges {
        let mut way = vec![from];
        for layer in layers[from] + 1..layers[to] {
            items.push(Item { layer, width: BEND, x: 0.0, above: Vec::new(), below: Vec::new() });
            way.push(items.len() - 1);
        }
        way.push(to);
        for pair in way.windows(2) {
            items[pair[0]].below.push(pair[1]);
            items[pair[1]].above.push(pair[0]);
        }
        ways.push(way);
    }
    let count = layers.iter().max().map_or(0, |last| last + 1);
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (i, item) in items.iter().enumerate() {
        rows[item.layer].push(i);
    }
    rows.iter().for_each(|row| pack(row, &mut items));
    for sweep in 0..SWEEPS {
        if sweep % 2 == 0 {
            (0..count).for_each(|layer| arrange(&mut rows[layer], &mut items, |item| &item.above));
        } else {
            (0..count).rev().for_each(|layer| arrange(&mut rows[layer], &mut items, |item| &item.below));
        }
    }
    let left = items.iter().map(|item| item.x - item.width / 2.0).fold(f64::INFINITY, f64::min);
    let right = items.iter().map(|item| item.x + item.width / 2.0).fold(f64::NEG_INFINITY, f64::max);
    let place = |item: &Item| {
        (item.x - left + BETWEEN_NODES, item.layer as f64 * (HEIGHT + BETWEEN_LAYERS) + HEIGHT / 2.0 + BETWEEN_NODES)
    };
    let inner = |way: &Vec<usize>| way[1..way.len() - 1].iter().map(|i| place(&items[*i])).collect();
    Layout {
        nodes: items.iter().take(graph.nodes.len()).map(place).collect(),
        bends: ways.iter().map(inner).collect(),
        width: if items.is_empty() { 0.0 } else { right - left + 2.0 * BETWEEN_NODES },
        height: count as f64 * (HEIGHT + BETWEEN_LAYERS) - BETWEEN_LAYERS + 2.0 * BETWEEN_NODES,
    }
}

/// The layer of each node.
fn layers(graph: &Graph) -> Vec<usize> {
    let mut layers: Vec<usize> = vec![0; graph.nodes.len()];
    let mut by_end = graph.edges.clone();
    // Edges lead forward, so that whatever leads to a node has been seen before what leads on from it.
    by_end.sort_by_key(|(from, to)| (*to, *from));
    for &(from, to) in &by_end {
        layers[to] = layers[to].max(layers[from] + 1);
    }
    for node in 0..layers.len() {
        let is_source = !graph.edges.iter().any(|(_, to)| *to == node);
        let first_use = graph.edges.iter().filter(|(from, _)| *from == node).map(|(_, to)| layers[*to]).min();
        if let Some(first_use) = first_use.filter(|_| is_source) {
            layers[node] = first_use.saturating_sub(1);
        }
    }
    layers
}

/// Puts a row side by side, around zero.
fn pack(row: &[usize], items: &mut [Item]) {
    let whole: f64 = row.iter().map(|i| items[*i].width + BETWEEN_NODES).sum();
    let mut x = -whole / 2.0;
    for &i in row {
        items[i].x = x + items[i].width / 2.0;
        x += items[i].width + BETWEEN_NODES;
    }
}

/// Sorts a row by the neighbours on one side, and moves each towards them.
fn arrange(row: &mut [usize], items: &mut [Item], neighbours: impl Fn(&Item) -> &Vec<usize>) {
    let wish = |i: usize, items: &[Item]| {
        let near = neighbours(&items[i]);
        let sum: f64 = near.iter().map(|n| items[*n].x).sum();
        if near.is_empty() { items[i].x } else { sum / near.len() as f64 }
    };
    let mut wishes: Vec<(f64, usize)> = row.iter().map(|i| (wish(*i, items), *i)).collect();
    wishes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut right = f64::NEG_INFINITY;
    for (place, (wish, i)) in wishes.iter().enumerate() {
        row[place] = *i;
        items[*i].x = wish.max(right + items[*i].width / 2.0);
        right = items[*i].x + items[*i].width / 2.0 + BETWEEN_NODES;
    }
    // What was pushed to the right by what stands before it is taken back by half, all together.
    let pushed: f64 = wishes.iter().map(|(wish, i)| items[*i].x - wish).sum::<f64>() / wishes.len().max(1) as f64;
    wishes.iter().for_each(|(_, i)| items[*i].x -= pushed);
}

#[cfg(test)]
mod tests {
    use super::super::{Node, NodeKind};
    use super::*;

    fn graph(nodes: usize, edges: &[(usize, usize)]) -> Graph {
        let node = |i| Node::new(NodeKind::Call, format!("n{i}"), "");
        Graph { nodes: (0..nodes).map(node).collect(), edges: edges.to_vec() }
    }

    #[test]
    fn edges_lead_down_and_nodes_of_a_layer_do_not_touch() {
        let edges = [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 5), (4, 5), (0, 5)];
        let graph = graph(6, &edges);
        let layout = layout(&graph, |i| 40.0 + i as f64);
        for (from, to) in edges {
            assert!(layout.nodes[from].1 < layout.nodes[to].1, "{from} above {to}");
        }
        for a in 0..6 {
            for b in a + 1..6 {
                let same_layer = layout.nodes[a].1 == layout.nodes[b].1;
                assert!(!same_layer || (layout.nodes[a].0 - layout.nodes[b].0).abs() >= 40.0, "{a} beside {b}");
            }
        }
        assert_eq!(layout.bends[7].len(), 2, "an edge over three layers bends twice");
        assert!(layout.nodes.iter().all(|(x, y)| (0.0..layout.width).contains(x) && (0.0..layout.height).contains(y)));
    }

    #[test]
    fn a_chain_is_straight_and_nothing_is_laid_out_as_nothing() {
        let chain = layout(&graph(3, &[(0, 1), (1, 2)]), |_| 50.0);
        assert!(chain.nodes.iter().all(|(x, _)| (x - chain.nodes[0].0).abs() < 1e-9));
        assert!(layout(&Graph::default(), |_| 0.0).nodes.is_empty());
    }
}
