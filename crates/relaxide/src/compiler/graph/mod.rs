//! What a function computes, as a graph to look at: calls as nodes, values as edges.
//!
//! A graph comes from a program ([`Graph::of_function`]) or from the instructions of a compiled model
//! ([`Graph::of_executable`]), is laid out in layers from inputs to outputs ([`layout`]), and drawn as SVG ([`Graph::to_svg`]).
//!
//! It is a picture, not a program: constants are mentioned at the calls that use them, tuples and copies are looked through, the memory
//! that a kernel writes to is its result, and a branch is one node.

mod bytecode;
mod layout;
mod program;
mod svg;

pub(crate) use svg::escaped;

/// What a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A parameter of the function.
    Input,
    /// A call.
    Call,
    /// What the function returns.
    Output,
}

/// A node.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is called: an operator, a kernel, a parameter.
    pub label: String,
    /// What there is to say about it: the type of its result, its constants.
    pub detail: String,
    /// What it stands for.
    pub kind: NodeKind,
    /// How much of the whole it takes, from 0 to 1, where that was measured.
    pub share: Option<f64>,
}

impl Node {
    fn new(kind: NodeKind, label: impl Into<String>, detail: impl Into<String>) -> Node {
        Node { label: label.into(), detail: detail.into(), kind, share: None }
    }
}

/// A graph whose edges lead from earlier nodes to later ones.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// The nodes, each behind those that it needs.
    pub nodes: Vec<Node>,
    /// Edges by the indices of nodes: from, to.
    pub edges: Vec<(usize, usize)>,
}

impl Graph {
    fn add(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Edges from several nodes, each of which stands there once; those that do not lead forward, as values that a loop hands on,
    /// are left out.
    fn connect(&mut self, from: &[usize], to: usize) {
        self.edges.extend(from.iter().filter(|from| **from < to).map(|from| (*from, to)));
    }

    /// The graph without calls that nothing leads to or from, as those that compute shapes.
    fn without_loose_calls(self) -> Graph {
        let connected = |i: usize| self.edges.iter().any(|(from, to)| *from == i || *to == i);
        let stays: Vec<bool> =
            self.nodes.iter().enumerate().map(|(i, node)| node.kind != NodeKind::Call || connected(i)).collect();
        let place = |i: usize| stays.iter().take(i).filter(|stays| **stays).count();
        Graph {
            edges: self.edges.iter().map(|(from, to)| (place(*from), place(*to))).collect(),
            nodes: self.nodes.into_iter().zip(&stays).filter(|(_, stays)| **stays).map(|(node, _)| node).collect(),
        }
    }
}
