//! The program as the interpreter runs it: each instruction with what could be found out about it beforehand.
//!
//! Builtins with known operands become plans or operations of their own. Then instructions that belong together become one,
//! at the position of the first; the others stay where they are, so positions and jumps keep their meaning:
//!
//! ```text
//! %2 = make_shape(heap, …)      ┐
//! %3 = alloc_storage(%2, …)     │
//! %4 = make_shape(heap, …)      ├ one tensor in a storage of its own, in %5
//! %5 = alloc_tensor(%3, 0, %4)  │
//! %3 = null_value()             ┘
//! ```
//!
//! A register that only one instruction of its function writes (besides those that clear it) has a *sole
//! writer*: whatever is found in it came from that plan, and goes back to it when the register is cleared or
//! the function returns.

use relaxide_ffi::{Any, Error};

use super::link::Callee;
use super::plan::{BuiltinKind, DecodedBuiltin, Dims, Size};
use super::program::{Decoded, Destination, FunctionEntry, Operand, Operands, Program, invalid, number};
use crate::builtins::{self, Builtin};

/// One instruction, prepared.
#[derive(Clone, Copy)]
pub(super) enum ResolvedOp {
    /// Call a function from outside.
    Packed { func: u32, args: Operands, dst: Destination },
    /// Call a function from outside that runs under an interpreter's lock.
    Hosted { func: u32, args: Operands, dst: Destination },
    /// Run a builtin.
    Builtin { builtin: &'static Builtin, args: Operands, dst: Destination },
    /// Run a plan that makes something, and go on behind the instructions that it stands for.
    Make { plan: u32, dst: u32, length: u32 },
    /// Take what a plan has kept; if there is nothing, as `Make`. For plans whose objects are all alike.
    MakeCached { plan: u32, dst: u32, length: u32 },
    /// As `MakeCached`, of a tensor in the storage of a register, whose plan is the storage_plan.
    MakeAlias { plan: u32, dst: u32, storage: u32, storage_plan: u32 },
    /// Write the shape of a tensor to a register that may hold it already.
    ShapeOf { tensor: u32, dst: u32 },
    /// Run a plan that makes nothing.
    Check { plan: u32 },
    /// Copy a register.
    Copy { from: u32, dst: u32 },
    /// Write an operand to a register.
    Load { from: Operand, dst: u32 },
    /// Read the truth of a register.
    Condition { from: u32, dst: u32 },
    /// Clear a register.
    Kill { dst: u32 },
    /// Clear a register and give what it held back to a plan.
    ReleaseCached { dst: u32, plan: u32 },
    /// As `ReleaseCached`, of a tensor that begins where its storage does, whose plan is the storage_plan.
    ReleaseAlias { dst: u32, plan: u32, storage_plan: u32 },
    /// Call a value; if it is a closure in bytecode, in a frame of this stack.
    InvokeClosure { args: Operands, dst: Destination },
    /// Call a function in bytecode, in a frame of this stack.
    Bytecode { func: u32, args: Operands, dst: Destination },
    /// Call a native function that works on a register file.
    Tir { func: u32, args: Operands, dst: Destination },
    /// Return.
    Ret { result: Destination },
    /// Go on elsewhere.
    Goto { target: u32 },
    /// Go on elsewhere if a register is zero.
    If { cond: u32, otherwise: u32 },
}

/// Fills in the prepared form of a decoded program.
pub(super) fn prepare(program: &mut Program, callees: &[Callee], constants: &[Any]) -> Result<(), Error> {
    for index in 0..program.ops.len() {
        let op = program.ops.get(index).copied().ok_or_else(|| invalid("an instruction is missing"))?;
        let resolved = prepare_one(program, op, callees, constants)?;
        program.resolved.push(resolved);
    }
    let targets = targets(program);
    let mut entries = std::mem::take(&mut program.entries);
    let mut uses = Vec::new();
    for entry in entries.iter_mut().filter(|entry| entry.end > entry.start) {
        let mut function = ResolvedFunction::read(program, entry, &targets, &mut uses);
        function.join_shapes();
        function.join_storages();
        function.find_sole_writers();
    }
    program.entries = entries;
    Ok(())
}

/// Whether jumps lead to an instruction, for each.
fn targets(program: &Program) -> Vec<bool> {
    let mut targets = vec![false; program.ops.len()];
    for op in &program.ops {
        if let Decoded::Goto { target } | Decoded::If { otherwise: target, .. } = *op
            && let Some(place) = targets.get_mut(target as usize)
        {
            *place = true;
        }
    }
    targets
}

fn prepare_one(program: &mut Program, op: Decoded, callees: &[Callee], constants: &[Any]) -> Result<ResolvedOp, Error> {
    Ok(match op {
        Decoded::Ret { result } => ResolvedOp::Ret { result },
        Decoded::Goto { target } => ResolvedOp::Goto { target },
        Decoded::If { cond, otherwise } => ResolvedOp::If { cond, otherwise },
        Decoded::Call { func, args, dst } => match callees.get(func as usize) {
            Some(Callee::Packed(function)) if function.host_lock().is_some() => ResolvedOp::Hosted { func, args, dst },
            Some(Callee::Packed(_)) => ResolvedOp::Packed { func, args, dst },
            Some(Callee::Bytecode) => ResolvedOp::Bytecode { func, args, dst },
            Some(Callee::Tir(_)) => ResolvedOp::Tir { func, args, dst },
            Some(Callee::Builtin(builtin, _)) => prepare_builtin(program, builtin, args, dst, constants)?,
            None => return Err(invalid("a call of a function that does not exist")),
        },
    })
}

/// A builtin, as an operation of its own where its name and its operands allow it.
fn prepare_builtin(
    program: &mut Program,
    builtin: &'static Builtin,
    args: Operands,
    dst: Destination,
    constants: &[Any],
) -> Result<ResolvedOp, Error> {
    let operands = program.operands(args);
    let simple = match (builtin.name, dst.register(), operands) {
        (builtins::NULL_VALUE, Some(dst), _) => Some(ResolvedOp::Kill { dst }),
        (builtins::COPY, Some(dst), [Operand::Register(from)]) => Some(ResolvedOp::Copy { from: *from, dst }),
        (builtins::COPY, Some(dst), [from]) => Some(ResolvedOp::Load { from: *from, dst }),
        (builtins::READ_IF_COND, Some(dst), [Operand::Register(from)]) => {
            Some(ResolvedOp::Condition { from: *from, dst })
        }
        (builtins::INVOKE_CLOSURE, _, [_, _, ..]) => Some(ResolvedOp::InvokeClosure { args, dst }),
        _ => None,
    };
    if let Some(resolved) = simple {
        return Ok(resolved);
    }
    let Some(kind) = BuiltinKind::of(builtin, operands, constants) else {
        return Ok(ResolvedOp::Builtin { builtin, args, dst });
    };
    let plan = number(program.plans.len() as i64)?;
    let resolved = match (kind.makes(), dst.register()) {
        (true, Some(dst)) => ResolvedOp::Make { plan, dst, length: 1 },
        (false, None) => ResolvedOp::Check { plan },
        // A result that is dropped, or the nothing of a check that is kept: rare, so it stays a call.
        _ => return Ok(ResolvedOp::Builtin { builtin, args, dst }),
    };
    program.plans.push(DecodedBuiltin { kind, has_own_register: false });
    Ok(resolved)
}

/// What becomes of a register that is not an argument.
#[derive(Clone, Copy)]
struct Use {
    /// How many instructions write it, besides those that clear it.
    writes: u32,
    /// How often it is an operand.
    reads: u32,
    /// The plan that alone writes it.
    sole_writer: Option<u32>,
}

/// One function while instructions are joined.
struct ResolvedFunction<'a> {
    resolved: &'a mut [ResolvedOp],
    plans: &'a mut [DecodedBuiltin],
    entry: &'a mut FunctionEntry,
    /// By register, from the first that is not an argument. What arguments hold comes from outside.
    uses: &'a mut Vec<Use>,
    /// Where jumps lead, in the whole program.
    targets: &'a [bool],
}

