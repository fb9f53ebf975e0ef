//! Several patterns at once: a graph of patterns on the graph of a dataflow block.
//!
//! A [`PatternContext`] holds patterns and, between them, edges: `a` is used by `b`, perhaps as a certain argument, perhaps
//! by nothing else. A pattern that is a call stands for itself and for edges from each of its arguments. Matching finds,
//! for every pattern, a variable of the block (or one that the block uses), no two the same, such that each variable's
//! value matches its pattern and every edge holds.
//!
//! A [`PatternSeq`] is a chain `a >> b ^ c`; adding it to a context adds its patterns and the edges between neighbours.

use std::collections::{HashMap, HashSet};
use std::ops::{BitXor, Shr};

use super::matcher::{VarValues, match_expr, resolve};
use super::pattern::{Pattern, PatternKind};
use crate::functor::used_vars;
use crate::shape::same_dims;
use crate::*;

/// The most assignments that one match tries before it gives up.
const MAX_STEPS: usize = 1_000_000;

/// A chain of patterns, each used by the next.
#[derive(Clone, Debug)]
pub struct PatternSeq {
    patterns: Vec<Pattern>,
    /// Between neighbours: whether there is no other user, and as which argument.
    links: Vec<(bool, Option<usize>)>,
}

impl PatternSeq {
    /// The patterns in order.
    pub fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// The chain, used by `other` (as argument `index`), and perhaps by others.
    pub fn used_by(self, other: impl Into<PatternSeq>, index: Option<usize>) -> PatternSeq {
        self.linked(other.into(), false, index)
    }

    /// The chain, used by `other` (as argument `index`) and by nothing else.
    pub fn only_used_by(self, other: impl Into<PatternSeq>, index: Option<usize>) -> PatternSeq {
        self.linked(other.into(), true, index)
    }

    fn linked(mut self, other: PatternSeq, only: bool, index: Option<usize>) -> PatternSeq {
        self.links.push((only, index));
        self.links.extend(other.links);
        self.patterns.extend(other.patterns);
        self
    }
}

impl From<Pattern> for PatternSeq {
    fn from(pattern: Pattern) -> Self {
        PatternSeq { patterns: vec![pattern], links: Vec::new() }
    }
}

impl<T: Into<PatternSeq>> BitXor<T> for PatternSeq {
    type Output = PatternSeq;

    fn bitxor(self, other: T) -> PatternSeq {
        self.used_by(other, None)
    }
}

impl<T: Into<PatternSeq>> Shr<T> for PatternSeq {
    type Output = PatternSeq;

    fn shr(self, other: T) -> PatternSeq {
        self.only_used_by(other, None)
    }
}

/// Who uses whom.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Edge {
    producer: usize,
    consumer: usize,
    only: bool,
    index: Option<usize>,
}

/// Patterns, and who uses whom.
#[derive(Clone, Debug, Default)]
pub struct PatternContext {
    patterns: Vec<Pattern>,
    /// The patterns that were added by name, not as an argument of another. These stand for variables.
    named: HashSet<usize>,
    edges: Vec<Edge>,
    same_shape: Vec<Vec<usize>>,
}

impl PatternContext {
    /// No patterns yet.
    pub fn new() -> PatternContext {
        PatternContext::default()
    }

    /// Adds a pattern and, where it is a call, its arguments and the edges from them.
    pub fn add(&mut self, pattern: &Pattern) {
        self.named(pattern);
    }

    fn named(&mut self, pattern: &Pattern) -> usize {
        let node = self.node(pattern);
        self.named.insert(node);
        node
    }

    /// Adds the patterns of a chain and the edges between neighbours.
    pub fn add_seq(&mut self, seq: &PatternSeq) {
        let nodes: Vec<usize> = seq.patterns.iter().map(|p| self.named(p)).collect();
        for (pair, (only, index)) in nodes.windows(2).zip(&seq.links) {
            if let [producer, consumer] = *pair {
                self.edge(Edge { producer, consumer, only: *only, index: *index });
            }
        }
    }

    /// Asks that what these stand for are tensors of one shape.
    pub fn same_shape(&mut self, patterns: &[Pattern]) {
        let nodes = patterns.iter().map(|p| self.named(p)).collect();
        self.same_shape.push(nodes);
    }

