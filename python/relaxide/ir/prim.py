"""Scalar expressions: dimensions, indices, and what kernels compute.

One node serves all binary operators; the classes :class:`Add`, :class:`Sub` … make it and recognise it.
"""

from ..ffi import dtype as _dtype
from ..ffi import register_object
from . import _api
from .expr import ExprWithOp, PrimExprClass


@register_object("ir.IntImm")
class IntImm(ExprWithOp):
    """An integer literal."""

    def __init__(self, dtype, value, span=None):
        self.__init_handle_by_constructor__(_api.ir.IntImm, _dtype(dtype), int(value))

    def __int__(self):
        return self.value

    __index__ = __int__

    def __bool__(self):
        return self.value != 0

    def __hash__(self):
        return hash(self.value)

    def __eq__(self, other):
        if isinstance(other, (int, IntImm)):
            return self.value == int(other)
        return ExprWithOp.__eq__(self, other)

    def __ne__(self, other):
        if isinstance(other, (int, IntImm)):
            return self.value != int(other)
        return ExprWithOp.__ne__(self, other)


@register_object("ir.FloatImm")
class FloatImm(ExprWithOp):
    """A floating-point literal."""

    def __init__(self, dtype, value, span=None):
        self.__init_handle_by_constructor__(_api.ir.FloatImm, _dtype(dtype), float(value))

    def __float__(self):
        return self.value

    __hash__ = ExprWithOp.__hash__


@register_object("ir.StringImm")
class StringImm(ExprWithOp):
    """A literal of text."""

    def __init__(self, value, span=None):
        self.__init_handle_by_constructor__(_api.ir.StringImm, value)

    def __eq__(self, other):
        return self.value == (other.value if isinstance(other, StringImm) else other)

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(self.value)


@register_object("prim.Binary")
class Binary(ExprWithOp):
    """Arithmetic, comparison or logic of two operands of one type."""


def _operator(name, op, doc):
    def make(cls, a, b, span=None):
        return _api.prim.binary(op, a, b)

    members = {"__doc__": doc, "_op": op, "__new__": make, "__init__": lambda self, *_, **__: None}
    return PrimExprClass(name, (Binary,), members)


Add = _operator("Add", "Add", "``a + b``")
Sub = _operator("Sub", "Sub", "``a - b``")
Mul = _operator("Mul", "Mul", "``a * b``")
Div = _operator("Div", "Div", "``a / b``; truncates on integers.")
Mod = _operator("Mod", "Mod", "The remainder of the truncating division.")
FloorDiv = _operator("FloorDiv", "FloorDiv", "``a // b``, rounded down.")
FloorMod = _operator("FloorMod", "FloorMod", "``a % b``, with the sign of ``b``.")
Min = _operator("Min", "Min", "The smaller of two.")
Max = _operator("Max", "Max", "The larger of two.")
EQ = _operator("EQ", "Eq", "``a == b``")
NE = _operator("NE", "Ne", "``a != b``")
LT = _operator("LT", "Lt", "``a < b``")
LE = _operator("LE", "Le", "``a <= b``")
GT = _operator("GT", "Gt", "``a > b``")
GE = _operator("GE", "Ge", "``a >= b``")
And = _operator("And", "And", "Logical and.")
Or = _operator("Or", "Or", "Logical or.")


@register_object("prim.Not")
class Not(ExprWithOp):
    """Logical negation."""

    def __init__(self, a, span=None):
        self.__init_handle_by_constructor__(_api.prim.Not, a)


@register_object("prim.Cast")
class Cast(ExprWithOp):
    """Conversion to another element type."""

    def __init__(self, dtype, value, span=None):
        self.__init_handle_by_constructor__(_api.prim.Cast, _dtype(dtype), value)


@register_object("prim.Select")
class Select(ExprWithOp):
    """A choice by a condition; both sides may be evaluated."""

    def __init__(self, condition, true_value, false_value, span=None):
        self.__init_handle_by_constructor__(_api.prim.Select, condition, true_value, false_value)


@register_object("prim.Let")
class Let(ExprWithOp):
    """A value under a name."""


@register_object("prim.Ramp")
class Ramp(ExprWithOp):
    """The vector ``base, base + stride, …``."""


@register_object("prim.Broadcast")
class Broadcast(ExprWithOp):
    """One value in every lane."""


@register_object("prim.Call")
class PrimCall(ExprWithOp):
    """An intrinsic or another function, by name."""


@register_object("tirx.BufferLoad")
class BufferLoad(ExprWithOp):
    """An element of a buffer."""


def const(value, dtype=None, span=None):
    """A literal; its type follows from the value where none is given."""
    if dtype is None:
        dtype = "bool" if isinstance(value, bool) else "int32" if isinstance(value, int) else "float32"
    return _api.prim.const(value, _dtype(dtype))
