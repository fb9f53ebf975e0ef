"""Expressions that all languages share, and their operators.

A variable holds a scalar or anything else; operators ask its type. On scalars they make scalar expressions, on tensors
calls of Relax operators.
"""

import math
import struct
from typing import Any

from .. import _core
from ..error import InternalError
from ..ffi import Object, register_object
from ..ffi import dtype as _dtype
from . import _api
from .attrs import DictAttrs
from .base import Node, Scriptable
from .type import FuncType, PointerType, PrimType, Type

_SCALARS = "ir.IntImm ir.FloatImm prim.Binary prim.Not prim.Cast prim.Select prim.Let prim.Ramp prim.Broadcast"
_SCALARS = frozenset(_SCALARS.split() + ["prim.Call", "tirx.BufferLoad"])


class Expr(Node):
    """The base of all expressions."""

    @property
    def ty(self):
        """What it evaluates to, as far as inference knows."""
        return _api.ir.ExprType(self)

    @property
    def struct_info(self):
        """The type, under the name that it had in older releases of TVM."""
        return self.ty


def is_prim_expr(value):
    """Whether a value is a scalar expression."""
    key = getattr(type(value), "__tvm_ffi_type_key__", None)
    if key in ("ir.Var", "relax.expr.DataflowVar"):
        return isinstance(value.ty, (PrimType, PointerType))
    return key in _SCALARS


def is_prim_var(value):
    """Whether a value is a scalar variable."""
    return isinstance(value, Var) and isinstance(value.ty, PrimType)


class ExprOp:
    """What is written with operators like an expression; the base of comparisons that wait."""

    __slots__ = ()


class _Deferred(ExprOp):
    """A comparison of two scalars: an expression where one is needed, an answer about identity where a bool is."""

    __slots__ = ("a", "b", "span")
    _op = None

    def __init__(self, a, b, span=None):
        self.a, self.b, self.span = a, b, span

    def asobject(self):
        """The comparison as an expression."""
        return _api.prim.binary(self._op, self.a, self.b)

    def expr_ty(self):
        """The type of the comparison."""
        return PrimType("bool")

    def __bool__(self):
        same = isinstance(self.b, Object) and self.a.same_as(self.b)
        return same if self._op == "Eq" else not same

    def __repr__(self):
        return repr(self.asobject())


class EqualOp(_Deferred):
    """``a == b``: whether they are one node where a bool is needed, a comparison elsewhere."""

    __slots__ = ()
    _op = "Eq"


class NotEqualOp(_Deferred):
    """``a != b``: whether they are two nodes where a bool is needed, a comparison elsewhere."""

    __slots__ = ()
    _op = "Ne"


def _operand(value):
    return value.asobject() if isinstance(value, _Deferred) else value


def _is_number(value):
    return isinstance(value, (int, float)) or type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0


def _binary(prim, relax):
    def operate(a, b):
        b = _operand(b)
        if is_prim_expr(a) and (is_prim_expr(b) or _is_number(b)):
            return prim(a, b)
        if not isinstance(b, Expr) and not _is_number(b) and not isinstance(b, _core.Tensor):
            if not hasattr(b, "__array__"):
                return NotImplemented
        return _core.op_call(relax, (a, b), {}, None)

    return operate


def _swapped(operate):
    def swapped(a, b):
        return operate(b, a) if isinstance(b, Expr) else _reflected(operate, a, b)

    return swapped


def _reflected(operate, a, b):
    """``b op a`` where ``b`` is no expression."""
    prim, relax = operate.parts
    if is_prim_expr(a):
        return prim(b, a)
    return _core.op_call(relax, (b, a), {}, None)


def _prim(op):
    def make(a, b):
        check_divisor(op, a, b)
        made = _api.prim.binary(op, a, b)
        # Of two numbers the result is a number.
        if _integer(a) is not None and _integer(b) is not None:
            return _wrapped(op, a, b, made)
        return _rounded(op, a, b, made)

    return make


