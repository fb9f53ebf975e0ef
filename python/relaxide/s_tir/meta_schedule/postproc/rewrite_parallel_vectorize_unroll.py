"""Hints about parallel loops, vectors and unrolled loops are executed."""

from ...stmt import SBlockRealize
from ..schedule_rule._blocks import direct_blocks, extent, number
from .parallel import fusible, vectorizable
from .postproc import _Plain

_KEYS = ("meta_schedule.parallel", "meta_schedule.vectorize", "meta_schedule.unroll_explicit", "meta_schedule.unroll_implicit")


class RewriteParallelVectorizeUnroll(_Plain):
    """Takes the hints of :class:`~relaxide.s_tir.meta_schedule.schedule_rule.ParallelizeVectorizeUnroll` from the roots, and makes loops of
    their blocks parallel, loops of vectors, and loops to be unrolled."""

    def apply(self, sch):
        """Carry the hints out."""
        for var, func in sch.mod.functions_items():
            if not hasattr(func, "buffers") or not isinstance(func.body, SBlockRealize):
                continue
            root = func.body.block
            hints = {key: number(value) for key, value in (root.annotations or {}).items() if key in _KEYS}
            if not hints:
                continue
            rv = sch.get_sblock(root.name, func_name=var.name_hint)
            for key in hints:
                sch.unannotate(rv, key)
            for name in [block.name for block in direct_blocks(root.body)]:
                self._carry_out(sch, sch.get_sblock(name, func_name=var.name_hint), hints)
        return True

    @staticmethod
    def _carry_out(sch, block, hints):
        loops = sch.get_loops(block)
        if not loops:
            return
        parallel = fusible(sch, block, hints.get(_KEYS[0], 0)) if hints.get(_KEYS[0], 0) > 0 else 0
        vector = vectorizable(sch, block, hints.get(_KEYS[1], 0)) if hints.get(_KEYS[1], 0) > 0 else 0
        # A loop is one or the other; with few loops the outermost are parallel, of a single one nothing is vectors.
        if parallel + vector > len(loops):
            vector = len(loops) - parallel
        if parallel:
            fused = sch.fuse(*loops[:parallel])
            sch.parallel(fused)
            loops = [fused, *loops[parallel:]]
        if vector:
            fused = sch.fuse(*loops[-vector:])
            if (extent(sch, fused) or 0) > 1:
                sch.vectorize(fused)
            loops = [*loops[:-vector], fused]
        for key, explicit in ((_KEYS[2], 1), (_KEYS[3], 0)):
            if hints.get(key, 0) > 0:
                sch.annotate(loops[0], "pragma_auto_unroll_max_step", hints[key])
                sch.annotate(loops[0], "pragma_unroll_explicit", explicit)


__all__ = ["RewriteParallelVectorizeUnroll"]
