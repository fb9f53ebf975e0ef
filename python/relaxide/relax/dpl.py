"""The dataflow pattern language: shapes of computations, found and replaced.

::

    x = wildcard()
    pattern = is_op("relax.add")(x, x)
    func = rewrite_call(pattern, lambda call, parts: relax.op.multiply(parts[x], relax.const(2.0)), func)

Parts that are one pattern must stand for one value.
"""

from .. import _core
from ..ffi import Object, register_object
from ..ffi import dtype as _dtype
from ..ir._api import Api
from ..ir.base import Node, structural_equal
from ..ir.op import Op
from ._dpl_rewriter import ExprPatternRewriter, OrRewriter, PatternMatchingRewriter, rewrite_bindings, rewrite_call

_dpl = Api("relax.dpl")


@register_object("relax.dpl.Pattern")
class DFPattern(Node):
    """A pattern, or a part of one."""

    def __call__(self, *args, varg_default_wildcard=False, add_constraint=True):
        """A call of this with arguments; with ``varg_default_wildcard`` further ones may follow."""
        return _noted(_dpl.call(self, list(args), varg_default_wildcard))

    def __or__(self, other):
        return _dpl.__getattr__("or")(self, other)

    def __and__(self, other):
        return _dpl.__getattr__("and")(self, other)

    def __invert__(self):
        return reject(self)

    def __getitem__(self, index):
        return is_tuple_get_item(self, index)

    def has_attr(self, attrs):
        """The same with attributes."""
        return _narrowed(self, _dpl.has_attr(self, dict(attrs)))

    def has_type(self, ty):
        """The same of a type."""
        return _narrowed(self, _dpl.has_type(self, ty))

    def has_dtype(self, dtype):
        """The same of an element type."""
        return _narrowed(self, _dpl.has_dtype(self, _dtype(dtype)))

    def has_shape(self, shape):
        """The same of a shape."""
        return _narrowed(self, _dpl.has_shape(self, list(shape)))

    def has_same_shape_as(self, other):
        """In a context: the other stands for a tensor of the same shape."""
        context = PatternContext.current()
        if context is None:
            raise ValueError("has_same_shape_as stands in a `with PatternContext()` block")
        context._same_shape.append([self, other])
        return self

    def has_ty(self, ty):
        """As :meth:`has_type`."""
        return self.has_type(ty)

    def same_shape_as(self, *args):
        """Whether the values that several patterns match have one shape; of a ``with PatternContext()`` block."""
        return SameShapeConstraint(self, *args)

    def fork_to(self, *args):
        """Let several patterns use what this one matches."""
        for other in args:
            self ^ other

    def optional(self, option):
        """This, or what a function makes of it."""
        return self | option(self)

    def match(self, expr, var2val=None):
        """Whether an expression matches; ``var2val`` gives the values of its variables."""
        return _core.dpl_match(self, expr, var2val) is not None

    def extract_matched_expr(self, expr, var2val=None):
        """What each part stands for in an expression; ``None`` where it does not match."""
        return _core.dpl_match(self, expr, var2val)

    def dup(self):
        """The same pattern as another part: it may stand for another value."""
        return _noted(_dpl.dup(self))

    def used_by(self, other, index=-1):
        """A sequence: the other uses this, as its argument of an index."""
        return PatternSeq([self]).used_by(other, index)

    def only_used_by(self, other, index=-1):
        """A sequence: the other uses this, and nothing else does."""
        return PatternSeq([self]).only_used_by(other, index)

    def __xor__(self, other):
        return self.used_by(other)

    def __rshift__(self, other):
        return self.only_used_by(other)

    def __repr__(self):
        return _dpl.text(self)

    __str__ = __repr__
    __hash__ = Object.__hash__
    __eq__ = Object.__eq__


def _field(at, doc):
    return property(lambda self: _dpl.fields(self)[at], doc=doc)


class WildcardPattern(DFPattern):
    """Anything."""

    def __init__(self):
        self.__init_handle_by_constructor__(_dpl.wildcard)


class ExprPattern(DFPattern):
    """What is structurally equal to an expression; an operator is one."""

    def __init__(self, expr):
        make, expr = (_dpl.op, expr.name) if isinstance(expr, Op) else (_dpl.expr, expr)
        self.__init_handle_by_constructor__(make, expr)

    expr = _field(0, "The expression.")


class VarPattern(DFPattern):
    """A variable, of a name if one is given."""

    _make = _dpl.var

    def __init__(self, name_hint=""):
        self.__init_handle_by_constructor__(type(self)._make, name_hint)

    name_hint = _field(0, "The name; empty for any.")
    name = name_hint