    fn node(&mut self, pattern: &Pattern) -> usize {
        if let Some(known) = self.patterns.iter().position(|p| p == pattern) {
            return known;
        }
        let args: Vec<(usize, usize)> = match pattern.kind() {
            PatternKind::Call { args: Some(args), .. } => {
                let nodes = args.iter().enumerate().filter(|(_, arg)| is_node(arg));
                nodes
                    .map(|(i, arg)| (i, arg.clone()))
                    .collect::<Vec<_>>()
                    .into_iter()
                    .map(|(i, arg)| (i, self.node(&arg)))
                    .collect()
            }
            PatternKind::TupleGetItem(tuple, _) if is_node(tuple) => vec![(0, self.node(tuple))],
            _ => Vec::new(),
        };
        let consumer = self.patterns.len();
        self.patterns.push(pattern.clone());
        let commutes = commutes(pattern);
        for (i, producer) in args {
            self.edge(Edge { producer, consumer, only: false, index: (!commutes).then_some(i) });
        }
        consumer
    }

    fn edge(&mut self, edge: Edge) {
        if !self.edges.contains(&edge) {
            self.edges.push(edge);
        }
    }

    /// What each pattern stands for in a block, if all find something.
    pub fn match_block(&self, block: &BindingBlock) -> Option<HashMap<Pattern, AnyVar>> {
        let graph = BlockGraph::of(block);
        let mut search = Search { context: self, graph: &graph, chosen: vec![None; self.patterns.len()], steps: 0 };
        if self.patterns.is_empty() || !search.next() {
            return None;
        }
        let chosen = self.patterns.iter().zip(&search.chosen);
        let var = |node: &Option<usize>| node.and_then(|i| graph.nodes.get(i)).cloned();
        Some(chosen.filter_map(|(pattern, node)| Some((pattern.clone(), var(node)?))).collect())
    }
}

/// Whether an argument of a call stands for a variable of the block; tuples and literals are matched within the call.
fn is_node(pattern: &Pattern) -> bool {
    !matches!(
        pattern.kind(),
        PatternKind::Global(_)
            | PatternKind::Extern(_)
            | PatternKind::Op(_)
            | PatternKind::Constant
            | PatternKind::ShapeExpr(_)
            | PatternKind::Expr(_)
            | PatternKind::Tuple(_)
            | PatternKind::UnorderedTuple(_)
    )
}

fn commutes(pattern: &Pattern) -> bool {
    let PatternKind::Call { callee, .. } = pattern.kind() else { return false };
    matches!(callee.kind(), PatternKind::Op(name) if name == "relax.add" || name == "relax.multiply")
}

/// The variables of a block, with their users.
struct BlockGraph {
    /// Variables that the block binds or uses, in order.
    nodes: Vec<AnyVar>,
    values: VarValues,
    /// The users of each variable: which variable's value, and as which argument.
    users: HashMap<AnyVar, Vec<(AnyVar, Option<usize>)>>,
}

impl BlockGraph {
    fn of(block: &BindingBlock) -> BlockGraph {
        let mut graph = BlockGraph { nodes: Vec::new(), values: VarValues::new(), users: HashMap::new() };
        let mut seen = HashSet::new();
        for binding in &block.bindings {
            let (var, value) = (binding.var(), binding.value());
            for used in used_vars(value) {
                if seen.insert(used.clone()) {
                    graph.nodes.push(used);
                }
            }
            if seen.insert(var.clone()) {
                graph.nodes.push(var.clone());
            }
            graph.uses(var, value);
            if let Binding::Var(_) = binding {
                graph.values.insert(var.clone(), value.clone());
            }
        }
        graph
    }

    fn uses(&mut self, user: &AnyVar, value: &Expr) {
        // What is called by its name or as a kernel is given its arguments as one tuple: those are counted.
        let args: &[Expr] = match value {
            Expr::Call(call) => match call.args.as_slice() {
                [Expr::Global(_) | Expr::Extern(_), Expr::Tuple(tuple), ..] => &tuple.fields,
                args => args,
            },
            Expr::Tuple(tuple) => &tuple.fields,
            _ => &[],
        };
        let mut direct = HashSet::new();
        for (i, arg) in args.iter().enumerate() {
            if let Some(var) = arg.as_var() {
                direct.insert(var.clone());
                self.users.entry(var).or_default().push((user.clone(), Some(i)));
            }
        }
        for var in used_vars(value).into_iter().filter(|v| !direct.contains(v)) {
            self.users.entry(var).or_default().push((user.clone(), None));
        }
    }

    /// Whether what a variable is computed from is, at this place or at any, no variable: a tuple, a constant.
    fn has_other_operand(&self, user: &AnyVar, index: Option<usize>) -> bool {
        let operands: &[Expr] = match self.values.get(user) {
            Some(Expr::Call(call)) => &call.args,
            Some(Expr::TupleGetItem(item)) => std::slice::from_ref(&item.tuple),
            _ => return false,
        };
        operands.iter().enumerate().any(|(i, operand)| index.is_none_or(|at| at == i) && operand.as_var().is_none())
    }

