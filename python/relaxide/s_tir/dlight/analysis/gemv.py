"""Products of a matrix and a vector, and the order in which they read the matrix."""

from ....ir.base import structural_equal
from ....tirx import Add, BufferLoad, BufferStore, FloorDiv, Var
from .common_analysis import collect_block_iter_vars_used_in_access_region as _used


def get_reduction_expr(block):
    """What a block adds up: ``Y`` of ``X[...] = X[...] + Y``; ``None`` where it does not."""
    store = block.body
    if not isinstance(store, BufferStore) or not isinstance(store.value, Add):
        return None
    own = BufferLoad(store.buffer, list(store.indices))
    return store.value.b if structural_equal(store.value.a, own) else None


def is_gemv(sch, block_info):
    """The vectors of a product of a matrix and a vector: the buffers that are read by fewer axes than the block has; ``None`` where it
    is none."""
    block = sch.get(block_info.block_rv)
    if not block_info.is_reduction() or len(block.reads) < 2 or len(block.writes) != 1 or get_reduction_expr(block) is None:
        return None
    if not _used(block, block.writes[0].region):
        return None
    count = len(block.iter_vars)
    vectors = [read.buffer for read in block.reads if 0 < len(_used(block, read.region)) < count]
    return vectors if 0 < len(vectors) < len(block.reads) else None


def access_order(block):
    """``(axis, factor)`` in the order in which the largest read goes through memory, outermost first; ``None`` where a place is no axis.

    An index ``axis // factor`` has a factor above one: so many neighbours along the axis read one element.
    """
    read = max(block.reads, key=lambda read: len(_used(block, read.region)))
    order = []
    for dim in read.region:
        index, factor = dim.min, 1
        if isinstance(index, FloorDiv) and hasattr(index.b, "value"):
            index, factor = index.a, index.b.value
        if isinstance(index, Var):
            order.append((index, factor))
        elif not hasattr(index, "value"):
            return None
    return order


def normalize(sch, block_info):
    """Give a product the loops ``batch, spatial, reduction, inner``, each fused of its kind.

    Gives whether the innermost place of the matrix is a reduction; ``None`` where the loops cannot be told apart, or an inner part is
    spatial.
    """
    block = sch.get(block_info.block_rv)
    order = access_order(block)
    infos = {axis.var: axis for axis in block_info.iters}
    if not order or any(var not in infos for var, _ in order) or len({var for var, _ in order}) != len(order):
        return None
    everywhere = set.intersection(*(_used(block, region.region) for region in [*block.writes, *block.reads]))
    batch, spatial, reduction, inner = [], [], [], []
    for var, factor in order:
        info = infos[var]
        loop = info.loop_rv
        if factor > 1:
            if inner or info.kind != "R":
                return None
            loop, part = sch.split(loop, factors=[None, factor])
            inner.append(part)
        (reduction if info.kind == "R" else batch if var in everywhere else spatial).append(loop)
    if not spatial or not reduction:
        return None
    inner = inner or [sch.add_unit_loop(block_info.block_rv)]
    batch = batch or [sch.add_unit_loop(block_info.block_rv)]
    sch.reorder(*batch, *spatial, *reduction, *inner)
    for loops in (batch, spatial, reduction):
        sch.fuse(*loops)
    return infos[order[-1][0]].kind == "R"


__all__ = ["access_order", "get_reduction_expr", "is_gemv", "normalize"]
