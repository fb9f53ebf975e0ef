//! Building an executable one instruction at a time.
//!
//! The compiler's last step emits calls, returns and jumps here, by function name and with whatever register numbers
//! it likes; [`ExecBuilder::get`] renumbers the registers of each function densely, in order of first definition
//! behind the parameters, and checks the result.
//!
//! ```
//! use relaxide_vm::{Arg, ExecBuilder, Register};
//!
//! let mut builder = ExecBuilder::new();
//! builder.begin_function("main", &["x"])?;
//! builder.emit_call("double", &[Arg::Register(Register(0))], Register(7))?;
//! builder.emit_ret(Register(7))?;
//! builder.end_function()?;
//! let executable = builder.get()?;
//! assert!(executable.as_text()?.contains("call  double           in: %0           dst: %1"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::HashMap;

use relaxide_ffi::Any;
use relaxide_ffi::abi::type_index;

use crate::bytecode::{Arg, BytecodeError, Opcode, Register};
use crate::executable::{Executable, FuncInfo, FuncKind, MemoryScope, UNDEFINED_NUM_ARGS, digest, same};
use crate::formalize;
use crate::labels::LabelUse;
use crate::verifier::{VerifyError, check};

/// Why an executable cannot be built. The caller emitted something that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// An instruction outside a function.
    #[error("instructions are emitted inside a function: call begin_function first")]
    OutsideFunction,
    /// A function inside a function.
    #[error("function {inner} begins inside function {outer}: call end_function first")]
    Nested {
        /// The open function.
        outer: String,
        /// The one that was to begin.
        inner: String,
    },
    /// A name is defined twice.
    #[error("function {0} is already defined")]
    Redefined(String),
    /// A function was declared as bytecode and has no body.
    #[error("function {0} is declared and never defined")]
    Undefined(String),
    /// A function is named as an argument and nobody declared it.
    #[error("cannot find function {0}: declare it before it is passed on")]
    UnknownFunction(String),
    /// A number of parameters that does not fit.
    #[error("function {name} has {registers} registers, too few for {num_args} arguments and the result")]
    TooFewRegisters {
        /// The function.
        name: String,
        /// Its registers.
        registers: i64,
        /// Its arguments.
        num_args: usize,
    },
    /// A register is read that nothing before it defines.
    #[error(
        "register {register} in VM function \"{function}\" is used as input while it is never defined as a destination"
    )]
    UndefinedRegister {
        /// The function.
        function: String,
        /// The register, as it was emitted.
        register: i64,
    },
    /// A label of another builder.
    #[error("label {0} is not one of this builder")]
    UnknownLabel(usize),
    /// A jump leads to a label that names no place.
    #[error("a jump leads to label {0}, which was never bound")]
    UnboundLabel(usize),
    /// A label names two places.
    #[error("label {0} is bound twice")]
    LabelBoundTwice(usize),
    /// A patched instruction is not a jump.
    #[error("instruction {0} is not a jump, its offset cannot be set")]
    NotAJump(usize),
    /// Words that are not an instruction, or a value that does not fit one.
    #[error(transparent)]
    Bytecode(#[from] BytecodeError),
    /// The executable breaks a rule of the verifier.
    #[error(transparent)]
    Verify(#[from] VerifyError),
}

/// Builds an [`Executable`].
#[derive(Debug, Default)]
pub struct ExecBuilder {
    executable: Executable,
    /// The function that instructions go to.
    open: Option<usize>,
    /// Constants by digest, so that equal ones share a place.
    constants: HashMap<u64, Vec<usize>>,
    pub(crate) labels: Vec<LabelUse>,
}

impl ExecBuilder {
    /// A builder of an empty executable.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a function in the table, if its name is not there yet, and returns its index. A function that only calls
    /// mention is [`FuncKind::Packed`].
    pub fn declare_function(&mut self, name: &str, kind: FuncKind) -> usize {
        if let Some((index, _)) = self.executable.function(name) {
            return index;
        }
        self.executable.push_function(FuncInfo {
            kind,
            name: name.to_owned(),
            start_instr: 0,
            end_instr: 0,
            num_args: UNDEFINED_NUM_ARGS,
            register_file_size: 0,
            param_names: Vec::new(),
        })
    }

    /// Begins a bytecode function with named parameters. They are registers `0..n`.
    pub fn begin_function(&mut self, name: &str, params: &[impl AsRef<str>]) -> Result<usize, BuildError> {
        let index = self.begin_unnamed(name, params.len())?;
        if let Some(function) = self.executable.functions.get_mut(index) {
            function.param_names = params.iter().map(|param| param.as_ref().to_owned()).collect();
        }
        Ok(index)
    }

    /// Begins a bytecode function whose parameters have no names.
    pub fn begin_unnamed(&mut self, name: &str, num_args: usize) -> Result<usize, BuildError> {
        if let Some(outer) = self.open.and_then(|index| self.executable.functions.get(index)) {
            return Err(BuildError::Nested { outer: outer.name.clone(), inner: name.to_owned() });
        }
        let start = self.executable.num_instructions() as i64;
        let index = self.define(name, FuncKind::Vm, num_args)?;
        if let Some(function) = self.executable.functions.get_mut(index) {
            function.start_instr = start;
        }
        self.open = Some(index);
        Ok(index)
    }

    /// Ends the open function.
    pub fn end_function(&mut self) -> Result<(), BuildError> {
        let index = self.open.take().ok_or(BuildError::OutsideFunction)?;
        let end = self.executable.num_instructions() as i64;
        if let Some(function) = self.executable.functions.get_mut(index) {
            function.end_instr = end;
        }
        Ok(())
    }

    /// Adds a function that exists as native code, under the symbol `__vmtir__<name>`, and works on a register file of
    /// the given size: arguments first, the result right behind them.
    pub fn add_tir_function(
        &mut self,
        name: &str,
        params: &[impl AsRef<str>],
        registers: i64,
    ) -> Result<usize, BuildError> {
        if registers <= params.len() as i64 {
            return Err(BuildError::TooFewRegisters { name: name.to_owned(), registers, num_args: params.len() });
        }
        let index = self.define(name, FuncKind::VmTir, params.len())?;
        if let Some(function) = self.executable.functions.get_mut(index) {
            function.register_file_size = registers;
            function.param_names = params.iter().map(|param| param.as_ref().to_owned()).collect();
        }
        Ok(index)
    }

    /// Turns a declared or new name into a defined function. A name that only calls have mentioned so far is not yet
    /// known to be from outside, so its kind is settled here.
    fn define(&mut self, name: &str, kind: FuncKind, num_args: usize) -> Result<usize, BuildError> {
        let index = self.declare_function(name, kind);
        match self.executable.functions.get_mut(index) {
            Some(function) if function.num_args == UNDEFINED_NUM_ARGS => {
                function.kind = kind;
                function.num_args = num_args as i64;
                Ok(index)
            }
            _ => Err(BuildError::Redefined(name.to_owned())),
        }
    }

    /// The argument that passes a constant: an immediate if it is a small integer, else a place in the pool, which
    /// equal constants share.
    pub fn constant(&mut self, value: impl Into<Any>) -> Arg {
        let value = value.into();
        if value.type_index() == type_index::INT
            && let Some(int) = value.as_int()
        {
            // TVM leaves the largest magnitude to the pool too.
            if (-Arg::VALUE_LIMIT..=Arg::VALUE_LIMIT).contains(&int) {
                return Arg::Immediate(int);
            }
        }
        Arg::Constant(self.pool_index(value) as i64)
    }

    fn pool_index(&mut self, value: Any) -> usize {
        let pool = &mut self.executable.constants;
        let Some(digest) = digest(&value) else {
            pool.push(value);
            return pool.len() - 1;
        };
        let alike = self.constants.entry(digest).or_default();
        let found = alike.iter().copied().find(|index| pool.get(*index).is_some_and(|other| same(other, &value)));
        found.unwrap_or_else(|| {
            alike.push(pool.len());
            pool.push(value);
            pool.len() - 1
        })
    }

    /// Says in which memory scope a constant is to be put when the VM starts.
    pub fn set_memory_scope(&mut self, constant: i64, scope: &str) {
        let scopes = &mut self.executable.memory_scopes;
        scopes.retain(|entry| entry.constant != constant);
        scopes.push(MemoryScope { constant, scope: scope.to_owned() });
    }

    /// The argument that passes a function as a value.
    pub fn function(&self, name: &str) -> Result<Arg, BuildError> {
        let found = self.executable.function(name);
        found.map(|(index, _)| Arg::Function(index as i64)).ok_or_else(|| BuildError::UnknownFunction(name.to_owned()))
    }

    /// The kind of a function that was declared or defined.
    pub fn kind_of(&self, name: &str) -> Option<FuncKind> {
        self.executable.function(name).map(|(_, function)| function.kind)
    }

    /// Emits a call; returns the number of the instruction.
    pub fn emit_call(&mut self, name: &str, args: &[Arg], dst: Register) -> Result<usize, BuildError> {
        self.inside()?;
        let func = self.declare_function(name, FuncKind::Packed);
        let mut words = vec![Opcode::Call as i64, dst.0, func as i64, args.len() as i64];
        for arg in args {
            words.push(arg.to_word()?);
        }
        self.emit(&words)
    }

    /// Emits a return; returns the number of the instruction.
    pub fn emit_ret(&mut self, result: Register) -> Result<usize, BuildError> {
        self.emit(&[Opcode::Ret as i64, result.0])
    }

    /// Emits a jump by `offset` instructions; returns the number of the instruction.
    pub fn emit_goto(&mut self, offset: i64) -> Result<usize, BuildError> {
        self.emit(&[Opcode::Goto as i64, offset])
    }

    /// Emits a branch that jumps by `false_offset` instructions if the register is zero; returns the number of the
    /// instruction.
    pub fn emit_if(&mut self, cond: Register, false_offset: i64) -> Result<usize, BuildError> {
        self.emit(&[Opcode::If as i64, cond.0, false_offset])
    }

    /// Says what the instructions from `first` up to the next one were made of.
    pub fn add_origin(&mut self, first: usize, words: &str) {
        let end = self.next_instruction();
        self.executable.origins.add(first, end, words);
    }

    /// The number that the next instruction will have.
    pub fn next_instruction(&self) -> usize {
        self.executable.num_instructions()
    }

    /// Makes the jump at instruction `jump` lead to instruction `target`. A compiler emits a forward jump before it
    /// knows how far it goes.
    pub fn set_jump_target(&mut self, jump: usize, target: usize) -> Result<(), BuildError> {
        let offset = target as i64 - jump as i64;
        let at = self.executable.instr_offset.get(jump).and_then(|at| usize::try_from(*at).ok());
        let words = at.and_then(|at| self.executable.instr_data.get_mut(at..)).ok_or(BuildError::NotAJump(jump))?;
        let field = match words.first().copied().and_then(Opcode::from_word) {
            Some(Opcode::Goto) => words.get_mut(1),
            Some(Opcode::If) => words.get_mut(2),
            _ => None,
        };
        *field.ok_or(BuildError::NotAJump(jump))? = offset;
        Ok(())
    }

    /// Renumbers registers, checks, and hands the executable over.
    pub fn get(mut self) -> Result<Executable, BuildError> {
        if let Some(function) = self.open.and_then(|index| self.executable.functions.get(index)) {
            return Err(BuildError::Undefined(function.name.clone()));
        }
        let lacks_body = |f: &&FuncInfo| f.kind != FuncKind::Packed && f.num_args == UNDEFINED_NUM_ARGS;
        if let Some(function) = self.executable.functions.iter().find(lacks_body) {
            return Err(BuildError::Undefined(function.name.clone()));
        }
        self.settle_labels()?;
        formalize::formalize(&mut self.executable)?;
        check(&self.executable)?;
        Ok(self.executable)
    }

    fn inside(&self) -> Result<(), BuildError> {
        if self.open.is_some() { Ok(()) } else { Err(BuildError::OutsideFunction) }
    }

    fn emit(&mut self, words: &[i64]) -> Result<usize, BuildError> {
        self.inside()?;
        let index = self.executable.num_instructions();
        self.executable.instr_offset.push(self.executable.instr_data.len() as i64);
        self.executable.instr_data.extend_from_slice(words);
        Ok(index)
    }
}
