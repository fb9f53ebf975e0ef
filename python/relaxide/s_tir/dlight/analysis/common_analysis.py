"""Blocks, their axes, and how they use buffers."""

from typing import NamedTuple

from ....tirx import IndexMap, IterVar, Var, const
from ....tirx._walk import walk, walk_scalar
from ...schedule import ScheduleError
from ...stmt import SBlockRealize

_KINDS = {IterVar.DataPar: "S", IterVar.CommReduce: "R"}


class IterInfo:
    """An axis of a block: its ``kind`` (``"S"`` spatial, ``"R"`` reduction, ``"O"`` other), variable ``var``, length ``dom`` and loop
    ``loop_rv``."""

    def __init__(self, kind, var, dom, loop_rv):
        self.kind, self.var, self.loop_rv = kind, var, loop_rv
        self._dom = dom

    @property
    def dom(self):
        """The length: a number, or an expression where it is not known."""
        return getattr(self._dom, "value", self._dom)

    def __repr__(self):
        return f'Iter("{self.kind}", {self.dom})'


class SBlockInfo:
    """A block: its ``name``, its axes ``iters``, and its random variable ``block_rv``."""

    def __init__(self, name, iters, block_rv, reduction_block=False):
        self.name, self.iters, self.block_rv = name, iters, block_rv
        self._reduction_block = reduction_block

    def dom(self):
        """The lengths of the axes."""
        return [axis.dom for axis in self.iters]

    def dom_kind(self):
        """The kinds of the axes, a letter for each."""
        return "".join(axis.kind for axis in self.iters)

    def is_injective(self):
        """Whether all axes are spatial."""
        return set(self.dom_kind()) <= {"S"}

    def is_elementwise(self, sch):
        """Whether it makes each element of one buffer of the element of another at the same place."""
        block = sch.get(self.block_rv)
        if not self.is_injective() or len(block.reads) != 1 or len(block.writes) != 1:
            return False
        read, written = block.reads[0].region, block.writes[0].region
        if not len(read) == len(written) == len(block.iter_vars):
            return False
        places = zip(block.iter_vars, read, written)
        return all(_is_point(r, axis.var) and _is_point(w, axis.var) for axis, r, w in places)

    def read_bufs(self, sch):
        """What it reads, as :class:`BufferInfo`."""
        return [BufferInfo(sch, self.block_rv, region, self.get_loops()) for region in sch.get(self.block_rv).reads]

    def write_bufs(self, sch):
        """What it writes, as :class:`BufferInfo`."""
        return [BufferInfo(sch, self.block_rv, region, self.get_loops()) for region in sch.get(self.block_rv).writes]

    def is_layout_transform(self, sch):
        """Whether it copies elements to other places and computes nothing."""
        from ....tirx import BufferLoad, BufferStore

        store = sch.get(self.block_rv).body
        return self.is_injective() and isinstance(store, BufferStore) and isinstance(store.value, BufferLoad)

    def is_data_pad(self, sch):
        """Whether it copies elements and puts a value around them."""
        from ....ir.prim import PrimCall, Select
        from ....tirx import BufferStore

        store = sch.get(self.block_rv).body
        value = getattr(store, "value", None)
        chooses = isinstance(value, Select) or isinstance(value, PrimCall) and "if_then_else" in str(value.op)
        return self.is_injective() and isinstance(store, BufferStore) and chooses and len(sch.get(self.block_rv).reads) == 1

    def is_convolution(self):
        """Whether its axes are those of a convolution: four results or more, and three reduced."""
        kinds = self.dom_kind()
        return kinds.count("S") >= 4 and kinds.count("R") == 3 and kinds == "".join(sorted(kinds, reverse=True))

    def is_pool(self):
        """Whether its axes are those of pooling: four results or more, and two reduced."""
        kinds = self.dom_kind()
        return kinds.count("S") >= 4 and kinds.count("R") == 2

    def is_gemv(self):
        """Whether its axes are those of a product of a matrix and a vector: one result and one reduced, besides those of length one."""
        return self._long_kinds() == "SR"

    def is_gemm(self):
        """Whether its axes are those of a product of matrices: two results and one reduced, besides those of length one."""
        return self._long_kinds() in ("SSR", "SSSR")

    def _long_kinds(self):
        return "".join(axis.kind for axis in self.iters if axis.dom != 1)

    def get_loops(self):
        """The loops of the axes."""
        return [axis.loop_rv for axis in self.iters]

    def is_reduction(self):
        """Whether it adds up, or combines in another way."""
        return self._reduction_block

    def __repr__(self):
        return f'SBlockInfo("{self.name}", "{self.dom_kind()}", {self.dom()})'


