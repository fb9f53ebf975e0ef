"""Loops of lengths that are not known."""

from ....tirx import For
from ....tirx._walk import walk
from ..schedule_rule._blocks import kernels, number
from .postproc import _Plain


class DisallowDynamicLoop(_Plain):
    """Refuses schedules with a loop whose length is not a number."""

    def apply(self, sch):
        """Whether all lengths are numbers."""
        loops = (stmt for func in kernels(sch) for stmt in walk(func.body) if isinstance(stmt, For))
        return all(number(loop.extent) is not None for loop in loops)


__all__ = ["DisallowDynamicLoop"]
