"""Threads that fetch together."""

from ....tirx import For, ForKind
from ....tirx._walk import walk
from ...stmt import SBlock
from ..schedule_rule._blocks import extent, number
from .postproc import _Plain


class RewriteCooperativeFetch(_Plain):
    """Lets the threads of a block share the copies that have the hint ``meta_schedule.cooperative_fetch``: that many elements at once."""

    def apply(self, sch):
        """Bind the loops of such copies."""
        key = "meta_schedule.cooperative_fetch"
        for var, func in sch.mod.functions_items():
            if not hasattr(func, "buffers"):
                continue
            threads = _threads(func)
            jobs = [s for s in walk(func.body) if isinstance(s, SBlock) and key in (s.annotations or {})]
            for stmt in jobs:
                block = sch.get_sblock(stmt.name, func_name=var.name_hint)
                self._share(sch, block, number(stmt.annotations[key]), threads)
                sch.unannotate(block, key)
        return True

    @staticmethod
    def _share(sch, block, lanes, threads):
        loop = sch.get_loops(block)[-1]
        length = extent(sch, loop)
        while length is not None and lanes > 1 and length % lanes:
            lanes -= 1
        binds = [(name, threads[name]) for name in ("threadIdx.y", "threadIdx.x") if name in threads]
        if not binds:
            return
        parts = sch.split(loop, [None, *(count for _, count in binds), *([lanes] if lanes > 1 else [])])
        if lanes > 1:
            sch.vectorize(parts[-1])
        for (name, _), part in reversed(list(zip(binds, parts[1:]))):
            sch.bind(part, name)


def _threads(func):
    """The lengths of the loops that are bound to threads."""
    found = {}
    for stmt in walk(func.body):
        if isinstance(stmt, For) and stmt.kind is ForKind.THREAD_BINDING:
            found.setdefault(stmt.thread_tag, number(stmt.extent))
    return found


__all__ = ["RewriteCooperativeFetch"]
