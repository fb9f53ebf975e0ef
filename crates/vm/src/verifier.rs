//! What the VM takes for granted, proved once.
//!
//! The interpreter does not check indices: it runs only what this module has passed. [`verify`] goes through an
//! executable from anywhere and either yields a [`VerifiedExecutable`] or names the function, the instruction and the
//! broken rule.
//!
//! Rules of the function table: a bytecode function has a range of instructions that is not empty, lies inside the
//! code and shares nothing with another function; its frame holds its arguments and is not absurdly large; it has a
//! name for every parameter, or none; it does not run off its end. A compiled function's frame also holds its result.
//!
//! Rules of the code: instructions lie one behind the other and fill the code; registers are inside the frame, or
//! special where that means something; constants and functions exist; a call of a function whose arity is known has
//! that many arguments; a jump stays inside its function and moves; a branch leaves room for its true side.
//!
//! The cost is one pass over the code. What it does not prove: that loops end, that values have the types that
//! functions want (they check), or anything about native code.

use std::fmt;
use std::sync::Arc;

use crate::bytecode::{Arg, Args, BytecodeError, Instruction, Register};
use crate::executable::{Executable, FuncInfo, FuncKind};

/// The largest frame of a function, in registers.
pub const MAX_REGISTERS: i64 = 1 << 20;

/// An executable that keeps every rule. There is no other way to make one than [`verify`].
#[derive(Clone, Debug)]
pub struct VerifiedExecutable(Arc<Executable>);

impl std::ops::Deref for VerifiedExecutable {
    type Target = Executable;

    fn deref(&self) -> &Executable {
        &self.0
    }
}

/// Checks an executable.
pub fn verify(executable: Arc<Executable>) -> Result<VerifiedExecutable, VerifyError> {
    check(&executable)?;
    Ok(VerifiedExecutable(executable))
}

/// A rule that an executable breaks, and where. The file is damaged, or was made by a broken compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyError {
    /// The function, if the rule is about one.
    pub function: Option<String>,
    /// The number of the instruction, if the rule is about one.
    pub instruction: Option<usize>,
    /// The rule.
    pub rule: Rule,
}

impl std::error::Error for VerifyError {}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the VM executable is not valid")?;
        if let Some(function) = &self.function {
            write!(f, ", function \"{function}\"")?;
        }
        if let Some(instruction) = self.instruction {
            write!(f, ", instruction {instruction}")?;
        }
        write!(f, ": {}", self.rule)
    }
}

/// A rule, as broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // Each variant's text says what its fields are.
pub enum Rule {
    #[error("its code, instructions {start}..{end}, is empty or not among the {instructions} that exist")]
    Range { start: i64, end: i64, instructions: usize },
    #[error("its code overlaps that of function \"{other}\"")]
    Overlap { other: String },
    #[error("it has {num_args} arguments")]
    NumArgs { num_args: i64 },
    #[error("it has {registers} registers, where {least} to {most} are possible")]
    FrameSize { registers: i64, least: i64, most: i64 },
    #[error("it has {num_args} arguments and {names} names for them")]
    ParamNames { num_args: i64, names: usize },
    #[error("it runs off its end: the last instruction is neither a return nor a jump")]
    FallsOff,
    #[error("it begins at word {found}, not right behind its predecessor at {expected}")]
    NotContiguous { found: i64, expected: usize },
    #[error("{0} words follow the last instruction")]
    TrailingWords(usize),
    #[error(transparent)]
    Bytecode(BytecodeError),
    #[error("register {register} is not in the frame of {frame} registers")]
    Register { register: Register, frame: usize },
    #[error("constant index {index} exceeds the constant pool of {constants}")]
    Constant { index: i64, constants: usize },
    #[error("function index {index} exceeds the function table of {functions}")]
    Function { index: i64, functions: usize },
    #[error("it calls \"{callee}\" with {found} arguments instead of {expected}")]
    Arity { callee: String, found: usize, expected: i64 },
    #[error("it jumps by {offset}, which leads to itself or out of the function")]
    Jump { offset: i64 },
    #[error("it branches by {false_offset}, which leaves no room for the true side")]
    Branch { false_offset: i64 },
    #[error("the memory scope \"{scope}\" is for constant {index} of {constants}")]
    MemoryScope { scope: String, index: i64, constants: usize },
}

