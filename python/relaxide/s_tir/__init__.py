"""Kernels as blocks: units of computation over axes, and schedules that say how they are executed.

::

    sch = s_tir.Schedule(kernel)
    i, j, k = sch.get_loops(sch.get_sblock("C"))
    j0, j1 = sch.split(j, [None, 8])
    sch.reorder(i, j0, k, j1)
    sch.vectorize(j1)
    program = relaxide.compile(sch.mod)
"""

from . import analysis, schedule, stmt, transform
from .data_layout import SBijectiveLayout, SLayout, sbijective_layout, slayout
from .sblock_dependence_info import SBlockDependenceInfo
from .sblock_scope import Dependency, DepKind, SBlockScope, StmtSRef
from .schedule import (
    ExprRV,
    Instruction,
    InstructionKind,
    LoopRV,
    SBlockRV,
    Schedule,
    ScheduleError,
    ScheduleState,
    Trace,
)
from .stmt import MatchBufferRegion, SBlock, SBlockRealize
from ._tensor_intrin import TensorIntrin


def renew_defs(func):
    """A copy of a kernel with variables and buffers of its own, which computes the same."""
    from ..script import from_source

    return from_source(func.script())


def __getattr__(name):
    # Rules and tuning are made of schedules, which few programs write.
    if name in ("dlight", "meta_schedule"):
        import importlib

        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "DepKind",
    "Dependency",
    "ExprRV",
    "Instruction",
    "InstructionKind",
    "LoopRV",
    "MatchBufferRegion",
    "SBlock",
    "SBijectiveLayout",
    "SBlockDependenceInfo",
    "SBlockRV",
    "SBlockRealize",
    "SBlockScope",
    "SLayout",
    "Schedule",
    "ScheduleError",
    "ScheduleState",
    "StmtSRef",
    "TensorIntrin",
    "Trace",
    "analysis",
    "renew_defs",
    "sbijective_layout",
    "schedule",
    "slayout",
    "stmt",
    "transform",
]