class BufferInfo:
    """A buffer as a block uses it: ``buf``, the ``region``, and ``assoc_lps``, the loop of the axis that each of its indices is; ``None`` for
    an index that is none."""

    def __init__(self, sch, block_rv, buf_region, lps=None):
        block = sch.get(block_rv)
        loops = sch.get_loops(block_rv) if lps is None else list(lps)
        of_axis = {axis.var: loop for axis, loop in zip(block.iter_vars, loops)}
        self.buf, self.region = buf_region.buffer, list(buf_region.region)
        self.shape = list(self.buf.shape)
        self.assoc_lps = [of_axis.get(dim.min) if isinstance(dim.min, Var) else None for dim in self.region]
        self.assoc_lps_info = [None if loop is None else sch.get(loop) for loop in self.assoc_lps]

    def get_scope(self):
        """The memory that it lies in."""
        return self.buf.scope()

    def get_vecsize(self, buf_index=0, vbits=128):
        """How many neighbours of the last dimension are loaded at once, of ``vbits`` bits at most; ``None`` where they are no neighbours."""
        if not self.assoc_lps_info or self.assoc_lps_info[-1] is None:
            return None
        length = getattr(self.assoc_lps_info[-1].extent, "value", None)
        count = vbits // self.buf.dtype.bits
        while length is not None and count > 1 and length % count:
            count //= 2
        return None if length is None else max(count, 1)

    def __repr__(self):
        return f"BufferInfo({self.buf.name})"


class Index(NamedTuple):
    """An index that is an axis."""

    sub: object


class RemIndex(NamedTuple):
    """An index that is what is left of a division."""

    sub: object
    div: object


class DivIndex(NamedTuple):
    """An index that is a quotient."""

    sub: object
    div: object


class MergeIndex(NamedTuple):
    """An index that is ``dom * mul + sub``."""

    dom: object
    mul: object
    sub: object


def get_sblockrealize(sch, block):
    """The realization of a block, given as itself or by its random variable."""
    node = sch.get(block) if not hasattr(block, "iter_vars") else block
    for func in sch.mod.functions.values():
        for stmt in walk(func.body) if hasattr(func, "buffers") else ():
            if isinstance(stmt, SBlockRealize) and stmt.block.same_as(node):
                return stmt
    raise ValueError(f"the block {node.name} is not in the module")


def _is_point(dim, var):
    return isinstance(dim.min, Var) and dim.min.same_as(var) and getattr(dim.extent, "value", None) == 1


def _kind_of(axis):
    return _KINDS.get(axis.iter_type, "O")


def _values_of(sch, block):
    """The values that the axes of a block are given."""
    for func in sch.mod.functions.values():
        for stmt in walk(func.body):
            if isinstance(stmt, SBlockRealize) and stmt.block.same_as(block):
                return list(stmt.iter_values)
    raise ValueError(f"the block {block.name} is not in the module")


def normalize_prim_func(sch):
    """The blocks of a kernel, each with one loop for each of its axes and without axes of length one.

    ``None`` where a block's axes are not its loops one by one, each from zero. A block without spatial axis gets one of length one.
    """
    try:
        blocks = sch.get_child_blocks(sch.get_sblock("root"))
        if any(not _is_plain(sch, block) for block in blocks):
            return None
        return [_normalized(sch, block) for block in blocks]
    except (ScheduleError, ValueError):
        return None


def _is_plain(sch, block):
    loops = [sch.get(loop) for loop in sch.get_loops(block)]
    if not loops:
        return True
    values = _values_of(sch, sch.get(block))
    pairs = zip(loops, values)
    return len(loops) == len(values) and all(
        isinstance(value, Var) and value.same_as(loop.loop_var) and getattr(loop.min, "value", None) == 0 for loop, value in pairs
    )


