"""Blocks that an intrinsic executes."""

from ....tirx._walk import walk
from ...stmt import SBlock
from ..schedule_rule._blocks import REFUSED
from .postproc import Postproc


class RewriteTensorize(Postproc):
    """Carries blocks with the hint ``meta_schedule.auto_tensorize`` out by the intrinsic that it names.

    ``vectorize_init_loop`` makes the loops that set their elements loops of vectors.
    """

    def __init__(self, vectorize_init_loop=False):
        self.vectorize_init_loop = vectorize_init_loop

    def clone(self):
        """The same, for another task."""
        return RewriteTensorize(self.vectorize_init_loop)

    def apply(self, sch):
        """Whether all intrinsics fit."""
        key = "meta_schedule.auto_tensorize"
        jobs = []
        for var, func in sch.mod.functions_items():
            for stmt in walk(func.body) if hasattr(func, "buffers") else ():
                if isinstance(stmt, SBlock) and key in (stmt.annotations or {}):
                    jobs.append((var.name_hint, stmt.name, str(stmt.annotations[key])))
        # The inner blocks of what one intrinsic does are gone behind it: outer blocks are last.
        for func, name, intrin in reversed(jobs):
            block = sch.get_sblock(name, func_name=func)
            sch.unannotate(block, key)
            if not intrin:
                if self.vectorize_init_loop and name.endswith("_init"):
                    self._vectorize(sch, block)
                continue
            try:
                sch.tensorize(block, intrin)
            except REFUSED:
                return False
        return True

    @staticmethod
    def _vectorize(sch, block):
        children = sch.get_child_blocks(block)
        if len(children) == 1:
            loops = sch.get_loops(children[0])
            if loops:
                sch.vectorize(loops[-1])


__all__ = ["RewriteTensorize"]
