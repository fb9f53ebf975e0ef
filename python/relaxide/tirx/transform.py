"""Passes over kernels as functions of their parameters: ``tirx.transform.UnrollLoop()(mod)``; ``names()`` lists them.

Those over kernels in block form are in :mod:`relaxide.s_tir.transform`. All take an ``IRModule`` and stand in
``transform.Sequential``; one may also be written in Python::

    @tirx.transform.prim_func_pass(opt_level=0)
    def mark(func, mod, ctx):
        return func.with_attr("marked", True)
"""

from .. import _core
from ..ir.module import IRModule
from ..ir.pass_functions import KernelPasses as _KernelPasses
from ..ir.pass_options import HoistedConditionals, HoistedLetBindings, HoistExpressionConfig, HoistIfThenElseConfig, UnrollLoopConfig
from ..ir.transform import Pass
from ..ir.transform import _prim_func_pass as prim_func_pass
from ..ir.transform import PrimFuncPass, module_pass
from .function import PrimFunc as _PrimFunc

_passes = _KernelPasses("tirx.transform")
names = _passes.names


def Apply(ftransform):
    """A pass that puts ``ftransform(func)`` in the place of each kernel."""
    return prim_func_pass(lambda func, mod, ctx: ftransform(func), opt_level=0, name="Apply")


def Filter(fcond):
    """A pass that keeps of the kernels those that ``fcond`` holds for; what is no kernel stays."""

    def keep(mod, ctx):
        kept = {var: func for var, func in mod.functions_items() if not isinstance(func, _PrimFunc) or fcond(func)}
        return IRModule(kept, attrs=mod.attrs, global_infos=mod.global_infos)

    return module_pass(keep, opt_level=0, name="Filter")


def BindTarget(target):
    """Kernels that name no target are for this one.

    Parameters
    ----------
    target : Target or str
        The target.

    Returns
    -------
    Pass
    """
    return Pass(_core.make_pass("tirx.transform.BindTarget", {"target": str(target)}), BindTarget.__doc__)


#: What builds on this module, by the files that it is in.
_ELSEWHERE = {"LowerTIRx": ".lower_tiles", "LowerTVMBuiltin": ".lowered_calls", "MakePackedAPI": ".packed_api"}


def __getattr__(name):
    if name in _ELSEWHERE:
        import importlib

        return getattr(importlib.import_module(_ELSEWHERE[name], __package__), name)
    made = globals()[name] = _passes.function(name)
    return made


def __dir__():
    return sorted({*names(), *_ELSEWHERE, *globals()})


__all__ = ["Apply", "BindTarget", "Filter", "HoistExpressionConfig", "HoistIfThenElseConfig", "HoistedConditionals", "HoistedLetBindings"]
__all__ += ["Pass", "PrimFuncPass", "UnrollLoopConfig", "names", "prim_func_pass"]
