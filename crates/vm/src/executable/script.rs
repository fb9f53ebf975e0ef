//! An executable as a Python program that stands on its own: running it builds the same executable again.
//!
//! [`as_python`](super::text::as_python) prints what TVM prints, which names constants by number and leaves out what they
//! are. Here everything is there, so the program can be read, changed and run. It runs with either package:
//!
//! ```text
//! import numpy as np
//! import relaxide as tvm
//! from relaxide.ffi import Shape, dtype
//!
//! ib = tvm.relax.ExecBuilder()
//! ib.declare_function("main", 1)
//! ib.declare_function("vm.builtin.copy", 0)
//! ib.convert_constant("a text")  # c[0]
//! with ib.function("main", num_inputs=1, param_names=["x"]):
//!     ib.emit_call("vm.builtin.copy", args=[ib.r(0)], dst=ib.r(1))
//!     ib.emit_ret(ib.r(1))
//! ex = ib.get()
//! ```
//!
//! TVM's builder has no way to give a constant a memory scope; a program that does runs with Relaxide only. What neither can
//! express is refused: native functions, and constants that a builder would not put into the pool one by one.

use relaxide_ffi::{Any, DataType, Shape, Tensor};

use super::constant::ConstantKind;
use super::text::append;
use super::{Executable, FuncInfo, FuncKind, digest, same};
use crate::bytecode::{Arg, Args, BytecodeError, Instruction, Register};

/// An executable that no Python program can build.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoScript {
    /// A function in native code.
    #[error("function {0} is native code, which the Python builder cannot declare")]
    Native(String),
    /// A constant that the builder would not keep, or not in its own place.
    #[error("constant {index} ({kind}) is not one that the Python builder makes")]
    Constant {
        /// Index in the constant pool.
        index: usize,
        /// What it is.
        kind: String,
    },
    /// The code cannot be read.
    #[error(transparent)]
    Bytecode(#[from] BytecodeError),
}

/// The program.
pub fn as_script(executable: &Executable) -> Result<String, NoScript> {
    let mut out = String::from(
        "import numpy as np\nimport relaxide as tvm\nfrom relaxide.ffi import Shape, dtype\n\nib = \
         tvm.relax.ExecBuilder()\n",
    );
    for function in executable.functions() {
        if function.kind == FuncKind::VmTir {
            return Err(NoScript::Native(function.name.clone()));
        }
        append(&mut out, format_args!("ib.declare_function({}, {})\n", quoted(&function.name), function.kind as i32));
    }
    for (index, value) in executable.constants.iter().enumerate() {
        let refused = || NoScript::Constant { index, kind: value.type_key().to_owned() };
        let is_repeated =
            digest(value).is_none() || executable.constants.iter().take(index).any(|other| same(other, value));
        let expression = constant(value).filter(|_| !is_repeated).ok_or_else(refused)?;
        append(&mut out, format_args!("ib.convert_constant({expression})  # c[{index}]\n"));
    }
    for entry in &executable.memory_scopes {
        append(&mut out, format_args!("ib.set_memory_scope({}, {})\n", entry.constant, quoted(&entry.scope)));
    }
    // In the order of the code, which need not be that of the table.
    let mut bodies: Vec<&FuncInfo> = executable.functions().iter().filter(|f| f.kind == FuncKind::Vm).collect();
    bodies.sort_by_key(|function| function.start_instr);
    for function in bodies {
        body(executable, function, &mut out)?;
    }
    out.push_str("ex = ib.get()\n");
    Ok(out)
}

fn body(executable: &Executable, function: &FuncInfo, out: &mut String) -> Result<(), BytecodeError> {
    append(out, format_args!("with ib.function({}, num_inputs={}", quoted(&function.name), function.num_args));
    if !function.param_names.is_empty() {
        let names: Vec<String> = function.param_names.iter().map(|name| quoted(name)).collect();
        append(out, format_args!(", param_names=[{}]", names.join(", ")));
    }
    out.push_str("):\n");
    for entry in executable.instructions_of(function) {
        match entry?.1 {
            Instruction::Call { dst, func, args } => {
                let name = usize::try_from(func).ok().and_then(|index| executable.functions.get(index));
                let name = quoted(name.map_or("", |function| &function.name));
                append(out, format_args!("    ib.emit_call({name}, args=[{}]", arguments(executable, args)?));
                if dst != Register::VOID {
                    append(out, format_args!(", dst={}", register(dst)));
                }
                out.push_str(")\n");
            }
            Instruction::Ret { result } => append(out, format_args!("    ib.emit_ret({})\n", register(result))),
            Instruction::Goto { offset } => append(out, format_args!("    ib.emit_goto({offset})\n")),
            Instruction::If { cond, false_offset } => {
                append(out, format_args!("    ib.emit_if({}, {false_offset})\n", register(cond)));
            }
        }
    }
    Ok(())
}

fn arguments(executable: &Executable, args: Args<'_>) -> Result<String, BytecodeError> {
    let show = |arg: Arg| match arg {
        Arg::Register(number) => register(number),
        Arg::Immediate(value) => format!("ib.imm({value})"),
        Arg::Constant(index) => format!("ib.c({index})"),
        Arg::Function(index) => {
            let name = usize::try_from(index).ok().and_then(|index| executable.functions.get(index));
            format!("ib.f({})", quoted(name.map_or("", |function| &function.name)))
        }
    };
    let args = args.iter().map(|arg| arg.map(show)).collect::<Result<Vec<_>, _>>()?;
    Ok(args.join(", "))
}

fn register(register: Register) -> String {
    match register {
        Register::VOID => "ib.void_arg()".to_owned(),
        Register::VM => "ib.vm_state()".to_owned(),
        Register(number) => format!("ib.r({number})"),
    }
}

/// A constant as an expression.
fn constant(value: &Any) -> Option<String> {
    Some(match ConstantKind::of(value)? {
        // A small integer would become an immediate.
        ConstantKind::Int => {
            let int = value.as_int()?;
            return (int.unsigned_abs() > Arg::VALUE_LIMIT.unsigned_abs()).then(|| int.to_string());
        }
        ConstantKind::Float => {
            let float: f64 = value.to().ok()?;
            if float.is_finite() { format!("{float:?}") } else { format!("float(\"{float}\")") }
        }
        ConstantKind::DataType => format!("dtype(\"{}\")", value.to::<DataType>().ok()?),
        ConstantKind::Str => quoted(&value.to::<String>().ok()?),
        ConstantKind::Shape => format!("Shape({})", list(&value.to::<Shape>().ok()?)),
        ConstantKind::Tensor => tensor(&value.to::<Tensor>().ok()?)?,
    })
}

fn tensor(tensor: &Tensor) -> Option<String> {
    // What numpy has no name for would come back as something else.
    let dtype = tensor.dtype();
    if dtype.lanes != 1 || !matches!(dtype.code, DataType::INT | DataType::UINT | DataType::FLOAT | DataType::BOOL) {
        return None;
    }
    let bytes: String = tensor.to_bytes().ok()?.iter().map(|byte| format!("{byte:02x}")).collect();
    let shape = list(tensor.shape());
    Some(format!("tvm.runtime.tensor(np.frombuffer(bytes.fromhex(\"{bytes}\"), \"{dtype}\").reshape({shape}))"))
}

fn list(dims: &[i64]) -> String {
    let dims: Vec<String> = dims.iter().map(i64::to_string).collect();
    format!("[{}]", dims.join(", "))
}

/// A text as a Python literal.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => append(&mut out, format_args!("\\U{:08x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
