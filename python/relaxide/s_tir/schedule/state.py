"""The state of a schedule: its module, references to blocks and loops, and what flows between blocks."""

import enum
from collections import namedtuple

from ..sblock_scope import SBlockScope, StmtSRef

#: What is known of a block: whether its binding is affine, its reads are covered by what wrote them, and its scope is a pipeline of stages.
CachedFlags = namedtuple("CachedFlags", ["affine_binding", "region_cover", "stage_pipeline"])


class ScheduleDebugMask(enum.IntEnum):
    """Checks of a schedule's state after each step, as bits of ``debug_mask``. Here every step is checked whatever it says."""

    VERIFY_SREF_TREE = 1
    VERIFY_CACHED_FLAGS = 2


class ScheduleState:
    """The module that is scheduled, with references to its blocks and loops.

    A step changes the module; the state is that of the schedule at any time.
    """

    def __init__(self, mod, *, debug_mask="none", enable_check=True):
        from .schedule import Schedule

        self._schedule = Schedule(mod, debug_mask=debug_mask, enable_check=enable_check)

    @classmethod
    def _of(cls, schedule):
        state = cls.__new__(cls)
        state._schedule = schedule
        return state

    #: Checks of the state itself: there are none to switch on.
    debug_mask = 0

    @property
    def mod(self):
        """The module as it is now."""
        return self._schedule.mod

    @property
    def enable_check(self):
        """Whether steps whose legality is asked of the caller are checked."""
        return self._schedule._checked

    def get_sref(self, stmt):
        """A reference to a block or a loop; None where it is not in the module."""
        reference = StmtSRef(self._schedule, stmt)
        return reference if reference.stmt is not None else None

    def get_sblock_scope(self, block_sref):
        """What flows between the blocks directly inside of a block."""
        return SBlockScope(self._schedule, block_sref.stmt)


__all__ = ["ScheduleState"]
