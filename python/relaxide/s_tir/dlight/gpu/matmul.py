"""The rule for products of matrices: tiles of tiles, with copies in memory that threads share."""

from dataclasses import dataclass
from enum import Enum

from ....tirx import AttrStmt, IndexMap, PrimFunc, Var, const
from ....tirx._walk import walk, walk_scalar
from ...schedule import Schedule, ScheduleError
from ..analysis import get_sblock_info, is_gemv, normalize_prim_func
from ..analysis.common_analysis import _kind_of
from .base import GPUScheduleRule

_REFUSED = (ScheduleError, ValueError)


class IterKind(Enum):
    """What an axis of ``C[s, i, j] += A[s, i, k] * B[s, j, k]`` is: of all three, of ``A`` and ``C``, of ``B`` and ``C``, of ``A`` and ``B``,
    or of length one."""

    kIter_S = 0
    kIter_I = 1
    kIter_J = 2
    kIter_K = 3
    kIter_T = 4


@dataclass
class IterTrait:
    """An axis: its kind and length."""

    kind: IterKind
    extent: object


def _uses(region, var):
    return any(isinstance(part, Var) and part.same_as(var) for dim in region for part in walk_scalar(dim.min))


def detect_iter_traits(block):
    """The axes of ``A``, ``B``, ``C`` and of the block, as lists of :class:`IterTrait`; ``None`` where it is no product."""
    if len(block.reads) != 2 or len(block.writes) != 1:
        return None
    a, b, c = block.reads[0].region, block.reads[1].region, block.writes[0].region
    traits = {}
    for axis in block.iter_vars:
        own = tuple(_uses(region, axis.var) for region in (a, b, c))
        kinds = {(1, 1, 1): IterKind.kIter_S, (1, 0, 1): IterKind.kIter_I, (0, 1, 1): IterKind.kIter_J, (1, 1, 0): IterKind.kIter_K}
        kind = kinds.get(tuple(map(int, own)))
        if getattr(axis.extent, "value", None) == 1:
            kind = IterKind.kIter_T
        if kind is None or kind is IterKind.kIter_K and _kind_of(axis) != "R":
            return None
        traits[axis.var] = IterTrait(kind, axis.extent)
    # A product has an axis of each kind but the batch.
    if {IterKind.kIter_I, IterKind.kIter_J, IterKind.kIter_K} - {trait.kind for trait in traits.values()}:
        return None
    found = []
    for region in (a, b, c):
        if not _is_plain(region, traits):
            return None
        # A copy in the order of the block's axes has them in this order.
        found.append([traits[axis.var] for axis in block.iter_vars if _uses(region, axis.var)])
    return (*found, [traits[axis.var] for axis in block.iter_vars])


def _is_plain(region, traits):
    """Whether each index is an axis or a number."""
    points = all(getattr(dim.extent, "value", None) == 1 for dim in region)
    return points and all(isinstance(dim.min, Var) and dim.min in traits or hasattr(dim.min, "value") for dim in region)


def make_iter_fusion_index_map(traits, kind_order):
    """The map that makes one index of all axes of each kind, in an order of kinds; kinds without axis are zero."""
    inputs = [Var(f"i{index}", trait.extent.dtype) for index, trait in enumerate(traits)]
    fused = {}
    for var, trait in zip(inputs, traits):
        if trait.kind is IterKind.kIter_T:
            continue
        if trait.kind not in kind_order:
            raise ValueError(f"the order has no {trait.kind}")
        known = fused.get(trait.kind)
        fused[trait.kind] = var if known is None else known * trait.extent + var
    return IndexMap(inputs, [fused.get(kind, const(0, str(traits[0].extent.dtype))) for kind in kind_order], None)


def get_index_map(block):
    """``(of the block, of A, of B, of C)``: the maps that bring a product to ``C[s, i, j] += A[s, i, k] * B[s, j, k]``; ``None`` where it is
    none."""
    traits = detect_iter_traits(block)
    if traits is None:
        return None
    a, b, c, whole = traits
    s, i, j, k = IterKind.kIter_S, IterKind.kIter_I, IterKind.kIter_J, IterKind.kIter_K
    return (
        make_iter_fusion_index_map(whole, [s, i, j, k]),
        make_iter_fusion_index_map(a, [s, i, k]),
        make_iter_fusion_index_map(b, [s, j, k]),
        make_iter_fusion_index_map(c, [s, i, j]),
    )