class DataflowVarPattern(VarPattern):
    """A variable of a dataflow block, of a name if one is given."""

    _make = _dpl.dataflow_var


class GlobalVarPattern(DFPattern):
    """A function of the module, of a name if one is given."""

    def __init__(self, name_hint=""):
        self.__init_handle_by_constructor__(_dpl.global_var, name_hint)

    name_hint = _field(0, "The name; empty for any.")
    name = name_hint


class ExternFuncPattern(DFPattern):
    """A function outside the module, of a name if one is given."""

    def __init__(self, global_symbol=""):
        self.__init_handle_by_constructor__(_dpl.extern_func, global_symbol)

    global_symbol = _field(0, "The name; empty for any.")


class ConstantPattern(DFPattern):
    """A tensor constant."""

    def __init__(self):
        self.__init_handle_by_constructor__(_dpl.const)


class CallPattern(DFPattern):
    """A call. ``args`` of ``None`` are any; with ``varg_default_wildcard`` further ones may follow those given."""

    def __init__(self, op, args, varg_default_wildcard=False):
        args = None if args is None else list(args)
        self.__init_handle_by_constructor__(_dpl.call, op, args, varg_default_wildcard)

    op = _field(0, "What is called.")
    args = _field(1, "The arguments; ``None`` for any.")
    varg_default_wildcard = _field(2, "Whether further arguments may follow.")


class FunctionPattern(DFPattern):
    """A function of parameters and a result."""

    def __init__(self, params, body):
        self.__init_handle_by_constructor__(_dpl.function, list(params), body)

    params = _field(0, "The parameters.")
    body = _field(1, "The result.")


class TuplePattern(DFPattern):
    """A tuple of fields."""

    _make = _dpl.tuple

    def __init__(self, fields):
        self.__init_handle_by_constructor__(type(self)._make, list(fields))

    fields = _field(0, "The fields.")

    def __getitem__(self, index):
        count = len(self.fields)
        if index is not None and not -count <= index < count:
            raise IndexError(f"the tuple has {count} fields, so there is no field {index}")
        return is_tuple_get_item(self, index)

    def __len__(self):
        return len(self.fields)


class UnorderedTuplePattern(DFPattern):
    """A tuple of fields in any order."""

    def __init__(self, fields):
        self.__init_handle_by_constructor__(_dpl.unordered_tuple, list(fields))

    fields = _field(0, "The fields.")

    def __len__(self):
        return len(self.fields)


class TupleGetItemPattern(DFPattern):
    """A field of a tuple; any where ``index`` is ``None``."""

    def __init__(self, tuple_value, index=None):
        index = None if index is not None and index < 0 else index
        self.__init_handle_by_constructor__(_dpl.tuple_get_item, tuple_value, index)

    tuple_value = _field(0, "The tuple.")
    index = _field(1, "Which field; ``None`` for any.")
    tuple = tuple_value


class OrPattern(DFPattern):
    """What one of two matches; the first is tried first."""

    def __init__(self, left, right):
        self.__init_handle_by_constructor__(getattr(_dpl, "or"), left, right)

    left = _field(0, "The first.")
    right = _field(1, "The second.")


class AndPattern(DFPattern):
    """What both of two match."""

    def __init__(self, left, right):
        self.__init_handle_by_constructor__(getattr(_dpl, "and"), left, right)

    left = _field(0, "The first.")
    right = _field(1, "The second.")


class NotPattern(DFPattern):
    """What does not match a pattern."""

    def __init__(self, to_reject):
        self.__init_handle_by_constructor__(getattr(_dpl, "not"), to_reject)

    to_reject = _field(0, "What must not match.")
    reject = to_reject


class _Constrained(DFPattern):
    """A pattern of which more is known."""

    def __init__(self, pattern, said):
        self.__init_handle_by_constructor__(type(self)._make, pattern, type(self)._read(said))

    pattern = _field(0, "The pattern.")


class TypePattern(_Constrained):
    """What matches a pattern and is of a type."""

    _make, _read = _dpl.has_type, staticmethod(lambda ty: ty)
    ty = _field(1, "The type.")


class DataTypePattern(_Constrained):
    """What matches a pattern and is of an element type."""

    _make, _read = _dpl.has_dtype, staticmethod(_dtype)
    dtype = _field(1, "The element type.")


class ShapePattern(_Constrained):
    """What matches a pattern and is of a shape."""

    _make, _read = _dpl.has_shape, list
    shape = _field(1, "The dimensions.")


