"""Conversions that programs over Relax nodes need."""

from ..ir import _api
from ..ir.expr import Expr, Tuple
from .expr import ShapeExpr, Var


def convert_to_expr(value):
    """A Python value as an expression: numbers, text, arrays, and tuples of those."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, (tuple, list)):
        return Tuple([convert_to_expr(item) for item in value])
    return _api.relax.ToExpr(value)


def metadata_partitioner(rx_txt):
    """``[program, metadata]`` of a text that begins with metadata in braces.

    Raises
    ------
    ValueError
        The text has no such part.
    """
    begin, depth = rx_txt.find("{"), 0
    for index in range(begin if begin >= 0 else len(rx_txt), len(rx_txt)):
        depth += {"{": 1, "}": -1}.get(rx_txt[index], 0)
        if depth == 0:
            return [rx_txt[index + 1 : -1], rx_txt[begin : index + 1]]
    raise ValueError("The metadata section was not found: it is what the first brace of the text and the one that closes it hold")


def copy_with_new_vars(func):
    """The function with fresh parameters, variables and symbolic dimensions."""
    return _api.relax.CopyWithNewVars(func)


def gen_call_tir_inputs(func, *args, **kwargs):
    """``(kernel, tensor arguments, output types, scalars)`` of a function of ``te`` on arguments."""
    from .te_call import describe

    kernel, tensors, types, scalars = describe(func, args, kwargs)
    return kernel, tensors, types, ShapeExpr(scalars) if scalars else None


__all__ = ["Var", "convert_to_expr", "copy_with_new_vars", "gen_call_tir_inputs", "metadata_partitioner"]