def _normalized(sch, block_rv):
    axes = list(sch.get(block_rv).iter_vars)
    inputs = [Var(axis.var.name, axis.var.ty) for axis in axes]
    long = [getattr(axis.extent, "value", None) != 1 for axis in axes]
    outputs = [var for var, is_long in zip(inputs, long) if is_long]
    if not any(is_long and _kind_of(axis) == "S" for axis, is_long in zip(axes, long)):
        outputs.insert(0, const(0, "int64"))
    sch.transform_block_layout(block_rv, IndexMap(inputs, outputs, None))
    return get_sblock_info(sch, block_rv)


def get_sblock_info(sch, block):
    """What there is to know of one block."""
    node = sch.get(block)
    axes = [IterInfo(_kind_of(axis), axis.var, axis.extent, loop) for loop, axis in zip(sch.get_loops(block), node.iter_vars)]
    return SBlockInfo(node.name, axes, block, any(_kind_of(axis) == "R" for axis in node.iter_vars))


def _limit(target, names, default):
    if "gpu" not in target.keys:
        raise ValueError(f"a GPU is expected, got {target}")
    said = next((target.attrs[name] for name in names if target.attrs.get(name) is not None), None)
    return default if said is None else int(said)


def get_max_threads_per_block(target):
    """How many threads a block may have on a GPU; a ValueError for another target."""
    return _limit(target, ("max_threads_per_block", "max_num_threads"), 64)


def get_max_shared_memory_per_block(target):
    """How many bytes of memory the threads of a block may share on a GPU; a ValueError for another target, or where it does not say."""
    said = _limit(target, ("max_shared_memory_per_block",), None)
    if said is None:
        raise ValueError(f"the target {target} does not say max_shared_memory_per_block")
    return said


def get_root_block(sch, func_name="main"):
    """The block around all of a kernel; a ValueError where its body is none."""
    body = sch.mod[func_name].body
    if not isinstance(body, SBlockRealize):
        raise ValueError(f"the body of {func_name} is no block")
    return sch.get_sblock(body.block.name, func_name=func_name)


def collect_block_iter_vars_used_in_access_region(block, region):
    """The axes of a block that stand in a region: a set of variables."""
    axes = {axis.var for axis in block.iter_vars}
    used = set()
    for dim in region:
        if getattr(dim.extent, "value", None) == 1:
            used |= collect_vars_used_in_prim_expr(dim.min)
    return used & axes


def collect_vars_used_in_prim_expr(expr):
    """The variables that stand in a scalar: a set."""
    return {part for part in walk_scalar(expr) if isinstance(part, Var)}


def detect_dominant_read(block):
    """The place of the read that uses most axes of a block, as a number of the elements of its buffer in front of it."""
    best, most = None, -1
    for read in block.reads:
        count = len(collect_block_iter_vars_used_in_access_region(block, read.region))
        if count > most:
            best, most = read, count
    if best is None:
        raise ValueError(f"the block {block.name} reads nothing")
    place = const(0, "int32")
    for dim, length in zip(best.region, best.buffer.shape):
        place = place * length + dim.min
    return place


def is_broadcast_epilogue(sch, block, epilogue):
    """Whether a block reads the result of another in every value of an axis that the result does not have."""
    written = {region.buffer for region in sch.get(block).writes}
    node = sch.get(epilogue)
    axes = {axis.var for axis in node.iter_vars}
    for read in node.reads:
        if read.buffer in written:
            return len(collect_block_iter_vars_used_in_access_region(node, read.region) & axes) < len(axes)
    return False


__all__ = ["BufferInfo", "DivIndex", "Index", "IterInfo", "MergeIndex", "RemIndex", "SBlockInfo", "get_sblockrealize"]
__all__ += [ "collect_block_iter_vars_used_in_access_region", "collect_vars_used_in_prim_expr"]
__all__ += ["detect_dominant_read", "get_max_shared_memory_per_block", "get_max_threads_per_block", "get_root_block", "get_sblock_info"]
__all__ += ["is_broadcast_epilogue", "normalize_prim_func"]
