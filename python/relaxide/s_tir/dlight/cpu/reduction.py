"""The rule for rows that are reduced and then computed with: softmax, norms of layers."""

from ....target.codegen import llvm_get_vector_width
from ....tirx import PrimFunc
from ...schedule import Schedule
from ..analysis import normalize_prim_func
from ..base import get_extent
from .base import CPUScheduleRule


def _rows(info):
    """How many axes of a block stand in front of what it reduces."""
    kinds = info.dom_kind()
    return len(kinds) - len(kinds.lstrip("S"))


class Reduction(CPUScheduleRule):
    """Rows are shared by threads, and a row goes through all blocks at once; of each block, elements are the lanes of vectors.

    The kernel has reductions and a last block without one, over the same rows.
    """

    def apply(self, func, target, tunable):
        """The schedule; ``None`` for another kernel."""
        if not isinstance(func, PrimFunc) or not self.is_target_available(target):
            return None
        sch = Schedule(func)
        infos = normalize_prim_func(sch)
        if not infos or len(infos) < 2 or not infos[-1].is_injective() or all(info.is_injective() for info in infos):
            return None
        rows = min(map(_rows, infos))
        if rows == 0:
            return None
        dtype = sch.get(infos[-1].block_rv).writes[0].buffer.dtype
        lanes = max(max(llvm_get_vector_width(target), 128) // dtype.bits, 2)
        last = infos[-1].block_rv
        loops = sch.get_loops(last)
        row = sch.fuse(*loops[:rows]) if rows > 1 else loops[0]
        sch.parallel(row)
        self._vectorize(sch, last, lanes)
        for info in reversed(infos[:-1]):
            sch.compute_at(info.block_rv, row, preserve_unit_loops=True)
        for info in infos[:-1]:
            (self._vectorize if info.is_injective() else self._unroll)(sch, info.block_rv, lanes)
        return sch

    @staticmethod
    def _vectorize(sch, block, lanes):
        loops = sch.get_loops(block)
        length = get_extent(sch, loops[-1])
        if len(loops) < 2 or isinstance(length, int) and length < 2:
            return
        whole = isinstance(length, int) and length <= lanes
        sch.vectorize(loops[-1] if whole else sch.split(loops[-1], factors=[None, lanes])[1])

    @staticmethod
    def _unroll(sch, block, lanes):
        loops = sch.get_loops(block)
        length = get_extent(sch, loops[-1])
        if len(loops) < 2 or isinstance(length, int) and length <= lanes:
            return
        inner = sch.split(loops[-1], factors=[None, lanes])[1]
        sch.annotate(inner, "pragma_auto_unroll_max_step", lanes)
        sch.annotate(inner, "pragma_unroll_explicit", 1)


__all__ = ["Reduction"]
