"""Functions of one tensor beside Relax's operators: logarithms of other bases, and quick ones."""

import math

from .. import te as _te
from .. import tirx as _tirx
from ._operator import one


def _each(name, function):
    def made(x):
        return _te.compute(x.shape, lambda *at: function(x(*at)), name=name)

    return made


def _constant(like, value):
    return _te.const(value, str(like.dtype))


def log2(x):
    """For each element the logarithm to base two."""
    return one("multiply", one("log", x), _constant(x, 1.0 / math.log(2.0)))


def log10(x):
    """For each element the logarithm to base ten."""
    return one("multiply", one("log", x), _constant(x, 1.0 / math.log(10.0)))


def fast_exp(x):
    """For each element e to its power: the operator's own kernel, which is as quick."""
    return one("exp", x)


def fast_tanh(x):
    """For each element the hyperbolic tangent: the operator's own kernel, which is as quick."""
    return one("tanh", x)


def fast_erf(x):
    """For each element the error function: the operator's own kernel, which is as quick."""
    return one("erf", x)


def ceil_log2(x):
    """For each element, an integer above zero, the exponent of the least power of two that is not smaller."""

    def of(value):
        dtype = str(value.dtype)
        steps = [_tirx.Select(_te.const(1 << bit, dtype) < value, _te.const(1, dtype), _te.const(0, dtype)) for bit in range(_width(dtype))]
        total = steps[0]
        for step in steps[1:]:
            total = total + step
        return total

    return _each("T_ceil_log2", of)(x) if isinstance(x, _te.Tensor) else of(x)


def _width(dtype):
    """How many powers of two an integer type has."""
    bits = int("".join(filter(str.isdigit, dtype)) or 0)
    if "int" not in dtype or not bits:
        raise TypeError(f"ceil_log2 takes integers, not {dtype}")
    return bits - (0 if dtype.startswith("u") else 1)


def collapse_sum(data, target_shape):
    """The sums that make a tensor of what was broadcast from ``target_shape``."""
    return one("collapse_sum_to", data, list(target_shape))


def expand_like(a, shape_like, axis):
    """A tensor repeated along ``axis``, dimensions that it lacks, until it has the shape of another."""
    axes = sorted(place % len(shape_like.shape) for place in ([axis] if isinstance(axis, int) else axis))
    if len(axes) + len(a.shape) != len(shape_like.shape):
        raise ValueError(f"{len(axes)} axes are given, where {len(shape_like.shape) - len(a.shape)} are missing")
    return one("broadcast_to", one("expand_dims", a, axis=axes), list(shape_like.shape))


__all__ = ["ceil_log2", "collapse_sum", "expand_like", "fast_erf", "fast_exp", "fast_tanh", "log10", "log2"]
