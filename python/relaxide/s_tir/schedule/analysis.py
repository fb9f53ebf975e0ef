"""What is asked of schedules, and of blocks that an intrinsic may execute."""

from ...tirx import For, IndexMap, IterVar, PrimFunc, Var
from ...tirx._walk import walk
from ..stmt import SBlock, SBlockRealize
from ..sblock_scope import StmtSRef
from .rv import ScheduleError


def has_block(sch, block_name):
    """Whether a module has a block of a name."""
    kernels = [func for func in sch.mod.functions.values() if isinstance(func, PrimFunc)]
    return any(isinstance(stmt, SBlock) and stmt.name == block_name for func in kernels for stmt in walk(func.body))


def is_output_block(sch, block):
    """Whether a block writes what outlives the block around it."""
    node = sch.get(block)
    probe = sch.copy()
    for func in sch.mod.functions.values():
        if isinstance(func, PrimFunc) and isinstance(func.body, SBlockRealize):
            try:
                outputs = probe.get_output_blocks(probe.get_sblock(func.body.block.name))
            except (ScheduleError, ValueError):
                continue
            if any(probe.get(one).same_as(node) for one in outputs):
                return True
    return False


class TensorizeInfo:
    """How loops of a block stand for those of an intrinsic: ``loop_map`` of references to the intrinsic's loops, ``desc_loop_indexer`` of
    these to their numbers, ``block_iter_paddings`` how long axes must be where they are too short."""

    def __init__(self, loop_map, desc_loop_indexer, block_iter_paddings=None):
        self.loop_map, self.desc_loop_indexer = loop_map, desc_loop_indexer
        self.block_iter_paddings = block_iter_paddings


def _kind(axis):
    return {IterVar.DataPar: "S", IterVar.CommReduce: "R"}.get(axis.iter_type, "O")


def get_tensorize_loop_mapping(sch, block, desc_func, allow_padding=False):
    """The :class:`TensorizeInfo` of a block and the description of an intrinsic; ``None`` where its innermost loops do not fit.

    ``allow_padding`` takes loops that are no multiple of the intrinsic's.
    """
    desc_loops = [stmt for stmt in walk(desc_func.body) if isinstance(stmt, For)]
    realizes = [stmt for stmt in walk(desc_func.body) if isinstance(stmt, SBlockRealize)]
    inner = realizes[-1]
    kernels = [func for func in sch.mod.functions.values() if isinstance(func, PrimFunc)]
    everywhere = (stmt for func in kernels for stmt in walk(func.body) if isinstance(stmt, SBlockRealize))
    own = next(stmt for stmt in everywhere if stmt.block.same_as(sch.get(block)))
    probe = sch.copy()
    loops = {loop.loop_var: loop for loop in (probe.get(one) for one in probe.get_loops(block))}
    axes = list(zip(own.block.iter_vars, own.iter_values))
    mapped, numbers, paddings, last = {}, {}, [None] * len(axes), len(axes)
    for axis, value in reversed(list(zip(inner.block.iter_vars, inner.iter_values))):
        desc = next((loop for loop in desc_loops if isinstance(value, Var) and loop.loop_var.same_as(value)), None)
        if desc is None:
            return None
        length = desc.extent.value
        found = None
        for index in reversed(range(last)):
            mine, place = axes[index]
            if _kind(mine) == _kind(axis) and isinstance(place, Var) and place in loops:
                extent = getattr(mine.extent, "value", None)
                if extent is not None and (extent % length == 0 or allow_padding):
                    found = index
                    break
        if found is None:
            return None
        last = found
        extent = axes[found][0].extent.value
        if extent % length:
            paddings[found] = length
        mapped[StmtSRef._of(sch, loops[axes[found][1]])] = desc
        numbers[desc] = [i for i, loop in enumerate(desc_loops) if loop.same_as(desc)][0]
    padded = [1 if one is None else one for one in paddings] if any(paddings) else None
    return TensorizeInfo(mapped, numbers, padded)


def suggest_index_map(buffer, indices, loops, predicate):
    """The map of a buffer's indices to an order of elements in which loops, outermost first, go through memory; ``None`` where there is none.

    Each index must be made of the loops by fusing and splitting.
    """
    from ...ir import Range
    from ...sym import detect_iter_map

    domain = {loop.loop_var: Range.from_min_extent(loop.min, loop.extent) for loop in loops}
    strides, size = [], 1
    for dim in reversed(list(buffer.shape)):
        strides.append(size)
        size = size * getattr(dim, "value", dim)
    flat = sum((index * stride for index, stride in zip(indices, reversed(strides))), start=0)
    found = detect_iter_map([flat], domain, predicate, "nocheck")
    if not found.indices or not found.indices[0].args:
        return None
    order = {loop.loop_var: number for number, loop in enumerate(loops)}
    parts = list(found.indices[0].args)
    if len(parts) == 1 and hasattr(parts[0].source.source, "args"):
        parts = list(parts[0].source.source.args)
    keys = []
    for part in parts:
        source = part.source.source
        if source not in order:
            return None
        keys.append((order[source], -part.lower_factor.value, part))
    initial = [Var(f"i{axis}", index.dtype) for axis, index in enumerate(indices)]
    place = sum((var * stride for var, stride in zip(initial, reversed(strides))), start=0)
    final = []
    for _, _, part in sorted(keys, key=lambda key: key[:2]):
        final.append(place // part.scale % part.extent)
    return IndexMap(initial, final, None)


__all__ = ["TensorizeInfo", "get_tensorize_loop_mapping", "has_block", "is_output_block", "suggest_index_map"]
