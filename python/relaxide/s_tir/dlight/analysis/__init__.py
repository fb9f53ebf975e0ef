"""What rules ask of kernels."""

from .common_analysis import (
    IterInfo,
    SBlockInfo,
    collect_block_iter_vars_used_in_access_region,
    collect_vars_used_in_prim_expr,
    detect_dominant_read,
    get_max_shared_memory_per_block,
    get_max_threads_per_block,
    get_root_block,
    get_sblock_info,
    is_broadcast_epilogue,
    normalize_prim_func,
)
from .gemv import is_gemv, normalize

__all__ = ["IterInfo", "SBlockInfo", "collect_block_iter_vars_used_in_access_region", "collect_vars_used_in_prim_expr"]
__all__ += ["detect_dominant_read", "get_max_shared_memory_per_block", "get_max_threads_per_block", "get_root_block", "get_sblock_info"]
__all__ += ["is_broadcast_epilogue", "is_gemv", "normalize", "normalize_prim_func"]
