//! A graph that runs: memory for its storages, its kernels bound to their tensors once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use relaxide_ffi::{Any, AnyView, DataType, Device, Error, ErrorKind, Function, Module, Tensor, get_global};
use relaxide_runtime::device::{copy_into, empty_tensor, to_device, view_at};

use super::format::{Graph, Node, NodeEntry, NodeKind};
use crate::params::load_params;

fn refuse<T>(message: impl Into<String>) -> Result<T, Error> {
    Err(Error::new(ErrorKind::ValueError, message.into()))
}

/// One step: a kernel with its arguments.
struct KernelStep {
    node: usize,
    function: Function,
    args: Vec<Any>,
}

struct ExecutorState {
    tensors: Vec<Tensor>,
    steps: Vec<KernelStep>,
}

/// A graph that runs.
pub struct GraphExecutor {
    graph: Graph,
    device: Device,
    state: Mutex<ExecutorState>,
}

impl GraphExecutor {
    /// A graph with its kernels: those of a library, and others by name, which come first.
    pub fn new(
        graph: Graph,
        library: Option<&Module>,
        named: &HashMap<String, Function>,
        device: Device,
    ) -> Result<GraphExecutor, Error> {
        let tensors = tensors(&graph, device)?;
        let mut executor =
            GraphExecutor { graph, device, state: Mutex::new(ExecutorState { tensors, steps: Vec::new() }) };
        let steps = executor.steps(library, named)?;
        executor.state.get_mut().unwrap_or_else(PoisonError::into_inner).steps = steps;
        Ok(executor)
    }

    fn steps(&mut self, library: Option<&Module>, named: &HashMap<String, Function>) -> Result<Vec<KernelStep>, Error> {
        let mut steps = Vec::new();
        let mut known: HashMap<String, Function> = HashMap::new();
        for (at, node) in self.graph.nodes.iter().enumerate() {
            let NodeKind::Kernel { function: name, .. } = &node.kind else { continue };
            if name == "__nop" {
                self.check_nop(at, node)?;
                continue;
            }
            let function = match (name.as_str(), known.get(name)) {
                ("__copy", _) => copy(),
                (_, Some(function)) => function.clone(),
                _ => {
                    let own = library.and_then(|library| library.get_function(name, true));
                    let found = named.get(name).cloned().or(own).or_else(|| get_global(name));
                    match found {
                        Some(function) => function,
                        None => return refuse(format!("node {at} ({}): no function {name} in the library", node.name)),
                    }
                }
            };
            known.insert(name.clone(), function.clone());
            steps.push(KernelStep { node: at, function, args: Vec::new() });
        }
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for step in &mut steps {
            step.args = arguments(&self.graph, step.node, &state.tensors)?;
        }
        Ok(steps)
    }

