"""Blocks: units of computation over axes, independent of the loops around them."""

from ..ffi import register_object
from ..ir import _api
from ..ir.base import Node
from ..ir.prim import const
from ..tirx.stmt import Stmt


@register_object("tirx.MatchBufferRegion")
class MatchBufferRegion(Node):
    """A region that a block sees as a buffer of its own."""

    def __init__(self, buffer, source):
        self.__init_handle_by_constructor__(_api.s_tir.MatchBufferRegion, buffer, source)


@register_object("tirx.SBlock")
class SBlock(Stmt):
    """A block: its axes, what it reads and writes as boxes over them, and the statement for one value of every axis.

    ``iter_vars`` are :class:`~relaxide.tirx.IterVar`, ``reads`` and ``writes`` :class:`~relaxide.tirx.BufferRegion`,
    ``alloc_buffers`` the buffers that live inside and ``match_buffers`` regions under names of their own. ``init`` sets the
    element in front of the first value of its reductions.
    """

    def __init__(
        self,
        iter_vars,
        reads,
        writes,
        name_hint,
        body,
        init=None,
        alloc_buffers=None,
        match_buffers=None,
        annotations=None,
        span=None,
    ):
        lists = (list(alloc_buffers or ()), list(match_buffers or ()), dict(annotations) if annotations else None)
        axes = (list(iter_vars), list(reads), list(writes))
        self.__init_handle_by_constructor__(_api.s_tir.SBlock, *axes, name_hint, body, init, *lists)

    @property
    def name_hint(self):
        """The name."""
        return self.name


@register_object("tirx.SBlockRealize")
class SBlockRealize(Stmt):
    """A block at given values of its axes, where a predicate holds.

    As many values as the block has axes, else a ValueError; numbers take the axes' types.
    """

    def __init__(self, iter_values, predicate, block, span=None):
        predicate = const(predicate, "bool") if isinstance(predicate, bool) else predicate
        values = [const(value) if isinstance(value, int) else value for value in iter_values]
        self.__init_handle_by_constructor__(_api.s_tir.SBlockRealize, values, predicate, block)


__all__ = ["MatchBufferRegion", "SBlock", "SBlockRealize"]