def get_reduction_blocks(sch, blocks):
    """The blocks that reduce; ``None`` where there is none, or more than one."""

    def kinds(block):
        return {_kind_of(axis) for axis in sch.get(block).iter_vars}

    if not all(kinds(block) <= {"S", "R"} for block in blocks):
        return None
    found = [block for block in blocks if "R" in kinds(block)]
    return found if len(found) == 1 else None


def get_in_out_dtypes(block):
    """``(element type of what is read, of what is written)``; a ValueError where two types are read."""
    read = {str(region.buffer.dtype) for region in block.reads}
    if len(read) != 1:
        raise ValueError(f"the block {block.name} reads {', '.join(sorted(read))}")
    return read.pop(), str(block.writes[0].buffer.dtype)


def check_sm_version(arch):
    """The number of an architecture ``sm_80``; -1 for another."""
    number = arch.replace("sm_", "").rstrip("a")
    return int(number) if arch.startswith("sm_") and number.isdigit() else -1


def auto_inline_producers(sch, block):
    """Compute what a block reads inside of it, as far as that is possible."""
    while True:
        inlined = 0
        for producer in sch.get_producers(block):
            try:
                sch.compute_inline(producer)
            except _REFUSED:
                continue
            inlined += 1
        if not inlined:
            return


def auto_inline_consumers(sch, block):
    """Compute what reads a block inside of it or of what reads that, as far as that is possible."""
    while True:
        inlined = 0
        for consumer in sch.get_consumers(block):
            for step in (sch.compute_inline, sch.reverse_compute_inline):
                try:
                    step(consumer)
                except _REFUSED:
                    continue
                inlined += 1
                break
        if not inlined:
            return


def auto_inline_consumer_chain(sch, block):
    """As :func:`auto_inline_consumers`, and what else the last of the chain reads."""
    auto_inline_consumers(sch, block)
    left = sch.get_consumers(block)
    if len(left) != 1:
        return
    # The last of the chain may read a copy of the result in another layout.
    for producer in sch.get_producers(left[0]):
        if not sch.get(producer).same_as(sch.get(block)):
            try:
                sch.compute_inline(producer)
            except _REFUSED:
                continue
    auto_inline_consumers(sch, block)


