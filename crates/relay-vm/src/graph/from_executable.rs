//! A program of the Relay VM without control flow as a graph.
//!
//! The compiler makes one program for both machines: fused kernels, memory of known sizes. What remains is to read the code
//! once, from top to bottom, following what each register holds. Branches, calls of functions, data and shapes that the run
//! shows have no form in a graph; a program with them is refused, with what it has.

use std::collections::HashMap;

use relaxide_ffi::{Error, ErrorKind, Tensor};

use super::format::{EntryType, Graph, Node, NodeEntry, NodeKind};
use crate::executable::{Constant, Executable};
use crate::instruction::Size;
use crate::{Instruction, Register};

/// What a register holds.
#[derive(Clone)]
enum Held {
    /// A result of a node.
    Entry(NodeEntry),
    /// Memory.
    Storage(usize),
    /// A tensor that a kernel is still to write.
    Fresh { storage: usize, shape: Vec<i64>, dtype: relaxide_ffi::DataType },
    /// A constant that is no node yet.
    Constant(usize),
    /// Several.
    Tuple(Vec<Held>),
}

fn refuse<T>(what: impl std::fmt::Display) -> Result<T, Error> {
    Err(Error::new(
        ErrorKind::ValueError,
        format!("{what} has no form in a graph: run the program in the Relay VM (relay.vm.compile)"),
    ))
}

struct Maker<'a> {
    executable: &'a Executable,
    graph: Graph,
    registers: HashMap<Register, Held>,
    params: Vec<(String, Tensor)>,
    constants: HashMap<usize, NodeEntry>,
    storages: usize,
    names: HashMap<String, usize>,
}

/// The graph of a program's function `main`, whose inputs have these types, and its weights.
pub fn graph_of(executable: &Executable, inputs: &[EntryType]) -> Result<(Graph, Vec<(String, Tensor)>), Error> {
    let main = executable.index_of("main").and_then(|index| executable.functions.get(index));
    let Some(main) = main else { return refuse("a program without `main`") };
    let mut maker = Maker {
        executable,
        graph: Graph { row: vec![0], ..Graph::default() },
        registers: HashMap::new(),
        params: Vec::new(),
        constants: HashMap::new(),
        storages: 0,
        names: HashMap::new(),
    };
    if inputs.len() != main.params.len() {
        return refuse(format!("a function of {} parameters with {} tensors", main.params.len(), inputs.len()));
    }
    for (at, (name, ty)) in main.params.iter().zip(inputs).enumerate() {
        let entry = maker.input(name.clone(), ty.clone());
        maker.registers.insert(at as Register, Held::Entry(entry));
    }
    for instruction in &main.instructions {
        if maker.step(instruction)? {
            break;
        }
    }
    let mut graph = maker.graph;
    super::plan::share_storages(&mut graph);
    Ok((graph, maker.params))
}