impl<'a> ResolvedFunction<'a> {
    /// Counts how registers are used. `uses` is only given so that its memory serves for the next function too.
    fn read(
        program: &'a mut Program,
        entry: &'a mut FunctionEntry,
        targets: &'a [bool],
        uses: &'a mut Vec<Use>,
    ) -> Self {
        uses.clear();
        // As many as there are instructions, at most: the verifier has seen to it.
        uses.resize(entry.registers.saturating_sub(entry.num_args), Use { writes: 0, reads: 0, sole_writer: None });
        let range = entry.start..entry.end;
        let first = entry.num_args;
        let mut count = |register: u32, change: fn(&mut Use)| {
            (register as usize).checked_sub(first).and_then(|at| uses.get_mut(at)).into_iter().for_each(change);
        };
        for (op, resolved) in program.ops.iter().zip(&program.resolved).take(range.end).skip(range.start) {
            match *op {
                Decoded::Call { args, dst, .. } => {
                    if let (Some(dst), false) = (dst.register(), matches!(resolved, ResolvedOp::Kill { .. })) {
                        count(dst, |register| register.writes += 1);
                    }
                    for operand in program.operands(args) {
                        if let Operand::Register(register) = operand {
                            count(*register, |register| register.reads += 1);
                        }
                    }
                }
                Decoded::Ret { result } => {
                    result.register().into_iter().for_each(|result| count(result, |register| register.reads += 1));
                }
                Decoded::Goto { .. } => {}
                Decoded::If { cond, .. } => count(cond, |register| register.reads += 1),
            }
        }
        let resolved = program.resolved.get_mut(range).unwrap_or_default();
        Self { resolved, plans: &mut program.plans, entry, uses, targets }
    }

