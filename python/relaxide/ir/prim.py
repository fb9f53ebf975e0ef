"""Scalar expressions: dimensions, indices, and what kernels compute.

One node serves all binary operators, with a class for each: :class:`Add`, :class:`Sub` … Operators on bits are intrinsics,
with classes of their own too.
"""

import re

from .._core import set_kind_classes
from ..error import InternalError
from ..ffi import dtype as _dtype
from ..ffi import register_object
from ..ffi import structural_equal as _equal
from . import _api
from .expr import ExprWithOp


def _check_range(dtype, value):
    """A ValueError where an integer type has no such number."""
    match = _INTEGER.fullmatch(str(dtype))
    # Conditions of older texts are of one bit.
    if match and match[2] != "1":
        bits, signed = int(match[2]), match[1] == "int"
        least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        if not least <= value <= most:
            raise ValueError(f"{value} is no {dtype}, which goes from {least} to {most}")


_INTEGER = re.compile(r"(u?int)(\d+)")


@register_object("ir.IntImm")
class IntImm(ExprWithOp):
    """An integer literal."""

    def __init__(self, dtype, value, span=None):
        _check_range(dtype, int(value))
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
    """A literal of text, in kernels and as a Relax value."""

    def __init__(self, value, span=None):
        self.__init_handle_by_constructor__(_api.ir.StringImm, value)

    def __eq__(self, other):
        return self.value == (other.value if isinstance(other, StringImm) else other)

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(self.value)


@register_object("prim.Binary")
class BinaryOpExpr(ExprWithOp):
    """An operator of two operands of one type. A number takes the other operand's type; operands of two types are a
    TypeError. Nothing is computed: ``tirx.add(1, 2)`` is ``3``, ``tirx.Add(1, 2)`` the sum."""

    _op = None

    def __init__(self, a, b, span=None):
        if self._op is None:
            raise TypeError(f"{type(self).__name__} is the base of operators: use one of them")
        self.__init_handle_by_constructor__(_api.prim.Binary, self._op, a, b)


class CmpExpr(BinaryOpExpr):
    """The base of comparisons: bools."""


class LogicalExpr(BinaryOpExpr):
    """The base of what joins bools."""


def _operator(name, op, doc, base=BinaryOpExpr):
    return type(name, (base,), {"__doc__": doc, "_op": op, "__module__": __name__})


Add = _operator("Add", "Add", "``a + b``")
Sub = _operator("Sub", "Sub", "``a - b``")
Mul = _operator("Mul", "Mul", "``a * b``")
Div = _operator("Div", "Div", "``a / b``; truncates on integers.")
Mod = _operator("Mod", "Mod", "The remainder of the truncating division.")
FloorDiv = _operator("FloorDiv", "FloorDiv", "``a // b``, rounded down.")
FloorMod = _operator("FloorMod", "FloorMod", "``a % b``, with the sign of ``b``.")
Min = _operator("Min", "Min", "The smaller of two.")
Max = _operator("Max", "Max", "The larger of two.")
EQ = _operator("EQ", "Eq", "``a == b``", CmpExpr)
NE = _operator("NE", "Ne", "``a != b``", CmpExpr)
LT = _operator("LT", "Lt", "``a < b``", CmpExpr)
LE = _operator("LE", "Le", "``a <= b``", CmpExpr)
GT = _operator("GT", "Gt", "``a > b``", CmpExpr)
GE = _operator("GE", "Ge", "``a >= b``", CmpExpr)
And = _operator("And", "And", "Logical and.", LogicalExpr)
Or = _operator("Or", "Or", "Logical or.", LogicalExpr)

_BINARY = (Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max, EQ, NE, LT, LE, GT, GE, And, Or)
set_kind_classes("prim.Binary", "op", {cls._op: cls for cls in _BINARY})


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
        if all(type(value) is int for value in (true_value, false_value)):
            true_value, false_value = const(true_value, "int32"), const(false_value, "int32")
        self.__init_handle_by_constructor__(_api.prim.Select, condition, true_value, false_value)


