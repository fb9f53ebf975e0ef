"""The rule for products of a matrix and a vector."""

from ....tirx import PrimFunc
from ...schedule import Schedule, ScheduleError
from ..analysis import is_gemv, normalize, normalize_prim_func
from ..base import try_inline_contiguous_spatial
from .base import GPUScheduleRule
from .reduction import _finish, sharing


class GEMV(GPUScheduleRule):
    """A block of threads for each row of a matrix that is read along its rows, whose threads add up parts of it; for a matrix that is read
    along its columns a thread for each result of several."""

    def apply(self, func, target, tunable):
        """The schedule; ``None`` for another kernel."""
        if not isinstance(func, PrimFunc) or not self.is_target_available(target):
            return None
        sch = Schedule(func)
        infos = try_inline_contiguous_spatial(sch, normalize_prim_func(sch))
        if not infos or len(infos) > 2 or any(not info.is_injective() for info in infos[1:]):
            return None
        vectors = is_gemv(sch, infos[0]) if len(infos[0].iters) in (2, 3) else None
        if vectors is None:
            return None
        block, epilogue = infos[0], infos[1] if len(infos) > 1 else None
        try:
            inner = normalize(sch, block)
            if inner is None:
                return None
            schedule = self.sch_inner_reduction if inner else self.sch_outer_reduction
            return schedule(sch, target, block.block_rv, vectors, epilogue)
        except (ScheduleError, ValueError):
            return None

    def sch_inner_reduction(self, sch, target, block, vector_input_buffers, epilogue_info):
        """The schedule for a matrix that is read along its rows; ``block`` has the loops batch, row, column, inner."""
        batch, row, column, inner = sch.get_loops(block)
        bx = sch.fuse(batch, row)
        reduced = sch.fuse(column, inner)
        threads = sharing(sch, target, reduced)
        _, tx = sch.split(reduced, factors=[None, threads])
        return _shared_rows(sch, block, bx, tx, threads, epilogue_info)

    def sch_outer_reduction(self, sch, target, block, vector_input_buffers, epilogue_info):
        """The schedule for a matrix that is read along its columns."""
        return self.sch_outer_reduction_fallback(sch, target, block, vector_input_buffers, epilogue_info)

    def sch_outer_reduction_fallback(self, sch, target, block, vector_input_buffers, epilogue_info):
        """A thread for each result."""
        batch, row, column, inner = sch.get_loops(block)
        fused, reduced = sch.fuse(batch, row), sch.fuse(column, inner)
        threads = 64
        bx, tx = sch.split(fused, factors=[None, threads])
        sch.bind(bx, "blockIdx.x")
        sch.bind(tx, "threadIdx.x")
        sch.annotate(reduced, ann_key="pragma_auto_unroll_max_step", ann_val=256)
        sch.annotate(reduced, ann_key="pragma_unroll_explicit", ann_val=1)
        sch.decompose_reduction(block, reduced)
        if epilogue_info is not None:
            _finish(sch, block, epilogue_info.block_rv, bx, threads)
        return sch


def _shared_rows(sch, block, bx, tx, threads, epilogue_info):
    """Threads share the reduction of each row."""
    from ...meta_schedule.schedule_rule._blocks import loop_kinds

    parts = sch.rfactor(tx, 0)
    loops, kinds = sch.get_loops(parts), loop_kinds(sch, parts)
    own = [loop for loop, kind in zip(loops, kinds) if kind == "R"]
    outer, thread = [loop for loop, kind in zip(loops, kinds) if kind != "R"]
    sch.reorder(outer, thread, *own)
    sch.bind(outer, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    sch.annotate(own[0], ann_key="pragma_auto_unroll_max_step", ann_val=256)
    sch.annotate(own[0], ann_key="pragma_unroll_explicit", ann_val=1)
    sch.set_scope(parts, 0, "local")
    sch.decompose_reduction(parts, own[0])
    sch.reverse_compute_at(block, outer, preserve_unit_loops=True)
    sch.bind(sch.get_loops(block)[-1], "threadIdx.x")
    if epilogue_info is not None:
        _finish(sch, block, epilogue_info.block_rv, outer, threads)
    return sch


__all__ = ["GEMV", "is_gemv", "normalize"]
