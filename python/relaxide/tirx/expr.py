"""Axes of blocks and of reductions; scalar expressions, under the name of TVM's module."""

from ..ffi import register_object
from ..ir import _api
from ..ir.base import Node, Scriptable
from ..ir.expr import EqualOp, ExprOp, NotEqualOp, Range, Var
from ..ir.prim import EQ, GE, GT, LE, LT, NE, Add, And, BitwiseAnd, BitwiseNot, BitwiseOr, BitwiseXor, Broadcast, BufferLoad
from ..ir.prim import Cast, Div, FloatImm, FloorDiv, FloorMod, IntImm, Let, LShift, Max, Min, Mod, Mul, Not, Or, Ramp, RShift
from ..ir.prim import Select, StringImm, Sub, const

class IntImmEnum:
    """A number by a name, which becomes a literal where one is asked for."""

    def __init__(self, value, span=None):
        self.value, self.span = value, span

    def asobject(self):
        """The literal."""
        return IntImm("int32", self.value)

    def __eq__(self, other):
        return isinstance(other, IntImmEnum) and self.value == other.value

    def __hash__(self):
        return hash(self.value)

    def __repr__(self):
        return f"IntImmEnum({self.value})"


class CallEffectKind:
    """What a call of an operator may do, as the attribute ``TCallEffectKind`` of operators says it."""

    #: It marks an expression.
    ExprAnnotation = IntImmEnum(0)
    #: It computes its result, and nothing else.
    Pure = IntImmEnum(1)
    #: It reads memory.
    ReadState = IntImmEnum(2)
    #: It writes memory.
    UpdateState = IntImmEnum(3)
    #: It may do anything.
    Opaque = UpdateState


#: Numbers that callers use for what an axis means, in the order of the node's own.
_KINDS = (0, 2, 3, 4)


class ThreadAxis:
    """An axis of threads: ``var`` takes the numbers of the threads that ``thread_tag`` names, such as ``"threadIdx.x"``. ``dom`` is the
    range of the numbers, or ``None`` where a launch says it. A loop that is bound to threads has it as ``thread_binding``."""

    iter_type = 1

    def __init__(self, dom, var, thread_tag):
        dom = Range(*dom) if isinstance(dom, (tuple, list)) else dom
        dtype = "int32" if dom is None else str(dom.extent.dtype)
        self.dom, self.thread_tag = dom, thread_tag
        self.var = Var(thread_tag.replace(".", "_"), dtype) if var is None else Var(var, dtype) if isinstance(var, str) else var

    def __eq__(self, other):
        return self.thread_tag == getattr(other, "thread_tag", other)

    def __hash__(self):
        return hash(self.thread_tag)

    def expr_ty(self):
        """The type of the variable."""
        return self.var.ty

    def asobject(self):
        """The variable, where the axis stands in an expression."""
        return self.var

    def __repr__(self):
        return f'T.iter_var({self.var}, {self.dom}, "ThreadIndex", "{self.thread_tag}")'


@register_object("tirx.IterVar")
class IterVar(Node, Scriptable):
    """An axis: a variable that takes the values of a range, and what it means that it does.

    ``dom`` is a range or a pair ``(begin, end)``; ``var`` a variable or a name. An axis of threads, which has a ``thread_tag``, is a
    :class:`ThreadAxis`; axes of the kinds of loops are those of a :class:`For`.
    """

    DataPar = 0
    ThreadIndex = 1
    CommReduce = 2
    Ordered = 3
    Opaque = 4
    Unrolled = 5
    Vectorized = 6
    Parallelized = 7
    Tensorized = 8

    def __new__(cls, dom=None, var=None, iter_type=0, thread_tag="", span=None):
        if thread_tag or iter_type == cls.ThreadIndex:
            return ThreadAxis(dom, var, thread_tag)
        return super().__new__(cls)

    def __init__(self, dom, var, iter_type, thread_tag="", span=None):
        if iter_type not in _KINDS:
            raise NotImplementedError("how a loop is executed is said by the kind of the For, not by an axis")
        if isinstance(dom, (tuple, list)):
            dom = Range(*dom)
        if not isinstance(dom, Range):
            raise TypeError("dom need to be Range")
        var = var if isinstance(var, Var) else Var(var, str(dom.extent.dtype))
        kind = _KINDS.index(iter_type)
        self.__init_handle_by_constructor__(_api.tirx.IterVar, dom.min, dom.extent, var, kind)

    @property
    def dom(self):
        """The range of its values."""
        return Range.from_min_extent(self.min, self.extent)

    @property
    def iter_type(self):
        """What it means: one of the numbers above."""
        return _KINDS[self.kind]

    @property
    def thread_tag(self):
        """Axes of blocks have no threads."""
        return ""

    def expr_ty(self):
        """The type of the variable."""
        return self.var.ty

    def asobject(self):
        """The variable, where the axis stands in an expression."""
        return self.var


__all__ = [
    "CallEffectKind",
    "IntImmEnum",
    "IterVar",
    "EQ",
    "GE",
    "GT",
    "LE",
    "LT",
    "NE",
    "Add",
    "And",
    "BitwiseAnd",
    "BitwiseNot",
    "BitwiseOr",
    "BitwiseXor",
    "Broadcast",
    "BufferLoad",
    "Cast",
    "Div",
    "FloatImm",
    "FloorDiv",
    "FloorMod",
    "IntImm",
    "LShift",
    "Let",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "Not",
    "Or",
    "RShift",
    "Ramp",
    "Select",
    "StringImm",
    "Sub",
    "const",
    "Var",
]
