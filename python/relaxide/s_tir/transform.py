"""Passes over kernels in block form as functions of their parameters: ``s_tir.transform.LowerInitBlock()(mod)``; ``names()``
lists them."""

from ..ir.pass_functions import KernelPasses as _KernelPasses
from ..ir.pass_options import HoistedConditionals, HoistedLetBindings, LoopPartitionConfig
from ..ir.transform import Pass
from .default_gpu_schedule import DefaultGPUSchedule

_passes = _KernelPasses("s_tir.transform")
names = _passes.names


def __getattr__(name):
    made = globals()[name] = _passes.function(name)
    return made


def __dir__():
    return sorted({*names(), *globals()})


__all__ = ["DefaultGPUSchedule", "HoistedConditionals", "HoistedLetBindings", "LoopPartitionConfig", "Pass", "names"]
