//! TopologicalSort: the bindings of a dataflow block in another order that holds.
//!
//! | order | direction | what comes first |
//! | --- | --- | --- |
//! | `depth-first` | `from-inputs` | what an input makes possible, as far as it goes |
//! | `breadth-first` | `from-inputs` | what needs few steps from the inputs |
//! | `depth-first` | `from-outputs` | what a result needs, result by result |
//! | `breadth-first` | `from-outputs` | what is many steps from the results |
//!
//! A block with a `match_cast` keeps its order: types may use what the cast binds.

use std::collections::{HashMap, HashSet, VecDeque};

use relaxide_ffi::Ref;
use relaxide_ir::pass::{ParamDefault, ParamKind, PassError, PassInfo, PassParam};

use super::emit::map_functions;
use crate::functor::used_vars;
use crate::*;

pub(super) const PASS: PassInfo = PassInfo::new(
    "TopologicalSort",
    "The bindings of a dataflow block in another order that holds.",
    |module, _, args| {
        let refuse = |what: &str, given: &str, known: &str| {
            Err(PassError::arguments("TopologicalSort", format!("{what} is {known}, not {given:?}")))
        };
        let depth_first = match args.str("order") {
            Some("depth-first") => true,
            Some("breadth-first") => false,
            other => return refuse("order", other.unwrap_or_default(), "depth-first or breadth-first"),
        };
        let from_inputs = match args.str("direction") {
            Some("from-inputs") => true,
            Some("from-outputs") => false,
            other => return refuse("direction", other.unwrap_or_default(), "from-inputs or from-outputs"),
        };
        map_functions(module, |_, func| Ok(Sort { depth_first, from_inputs, func }.mutate_function(func)))
    },
)
.params(&[
    PassParam::new("order", ParamKind::Str, ParamDefault::Str("depth-first"), "depth-first or breadth-first."),
    PassParam::new("direction", ParamKind::Str, ParamDefault::Str("from-inputs"), "from-inputs or from-outputs."),
]);

struct Sort<'a> {
    depth_first: bool,
    from_inputs: bool,
    func: &'a Function,
}

impl ExprMutator for Sort<'_> {
    fn mutate_block(&mut self, block: &Ref<BindingBlock>) -> Ref<BindingBlock> {
        if !block.dataflow {
            let bindings: Vec<Binding> = block.bindings.iter().map(|b| self.remake_binding(b)).collect();
            let same = bindings == block.bindings;
            return if same { block.clone() } else { Ref::new(BindingBlock { bindings, dataflow: false }) };
        }
        if block.bindings.iter().any(|b| matches!(b, Binding::MatchCast(_))) {
            return block.clone();
        }
        let graph = Dependencies::of(block);
        let order = match (self.depth_first, self.from_inputs) {
            (true, true) => graph.deep(graph.groups_of_inputs(&self.func.params)),
            (false, true) => graph.forward(&self.func.params),
            (true, false) => graph.deep_from_results(&self.results(block, &graph)),
            (false, false) => graph.backward(&self.starts(block, &graph)),
        };
        let mut seen = HashSet::new();
        let order = order.into_iter().chain(0..block.bindings.len()).filter(|i| seen.insert(*i));
        let bindings: Vec<Binding> = order.filter_map(|i| block.bindings.get(i).cloned()).collect();
        if bindings == block.bindings { block.clone() } else { Ref::new(BindingBlock { bindings, dataflow: true }) }
    }
}

impl Sort<'_> {
    /// The bindings that are used behind a block, in order of use.
    fn results(&self, block: &Ref<BindingBlock>, graph: &Dependencies) -> Vec<usize> {
        let others = self.func.body.blocks.iter().filter(|other| *other != block);
        let values = others.flat_map(|other| other.bindings.iter().map(|b| used_vars(b.value())));
        let used = values.chain([used_vars(&self.func.body.body)]).flatten();
        let mut seen = HashSet::new();
        used.filter_map(|v| graph.index.get(&v).copied()).filter(|i| seen.insert(*i)).collect()
    }

    /// The bindings that results are, then those that nothing in the block uses.
    fn starts(&self, block: &Ref<BindingBlock>, graph: &Dependencies) -> Vec<usize> {
        let unused = (0..graph.users.len()).filter(|i| graph.users[*i].is_empty());
        let mut seen = HashSet::new();
        self.results(block, graph).into_iter().chain(unused).filter(|i| seen.insert(*i)).collect()
    }
}

/// What becomes possible by an input, or by nothing.
struct Group {
    input: Option<AnyVar>,
    bindings: Vec<usize>,
}

struct Dependencies {
    index: HashMap<AnyVar, usize>,
    /// The bindings that each one uses, and those that use it.
    uses: Vec<Vec<usize>>,
    users: Vec<Vec<usize>>,
    /// What from outside of the block each one uses, in order.
    outside: Vec<Vec<AnyVar>>,
}

