//! The decoded program.
//!
//! Reading words, looking up what a function index means, and asking whether a callee is a builtin happen once, here.
//! What is left for the interpreter is an array of [`Op`]s, one for each instruction of the executable, with jump
//! targets as absolute positions and arguments in one array of [`Operand`]s.

use relaxide_ffi::{Any, Error, ErrorKind};

use super::link::Callee;
use super::plan::Plan;
use crate::builtins::{self, Builtin};
use crate::bytecode::{Arg, Args, Instruction, Register};
use crate::executable::FuncKind;
use crate::verifier::VerifiedExecutable;

/// A range of the operand array.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operands {
    start: u32,
    len: u32,
}

/// One argument.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operand {
    Register(u32),
    Immediate(i64),
    Constant(u32),
    Function(u32),
    Machine,
    Null,
}

/// Where a result goes; `None` if it is dropped.
pub(super) type Destination = Option<u32>;

/// One instruction.
#[derive(Clone, Copy)]
pub(super) enum Op {
    /// Call a function from outside.
    Packed { func: u32, args: Operands, dst: Destination },
    /// Run a builtin.
    Builtin { builtin: &'static Builtin, func: u32, args: Operands, dst: Destination },
    /// Run a builtin whose operands are known.
    Planned { plan: u32, func: u32, args: Operands, dst: Destination },
    /// Call a value; if it is a closure in bytecode, in a frame of this stack.
    InvokeClosure { func: u32, args: Operands, dst: Destination },
    /// Call a function in bytecode, in a frame of this stack.
    Bytecode { func: u32, args: Operands, dst: Destination },
    /// Call a native function that works on a register file.
    Tir { func: u32, args: Operands, dst: Destination },
    /// Clear a register.
    Kill { dst: u32, func: u32, args: Operands },
    /// Return.
    Ret { result: Option<u32> },
    /// Go on elsewhere.
    Goto { target: u32 },
    /// Go on elsewhere if a register is zero.
    If { cond: u32, otherwise: u32 },
}

/// A function of the program.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    /// The first instruction.
    pub(super) start: usize,
    /// How many registers its frame has.
    pub(super) registers: usize,
    /// How many arguments it takes.
    pub(super) num_args: usize,
}

/// The decoded program.
pub(super) struct Program {
    pub(super) ops: Vec<Op>,
    operands: Vec<Operand>,
    pub(super) plans: Vec<Plan>,
    /// By index in the function table; functions from outside have none.
    pub(super) entries: Vec<Entry>,
}

impl Program {
    /// Decodes a program. An error is a program too large for the decoded form.
    pub(super) fn decode(executable: &VerifiedExecutable, callees: &[Callee]) -> Result<Self, Error> {
        let mut program = Self { ops: Vec::new(), operands: Vec::new(), plans: Vec::new(), entries: Vec::new() };
        for function in executable.functions() {
            let has_body = function.kind != FuncKind::Packed;
            program.entries.push(if has_body {
                Entry {
                    start: size(function.start_instr)?,
                    registers: size(function.register_file_size)?,
                    num_args: size(function.num_args)?,
                }
            } else {
                Entry::default()
            });
        }
        for index in 0..executable.num_instructions() {
            let instruction = executable.instruction(index).map_err(|error| invalid(&error.to_string()))?;
            let op = program.decode_one(index, instruction, callees, executable.constants())?;
            program.ops.push(op);
        }
        Ok(program)
    }

    fn decode_one(
        &mut self,
        index: usize,
        instruction: Instruction<'_>,
        callees: &[Callee],
        constants: &[Any],
    ) -> Result<Op, Error> {
        let target = |offset: i64| number(index as i64 + offset);
        Ok(match instruction {
            Instruction::Ret { result: Register::VOID } => Op::Ret { result: None },
            Instruction::Ret { result } => Op::Ret { result: Some(number(result.0)?) },
            Instruction::Goto { offset } => Op::Goto { target: target(offset)? },
            Instruction::If { cond, false_offset } => {
                Op::If { cond: number(cond.0)?, otherwise: target(false_offset)? }
            }
            Instruction::Call { dst, func, args } => {
                let args = self.decode_args(args)?;
                let dst = if dst == Register::VOID { None } else { Some(number(dst.0)?) };
                let func = number(func)?;
                match callees.get(func as usize) {
                    Some(Callee::Packed(_)) => Op::Packed { func, args, dst },
                    Some(Callee::Bytecode) => Op::Bytecode { func, args, dst },
                    Some(Callee::Tir(_)) => Op::Tir { func, args, dst },
                    Some(Callee::Builtin(builtin, _)) => self.decode_builtin(builtin, func, args, dst, constants)?,
                    None => return Err(invalid("a call of a function that does not exist")),
                }
            }
        })
    }

    /// A builtin, as an operation of its own where its name and its operands allow it.
    fn decode_builtin(
        &mut self,
        builtin: &'static Builtin,
        func: u32,
        args: Operands,
        dst: Destination,
        constants: &[Any],
    ) -> Result<Op, Error> {
        Ok(match (builtin.name, dst) {
            (builtins::NULL_VALUE, Some(dst)) => Op::Kill { dst, func, args },
            (builtins::INVOKE_CLOSURE, _) if args.len >= 2 => Op::InvokeClosure { func, args, dst },
            _ => match Plan::of(builtin, self.operands(args), constants) {
                None => Op::Builtin { builtin, func, args, dst },
                Some(plan) => {
                    self.plans.push(plan);
                    Op::Planned { plan: number(self.plans.len() as i64 - 1)?, func, args, dst }
                }
            },
        })
    }

    fn decode_args(&mut self, args: Args<'_>) -> Result<Operands, Error> {
        let start = number(self.operands.len() as i64)?;
        for arg in args.iter() {
            self.operands.push(match arg.map_err(|error| invalid(&error.to_string()))? {
                Arg::Register(Register::VOID) => Operand::Null,
                Arg::Register(Register::VM) => Operand::Machine,
                Arg::Register(register) => Operand::Register(number(register.0)?),
                Arg::Immediate(value) => Operand::Immediate(value),
                Arg::Constant(index) => Operand::Constant(number(index)?),
                Arg::Function(index) => Operand::Function(number(index)?),
            });
        }
        Ok(Operands { start, len: number(args.len() as i64)? })
    }

    /// The operands of a range.
    #[inline]
    pub(super) fn operands(&self, range: Operands) -> &[Operand] {
        let start = range.start as usize;
        self.operands.get(start..start + range.len as usize).unwrap_or_default()
    }
}

fn number(value: i64) -> Result<u32, Error> {
    u32::try_from(value).map_err(|_| invalid("it has more than 4294967295 instructions, operands or registers"))
}

fn size(value: i64) -> Result<usize, Error> {
    usize::try_from(value).map_err(|_| invalid("a function has a negative size"))
}

fn invalid(what: &str) -> Error {
    Error::new(ErrorKind::ValueError, format!("cannot decode the program: {what}"))
}