class AttrPattern(_Constrained):
    """What matches a pattern and has attributes."""

    _make, _read = _dpl.has_attr, dict
    attrs = _field(1, "The attributes.")


class PrimArrPattern(DFPattern):
    """A shape of dimensions."""

    def __init__(self, shape):
        self.__init_handle_by_constructor__(_dpl.shape, list(shape))

    fields = _field(0, "The dimensions.")

    def __getitem__(self, index):
        return self.fields[index]

    def __len__(self):
        return len(self.fields)


_CLASSES = {
    "Wildcard": WildcardPattern,
    "Op": ExprPattern,
    "Expr": ExprPattern,
    "Var": VarPattern,
    "DataflowVar": DataflowVarPattern,
    "Global": GlobalVarPattern,
    "Extern": ExternFuncPattern,
    "Constant": ConstantPattern,
    "Call": CallPattern,
    "Function": FunctionPattern,
    "Tuple": TuplePattern,
    "UnorderedTuple": UnorderedTuplePattern,
    "TupleGetItem": TupleGetItemPattern,
    "Or": OrPattern,
    "And": AndPattern,
    "Not": NotPattern,
    "Type": TypePattern,
    "DType": DataTypePattern,
    "Shape": ShapePattern,
    "ShapeExpr": PrimArrPattern,
    "Attrs": AttrPattern,
}
_core.set_kind_classes("relax.dpl.Pattern", "kind_name", _CLASSES)


class DFConstraint:
    """What a ``with PatternContext()`` block demands of what several patterns match."""


class SameShapeConstraint(DFConstraint):
    """Patterns that match values of one shape.

    Parameters
    ----------
    args : DFPattern
        The patterns, two or more.

    Raises
    ------
    ValueError
        There is no context around.
    """

    def __init__(self, *args):
        #: The patterns.
        self.args = args
        for other in args[1:]:
            args[0].has_same_shape_as(other)


def register_df_node(type_key=None):
    """A decorator that makes a class that of a type of patterns: by its key, or as ``@register_df_node`` by the class's name."""
    if isinstance(type_key, str):
        return register_object(type_key)
    return register_object(f"relax.dpl.{type_key.__name__}")(type_key)


class PatternSeq:
    """Patterns of which each uses the one in front of it."""

    def __init__(self, patterns, links=()):
        self.patterns, self.links = list(patterns), list(links)

    def _linked(self, other, only, index):
        other = other if isinstance(other, PatternSeq) else PatternSeq([other])
        link = (only, index if index is not None and index >= 0 else None)
        made = PatternSeq(self.patterns + other.patterns, [*self.links, link, *other.links])
        context = PatternContext.current()
        if context is not None:
            context._sequences.append(PatternSeq([self.patterns[-1], other.patterns[0]], [link]))
        return made

    def used_by(self, other, index=-1):
        """The sequence with one more, which uses the last."""
        return self._linked(other, False, index)

    def only_used_by(self, other, index=-1):
        """The sequence with one more, which alone uses the last."""
        return self._linked(other, True, index)

    def __xor__(self, other):
        return self.used_by(other)

    def __rshift__(self, other):
        return self.only_used_by(other)

    def __getitem__(self, index):
        return self.patterns[index]

    def __len__(self):
        return len(self.patterns)

    def dup(self):
        """The same sequence of other parts, which the context around knows too."""
        made = PatternSeq([pattern.dup() for pattern in self.patterns], self.links)
        context = PatternContext.current()
        if context is not None:
            context._sequences.append(made)
        return made


class PatternContext:
    """Patterns that are matched together, on a whole dataflow block, with who uses whom among them."""

    _stack = []

    def __init__(self, incremental=False):
        if incremental and PatternContext.current() is None:
            raise ValueError("incremental needs to be used inside a existing context.")
        outer = PatternContext.current() if incremental else None
        self._patterns = list(outer._patterns) if outer else []
        self._sequences = list(outer._sequences) if outer else []
        self._same_shape = list(outer._same_shape) if outer else []

    @staticmethod
    def current():
        """The context whose ``with`` block this is."""
        return PatternContext._stack[-1] if PatternContext._stack else None

    def __enter__(self):
        PatternContext._stack.append(self)
        return self

    def __exit__(self, kind, value, traceback):
        PatternContext._stack.pop()

    def add_constraint(self, producer, consumer, index=-1, only=False):
        """Say that one pattern uses another."""
        self._sequences.append(PatternSeq([producer, consumer], [(only, index if index >= 0 else None)]))

    def _parts(self):
        sequences = [(sequence.patterns, sequence.links) for sequence in self._sequences]
        return self._patterns, sequences, self._same_shape

    def match_dfb(self, dfb):
        """The variables that the patterns stand for in a dataflow block; ``None`` where they do not match."""
        return _core.dpl_match_block(*self._parts(), dfb)


