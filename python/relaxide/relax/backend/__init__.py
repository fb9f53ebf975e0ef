"""Passes and pipelines of devices: ``backend.cpu_generic.get_default_pipeline(target)``."""

from ..transform import __getattr__ as _pass
from . import adreno, contrib, cpu_generic, cuda, gpu_generic, metal, pattern_registry, patterns, rocm, utils
from .pattern_registry import get_pattern, get_patterns_with_prefix, register_patterns

DispatchSampling = _pass("DispatchSampling")
DispatchSortScan = _pass("DispatchSortScan")

__all__ = ["DispatchSampling", "DispatchSortScan", "adreno", "contrib", "cpu_generic", "cuda", "get_pattern"]
__all__ += ["get_patterns_with_prefix", "gpu_generic", "metal", "pattern_registry", "patterns", "register_patterns", "rocm", "utils"]
