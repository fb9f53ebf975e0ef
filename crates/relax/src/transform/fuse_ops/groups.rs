//! Who joins whom.
//!
//! Every node begins as a group of its own and may be merged into the group of its post-dominator, together with what lies
//! between. The pattern of a group is the least free one in it. The *anchor* of a group is what is more than injective.
//!
//! | group of the node | joins its dominator where | in round |
//! | --- | --- | --- |
//! | out-fusable | used element by element at equal shape, and all on the way and there is at most broadcast | 0 |
//! | reduction | as above; or all on the way and there is at most broadcast or reduces along the same rows | 0 |
//! | element-wise, broadcast | all on the way is at most injective, and there is no anchor there that it would go in front of, save a reduction | 0 |
//! | injective | all on the way and there is at most injective | 1 |
//!
//! What gives a narrow tensor does not join what widens it for the epilogue of another anchor: that joins the other, and what lies in memory
//! between both is the narrow tensor.
//!
//! With `products`, [chains](super::back_to_back) are joined when all that is done.
//!
//! Injective kernels wait, so that a convolution has taken its epilogue before a concatenation behind it could.

use std::collections::HashSet;

use indexmap::IndexSet;
use relaxide_ir::DisjointSets;

use super::back_to_back::Chain;
use super::dominators::Dominators;
use super::graph::{BindingNode, Graph, Rows};
use crate::op::OpPattern::{self, *};
use crate::op::divide::MOST_OPEN;

/// The groups of a graph, as sets of its nodes.
pub(super) struct Groups<'a> {
    graph: &'a Graph,
    tree: Dominators,
    limit: usize,
    sets: DisjointSets<Group>,
}

/// What is known of a group.
#[derive(Clone)]
struct Group {
    pattern: OpPattern,
    size: Size,
    /// Rows of the reductions in it.
    rows: Option<Rows>,
}

impl Group {
    fn of(node: &BindingNode) -> Group {
        Group { pattern: node.pattern, size: Size::of(node), rows: node.rows.clone() }
    }

    fn and(&self, other: Group) -> Group {
        Group {
            pattern: self.pattern.max(other.pattern),
            size: self.size.and(other.size),
            rows: other.rows.or_else(|| self.rows.clone()),
        }
    }
}

/// What the kernel of a group has to hold. The time that it takes to compile grows faster than these.
#[derive(Clone, Copy, Default)]
struct Size {
    nodes: usize,
    /// Tensors that its nodes take, those among them that other nodes give included.
    tensors: usize,
    /// Tensors whose lengths have names and are not those of what is made of them: a kernel's text grows with their square.
    open: usize,
    reductions: usize,
}

/// The most tensors that come to a kernel from outside, as if each node gave one that another takes.
const MAX_TENSORS: usize = 128;
/// The most reductions: each is a loop of its own, or a part of a row's.
const MAX_REDUCTIONS: usize = 16;

impl Size {
    fn of(node: &BindingNode) -> Size {
        let reductions = usize::from(node.pattern == Reduce);
        Size { nodes: 1, tensors: node.tensors, open: node.open, reductions }
    }

    fn and(self, other: Size) -> Size {
        Size {
            nodes: self.nodes + other.nodes,
            tensors: self.tensors + other.tensors,
            open: self.open + other.open,
            reductions: self.reductions + other.reductions,
        }
    }

    fn fits(self, limit: usize) -> bool {
        let from_outside = self.tensors.saturating_sub(self.nodes.saturating_sub(1));
        let is_small = self.nodes <= limit && from_outside <= MAX_TENSORS && self.reductions <= MAX_REDUCTIONS;
        is_small && self.open <= MOST_OPEN
    }
}

/// Elements of an image from which it is read in a narrow type rather than in the one that it is summed in: 2 MB of float32, which leave the
/// second-level cache.
const LARGE_IMAGE: i64 = 512 << 10;

