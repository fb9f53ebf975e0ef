//! The verifier: what holds of every instruction, checked once, so that the machine need not look.
//!
//! Registers lie in their function's file; jumps stay in the function and its end is not run past; functions, constants,
//! kernels and devices exist; a function is called with as many arguments as it takes. What only a run can tell, such as
//! what kind of value a register holds, the machine checks there.

use std::sync::Arc;

use crate::executable::{Executable, Form, VmFunction};
use crate::instruction::{Instruction, Size};

/// The most registers of a function; more would take memory that no program needs.
const MAX_REGISTERS: i64 = 1 << 24;

/// Why an executable is not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// The tables do not fit each other.
    #[error("the executable is invalid: {0}")]
    Tables(String),
    /// A function.
    #[error("function {function} is invalid: {problem}")]
    Function {
        /// Its name.
        function: String,
        /// What is wrong.
        problem: String,
    },
    /// An instruction.
    #[error("function {function}, instruction {pc} ({text}): {problem}")]
    Instruction {
        /// The function.
        function: String,
        /// Where in it.
        pc: usize,
        /// In words.
        text: String,
        /// What is wrong.
        problem: Fault,
    },
}

/// What is wrong with an instruction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A jump to where there is no instruction of the function.
    #[error("it jumps to {0}, outside of the function")]
    JumpOutside(i64),
    /// A jump by nothing, or by more than there are numbers.
    #[error("it jumps to itself or to nowhere")]
    JumpNowhere,
    /// A register that the function does not have.
    #[error("there is no register {register}: the function has {count}")]
    Register {
        /// The register.
        register: i64,
        /// How many there are.
        count: i64,
    },
    /// An entry that a table does not have.
    #[error("there is no {what} {index}: there are {count}")]
    Index {
        /// What the table holds.
        what: &'static str,
        /// The entry.
        index: i64,
        /// How many there are.
        count: usize,
    },
    /// A dimension below zero.
    #[error("a dimension is {0}")]
    Dimension(i64),
    /// A call with more or fewer arguments than the function has parameters.
    #[error("{callee} takes {wanted} arguments, not {found}")]
    Arguments {
        /// The function.
        callee: String,
        /// Its parameters.
        wanted: usize,
        /// The arguments.
        found: usize,
    },
    /// A closure over more values than the function has parameters.
    #[error("{captured} values are captured by a function of {params} parameters")]
    Captured {
        /// The values.
        captured: usize,
        /// The parameters.
        params: usize,
    },
    /// More outputs than arguments.
    #[error("{outputs} of {args} arguments are outputs")]
    Outputs {
        /// The outputs.
        outputs: i64,
        /// The arguments.
        args: usize,
    },
    /// A constructor's number that does not fit.
    #[error("a constructor's number has 32 bits, and this is {0}")]
    Tag(i64),
    /// A field that no value has.
    #[error("there is no field {0}")]
    Field(i64),
}

/// An executable that may run.
#[derive(Clone, Debug)]
pub struct VerifiedExecutable(Arc<Executable>);

impl std::ops::Deref for VerifiedExecutable {
    type Target = Executable;

    fn deref(&self) -> &Executable {
        &self.0
    }
}

/// Checks an executable.
pub fn verify(executable: Executable) -> Result<VerifiedExecutable, VerifyError> {
    let tables = |problem: String| Err(VerifyError::Tables(problem));
    if executable.globals.len() != executable.functions.len() {
        let (names, functions) = (executable.globals.len(), executable.functions.len());
        return tables(format!("{names} names of functions and {functions} functions"));
    }
    if executable.constants.len() != executable.constant_devices.len() {
        return tables("there is not a device for each constant".into());
    }
    for (i, (name, function)) in executable.globals.iter().zip(&executable.functions).enumerate() {
        if *name != function.name {
            return tables(format!("function {i} is named {name:?} in one place and {:?} in another", function.name));
        }
    }
    let devices = executable.virtual_devices.len() as i64;
    if let Some(bad) = executable.constant_devices.iter().find(|d| !(0..devices).contains(d)) {
        return tables(format!("a constant is on device {bad}; there are {devices}"));
    }
    executable.functions.iter().try_for_each(|function| check_function(&executable, function))?;
    Ok(VerifiedExecutable(Arc::new(executable)))
}

