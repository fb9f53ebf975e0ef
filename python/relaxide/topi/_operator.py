"""Relax's operators on tensors of the compute language."""

import re

from .. import _core
from ..te import Tensor
from ..te import const as _const

#: Functions of one argument and of two: the name here, the operator's, what it computes.
_UNARY = {
    "abs": ("abs", "the absolute value"),
    "acos": ("acos", "the inverse cosine"),
    "acosh": ("acosh", "the inverse hyperbolic cosine"),
    "asin": ("asin", "the inverse sine"),
    "asinh": ("asinh", "the inverse hyperbolic sine"),
    "atan": ("atan", "the inverse tangent"),
    "atanh": ("atanh", "the inverse hyperbolic tangent"),
    "bitwise_not": ("bitwise_not", "the bits turned over"),
    "ceil": ("ceil", "the least integer that is not smaller"),
    "cos": ("cos", "the cosine"),
    "cosh": ("cosh", "the hyperbolic cosine"),
    "erf": ("erf", "the error function"),
    "exp": ("exp", "e to its power"),
    "floor": ("floor", "the largest integer that is not larger"),
    "isfinite": ("isfinite", "whether it is a finite number"),
    "isinf": ("isinf", "whether it is infinite"),
    "isnan": ("isnan", "whether it is no number"),
    "log": ("log", "the natural logarithm"),
    "logical_not": ("logical_not", "whether it is false"),
    "negative": ("negative", "its negative"),
    "round": ("round", "the nearest integer, the even one of two"),
    "rsqrt": ("rsqrt", "one over its square root"),
    "sigmoid": ("sigmoid", "1 / (1 + exp(-x))"),
    "sign": ("sign", "-1, 0 or 1"),
    "sin": ("sin", "the sine"),
    "sinh": ("sinh", "the hyperbolic sine"),
    "sqrt": ("sqrt", "the square root"),
    "tan": ("tan", "the tangent"),
    "tanh": ("tanh", "the hyperbolic tangent"),
    "trunc": ("trunc", "the integer towards zero"),
}
_BINARY = {
    "add": ("add", "the sum"),
    "atan2": ("atan2", "the angle of the point (rhs, lhs)"),
    "bitwise_and": ("bitwise_and", "the bits of both"),
    "bitwise_or": ("bitwise_or", "the bits of either"),
    "bitwise_xor": ("bitwise_xor", "the bits of one of them"),
    "divide": ("divide", "the quotient"),
    "equal": ("equal", "whether they are equal"),
    "floor_divide": ("floor_divide", "the quotient, rounded down"),
    "floor_mod": ("floor_mod", "what is left of the quotient that is rounded down"),
    "greater": ("greater", "whether the first is larger"),
    "greater_equal": ("greater_equal", "whether the first is not smaller"),
    "left_shift": ("left_shift", "the bits moved up"),
    "less": ("less", "whether the first is smaller"),
    "less_equal": ("less_equal", "whether the first is not larger"),
    "log_add_exp": ("log_add_exp", "the logarithm of the sum of their exponentials"),
    "logical_and": ("logical_and", "whether both hold"),
    "logical_or": ("logical_or", "whether one holds"),
    "logical_xor": ("logical_xor", "whether exactly one holds"),
    "maximum": ("maximum", "the larger"),
    "minimum": ("minimum", "the smaller"),
    "mod": ("mod", "what is left of the quotient that is rounded towards zero"),
    "multiply": ("multiply", "the product"),
    "not_equal": ("not_equal", "whether they differ"),
    "power": ("power", "the first to the power of the second"),
    "right_shift": ("right_shift", "the bits moved down"),
    "subtract": ("subtract", "the difference"),
}


#: Functions that integers have no values of.
_OF_FLOATS = ("acos", "acosh", "asin", "asinh", "atanh")


def call(name, *args, **attrs):
    """All tensors that an operator computes."""
    return _core.te_call(name, args, attrs)


def one(name, *args, **attrs):
    """The tensor that an operator computes."""
    (tensor,) = call(name, *args, **attrs)
    return tensor


def _make_unary(name, operator, what):
    def function(x):
        if not isinstance(x, Tensor):
            return _on_scalars(name, x)
        if name in _OF_FLOATS and "float" not in str(x.dtype):
            raise TypeError(f"topi.{name} only supports floating-point inputs, but got {x.dtype}: convert them with topi.cast")
        return one(operator, x)

    return _named(function, name, f"For each element {what}.\n\nParameters\n----------\nx : Tensor or expression")


def _make_binary(name, operator, what):
    def function(lhs, rhs):
        if not isinstance(lhs, Tensor) and not isinstance(rhs, Tensor):
            return _on_scalars(name, lhs, rhs)
        return one(operator, *_of_one_type(_like(lhs, rhs), _like(rhs, lhs)))

    doc = f"For each pair of elements {what}, with broadcasting."
    return _named(function, name, f"{doc}\n\nParameters\n----------\nlhs, rhs : Tensor or expression")


def _named(function, name, doc):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc + "\n\nReturns\n-------\nTensor, or an expression where no argument is a tensor"
    return function


def _like(value, other):
    """A number as one of the other operand's type; a tensor as it is."""
    return _const(value, str(other.dtype)) if isinstance(value, (bool, int, float)) else value


def _of_one_type(lhs, rhs):
    """Two tensors of one element type: integers become floating-point numbers, what has fewer bits becomes what has more."""
    if not isinstance(lhs, Tensor) or not isinstance(rhs, Tensor) or str(lhs.dtype) == str(rhs.dtype):
        return lhs, rhs
    kinds = [_kind_of(tensor.dtype) for tensor in (lhs, rhs)]
    if None in kinds or (kinds[0][0] != kinds[1][0] and "f" not in (kinds[0][0], kinds[1][0])):
        return lhs, rhs
    wider = max(range(2), key=lambda i: (kinds[i][0] == "f", kinds[i][1]))
    dtype = str((lhs, rhs)[wider].dtype)
    return tuple(tensor if str(tensor.dtype) == dtype else one("astype", tensor, dtype=dtype) for tensor in (lhs, rhs))


def _kind_of(dtype):
    """``("f", 32)`` of ``float32``; ``None`` for what is no plain number."""
    found = re.fullmatch(r"(u?int|float)(\d+)", str(dtype))
    return ({"int": "i", "uint": "u", "float": "f"}[found[1]], int(found[2])) if found else None


_SCALARS = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "mod": lambda a, b: a % b,
    "floor_divide": lambda a, b: a // b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
    "left_shift": lambda a, b: a << b,
    "right_shift": lambda a, b: a >> b,
    "negative": lambda a: -a,
}
_SCALAR_NAMES = {"maximum": "max", "minimum": "min", "floor_mod": "floormod"}


def _on_scalars(name, *values):
    """The same on numbers and expressions."""
    from .. import tirx

    if name in _SCALARS:
        return _SCALARS[name](*values)
    function = getattr(tirx, _SCALAR_NAMES.get(name, name), None)
    if function is None:
        raise TypeError(f"topi.{name} takes a tensor, got {', '.join(type(value).__name__ for value in values)}")
    return function(*values)


def elementwise():
    """The functions of the two tables by name."""
    made = {name: _make_unary(name, *row) for name, row in _UNARY.items()}
    return {**made, **{name: _make_binary(name, *row) for name, row in _BINARY.items()}}


__all__ = ["call", "elementwise", "one"]