/// Checks an executable without wrapping it.
pub(crate) fn check(executable: &Executable) -> Result<(), VerifyError> {
    check_memory_scopes(executable)?;
    check_layout(executable)?;
    check_overlaps(executable)?;
    for function in executable.functions() {
        let fail = |rule| VerifyError { function: Some(function.name.clone()), instruction: None, rule };
        check_signature(function).map_err(fail)?;
        if function.kind == FuncKind::Vm {
            let frame = usize::try_from(function.register_file_size).unwrap_or(0);
            check_body(&FunctionBody { executable, function, frame })?;
        }
    }
    Ok(())
}

fn check_memory_scopes(executable: &Executable) -> Result<(), VerifyError> {
    let constants = executable.constants.len();
    let outside = |index: i64| usize::try_from(index).is_ok_and(|index| index < constants);
    match executable.memory_scopes.iter().find(|entry| !outside(entry.constant)) {
        None => Ok(()),
        Some(entry) => {
            let rule = Rule::MemoryScope { scope: entry.scope.clone(), index: entry.constant, constants };
            Err(VerifyError { function: None, instruction: None, rule })
        }
    }
}

/// Instructions lie one behind the other. This also bounds the work that the rest does.
fn check_layout(executable: &Executable) -> Result<(), VerifyError> {
    let mut expected = 0;
    for (index, found) in executable.instr_offset.iter().enumerate() {
        let fail = |rule| VerifyError { function: None, instruction: Some(index), rule };
        if usize::try_from(*found) != Ok(expected) {
            return Err(fail(Rule::NotContiguous { found: *found, expected }));
        }
        let instruction = executable.instruction(index).map_err(|error| fail(Rule::Bytecode(error)))?;
        expected += instruction.words();
    }
    match executable.instr_data.len().saturating_sub(expected) {
        0 => Ok(()),
        words => Err(VerifyError { function: None, instruction: None, rule: Rule::TrailingWords(words) }),
    }
}

fn check_overlaps(executable: &Executable) -> Result<(), VerifyError> {
    let mut bodies: Vec<&FuncInfo> = executable.functions().iter().filter(|f| f.kind == FuncKind::Vm).collect();
    let instructions = executable.num_instructions();
    for function in &bodies {
        let (start, end) = (function.start_instr, function.end_instr);
        if start < 0 || start >= end || end > instructions as i64 {
            let rule = Rule::Range { start, end, instructions };
            return Err(VerifyError { function: Some(function.name.clone()), instruction: None, rule });
        }
    }
    bodies.sort_by_key(|function| function.start_instr);
    for pair in bodies.windows(2) {
        if let [first, second] = pair
            && first.end_instr > second.start_instr
        {
            let rule = Rule::Overlap { other: first.name.clone() };
            return Err(VerifyError { function: Some(second.name.clone()), instruction: None, rule });
        }
    }
    Ok(())
}

fn check_signature(function: &FuncInfo) -> Result<(), Rule> {
    let FuncInfo { num_args, register_file_size: registers, .. } = *function;
    let (least, most) = match function.kind {
        FuncKind::Packed => return Ok(()),
        // Registers that no instruction writes would only make the frame large.
        FuncKind::Vm => (num_args, num_args.saturating_add(function.end_instr.saturating_sub(function.start_instr))),
        // The result lies behind the arguments.
        FuncKind::VmTir => (num_args.saturating_add(1), MAX_REGISTERS),
    };
    if num_args < 0 {
        return Err(Rule::NumArgs { num_args });
    }
    let most = most.min(MAX_REGISTERS);
    if registers < least || registers > most {
        return Err(Rule::FrameSize { registers, least, most });
    }
    match function.param_names.len() {
        0 => Ok(()),
        names if names as i64 == num_args => Ok(()),
        names => Err(Rule::ParamNames { num_args, names }),
    }
}

