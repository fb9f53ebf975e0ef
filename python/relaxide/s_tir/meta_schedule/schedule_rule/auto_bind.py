"""The rule that gives loops to the threads of a GPU."""

from ....tirx import For, ForKind
from ...stmt import SBlockRealize
from ._blocks import annotation, extent, is_root, limit_of, loop_kinds
from .schedule_rule import _Copied


class AutoBind(_Copied):
    """Binds the spatial loops of each block to blocks and threads.

    Parameters
    ----------
    max_threadblocks : int
        How many blocks of threads are made at most.
    thread_extents : list of int, optional
        The numbers of threads that are tried.
    max_threads_per_block : int
        The target's limit; -1 asks it.
    """

    def __init__(self, max_threadblocks=256, thread_extents=None, max_threads_per_block=-1):
        extents = [32, 64, 128, 256, 512, 1024] if thread_extents is None else list(thread_extents)
        self._made_of(max_threadblocks=max_threadblocks, thread_extents=extents, max_threads_per_block=max_threads_per_block)

    def _initialize_with_tune_context(self, context):
        super()._initialize_with_tune_context(context)
        if self.max_threads_per_block == -1:
            self.max_threads_per_block = limit_of(context.target, "max_threads_per_block", 1024)

    def apply(self, sch, block):
        """The schedule with bound loops."""
        most = 1024 if self.max_threads_per_block == -1 else self.max_threads_per_block
        bind_block(sch, block, self.max_threadblocks, most, self.thread_extents)
        return [sch]


def bind_block(sch, block, max_threadblocks, max_threads, thread_extents):
    """Bind the loops of a block, unless they are bound or the block is the root or tiled."""
    if is_root(sch, block) or annotation(sch, block, "meta_schedule.tiling_structure") is not None:
        return
    loops, kinds = sch.get_loops(block), loop_kinds(sch, block)
    has_block = has_thread = False
    outer = spatial = 0
    alone = True
    for index, (loop, kind) in enumerate(zip(loops, kinds)):
        node = sch.get(loop)
        if node.kind is ForKind.THREAD_BINDING:
            has_block |= node.thread_tag.startswith("blockIdx")
            has_thread |= node.thread_tag.startswith("threadIdx")
        if alone:
            outer = index + 1
            alone = isinstance(node.body, (For, SBlockRealize))
        if kind == "S" and spatial == index and node.kind is ForKind.SERIAL:
            spatial = index + 1
    if has_block and has_thread:
        return
    if has_block:
        raise ValueError(f"the loops of {sch.get(block).name} are bound to blocks and not to threads: bind threads, or neither")
    subset = loops[: min(outer, spatial)]
    fused = sch.fuse(*(subset or [sch.add_unit_loop(loops[0] if loops else block)]))
    if has_thread:
        sch.bind(fused, "blockIdx.x")
    else:
        _bind_spatial(sch, fused, max_threadblocks, max_threads, thread_extents)


def _bind_spatial(sch, loop, max_threadblocks, max_threads, thread_extents):
    length = extent(sch, loop)
    if length is not None and length > max_threadblocks * max_threads:
        rest, blocks, threads = sch.split(loop, factors=[None, max_threadblocks, max_threads])
        sch.reorder(blocks, threads, rest)
    else:
        most = max_threads if length is None else min(length, max_threads)
        blocks, threads = sch.split(loop, factors=[None, _threads(sch, most, thread_extents)])
    sch.bind(blocks, "blockIdx.x")
    sch.bind(threads, "threadIdx.x")


def _threads(sch, most, thread_extents):
    fitting = [count for count in thread_extents if count <= most]
    if len(fitting) < 2:
        return fitting[0] if fitting else most
    return sch.sample_categorical(fitting, [1.0 / len(fitting)] * len(fitting))


__all__ = ["AutoBind", "bind_block"]
