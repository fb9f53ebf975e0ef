"""The rule for products of a matrix and a vector."""

from ....tirx import PrimFunc
from ...schedule import Schedule
from ..analysis import is_gemv, normalize, normalize_prim_func
from ..base import get_extent, try_inline_contiguous_spatial
from .base import CPUScheduleRule

_LANES = 8


class GEMV(CPUScheduleRule):
    """Threads share the rows of a matrix that is read along its rows; of each part, rows are the lanes of vectors."""

    def apply(self, func, target, tunable):
        """The schedule; ``None`` for another kernel, and for a matrix that is read along its columns."""
        if not isinstance(func, PrimFunc) or not self.is_target_available(target):
            return None
        sch = Schedule(func)
        infos = try_inline_contiguous_spatial(sch, normalize_prim_func(sch))
        if not infos or len(infos) > 2 or any(not info.is_injective() for info in infos[1:]):
            return None
        vectors = is_gemv(sch, infos[0])
        if len(infos[0].iters) not in (2, 3) or vectors is None:
            return None
        if not normalize(sch, infos[0]):
            return None
        self.sch_inner_reduction(sch, target, infos[0].block_rv, vectors, infos[1] if len(infos) == 2 else None)
        return sch

    def sch_inner_reduction(self, sch, target, block, vector_input_buffers, epilogue_info):
        """Schedule the block of a product whose matrix is read along its rows; what comes behind it stays as it is.

        Parameters
        ----------
        sch : Schedule
            The schedule, in which the block has the loops of a batch, rows, columns and an inner axis.
        target : Target
            What it is compiled for, which changes nothing: vectors have eight lanes.
        block : SBlockRV
            The block.
        vector_input_buffers : list of Buffer
            What it reads beside the matrix.
        epilogue_info : SBlockInfo, optional
            The block behind it.
        """
        lengths = [get_extent(sch, loop) for loop in sch.get_loops(block)]
        _, rows, columns, inner = sch.get_loops(block)
        row_tile = column_tile = 64
        if all(isinstance(length, int) for length in lengths):
            tall = lengths[0] * lengths[1] > lengths[2] * lengths[3]
            row_tile, column_tile = (128, 64) if tall else (64, 128)
        outer_rows, inner_rows = sch.split(rows, factors=[None, row_tile])
        outer_columns, _ = sch.split(columns, factors=[None, column_tile])
        sch.split(inner, factors=[None, min(_LANES, lengths[3])])
        sch.vectorize(inner_rows)
        sch.parallel(outer_rows)
        sch.annotate(outer_columns, "pragma_auto_unroll_max_step", 256)
        sch.annotate(outer_columns, "pragma_unroll_explicit", 1)


__all__ = ["GEMV"]
