"""Statements of kernels."""

from enum import IntEnum

from ..ffi import register_object
from ..ir import _api
from ..ir.base import Node, Scriptable
from ..ir.expr import Range, Var
from ..ir.prim import StringImm, const


def _scalar(value):
    """A Python number as a literal, as TVMScript reads it; anything else as it is."""
    return const(value) if isinstance(value, (bool, int, float)) else value


def _scalars(values):
    return [_scalar(value) for value in values]


class Stmt(Node, Scriptable):
    """The base of statements. They never change: a different statement is made anew."""


class ForKind(IntEnum):
    """How the iterations of a loop are executed."""

    SERIAL = 0
    PARALLEL = 1
    VECTORIZED = 2
    UNROLLED = 3
    THREAD_BINDING = 4


@register_object("tirx.For")
class For(Stmt):
    """A loop: ``body`` for ``loop_var`` from ``min``, ``extent`` times.

    Numbers among the bounds take the type of ``loop_var``; bounds of another type are a TypeError. ``thread_binding`` is the
    name of a thread, such as ``"threadIdx.x"``, for loops of kind ``THREAD_BINDING`` and for no others. With a ``step`` it counts
    through the ``extent`` values from ``min`` by that number; ``None`` and 1 are the same. What it is made of are its attributes.
    """

    def __init__(
        self, loop_var, min, extent, kind, body, thread_binding=None, annotations=None, step=None, span=None
    ):
        tag = getattr(thread_binding, "thread_tag", thread_binding) or ""
        annotations = dict(annotations) if annotations else None
        self.__init_handle_by_constructor__(_api.tirx.For, loop_var, min, extent, int(kind), body, tag, annotations, step)

    @property
    def loop_var(self):
        """The counter."""
        return self.var

    @property
    def kind(self):
        """How its iterations are executed."""
        return ForKind(self._field("kind"))

    @property
    def thread_binding(self):
        """The axis of threads that it is bound to, which equals its name; ``None`` where there is none."""
        from .expr import ThreadAxis

        return ThreadAxis(Range.from_min_extent(self.min, self.extent), self.var, self.thread_tag) if self.thread_tag else None

    @property
    def node(self):
        """The axis of threads, under the name that the statement which launches them has for it; other loops have none."""
        if not self.thread_tag:
            raise AttributeError("only a loop over threads has a node, the axis of the threads")
        return self.thread_binding


@register_object("tirx.While")
class While(Stmt):
    """``body`` as long as ``condition`` holds."""

    def __init__(self, condition, body, span=None):
        self.__init_handle_by_constructor__(_api.tirx.While, _scalar(condition), body)


@register_object("tirx.SeqStmt")
class SeqStmt(Stmt):
    """Statements in order: the list ``seq``, which is also what indices and ``len`` are about."""

    def __init__(self, seq, span=None):
        self.__init_handle_by_constructor__(_api.tirx.SeqStmt, list(seq))

    def __getitem__(self, index):
        return self.seq[index]

    def __len__(self):
        return len(self.seq)


@register_object("tirx.IfThenElse")
class IfThenElse(Stmt):
    """``then_case`` where ``condition`` holds, else ``else_case`` if there is one."""

    def __init__(self, condition, then_case, else_case=None, span=None):
        self.__init_handle_by_constructor__(_api.tirx.IfThenElse, _scalar(condition), then_case, else_case)


@register_object("tirx.BufferStore")
class BufferStore(Stmt):
    """``buffer[indices] = value``. A number takes the buffer's type; a value of another type is a TypeError, and so is a
    number of indices that is not the number of dimensions a ValueError. Of a vector, only the lanes of ``predicate`` are stored."""

    def __init__(self, buffer, value, indices, predicate=None, span=None):
        self.__init_handle_by_constructor__(_api.tirx.BufferStore, buffer, value, _scalars(indices), predicate)


@register_object("tirx.Bind")
class Bind(Stmt):
    """``var`` stands for ``value`` in the statements behind it."""

    def __init__(self, var, value, span=None):
        self.__init_handle_by_constructor__(_api.tirx.Bind, var, _scalar(value))


LetStmt = Bind


@register_object("tirx.AllocBuffer")
class AllocBuffer(Stmt):
    """Memory for a ``buffer``, for the statements behind it; ``annotations`` are hints for the compiler by name."""

    def __init__(self, buffer, annotations=None, span=None):
        self.__init_handle_by_constructor__(_api.tirx.AllocBuffer, buffer, dict(annotations) if annotations else None)