    fn used(&self, register: u32) -> Option<&Use> {
        self.uses.get((register as usize).checked_sub(self.entry.num_args)?)
    }

    /// The plan, the register and the length of an instruction that makes something.
    fn make(&self, at: usize) -> Option<(u32, u32, usize)> {
        match *self.resolved.get(at)? {
            ResolvedOp::Make { plan, dst, length } => Some((plan, dst, length as usize)),
            _ => None,
        }
    }

    fn kind(&self, plan: u32) -> Option<&BuiltinKind> {
        self.plans.get(plan as usize).map(|plan| &plan.kind)
    }

    /// Whether no jump leads to one of the instructions.
    fn is_straight(&self, from: usize, to: usize) -> bool {
        (from..to).all(|at| self.targets.get(self.entry.start + at) == Some(&false))
    }

    fn is_written_once(&self, register: u32) -> bool {
        self.used(register).is_some_and(|register| register.writes == 1)
    }

    /// A shape whose only reader is the allocation behind it need not exist.
    fn join_shapes(&mut self) {
        for at in 0..self.resolved.len() {
            let (Some((shape, register, 1)), Some((plan, dst, 1))) = (self.make(at), self.make(at + 1)) else {
                continue;
            };
            let Some(BuiltinKind::Shape { dims: made @ Dims::Codes { .. } }) = self.kind(shape) else { continue };
            let is_private = self.used(register).is_some_and(|register| (register.writes, register.reads) == (1, 1));
            if !is_private || !self.is_straight(at + 1, at + 2) {
                continue;
            }
            let made = made.clone();
            let dims = match self.plans.get_mut(plan as usize).map(|plan| &mut plan.kind) {
                Some(BuiltinKind::Storage { size: Size::Elements(dims, _), .. } | BuiltinKind::Tensor { dims, .. }) => {
                    dims
                }
                _ => continue,
            };
            if matches!(dims, Dims::Value(Operand::Register(read)) if *read == register) {
                *dims = made;
                self.replace(at, ResolvedOp::Make { plan, dst, length: 2 });
            }
        }
    }

    /// A storage that holds one tensor and is let go at once belongs to the tensor.
    fn join_storages(&mut self) {
        for at in 0..self.resolved.len() {
            let Some((storage, register, first)) = self.make(at) else { continue };
            let Some((tensor, dst, second)) = self.make(at + first) else { continue };
            let end = at + first + second;
            let is_let_go = matches!(self.resolved.get(end), Some(ResolvedOp::Kill { dst }) if *dst == register);
            if !is_let_go || !self.is_written_once(register) || !self.is_straight(at + 1, end + 1) {
                continue;
            }
            let (
                Some(BuiltinKind::Storage { device, size, .. }),
                Some(BuiltinKind::Tensor { storage, offset, dims, dtype, .. }),
            ) = (self.kind(storage), self.kind(tensor))
            else {
                continue;
            };
            if *storage != Operand::Register(register) {
                continue;
            }
            let kind = BuiltinKind::Alone {
                device: *device,
                size: size.clone(),
                offset: *offset,
                dims: dims.clone(),
                dtype: *dtype,
            };
            if let Some(plan) = self.plans.get_mut(tensor as usize) {
                // The joined form takes the place of the tensor's own plan: no other way leads to that instruction.
                plan.kind = kind;
                self.replace(at, ResolvedOp::Make { plan: tensor, dst, length: (end + 1 - at) as u32 });
            }
        }
    }

