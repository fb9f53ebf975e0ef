//! The graph of a function of a compiled model, read off its instructions.
//!
//! Instructions are read in the order in which they stand, so a function with branches or loops shows every call once. A kernel
//! writes to a tensor that was allocated before: of its arguments, those that come fresh from an allocation are its results.

use std::collections::{HashMap, HashSet};

use relaxide_vm::bytecode::{Arg, Instruction, Register};
use relaxide_vm::{Executable, FuncKind};

use super::{Graph, Node, NodeKind};

/// Builtins that make a tensor without a value.
const ALLOCATES: &[&str] = &["vm.builtin.alloc_tensor"];

/// Builtins that concern memory and shapes, not values.
const HOUSEKEEPING: &[&str] = &[
    "vm.builtin.alloc_storage",
    "vm.builtin.alloc_shape_heap",
    "vm.builtin.null_value",
    "vm.builtin.match_shape",
    "vm.builtin.make_shape",
    "vm.builtin.match_prim_value",
    "vm.builtin.make_prim_value",
    "vm.builtin.shape_of",
    "vm.builtin.check_tensor_info",
    "vm.builtin.check_shape_info",
    "vm.builtin.check_tuple_info",
    "vm.builtin.check_func_info",
    "vm.builtin.check_prim_value_info",
    "vm.builtin.read_if_cond",
];

/// Builtins whose result is a part or another form of what they are given.
const LOOKED_THROUGH: &[&str] = &[
    "vm.builtin.copy",
    "vm.builtin.reshape",
    "vm.builtin.make_tuple",
    "vm.builtin.tuple_getitem",
    "vm.builtin.ensure_zero_offset",
];

impl Graph {
    /// The graph of a function in bytecode; none if there is no such function, or it is native.
    pub fn of_executable(executable: &Executable, name: &str) -> Option<Graph> {
        let (_, function) = executable.function(name)?;
        if function.kind != FuncKind::Vm {
            return None;
        }
        let mut draw = Draw { executable, graph: Graph::default(), makers: HashMap::new(), fresh: HashSet::new() };
        for (i, param) in function.param_names.iter().enumerate() {
            let node = draw.graph.add(Node::new(NodeKind::Input, param, ""));
            draw.makers.insert(i as i64, vec![node]);
        }
        for instruction in executable.instructions_of(function) {
            match instruction.ok()?.1 {
                Instruction::Call { dst, func, args } => {
                    let args: Vec<Arg> = args.iter().collect::<Result<_, _>>().ok()?;
                    draw.call(dst, func, &args)?;
                }
                Instruction::Ret { result } => {
                    let sources = draw.makers.get(&result.0).cloned().unwrap_or_default();
                    let output = draw.graph.add(Node::new(NodeKind::Output, "output", ""));
                    draw.graph.connect(&sources, output);
                }
                Instruction::Goto { .. } | Instruction::If { .. } => {}
            }
        }
        Some(draw.graph.without_loose_calls())
    }
}

struct Draw<'e> {
    executable: &'e Executable,
    graph: Graph,
    /// The nodes that the value in a register comes from.
    makers: HashMap<i64, Vec<usize>>,
    /// Registers with tensors that nobody has written to.
    fresh: HashSet<i64>,
}

impl Draw<'_> {
    fn call(&mut self, dst: Register, func: i64, args: &[Arg]) -> Option<()> {
        let functions = self.executable.functions();
        let name_of = |index: i64| functions.get(usize::try_from(index).ok()?).map(|f| f.name.as_str());
        let mut name = name_of(func)?;
        if HOUSEKEEPING.contains(&name) {
            self.makers.remove(&dst.0);
            return Some(());
        }
        if ALLOCATES.contains(&name) {
            self.makers.remove(&dst.0);
            self.fresh.insert(dst.0);
            return Some(());
        }
        let registers = || {
            args.iter().filter_map(|arg| match arg {
                Arg::Register(register) => Some(register.0),
                _ => None,
            })
        };
        let mut sources: Vec<usize> = registers().filter_map(|r| self.makers.get(&r)).flatten().copied().collect();
        sources.sort_unstable();
        sources.dedup();
        if LOOKED_THROUGH.contains(&name) {
            // A tensor that is looked at under another name before it is written is still fresh.
            if registers().any(|r| self.fresh.contains(&r)) {
                self.fresh.insert(dst.0);
            }
            self.makers.insert(dst.0, sources);
            return Some(());
        }
        // A kernel or a closure that another function calls is what is of interest.
        if name == "vm.builtin.call_tir_dyn" || name == "vm.builtin.invoke_closure" {
            let callee = args.iter().find_map(|arg| match arg {
                Arg::Function(index) => name_of(*index),
                _ => None,
            });
            name = callee.unwrap_or(name);
        }
        let constants = args.iter().filter(|arg| matches!(arg, Arg::Constant(_))).count();
        let detail = match constants {
            0 => String::new(),
            1 => "with 1 constant".into(),
            n => format!("with {n} constants"),
        };
        let results: Vec<i64> = registers().filter(|r| self.fresh.contains(r)).collect();
        let node = self.graph.add(Node::new(NodeKind::Call, name, detail));
        self.graph.connect(&sources, node);
        for result in results.into_iter().chain([dst.0]) {
            self.fresh.remove(&result);
            self.makers.insert(result, vec![node]);
        }
        Some(())
    }
}