impl Maker<'_> {
    fn node(&mut self, node: Node, types: Vec<EntryType>) -> usize {
        self.graph.nodes.push(node);
        self.graph.entries.extend(types);
        self.graph.row.push(self.graph.entries.len());
        self.graph.nodes.len() - 1
    }

    fn fresh_storage(&mut self) -> usize {
        self.storages += 1;
        self.storages - 1
    }

    /// A node that is given, in memory of its own.
    fn input(&mut self, name: String, ty: EntryType) -> NodeEntry {
        let storage = self.fresh_storage();
        let node = Node { name, kind: NodeKind::Input, inputs: Vec::new(), outputs: 1 };
        let node = self.node(node, vec![EntryType { storage, ..ty }]);
        self.graph.arg_nodes.push(node);
        NodeEntry { node, index: 0 }
    }

    fn held(&self, register: Register) -> Result<Held, Error> {
        self.registers.get(&register).cloned().map_or_else(|| refuse("a register that nothing was put into"), Ok)
    }

    fn constant(&mut self, index: usize) -> Result<NodeEntry, Error> {
        if let Some(entry) = self.constants.get(&index) {
            return Ok(*entry);
        }
        let Some(Constant::Immediate(tensor)) = self.executable.constants.get(index) else {
            return refuse("a constant that is bound later");
        };
        let name = format!("p{}", self.params.len());
        let ty = EntryType { shape: tensor.shape().to_vec(), dtype: tensor.dtype(), storage: 0, device: None };
        self.params.push((name.clone(), tensor.clone()));
        let entry = self.input(name, ty);
        self.constants.insert(index, entry);
        Ok(entry)
    }

    fn entry(&mut self, held: Held) -> Result<NodeEntry, Error> {
        match held {
            Held::Entry(entry) => Ok(entry),
            Held::Constant(index) => self.constant(index),
            Held::Tuple(_) => refuse("a tuple that a kernel takes"),
            Held::Storage(_) | Held::Fresh { .. } => refuse("memory that was not written"),
        }
    }

    /// The tensors of values, tuples flattened.
    fn flat(&mut self, held: Held, out: &mut Vec<NodeEntry>) -> Result<(), Error> {
        match held {
            Held::Tuple(fields) => fields.into_iter().try_for_each(|field| self.flat(field, out)),
            other => self.entry(other).map(|entry| out.push(entry)),
        }
    }

    fn unique(&mut self, name: &str) -> String {
        let count = self.names.entry(name.to_string()).or_insert(0);
        *count += 1;
        if *count == 1 { name.to_string() } else { format!("{name}_{}", *count - 1) }
    }

    /// One instruction; whether it was the last.
    fn step(&mut self, instruction: &Instruction) -> Result<bool, Error> {
        match instruction {
            Instruction::Move { from, dst } => {
                let held = self.held(*from)?;
                self.registers.insert(*dst, held);
            }
            Instruction::LoadConst { index, dst, .. } => {
                self.registers.insert(*dst, Held::Constant(usize::try_from(*index).unwrap_or(usize::MAX)));
            }
            Instruction::AllocStorage { size: Size::Register(r), dst, .. } => {
                if !matches!(self.held(*r)?, Held::Constant(_)) {
                    return refuse("memory whose size only the run shows");
                }
                let storage = self.fresh_storage();
                self.registers.insert(*dst, Held::Storage(storage));
            }
            Instruction::AllocStorage { size: Size::Shape(_), dst, .. } => {
                let storage = self.fresh_storage();
                self.registers.insert(*dst, Held::Storage(storage));
            }
            Instruction::AllocTensor { storage, shape, dtype, dst, offset } => {
                let Held::Storage(of) = self.held(*storage)? else { return refuse("a tensor outside of memory") };
                // Several tensors side by side in one storage are storages of their own here.
                let of = if self.is_start(*offset)? { of } else { self.fresh_storage() };
                self.registers.insert(*dst, Held::Fresh { storage: of, shape: shape.clone(), dtype: *dtype });
            }
            Instruction::InvokePacked { index, outputs, args } => self.kernel(*index, *outputs, args)?,
            Instruction::ReshapeTensor { tensor, shape, dst } => self.reshape(*tensor, *shape, *dst)?,
            Instruction::AllocAdt { tag: 0, dst, fields } => {
                let fields = fields.iter().map(|r| self.held(*r)).collect::<Result<_, _>>()?;
                self.registers.insert(*dst, Held::Tuple(fields));
            }
            Instruction::GetField { object, index, dst } => {
                let Held::Tuple(fields) = self.held(*object)? else { return refuse("a field of what is no tuple") };
                let field = usize::try_from(*index).ok().and_then(|i| fields.get(i).cloned());
                let Some(field) = field else { return refuse("a field that does not exist") };
                self.registers.insert(*dst, field);
            }
            Instruction::KillRegister { dst } => {
                self.registers.remove(dst);
            }
            Instruction::Ret { result } => {
                let (held, mut heads) = (self.held(*result)?, Vec::new());
                self.flat(held, &mut heads)?;
                self.graph.heads = heads;
                return Ok(true);
            }
            other => return refuse(name_of(other)),
        }
        Ok(false)
    }

    /// Whether a tensor begins where its storage does.
    fn is_start(&self, offset: Option<Register>) -> Result<bool, Error> {
        let Some(register) = offset else { return Ok(true) };
        let Held::Constant(index) = self.held(register)? else { return refuse("a place that only the run shows") };
        match self.executable.constants.get(index) {
            Some(Constant::Immediate(tensor)) => Ok(tensor.to_bytes()?.iter().all(|byte| *byte == 0)),
            _ => refuse("a place that is bound later"),
        }
    }

    fn kernel(&mut self, index: i64, outputs: i64, args: &[Register]) -> Result<(), Error> {
        let name = usize::try_from(index).ok().and_then(|i| self.executable.primitives.get(i)).cloned();
        let Some(function) = name else { return refuse("a kernel that does not exist") };
        let first = args.len().saturating_sub(usize::try_from(outputs).unwrap_or(usize::MAX));
        let (mut inputs, mut types) = (Vec::new(), Vec::new());
        for register in &args[..first] {
            let held = self.held(*register)?;
            self.flat(held, &mut inputs)?;
        }
        for register in &args[first..] {
            let Held::Fresh { storage, shape, dtype } = self.held(*register)? else {
                return refuse(format!("what {function} writes, which is no new tensor,"));
            };
            types.push(EntryType { shape, dtype, storage, device: None });
        }
        let (outputs, name) = (types.len(), self.unique(&function));
        let kind = NodeKind::Kernel { function, flatten: false, attrs: Vec::new() };
        let node = self.node(Node { name, kind, inputs, outputs }, types);
        for (index, register) in args[first..].iter().enumerate() {
            self.registers.insert(*register, Held::Entry(NodeEntry { node, index }));
        }
        Ok(())
    }

    /// The same memory in another shape: a node that does nothing.
    fn reshape(&mut self, tensor: Register, shape: Register, dst: Register) -> Result<(), Error> {
        let Held::Constant(index) = self.held(shape)? else { return refuse("a shape that only the run shows") };
        let Some(Constant::Immediate(dims)) = self.executable.constants.get(index) else {
            return refuse("a shape that is bound later");
        };
        let shape = dims.to_vec::<i64>()?;
        let held = self.held(tensor)?;
        let from = self.entry(held)?;
        let (dtype, storage) = {
            let entry = &self.graph.entries[self.graph.place(from)];
            (entry.dtype, entry.storage)
        };
        let kind = NodeKind::Kernel { function: "__nop".into(), flatten: false, attrs: Vec::new() };
        let name = self.unique("reshape_nop");
        let node = Node { name, kind, inputs: vec![from], outputs: 1 };
        let node = self.node(node, vec![EntryType { shape, dtype, storage, device: None }]);
        self.registers.insert(dst, Held::Entry(NodeEntry { node, index: 0 }));
        Ok(())
    }
}

fn name_of(instruction: &Instruction) -> &'static str {
    match instruction {
        Instruction::If { .. } | Instruction::Goto { .. } | Instruction::LoadConsti { .. } => "a branch",
        Instruction::Invoke { .. } => "a call of a function",
        Instruction::InvokeClosure { .. } | Instruction::AllocClosure { .. } => "a closure",
        Instruction::AllocAdt { .. } | Instruction::GetTag { .. } => "a value of a data type",
        Instruction::ShapeOf { .. } | Instruction::AllocTensorReg { .. } => "a tensor whose shape only the run shows",
        Instruction::DeviceCopy { .. } => "a copy between devices",
        Instruction::Fatal => "an end with an error",
        _ => "an integer of the machine",
    }
}
