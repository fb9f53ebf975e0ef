"""The rule for rows that are reduced and then used again: softmax, layer norm and the like."""

from ....sym import Analyzer
from ....tirx import IndexMap, PrimFunc, const
from ...schedule import Schedule
from ..analysis import collect_vars_used_in_prim_expr, normalize_prim_func
from ..base import try_inline_contiguous_spatial
from .base import GPUScheduleRule

#: ``(threads, steps of unrolled loops)`` by kind of device.
_SHAPES = {"cuda": (256, 256), "opencl": (256, 64)}


class GeneralReduction(GPUScheduleRule):
    """A block of threads for each row: its reductions one after the other, with their results in shared memory, then what uses them."""

    def apply(self, func, target, tunable):
        """The schedule; ``None`` where the blocks are not reductions over the same axes, followed by one without."""
        if not isinstance(func, PrimFunc) or not self.is_target_available(target):
            return None
        threads, steps = _SHAPES.get(target.kind.name, (64, 64))
        sch = Schedule(func)
        infos = try_inline_contiguous_spatial(sch, normalize_prim_func(sch))
        if not infos:
            return None
        kinds = infos[0].dom_kind()
        leading = len(kinds) - len(kinds.lstrip("S"))
        trailing = len(kinds) - len(kinds.rstrip("R"))
        count = len(infos[-1].iters)
        if not trailing or not count or count > len(kinds):
            return None
        if any(info.dom_kind() != kinds for info in infos[1:-1]) or not infos[-1].is_injective():
            return None
        if count < len(kinds):
            _align_last(sch, infos, kinds)
        _spatial_first(sch, infos)
        self._bind(sch, infos, leading, trailing, threads, steps)
        return sch

    @staticmethod
    def _bind(sch, infos, leading, trailing, threads, steps):
        def share(loop):
            loop, tx = sch.split(loop, [None, threads])
            sch.reorder(tx, loop)
            return loop, tx

        def write_out(loop):
            sch.annotate(loop, ann_key="pragma_auto_unroll_max_step", ann_val=steps)
            sch.annotate(loop, ann_key="pragma_unroll_explicit", ann_val=1)

        loops = sch.get_loops(infos[-1].block_rv)
        bx = sch.fuse(*loops[:leading])
        loop, tx = share(loops[-1])
        sch.bind(bx, "blockIdx.x")
        sch.bind(tx, "threadIdx.x")
        write_out(loop)
        for info in reversed(infos[:-1]):
            block = info.block_rv
            for index in range(len(sch.get(block).writes)):
                sch.set_scope(block, buffer_index=index, storage_scope="shared")
            sch.compute_at(block, bx, preserve_unit_loops=True)
            loop, tx = share(sch.fuse(*sch.get_loops(block)[-trailing:]))
            sch.bind(tx, "threadIdx.x")
            write_out(loop)


def _align_last(sch, infos, kinds):
    """Give the last block as many axes as the others have: axes of the same length stand for each other, the rest have length one."""
    first, last = infos[0].iters, infos[-1].iters

    def mapping(*axes):
        analyzer, taken, made = Analyzer(), 0, []
        for axis in first:
            if taken < len(axes) and analyzer.can_prove_equal(axis._dom, last[taken]._dom):
                made.append(axes[taken])
                taken += 1
            else:
                made.append(const(0, str(axes[0].dtype)))
        zeros = [const(0, str(axes[0].dtype))] * (len(kinds) - len(last))
        return made if taken == len(axes) else [*zeros, *axes]

    sch.transform_block_layout(infos[-1].block_rv, IndexMap.from_func(mapping, ndim=len(last)))


def _spatial_first(sch, infos):
    """Put the loops of the last block that the reduced results depend on in front of the others."""
    reduced = {write.buffer for info in infos[:-1] for write in sch.get(info.block_rv).writes}
    block, loops = sch.get(infos[-1].block_rv), sch.get_loops(infos[-1].block_rv)
    of_axis = {axis.var: loop for axis, loop in zip(block.iter_vars, loops)}
    spatial = []
    for read in block.reads:
        if read.buffer in reduced:
            for dim in read.region:
                used = collect_vars_used_in_prim_expr(dim.min) | collect_vars_used_in_prim_expr(dim.extent)
                spatial += [of_axis[var] for var in used if var in of_axis]
    is_first = [any(loop is other for other in spatial) or getattr(sch.get(loop).extent, "value", None) == 1 for loop in loops]
    first = [loop for loop, own in zip(loops, is_first) if own]
    sch.reorder(*first, *(loop for loop, own in zip(loops, is_first) if not own))


__all__ = ["GeneralReduction"]
