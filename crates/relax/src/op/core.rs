//! Operators of the language itself: calls out of it, closures, shapes as values, memory.
//!
//! Passes make and unmake most of them; [`call_tir`] is the one that a user writes too.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::{Attrs, GlobalVar, PrimExpr, Type};

use super::*;
use crate::shape::num_elements;

/// The type that was given at the call.
fn given(cx: &CallCx) -> Result<Type, OpError> {
    Ok(match cx.ty_args {
        [] => Type::any(),
        [ty] => ty.clone(),
        types => Type::tuple(types.to_vec()),
    })
}

/// As [`given`], where it must be.
fn given_output(cx: &CallCx) -> Result<Type, OpError> {
    match cx.ty_args {
        [] => cx.invalid("needs the type of its result (out_ty)"),
        _ => given(cx),
    }
}

fn any(_: &CallCx) -> Result<Type, OpError> {
    Ok(Type::any())
}

fn void(_: &CallCx) -> Result<Type, OpError> {
    Ok(Type::void())
}

fn shape_of(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    Ok(match x.dims {
        Some(dims) => Type::shape(dims),
        None => Type::shape_ndim(x.ndim.map_or(-1, |n| n as i64)),
    })
}

fn tensor_to_shape(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    if x.dtype != DataType::void() && !x.dtype.is_int() {
        return cx.wrong_dtype(format!("needs a tensor of integers, but its dtype is {}", x.dtype));
    }
    match (x.ndim, x.dims) {
        (None, _) => cx.invalid("needs a tensor of one dimension, but its rank is not known"),
        (Some(n), _) if n != 1 => cx.invalid(format!("needs a tensor of one dimension, but it has {n}")),
        (_, Some(dims)) => Ok(Type::shape_ndim(dims.first().and_then(PrimExpr::as_int).unwrap_or(-1))),
        _ => Ok(Type::shape_ndim(-1)),
    }
}

fn shape_to_tensor(cx: &CallCx) -> Result<Type, OpError> {
    Ok(match cx.shape_arg(0)? {
        Ok(dims) => Type::tensor([dims.len() as i64], DataType::int(64)),
        Err(Some(n)) => Type::tensor([n as i64], DataType::int(64)),
        Err(None) => Type::tensor_ndim(1, DataType::int(64)),
    })
}

fn size(cx: &CallCx) -> Result<Type, OpError> {
    cx.tensor(0)?;
    Ok(Type::tensor(Vec::<PrimExpr>::new(), DataType::int(64)))
}

fn dtype_arg(cx: &CallCx, i: usize) -> Result<DataType, OpError> {
    match cx.arg(i)? {
        Expr::DType(d) => Ok(d.value),
        _ => cx.wrong_dtype("needs a dtype among its arguments"),
    }
}

/// A tensor of the shape in argument `shape` and the dtype in argument `dtype`.
fn allocated(cx: &CallCx, shape: usize, dtype: usize) -> Result<Type, OpError> {
    let dtype = dtype_arg(cx, dtype)?;
    Ok(match cx.shape_arg(shape)? {
        Ok(dims) => Type::tensor(dims, dtype),
        Err(ndim) => tensor_type(None, ndim, dtype),
    })
}

const FUNC: ArgDef = ArgDef::any("func", "What is called.");
const ARGS: ArgDef = ArgDef::any("args", "A tuple of the arguments.");
const SHAPE: ArgDef = ArgDef::shape("shape", "The dimensions.");
const DTYPE: ArgDef = ArgDef::dtype("dtype", "The element type.");
const DEVICE: ArgDef = ArgDef::scalar("runtime_device_index", "Which of the VM's devices.");
const SCOPE: ArgDef = ArgDef::any("storage_scope", "The memory scope.");
const STORAGE: ArgDef = ArgDef::any("storage", "The storage.");
const OFFSET: ArgDef = ArgDef::scalar("offset", "Bytes from the start of the storage.");

const fn row(
    name: &'static str,
    args: &'static [ArgDef],
    infer: fn(&CallCx) -> Result<Type, OpError>,
    doc: &'static str,
) -> OpDef {
    OpDef { name, doc, args, attrs: &[], infer, lower: Lowering::Special, pattern: OpPattern::Opaque, ..OpDef::BASE }
}

const fn builtin(
    name: &'static str,
    args: &'static [ArgDef],
    infer: fn(&CallCx) -> Result<Type, OpError>,
    function: &'static str,
    doc: &'static str,
) -> OpDef {
    OpDef { lower: Lowering::Builtin(function), ..row(name, args, infer, doc) }
}