    fn replace(&mut self, at: usize, with: ResolvedOp) {
        if let Some(resolved) = self.resolved.get_mut(at) {
            *resolved = with;
        }
    }

    /// Finds the own_registers of what plans make, and has values go back there.
    fn find_sole_writers(&mut self) {
        let mut at = 0;
        while at < self.resolved.len() {
            let Some((plan, dst, length)) = self.make(at) else {
                at += 1;
                continue;
            };
            if self.is_written_once(dst) {
                self.set_sole_writer(dst, Some(plan));
            }
            at += length;
        }
        self.settle_aliases();
        for at in 0..self.resolved.len() {
            if let Some(resolved) = self.with_sole_writer(at) {
                self.replace(at, resolved);
            }
        }
        self.entry.own_registers = self.own_registers().collect();
    }

    /// The plan that alone writes a register.
    fn sole_writer(&self, register: u32) -> Option<u32> {
        self.used(register)?.sole_writer
    }

    /// All own_registers and their plans.
    fn own_registers(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let first = self.entry.num_args;
        self.uses
            .iter()
            .enumerate()
            .filter_map(move |(at, register)| Some(((first + at) as u32, register.sole_writer?)))
    }

    fn set_sole_writer(&mut self, register: u32, sole_writer: Option<u32>) {
        let at = (register as usize).checked_sub(self.entry.num_args);
        if let Some(place) = at.and_then(|at| self.uses.get_mut(at)) {
            let plan = sole_writer.or(place.sole_writer);
            place.sole_writer = sole_writer;
            if let Some(plan) = plan.and_then(|plan| self.plans.get_mut(plan as usize)) {
                plan.has_own_register = sole_writer.is_some();
            }
        }
    }

    /// An instruction in the form that makes use of its register having a sole writer, or none.
    fn with_sole_writer(&self, at: usize) -> Option<ResolvedOp> {
        match *self.resolved.get(at)? {
            ResolvedOp::Kill { dst } => {
                let plan = self.sole_writer(dst)?;
                Some(match self.kind(plan)? {
                    BuiltinKind::Tensor { storage_plan: Some(storage_plan), offset: 0, .. } => {
                        ResolvedOp::ReleaseAlias { dst, plan, storage_plan: *storage_plan }
                    }
                    _ => ResolvedOp::ReleaseCached { dst, plan },
                })
            }
            ResolvedOp::Make { plan, dst, length } if self.sole_writer(dst) == Some(plan) => match *self.kind(plan)? {
                BuiltinKind::Alone { dims: Dims::Known(_), .. } => Some(ResolvedOp::MakeCached { plan, dst, length }),
                BuiltinKind::Tensor {
                    storage: Operand::Register(storage),
                    dims: Dims::Known(_),
                    storage_plan: Some(storage_plan),
                    ..
                } => Some(ResolvedOp::MakeAlias { plan, dst, storage, storage_plan }),
                _ => None,
            },
            ResolvedOp::Make { plan, dst, length: 1 } => match *self.kind(plan)? {
                BuiltinKind::Shape { dims: Dims::OfTensor(Operand::Register(tensor)) } => {
                    Some(ResolvedOp::ShapeOf { tensor, dst })
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Brings storages and the tensors in them together, where each has a register of its own. A tensor in a storage without one counts as without one: as
    /// long as it waits, the storage is not free.
    fn settle_aliases(&mut self) {
        let storage_plan = |(register, alias): (u32, u32)| match self.kind(alias)? {
            BuiltinKind::Tensor { storage: Operand::Register(storage), .. } => {
                Some((register, alias, self.sole_writer(*storage)))
            }
            BuiltinKind::Tensor { .. } => Some((register, alias, None)),
            _ => None,
        };
        // All are found before one is changed.
        let found: Vec<(u32, u32, Option<u32>)> = self.own_registers().filter_map(storage_plan).collect();
        for (register, alias, by) in found {
            let Some(by) = by else {
                self.set_sole_writer(register, None);
                continue;
            };
            if let Some(DecodedBuiltin { kind: BuiltinKind::Tensor { storage_plan, .. }, .. }) =
                self.plans.get_mut(alias as usize)
            {
                *storage_plan = Some(by);
            }
            if let Some(DecodedBuiltin { kind: BuiltinKind::Storage { aliases, .. }, .. }) =
                self.plans.get_mut(by as usize)
            {
                aliases.push(alias);
            }
        }
    }
}
