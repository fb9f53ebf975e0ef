"""The rule for matrices whose two axes are exchanged."""

from ....tirx import BufferLoad, BufferStore, PrimFunc, Var
from ...schedule import Schedule, ScheduleError
from ..analysis import normalize_prim_func
from ..analysis.gemv import access_order
from ..base import try_inline_contiguous_spatial
from .base import GPUScheduleRule

#: How many elements one thread stores at once at most.
_LANES = 4
#: ``(threads along x, threads along y, steps of unrolled loops)`` by kind of device.
_SHAPES = {"cuda": (16, 8, 256), "opencl": (16, 8, 64)}


class Transpose(GPUScheduleRule):
    """Reads tiles of a matrix row by row into memory that the threads of a block share, and writes them row by row of the result.

    Rows of the tile begin at other banks of that memory (``storage_align``), so that a column is read at once.
    """

    def is_transpose(self, sch, block_rv):
        """Whether a block writes elements at the same indices in another order than it reads them at."""
        store = sch.get(block_rv).body
        if not isinstance(store, BufferStore) or not isinstance(store.value, BufferLoad):
            return False
        to, of = list(store.indices), list(store.value.indices)
        if not all(isinstance(index, Var) for index in [*to, *of]):
            return False
        return set(to) == set(of) and any(not a.same_as(b) for a, b in zip(to, of))

    def apply(self, func, target, tunable):
        """The schedule; ``None`` for what is no exchange of two axes with element-wise blocks around it."""
        if not isinstance(func, PrimFunc) or not self.is_target_available(target):
            return None
        across, down, steps = _SHAPES.get(target.kind.name, (8, 4, 64))
        sch = Schedule(func)
        infos = normalize_prim_func(sch)
        if infos is None:
            return None
        exchanges = (at for at, info in reversed(list(enumerate(infos))) if self.is_transpose(sch, info.block_rv))
        found = next(exchanges, None)
        if found is None or not all(info.is_injective() for info in infos[found + 1 :]):
            return None
        # What stands in front of it must be computed inside of it; the last of these blocks is when the tile is read.
        if try_inline_contiguous_spatial(sch, infos[: max(found - 1, 0)]):
            return None
        block, before = infos[found].block_rv, infos[found - 1].block_rv if found else None
        loops = sch.get_loops(block)
        order = access_order(sch.get(before)) if found else [(None, 1)]
        if len(loops) != 2 or order is None:
            return None
        try:
            self._tile(sch, block, loops, across, down, steps, order[0][1] if order else 1)
            if before is not None:
                sch.compute_inline(before)
        except ScheduleError:
            return None
        return sch

    @staticmethod
    def _tile(sch, block, loops, across, down, steps, packed):
        """``packed`` neighbours of the first axis read one element, and are one thread's."""
        i, inner = sch.split(loops[0], factors=[None, packed], preserve_unit_iters=True)
        (bi, ti), (bj, tj) = (
            sch.split(loop, factors=[None, count], preserve_unit_iters=True) for loop, count in ((i, down), (loops[1], across))
        )
        sch.reorder(bi, bj, ti, tj, inner)
        for loop, thread in ((bi, "blockIdx.y"), (bj, "blockIdx.x"), (ti, "threadIdx.y"), (tj, "threadIdx.x")):
            sch.bind(loop, thread)
        lanes = min(packed, _LANES)
        _, inner = sch.split(inner, factors=[None, lanes])
        if lanes > 1:
            sch.vectorize(inner)
        tile = sch.cache_read(block, read_buffer_index=0, storage_scope="shared")
        sch.compute_at(tile, bj)
        _, ty, tx, unit = sch.split(sch.fuse(*sch.get_loops(tile)[2:]), factors=[None, down, across, packed])
        sch.bind(ty, "threadIdx.y")
        sch.bind(tx, "threadIdx.x")
        sch.unroll(unit)
        sch.storage_align(block=tile, buffer_index=0, axis=0, factor=32, offset=1)
        sch.annotate(bi, ann_key="pragma_auto_unroll_max_step", ann_val=steps)
        sch.annotate(bi, ann_key="pragma_unroll_explicit", ann_val=1)


__all__ = ["Transpose"]
