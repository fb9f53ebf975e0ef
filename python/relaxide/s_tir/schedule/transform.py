"""Steps on schedules that are made of others."""


def tile_with_tensor_intrin(sch, block, intrin_name, allow_padding=False):
    """Split loops of a block so that the innermost are those of an intrinsic; gives the outermost of these.

    ``None``, and the schedule as it was, where the intrinsic's loops do not stand in the block in its order and kinds, or where the
    block's are no multiple of them: ``allow_padding`` makes these longer (``Schedule.pad_einsum``).
    """
    from .._tensor_intrin import TensorIntrin
    from ..meta_schedule.schedule_rule.multi_level_tiling import tile_for_intrin
    from .analysis import get_tensorize_loop_mapping

    found = get_tensorize_loop_mapping(sch, block, TensorIntrin.get(intrin_name).desc, allow_padding)
    if found is None:
        return None
    if found.block_iter_paddings is not None:
        sch.pad_einsum(block, found.block_iter_paddings)
    return tile_for_intrin(sch, block, intrin_name)


__all__ = ["tile_with_tensor_intrin"]
