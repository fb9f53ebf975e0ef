"""Calls that have a form of their own: of kernels, of functions outside the module, of closures."""

from ... import _core
from ..._old_names import also_by
from ...ir.expr import Call, Expr, Tuple
from ...ir.prim import StringImm
from ..expr import DataTypeImm, ExternFunc, ShapeExpr


def _tuple(args):
    if isinstance(args, Expr) and not isinstance(args, Tuple):
        return Tuple([args]) if not hasattr(args.ty, "fields") else args
    return args if isinstance(args, Tuple) else Tuple(list(args))


def _result(out_ty):
    """The type of outputs: one type, or a tuple's of several."""
    return list(out_ty) if isinstance(out_ty, (tuple, list)) else [out_ty]


def _callee(func):
    return ExternFunc(func) if isinstance(func, str) else func


def _scalars(tir_vars):
    if tir_vars is None:
        return ()
    return (tir_vars if isinstance(tir_vars, Expr) else ShapeExpr(list(tir_vars)),)


def _of_one(types):
    from ...ir.type import TupleType

    types = _result(types)
    return types[0] if len(types) == 1 else TupleType(types)


@also_by(out_sinfo="out_ty")
def call_tir(gvar, args, out_ty, tir_vars=None):
    """Call a kernel of the module with fresh outputs.

    Parameters
    ----------
    gvar : GlobalVar
        The kernel.
    args : Expr or list of Expr
        Its inputs.
    out_ty : TensorType or list of TensorType
        The type of each output.
    tir_vars : ShapeExpr or list of PrimExpr, optional
        Values of scalars that the kernel takes behind its tensors.
    """
    return _core.op_call("call_tir", (gvar, _tuple(args), *_scalars(tir_vars)), {}, [_of_one(out_ty)])


@also_by(out_sinfo="out_ty")
def call_tir_inplace(gvar, args, inplace_indices, out_ty, tir_vars=None):
    """Call a kernel that writes outputs over inputs: ``inplace_indices`` says over which; -1 stands for a fresh output."""
    indices = [inplace_indices] if isinstance(inplace_indices, int) else list(inplace_indices)
    arguments = (gvar, _tuple(args), *_scalars(tir_vars))
    return _core.op_call("call_tir_inplace", arguments, {"inplace_indices": indices}, [_of_one(out_ty)])


def call_py_func(func_name, args, out_ty):
    """Call a Python function of the module's class."""
    return _core.op_call("call_py_func", (StringImm(func_name), _tuple(args)), {}, [_of_one(out_ty)])


@also_by(out_sinfo="out_ty")
def call_tir_with_grad(gvar, args, out_ty, te_grad_name, te_grad_kwargs=None):
    """Call a kernel with fresh outputs; ``te_grad_name`` names the function that makes its gradient."""
    attrs = {"te_grad_name": te_grad_name, **({"te_grad_kwargs": te_grad_kwargs} if te_grad_kwargs else {})}
    return _core.op_call("call_tir_with_grad", (gvar, _tuple(args)), attrs, [_of_one(out_ty)])


@also_by(out_sinfo="out_ty")
def call_dps_packed(func, args, out_ty):
    """Call a function outside the module that takes its outputs as its last arguments."""
    return _core.op_call("call_dps_packed", (_callee(func), _tuple(args)), {}, [_of_one(out_ty)])


def call_packed(func, *args, ty_args=None, **attrs):
    """Call a function outside the module, which may have effects."""
    return Call(_callee(func), list(args), attrs or None, ty_args=_types(ty_args))


@also_by(sinfo_args="ty_args")
def call_pure_packed(func, *args, ty_args):
    """Call a function outside the module that has no effects."""
    return _core.op_call("call_pure_packed", (_callee(func), *args), {}, _types(ty_args))


def call_inplace_packed(func, *args, inplace_indices, ty_args):
    """Call a function outside the module that changes the arguments that ``inplace_indices`` names and nothing else."""
    indices = [inplace_indices] if isinstance(inplace_indices, int) else list(inplace_indices)
    attrs = {"inplace_indices": indices}
    return _core.op_call("call_inplace_packed", (_callee(func), *args), attrs, _types(ty_args))


def call_builtin_with_ctx(func, args, *, ty_args=None):
    """Call a function that takes the virtual machine in front of its arguments."""
    return _core.op_call("call_builtin_with_ctx", (_callee(func), _tuple(args)), {}, _types(ty_args))


def make_closure(func, args):
    """A function of the module with its last arguments bound."""
    return _core.op_call("make_closure", (func, _tuple(args)), {}, None)


def invoke_closure(closure, args, ty_args):
    """Call a closure."""
    return _core.op_call("invoke_closure", (closure, _tuple(args)), {}, _types(ty_args))


def invoke_pure_closure(closure, args, ty_args):
    """Call a closure that has no effects."""
    return _core.op_call("invoke_pure_closure", (closure, _tuple(args)), {}, _types(ty_args))


def view(data, shape=None, dtype=None, relative_byte_offset=None):
    """The same memory as another tensor: nothing is copied, and the view must not reach beyond the tensor.

    Parameters
    ----------
    data : Expr
        The tensor.
    shape : Expr or list of int, optional
        Other dimensions.
    dtype : str, optional
        Another element type.
    relative_byte_offset : int, optional
        Where the view begins, in bytes behind where the tensor begins.
    """
    absent = Tuple([])
    shape = shape if shape is None or isinstance(shape, Expr) else ShapeExpr(list(shape))
    dtype = dtype if dtype is None or isinstance(dtype, Expr) else DataTypeImm(dtype)
    given = (absent if value is None else value for value in (shape, dtype, relative_byte_offset))
    return _core.op_call("memory.view", (data, *given), {}, None)


def assert_op(condition, format_args=None, format=""):
    """Fail when the program runs unless a condition holds; the message is a Python format of the values."""
    values = [] if format_args is None else format_args
    values = [values] if isinstance(values, Expr) else list(values)
    text = format.value if isinstance(format, StringImm) else format
    return _core.op_call("assert_op", (condition, *values), {"format": text}, None)


def hint_on_device(data, dst_vdevice, memory_scope="global"):
    """Say that a tensor is to lie on a device; the pass ``RealizeVDevice`` moves it there."""
    from ...ffi import device

    target = device(dst_vdevice) if isinstance(dst_vdevice, str) else dst_vdevice
    attrs = {"device_type": int(target.dlpack_device_type()), "index": target.index, "memory_scope": memory_scope}
    return _core.op_call("hint_on_device", (data,), attrs, None)


def to_vdevice(data, dst_vdevice):
    """A copy of a tensor on a device of the module."""
    return _core.op_call("to_vdevice", (data,), {"dst_vdevice": dst_vdevice}, None)


def linear(data, weight, bias=None, out_dtype=None):
    """``data @ weight.T + bias``: three operators, not one."""
    from . import matmul, permute_dims

    product = matmul(data, permute_dims(weight), out_dtype=out_dtype)
    return product if bias is None else _core.op_call("add", (product, bias), {}, None)


def masked_fill(x, mask, value):
    """``x`` with a value where a mask holds: two operators, not one."""
    from . import full_like, where
    from ..expr import const

    return where(mask, full_like(x, const(value, x.dtype)), x)


def relu6(data):
    """``data`` between 0 and 6."""
    return _core.op_call("clip", (data, 0, 6), {}, None)


def _types(types):
    return None if types is None else _result(types)
