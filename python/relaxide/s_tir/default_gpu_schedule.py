"""Threads for kernels that nothing has scheduled.

Each block that holds no other gets its outer spatial loops as blocks of threads; what a block reduces, its thread does in turn. That is enough
to run on a GPU, and not what is fast: rules (:mod:`relaxide.s_tir.dlight`) and tuning are for that.
"""

import math

from ..ir.transform import module_pass
from ..target import Target
from ..tirx import PrimFunc
from .schedule import Schedule, ScheduleError

#: How many blocks of threads a kernel has at most; what is more is a loop of each thread.
_MAX_BLOCKS = 256


@module_pass(opt_level=0, name="DefaultGPUSchedule")
class DefaultGPUSchedule:
    """Binds the loops of kernels to the threads of a GPU.

    The target is the kernel's attribute ``target``, else the current one; a ValueError where there is neither. All kernels get the attribute
    ``tirx.is_scheduled``; those that have it, and those for processors, stay as they are otherwise.
    """

    def transform_module(self, mod, ctx):
        """The module with its kernels scheduled."""
        scheduled = {}
        for var, func in mod.functions_items():
            if isinstance(func, PrimFunc) and not func.attrs.get("tirx.is_scheduled"):
                scheduled[var] = _scheduled(func).with_attr("tirx.is_scheduled", True)
        for var, func in scheduled.items():
            mod.update_func(var, func)
        return mod


def _scheduled(func):
    # Tuning imports what is here: it is reached through the pass alone.
    from .meta_schedule.postproc.parallel import leaf_blocks

    target = func.attrs.get("target") or Target.current(allow_none=True)
    if target is None:
        raise ValueError("DefaultGPUSchedule needs a target: open one, `with Target('cuda'):`, or give the kernel the attribute `target`")
    target = Target(target) if isinstance(target, str) else target
    if "gpu" not in target.keys:
        return func
    limit = int(target.attrs.get("max_threads_per_block", 1024))
    sch = Schedule(func)
    for block in leaf_blocks(sch):
        sch = _bound(sch, block, limit)
    return sch.mod["main"]


def _bound(sch, block, limit):
    """A schedule in which a block has threads: as many as there can be, or else a number that divides its loops."""
    from .meta_schedule.postproc.parallel import spatial_prefix
    from .meta_schedule.schedule_rule.auto_bind import bind_block

    tried = sch.copy()
    try:
        bind_block(tried, block, _MAX_BLOCKS, limit, ())
    except ScheduleError:
        # Blocks of threads that end within a loop: the indices of several loops are not affine in such threads.
        lengths = spatial_prefix(sch, block)
        bind_block(sch, block, max(1, math.prod(lengths)), limit, (_whole_loops(lengths, limit),))
        return sch
    return tried


def _whole_loops(lengths, limit):
    """As many threads as go, of which a block takes inner loops as a whole, and a divisor of the next."""
    count = 1
    for length in reversed(lengths):
        taken = max(number for number in range(1, min(length, limit // count) + 1) if length % number == 0)
        count *= taken
        if taken != length:
            break
    return count


__all__ = ["DefaultGPUSchedule"]