fn check_function(executable: &Executable, function: &VmFunction) -> Result<(), VerifyError> {
    let refuse = |problem: String| Err(VerifyError::Function { function: function.name.clone(), problem });
    let registers = function.register_file_size;
    if !(0..=MAX_REGISTERS).contains(&registers) {
        return refuse(format!("it has {registers} registers; at most {MAX_REGISTERS} are allowed"));
    }
    if function.params.len() as i64 > registers {
        return refuse(format!("its {} parameters do not fit {registers} registers", function.params.len()));
    }
    if function.params.len() != function.param_devices.len() {
        return refuse("there is not a device for each parameter".into());
    }
    let devices = executable.virtual_devices.len() as i64;
    if let Some(bad) = function.param_devices.iter().find(|d| !(0..devices).contains(d)) {
        return refuse(format!("a parameter is on device {bad}; there are {devices}"));
    }
    match function.instructions.last() {
        Some(Instruction::Ret { .. } | Instruction::Goto { .. } | Instruction::Fatal | Instruction::If { .. }) => {}
        Some(_) => return refuse("its code runs past its end: the last instruction is no return or jump".into()),
        None => return refuse("it has no code".into()),
    }
    for (pc, instruction) in function.instructions.iter().enumerate() {
        check_instruction(executable, function, pc, instruction).map_err(|problem| VerifyError::Instruction {
            function: function.name.clone(),
            pc,
            text: instruction.text(executable.form),
            problem,
        })?;
    }
    Ok(())
}

/// Whether an instruction may jump by an offset.
fn check_jump(function: &VmFunction, pc: usize, offset: i64) -> Result<(), Fault> {
    match (pc as i64).checked_add(offset) {
        Some(target) if offset != 0 && (0..function.instructions.len() as i64).contains(&target) => Ok(()),
        Some(target) if offset != 0 => Err(Fault::JumpOutside(target)),
        _ => Err(Fault::JumpNowhere),
    }
}

fn check_instruction(
    executable: &Executable,
    function: &VmFunction,
    pc: usize,
    instruction: &Instruction,
) -> Result<(), Fault> {
    let registers = function.register_file_size;
    if let Some(bad) = instruction.reads().into_iter().chain(instruction.writes()).find(|r| !(0..registers).contains(r))
    {
        return Err(Fault::Register { register: bad, count: registers });
    }
    let within = |what: &'static str, index: i64, count: usize| {
        if (0..count as i64).contains(&index) { Ok(()) } else { Err(Fault::Index { what, index, count }) }
    };
    let jump = |offset: i64| check_jump(function, pc, offset);
    let dims = |shape: &[i64]| match shape.iter().find(|dim| **dim < 0) {
        Some(dim) => Err(Fault::Dimension(*dim)),
        None => Ok(()),
    };
    let takes = |index: i64, args: usize| {
        let callee = usize::try_from(index).ok().and_then(|i| executable.functions.get(i));
        match callee {
            Some(callee) if callee.params.len() == args => Ok(()),
            Some(callee) => {
                Err(Fault::Arguments { callee: callee.name.clone(), wanted: callee.params.len(), found: args })
            }
            None => Ok(()),
        }
    };
    match instruction {
        Instruction::Invoke { func, args, .. } => {
            within("function", *func, executable.functions.len())?;
            takes(*func, args.len())
        }
        Instruction::AllocClosure { func, free, .. } => {
            within("function", *func, executable.functions.len())?;
            let params =
                usize::try_from(*func).ok().and_then(|i| executable.functions.get(i)).map_or(0, |f| f.params.len());
            match free.len() <= params {
                true => Ok(()),
                false => Err(Fault::Captured { captured: free.len(), params }),
            }
        }
        Instruction::InvokePacked { index, outputs, args } => {
            within("kernel", *index, executable.primitives.len())?;
            match (0..=args.len() as i64).contains(outputs) {
                true => Ok(()),
                false => Err(Fault::Outputs { outputs: *outputs, args: args.len() }),
            }
        }
        Instruction::LoadConst { index, device, .. } => {
            within("constant", *index, executable.constants.len())?;
            match executable.form >= Form::V0_14 {
                true => within("device", *device, executable.virtual_devices.len()),
                false => Ok(()),
            }
        }
        Instruction::If { then, other, .. } => jump(*then).and_then(|()| jump(*other)),
        Instruction::Goto { offset } => jump(*offset),
        Instruction::AllocAdt { tag, .. } if i32::try_from(*tag).is_err() => Err(Fault::Tag(*tag)),
        Instruction::GetField { index, .. } if *index < 0 => Err(Fault::Field(*index)),
        Instruction::AllocTensor { shape, .. } => dims(shape),
        Instruction::AllocStorage { size, device, .. } => {
            within("device", *device, executable.virtual_devices.len())?;
            if let Size::Shape(shape) = size { dims(shape) } else { Ok(()) }
        }
        Instruction::DeviceCopy { src_device, dst_device, .. } => {
            within("device", *src_device, executable.virtual_devices.len())?;
            within("device", *dst_device, executable.virtual_devices.len())
        }
        _ => Ok(()),
    }
}