def _float(value):
    """The value of a literal with a point or of Python's; ``None`` of anything else."""
    if type(value) is float:
        return value
    return value.value if getattr(type(value), "__tvm_ffi_type_key__", None) == "ir.FloatImm" else None


_OF_FLOATS = {"Add": float.__add__, "Sub": float.__sub__, "Mul": float.__mul__, "Div": float.__truediv__}
_PACKED = {"float16": "e", "float32": "f", "float64": "d"}


def _rounded(op, a, b, made):
    """The number that an operator gives of two with a point, infinities among them; ``made`` where it is no number of that kind."""
    x, y = _float(a), _float(b)
    if x is None or y is None or op not in _OF_FLOATS or _float(made) is not None:
        return made
    dtype = _api.prim.dtype(made)
    code = _PACKED.get(str(dtype))
    if code is None:
        return made
    if op == "Div" and y == 0:
        raise _Refused("divide by zero: the divisor is the literal 0")
    value = _OF_FLOATS[op](x, y)
    try:
        value = struct.unpack(code, struct.pack(code, value))[0]
    except OverflowError:
        value = math.copysign(math.inf, value)
    return _api.ir.FloatImm(dtype, value)


def _integer(value):
    """The value of an integer literal or of Python's integer; ``None`` of anything else, and of bools."""
    if type(value) is int:
        return value
    literal = getattr(type(value), "__tvm_ffi_type_key__", None) == "ir.IntImm"
    return value.value if literal and str(value.dtype) != "bool" else None


_FOLDED = {"Add": int.__add__, "Sub": int.__sub__, "Mul": int.__mul__}


def _wrapped(op, a, b, made):
    """The number that an operator gives of two, in the bits of their type; ``made`` where it is no number of that kind."""
    dtype = _api.prim.dtype(made)
    if op not in _FOLDED or dtype.bits > 64:
        return made
    value = _in_bits(dtype, _FOLDED[op](_integer(a), _integer(b)))
    return made if value is None else value


def _in_bits(dtype, value):
    """An integer literal of the lowest bits of a number; ``None`` where a literal cannot have it."""
    value %= 1 << dtype.bits
    if str(dtype).startswith("int") and value >= 1 << (dtype.bits - 1):
        value -= 1 << dtype.bits
    return None if value >= 1 << 63 else _api.ir.IntImm(dtype, value)


def _divide(a, b):
    # On integers the bar could mean two things, so it means neither.
    for side in (a, b):
        dtype = getattr(side, "dtype", None)
        if dtype is not None and str(dtype).startswith(("int", "uint")):
            raise RuntimeError(
                "TVM supports multiple types of integer divisions, please call div, indexdiv/indexmod, floordiv/floormod "
                "or truncdiv/truncmod directly to avoid ambiguity in the code."
            )
    return _rounded("Div", a, b, _api.prim.binary("Div", a, b))


def _intrinsic(name):
    def make(a, b):
        base = a if is_prim_expr(a) else b
        dtype = base.dtype
        a, b = (_api.prim.const(x, dtype) if _is_number(x) else x for x in (a, b))
        folded = bits_of(name, dtype, a, b)
        return _api.prim.call(dtype, f"tirx.{name}", [a, b]) if folded is None else folded

    return make


_BITS = {
    "bitwise_and": int.__and__,
    "bitwise_or": int.__or__,
    "bitwise_xor": int.__xor__,
    "shift_left": int.__lshift__,
    "shift_right": int.__rshift__,
}


class _Refused(InternalError, ValueError):
    """Operands that an operator cannot have. An error of two kinds: TVM's is the first, and the second says what it is."""


