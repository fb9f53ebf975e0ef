//! Products of matrices with rows between them: attention, whose scores never reach memory.
//!
//! ```text
//! s = R.call_tir(cls.matmul, (q, k), …)
//! p = R.call_tir(cls.softmax, (s,), …)         one group, where s is larger than a cache
//! o = R.call_tir(cls.matmul1, (p, v), …)
//! ```
//!
//! The rule `back_to_back` computes such a kernel block of rows by block, and says how much must lie between the products for that to pay.

use relaxide_tir::schedule::back_to_back::pays;

use super::graph::Graph;
use crate::op::OpPattern::{OutFusable, Reduce};

/// The two products and the values between them.
pub(super) struct Chain {
    /// The node of the first product.
    pub first: usize,
    /// A node of the rows between.
    pub between: usize,
    /// The node of the second product.
    pub last: usize,
}

impl Chain {
    /// The chain that ends with a node. `root` tells groups apart.
    pub(super) fn ending_with(graph: &Graph, last: usize, root: impl Fn(usize) -> usize) -> Option<Chain> {
        let nodes = &graph.nodes;
        let [Some(between), column, ..] = nodes[last].args[..] else { return None };
        let own = |node: usize| root(node) == root(between);
        let members: Vec<usize> = (0..last).filter(|node| own(*node)).collect();
        let is_rows = members.iter().any(|node| nodes[*node].pattern == Reduce);
        if nodes[last].pattern != OutFusable || !is_rows || column.is_some_and(own) || own(last) {
            return None;
        }
        // The one product that the rows between are made from.
        let is_product = |node: &usize| nodes[*node].pattern == OutFusable;
        let given = members.iter().flat_map(|node| nodes[*node].args.iter().flatten().copied()).filter(|n| !own(*n));
        let feeding: Vec<usize> = given.collect();
        let product = |node: usize| (0..=node).find(|n| root(*n) == root(node) && is_product(n));
        let mut products: Vec<usize> = feeding.into_iter().filter_map(product).collect();
        products.dedup();
        let [first] = products[..] else { return None };
        let is_inside = |node: usize, users: &[usize]| {
            let user = |u: usize| users.iter().any(|of| root(*of) == root(u));
            !nodes[node].escapes && nodes[node].uses.iter().all(|u| user(u.node))
        };
        let of_first: Vec<usize> = (0..last).filter(|node| root(*node) == root(first)).collect();
        let is_closed = of_first.iter().all(|node| is_inside(*node, &[first, between]))
            && members.iter().all(|node| is_inside(*node, &[between, last]));
        let [.., rows, _] = nodes[first].lengths.as_deref()? else { return None };
        let elements = nodes[first].lengths.iter().flatten().try_fold(1i64, |all, n| all.checked_mul(*n))?;
        let same = nodes[first].lengths == nodes[between].lengths;
        (is_closed && same && pays(*rows, elements)).then_some(Chain { first, between, last })
    }
}