def _noted(pattern):
    """A pattern that the context around knows, if there is one."""
    context = PatternContext.current()
    if context is not None:
        context._patterns.append(pattern)
    return pattern


def _narrowed(pattern, made):
    """A pattern with a condition more: it is known in the place of the one without."""
    context = PatternContext.current()
    if context is not None:
        context._patterns = [made if known.same_as(pattern) else known for known in context._patterns]
    return made


def wildcard():
    """Anything."""
    return _dpl.wildcard()


def is_var(name=""):
    """A variable, of a name if one is given."""
    return _dpl.var(name)


def is_dfv(name=""):
    """A variable of a dataflow block, of a name if one is given."""
    return _dpl.dataflow_var(name)


def is_gv(name=""):
    """A function of the module, of a name if one is given."""
    return _dpl.global_var(name)


def is_extern(name=""):
    """A function outside the module, of a name if one is given."""
    return _dpl.extern_func(name)


def is_const():
    """A tensor constant."""
    return _dpl.const()


def is_expr(expr):
    """What is structurally equal to an expression."""
    return _dpl.expr(expr)


def is_op(op_name):
    """An operator."""
    return _dpl.op(op_name)


def is_tuple(fields, unordered=False):
    """A tuple of fields, perhaps in any order."""
    return _dpl.unordered_tuple(list(fields)) if unordered else _dpl.tuple(list(fields))


def is_tuple_get_item(tuple_value, index=None):
    """A field of a tuple, of an index if one is given."""
    return _dpl.tuple_get_item(tuple_value, index)


def is_shape(shape):
    """A shape."""
    return _dpl.shape(list(shape))


def function_pattern(params, body):
    """A function."""
    return _dpl.function(list(params), body)


def has_dtype(dtype, pattern=None):
    """What has an element type."""
    return (pattern or wildcard()).has_dtype(dtype)


def has_attr(attrs, pattern=None):
    """What has attributes."""
    return (pattern or wildcard()).has_attr(attrs)


def reject(pattern):
    """What does not match a pattern."""
    return _dpl.__getattr__("not")(pattern)


def is_call_tir(func_name, args=None, tir_vars=None):
    """A call of a kernel of the module."""
    arguments = wildcard() if args is None else is_tuple(args)
    return is_op("relax.call_tir")(is_gv(func_name), arguments, varg_default_wildcard=True)


def is_call_dps_packed(func_name, args=None):
    """A call of a function outside the module that takes its outputs."""
    arguments = wildcard() if args is None else is_tuple(args)
    return is_op("relax.call_dps_packed")(is_extern(func_name), arguments, varg_default_wildcard=True)


def is_call_packed(func_name, args=None):
    """A call of a function outside the module."""
    if args is None:
        return _noted(_dpl.call(is_extern(func_name), None, True))
    return is_extern(func_name)(*args)


def make_fused_bias_activation_pattern(op_name, with_bias=False, activation=None, allow_reshape=False):
    """An operator of two operands, perhaps with a bias that is added and an activation behind it.

    With ``allow_reshape`` the bias is one that was reshaped before, as programs from PyTorch have it.
    """
    out = is_op(op_name)(wildcard(), wildcard())
    if with_bias:
        bias = is_op("relax.reshape")(wildcard(), wildcard()) if allow_reshape else wildcard()
        out = is_op("relax.add")(out, bias)
    return is_op(activation)(out) if activation else out


__all__ = [*(cls.__name__ for cls in dict.fromkeys(_CLASSES.values()))]
__all__ += ["ExprPatternRewriter", "OrRewriter", "PatternMatchingRewriter"]
__all__ += ["DFConstraint", "DFPattern", "SameShapeConstraint", "register_df_node", "PatternContext", "PatternSeq", "function_pattern", "has_attr", "has_dtype", "is_call_dps_packed"]
__all__ += ["is_call_packed", "is_call_tir", "is_const", "is_dfv", "is_expr", "is_extern", "is_gv", "is_op", "is_shape"]
__all__ += ["is_tuple", "is_tuple_get_item", "is_var", "make_fused_bias_activation_pattern", "reject"]
__all__ += ["rewrite_bindings", "rewrite_call", "wildcard"]