def bits_of(name, dtype, a, b):
    """What an operator on the bits of integers gives where it is known at once: of two literals, or of a shift by nothing.

    Raises
    ------
    RuntimeError, ValueError
        An operand is no integer, or there is a shift by more than the bits that there are.
    """
    if name not in _BITS:
        return None
    if str(dtype).startswith(("float", "bfloat")):
        raise _Refused(f"{name} is of integers, and {a} and {b} are of type {dtype}: reinterpret has the bits of a number")
    x, y = _integer(a), _integer(b)
    if name.startswith("shift") and y is not None:
        if not 0 <= y < dtype.bits:
            raise _Refused(f"{name} of {dtype} by {y}: a shift is by 0 to {dtype.bits - 1} bits")
        if y == 0:
            return a
    return None if x is None or y is None else _in_bits(dtype, _BITS[name](x, y))


def check_divisor(op, a, b):
    """Refuse a division of integers by a literal zero."""
    if op not in ("Div", "Mod", "FloorDiv", "FloorMod") or _integer(b) != 0 or isinstance(a, float):
        return
    if not str(getattr(a, "dtype", "int")).startswith(("float", "bfloat")):
        raise _Refused("divide by zero: the divisor is the literal 0")


def _operators(cls):
    """Give a class its operators."""
    for name, prim, relax in (
        ("add", _prim("Add"), "add"),
        ("sub", _prim("Sub"), "subtract"),
        ("mul", _prim("Mul"), "multiply"),
        ("truediv", _divide, "divide"),
        ("floordiv", _prim("FloorDiv"), "floor_divide"),
        ("mod", _prim("FloorMod"), "floor_mod"),
        ("pow", _intrinsic("pow"), "power"),
        ("matmul", None, "matmul"),
        ("lshift", _intrinsic("shift_left"), "left_shift"),
        ("rshift", _intrinsic("shift_right"), "right_shift"),
        ("and", _intrinsic("bitwise_and"), "bitwise_and"),
        ("or", _intrinsic("bitwise_or"), "bitwise_or"),
        ("xor", _intrinsic("bitwise_xor"), "bitwise_xor"),
    ):
        operate = _binary(prim, relax)
        operate.parts = (prim, relax)
        setattr(cls, f"__{name}__", operate)
        setattr(cls, f"__r{name}__", _swapped(operate))
    for name, op, relax in (("lt", "Lt", "less"), ("le", "Le", "less_equal"), ("gt", "Gt", "greater")):
        setattr(cls, f"__{name}__", _binary(_prim(op), relax))
    cls.__ge__ = _binary(_prim("Ge"), "greater_equal")
    return cls


@_operators
class ExprOperand:
    """What stands for an expression among operators: those of scalars, or operators of Relax."""

    def expr_ty(self):
        """The type of a scalar. A TypeError where it is none."""
        if not is_prim_expr(self):
            raise TypeError(f"a scalar has a type of elements, and this is of type {self.ty}")
        return self.ty

    @property
    def dtype(self):
        """The element type of a scalar or of a tensor."""
        if is_prim_expr(self):
            return _api.prim.dtype(self)
        dtype = getattr(self.ty, "dtype", None)
        if dtype is None:
            raise AttributeError(f"an expression of type {self.ty} has no dtype")
        return dtype

    def __neg__(self):
        if is_prim_expr(self):
            return _api.prim.binary("Mul", self, -1)
        return _core.op_call("negative", (self,), {}, None)

    def __invert__(self):
        if is_prim_expr(self):
            bits_of("bitwise_or", self.dtype, self, self)
            return _api.prim.call(self.dtype, "tirx.bitwise_not", [self])
        return _core.op_call("bitwise_not", (self,), {}, None)

    def __eq__(self, other):
        other = _operand(other)
        if is_prim_expr(self) and (is_prim_expr(other) or _is_number(other)):
            return EqualOp(self, other)
        return self.same_as(other)

    def __ne__(self, other):
        other = _operand(other)
        if is_prim_expr(self) and (is_prim_expr(other) or _is_number(other)):
            return NotEqualOp(self, other)
        return not self.same_as(other)

    __hash__ = Object.__hash__

    def __bool__(self):
        raise ValueError("an expression is no bool: use tirx.all and tirx.any for scalars, `is not None` for presence")

    def equal(self, other, span=None):
        """The comparison of two scalars as an expression; a literal where both are the machine's lanes."""
        made = _api.prim.binary("Eq", self, other)
        is_lanes = getattr(self, "op", None) == "tirx.vscale" and getattr(other, "op", None) == "tirx.vscale"
        return _api.ir.IntImm(_dtype("bool"), 1) if is_lanes else made

    def astype(self, dtype, span=None):
        """Conversion to another element type."""
        if is_prim_expr(self):
            dtype = _dtype(dtype)
            element, _, lanes = str(dtype).partition("x")
            if lanes.isdigit() and "x" not in str(self.dtype):
                from .prim import Broadcast

                # One value in every lane: a conversion keeps the lanes that there are.
                return Broadcast(_api.prim.cast(element, self), int(lanes))
            value = _float(self)
            if value is not None and element.startswith(("int", "uint")) and not lanes and math.isfinite(value):
                whole = math.trunc(value)
                folded = _in_bits(dtype, whole)
                # A number that the type does not hold is converted as the machine does it.
                return folded if folded is not None and folded.value == whole else _api.prim.cast(dtype, self)
            return _api.prim.cast(dtype, self)
        return _core.op_call("astype", (self,), {"dtype": _dtype(dtype)}, None)


