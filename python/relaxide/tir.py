"""Kernels under the name that they had in older releases of TVM: :mod:`relaxide.tirx` and, for schedules, :mod:`relaxide.s_tir`."""

from . import s_tir, tirx


def __getattr__(name):
    for module in (tirx, s_tir):
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}: neither `tirx` nor `s_tir` has it", name=name)


def __dir__():
    return sorted({*dir(tirx), *dir(s_tir)})
