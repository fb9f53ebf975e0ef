"""Steps that many rules begin with."""

from ...schedule import ScheduleError


def try_inline(sch, blocks):
    """Compute each block where its result is used, or where its input is made, as far as that is possible; gives the blocks that are
    left. Blocks are :class:`~relaxide.s_tir.dlight.SBlockInfo`."""
    left = list(blocks)

    def one(step):
        for index, block in enumerate(left):
            try:
                step(block.block_rv)
            except (ScheduleError, ValueError):
                continue
            return index
        return None

    while True:
        index = one(sch.compute_inline)
        if index is None:
            index = one(sch.reverse_compute_inline)
        if index is None:
            return left
        left.pop(index)


def try_inline_contiguous_spatial(sch, block_infos):
    """As :func:`try_inline`, for each run of blocks without reductions by itself; ``None`` for ``None``."""
    if block_infos is None:
        return None
    left, run = [], []
    for block in block_infos:
        if block.is_injective():
            run.append(block)
            continue
        left += [*try_inline(sch, run), block]
        run = []
    return left + try_inline(sch, run)


__all__ = ["try_inline", "try_inline_contiguous_spatial"]