impl Dependencies {
    fn of(block: &BindingBlock) -> Dependencies {
        let n = block.bindings.len();
        let index: HashMap<AnyVar, usize> =
            block.bindings.iter().enumerate().map(|(i, b)| (b.var().clone(), i)).collect();
        let mut graph =
            Dependencies { index, uses: vec![Vec::new(); n], users: vec![Vec::new(); n], outside: vec![Vec::new(); n] };
        for (i, binding) in block.bindings.iter().enumerate() {
            for var in used_vars(binding.value()) {
                match graph.index.get(&var) {
                    Some(used) if !graph.uses[i].contains(used) => {
                        graph.uses[i].push(*used);
                        graph.users[*used].push(i);
                    }
                    Some(_) => {}
                    None if !graph.outside[i].contains(&var) => graph.outside[i].push(var),
                    None => {}
                }
            }
        }
        graph
    }

    /// The variables from outside: parameters, then the others in order of use.
    fn inputs(&self, params: &[Ref<relaxide_ir::Var>]) -> Vec<AnyVar> {
        let mut inputs: Vec<AnyVar> = params.iter().map(|p| AnyVar::Var(p.clone())).collect();
        for var in self.outside.iter().flatten() {
            if !inputs.contains(var) {
                inputs.push(var.clone());
            }
        }
        inputs
    }

    /// The users of each input, then what needs nothing.
    fn groups_of_inputs(&self, params: &[Ref<relaxide_ir::Var>]) -> Vec<Group> {
        let all = 0..self.uses.len();
        let users = |input: &AnyVar| all.clone().filter(|i| self.outside[*i].contains(input)).collect();
        let mut groups: Vec<Group> = self
            .inputs(params)
            .iter()
            .map(|input| Group { input: Some(input.clone()), bindings: users(input) })
            .collect();
        let alone = all.clone().filter(|i| self.uses[*i].is_empty() && self.outside[*i].is_empty());
        groups.extend(alone.map(|i| Group { input: None, bindings: vec![i] }));
        groups
    }

    /// Depth first: what a binding makes possible comes before what its neighbour does. A binding is possible where all that
    /// it uses is there.
    fn deep(&self, groups: Vec<Group>) -> Vec<usize> {
        let mut known: HashSet<AnyVar> = HashSet::new();
        let mut done = vec![false; self.uses.len()];
        let mut out = Vec::new();
        for group in groups {
            known.extend(group.input);
            let mut stack: Vec<usize> = group.bindings.into_iter().rev().collect();
            while let Some(i) = stack.pop() {
                let ready =
                    self.uses[i].iter().all(|used| done[*used]) && self.outside[i].iter().all(|v| known.contains(v));
                if ready && !std::mem::replace(&mut done[i], true) {
                    out.push(i);
                    stack.extend(self.users[i].iter().rev().copied());
                }
            }
        }
        out
    }

    /// The same backwards: the last result and what it alone needs come last.
    fn deep_from_results(&self, results: &[usize]) -> Vec<usize> {
        let mut done = vec![false; self.uses.len()];
        let mut out = Vec::new();
        let unused = (0..self.users.len()).rev().filter(|i| self.users[*i].is_empty());
        for start in results.iter().rev().copied().chain(unused) {
            let mut stack = vec![start];
            while let Some(i) = stack.pop() {
                if self.users[i].iter().all(|user| done[*user]) && !std::mem::replace(&mut done[i], true) {
                    out.push(i);
                    stack.extend(self.uses[i].iter().copied());
                }
            }
        }
        out.reverse();
        out
    }

    /// What needs nothing first, then what each input makes possible, step by step.
    fn forward(&self, params: &[Ref<relaxide_ir::Var>]) -> Vec<usize> {
        let n = self.uses.len();
        let mut missing: Vec<usize> = (0..n).map(|i| self.uses[i].len() + self.outside[i].len()).collect();
        let mut out: Vec<usize> = (0..n).filter(|i| missing[*i] == 0).collect();
        let mut pending: VecDeque<Vec<usize>> = out.iter().map(|i| self.users[*i].clone()).collect();
        for input in &self.inputs(params) {
            pending.push_back((0..n).filter(|i| self.outside[*i].contains(input)).collect());
        }
        while let Some(group) = pending.pop_front() {
            for i in group {
                missing[i] = missing[i].saturating_sub(1);
                if missing[i] == 0 {
                    out.push(i);
                    pending.push_back(self.users[i].clone());
                }
            }
        }
        out
    }

    /// Results last, in front of them what they use, and so on.
    fn backward(&self, starts: &[usize]) -> Vec<usize> {
        let mut missing: Vec<usize> = self.users.iter().map(Vec::len).collect();
        let mut out = Vec::new();
        let mut pending: VecDeque<usize> = starts.iter().copied().filter(|i| missing[*i] == 0).collect();
        while let Some(i) = pending.pop_front() {
            out.push(i);
            for used in &self.uses[i] {
                missing[*used] = missing[*used].saturating_sub(1);
                if missing[*used] == 0 {
                    pending.push_back(*used);
                }
            }
        }
        out.reverse();
        out
    }
}
