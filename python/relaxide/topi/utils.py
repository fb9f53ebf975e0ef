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


def ceil_div(a, b):
    """The quotient, rounded up."""
    return (a + b - 1) // b


def swap(arr, axis):
    """A copy of a sequence whose last item has changed places with the one at ``axis``."""
    out = list(arr)
    out[axis], out[-1] = out[-1], out[axis]
    return out


def get_float_tuple(in_tuple):
    """Expressions that are numbers as Python's floats."""
    return tuple(map(get_const_float, in_tuple))


def get_max_power2_factor(n, max_value=None):
    """The largest power of two that divides ``n``, at most ``max_value``."""
    factor = 1
    while n % (2 * factor) == 0 and (max_value is None or 2 * factor <= max_value):
        factor *= 2
    return factor


def is_empty_shape(shape):
    """Whether a tensor of a shape has no element."""
    return any(equal_const_int(dim, 0) for dim in shape)


def is_dynamic_shape(shape):
    """Whether a dimension is not known."""
    return any(not isinstance(dim, (int, IntImm)) for dim in shape)


def ravel_index(indices, shape):
    """The place of an element in memory that holds a tensor of a shape row by row."""
    place = 0
    for index, dim in zip(indices, shape):
        place = place * dim + index
    return place


def unravel_index(idx, shape):
    """The indices of the element at a place of memory that holds a tensor of a shape row by row."""
    indices = []
    for dim in reversed(list(shape)):
        indices.append(idx % dim)
        idx = idx // dim
    return indices[::-1]


def within_index(b, e, s, i):
    """Whether an index is one of the slice from ``b`` to below ``e`` by steps of ``s``, which may be negative."""
    from .. import tirx

    up = tirx.all(i >= b, i < e, tirx.floormod(i - b, s).equal(0))
    down = tirx.all(i <= b, i > e, tirx.floormod(b - i, -s).equal(0))
    if isinstance(s, int):
        return up if s > 0 else down
    return tirx.Select(s > 0, up, down)


def _simplified(expr):
    from ..sym import Analyzer

    return Analyzer().simplify(expr)


__all__ = ["InvalidShapeError", "ceil_div", "equal_const_int", "get_const_float", "get_const_int", "get_const_tuple", "get_float_tuple"]
__all__ += ["get_max_power2_factor", "is_dynamic_shape", "is_empty_shape", "prod", "ravel_index", "simplify", "swap", "unravel_index"]
__all__ += ["within_index"]
