"""The rule for reductions."""

from ....tirx import PrimFunc
from ...schedule import Schedule, ScheduleError
from ..analysis import normalize_prim_func
from ..analysis.gemv import access_order, get_reduction_expr
from ..base import suggest_threads_per_block, try_inline_contiguous_spatial
from .base import GPUScheduleRule


class Reduction(GPUScheduleRule):
    """A block of threads for each result, or for several where the innermost dimension is one of the results; each thread adds up a part,
    and the parts are added up together."""

    def apply(self, func, target, tunable):
        """The schedule; ``None`` where there is no reduction, or what follows it is more than one block that does not reduce."""
        if not isinstance(func, PrimFunc) or not self.is_target_available(target):
            return None
        sch = Schedule(func)
        infos = try_inline_contiguous_spatial(sch, normalize_prim_func(sch))
        if not infos or len(infos) > 2 or any(not info.is_injective() for info in infos[1:]):
            return None
        info, epilogue = infos[0], infos[1].block_rv if len(infos) > 1 else None
        block = sch.get(info.block_rv)
        if not info.is_reduction() or len(block.writes) != 1 or get_reduction_expr(block) is None:
            return None
        try:
            inner = _fused(sch, info)
            if inner is None:
                return None
            schedule = _over_rows if inner else _over_columns
            return schedule(sch, target, info.block_rv, epilogue)
        except (ScheduleError, ValueError):
            return None


def _fused(sch, info):
    """Make one loop of the results and one of what is reduced; whether the innermost index of the largest read is a reduced one."""
    order = access_order(sch.get(info.block_rv))
    kinds = {axis.var: axis.kind for axis in info.iters}
    if not order or set(info.dom_kind()) - {"S", "R"} or any(var not in kinds for var, _ in order):
        return None
    spatial = [axis.loop_rv for axis in info.iters if axis.kind == "S"]
    reduced = [axis.loop_rv for axis in info.iters if axis.kind == "R"]
    if not reduced:
        return None
    if not spatial:
        spatial = [sch.add_unit_loop(info.block_rv)]
    sch.reorder(*spatial, *reduced)
    sch.fuse(*spatial)
    sch.fuse(*reduced)
    return kinds[order[-1][0]] == "R"


def _over_rows(sch, target, block, epilogue):
    """Threads along what is reduced."""
    _, reduced = sch.get_loops(block)
    threads = sharing(sch, target, reduced)
    _, tx = sch.split(reduced, factors=[None, threads])
    parts = sch.rfactor(tx, 0)
    loops = sch.get_loops(parts)
    thread, bx, own = _named(sch, parts, loops)
    sch.reorder(bx, thread, own)
    sch.bind(bx, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    sch.annotate(own, ann_key="pragma_auto_unroll_max_step", ann_val=256)
    sch.annotate(own, ann_key="pragma_unroll_explicit", ann_val=1)
    sch.set_scope(parts, 0, "local")
    sch.decompose_reduction(parts, own)
    sch.reverse_compute_at(block, bx, preserve_unit_loops=True)
    sch.bind(sch.get_loops(block)[-1], "threadIdx.x")
    _finish(sch, block, epilogue, bx, threads)
    return sch


def sharing(sch, target, loop, most=256):
    """How many threads share a loop: as many as divide its length, so that each has as much to do."""
    length = getattr(sch.get(loop).extent, "value", None)
    if length is None:
        return min(most, suggest_threads_per_block(target, [sch.get(loop)])[0])
    return max(count for count in range(1, min(most, length) + 1) if length % count == 0)


def _named(sch, parts, loops):
    """The loops of the parts: over threads, results, and what a thread adds up."""
    from ...meta_schedule.schedule_rule._blocks import loop_kinds

    kinds = loop_kinds(sch, parts)
    own = [loop for loop, kind in zip(loops, kinds) if kind == "R"]
    spatial = [loop for loop, kind in zip(loops, kinds) if kind != "R"]
    if len(own) != 1 or len(spatial) != 2:
        raise ValueError("the parts have other loops than over threads, results and the rest")
    # The split loop stands behind that of the results.
    return spatial[1], spatial[0], own[0]


def _over_columns(sch, target, block, epilogue):
    """Threads along the results, and along what is reduced."""
    spatial, reduced = sch.get_loops(block)
    tx, ty = 16, sharing(sch, target, reduced, 16)
    bx, inner = sch.split(spatial, factors=[None, tx])
    _, thread = sch.split(reduced, factors=[None, ty])
    parts = sch.rfactor(thread, 0)
    from ...meta_schedule.schedule_rule._blocks import loop_kinds

    loops, kinds = sch.get_loops(parts), loop_kinds(sch, parts)
    own = [loop for loop, kind in zip(loops, kinds) if kind == "R"]
    outer, row, column = [loop for loop, kind in zip(loops, kinds) if kind != "R"]
    sch.reorder(outer, row, column, *own)
    sch.bind(outer, "blockIdx.x")
    sch.bind(row, "threadIdx.x")
    sch.bind(column, "threadIdx.y")
    sch.annotate(own[0], ann_key="pragma_auto_unroll_max_step", ann_val=256)
    sch.annotate(own[0], ann_key="pragma_unroll_explicit", ann_val=1)
    sch.set_scope(parts, 0, "local")
    sch.decompose_reduction(parts, own[0])
    sch.reverse_compute_at(block, outer, preserve_unit_loops=True)
    row, column = sch.get_loops(block)[-2:]
    sch.bind(row, "threadIdx.x")
    sch.bind(column, "threadIdx.y")
    _finish(sch, block, epilogue, outer, tx)
    return sch


def _finish(sch, block, epilogue, loop, threads):
    """What follows the reduction, under the same blocks of threads."""
    if epilogue is None:
        return
    sch.reverse_compute_at(epilogue, loop, preserve_unit_loops=True)
    sch.set_scope(block, 0, "shared")
    own = sch.get_loops(epilogue)[len(sch.get_loops(block)) - _inner(sch, block, loop) :]
    fused = sch.fuse(*own) if own else sch.add_unit_loop(epilogue)
    _, tx = sch.split(fused, factors=[None, threads])
    sch.bind(tx, "threadIdx.x")


def _inner(sch, block, loop):
    """How many loops of a block stand inside of one."""
    loops = sch.get_loops(block)
    at = next(index for index, own in enumerate(loops) if sch.get(own).same_as(sch.get(loop)))
    return len(loops) - at - 1


__all__ = ["Reduction"]
