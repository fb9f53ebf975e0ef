"""The rule that computes a block under a loop that is drawn."""

from ....tirx import For
from ._blocks import annotation, is_in_root, is_root, loops_of, number
from ...stmt import SBlockRealize
from .schedule_rule import _Copied


class RandomComputeLocation(_Copied):
    """Draws where a block is computed: under a loop of its consumer, there where it is used, or where it stands."""

    def __init__(self):
        self._made_of()

    def apply(self, sch, block):
        """The schedule with the block at that place."""
        if not self._is_free(sch, block):
            return [sch]
        producers = []
        if number(annotation(sch, block, "meta_schedule.random_compute_producer")) == 1:
            # If the block is inlined it can no longer be asked.
            producers = sch.get_producers(block)
            sch.unannotate(block, "meta_schedule.random_compute_producer")
        for one in [block, *producers[:1]]:
            sch.compute_at(one, sch.sample_compute_location(one), preserve_unit_loops=True)
        return [sch]

    @staticmethod
    def _is_free(sch, block):
        if is_root(sch, block) or not is_in_root(sch, block):
            return False
        loops = loops_of(sch, block)
        if not loops or not isinstance(loops[0].body, (For, SBlockRealize)):
            return False
        if annotation(sch, block, "meta_schedule.tiling_structure") is not None:
            return False
        return bool(sch.copy().get_consumers(block))


__all__ = ["RandomComputeLocation"]
