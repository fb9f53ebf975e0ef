"""The rule that lets threads share a reduction."""

from ....tirx import ForKind
from ._blocks import REFUSED, limit_of, loop_kinds, needs_rfactor, reduction_fused
from .schedule_rule import _Copied


class CrossThreadReduction(_Copied):
    """Lets the threads of a block reduce together, and computes the reduction under the loops of its consumer where that is legal.

    ``thread_extents`` are the numbers of threads that are tried.
    """

    def __init__(self, thread_extents):
        self._made_of(thread_extents=list(thread_extents))
        self.max_threads_per_block = self.warp_size = -1

    def _initialize_with_tune_context(self, context):
        super()._initialize_with_tune_context(context)
        self.max_threads_per_block = limit_of(context.target, "max_threads_per_block", -1)
        self.warp_size = limit_of(context.target, "thread_warp_size", -1)

    def apply(self, sch, block):
        """The schedule with shared reduction, and as it was."""
        if -1 in (self.max_threads_per_block, self.warp_size):
            return [sch]
        if not needs_rfactor(sch, block, self.max_threads_per_block, self.warp_size):
            return [sch]
        tried = sch.copy()
        tried.seed(sch.fork_seed())
        count = len(self.thread_extents)
        place = _place(tried, block)
        threads = tried.sample_categorical(self.thread_extents, [1.0 / count] * count)
        if place is not None:
            loop, innermost, is_bound = place
            if not is_bound:
                outer, inner = tried.split(innermost, [None, threads])
                tried.bind(inner, "threadIdx.x")
                loop = outer if loop is innermost else loop
            tried.compute_at(block, loop, preserve_unit_loops=True)
            tried.set_scope(block, 0, "shared")
        fused, _ = reduction_fused(tried, block)
        _, inner = tried.split(fused, [None, threads])
        tried.bind(inner, "threadIdx.x")
        return [tried, sch]


def _place(sch, block):
    """``(loop, innermost loop of the consumer, whether its loops are bound to threads)``: the loop of the consumer under which the
    reduction can be computed; ``None`` where there is none."""
    consumers = sch.get_consumers(block)
    if not consumers:
        return None
    loops = sch.get_loops(consumers[0])
    kinds = loop_kinds(sch, consumers[0])
    rows = sum(kind == "S" for kind in loop_kinds(sch, block))
    if not rows or len(loops) <= rows or any(kind != "S" for kind in kinds[:rows]):
        return None
    loop = loops[rows - 1]
    try:
        sch.copy().compute_at(block, loop, preserve_unit_loops=True)
    except REFUSED:
        return None
    is_bound = any(sch.get(one).kind is ForKind.THREAD_BINDING for one in loops)
    return loop, loops[-1], is_bound


__all__ = ["CrossThreadReduction"]
