"""The rule for products of a matrix and a few vectors, whose number is not known."""

from ....tirx import IterVar, PrimFunc, Var
from ....tirx._walk import walk_scalar
from ...schedule import Schedule, ScheduleError
from ..analysis import get_sblock_info, normalize_prim_func
from ..analysis.gemv import get_reduction_expr
from ..base import try_inline_contiguous_spatial
from .base import GPUScheduleRule


def _few(block):
    """The axes of unknown length: the vectors."""
    return {axis.var for axis in block.iter_vars if getattr(axis.extent, "value", None) is None and axis.iter_type == IterVar.DataPar}


def is_gemv(sch, block_info):
    """The operands of a product that have no axis of unknown length and fewer axes than the block has; ``None`` where it is none."""
    block = sch.get(block_info.block_rv)
    few = _few(block)
    if not block_info.is_reduction() or len(block.reads) < 2 or len(block.writes) != 1 or get_reduction_expr(block) is None or len(few) != 1:
        return None
    found = []
    for read in block.reads:
        used = {part for dim in read.region for part in walk_scalar(dim.min) if isinstance(part, Var)}
        if used & few:
            found.append(read.buffer)
    return found if 0 < len(found) < len(block.reads) else None


def detect_dominant_read(block, const_iter_vars):
    """The place of the read that uses most axes of known length, as a number of the elements in front of it."""
    best, most = None, -1
    for read in block.reads:
        used = {part for dim in read.region for part in walk_scalar(dim.min) if isinstance(part, Var)}
        if len(used & set(const_iter_vars)) > most:
            best, most = read, len(used & set(const_iter_vars))
    if best is None:
        raise ValueError(f"the block {block.name} reads nothing")
    place = None
    for dim, length in zip(best.region, best.buffer.shape):
        place = dim.min if place is None else place * length + dim.min
    return place


def normalize(sch, block_info):
    """Give a product the loops vectors, rows, reduced; whether the innermost place of the matrix is a reduced one. ``None`` where they
    cannot be told apart."""
    block = sch.get(block_info.block_rv)
    few = _few(block)
    known = [axis.var for axis in block.iter_vars if axis.var not in few]
    place = detect_dominant_read(block, known)
    groups = {"few": [], "S": [], "R": []}
    for info in block_info.iters:
        groups["few" if info.var in few else info.kind].append(info.loop_rv) if info.kind in "SR" else None
    if not groups["S"] or not groups["R"] or not groups["few"]:
        return None
    sch.reorder(*groups["few"], *groups["S"], *groups["R"])
    for loops in groups.values():
        sch.fuse(*loops)
    last = [part for part in walk_scalar(place) if isinstance(part, Var)]
    kinds = {info.var: info.kind for info in block_info.iters}
    return bool(last) and kinds.get(_innermost(place)) == "R"


def _innermost(place):
    return place if isinstance(place, Var) else _innermost(place.b) if hasattr(place, "b") else None


class LowBatchGEMV(GPUScheduleRule):
    """A thread for each row and ``bucket`` vectors, which share what is read of the matrix."""

    def __init__(self, bucket=4):
        self.bucket = bucket

    def apply(self, func, target, tunable):
        """The schedule; ``None`` for another kernel."""
        if not isinstance(func, PrimFunc) or not self.is_target_available(target):
            return None
        sch = Schedule(func)
        infos = try_inline_contiguous_spatial(sch, normalize_prim_func(sch))
        if not infos or len(infos) != 1:
            return None
        vectors = is_gemv(sch, infos[0])
        if vectors is None:
            return None
        try:
            inner = normalize(sch, get_sblock_info(sch, infos[0].block_rv))
            if inner is None:
                return None
            schedule = self.sch_inner_reduction if inner else self.sch_outer_reduction
            return schedule(sch, target, infos[0].block_rv, None, vectors, None, self.bucket)
        except (ScheduleError, ValueError):
            return None

    def sch_inner_reduction(self, sch, target, block, dequantize_block, vector_input_buffers, epilogue_info, batch_pad):
        """The schedule for a matrix that is read along its rows."""
        return self.sch_outer_reduction(sch, target, block, dequantize_block, vector_input_buffers, epilogue_info, batch_pad)

    def sch_outer_reduction(self, sch, target, block, dequantize_block, vector_input_buffers, epilogue_info, batch_pad):
        """The schedule for a matrix that is read along its columns."""
        vectors, rows, reduced = sch.get_loops(block)
        outer, few = sch.split(vectors, factors=[None, batch_pad])
        bx, tx = sch.split(rows, factors=[None, 64])
        sch.reorder(outer, bx, tx, reduced, few)
        sch.bind(outer, "blockIdx.y")
        sch.bind(bx, "blockIdx.x")
        sch.bind(tx, "threadIdx.x")
        sch.decompose_reduction(block, reduced)
        return sch


__all__ = ["LowBatchGEMV", "detect_dominant_read", "is_gemv", "normalize"]