/// The rows.
pub static TABLE: &[OpDef] = &[
    row(
        "call_tir",
        &[
            FUNC,
            ARGS,
            ArgDef::shape("tir_vars", "Scalars behind all tensors, outputs included: an older form.").optional(),
        ],
        given_output,
        "Calls a kernel: tensors in, fresh tensors of the given type out.",
    ),
    OpDef {
        attrs: &[AttrDef::new(
            "inplace_indices",
            AttrKind::Ints,
            AttrDefault::Required,
            "For each output the argument whose memory it takes, or -1 for fresh memory.",
        )],
        ..row(
            "call_tir_inplace",
            &[
                FUNC,
                ARGS,
                ArgDef::shape("tir_vars", "Scalars behind all tensors, outputs included: an older form.").optional(),
            ],
            given_output,
            "Calls a kernel that writes some outputs over its inputs.",
        )
    },
    OpDef {
        attrs: &[
            AttrDef::required("te_grad_name", AttrKind::Str, "The function that makes the kernel of its gradient."),
            AttrDef::absent("te_grad_kwargs", AttrKind::Any, "Further arguments of that function."),
        ],
        lower: Lowering::Decompose(without_gradient),
        ..row(
            "call_tir_with_grad",
            &[
                FUNC,
                ARGS,
                ArgDef::shape("tir_vars", "Scalars behind all tensors, outputs included: an older form.").optional(),
            ],
            given_output,
            "Calls a kernel whose gradient another one computes.",
        )
    },
    row(
        "call_py_func",
        &[ArgDef::any("func_name", "The name that the function is registered by."), ARGS],
        given_output,
        "Calls a function of the front end, by name.",
    ),
    row(
        "call_dps_packed",
        &[FUNC, ARGS],
        given_output,
        "Calls a packed function in destination-passing style: the outputs are allocated by the caller and passed last.",
    ),
    row("call_pure_packed", &[FUNC, ARGS.variadic()], given, "Calls a packed function that has no visible effect."),
    OpDef {
        attrs: &[AttrDef::new(
            "inplace_indices",
            AttrKind::Ints,
            AttrDefault::Required,
            "The arguments that are overwritten; -1 for a fresh result.",
        )],
        ..row(
            "call_inplace_packed",
            &[FUNC, ARGS.variadic()],
            given,
            "Calls a packed function that overwrites some of its arguments and returns them.",
        )
    },
    row("call_builtin_with_ctx", &[FUNC, ARGS], given, "Calls a VM builtin with the VM as its first argument.")
        .impure(),
    row("make_closure", &[FUNC, ARGS], any, "A closure: a function with its last arguments bound.")
        .memory(MemoryUse::Fresh),
    row("invoke_closure", &[ArgDef::any("closure", "The closure."), ARGS], given, "Calls a closure.").impure(),
    row(
        "invoke_pure_closure",
        &[ArgDef::any("closure", "The closure."), ARGS],
        given,
        "Calls a closure that has no visible effect.",
    ),
    builtin("null_value", &[], any, "vm.builtin.null_value", "No value at all."),
    OpDef {
        attrs: &[AttrDef::str("format", "", "Python format text for the values.")],
        lower: Lowering::Builtin("relax.run.print"),
        ..row("print", &[ArgDef::any("values", "What is printed.").variadic()], void, "Prints values when run.")
            .impure()
    },
    OpDef {
        attrs: &[AttrDef::str("format", "", "Python format text for the message.")],
        lower: Lowering::Builtin("relax.run.assert_op"),
        ..row(
            "assert_op",
            &[
                ArgDef::any("condition", "What must hold: a bool scalar or 0-d tensor."),
                ArgDef::any("values", "What the message shows.").variadic(),
            ],
            void,
            "Fails when run unless the condition holds.",
        )
        .impure()
    },
    builtin(
        "shape_of",
        &[ArgDef::tensor("expr", "The tensor.")],
        shape_of,
        "vm.builtin.shape_of",
        "The shape of a tensor as a value.",
    )
    .memory(MemoryUse::Reads),
    builtin(
        "tensor_to_shape",
        &[ArgDef::tensor("expr", "A one-dimensional tensor of integers.")],
        tensor_to_shape,
        "vm.builtin.tensor_to_shape",
        "The shape whose dimensions a tensor holds.",
    )
    .memory(MemoryUse::Reads),
    OpDef {
        lower: Lowering::Compute(lower_shape_to_tensor),
        at_run_time: Some("relax.run.shape_to_tensor"),
        ..row(
            "shape_to_tensor",
            &[ArgDef::shape("expr", "The dimensions.")],
            shape_to_tensor,
            "The dimensions of a shape as an int64 tensor.",
        )
    },
    OpDef {
        lower: Lowering::Compute(lower_size),
        ..row(
            "size",
            &[ArgDef::tensor("expr", "The tensor.")],
            size,
            "How many elements a tensor has, as a 0-d int64 tensor.",
        )
    },
    row(
        "builtin.alloc_tensor",
        &[SHAPE, DTYPE, DEVICE, SCOPE],
        |cx| allocated(cx, 0, 1),
        "A tensor with fresh memory.",
    )
    .memory(MemoryUse::Fresh),
    row(
        "builtin.stop_lift_params",
        &[ArgDef::tensor("x", "The tensor.")],
        |cx| cx.ty(0),
        "x; parameters are not lifted past it.",
    ),
    row(
        "memory.alloc_storage",
        &[ArgDef::shape("size", "Bytes."), DEVICE, SCOPE, DTYPE],
        any,
        "Memory that planned tensors share.",
    )
    .memory(MemoryUse::Fresh),
    row(
        "memory.alloc_tensor",
        &[STORAGE, OFFSET, SHAPE, DTYPE, DEVICE.or(ArgDefault::Int(0))],
        |cx| allocated(cx, 2, 3),
        "A tensor inside a storage.",
    )
    .memory(MemoryUse::Fresh),
    row("memory.kill_storage", &[STORAGE], void, "The storage is not used from here on.").impure(),
    row("memory.kill_tensor", &[ArgDef::any("tensor", "The tensor.")], void, "The tensor is not used from here on.")
        .impure(),
    builtin(
        "memory.ensure_zero_offset",
        &[ArgDef::tensor("data", "The tensor.")],
        |cx| cx.ty(0),
        "vm.builtin.ensure_zero_offset",
        "x, copied if its data do not start its memory.",
    )
    .memory(MemoryUse::View),
    row(
        "vm.alloc_storage",
        &[ArgDef::shape("size", "Bytes."), DEVICE, DTYPE, SCOPE],
        any,
        "Memory, as the VM allocates it.",
    ),
    row(
        "vm.alloc_tensor",
        &[STORAGE, OFFSET, SHAPE, DTYPE, DEVICE.or(ArgDefault::Int(0))],
        |cx| allocated(cx, 2, 3),
        "A tensor inside a storage, as the VM makes it.",
    ),
    row("vm.kill_object", &[ArgDef::any("obj", "The object.")], void, "The register is cleared.").impure(),
    row(
        "vm.call_tir_dyn",
        &[FUNC, ARGS],
        void,
        "Calls a kernel; the last argument is a shape that is unpacked into scalars.",
    )
    .impure()
    .memory(MemoryUse::Reads),
];