@register_object("prim.Let")
class Let(ExprWithOp):
    """``body`` with a value under a name."""

    def __init__(self, var, value, body, span=None):
        value = const(value, str(var.dtype)) if isinstance(value, int | float) else value
        if hasattr(value, "dtype") and value.dtype != var.dtype:
            raise InternalError(f"the variable {var.name} is of type {var.dtype}, its value of type {value.dtype}")
        self.__init_handle_by_constructor__(_api.prim.Let, var, value, body)


class WrongLanes(InternalError, ValueError):
    """Lanes that no vector has. An error of two kinds: TVM's is the first, and the second says what it is."""


class _Vector(ExprWithOp):
    """The base of what has lanes."""

    def _make(self, constructor, *parts):
        try:
            self.__init_handle_by_constructor__(constructor, *parts)
        except ValueError as error:
            raise WrongLanes(str(error)) from error

    @property
    def lanes(self):
        """How many lanes there are: a number, or a multiple of ``T.vscale()``."""
        _, _, times = str(self.dtype).partition("xvscalex")
        if times:
            return _api.prim.binary("Mul", _api.prim.call(_dtype("int32"), "tirx.vscale", []), int(times))
        return const(self.dtype.lanes, "int32")


@register_object("prim.Ramp")
class Ramp(_Vector):
    """The vector ``base, base + stride, …`` of so many lanes, or of a multiple of ``T.vscale()``."""

    def __init__(self, base, stride, lanes, span=None):
        if isinstance(base, int) and isinstance(stride, int):
            base, stride = const(base, "int32"), const(stride, "int32")
        self._make(_api.prim.Ramp, base, stride, lanes)


@register_object("prim.Broadcast")
class Broadcast(_Vector):
    """One value in every lane."""

    def __init__(self, value, lanes, span=None):
        self._make(_api.prim.Broadcast, const(value, "int32") if isinstance(value, int) else value, lanes)


#: The intrinsic that calls of kernels are, the name of the callee before their arguments.
CALL_KERNEL = "tirx.call_kernel"


def remade_call(call, args):
    """The same call with other arguments."""
    given = [call._field("args")[0], *args] if call._field("op") == CALL_KERNEL else list(args)
    return _api.prim.call(call.dtype, call._field("op"), given)


class Intrinsic(str):
    """The function of a scalar call: its name, as text and as ``name``."""

    @property
    def name(self):
        """The name, such as ``"tirx.exp"``."""
        return str(self)

    def same_as(self, other):
        """Whether another is the same function."""
        return str(self) == getattr(other, "name", other)


@register_object("prim.Call", init=False)
class PrimCall(ExprWithOp):
    """An intrinsic, another function by name, or another kernel of the module: ``op`` and ``args``."""

    @property
    def op(self):
        """The function's name (:class:`Intrinsic`); of a call of a kernel its :class:`~relaxide.ir.GlobalVar`."""
        name = self._field("op")
        if name == CALL_KERNEL:
            from .expr import GlobalVar

            return GlobalVar(self._field("args")[0].value)
        return Intrinsic(name)

    @property
    def ty(self):
        """The type of the result; of the address of an element or a variable, a pointer to what lies there."""
        from .type import PointerType, PrimType

        op, args = self._field("op"), self._field("args")
        if op == "tirx.address_of":
            scope = args[0].buffer.scope() if isinstance(args[0], BufferLoad) else "global"
            return PointerType(PrimType(str(args[0].dtype)), scope)
        if op == "tirx.tvm_access_ptr":
            return PointerType(PrimType(str(args[0].dtype)), getattr(args[1].ty, "storage_scope", "global"))
        if op == "tirx.reinterpret" and str(self.dtype) == "handle":
            return PointerType(PrimType("void"))
        return super().ty

    @property
    def args(self):
        """The arguments."""
        args = self._field("args")
        return args[1:] if self._field("op") == CALL_KERNEL else args


