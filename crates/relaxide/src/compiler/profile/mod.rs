//! Where the time of a run goes, and how far each kernel is from what the machine can do.
//!
//! The virtual machine measures calls ([`relaxide_vm::ProfileReport`]); what a call has to compute and to move is known from the signature
//! of the file ([`KernelCost`](crate::KernelCost)); what the machine can do is measured ([`Roof`]). Together they say what share of the roof a
//! kernel reaches: the time that the slower of arithmetic and memory would need, by the time that it took. What is not known, in
//! files of other compilers and for kernels whose work depends on data, is left open.

mod axis;
mod page;
mod roof;

use std::collections::HashMap;
use std::time::Duration;

use relaxide_ffi::{AnyView, DataType, Error, Module, Ref};
use relaxide_vm::bytecode::{Arg, Instruction};
use relaxide_vm::{Executable, FuncKind, ProfileReport};

pub use roof::Roof;

use crate::{Graph, Signature, VirtualMachine, Vm, signature_of_file};

/// What the calls of one function took, over all runs.
#[derive(Clone, Debug)]
pub struct ProfileLine {
    /// The function: a kernel, a builtin, a function of the program.
    pub name: String,
    /// How often it was called.
    pub calls: u64,
    /// The time that it took itself.
    pub time: Duration,
    /// What share of the whole time that is.
    pub share: f64,
    /// Operations on floating-point data, where they are known.
    pub operations: Option<u64>,
    /// Bytes that had to be read or written, where they are known.
    pub bytes: Option<u64>,
    /// What share of the machine's roof it reached, where that is known.
    pub of_roof: Option<f64>,
    /// The nodes of a model that its calls were made of, where the file says so.
    pub nodes: Vec<String>,
}

impl ProfileLine {
    fn rate(&self, amount: Option<u64>) -> Option<f64> {
        let seconds = self.time.as_secs_f64();
        amount.filter(|_| seconds > 0.0).map(|amount| amount as f64 / seconds)
    }

    /// Operations a second.
    pub fn operation_rate(&self) -> Option<f64> {
        self.rate(self.operations).filter(|rate| *rate > 0.0)
    }

    /// Bytes a second.
    pub fn byte_rate(&self) -> Option<f64> {
        self.rate(self.bytes)
    }
}

/// A profile of several runs of one function.
pub struct Profile {
    /// The function.
    pub function: String,
    /// How many runs.
    pub runs: usize,
    /// The time of all runs.
    pub time: Duration,
    /// What each function took, the one that took most first.
    pub lines: Vec<ProfileLine>,
    /// What the machine can do, if that was measured.
    pub roof: Option<Roof>,
    /// The calls of the last run; none of the Relay VM, which keeps sums only.
    pub last: Option<Ref<ProfileReport>>,
    graph: Option<Graph>,
}

impl Profile {
    /// Runs a function so many times and sums up. Runs before that warm up are the caller's.
    pub fn measure(
        module: &Module,
        machine: &VirtualMachine,
        function: &str,
        arguments: &[AnyView<'_>],
        runs: usize,
        roof: Option<Roof>,
    ) -> Result<Profile, Error> {
        let signature = signature_of_file(module)?;
        let mut sums = Sums::new(&signature);
        let mut last = None;
        for _ in 0..runs.max(1) {
            match machine.inner() {
                Vm::Relax(vm) => {
                    let (_, report) = vm.profile(function, arguments)?;
                    sums.add(&report);
                    last = Some(report);
                }
                Vm::Relay(vm) => vm.profile(function, arguments)?.1.iter().for_each(|row| sums.add_row(row)),
            }
        }
        let (time, mut lines) = sums.finish(roof.as_ref());
        let executable = relaxide_vm::Executable::of_module(module);
        if let Some(executable) = &executable {
            let mut nodes = nodes_of_calls(executable);
            lines.iter_mut().for_each(|line| line.nodes = nodes.remove(&line.name).unwrap_or_default());
        }
        let graph = executable.and_then(|executable| Graph::of_executable(&executable, function));
        Ok(Profile { function: function.to_string(), runs: runs.max(1), time, lines, roof, last, graph })
    }

    /// The graph of the function with the share of each call, if it is in bytecode. Calls of one kernel share its time evenly.
    pub fn graph(&self) -> Option<Graph> {
        let mut graph = self.graph.clone()?;
        let calls = graph.nodes.iter().fold(HashMap::<String, usize>::new(), |mut calls, node| {
            *calls.entry(node.label.clone()).or_default() += 1;
            calls
        });
        for node in &mut graph.nodes {
            let line = self.lines.iter().find(|line| line.name == node.label);
            node.share = line.map(|line| line.share / *calls.get(&node.label).unwrap_or(&1) as f64);
        }
        Some(graph)
    }
}

/// For each function the nodes of the model that calls of it were made of, in the order of the calls.
fn nodes_of_calls(executable: &Executable) -> HashMap<String, Vec<String>> {
    let origins = executable.origins();
    let functions = executable.functions();
    let mut nodes: HashMap<String, Vec<String>> = HashMap::new();
    for function in functions.iter().filter(|function| function.kind == FuncKind::Vm) {
        for (index, instruction) in executable.instructions_of(function).map_while(Result::ok) {
            let Instruction::Call { func, args, .. } = instruction else { continue };
            let Some(words) = origins.of(index) else { continue };
            // Builtins that call kernels and closures are given them.
            let called = args.iter().map_while(Result::ok).filter_map(|arg| match arg {
                Arg::Function(index) => Some(index),
                _ => None,
            });
            for index in std::iter::once(func).chain(called) {
                let Some(callee) = usize::try_from(index).ok().and_then(|index| functions.get(index)) else { continue };
                let known = nodes.entry(callee.name.clone()).or_default();
                if known.last().is_none_or(|last| last != words) {
                    known.push(words.to_string());
                }
            }
        }
    }
    nodes
}

/// Sums over runs.
struct Sums<'s> {
    signature: &'s Signature,
    lines: HashMap<String, ProfileLine>,
}