class Matmul(GPUScheduleRule):
    """A block of threads for each tile of the result, a small tile of it for each thread; parts of both operands are read into memory that
    the threads share::

        for tile of C in blocks:
            for k0 in K / 16:
                copy A[tile, k0], B[tile, k0] to shared memory, all threads together
                for k1, i, j in the thread's own tile: C += A * B
            write the thread's tile
    """

    @dataclass
    class Config:
        """The sizes of tiles: threads, virtual threads and elements of a thread along each dimension, and how much is unrolled."""

        block_size_x: int = 8
        block_size_y: int = 8
        vthread_x: int = 1
        vthread_y: int = 1
        micro_size_x: int = 4
        micro_size_y: int = 4
        micro_size_k: int = 8
        vector_size: int = 1
        unroll: int = 256
        use_shared: bool = True
        storage_align: bool = False
        inner_x: bool = False

    def get_configs(self, target):
        """The sizes for a target."""
        if target.kind.name in ("cuda", "rocm"):
            return Matmul.Config(block_size_x=8, block_size_y=16, micro_size_k=16, vector_size=2, storage_align=True)
        if target.kind.name == "opencl" and any(word in str(target.host or "") for word in ("android", "windows")):
            sizes = {"block_size_x": 32, "block_size_y": 8, "micro_size_x": 8, "micro_size_y": 2, "micro_size_k": 16}
            return Matmul.Config(**sizes, vector_size=8, unroll=4, use_shared=False, inner_x=True)
        return Matmul.Config()

    def apply(self, func, target, tunable):
        """The schedule; ``None`` for what is no product of matrices."""
        if not isinstance(func, PrimFunc) or not self.is_target_available(target):
            return None
        if any(isinstance(stmt, AttrStmt) for stmt in walk(func.body)):
            return None
        sch = Schedule(func)
        try:
            blocks = sch.get_child_blocks(sch.get_sblock("root"))
            found = get_reduction_blocks(sch, blocks)
            if found is None or self._is_vector(func):
                return None
            maps = get_index_map(sch.get(found[0]))
            if maps is None:
                return None
            return self._tiled(sch, found[0], maps, self.get_configs(target))
        except _REFUSED:
            return None

    @staticmethod
    def _is_vector(func):
        """Whether one operand is a vector, which has a rule of its own."""
        sch = Schedule(func)
        infos = normalize_prim_func(sch)
        return any(info.is_reduction() and is_gemv(sch, info) is not None and len(info.iters) < 3 for info in infos or ())

    @staticmethod
    def _tiled(sch, main, maps, config):
        whole, *operands = maps
        for (side, index), own in zip((("read", 0), ("read", 1), ("write", 0)), operands):
            copy = sch.reindex(main, (side, index))
            sch.transform_layout(copy, ("write" if side == "read" else "read", 0), own)
        sch.transform_block_layout(main, whole)
        rows = config.vthread_x * config.block_size_x * config.micro_size_x
        columns = config.vthread_y * config.block_size_y * config.micro_size_y
        sch.pad_einsum(main, [1, rows, columns, config.micro_size_k])
        batch, x, y, k = sch.get_loops(main)
        by, vy, ty, yi = sch.split(y, [None, config.vthread_y, config.block_size_y, config.micro_size_y])
        bx, vx, tx, xi = sch.split(x, [None, config.vthread_x, config.block_size_x, config.micro_size_x])
        ko, ki = sch.split(k, [None, config.micro_size_k])
        sch.reorder(by, bx, vy, vx, ty, tx, ko, ki, *((yi, xi) if config.inner_x else (xi, yi)))
        by = sch.fuse(batch, by)
        names = ("blockIdx.x", "blockIdx.y", "vthread.y", "vthread.x", "threadIdx.y", "threadIdx.x")
        for loop, thread in zip((bx, by, vy, vx, ty, tx), names):
            sch.bind(loop, thread)
        Matmul._vectorized(sch, xi if config.inner_x else yi, config)
        if config.unroll > 0:
            sch.annotate(tx, ann_key="pragma_auto_unroll_max_step", ann_val=config.unroll)
            sch.annotate(tx, ann_key="pragma_unroll_explicit", ann_val=1)
        local = sch.cache_write(main, 0, "local")
        sch.reverse_compute_at(local, tx, preserve_unit_loops=True)
        Matmul._vectorized(sch, sch.get_loops(local)[-1], config)
        if config.use_shared:
            for index in (0, 1):
                auto_inline_producers(sch, Matmul._shared(sch, main, index, ko, config))
        else:
            auto_inline_producers(sch, main)
        auto_inline_consumer_chain(sch, local)
        Matmul._write_back(sch, local, tx)
        sch.decompose_reduction(main, ko)
        return sch

    @staticmethod
    def _write_back(sch, local, thread):
        """What cuts the padding off again is done by the thread that has the tile; a ValueError where it cannot be."""
        for consumer in sch.get_consumers(local):
            sch.reverse_compute_at(consumer, thread, preserve_unit_loops=True)
            if sch.get_consumers(consumer):
                raise ValueError("more than one block follows the product")
            sch.set_scope(local, 0, "local")

    @staticmethod
    def _vectorized(sch, loop, config):
        length = getattr(sch.get(loop).extent, "value", None)
        if config.vector_size > 1 and length is not None and length % config.vector_size == 0:
            sch.vectorize(sch.split(loop, [None, config.vector_size])[-1])

    @staticmethod
    def _shared(sch, main, index, loop, config):
        """A copy of a part of an operand, which the threads of a block make together."""
        copy = sch.cache_read(main, index, "shared")
        count = len(sch.get_loops(copy))
        sch.compute_at(copy, loop, preserve_unit_loops=True)
        fused = sch.fuse(*sch.get_loops(copy)[-count:])
        ty, tx, _, lanes = sch.split(fused, factors=[config.block_size_y, config.block_size_x, None, config.vector_size])
        sch.vectorize(lanes)
        sch.bind(ty, "threadIdx.y")
        sch.bind(tx, "threadIdx.x")
        if config.storage_align:
            # Rows begin in other banks of the memory, so that a column is read at once.
            sch.storage_align(copy, 0, axis=1, factor=8, offset=config.vector_size)
        return copy


__all__ = ["IterKind", "IterTrait", "Matmul", "auto_inline_consumer_chain", "auto_inline_consumers", "auto_inline_producers"]
__all__ += ["check_sm_version", "detect_iter_traits", "get_in_out_dtypes", "get_index_map", "get_reduction_blocks", "get_sblock_info"]
__all__ += ["make_iter_fusion_index_map"]
