"""Rules that make the design space of a kernel, block by block."""

from .add_rfactor import AddRFactor
from .apply_custom_rule import ApplyCustomRule
from .auto_bind import AutoBind
from .auto_inline import AutoInline, InlineConstantScalars
from .cross_thread_reduction import CrossThreadReduction
from .multi_level_tiling import MultiLevelTiling, MultiLevelTilingWideVector, MultiLevelTilingWithIntrin, ReuseType
from .parallel_vectorize_unroll import ParallelizeVectorizeUnroll
from .random_compute_location import RandomComputeLocation
from .schedule_rule import PyScheduleRule, ScheduleRule, create

__all__ = ["AddRFactor", "ApplyCustomRule", "AutoBind", "AutoInline", "CrossThreadReduction", "InlineConstantScalars"]
__all__ += ["MultiLevelTiling", "MultiLevelTilingWideVector", "MultiLevelTilingWithIntrin", "ParallelizeVectorizeUnroll"]
__all__ += ["PyScheduleRule", "RandomComputeLocation", "ReuseType", "ScheduleRule", "create"]
