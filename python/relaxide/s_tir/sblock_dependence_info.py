"""What flows between the blocks of kernels, without a schedule."""

from ..ir import IRModule
from ..tirx import PrimFunc
from .schedule import ScheduleState


class SBlockDependenceInfo:
    """References to the blocks of a kernel or a module, and what flows between them."""

    def __init__(self, mod):
        mod = IRModule({"main": mod}) if isinstance(mod, PrimFunc) else mod
        if not isinstance(mod, IRModule):
            raise TypeError(f"Expected `mod` to be PrimFunc or IRModule, but gets: {mod}")
        self._state = ScheduleState(mod)

    def get_sref(self, block):
        """A reference to a block; ``None`` where it is not in the module."""
        return self._state.get_sref(block)

    def get_sblock_scope(self, block_sref):
        """What flows between the blocks directly inside of a block."""
        return self._state.get_sblock_scope(block_sref)


__all__ = ["SBlockDependenceInfo"]
