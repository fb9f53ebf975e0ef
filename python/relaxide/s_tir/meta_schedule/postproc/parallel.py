"""Which loops of a block can run in parallel and in vectors."""

from ....tirx import For, ForKind, Var
from ....tirx._walk import operands, walk
from ...stmt import SBlock, SBlockRealize
from ..schedule_rule._blocks import loop_kinds, loops_of, number, outer_chain


def leaf_blocks(sch):
    """The blocks in which there are no others, of all kernels."""
    found = []
    for var, func in sch.mod.functions_items():
        for stmt in walk(func.body) if hasattr(func, "buffers") else ():
            if isinstance(stmt, SBlock) and not any(isinstance(part, SBlock) for part in list(walk(stmt))[1:]):
                found.append(sch.get_sblock(stmt.name, func_name=var.name_hint))
    return found


def spatial_prefix(sch, block):
    """The lengths of the outermost loops of a block that are spatial, serial, and have one statement."""
    lengths = []
    for node, kind in zip(loops_of(sch, block), loop_kinds(sch, block)):
        length = number(node.extent)
        if kind not in "S-" or node.kind is not ForKind.SERIAL or length is None:
            break
        lengths.append(length)
        if not isinstance(node.body, (For, SBlockRealize)):
            break
    return lengths


def fusible(sch, block, limit):
    """How many of the outermost loops can be one parallel loop of at most ``limit`` iterations."""
    count = product = 0
    total = 1
    for length in spatial_prefix(sch, block):
        total *= length
        if total > limit:
            break
        count, product = count + 1, total
    return count if product > 1 else 0


def vectorizable(sch, block, limit):
    """How many of the innermost loops can be one loop of vectors of at most ``limit`` elements."""
    loops, kinds = loops_of(sch, block), loop_kinds(sch, block)
    alone, count, total = outer_chain(sch, block), 0, 1
    for index in reversed(range(len(loops))):
        node, length = loops[index], number(loops[index].extent)
        if kinds[index] not in "S-" or node.kind is not ForKind.SERIAL or length is None or total * length > limit:
            break
        if count and index + 1 > alone and not isinstance(node.body, For):
            break
        total *= length
        count += 1
        if not count or not _is_contiguous(sch, block, node.loop_var):
            # The step of the innermost loop is not one: what lies further out does not help.
            return count if length == 1 else 0 if count == 1 else count
    return count if total > 1 else 0


def _is_contiguous(sch, block, var):
    """Whether each access moves by one element, or by none, when a loop goes on."""
    node = sch.get(block)
    from ..schedule_rule._blocks import realize_of

    realize = realize_of(sch, block)
    axes = [axis.var for axis, value in zip(node.iter_vars, realize.iter_values) if _has(value, var)]
    for region in [*node.reads, *node.writes]:
        for index, dim in enumerate(region.region):
            moved = any(_has(dim.min, axis) for axis in axes)
            if moved and index != len(region.region) - 1 and number(dim.extent) == 1:
                rest = [number(length) for length in region.buffer.shape[index + 1 :]]
                if any(length != 1 for length in rest):
                    return False
    return True


def _has(value, var):
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, Var) and one.same_as(var):
            return True
        pending.extend(operands(one))
    return False


__all__ = ["fusible", "leaf_blocks", "spatial_prefix", "vectorizable"]