/// The call of the kernel alone.
fn without_gradient(cx: &CallCx, _: &mut crate::BlockBuilder) -> Result<Expr, OpError> {
    call_typed("call_tir", cx.args.to_vec(), Attrs::new(), cx.ty_args.to_vec())
}

fn lower_shape_to_tensor(
    cx: &CallCx,
    _: &[relaxide_tir::te::Tensor],
) -> Result<Vec<relaxide_tir::te::Tensor>, OpError> {
    let dims = cx.known_shape(0)?;
    let zero = PrimExpr::from(0);
    Ok(vec![relaxide_tir::te::compute("shape_to_tensor", [dims.len() as i64], |i| {
        let at = |(k, d): (usize, &PrimExpr)| (k, d.clone());
        dims.iter().enumerate().map(at).rfold(zero.clone(), |rest, (k, d)| {
            relaxide_ir::prim::if_then_else(relaxide_ir::prim::eq(&i[0], k as i64), d, rest)
        })
    })])
}

fn lower_size(cx: &CallCx, _: &[relaxide_tir::te::Tensor]) -> Result<Vec<relaxide_tir::te::Tensor>, OpError> {
    let count = num_elements(&cx.dims(0)?);
    Ok(vec![relaxide_tir::te::compute("size", Vec::<PrimExpr>::new(), |_| count)])
}

/// A call of a kernel of the module. Arguments are the input tensors, then scalars.
pub fn call_tir(func: impl Into<Expr>, args: impl Into<Vec<Expr>>, out: Type) -> Result<Expr, OpError> {
    call_typed("call_tir", [func.into(), Expr::tuple(args)], Attrs::new(), vec![out])
}

/// The parts of a [`call_tir`].
pub struct CallTir {
    /// The kernel.
    pub func: Ref<GlobalVar>,
    /// Input tensors, then scalars.
    pub args: Vec<Expr>,
    /// Types of the outputs.
    pub outputs: Vec<Type>,
}

impl CallTir {
    /// The parts, if `expr` is a `call_tir` of a kernel of the module, without the older form's `tir_vars`.
    pub fn of(expr: &Expr) -> Option<CallTir> {
        let (call, "call_tir") = expr.as_op_call()? else { return None };
        let [Expr::Global(func), Expr::Tuple(args)] = call.args.as_slice() else { return None };
        Some(CallTir { func: func.clone(), args: args.fields.clone(), outputs: output_types(&call.ty) })
    }
}

/// The types of the outputs of a call in destination-passing style: one, or the fields of a tuple.
pub fn output_types(ty: &Type) -> Vec<Type> {
    match ty {
        Type::Tuple(t) => t.fields.clone(),
        other => vec![other.clone()],
    }
}
