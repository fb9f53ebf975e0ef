"""Blocks that are on no thread."""

from ....tirx import For, ForKind
from ...stmt import SBlockRealize
from ....tirx._walk import children
from ..schedule_rule._blocks import limit_of
from ..schedule_rule.auto_bind import bind_block
from .postproc import Postproc


class RewriteUnboundBlock(Postproc):
    """Binds the loops of blocks that no rule has bound, to at most ``max_threadblocks`` blocks of threads."""

    def __init__(self, max_threadblocks=256):
        self.max_threadblocks = max_threadblocks
        self._most = -1

    def _initialize_with_tune_context(self, context):
        super()._initialize_with_tune_context(context)
        self._most = limit_of(context.target, "max_threads_per_block", -1)

    def clone(self):
        """The same, for another task."""
        return RewriteUnboundBlock(self.max_threadblocks)

    def apply(self, sch):
        """Bind what is not bound."""
        if self._most == -1:
            raise ValueError("RewriteUnboundBlock needs a target that says max_threads_per_block")
        while True:
            found = self._unbound(sch)
            if found is None:
                return True
            func, name = found
            bind_block(sch, sch.get_sblock(name, func_name=func), self.max_threadblocks, self._most, [32, 64, 128, 256, 512, 1024])

    @staticmethod
    def _unbound(sch):
        for var, func in sch.mod.functions_items():
            if hasattr(func, "buffers") and isinstance(func.body, SBlockRealize):
                found = _first(func.body.block.body, False, False)
                if found is not None:
                    return var.name_hint, found
        return None


def _first(stmt, in_block, in_thread):
    """The name of the first block that is not in loops over blocks and threads."""
    if isinstance(stmt, SBlockRealize):
        return None if in_block and in_thread else stmt.block.name
    if isinstance(stmt, For) and stmt.kind is ForKind.THREAD_BINDING:
        in_block |= stmt.thread_tag.startswith("blockIdx")
        in_thread |= stmt.thread_tag.startswith("threadIdx")
    for part in children(stmt):
        found = _first(part, in_block, in_thread)
        if found is not None:
            return found
    return None


__all__ = ["RewriteUnboundBlock"]