class ExprWithOp(ExprOperand, Expr, Scriptable, ExprOp):
    """Expressions that are operands."""

    __eq__, __ne__, __hash__ = ExprOperand.__eq__, ExprOperand.__ne__, Object.__hash__

    def __call__(self, *args, attrs=None):
        if is_prim_expr(self):
            raise TypeError("a scalar cannot be called")
        return Call(self, args, attrs)

    def __getitem__(self, index):
        if is_prim_expr(self):
            raise TypeError("a scalar has no elements")
        return TupleGetItem(self, index)

    # Tuples have a length only where their type is known; then they can be unpacked.
    def __len__(self):
        fields = getattr(self.ty, "fields", None)
        if fields is None:
            raise TypeError(f"an expression of type {self.ty} has no length")
        return len(fields)

    def __iter__(self):
        return (self[index] for index in range(len(self)))


@register_object("ir.Var")
class Var(ExprWithOp):
    """A variable. Identity counts, not the name. Text as its type is the element type of a scalar."""

    def __init__(self, name: str | None = None, ty: Any = None, span: Any = None, *, name_hint: str | None = None) -> None:
        if (name is None) == (name_hint is None):
            raise TypeError("Specify either name or name_hint, and one of them")
        name = name_hint if name is None else name
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, got {type(name).__name__}")
        if isinstance(ty, str):
            ty = PointerType(PrimType("void")) if ty == "handle" else PrimType(ty)
        elif ty is not None and not isinstance(ty, Type):
            raise TypeError("ty must be a Type or the name of an element type")
        self.__init_handle_by_constructor__(_api.ir.Var, name, ty, span)

    @property
    def ty(self):
        """What it holds."""
        return self._field("ty")

    @property
    def name_hint(self):
        """The name it prints by."""
        return self.name


@register_object("ir.GlobalVar")
class GlobalVar(Expr, Scriptable):
    """The name of a function of a module. Two of one name stand for the same function."""

    def __init__(self, name_hint: str, ty: Any = None) -> None:
        self.__init_handle_by_constructor__(_api.ir.GlobalVar, name_hint, ty)

    @property
    def name_hint(self):
        """The name."""
        return self.name

    @property
    def ty(self):
        """The function's type, where it is known."""
        return self._field("ty")

    def __call__(self, *args):
        return Call(self, args)

    def __eq__(self, other):
        return isinstance(other, GlobalVar) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return f'I.GlobalVar("{self.name}")'


#: What a call's attributes are read through.
AttrView = DictAttrs


