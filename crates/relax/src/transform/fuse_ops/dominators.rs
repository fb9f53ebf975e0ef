//! Post-dominators: for each value the first one behind it that every way to an output passes.
//!
//! The tree is built from the last node to the first. The parent of a node is the deepest common ancestor of its users;
//! on the way up to it, the patterns of all edges are joined, so that the parent's entry also says how freely the value is
//! used on any way there.

use super::graph::Graph;
use crate::op::OpPattern;

/// Where a value's ways meet again.
#[derive(Clone, Copy, Debug)]
struct Dominator {
    parent: Option<usize>,
    depth: usize,
    /// The least free use on the ways to the parent.
    pattern: OpPattern,
}

/// The post-dominator tree of a graph.
#[derive(Debug)]
pub(super) struct Dominators(Vec<Dominator>);

impl Dominators {
    pub(super) fn of(graph: &Graph) -> Dominators {
        let none = Dominator { parent: None, depth: 1, pattern: OpPattern::Opaque };
        let mut tree = Dominators(vec![none; graph.nodes.len()]);
        for (i, node) in graph.nodes.iter().enumerate().rev() {
            if node.escapes {
                continue;
            }
            let mut uses = node.uses.iter();
            let Some(first) = uses.next() else { continue };
            let mut pattern = first.pattern;
            let mut parent = Some(first.node);
            for other in uses {
                pattern = pattern.max(other.pattern);
                parent = parent.and_then(|p| tree.common(p, other.node, &mut pattern));
            }
            let depth = parent.map_or(1, |p| tree.0[p].depth + 1);
            tree.0[i] = Dominator { parent, depth, pattern };
        }
        tree
    }

    /// The post-dominator of a node, and the least free use on the ways there.
    pub(super) fn parent(&self, node: usize) -> Option<(usize, OpPattern)> {
        let entry = self.0.get(node)?;
        entry.parent.map(|p| (p, entry.pattern))
    }

    /// The deepest common ancestor of two nodes, each being its own ancestor.
    fn common(&self, mut a: usize, mut b: usize, pattern: &mut OpPattern) -> Option<usize> {
        while a != b {
            let (deeper, shallower) = if self.0[a].depth >= self.0[b].depth { (a, b) } else { (b, a) };
            *pattern = (*pattern).max(self.0[deeper].pattern);
            a = self.0[deeper].parent?;
            b = shallower;
        }
        Some(a)
    }
}

#[cfg(test)]
mod tests {
    use super::super::graph::{BindingNode, Use};
    use super::*;

    fn graph(edges: &[(usize, usize, OpPattern)], count: usize, escaping: &[usize]) -> Graph {
        let node = |i: usize| BindingNode {
            pattern: OpPattern::Elemwise,
            tensors: 0,
            open: 0,
            uses: edges.iter().filter(|e| e.0 == i).map(|e| Use { node: e.1, pattern: e.2 }).collect(),
            escapes: escaping.contains(&i),
            rows: None,
            args: Vec::new(),
            lengths: None,
            made: None,
            widens: false,
            image: None,
        };
        Graph { nodes: (0..count).map(node).collect() }
    }

    #[test]
    fn ways_that_part_meet_at_the_dominator_with_their_least_free_use() {
        use OpPattern::*;
        // 0 -> 1 -> 3, 0 -> 2 -> 3, 3 -> 4
        let g = graph(
            &[(0, 1, Elemwise), (0, 2, Elemwise), (1, 3, Elemwise), (2, 3, Injective), (3, 4, Elemwise)],
            5,
            &[4],
        );
        let tree = Dominators::of(&g);
        assert_eq!(tree.parent(0), Some((3, Injective)));
        assert_eq!(tree.parent(3), Some((4, Elemwise)));
        assert_eq!(tree.parent(4), None);
    }

    #[test]
    fn a_value_that_escapes_or_is_not_used_has_no_dominator() {
        use OpPattern::*;
        let g = graph(&[(0, 1, Elemwise), (0, 2, Elemwise)], 3, &[1, 2]);
        let tree = Dominators::of(&g);
        assert_eq!(tree.parent(0), None);
        let g = graph(&[(0, 1, Elemwise)], 2, &[0]);
        assert_eq!(Dominators::of(&g).parent(0), None);
    }
}
