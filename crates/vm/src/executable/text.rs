//! The two listings of an executable: an assembly-like text and a program for a builder.
//!
//! Both are, letter for letter, what TVM prints for the same executable.

use std::fmt::Write;

use super::{Executable, FuncInfo, FuncKind};
use crate::bytecode::{Arg, Args, BytecodeError, Instruction, Register};

/// The assembly-like listing.
///
/// ```text
/// @main:
///   call  add              in: %0, %0       dst: %1
///   ret   %1
///
/// @add packed_func;
/// ```
pub fn as_text(executable: &Executable) -> Result<String, BytecodeError> {
    let mut out = String::new();
    for function in executable.functions() {
        let name = &function.name;
        match function.kind {
            FuncKind::Packed => append(&mut out, format_args!("@{name} packed_func;\n\n")),
            FuncKind::VmTir => {
                append(&mut out, format_args!("@{name} num_inputs={} vm_tir_func;\n\n", function.num_args));
            }
            FuncKind::Vm => {
                append(&mut out, format_args!("@{name}:\n"));
                list_body(executable, function, &mut out)?;
                out.push('\n');
            }
        }
    }
    Ok(out)
}

fn list_body(executable: &Executable, function: &FuncInfo, out: &mut String) -> Result<(), BytecodeError> {
    for entry in executable.instructions_of(function) {
        let (_, instruction) = entry?;
        append(out, format_args!("  {:<6}", instruction.opcode().mnemonic()));
        match instruction {
            Instruction::Call { dst, func, args } => {
                let args = joined(args, |arg| listed_arg(executable, arg))?;
                append(out, format_args!("{:<16} in: {args:<12} dst: {dst}\n", function_name(executable, func)));
            }
            Instruction::Ret { result } => append(out, format_args!("{result}\n")),
            Instruction::Goto { offset } => append(out, format_args!("{offset}\n")),
            Instruction::If { cond, false_offset } => append(out, format_args!("{cond}, {false_offset}\n")),
        }
    }
    Ok(())
}

/// The listing as a Python program that builds the same code. Functions from outside do not appear in it.
pub fn as_python(executable: &Executable) -> Result<String, BytecodeError> {
    let mut out = String::from("ib = rx.Builder()\n");
    for function in executable.functions().iter().filter(|f| f.kind == FuncKind::Vm) {
        append(&mut out, format_args!("with ib.function(\"{}\", num_inputs={}):\n", function.name, function.num_args));
        for entry in executable.instructions_of(function) {
            match entry?.1 {
                Instruction::Call { dst, func, args } => {
                    let args = joined(args, |arg| python_arg(executable, arg))?;
                    let name = function_name(executable, func);
                    append(&mut out, format_args!("    ib.emit_call(\"{name}\", args=[{args}]"));
                    if dst != Register::VOID {
                        append(&mut out, format_args!(", dst=ib.r({})", dst.0));
                    }
                    out.push_str(")\n");
                }
                Instruction::Ret { result } => {
                    append(&mut out, format_args!("    ib.emit_ret(ib.r({}))\n", result.0));
                }
                Instruction::Goto { offset } => append(&mut out, format_args!("    ib.emit_goto({offset})\n")),
                Instruction::If { cond, false_offset } => {
                    append(&mut out, format_args!("    ib.emit_if(ib.r({}), {false_offset})\n", cond.0));
                }
            }
        }
    }
    Ok(out)
}

fn joined(args: Args<'_>, show: impl Fn(Arg) -> String) -> Result<String, BytecodeError> {
    let args = args.iter().map(|arg| arg.map(&show)).collect::<Result<Vec<_>, _>>()?;
    Ok(args.join(", "))
}

fn listed_arg(executable: &Executable, arg: Arg) -> String {
    match arg {
        Arg::Register(register) => register.to_string(),
        Arg::Immediate(value) => format!("i{value}"),
        Arg::Constant(index) => format!("c[{index}]"),
        Arg::Function(index) => format!("f[{}]", function_name(executable, index)),
    }
}

fn python_arg(executable: &Executable, arg: Arg) -> String {
    match arg {
        // Only here does TVM write the name of a special register; everywhere else the number.
        Arg::Register(Register::VM) => "ib.r(vm)".to_owned(),
        Arg::Register(Register(number)) => format!("ib.r({number})"),
        Arg::Immediate(value) => format!("ib.imm({value})"),
        Arg::Constant(index) => format!("ib.c({index})"),
        Arg::Function(index) => format!("ib.f(\"{}\")", function_name(executable, index)),
    }
}

fn function_name(executable: &Executable, index: i64) -> &str {
    let function = usize::try_from(index).ok().and_then(|index| executable.functions.get(index));
    function.map_or("<no such function>", |function| &function.name)
}

/// Appends to a text.
pub(super) fn append(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    let _ = out.write_fmt(text);
}