impl<'s> Sums<'s> {
    fn new(signature: &'s Signature) -> Self {
        Sums { signature, lines: HashMap::new() }
    }

    fn add(&mut self, report: &ProfileReport) {
        for row in report.rows() {
            let known = self.signature.kernels.iter().any(|kernel| kernel.name == row.name);
            let zero = known.then_some(0).filter(|_| report.omitted_calls() == 0);
            self.add_sum(&row.name, row.calls, row.own, zero);
        }
        let costs: HashMap<&str, _> = self.signature.kernels.iter().map(|k| (k.name.as_str(), k)).collect();
        for call in report.calls() {
            let (Some(kernel), Some(line)) = (costs.get(call.name), self.lines.get_mut(call.name)) else { continue };
            let cost = kernel.at(call.arguments);
            let sum = |total: Option<u64>, more: Option<u64>| total?.checked_add(more?);
            line.operations = sum(line.operations, cost.operations);
            line.bytes = sum(line.bytes, cost.bytes);
        }
    }

    /// What the Relay VM says of a kernel: the shapes of its calls are not known.
    fn add_row(&mut self, row: &relaxide_relay_vm::ProfileRow) {
        self.add_sum(&row.kernel, row.calls, row.total, None);
    }

    fn add_sum(&mut self, name: &str, calls: u64, own: Duration, zero: Option<u64>) {
        let line = self.lines.entry(name.to_string()).or_insert_with(|| ProfileLine {
            name: name.to_string(),
            calls: 0,
            time: Duration::ZERO,
            share: 0.0,
            operations: zero,
            bytes: zero,
            of_roof: None,
            nodes: Vec::new(),
        });
        line.calls += calls;
        line.time += own;
    }

    fn finish(self, roof: Option<&Roof>) -> (Duration, Vec<ProfileLine>) {
        let time: Duration = self.lines.values().map(|line| line.time).sum();
        let dtype = |name: &str| self.signature.kernels.iter().find(|kernel| kernel.name == name).and_then(|k| k.dtype);
        let mut lines: Vec<ProfileLine> = self.lines.values().cloned().collect();
        for line in &mut lines {
            line.share = line.time.as_secs_f64() / time.as_secs_f64().max(f64::MIN_POSITIVE);
            line.of_roof = roof.and_then(|roof| of_roof(line, dtype(&line.name), roof));
        }
        lines.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.name.cmp(&b.name)));
        (time, lines)
    }
}

/// What share of the roof a kernel reached. The arithmetic that was measured is that of float32.
fn of_roof(line: &ProfileLine, dtype: Option<DataType>, roof: &Roof) -> Option<f64> {
    let (operations, bytes) = (line.operations? as f64, line.bytes? as f64);
    if operations > 0.0 && dtype != Some(DataType::float(32)) {
        return None;
    }
    let least = (operations / roof.operations).max(bytes / roof.bytes);
    let took = line.time.as_secs_f64();
    (least > 0.0 && took > 0.0).then(|| least / took)
}
