"""The rule for root mean square norms."""

from ....ir.prim import BufferLoad, Cast, PrimCall
from ....tirx import BufferStore
from ....tirx._walk import walk_scalar
from ..base import ScheduleRule
from .general_reduction import GeneralReduction


def identify_cast_or_load_block(block):
    """Whether a block makes each element of the one at the same place of another buffer, converted or as it is."""
    if len(block.reads) != 1 or len(block.writes) != 1 or not isinstance(block.body, BufferStore):
        return False
    value = block.body.value
    value = value.value if isinstance(value, Cast) else value
    same = isinstance(value, BufferLoad) and len(value.indices) == len(block.body.indices)
    return same and all(a.same_as(b) for a, b in zip(value.indices, block.body.indices))


def identify_rsqrt_block(block):
    """Whether a block makes one over a square root of the elements of one buffer."""
    if len(block.reads) != 1 or len(block.writes) != 1 or not isinstance(block.body, BufferStore):
        return False
    return any(isinstance(part, PrimCall) and str(part.op).endswith("rsqrt") for part in walk_scalar(block.body.value))


class RMSNorm(ScheduleRule):
    """A block of threads for each row: the sum of its squares, shared by the threads, one over its root, and the row times that."""

    def apply(self, func, target, tunable):
        """The schedule; ``None`` for what has no root of a sum in the middle."""
        from ....tirx import PrimFunc
        from ....tirx._walk import walk
        from ...stmt import SBlock

        if not isinstance(func, PrimFunc):
            return None
        blocks = [stmt for stmt in walk(func.body) if isinstance(stmt, SBlock)]
        if not any(identify_rsqrt_block(block) for block in blocks):
            return None
        return GeneralReduction().apply(func, target, tunable)


__all__ = ["RMSNorm", "identify_cast_or_load_block", "identify_rsqrt_block"]
