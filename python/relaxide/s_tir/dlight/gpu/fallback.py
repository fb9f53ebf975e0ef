"""The rule for whatever no other rule is about."""

from ....tirx import AttrStmt, For, ForKind, PrimFunc
from ....tirx._walk import walk
from ...schedule import Schedule
from .. import base
from ..analysis import normalize_prim_func
from ..base import try_inline
from .base import GPUScheduleRule


def _has_own_threads(stmt):
    for part in walk(stmt):
        if isinstance(part, For) and part.kind is ForKind.THREAD_BINDING:
            return True
        if isinstance(part, AttrStmt) and part.attr_key in ("thread_extent", "virtual_thread"):
            return True
    return False


def _threads(sch, fused, count, most):
    """How many threads share a loop that was made of ``count`` loops: as many as a block may have, or the most that divide its length
    where there are several axes to be taken out of a thread's number, which must be possible without remainder."""
    extent = base.get_extent(sch, fused)
    if count == 1 or not isinstance(extent, int) or extent <= most or extent % most == 0:
        return most
    return max(divisor for divisor in range(1, most + 1) if extent % divisor == 0)


class Fallback(GPUScheduleRule):
    """Computes blocks where they are used, as far as possible; of each that is left, every element is a thread, and reductions are loops
    in a thread::

        for i in thread_binding(ceil(n / threads), "blockIdx.x"):
            for j in thread_binding(threads, "threadIdx.x"):
                block of element i * threads + j
    """

    def apply(self, func, target, tunable):
        """The schedule; ``None`` for what is no kernel of blocks over plain loops."""
        if not isinstance(func, PrimFunc) or not self.is_target_available(target):
            return None
        sch = Schedule(func)
        infos = normalize_prim_func(sch)
        if infos is None:
            return None
        begun = []
        for info in try_inline(sch, infos):
            block, loops = info.block_rv, sch.get_loops(info.block_rv)
            if any(sch.get(loop).thread_binding is not None for loop in loops):
                continue
            if not loops and _has_own_threads(sch.get(block).body):
                continue
            of_kind = {kind: [loop for loop, own in zip(loops, info.dom_kind()) if own == kind] for kind in "SRO"}
            if not of_kind["S"]:
                of_kind["S"].append(sch.add_unit_loop(block))
            sch.reorder(*of_kind["S"], *of_kind["R"], *of_kind["O"])
            fused = sch.fuse(*of_kind["S"])
            threads = _threads(sch, fused, len(of_kind["S"]), base.max_threads_per_block(target))
            outer, inner = sch.split(fused, factors=[None, threads])
            sch.bind(outer, "blockIdx.x")
            sch.bind(inner, "threadIdx.x")
            if of_kind["R"]:
                begun.append((block, of_kind["R"][0]))
        for block, loop in begun:
            sch.decompose_reduction(block, loop)
        return sch


__all__ = ["Fallback"]
