"""How long kernels with symbolic dimensions take, at samples of their dimensions."""

from .bench import benchmark, benchmark_prim_func, benchmark_relax_func
from .extract import extract_all_func_info_from_relax, extract_from_relax, extract_func_info_from_prim_func, extract_prim_func

__all__ = ["benchmark", "benchmark_prim_func", "benchmark_relax_func", "extract_all_func_info_from_relax", "extract_from_relax"]
__all__ += ["extract_func_info_from_prim_func", "extract_prim_func"]
