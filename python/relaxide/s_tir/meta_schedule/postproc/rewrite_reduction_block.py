"""Reductions are made two blocks: one that sets, one that adds."""

from ....tirx import For, ForKind
from ....tirx._walk import walk
from ...stmt import SBlockRealize
from ..schedule_rule._blocks import REFUSED, kernels, loop_kinds, uses
from .postproc import _Plain


class RewriteReductionBlock(_Plain):
    """Sets the elements of each reduction in front of its first reduced loop, unless threads share it."""

    def apply(self, sch):
        """Whether it could be done everywhere."""
        done = set()
        while True:
            found = next((name for name in self._names(sch) if name not in done), None)
            if found is None:
                return True
            done.add(found)
            func, name = found
            block = sch.get_sblock(name, func_name=func)
            loops, kinds = sch.get_loops(block), loop_kinds(sch, block)
            point = next((index for index, kind in enumerate(kinds) if kind in "RO"), None)
            if point is None:
                continue
            try:
                self._decompose(sch, block, loops[point])
            except REFUSED:
                return False

    @staticmethod
    def _names(sch):
        for var, func in sch.mod.functions_items():
            if func not in kernels(sch) and not hasattr(func, "buffers"):
                continue
            for stmt in walk(func.body):
                if isinstance(stmt, SBlockRealize) and stmt.block.init is not None and not _is_shared(func, stmt):
                    yield var.name_hint, stmt.block.name

    @staticmethod
    def _decompose(sch, block, loop):
        key = "meta_schedule.auto_tensorize"
        hints = sch.get(block).annotations or {}
        init = sch.decompose_reduction(block, loop)
        if key in hints:
            sch.unannotate(init, key)
        if f"{key}_init" in hints:
            sch.annotate(init, key, hints[f"{key}_init"])
            sch.unannotate(init, f"{key}_init")
            sch.unannotate(block, f"{key}_init")


def _is_shared(func, realize):
    """Whether a loop that a reduced axis goes over is bound to threads."""
    from ..schedule_rule._blocks import kind_of

    reduced = [value for axis, value in zip(realize.block.iter_vars, realize.iter_values) if kind_of(axis) == "R"]
    bound = [stmt.loop_var for stmt in walk(func.body) if isinstance(stmt, For) and stmt.kind is ForKind.THREAD_BINDING]
    return any(uses(value, var) for value in reduced for var in bound)


__all__ = ["RewriteReductionBlock"]
