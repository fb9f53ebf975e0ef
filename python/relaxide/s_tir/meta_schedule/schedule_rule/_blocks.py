"""What rules ask of blocks and loops."""

from ....tirx import For, IterVar, PrimFunc, SeqStmt, Var
from ....tirx._walk import children, walk, walk_scalar
from ...schedule import ScheduleError
from ...stmt import SBlock, SBlockRealize

#: What a step that is not legal raises.
REFUSED = (ScheduleError, ValueError, RuntimeError)


def number(value):
    """The number that an expression is; ``None`` where it is none."""
    return value if isinstance(value, int) else getattr(value, "value", None)


def extent(sch, loop):
    """The length of a loop, or ``None``."""
    return number(sch.get(loop).extent)


def loops_of(sch, block):
    """The loops around a block as they are; the trace does not tell that they were asked for."""
    probe = sch.copy()
    return [probe.get(loop) for loop in probe.get_loops(block)]


def kind_of(axis):
    """``"S"``, ``"R"`` or ``"O"``."""
    return {IterVar.DataPar: "S", IterVar.CommReduce: "R"}.get(axis.iter_type, "O")


def kernels(sch):
    """The kernels of the module."""
    return [func for func in sch.mod.functions.values() if isinstance(func, PrimFunc)]


def realize_of(sch, block):
    """The realization of a block."""
    node = sch.get(block) if not isinstance(block, SBlock) else block
    for func in kernels(sch):
        for stmt in walk(func.body):
            if isinstance(stmt, SBlockRealize) and stmt.block.same_as(node):
                return stmt
    raise ValueError(f"the block {node.name} is not in the module")


def is_root(sch, block):
    """Whether a block is the whole body of a kernel."""
    node = sch.get(block)
    return any(isinstance(func.body, SBlockRealize) and func.body.block.same_as(node) for func in kernels(sch))


def root_of(sch, block):
    """The block around a block, directly below the kernel."""
    node = sch.get(block)
    for func in kernels(sch):
        if any(stmt is node or stmt.same_as(node) for stmt in walk(func.body) if isinstance(stmt, SBlock)):
            return func.body.block
    return None


def is_in_root(sch, block):
    """Whether the block around it is the root."""
    node, root = sch.get(block), root_of(sch, block)
    return any(stmt.same_as(node) for stmt in direct_blocks(root.body)) if root is not None else False


def direct_blocks(stmt):
    """The blocks below a statement that are in no other."""
    if isinstance(stmt, SBlockRealize):
        yield stmt.block
        return
    for part in children(stmt):
        yield from direct_blocks(part)


def is_spatial_kernel(sch, block):
    """Whether no block of a kernel reduces."""
    root = root_of(sch, block)
    return all(kind_of(axis) == "S" for stmt in walk(root.body) if isinstance(stmt, SBlock) for axis in stmt.iter_vars)


def annotation(sch, block, key):
    """A hint of a block, or ``None``."""
    return (sch.get(block).annotations or {}).get(key)


def is_trivially_bound(sch, block):
    """Whether the axes of a block are its loops, one by one."""
    realize = realize_of(sch, block)
    loops = [loop.loop_var for loop in loops_of(sch, block)]
    values = list(realize.iter_values)
    return len(values) == len(loops) and all(isinstance(v, Var) and v.same_as(loop) for v, loop in zip(values, loops))


def loop_kinds(sch, block):
    """The kinds of the loops around a block: of the axes that they are in; ``"-"`` for those in none, ``"O"`` for those in several kinds."""
    realize = realize_of(sch, block)
    kinds = []
    for loop in loops_of(sch, block):
        var = loop.loop_var
        found = {kind_of(axis) for axis, value in zip(realize.block.iter_vars, realize.iter_values) if uses(value, var)}
        kinds.append(found.pop() if len(found) == 1 else "O" if found else "-")
    return kinds


def uses(value, var):
    """Whether a variable stands in a scalar."""
    return any(isinstance(part, Var) and part.same_as(var) for part in walk_scalar(value))


def reduction_and_space(sch, block):
    """``(product of the spatial lengths, product of the reduced)``; ``None`` where a loop is of neither or a length is not known."""
    space = reduce = 1
    for loop, kind in zip(loops_of(sch, block), loop_kinds(sch, block)):
        length = number(loop.extent)
        if length is None or kind == "O":
            return None
        if kind == "R":
            reduce *= length
        else:
            space *= length
    return space, reduce


def needs_multi_level_tiling(sch, block):
    """Whether elements that a block reads serve several of its results, so that tiles are worth it."""
    node = sch.get(block)
    if annotation(sch, block, "meta_schedule.tiling_structure") is not None:
        return False
    if len(node.writes) != 1 or not node.reads or not node.iter_vars or not is_trivially_bound(sch, block):
        return False
    axes = [axis.var for axis in node.iter_vars if kind_of(axis) == "S" and number(axis.extent) != 1]
    written, seen, unused = node.writes[0].buffer, [], 0
    for region in node.reads:
        if region.buffer.same_as(written):
            continue
        if any(region.buffer.same_as(other) for other in seen):
            return False
        seen.append(region.buffer)
        unused += sum(not any(uses(dim.min, var) for dim in region.region) for var in axes)
    return unused >= 1


def needs_rfactor(sch, block, max_parallel_extent, max_parallel_basic):
    """Whether a reduction is so long, next to its results, that its parts are better executed apart."""
    node = sch.get(block)
    if not any(kind_of(axis) == "R" for axis in node.iter_vars) or len(node.writes) != 1 or not is_trivially_bound(sch, block):
        return False
    lengths = reduction_and_space(sch, block)
    if lengths is None:
        return False
    space, reduce = lengths
    if needs_multi_level_tiling(sch, block):
        return space < reduce and space <= max_parallel_extent
    return reduce > 1 and (space <= max_parallel_extent) and reduce > max_parallel_basic


def reduction_fused(sch, block):
    """Put the reduced loops innermost and make one of them; gives it and the number of the others."""
    loops, kinds = sch.get_loops(block), loop_kinds(sch, block)
    first = [loop for loop, kind in zip(loops, kinds) if kind != "R"]
    last = [loop for loop, kind in zip(loops, kinds) if kind == "R"]
    if not last:
        raise ValueError("the block reduces over no loop")
    if kinds != sorted(kinds, key=lambda kind: kind == "R"):
        sch.reorder(*first, *last)
    return sch.fuse(*last), len(first)


def outer_chain(sch, block):
    """How many of the outermost loops of a block have nothing but the next inside of them."""
    count = 0
    for loop in loops_of(sch, block):
        body = loop.body
        if not isinstance(body, (For, SBlockRealize)):
            return count
        count += 1
    return count


def has_several(stmt):
    """Whether a statement is several, one behind the other."""
    return isinstance(stmt, SeqStmt) and len(stmt) > 1


def cores_of(target):
    """The number of cores: what the target says, or this machine's."""
    said = None if target is None else target.attrs.get("num-cores")
    if said is not None:
        return int(number(said))
    from ..utils import cpu_count

    return cpu_count(logical=False)


def limit_of(target, name, default):
    """A number that a target says."""
    said = None if target is None else target.attrs.get(name)
    return default if said is None else int(number(said))
