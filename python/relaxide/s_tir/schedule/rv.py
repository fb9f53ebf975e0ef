"""Random variables: what steps are about, under names that stay while the program changes."""

from ...ffi import Object, register_error, register_object
from ...ir.expr import ExprWithOp


@register_error("ScheduleError")
class ScheduleError(RuntimeError):
    """A step is not legal, or is about something that is not there."""


@register_object("s_tir.SBlockRV")
class SBlockRV(Object):
    """Stands for a block."""

    def __repr__(self):
        return "s_tir.SBlockRV"


@register_object("s_tir.LoopRV")
class LoopRV(Object):
    """Stands for a loop."""

    def __repr__(self):
        return "s_tir.LoopRV"


#: Stands for a number that was sampled; expressions of it stand for what they come to.
ExprRV = ExprWithOp

__all__ = ["ExprRV", "LoopRV", "SBlockRV", "ScheduleError"]
