"""Random variables: what steps are about, under names that stay while the program changes."""

from ...ffi import Object, register_error, register_object
from ...ir import _api
from ...ir.expr import ExprWithOp


@register_error("ScheduleError")
class ScheduleError(RuntimeError):
    """A step is not legal, or is about something that is not there."""


@register_error("UnknownVariable")
class UnknownVariable(ScheduleError, IndexError):
    """A random variable that is not of this schedule, or no longer."""


@register_object("s_tir.SBlockRV")
class SBlockRV(Object):
    """Stands for a block; a new one for a block that a step will find."""

    def __init__(self):
        self.__init_handle_by_constructor__(_api.s_tir.SBlockRV)

    def __repr__(self):
        return "s_tir.SBlockRV"


@register_object("s_tir.LoopRV")
class LoopRV(Object):
    """Stands for a loop; a new one for a loop that a step will find."""

    def __init__(self):
        self.__init_handle_by_constructor__(_api.s_tir.LoopRV)

    def __repr__(self):
        return "s_tir.LoopRV"


#: Stands for a number that was sampled; expressions of it stand for what they come to.
ExprRV = ExprWithOp

__all__ = ["ExprRV", "LoopRV", "SBlockRV", "ScheduleError"]