    /// What does nothing gives what it takes, which must lie in the same memory.
    fn check_nop(&self, at: usize, node: &Node) -> Result<(), Error> {
        let place = |entry: NodeEntry| &self.graph.entries[self.graph.place(entry)];
        let (Some(input), 1) = (node.inputs.first(), node.outputs) else {
            return refuse(format!("node {at} ({}) does nothing, so it has an input and one result", node.name));
        };
        let (from, to) = (place(*input), place(NodeEntry { node: at, index: 0 }));
        match from.storage == to.storage {
            true => Ok(()),
            false => {
                refuse(format!("node {at} ({}) does nothing, and its result lies elsewhere than its input", node.name))
            }
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, ExecutorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The place of an input among the inputs.
    pub fn input_index(&self, name: &str) -> Option<usize> {
        self.graph.arg_nodes.iter().position(|at| self.graph.nodes[*at].name == name)
    }

    /// Where an input's tensor is among all.
    fn input_place(&self, index: usize) -> Result<usize, Error> {
        let count = self.graph.arg_nodes.len();
        match self.graph.arg_nodes.get(index) {
            Some(at) => Ok(self.graph.row[*at]),
            None => refuse(format!("there is no input {index}: the graph has {count}")),
        }
    }

    /// Copies a tensor into an input.
    pub fn set_input(&self, index: usize, value: &Tensor) -> Result<(), Error> {
        let place = self.input_place(index)?;
        let state = self.state();
        let own = &state.tensors[place];
        if own.shape() != value.shape() || own.dtype() != value.dtype() {
            let name = &self.graph.nodes[self.graph.arg_nodes[index]].name;
            return refuse(format!(
                "the input {name} is a tensor of shape {:?} and type {}; {:?} and {} are given",
                own.shape(),
                own.dtype(),
                value.shape(),
                value.dtype()
            ));
        }
        copy_into(value, own)
    }

    /// An input's tensor: what is written into it is what the next run takes.
    pub fn input(&self, index: usize) -> Result<Tensor, Error> {
        let place = self.input_place(index)?;
        Ok(self.state().tensors[place].clone())
    }

    /// Sets the inputs that a dictionary of weights names.
    pub fn load_params(&self, bytes: &[u8]) -> Result<(), Error> {
        for (name, tensor) in load_params(bytes)? {
            if let Some(index) = self.input_index(&name) {
                self.set_input(index, &tensor)?;
            }
        }
        Ok(())
    }

    /// Runs every node.
    pub fn run(&self) -> Result<(), Error> {
        let state = self.state();
        for step in &state.steps {
            let views: Vec<AnyView<'_>> = step.args.iter().map(Any::as_view).collect();
            step.function.call(&views).map_err(|e| e.context(format!("node {}", self.graph.nodes[step.node].name)))?;
        }
        Ok(())
    }

    /// A result, as it was computed last: a tensor of its own.
    pub fn output(&self, index: usize) -> Result<Tensor, Error> {
        let Some(head) = self.graph.heads.get(index) else {
            return refuse(format!("there is no output {index}: the graph has {}", self.graph.heads.len()));
        };
        self.result(*head)
    }

    /// The result of any node.
    pub fn result(&self, entry: NodeEntry) -> Result<Tensor, Error> {
        if self.graph.nodes.get(entry.node).is_none_or(|node| entry.index >= node.outputs) {
            return refuse(format!("there is no result {} of a node {}", entry.index, entry.node));
        }
        let state = self.state();
        let own = &state.tensors[self.graph.place(entry)];
        let copy = empty_tensor(own.shape(), own.dtype(), self.device)?;
        copy_into(own, &copy)?;
        Ok(copy)
    }
}

/// The function of `__copy`.
fn copy() -> Function {
    Function::new(|args| match args {
        [from, to] => {
            let (from, to) = (from.to::<Tensor>()?, to.to::<Tensor>()?);
            copy_into(&from, &to).map(|()| Any::none())
        }
        _ => refuse("a copy has an input and a result"),
    })
}

/// A tensor for every result, in storages that several share.
fn tensors(graph: &Graph, device: Device) -> Result<Vec<Tensor>, Error> {
    let mut sizes: HashMap<usize, usize> = HashMap::new();
    let mut check = Vec::new();
    for entry in &graph.entries {
        let bits = usize::from(entry.dtype.bits.max(8)) * usize::from(entry.dtype.lanes);
        let count = entry.shape.iter().try_fold(bits.div_ceil(8), |n, d| n.checked_mul(usize::try_from(*d).ok()?));
        let Some(bytes) = count.filter(|n| i64::try_from(*n).is_ok()) else {
            return refuse(format!("a result of shape {:?} is larger than memory can be", entry.shape));
        };
        let size = sizes.entry(entry.storage).or_insert(0);
        *size = (*size).max(bytes);
        check.push(bytes);
    }
    let storage = |bytes: &usize| empty_tensor(&[(*bytes).max(1) as i64], DataType::uint(8), device);
    let storages =
        sizes.iter().map(|(id, bytes)| Ok((*id, storage(bytes)?))).collect::<Result<HashMap<_, _>, Error>>()?;
    graph.entries.iter().map(|e| view_at(&storages[&e.storage], &e.shape, e.dtype, 0)).collect()
}

/// The tensors of a node's call.
fn arguments(graph: &Graph, at: usize, tensors: &[Tensor]) -> Result<Vec<Any>, Error> {
    let node = &graph.nodes[at];
    let flatten = matches!(node.kind, NodeKind::Kernel { flatten: true, .. });
    let results = (0..node.outputs).map(|index| NodeEntry { node: at, index });
    let places = node.inputs.iter().copied().chain(results).map(|entry| &tensors[graph.place(entry)]);
    let argument = |t: &Tensor| match flatten {
        true => t.reshape(&[t.numel() as i64]).map(Any::from),
        false => Ok(Any::from(t.clone())),
    };
    places.map(argument).collect()
}

/// A value as a tensor on a device.
pub(super) fn tensor_on(value: AnyView<'_>, device: Device) -> Result<Tensor, Error> {
    let tensor = value
        .to::<Tensor>()
        .map_err(|_| Error::new(ErrorKind::TypeError, format!("an input is a tensor, not {}", value.type_key())))?;
    to_device(&tensor, device)
}
