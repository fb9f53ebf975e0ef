"""What a GPU can run."""

from ....tirx import For, ForKind
from ....tirx._walk import walk
from ...stmt import SBlock
from ..schedule_rule._blocks import kernels, limit_of, number
from .postproc import _Plain


class VerifyGPUCode(_Plain):
    """Refuses schedules with more threads or more shared memory than the target has, and blocks whose threads differ in number."""

    def apply(self, sch):
        """Whether the target can run it."""
        target = self._context.target if self._context else None
        most = limit_of(target, "max_threads_per_block", 1024)
        memory = limit_of(target, "max_shared_memory_per_block", 49152)
        return all(self._fits(func, most, memory) for func in kernels(sch))

    @staticmethod
    def _fits(func, most, memory):
        lengths = {}
        for stmt in walk(func.body):
            if isinstance(stmt, For) and stmt.kind is ForKind.THREAD_BINDING:
                length = number(stmt.extent)
                known = lengths.setdefault(stmt.thread_tag, length)
                if length is None or not stmt.thread_tag.startswith(("vthread", "blockIdx")) and known != length:
                    return False
                if stmt.thread_tag.startswith("vthread") and length > 8:
                    return False
        threads = 1
        for name, length in lengths.items():
            if name.startswith("threadIdx"):
                threads *= length
        for stmt in walk(func.body):
            hints = stmt.annotations or {} if isinstance(stmt, SBlock) else {}
            low = number(hints.get("meta_schedule.thread_extent_low_inclusive"))
            high = number(hints.get("meta_schedule.thread_extent_high_inclusive"))
            if low is not None and threads < low or high is not None and threads > high:
                return False
        return threads <= most and _shared(func) <= memory


def _shared(func):
    """The bytes of memory that threads share."""
    total = 0
    for stmt in walk(func.body):
        for buffer in stmt.alloc_buffers if isinstance(stmt, SBlock) else ():
            if buffer.scope().startswith("shared"):
                size = (buffer.dtype.bits + 7) // 8
                for dim in buffer.shape:
                    size *= number(dim) or 0
                total += size
    return total


__all__ = ["VerifyGPUCode"]