@register_object("tirx.AssertStmt")
class AssertStmt(Stmt):
    """A ``condition`` that must hold; else an error of ``kind`` is raised, with the parts of a message in a row.

    ``kind`` and the parts are text, bare or as literals. By their places, the condition may come first, as TVM takes them.
    """

    def __init__(self, kind, condition, message_parts=None, span=None):
        if isinstance(condition, (str, StringImm)) and not isinstance(kind, (str, StringImm)):
            kind, condition = condition, kind
        message = "".join(getattr(part, "value", part) for part in message_parts or [])
        self.__init_handle_by_constructor__(_api.tirx.AssertStmt, kind, _scalar(condition), message)

    @property
    def kind(self):
        """The kind of the error."""
        return StringImm(self.error_kind)

    @property
    def message_parts(self):
        """The message."""
        return [StringImm(self.message)] if self.message else []


@register_object("tirx.CommReducer")
class CommReducer(Node, Scriptable):
    """How values are combined in any order: ``result`` are expressions over the variables ``lhs`` (the values so far) and ``rhs`` (those
    that come next), and ``identity_element`` is what changes nothing."""

    def __init__(self, lhs, rhs, result, identity_element, span=None):
        if not len(lhs) == len(rhs) == len(result) == len(identity_element):
            raise ValueError("lhs, rhs, result and identity_element have one entry for each value that is combined")
        self.__init_handle_by_constructor__(_api.tirx.CommReducer, list(lhs), list(rhs), list(result), list(identity_element))


@register_object("tirx.AttrStmt")
class AttrStmt(Stmt):
    """A statement under an attribute. ``node`` is what the attribute is about: ``None`` or a number for the statement itself, a
    buffer, a variable, a text, or, of the key ``"reduce_scope"``, a :class:`CommReducer`. With an axis of threads and the key
    ``"thread_extent"`` it is the loop that is bound to them, over ``value`` threads."""

    def __new__(cls, node=None, attr_key="", value=None, body=None, span=None):
        if attr_key == "thread_extent" and getattr(node, "thread_tag", None):
            return For(node.var, 0, value, ForKind.THREAD_BINDING, body, node.thread_tag)
        return super().__new__(cls)

    def __init__(self, node, attr_key, value, body, span=None):
        node = None if isinstance(getattr(node, "value", node), int) else node
        self.__init_handle_by_constructor__(_api.tirx.AttrStmt, attr_key, _scalar(value), body, node)

    @property
    def attr_key(self):
        """The attribute's name."""
        return self.key


@register_object("tirx.DeclBuffer")
class DeclBuffer(Stmt):
    """A ``buffer`` over memory that exists, for the statements behind it: ``data`` is its address, such as ``other.data``."""

    def __init__(self, buffer, data=None, span=None):
        if data is None:
            raise TypeError("DeclBuffer requires a physical data binding")
        self.__init_handle_by_constructor__(_api.tirx.DeclBuffer, buffer, data)


@register_object("tirx.Break")
class Break(Stmt):
    """Leaves the innermost loop, which is a serial or a ``while`` loop."""

    def __init__(self, span=None):
        self.__init_handle_by_constructor__(_api.tirx.Break)


@register_object("tirx.Continue")
class Continue(Stmt):
    """Goes on with the next iteration of the innermost loop, which is a serial or a ``while`` loop."""

    def __init__(self, span=None):
        self.__init_handle_by_constructor__(_api.tirx.Continue)


@register_object("tirx.Return")
class Return(Stmt):
    """Ends the kernel with a ``value``."""

    def __init__(self, value, span=None):
        self.__init_handle_by_constructor__(_api.tirx.Return, _scalar(value))


@register_object("tirx.Evaluate")
class Evaluate(Stmt):
    """An expression, ``value``, that is evaluated for what it does."""

    def __init__(self, value, span=None):
        self.__init_handle_by_constructor__(_api.tirx.Evaluate, _scalar(value))


def stmt_seq(*args):
    """Statements and expressions as one statement."""
    parts = [part if isinstance(part, Stmt) else Evaluate(part) for part in args]
    return parts[0] if len(parts) == 1 else SeqStmt(parts)


def stmt_list(stmt):
    """The statements that a statement is made of, nested sequences flattened."""
    if not isinstance(stmt, SeqStmt):
        return [stmt]
    return [part for one in stmt.seq for part in stmt_list(one)]


__all__ = ["AllocBuffer", "AssertStmt", "AttrStmt", "Bind", "Break", "BufferStore", "CommReducer", "Continue", "DeclBuffer", "Evaluate"]
__all__ += ["For", "ForKind", "IfThenElse", "LetStmt", "Return", "SeqStmt", "Stmt", "While", "stmt_list", "stmt_seq"]


def __getattr__(name):
    # Boxes of buffers and statements about tiles are in files that build on this one.
    if name == "BufferRegion":
        from .buffer import BufferRegion

        return BufferRegion
    if name in ("ScopeIdDefStmt", "TilePrimitiveCall"):
        from . import tile_primitive

        return getattr(tile_primitive, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
