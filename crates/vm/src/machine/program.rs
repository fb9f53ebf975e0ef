//! The decoded program.
//!
//! Reading words and looking up what a function index means happen once, here. What is left is an array of [`Decoded`]s, one for
//! each instruction of the executable, with jump targets as absolute positions and arguments in one array of
//! [`Operand`]s. From these [`resolve`](super::resolve) makes the form that the interpreter usually runs; the form here is for
//! runs that are instrumented call by call.

use relaxide_ffi::{Any, Error, ErrorKind};

use super::link::Callee;
use super::placed::Placed;
use super::plan::DecodedBuiltin;
use super::resolve::{self, ResolvedOp};
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    Register(u32),
    Immediate(i64),
    Constant(u32),
    Function(u32),
    Machine,
    Null,
}

/// The register for a result, or none if it is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Destination(u32);

impl Destination {
    /// No register. Frames are far smaller than this.
    pub(super) const NONE: Self = Self(u32::MAX);

    fn of(register: Register) -> Result<Self, Error> {
        if register == Register::VOID { Ok(Self::NONE) } else { number(register.0).map(Self) }
    }

    /// The register, if there is one.
    #[inline]
    pub(super) fn register(self) -> Option<u32> {
        (self != Self::NONE).then_some(self.0)
    }
}

/// One instruction.
#[derive(Clone, Copy, Debug)]
pub(super) enum Decoded {
    /// Call an entry of the function table.
    Call { func: u32, args: Operands, dst: Destination },
    /// Return.
    Ret { result: Destination },
    /// Go on elsewhere.
    Goto { target: u32 },
    /// Go on elsewhere if a register is zero.
    If { cond: u32, otherwise: u32 },
}

/// A function of the program.
#[derive(Debug, Default)]
pub(super) struct FunctionEntry {
    /// The first instruction.
    pub(super) start: usize,
    /// The instruction behind the last.
    pub(super) end: usize,
    /// How many registers its frame has.
    pub(super) registers: usize,
    /// How many arguments it takes.
    pub(super) num_args: usize,
    /// The registers whose values go back to the plans that made them when the function returns.
    pub(super) own_registers: Box<[(u32, u32)]>,
}

/// The decoded program.
pub(super) struct Program {
    /// One for each instruction.
    pub(super) ops: Vec<Decoded>,
    /// The same, prepared for running. Positions are the same.
    pub(super) resolved: Vec<ResolvedOp>,
    pub(super) plans: Vec<DecodedBuiltin>,
    operands: Vec<Operand>,
    /// By index in the function table; functions from outside have empty ones.
    pub(super) entries: Vec<FunctionEntry>,
}

impl Program {
    /// Decodes a program. An error is a program too large for the decoded form.
    pub(super) fn decode(
        executable: &VerifiedExecutable,
        callees: &[Callee],
        placed: &mut Placed<'_>,
    ) -> Result<Self, Error> {
        let entries = executable.functions().iter().map(|function| {
            if function.kind == FuncKind::Packed {
                return Ok(FunctionEntry::default());
            }
            Ok(FunctionEntry {
                start: size(function.start_instr)?,
                end: size(function.end_instr)?,
                registers: size(function.register_file_size)?,
                num_args: size(function.num_args)?,
                own_registers: Box::default(),
            })
        });
        let entries = entries.collect::<Result<Vec<_>, Error>>()?;
        let count = executable.num_instructions();
        let (ops, resolved) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let operands = Vec::with_capacity(executable.num_words());
        let mut program = Self { ops, resolved, operands, plans: Vec::new(), entries };
        for index in 0..count {
            let instruction = executable.instruction(index).map_err(|error| invalid(&error.to_string()))?;
            let op = program.decode_one(index, instruction, placed)?;
            program.ops.push(op);
        }
        resolve::prepare(&mut program, callees, executable.constants())?;
        Ok(program)
    }

    fn decode_one(
        &mut self,
        index: usize,
        instruction: Instruction<'_>,
        placed: &mut Placed<'_>,
    ) -> Result<Decoded, Error> {
        let target = |offset: i64| number(index as i64 + offset);
        Ok(match instruction {
            Instruction::Ret { result } => Decoded::Ret { result: Destination::of(result)? },
            Instruction::Goto { offset } => Decoded::Goto { target: target(offset)? },
            Instruction::If { cond, false_offset } => {
                Decoded::If { cond: number(cond.0)?, otherwise: target(false_offset)? }
            }
            Instruction::Call { dst, func, args } => {
                let args = self.decode_args(args)?;
                placed.note(func, self.operands.get_mut(args.start as usize..).unwrap_or_default())?;
                Decoded::Call { func: number(func)?, args, dst: Destination::of(dst)? }
            }
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

pub(super) fn number(value: i64) -> Result<u32, Error> {
    u32::try_from(value).map_err(|_| invalid("it has more than 4294967295 instructions, operands or registers"))
}

fn size(value: i64) -> Result<usize, Error> {
    usize::try_from(value).map_err(|_| invalid("a function has a negative size"))
}

pub(super) fn invalid(what: &str) -> Error {
    Error::new(ErrorKind::ValueError, format!("cannot decode the program: {what}"))
}

/// A constant of the pool.
pub(super) fn constant_at(constants: &[Any], operand: Operand) -> Option<&Any> {
    let Operand::Constant(index) = operand else { return None };
    constants.get(index as usize)
}
