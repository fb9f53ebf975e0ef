"""The rule for reductions."""

from dataclasses import dataclass

from ....tirx import PrimFunc
from ...schedule import Schedule, ScheduleError
from ..analysis import is_broadcast_epilogue, normalize_prim_func
from ..analysis.gemv import access_order, get_reduction_expr
from ..base import suggest_threads_per_block, try_inline_contiguous_spatial
from .base import GPUScheduleRule

#: Steps of a thread's loop that are written one behind the other.
_UNROLLED = 256


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
            loops = _Loops.of(sch, info)
            if loops is None:
                return None
            threads = _Threads.of(sch, target, info.block_rv, loops)
            outer = threads.add_up(sch, info.block_rv)
            threads.combine(sch, info.block_rv, outer, loops)
            if epilogue is not None:
                threads.follow(sch, info.block_rv, outer, epilogue)
            return sch
        except (ScheduleError, ValueError):
            return None


@dataclass
class _Loops:
    """The loops of a reduction: one of the results, one of what is reduced, and one of what a thread does at once.

    ``order`` has the axes of the results in the order in which the largest read goes through memory, by their numbers. Where so many
    neighbours of one of these axes read one element, ``packed`` is their number, and ``at`` the place of the axis in the order.
    """

    is_inner_reduced: bool
    order: list
    packed: int = 1
    at: int = 0

    @staticmethod
    def of(sch, info):
        """The loops, made of those of the axes; ``None`` where the largest read does not go through memory along axes."""
        places = access_order(sch.get(info.block_rv))
        axes = {axis.var: axis for axis in info.iters}
        if not places or set(info.dom_kind()) - {"S", "R"} or any(var not in axes for var, _ in places):
            return None
        named = [var for var, _ in places]
        places = places + [(axis.var, 1) for axis in info.iters if axis.kind == "S" and axis.var not in named]
        missing = [axis for axis in info.iters if axis.kind == "R" and axis.var not in named]
        if len(set(named)) != len(named) or missing or not any(axis.kind == "R" for axis in info.iters):
            return None
        spatial, reduced, once = [], [], None
        made = _Loops(axes[named[-1]].kind == "R", [])
        for var, factor in places:
            axis = axes[var]
            loop = axis.loop_rv
            if factor > 1 and once is not None:
                return None
            if factor > 1:
                loop, once = sch.split(loop, factors=[None, factor])
            if factor > 1 and axis.kind == "S":
                made.packed, made.at = factor, len(spatial)
            (reduced if axis.kind == "R" else spatial).append(loop)
        results = [axis.var for axis in info.iters if axis.kind == "S"]
        made.order = [results.index(var) for var, _ in places if axes[var].kind == "S"]
        spatial = spatial or [sch.add_unit_loop(info.block_rv)]
        once = once or sch.add_unit_loop(info.block_rv)
        sch.reorder(*spatial, *reduced, once)
        sch.fuse(*spatial)
        sch.fuse(*reduced)
        return made

    def written_back(self, sch, results):
        """``(one loop over the results, what a thread writes of them at once)`` of the loops of the block that writes them."""
        if self.packed == 1:
            return sch.fuse(*results), None
        results = [results[index] for index in self.order]
        results[self.at], once = sch.split(results[self.at], factors=[None, self.packed])
        sch.reorder(*results, once)
        return sch.fuse(*results), once


@dataclass
class _Threads:
    """The threads of a block: how many there are for the parts of a sum, and for neighbouring results, where it computes several."""

    parts: int
    results: int | None = None

    @staticmethod
    def of(sch, target, block, loops):
        """As many as suit the lengths of the loops."""
        results, reduced, _ = sch.get_loops(block)
        if loops.is_inner_reduced:
            return _Threads(_dividing(sch, reduced, suggest_threads_per_block(target, [sch.get(reduced)])[0]))
        # Where nobody knows how many results there are, a block computes one.
        is_known = getattr(sch.get(results).extent, "value", None) is not None
        return _Threads(sharing(sch, target, reduced, 16), sharing(sch, target, results, 16) if is_known else 1)

    @property
    def axes(self):
        """What the loops over results and parts are bound to."""
        return ["threadIdx.x"] if self.results is None else ["threadIdx.x", "threadIdx.y"]

    def bind(self, sch, loops):
        """The loops over results and parts, in this order, are those of threads."""
        for loop, axis in zip(loops, self.axes):
            sch.bind(loop, axis)

    def add_up(self, sch, block):
        """Makes a block of partial sums, one for each thread, and gives the loop over blocks of threads."""
        results, reduced, _ = sch.get_loops(block)
        if self.results is not None:
            sch.split(results, factors=[None, self.results])
        partial = sch.rfactor(sch.split(reduced, factors=[None, self.parts])[1], 0)
        outer, *own, part, _ = sch.get_loops(partial)
        terms = own.pop()
        sch.reorder(outer, *own, part, terms)
        if self.results is None:
            sch.annotate(part, ann_key="pragma_auto_unroll_max_step", ann_val=_UNROLLED)
            sch.annotate(part, ann_key="pragma_unroll_explicit", ann_val=1)
        self.bind(sch, [*own, part])
        sch.bind(outer, "blockIdx.x")
        sch.decompose_reduction(partial, terms)
        sch.set_scope(partial, 0, "local")
        return outer

    def combine(self, sch, block, outer, loops):
        """Adds up the partial sums below the loop that made them."""
        sch.reverse_compute_at(block, outer, preserve_unit_loops=True)
        _, part, *results = sch.get_loops(block)
        result, once = loops.written_back(sch, results)
        inner = [part] if once is None else [part, once] if self.results is None else [once, part]
        sch.reorder(result, *inner)
        self.bind(sch, [part] if self.results is None else [result, part])

    def follow(self, sch, block, outer, epilogue):
        """What follows the sum is computed by the same threads; they share its results where they are read more than once."""
        sch.reverse_compute_at(epilogue, outer, preserve_unit_loops=True)
        is_shared = is_broadcast_epilogue(sch, block, epilogue)
        sch.set_scope(block, 0, "shared" if is_shared else "local")
        if is_shared:
            own = sch.get_loops(epilogue)[1:]
            fused = sch.fuse(*own) if own else sch.add_unit_loop(epilogue)
            counts = [self.parts] if self.results is None else [self.results, self.parts]
            self.bind(sch, sch.split(fused, factors=[None, *counts])[1:])
        elif self.results is not None:
            # Each thread of a row has its own result.
            thread, _ = sch.split(sch.fuse(*sch.get_loops(epilogue)[1:]), factors=[self.results, None])
            self.bind(sch, [thread])


def _dividing(sch, loop, threads):
    """As many threads as are asked for, or fewer where the length of the loop is a number that they do not divide."""
    length = getattr(sch.get(loop).extent, "value", None)
    return threads if length is None or length % threads == 0 else sharing(sch, None, loop)


def sharing(sch, target, loop, most=256):
    """How many threads share a loop: as many as divide its length, so that each has as much to do."""
    length = getattr(sch.get(loop).extent, "value", None)
    if length is None:
        return min(most, suggest_threads_per_block(target, [sch.get(loop)])[0])
    return max(count for count in range(1, min(most, length) + 1) if length % count == 0)


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
