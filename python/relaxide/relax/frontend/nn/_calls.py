"""Calls out of modules: kernels written in ``te`` or TIR, functions of the process, debug functions."""

import sys

from ....ir.expr import Tuple, is_prim_expr
from ....ir.prim import StringImm
from ... import op as _op
from ...block_builder import BlockBuilder
from ...expr import FloatImm, ShapeExpr, prim_value
from ...type import AnyType
from ._values import Object, Tensor, wrap_nested


def tensor_expr_op(tensor_expr_func, name_hint, args, *, attrs=None):
    """A kernel that a function of :mod:`relaxide.te` describes.

    Parameters
    ----------
    tensor_expr_func : callable
        From tensors of ``te`` (and numbers, symbolic dimensions) to one or several.
    name_hint : str
        The kernel's name.
    args : list of Tensor, int, expression
        The arguments of the function.
    attrs : dict, optional
        Attributes of the kernel.
    """
    operands = [arg._expr if isinstance(arg, Tensor) else arg for arg in args]
    hints = {"primfunc_name_hint": name_hint, **({"primfunc_attrs": attrs} if attrs else {})}
    return wrap_nested(BlockBuilder.current().call_te(tensor_expr_func, *operands, **hints), name_hint)


def _operands(args):
    """Tensors and scalars of a call of a kernel; a shape stands for its dimensions."""
    args = args if isinstance(args, (list, tuple)) else [args]
    operands = []
    for arg in args:
        if isinstance(arg, ShapeExpr):
            operands.extend(arg.values)
        elif isinstance(arg, Tensor):
            operands.append(arg._expr)
        elif isinstance(arg, int) or is_prim_expr(arg):
            operands.append(prim_value(arg) if isinstance(arg, int) else arg)
        else:
            raise TypeError(f"a kernel takes tensors, shapes and numbers, got {type(arg).__name__}")
    return operands


def _types(out):
    """The types of the tensors that stand for results, one or several."""
    return [item._expr.ty for item in out] if isinstance(out, (list, tuple)) else out._expr.ty


def tensor_ir_op(func, name_hint, args, out):
    """A kernel of TIR with fresh outputs.

    Parameters
    ----------
    func : PrimFunc
        The kernel: inputs, then outputs, then scalars.
    name_hint : str
        Its name in the program.
    args : Tensor, or list of Tensor, shape, int, expression
        Its inputs and scalars.
    out : Tensor or list of Tensor
        Placeholders for its outputs.
    """
    gvar = BlockBuilder.current().add_func(func, name_hint)
    inputs, scalars = _split(args)
    return wrap_nested(_op.call_tir(gvar, inputs, _types(out), scalars), name_hint)


def _split(args):
    """Inputs, and scalars, which a kernel takes behind its outputs; None where there are none."""
    operands = _operands(args)
    scalars = [one for one in operands if is_prim_expr(one)]
    return [one for one in operands if not is_prim_expr(one)], scalars or None


def tensor_ir_inplace_op(func, name_hint, args, inplace_indices, out):
    """A kernel of TIR that writes results over arguments: those that ``inplace_indices`` names, -1 for a fresh output."""
    gvar = BlockBuilder.current().add_func(func, name_hint)
    indices = [inplace_indices] if isinstance(inplace_indices, int) else list(inplace_indices)
    inputs, scalars = _split(args)
    return wrap_nested(_op.call_tir_inplace(gvar, inputs, indices, _types(out), scalars), name_hint)


def _plain(arg, floats):
    """An argument of a function of the process."""
    if isinstance(arg, (Tensor, Object)):
        return arg._expr
    if isinstance(arg, bool):
        raise TypeError("a bool is no argument of an external function: give 0 or 1")
    if isinstance(arg, int):
        return prim_value(arg)
    if isinstance(arg, float):
        return FloatImm(floats, arg)
    if isinstance(arg, str):
        return StringImm(arg)
    if is_prim_expr(arg):
        return arg
    if isinstance(arg, (list, tuple)):
        return Tuple([_plain(item, floats) for item in arg])
    raise TypeError(f"an external function takes tensors, numbers and texts, got {type(arg).__name__}")


def extern(name, args, out):
    """A function of the process, which takes tensors for its results behind its arguments.

    Parameters
    ----------
    name : str
        The function's global name.
    args : list of Tensor, int, float, str, expression
        Its arguments.
    out : Tensor or list of Tensor
        Placeholders for its results.
    """
    args = args if isinstance(args, (list, tuple)) else [args]
    operands = Tuple([_plain(arg, "float64") for arg in args])
    return wrap_nested(_op.call_dps_packed(name, operands, _types(out)), name.replace(".", "_"))


def debug_func(name, *args, _line_info=None):
    """Call a function when the program runs, as ``f(line, *args)``; only in programs that are exported with ``debug=True``.

    Parameters
    ----------
    name : str
        The function's global name.
    *args : Tensor, int, float, str, expression
        Its arguments.
    """
    from .exporter import Exporter

    effect = Exporter.current().io_effect
    if effect is None:
        raise RuntimeError("Debugging is only supported when debug mode is on: export the model with `debug=True`")
    line = _line_info or _caller(2)
    operands = [StringImm(name), StringImm(line), *(_plain(arg, "float32") for arg in args)]
    call = _op.call_pure_packed("vm.builtin.invoke_debug_func", effect.effect, *operands, ty_args=AnyType())
    effect.effect = BlockBuilder.current().emit(call, effect.effect.name_hint)


def print_(tensor):
    """Print a tensor and the line of the model when the program runs; see :func:`debug_func`."""
    debug_func("vm.builtin.debug_print", tensor, _line_info=_caller(2))


def _caller(depth):
    frame = sys._getframe(depth)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


__all__ = ["debug_func", "extern", "print_", "tensor_expr_op", "tensor_ir_inplace_op", "tensor_ir_op"]
