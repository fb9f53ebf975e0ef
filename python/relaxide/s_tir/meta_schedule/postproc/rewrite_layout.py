"""Buffers whose layout is free are laid out in the order in which their elements are read."""

from ....ir.prim import BufferLoad
from ....tirx import BufferStore, IndexMap, PrimFunc
from ....tirx._walk import scalars, walk, walk_scalar
from ...schedule.analysis import suggest_index_map
from ...stmt import SBlock, SBlockRealize
from ..schedule_rule._blocks import REFUSED
from .postproc import _Plain


class RewriteLayout(_Plain):
    """Lays out the buffers that a kernel names in ``layout_free_buffers``, by their numbers, as its loops read them.

    A block that is annotated ``meta_schedule.layout_rewrite_preproc`` copies each into its new layout: where the buffer is a weight, that
    is done once. Copies that a rule made of the buffer (``cache_read``) get the layout, too.
    """

    def apply(self, sch):
        """Whether each such buffer is read by a block whose loops give it a layout."""
        for var, func in list(sch.mod.functions_items()):
            numbers = (func.attrs or {}).get("layout_free_buffers") if isinstance(func, PrimFunc) else None
            for number in numbers or ():
                if not _rewrite(sch, var.name_hint, func.buffer_map[func.params[int(number)]]):
                    return False
        return True


def _rewrite(sch, name, buffer):
    """Lay out one buffer; whether it could be done."""
    kernel = next(func for var, func in sch.mod.functions_items() if var.name_hint == name)
    realizes = [stmt for stmt in walk(kernel.body) if isinstance(stmt, SBlockRealize)]
    copies = []
    while True:
        reader = next((realize for realize in realizes if _load_of(realize.block, buffer) is not None), None)
        if reader is None:
            return False
        written = _copied_to(reader.block, buffer)
        if written is None or reader.block.name in copies:
            break
        copies.append(reader.block.name)
        buffer = written
    consumer = sch.get_sblock(reader.block.name, func_name=name)
    index_map = _index_map(sch, consumer, reader, buffer)
    if index_map is None:
        return True
    first = sch.get_sblock(copies[0], func_name=name) if copies else consumer
    number = 0 if copies else _number(reader.block, buffer)
    try:
        laid_out = sch.cache_read(first, number, "global")
        for block in [laid_out, *(sch.get_sblock(copy, func_name=name) for copy in copies)]:
            sch.transform_layout(block, ("write", 0), index_map)
    except REFUSED:
        return False
    sch.annotate(laid_out, "meta_schedule.layout_rewrite_preproc", True)
    return True


def _index_map(sch, consumer, realize, buffer):
    """The map of the buffer's indices to the order of the loops around its reader; ``None`` where it would change nothing or there is none."""
    axes = [axis.var for axis in realize.block.iter_vars]
    indices = IndexMap(axes, list(_load_of(realize.block, buffer).indices), None).map_indices(list(realize.iter_values))
    loops = [sch.get(loop) for loop in sch.get_loops(consumer)]
    return suggest_index_map(buffer, indices, loops, realize.predicate)


def _load_of(block, buffer):
    """The first load of a buffer that stands in a block itself."""
    statements = list(walk(block.body))
    if any(isinstance(stmt, SBlock) for stmt in statements):
        return None
    parts = (part for stmt in statements for scalar in scalars(stmt) for part in walk_scalar(scalar))
    return next((part for part in parts if isinstance(part, BufferLoad) and part.buffer.same_as(buffer)), None)


def _copied_to(block, buffer):
    """The buffer that a block only copies another to, element by element."""
    body = block.body
    if not isinstance(body, BufferStore) or not isinstance(body.value, BufferLoad) or not body.value.buffer.same_as(buffer):
        return None
    axes = [axis.var for axis in block.iter_vars]
    same = all(
        len(indices) == len(axes) and all(index.same_as(axis) for index, axis in zip(indices, axes))
        for indices in (list(body.indices), list(body.value.indices))
    )
    return body.buffer if same else None


def _number(block, buffer):
    """Which of the regions that a block reads is of the buffer."""
    return next(number for number, region in enumerate(block.reads) if region.buffer.same_as(buffer))


__all__ = ["RewriteLayout"]
