//! Dense register numbers.
//!
//! A compiler hands out register numbers as it goes; what survives optimisation has holes. This step renumbers the
//! registers of each function in order of first definition, behind the parameters, so that the frame is as small as
//! the code allows, and refuses a register that is read before anything defines it.
//!
//! ```text
//! call f in: %0 dst: %7        call f in: %0 dst: %1
//! call g in: %7 dst: %3   ->   call g in: %1 dst: %2
//! ret  %3                      ret  %2
//! ```

use std::collections::HashMap;

use crate::builder::BuildError;
use crate::bytecode::{Arg, Instruction, Register};
use crate::executable::{Executable, FuncKind};

/// Renumbers the registers of every bytecode function and sets the sizes of the frames.
pub(crate) fn formalize(executable: &mut Executable) -> Result<(), BuildError> {
    for index in 0..executable.functions.len() {
        let Some(function) = executable.functions.get(index).filter(|f| f.kind == FuncKind::Vm) else { continue };
        let mut frame = Frame::new(&function.name, function.num_args);
        let (start, end) = (function.start_instr, function.end_instr);
        for instr in start..end {
            let instr = usize::try_from(instr).unwrap_or(usize::MAX);
            frame.rewrite(executable, instr)?;
        }
        let size = frame.next;
        if let Some(function) = executable.functions.get_mut(index) {
            function.register_file_size = size;
        }
    }
    Ok(())
}

/// The renumbering of one function.
struct Frame {
    function: String,
    num_args: i64,
    numbers: HashMap<i64, i64>,
    next: i64,
}

impl Frame {
    fn new(function: &str, num_args: i64) -> Self {
        Self { function: function.to_owned(), num_args, numbers: HashMap::new(), next: num_args }
    }

    fn rewrite(&mut self, executable: &mut Executable, instr: usize) -> Result<(), BuildError> {
        let at = executable.instr_offset.get(instr).and_then(|at| usize::try_from(*at).ok()).unwrap_or(usize::MAX);
        let mut patches: Vec<(usize, i64)> = Vec::new();
        match executable.instruction(instr)? {
            Instruction::Call { dst, args, .. } => {
                for (position, arg) in args.iter().enumerate() {
                    if let Arg::Register(register) = arg? {
                        patches.push((4 + position, Arg::Register(self.used(register)?).to_word()?));
                    }
                }
                patches.push((1, self.defined(dst).0));
            }
            Instruction::Ret { result } => patches.push((1, self.used(result)?.0)),
            Instruction::If { cond, .. } => patches.push((1, self.used(cond)?.0)),
            Instruction::Goto { .. } => {}
        }
        for (field, word) in patches {
            if let Some(place) = at.checked_add(field).and_then(|p| executable.instr_data.get_mut(p)) {
                *place = word;
            }
        }
        Ok(())
    }

    /// Special registers and parameters keep their numbers.
    fn is_fixed(&self, register: Register) -> bool {
        register.is_special() || (0..self.num_args).contains(&register.0)
    }

    fn used(&self, register: Register) -> Result<Register, BuildError> {
        if self.is_fixed(register) {
            return Ok(register);
        }
        let number = self.numbers.get(&register.0).copied().map(Register);
        let function = self.function.clone();
        number.ok_or(BuildError::UndefinedRegister { function, register: register.0 })
    }

    fn defined(&mut self, register: Register) -> Register {
        if self.is_fixed(register) {
            return register;
        }
        let next = &mut self.next;
        Register(*self.numbers.entry(register.0).or_insert_with(|| {
            *next += 1;
            *next - 1
        }))
    }
}