    fn holds(&self, edge: &Edge, producer: &AnyVar, consumer: &AnyVar) -> bool {
        let Some(users) = self.users.get(producer) else { return false };
        let fits = |(user, at): &(AnyVar, Option<usize>)| {
            user == consumer && edge.index.is_none_or(|i| at.is_none() && i == 0 || *at == Some(i))
        };
        if !users.iter().any(fits) {
            return false;
        }
        // What outlives the block has users outside.
        !edge.only || (matches!(producer, AnyVar::Dataflow(_)) && users.iter().all(|(user, _)| user == consumer))
    }
}

/// The search for an assignment, pattern by pattern.
struct Search<'a> {
    context: &'a PatternContext,
    graph: &'a BlockGraph,
    /// Indices of nodes, by pattern; one behind the last for an argument that is no variable.
    chosen: Vec<Option<usize>>,
    steps: usize,
}

impl Search<'_> {
    /// Assigns the next pattern and all behind it.
    fn next(&mut self) -> bool {
        let Some(pattern) = self.most_bound() else { return true };
        for node in 0..self.graph.nodes.len() {
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return false;
            }
            if self.chosen.contains(&Some(node)) {
                continue;
            }
            self.chosen[pattern] = Some(node);
            if self.fits(pattern) && self.next() {
                return true;
            }
            self.chosen[pattern] = None;
        }
        if self.may_be_no_variable(pattern) {
            self.chosen[pattern] = Some(self.graph.nodes.len());
            if self.next() {
                return true;
            }
            self.chosen[pattern] = None;
        }
        false
    }

    /// Whether a pattern is but an argument of others, which have something else than a variable there. That it matches was found
    /// out with them.
    fn may_be_no_variable(&self, pattern: usize) -> bool {
        let mut uses = self.context.edges.iter().filter(|edge| edge.producer == pattern);
        let elsewhere =
            |edge: &Edge| self.var(edge.consumer).is_some_and(|user| self.graph.has_other_operand(user, edge.index));
        !self.context.named.contains(&pattern) && uses.all(elsewhere)
    }

    /// An open pattern with an edge to one that is assigned, else a call, else any.
    fn most_bound(&self) -> Option<usize> {
        let open = || (0..self.chosen.len()).filter(|i| self.chosen[*i].is_none());
        let assigned = |i: usize| self.chosen.get(i).is_some_and(Option::is_some);
        let touches = |i: usize| {
            let edges = self.context.edges.iter();
            edges
                .filter(|e| (e.producer == i && assigned(e.consumer)) || (e.consumer == i && assigned(e.producer)))
                .count()
        };
        let is_call = |i: usize| !matches!(self.context.patterns[i].kind(), PatternKind::Wildcard);
        open().min_by_key(|i| (touches(*i) == 0, !is_call(*i), *i))
    }

    fn fits(&self, pattern: usize) -> bool {
        let Some(var) = self.var(pattern) else { return false };
        let expr = Expr::from(var.clone());
        let matched = match_expr(&self.context.patterns[pattern], &expr, &self.graph.values);
        let Some(matched) = matched else { return false };
        // A part that is assigned must have matched the value that it is assigned.
        let agrees = |(i, part): (usize, &Pattern)| match (self.var(i), matched.value(part)) {
            (Some(var), Some(value)) => resolve(&Expr::from(var.clone()), &self.graph.values) == value,
            _ => true,
        };
        self.context.patterns.iter().enumerate().all(agrees) && self.edges_hold(pattern) && self.shapes_agree(pattern)
    }

    fn var(&self, pattern: usize) -> Option<&AnyVar> {
        self.chosen.get(pattern).copied().flatten().and_then(|i| self.graph.nodes.get(i))
    }

    fn edges_hold(&self, pattern: usize) -> bool {
        let edges = self.context.edges.iter().filter(|e| e.producer == pattern || e.consumer == pattern);
        edges.into_iter().all(|edge| match (self.var(edge.producer), self.var(edge.consumer)) {
            (Some(producer), Some(consumer)) => self.graph.holds(edge, producer, consumer),
            _ => true,
        })
    }

    fn shapes_agree(&self, pattern: usize) -> bool {
        self.context.same_shape.iter().filter(|group| group.contains(&pattern)).all(|group| {
            let vars: Vec<&AnyVar> = group.iter().filter_map(|i| self.var(*i)).collect();
            let dims = |v: &AnyVar| v.ty().as_tensor().and_then(|t| t.shape.clone());
            vars.windows(2).all(|pair| match (dims(pair[0]), dims(pair[1])) {
                (Some(a), Some(b)) => same_dims(&a, &b),
                _ => false,
            })
        })
    }
}