impl<'a> Groups<'a> {
    /// Groups of at most `limit` nodes; with `products`, of two products and the rows between them too.
    pub(super) fn of(graph: &'a Graph, limit: usize, products: bool) -> Groups<'a> {
        let count = graph.nodes.len();
        let mut groups =
            Groups { graph, tree: Dominators::of(graph), limit, sets: graph.nodes.iter().map(Group::of).collect() };
        for round in 0..2 {
            (0..count).for_each(|node| groups.visit(node, round));
        }
        if products {
            (0..count).for_each(|node| groups.join_products(node));
        }
        groups
    }

    /// The members of every group, in order.
    pub(super) fn lists(&self) -> Vec<Vec<usize>> {
        let mut lists = vec![Vec::new(); self.sets.len()];
        (0..self.sets.len()).for_each(|node| lists[self.root(node)].push(node));
        lists.retain(|members| !members.is_empty());
        lists
    }

    fn root(&self, node: usize) -> usize {
        self.sets.root(node)
    }

    fn pattern_of(&self, node: usize) -> OpPattern {
        self.sets.value(node).pattern
    }

    fn visit(&mut self, node: usize, round: usize) {
        let own = self.pattern_of(node);
        let Some((sink, used)) = self.tree.parent(node) else { return };
        if self.graph.nodes[node].pattern == Opaque || self.root(node) == self.root(sink) {
            return;
        }
        let Some(between) = self.between(node, sink) else { return };
        let joins = match (own, round) {
            (OutFusable, 0) => {
                used == Elemwise && self.all(&between, sink, Broadcast, |p| p <= Broadcast) && !self.goes_on(sink)
            }
            (Reduce, 0) => {
                used == Elemwise && self.all(&between, sink, Broadcast, |p| p <= Broadcast)
                    || self.along_rows(node, &between, sink)
            }
            (Elemwise | Broadcast, 0) => self.map_joins(node, used, &between, sink),
            (Injective, 1) => used <= Injective && self.all(&between, sink, Injective, |p| p <= Injective),
            _ => false,
        };
        if joins && self.joint_size(node, &between, sink).fits(self.limit) {
            self.merge(node, &between, sink);
        }
    }

    /// Whether a node that widens its tensor is used in the epilogue of another anchor, which it joins: what lies in memory between both is
    /// the narrow tensor then.
    fn goes_on(&self, node: usize) -> bool {
        let Some((user, used)) = self.tree.parent(node).filter(|_| self.graph.nodes[node].widens) else { return false };
        let in_epilogue =
            used <= Broadcast && self.pattern_of(user) == OutFusable && self.root(user) != self.root(node);
        in_epilogue || self.becomes_image(node)
    }

    /// Whether a node is an image that is copied, or what that alone is made of element by element.
    fn becomes_image(&self, node: usize) -> bool {
        let elements = self.graph.nodes[node].lengths.iter().flatten().try_fold(1i64, |all, n| all.checked_mul(*n));
        if self.graph.nodes[node].lengths.is_none() || elements.is_some_and(|elements| elements < LARGE_IMAGE) {
            return false;
        }
        let mut at = node;
        while let [only] = self.graph.nodes[at].uses[..] {
            if self.graph.nodes[only.node].image == Some(at) {
                return !self.graph.nodes[at].escapes;
            }
            if self.graph.nodes[at].escapes
                || only.pattern != Elemwise
                || self.graph.nodes[only.node].pattern > Broadcast
            {
                return false;
            }
            at = only.node;
        }
        false
    }

    /// Whether the group of a node, element by element, begins with a tensor that it widens.
    fn widens(&self, node: usize) -> bool {
        let own = self.root(node);
        (0..=node).any(|n| self.root(n) == own && self.graph.nodes[n].widens)
    }

    /// Makes one group of the products and the rows of a chain that ends with a node.
    fn join_products(&mut self, node: usize) {
        let Some(Chain { first, between, last }) = Chain::ending_with(self.graph, node, |n| self.root(n)) else {
            return;
        };
        if self.joint_size(first, &[between], last).fits(self.limit) {
            self.merge(first, &[between], last);
        }
    }

    /// Whether an element-wise group joins: other such groups, injective ones, the epilogue of an anchor, or a reduction.
    fn map_joins(&self, node: usize, used: OpPattern, between: &[usize], sink: usize) -> bool {
        match used {
            Elemwise | Broadcast => {
                self.all(between, sink, Injective, |p| p <= Injective)
                    || self.all(between, sink, Broadcast, |p| p == Reduce || p == OutFusable)
            }
            Injective => self.all(between, sink, Injective, |p| p <= Injective),
            Reduce => self.all(between, sink, Broadcast, |p| p == Reduce) || self.along_rows(node, between, sink),
            OutFusable => between.is_empty() && self.graph.nodes[sink].image == Some(node) && self.widens(node),
            _ => false,
        }
    }

    /// Whether all groups on the way are at most `limit`, and that of the sink passes `at_sink`.
    fn all(&self, between: &[usize], sink: usize, limit: OpPattern, at_sink: impl Fn(OpPattern) -> bool) -> bool {
        between.iter().all(|n| self.pattern_of(*n) <= limit || self.root(*n) == self.root(sink))
            && at_sink(self.pattern_of(sink))
    }

    /// Whether all reductions among the groups run along the same rows, and the rest is at most broadcast.
    fn along_rows(&self, node: usize, between: &[usize], sink: usize) -> bool {
        let mut rows: Option<&Rows> = None;
        for member in [node, sink].iter().chain(between) {
            let group = self.sets.value(*member);
            match (group.pattern, &group.rows) {
                (Elemwise | Broadcast, _) => {}
                (Reduce, Some(own)) if rows.is_none_or(|r| r.same(own)) => rows = Some(own),
                _ => return false,
            }
        }
        true
    }

    /// The nodes on the ways from a node to its post-dominator; `None` where one is opaque, or where they are more than a group
    /// may have, so that nothing could join.
    fn between(&self, node: usize, sink: usize) -> Option<Vec<usize>> {
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        let mut todo: Vec<usize> = self.graph.nodes[node].uses.iter().map(|u| u.node).collect();
        while let Some(next) = todo.pop() {
            if next == sink || !seen.insert(next) {
                continue;
            }
            if self.graph.nodes[next].pattern == Opaque || seen.len() > self.limit {
                return None;
            }
            found.push(next);
            todo.extend(self.graph.nodes[next].uses.iter().map(|u| u.node));
        }
        Some(found)
    }

    /// The roots of all groups that a merge would join.
    fn roots(&self, node: usize, between: &[usize], sink: usize) -> Vec<usize> {
        let members = [sink].into_iter().chain(between.iter().copied()).chain([node]);
        let roots: IndexSet<usize> = members.map(|member| self.root(member)).collect();
        roots.into_iter().collect()
    }

    fn joint_size(&self, node: usize, between: &[usize], sink: usize) -> Size {
        self.roots(node, between, sink).iter().map(|r| self.sets.value(*r).size).fold(Size::default(), Size::and)
    }

    fn merge(&mut self, node: usize, between: &[usize], sink: usize) {
        let roots = self.roots(node, between, sink);
        let (into, others) = (roots[0], &roots[1..]);
        for root in others {
            if let Some(other) = self.sets.join(into, *root) {
                let joint = self.sets.value(into).and(other);
                self.sets.set(into, joint);
            }
        }
    }
}
