"""Helpers of those who write computes."""

from ..ir.prim import IntImm


class InvalidShapeError(ValueError):
    """A shape that an operator cannot have."""


def get_const_int(expr):
    """The value of an expression that is a number."""
    value = expr if isinstance(expr, int) else getattr(_simplified(expr), "value", None)
    if not isinstance(value, int):
        raise ValueError(f"expected a number that is known, got {expr}")
    return value


def get_const_tuple(in_tuple):
    """Dimensions as ints where they are known; others as they are."""
    return tuple(dim.value if isinstance(dim, IntImm) else dim for dim in in_tuple)


def get_const_float(expr):
    """The value of an expression that is a number."""
    return expr if isinstance(expr, float) else float(expr.value)


def equal_const_int(expr, value):
    """Whether an expression is this number."""
    return expr == value if isinstance(expr, int) else isinstance(expr, IntImm) and expr.value == value


def prod(x):
    """The product of numbers or expressions; one where there are none."""
    result = 1
    for factor in x:
        result = result * factor
    return result


def simplify(expr):
    """An expression of dimensions in simple form."""
    return expr if isinstance(expr, int) else _simplified(expr)


def _simplified(expr):
    from ..sym import Analyzer

    return Analyzer().simplify(expr)


__all__ = ["InvalidShapeError", "equal_const_int", "get_const_float", "get_const_int", "get_const_tuple", "prod", "simplify"]
