"""Places for buffers in a device's memory: one behind another, each for as long as the kernel runs."""

import math

from ..._walk import rebuilt, walk
from ...stmt import AllocBuffer
from ...transform import prim_func_pass

__all__ = ["TrnNaiveAllocator"]

#: What an allocation says of its place, an address of one number or more.
_PLACE = "allocated_addr"


def _bytes(buffer):
    """The bytes that a buffer takes, of one partition where its memory has partitions; ``None`` where nobody gives places."""
    scope = buffer.scope()
    if scope != "trn.sbuf" and not scope.startswith("shared"):
        return None
    lengths = [getattr(dim, "value", None) for dim in buffer.shape]
    if None in lengths:
        raise ValueError(f"{buffer.name} has a length that is not known, so it cannot be given a place")
    elements = math.prod(lengths)
    if scope == "trn.sbuf":
        # Without a layout the first dimension is over the partitions.
        over = lengths[0] if buffer.layout is None else int(buffer.layout.size("P"))
        elements //= over
    return elements * buffer.dtype.itemsize


def _place(alloc):
    return list((alloc.annotations or {}).get(_PLACE) or ())


@prim_func_pass(opt_level=0, name="TrnNaiveAllocator")
class TrnNaiveAllocator:
    """Gives each buffer without a place one behind those that have one, in the order of their allocations."""

    def transform_function(self, func, mod, ctx):
        """The kernel with a place for each buffer."""
        free = 0
        for alloc in walk(func.body):
            size = _bytes(alloc.buffer) if isinstance(alloc, AllocBuffer) else None
            if size is not None and _place(alloc):
                free = max(free, int(_place(alloc)[-1]) + size)

        def placed(stmt):
            nonlocal free
            if not isinstance(stmt, AllocBuffer) or _place(stmt):
                return None
            size = _bytes(stmt.buffer)
            if size is None:
                return None
            at, free = free, free + size
            return AllocBuffer(stmt.buffer, {**(stmt.annotations or {}), _PLACE: [at]})

        return func.with_body(rebuilt(func.body, placed))
