//! What a function of a model takes, read from the checks that its code begins with.
//!
//! An executable's table has the names of parameters and not their types. But a compiled function begins by checking its
//! arguments, and these calls name, in their operands, what they check: rank and element type
//! (`vm.builtin.check_tensor_info`), each dimension (`vm.builtin.match_shape`), and in the text that their errors begin
//! with, the annotation itself. That serves models of every compiler of this format. A parameter that nothing checks is of
//! any type. Names of results are not in the code: they are in the description that our compiler writes behind it.

use std::ffi::CString;

use relaxide_ffi::{AnyView, DataType};
use relaxide_vm::bytecode::Instruction;
use relaxide_vm::{Arg, Executable, FuncInfo, FuncKind, Register};

use crate::error::c_string;

/// A dimension that is known only when the function is called.
pub(crate) const DYNAMIC: i64 = -1;

/// More dimensions than any tensor has; a file may claim anything.
const MAX_RANK: usize = 256;

/// A function and its parameters.
pub(crate) struct Function {
    pub(crate) name: CString,
    pub(crate) params: Vec<Param>,
    /// The names of its results, where the file has them.
    pub(crate) outputs: Vec<CString>,
}

/// A parameter.
pub(crate) struct Param {
    pub(crate) name: CString,
    /// The annotation as TVMScript; empty if it is not known.
    pub(crate) annotation: CString,
    /// The element type of a tensor; void if it is not known.
    pub(crate) dtype: DataType,
    /// The dimensions of a tensor of known rank.
    pub(crate) dims: Option<Vec<i64>>,
}

/// The functions of an executable that have a body.
pub(crate) fn functions(executable: &Executable) -> Vec<Function> {
    let own = executable.functions().iter().filter(|function| function.kind != FuncKind::Packed);
    let outputs = |name: &str| executable.output_names(name).iter().map(|name| c_string(name)).collect();
    let described = |function: &FuncInfo| Function {
        name: c_string(&function.name),
        params: params(executable, function),
        outputs: outputs(&function.name),
    };
    own.map(described).collect()
}

fn params(executable: &Executable, function: &FuncInfo) -> Vec<Param> {
    let count = usize::try_from(function.num_args).unwrap_or(0).min(function.param_names.len());
    let names = function.param_names.iter().take(count);
    let mut params: Vec<Param> = names.map(|name| Param::unknown(name)).collect();
    for index in function.start_instr.max(0)..function.end_instr {
        let instruction = usize::try_from(index).ok().and_then(|index| executable.instruction(index).ok());
        let Some(Instruction::Call { func, args, .. }) = instruction else { break };
        let callee = usize::try_from(func).ok().and_then(|func| executable.functions().get(func));
        let operands: Vec<Arg> = args.iter().filter_map(Result::ok).collect();
        // Checks come before anything else, but for the heap that symbolic dimensions are kept in.
        match callee.map(|callee| callee.name.as_str()) {
            Some("vm.builtin.alloc_shape_heap") => {}
            Some("vm.builtin.match_shape") => read_shape(&mut params, &operands),
            Some(check) if check.starts_with("vm.builtin.check_") => read_check(executable, &mut params, &operands),
            _ => break,
        }
    }
    params
}

/// The parameter that a check is about: its first operand.
fn subject<'a>(params: &'a mut [Param], operands: &[Arg]) -> Option<&'a mut Param> {
    match operands.first() {
        Some(Arg::Register(Register(index))) => usize::try_from(*index).ok().and_then(|index| params.get_mut(index)),
        _ => None,
    }
}

/// `check_…_info(value, [ndim, [dtype,]] context)`; a rank of -1 is any.
fn read_check(executable: &Executable, params: &mut [Param], operands: &[Arg]) {
    let Some(param) = subject(params, operands) else { return };
    if let Some(Arg::Immediate(ndim)) = operands.get(1) {
        param.dims = usize::try_from(*ndim).ok().filter(|ndim| *ndim <= MAX_RANK).map(|ndim| vec![DYNAMIC; ndim]);
    }
    let constant = |arg: &Arg| match arg {
        Arg::Constant(index) => usize::try_from(*index).ok().and_then(|index| executable.constants().get(index)),
        _ => None,
    };
    for value in operands.iter().filter_map(constant) {
        if let Ok(dtype) = value.to::<DataType>() {
            param.dtype = dtype;
        }
    }
    let context = operands.last().and_then(constant);
    if let Some(text) = context.and_then(|context| AnyView::from(context).as_str().and_then(annotation).map(c_string)) {
        param.annotation = text;
    }
}

/// The annotation in `ErrorContext(fn=…, loc=param[0], param=x, annotation=R.Tensor(…))`.
fn annotation(context: &str) -> Option<&str> {
    let (_, text) = context.split_once("annotation=")?;
    Some(text.trim_end().strip_suffix(')').unwrap_or(text))
}

/// `match_shape(value, heap, ndim, (code, operand) × ndim, context)`: code 0 is a number, any other a symbol.
fn read_shape(params: &mut [Param], operands: &[Arg]) {
    let Some(param) = subject(params, operands) else { return };
    let (Some(Arg::Immediate(ndim)), Some(pairs)) = (operands.get(2), operands.get(3..)) else { return };
    let dims = pairs.chunks_exact(2).take(usize::try_from(*ndim).unwrap_or(0)).map(|pair| match pair {
        [Arg::Immediate(0), Arg::Immediate(dim)] => *dim,
        _ => DYNAMIC,
    });
    param.dims = Some(dims.collect());
}

impl Param {
    fn unknown(name: &str) -> Param {
        Param { name: c_string(name), annotation: CString::default(), dtype: DataType::void(), dims: None }
    }
}