class _BitOperator(PrimCall):
    """The base of operators on bits, which are intrinsics."""

    def __init__(self, a, b, span=None):
        if self._op is None:
            raise TypeError(f"{type(self).__name__} is the base of operators: use one of them")
        base = a if isinstance(a, ExprWithOp) else b
        operands = [const(x, base.dtype) if isinstance(x, int) else x for x in (a, b)]
        self.__init_handle_by_constructor__(_api.prim.call, base.dtype, self._op, operands)

    _op = None

    @property
    def a(self):
        """The first operand."""
        return self.args[0]

    @property
    def b(self):
        """The second operand."""
        return self.args[1]


def _bit_operator(name, op, doc):
    return type(name, (_BitOperator,), {"__doc__": doc, "_op": f"tirx.{op}", "__module__": __name__})


BitwiseAnd = _bit_operator("BitwiseAnd", "bitwise_and", "``a & b``")
BitwiseOr = _bit_operator("BitwiseOr", "bitwise_or", "``a | b``")
BitwiseXor = _bit_operator("BitwiseXor", "bitwise_xor", "``a ^ b``")
LShift = _bit_operator("LShift", "shift_left", "``a << b``")
RShift = _bit_operator("RShift", "shift_right", "``a >> b``")


class BitwiseNot(PrimCall):
    """``~a``"""

    _op = "tirx.bitwise_not"

    def __init__(self, a, span=None):
        self.__init_handle_by_constructor__(_api.prim.call, a.dtype, self._op, [a])

    @property
    def a(self):
        """The operand."""
        return self.args[0]


_BITS = (BitwiseAnd, BitwiseOr, BitwiseXor, LShift, RShift, BitwiseNot)
set_kind_classes("prim.Call", "op", {cls._op: cls for cls in _BITS})


@register_object("tirx.BufferLoad")
class BufferLoad(ExprWithOp):
    """The element of a buffer at indices. Of a vector, only the lanes of ``predicate`` are read; the others are zero."""

    def __init__(self, buffer, indices, predicate=None, span=None):
        indices = [const(index) if isinstance(index, int) else index for index in indices]
        self.__init_handle_by_constructor__(_api.tirx.BufferLoad, buffer, indices, predicate)

    @property
    def source(self):
        """The buffer."""
        return self.buffer


_LARGEST_FLOAT32 = 3.4028234663852886e38
_LARGEST_FLOATS = {"float16": 65504.0, "float32": _LARGEST_FLOAT32}


def const(value, dtype=None, span=None):
    """A literal; its type follows from the value where none is given: NumPy's, or 32 bits where they hold it, else 64. A ValueError where a type
    has no such number: an integer that is too large, a number beyond the largest of float16 or float32."""
    if hasattr(value, "item") and hasattr(value, "dtype"):
        # NumPy's numbers know their type.
        dtype, value = str(value.dtype) if dtype is None else dtype, value.item()
    if dtype is None and isinstance(value, (bool, int)):
        dtype = "bool" if isinstance(value, bool) else "int32" if -(1 << 31) <= value < 1 << 31 else "int64"
    elif dtype is None:
        large = isinstance(value, float) and _LARGEST_FLOAT32 < abs(value) < float("inf")
        dtype = "float64" if large else "float32"
    if isinstance(value, int):
        _check_range(dtype, value)
    largest = _LARGEST_FLOATS.get(str(dtype))
    if largest is not None and isinstance(value, float) and largest < abs(value) < float("inf"):
        raise ValueError(f"{value!r} is no {dtype}: the largest is {largest!r}")
    return _api.prim.const(value, _dtype(dtype))


def convert(expr):
    """A Python number as a literal; a scalar as it is. A TypeError for anything else."""
    if isinstance(expr, ExprWithOp):
        return expr
    if isinstance(expr, (bool, int, float)):
        return const(expr)
    if isinstance(expr, str):
        return StringImm(expr)
    raise TypeError(f"expected a number, a text or a scalar, got {type(expr).__name__}")


def expr_deep_equal(lhs, rhs):
    """Whether two scalars are written alike; variables are equal to themselves only."""
    return _equal(lhs, rhs, False, False)


def __getattr__(name):
    # Functions of types and numbers are those of kernels, which this module comes before.
    if name in ("clz", "max_value", "min_value", "Shuffle"):
        from .. import tirx

        return getattr(tirx, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