@register_object("ir.Call")
class Call(ExprWithOp):
    """A call of an operator, a function of the module, an external function or a closure.

    Its type is inferred where ``ret_ty`` is not given; a call that does not fit its operator is refused.
    """

    def __init__(self, op: Any, args: Any, attrs: Any = None, ty_args: Any = None, span: Any = None, ret_ty: Any = None) -> None:
        from .op import Op

        if op is None:
            raise ValueError("a call needs a defined operator: an operator's name, an operator, a function or a variable, not None")
        op = Op.get(op) if isinstance(op, str) else op
        if isinstance(ret_ty, str):
            ret_ty = PrimType(ret_ty)
        attrs = dict(attrs) if attrs else None
        self.__init_handle_by_constructor__(_api.ir.Call, op, list(args), attrs, ty_args, span, ret_ty)

    @property
    def ty(self):
        """What it evaluates to."""
        return self._field("ty")

    @property
    def attrs(self):
        """The constant parameters of the operator; ``None`` where it has none."""
        attrs = self._field("attrs")
        return AttrView(attrs) if len(attrs) else None


@register_object("ir.Tuple")
class Tuple(ExprWithOp):
    """A tuple."""

    def __init__(self, fields: Any, span: Any = None) -> None:
        self.__init_handle_by_constructor__(_api.ir.Tuple, list(fields))

    def __getitem__(self, index):
        try:
            return self.fields[index]
        except IndexError:
            raise IndexError(f"Tuple index out of range: {index} of {len(self.fields)}") from None

    def __len__(self):
        return len(self.fields)

    def __iter__(self):
        return iter(self.fields)


@register_object("ir.TupleGetItem")
class TupleGetItem(ExprWithOp):
    """A field of a tuple."""

    def __init__(self, tuple_value: Any, index: int, span: Any = None) -> None:
        fields = getattr(tuple_value.ty, "fields", None)
        index = int(index)
        if fields is not None and not 0 <= index < len(fields):
            raise IndexError(f"the tuple has {len(fields)} fields, so there is no field {index}")
        self.__init_handle_by_constructor__(_api.ir.TupleGetItem, tuple_value, index)

    @property
    def tuple_value(self):
        """The tuple."""
        return self.tuple


@register_object("ir.GenericConst")
class GenericConst(ExprWithOp):
    """A tensor constant."""

    def __init__(self, value, ty=None, span=None):
        self.__init_handle_by_constructor__(_api.ir.GenericConst, value, ty)

    @property
    def data(self):
        """The value."""
        return self.value

    @property
    def ty(self):
        """Its type."""
        return self._field("ty")


Constant = GenericConst


@register_object("ir.Range")
class Range(Node, Scriptable):
    """A range of integers: from ``begin`` up to but not including ``end``, or the first ``begin`` ones.

    ``min`` is the first and ``extent`` says how many there are.
    """

    def __init__(self, begin, end=None, span=None):
        begin, end = (0, begin) if end is None else (begin, end)
        self._init(begin, end - begin)

    def _init(self, *bounds):
        bounds = [_api.prim.const(bound, _dtype("int32")) if isinstance(bound, int) else bound for bound in bounds]
        self.__init_handle_by_constructor__(_api.ir.Range, *bounds)

    @staticmethod
    def from_min_extent(min_value, extent, span=None):
        """The range of a first value and a length."""
        made = Range.__new__(Range)
        made._init(min_value, extent)
        return made


def __getattr__(name):
    # Literals and loads are in a file that builds on this one.
    if name in ("StringImm", "TensorLoad", "TensorRegion"):
        from .. import ir

        return getattr(ir, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["Call", "Constant", "Expr", "ExprOperand", "ExprWithOp", "FuncType", "GenericConst", "GlobalVar", "Range", "Tuple"]
__all__ += ["TupleGetItem", "Var", "is_prim_expr", "is_prim_var"]
