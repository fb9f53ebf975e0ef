"""Passes and pipelines of devices: ``backend.cpu_generic.get_default_pipeline(target)``."""

from ..transform import __getattr__ as _pass
from . import cpu_generic, cuda, gpu_generic, metal, rocm

DispatchSampling = _pass("DispatchSampling")
DispatchSortScan = _pass("DispatchSortScan")

__all__ = ["DispatchSampling", "DispatchSortScan", "cpu_generic", "cuda", "gpu_generic", "metal", "rocm"]