struct FunctionBody<'a> {
    executable: &'a Executable,
    function: &'a FuncInfo,
    frame: usize,
}

fn check_body(body: &FunctionBody<'_>) -> Result<(), VerifyError> {
    let name = || Some(body.function.name.clone());
    let mut last = None;
    for entry in body.executable.instructions_of(body.function) {
        let (index, instruction) =
            entry.map_err(|error| VerifyError { function: name(), instruction: None, rule: Rule::Bytecode(error) })?;
        body.check(index, &instruction).map_err(|rule| VerifyError {
            function: name(),
            instruction: Some(index),
            rule,
        })?;
        last = Some(instruction);
    }
    match last {
        Some(Instruction::Ret { .. } | Instruction::Goto { .. }) => Ok(()),
        _ => Err(VerifyError { function: name(), instruction: None, rule: Rule::FallsOff }),
    }
}

impl FunctionBody<'_> {
    fn check(&self, index: usize, instruction: &Instruction<'_>) -> Result<(), Rule> {
        match *instruction {
            Instruction::Call { dst, func, args } => {
                if dst != Register::VOID {
                    self.register(dst)?;
                }
                self.args(args)?;
                self.arity(func, args)
            }
            Instruction::Ret { result: Register::VOID } => Ok(()),
            Instruction::Ret { result } => self.register(result),
            Instruction::Goto { offset } => self.jump(index, offset),
            Instruction::If { cond, false_offset } => {
                self.register(cond)?;
                if false_offset <= 1 {
                    return Err(Rule::Branch { false_offset });
                }
                self.jump(index, false_offset)
            }
        }
    }

    fn register(&self, register: Register) -> Result<(), Rule> {
        let inside = register.index_in(self.frame);
        inside.map(|_| ()).ok_or(Rule::Register { register, frame: self.frame })
    }

    fn args(&self, args: Args<'_>) -> Result<(), Rule> {
        let constants = self.executable.constants.len();
        for arg in args.iter() {
            match arg.map_err(Rule::Bytecode)? {
                Arg::Register(Register::VOID | Register::VM) | Arg::Immediate(_) => {}
                Arg::Register(register) => self.register(register)?,
                Arg::Constant(index) if usize::try_from(index).is_ok_and(|i| i < constants) => {}
                Arg::Constant(index) => return Err(Rule::Constant { index, constants }),
                Arg::Function(index) => self.callee(index).map(|_| ())?,
            }
        }
        Ok(())
    }

    fn callee(&self, index: i64) -> Result<&FuncInfo, Rule> {
        let functions = self.executable.functions();
        let found = usize::try_from(index).ok().and_then(|index| functions.get(index));
        found.ok_or(Rule::Function { index, functions: functions.len() })
    }

    fn arity(&self, func: i64, args: Args<'_>) -> Result<(), Rule> {
        let callee = self.callee(func)?;
        if callee.kind == FuncKind::Packed || callee.num_args == args.len() as i64 {
            return Ok(());
        }
        Err(Rule::Arity { callee: callee.name.clone(), found: args.len(), expected: callee.num_args })
    }

    fn jump(&self, index: usize, offset: i64) -> Result<(), Rule> {
        let target = i64::try_from(index).ok().and_then(|index| index.checked_add(offset));
        let inside = target.is_some_and(|t| (self.function.start_instr..self.function.end_instr).contains(&t));
        if offset == 0 || !inside { Err(Rule::Jump { offset }) } else { Ok(()) }
    }
}
