"""Schedule primitives: steps on the blocks and loops of kernels, each checked, and the traces that they leave."""

from ..sblock_scope import Dependency, DepKind, SBlockScope, StmtSRef
from .rv import ExprRV, LoopRV, SBlockRV, ScheduleError
from .schedule import Schedule
from .state import ScheduleDebugMask, ScheduleState
from .trace import Instruction, InstructionKind, Trace

__all__ = [
    "DepKind",
    "Dependency",
    "ExprRV",
    "Instruction",
    "InstructionKind",
    "LoopRV",
    "SBlockRV",
    "SBlockScope",
    "Schedule",
    "ScheduleDebugMask",
    "ScheduleError",
    "ScheduleState",
    "StmtSRef",
    "Trace",
]
