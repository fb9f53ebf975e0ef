"""Schedules by rules, without tuning: each rule looks at a kernel and schedules it, or leaves it to the next.

::

    with Target("cuda"):
        mod = dlight.ApplyDefaultSchedule(dlight.gpu.Transpose(), dlight.gpu.Fallback())(mod)
"""

from . import analysis, base, cpu, gpu
from .analysis import IterInfo, SBlockInfo, normalize_prim_func
from .base import ApplyDefaultSchedule, ScheduleRule, try_inline, try_inline_contiguous_spatial

__all__ = ["ApplyDefaultSchedule", "IterInfo", "SBlockInfo", "ScheduleRule", "analysis", "base", "cpu", "gpu"]
__all__ += ["normalize_prim_func", "try_inline", "try_inline_contiguous_spatial"]
