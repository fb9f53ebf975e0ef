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
        map_functions(module, |_, func| {
            let results = used_vars(&func.body.body);
            Ok(Sort { depth_first, from_inputs, params: &func.params, results }.mutate_function(func))
        })
    },
)
.params(&[
    PassParam::new("order", ParamKind::Str, ParamDefault::Str("depth-first"), "depth-first or breadth-first."),
    PassParam::new("direction", ParamKind::Str, ParamDefault::Str("from-inputs"), "from-inputs or from-outputs."),
]);

struct Sort<'a> {
    depth_first: bool,
    from_inputs: bool,
    params: &'a [Ref<relaxide_ir::Var>],
    results: Vec<AnyVar>,
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
        let graph = Graph::of(block);
        let order = match (self.depth_first, self.from_inputs) {
            (depth_first, true) => graph.forward(self.params, depth_first),
            (true, false) => graph.post_order(&self.starts(&graph)),
            (false, false) => graph.backward(&self.starts(&graph)),
        };
        let mut seen = HashSet::new();
        let order = order.into_iter().chain(0..block.bindings.len()).filter(|i| seen.insert(*i));
        let bindings: Vec<Binding> = order.filter_map(|i| block.bindings.get(i).cloned()).collect();
        if bindings == block.bindings { block.clone() } else { Ref::new(BindingBlock { bindings, dataflow: true }) }
    }
}

impl Sort<'_> {
    /// The bindings that results are, then those that nothing in the block uses.
    fn starts(&self, graph: &Graph) -> Vec<usize> {
        let results = self.results.iter().filter_map(|v| graph.index.get(v).copied());
        let unused = (0..graph.users.len()).filter(|i| graph.users[*i].is_empty());
        let mut seen = HashSet::new();
        results.chain(unused).filter(|i| seen.insert(*i)).collect()
    }
}

struct Graph {
    index: HashMap<AnyVar, usize>,
    /// The bindings that each one uses, and those that use it.
    uses: Vec<Vec<usize>>,
    users: Vec<Vec<usize>>,
    /// What from outside of the block each one uses, in order.
    outside: Vec<Vec<AnyVar>>,
}

impl Graph {
    fn of(block: &BindingBlock) -> Graph {
        let n = block.bindings.len();
        let index: HashMap<AnyVar, usize> =
            block.bindings.iter().enumerate().map(|(i, b)| (b.var().clone(), i)).collect();
        let mut graph =
            Graph { index, uses: vec![Vec::new(); n], users: vec![Vec::new(); n], outside: vec![Vec::new(); n] };
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

    /// What needs nothing first, then what each input makes possible.
    fn forward(&self, params: &[Ref<relaxide_ir::Var>], depth_first: bool) -> Vec<usize> {
        let n = self.uses.len();
        let mut missing: Vec<usize> = (0..n).map(|i| self.uses[i].len() + self.outside[i].len()).collect();
        let mut inputs: Vec<AnyVar> = params.iter().map(|p| AnyVar::Var(p.clone())).collect();
        for var in self.outside.iter().flatten() {
            if !inputs.contains(var) {
                inputs.push(var.clone());
            }
        }
        let mut out: Vec<usize> = (0..n).filter(|i| missing[*i] == 0).collect();
        let mut pending: VecDeque<Vec<usize>> = out.iter().map(|i| self.users[*i].clone()).collect();
        for input in &inputs {
            pending.push_back((0..n).filter(|i| self.outside[*i].contains(input)).collect());
        }
        // Depth first, what a binding makes possible comes before what its neighbour does.
        if depth_first {
            let mut stack: Vec<usize> = Vec::new();
            for group in pending {
                stack.extend(group.into_iter().rev());
                while let Some(i) = stack.pop() {
                    missing[i] = missing[i].saturating_sub(1);
                    if missing[i] == 0 {
                        out.push(i);
                        stack.extend(self.users[i].iter().rev().copied());
                    }
                }
            }
            return out;
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

    /// What each result needs, in front of it.
    fn post_order(&self, starts: &[usize]) -> Vec<usize> {
        let mut out = Vec::new();
        let mut seen = HashSet::new();
        for start in starts {
            let mut stack = vec![(*start, 0)];
            seen.insert(*start);
            while let Some((i, next)) = stack.pop() {
                match self.uses[i].get(next) {
                    Some(used) => {
                        stack.push((i, next + 1));
                        if seen.insert(*used) {
                            stack.push((*used, 0));
                        }
                    }
                    None => out.push(i),
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
