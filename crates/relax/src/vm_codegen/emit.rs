//! Where the instructions of a function go: to bytecode, or to a native function.

use relaxide_ffi::Any;
use relaxide_vm::{Arg, BuildError, ExecBuilder, FuncKind, Register};

/// What is called.
#[derive(Clone, Copy, Debug)]
pub enum Callee<'a> {
    /// A builtin or another function that the runtime has; nothing comes back unless somebody asks.
    Runtime(&'a str),
    /// A function from outside, which may return anything.
    Extern(&'a str),
    /// A kernel of the module.
    Kernel(&'a str),
    /// A Relax function of the module.
    Function(&'a str),
}

/// Takes the instructions of one function, in order.
pub trait Emit {
    /// The argument that passes a constant.
    fn constant(&mut self, value: Any) -> Arg;

    /// The argument that passes a function.
    fn function(&mut self, symbol: &str, kind: FuncKind) -> Arg;

    /// A call.
    fn call(&mut self, callee: Callee<'_>, args: &[Arg], dst: Register) -> Result<(), BuildError>;

    /// Says what the instructions were made of that came since this was said last.
    fn origin(&mut self, words: &str) {
        let _ = words;
    }

    /// Begins what happens if a condition holds. `fresh` gives a free register.
    fn begin_if(&mut self, condition: Arg, fresh: &mut dyn FnMut() -> Register) -> Result<(), BuildError>;

    /// Begins what happens otherwise.
    fn otherwise(&mut self) -> Result<(), BuildError>;

    /// Ends the innermost branch.
    fn end_if(&mut self) -> Result<(), BuildError>;

    /// Whether the function can jump back to its beginning.
    fn can_restart(&self) -> bool {
        false
    }

    /// Jumps back to the beginning of the function, whose parameters have new values.
    fn restart(&mut self) -> Result<(), BuildError> {
        Err(BuildError::OutsideFunction)
    }

    /// The end of the function.
    fn ret(&mut self, result: Arg, fresh: &mut dyn FnMut() -> Register) -> Result<(), BuildError>;
}

/// Emits bytecode.
pub struct Bytecode<'a> {
    pub builder: &'a mut ExecBuilder,
    /// The jumps of open branches that still have to learn where they lead.
    pub open: Vec<usize>,
    /// The function's first instruction.
    pub first: usize,
    /// The first instruction of which is not said what it was made of.
    pub unsaid: usize,
}

impl Emit for Bytecode<'_> {
    fn origin(&mut self, words: &str) {
        self.builder.add_origin(self.unsaid, words);
        self.unsaid = self.builder.next_instruction();
    }

    fn constant(&mut self, value: Any) -> Arg {
        self.builder.constant(value)
    }

    fn function(&mut self, symbol: &str, kind: FuncKind) -> Arg {
        Arg::Function(self.builder.declare_function(symbol, kind) as i64)
    }

    fn call(&mut self, callee: Callee<'_>, args: &[Arg], dst: Register) -> Result<(), BuildError> {
        let name = match callee {
            Callee::Runtime(name) | Callee::Extern(name) | Callee::Kernel(name) => name,
            Callee::Function(name) => {
                self.builder.declare_function(name, FuncKind::Vm);
                name
            }
        };
        self.builder.emit_call(name, args, dst).map(|_| ())
    }

    fn begin_if(&mut self, condition: Arg, fresh: &mut dyn FnMut() -> Register) -> Result<(), BuildError> {
        let flag = fresh();
        self.call(Callee::Runtime("vm.builtin.read_if_cond"), &[condition], flag)?;
        self.open.push(self.builder.emit_if(flag, 2)?);
        Ok(())
    }

    fn otherwise(&mut self) -> Result<(), BuildError> {
        let skip = self.builder.emit_goto(1)?;
        self.end_if()?;
        self.open.push(skip);
        Ok(())
    }

    fn end_if(&mut self) -> Result<(), BuildError> {
        let here = self.builder.next_instruction();
        match self.open.pop() {
            Some(jump) => self.builder.set_jump_target(jump, here),
            None => Err(BuildError::OutsideFunction),
        }
    }

    fn can_restart(&self) -> bool {
        true
    }

    fn restart(&mut self) -> Result<(), BuildError> {
        let jump = self.builder.emit_goto(1)?;
        self.builder.set_jump_target(jump, self.first)
    }

    fn ret(&mut self, result: Arg, fresh: &mut dyn FnMut() -> Register) -> Result<(), BuildError> {
        let register = match result {
            Arg::Register(register) if !register.is_special() => register,
            Arg::Register(Register::VOID) => {
                let dst = fresh();
                self.call(Callee::Runtime("vm.builtin.null_value"), &[], dst)?;
                dst
            }
            other => {
                let dst = fresh();
                self.call(Callee::Runtime("vm.builtin.copy"), &[other], dst)?;
                dst
            }
        };
        self.builder.emit_ret(register).map(|_| ())
    }
}
