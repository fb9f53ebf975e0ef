"""The state of a schedule: its module, references to blocks and loops, and what flows between blocks."""

import enum
import weakref
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
        self._known = []

    @classmethod
    def _of(cls, schedule):
        state = cls.__new__(cls)
        state._schedule, state._known = schedule, []
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
        if reference.stmt is None:
            return None
        self._known.append(weakref.ref(reference))
        return reference

    def replace(self, src_sref, tgt_stmt, block_sref_reuse=None):
        """Put a statement in the place of a block or a loop.

        A block takes the place of a block, a loop or a block with what it is executed for (``SBlockRealize``) that of a loop. Whether
        the kernel still computes the same is not asked. The module is a new one; who holds the old one keeps it as it was.

        Parameters
        ----------
        src_sref : StmtSRef
            What is replaced.
        tgt_stmt : SBlock | For | SBlockRealize
            What takes its place.
        block_sref_reuse : dict[SBlock, SBlock] | None
            Which blocks take the place of others: references to those follow.
        """
        reuse = list((block_sref_reuse or {}).items())
        self._schedule._replace(src_sref._stmt, tgt_stmt, reuse)
        self._known = [known for known in self._known if known() is not None]
        for known in self._known:
            if (reference := known()) is not None:
                reference._follow(reuse)

    def get_sblock_scope(self, block_sref):
        """What flows between the blocks directly inside of a block."""
        return SBlockScope(self._schedule, block_sref.stmt)


__all__ = ["ScheduleState"]
