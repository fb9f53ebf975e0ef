"""Schedules by hand: steps on the blocks and loops of kernels, each checked, and the traces that they leave."""

from .rv import ExprRV, LoopRV, SBlockRV, ScheduleError
from .schedule import Schedule
from .state import ScheduleState
from .trace import Instruction, InstructionKind, Trace

__all__ = [
    "ExprRV",
    "Instruction",
    "InstructionKind",
    "LoopRV",
    "SBlockRV",
    "Schedule",
    "ScheduleError",
    "ScheduleState",
    "Trace",
]
