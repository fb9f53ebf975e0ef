"""The rule that carries parts of a reduction out apart."""

from ._blocks import REFUSED, cores_of, needs_rfactor, reduction_fused
from .schedule_rule import _Copied


class AddRFactor(_Copied):
    """Splits a long reduction with few results in two, and lets either half be executed apart (``rfactor``).

    ``max_jobs_per_core`` says how many jobs a core should get at most, -1 sets no limit; ``max_innermost_factor`` limits the inner half.
    """

    def __init__(self, max_jobs_per_core=16, max_innermost_factor=None):
        self._made_of(max_jobs_per_core=max_jobs_per_core, max_innermost_factor=max_innermost_factor)

    def apply(self, sch, block):
        """The schedule with either half apart, and as it was."""
        cores = cores_of(self._context.target if self._context else None)
        limit = float("inf") if self.max_jobs_per_core == -1 else cores * self.max_jobs_per_core
        if not needs_rfactor(sch, block, limit, cores):
            return [sch]
        before = sch.copy()
        loop, spatial = reduction_fused(sch, block)
        most = -1 if self.max_innermost_factor is None else self.max_innermost_factor
        halves = sch.split(loop, sch.sample_perfect_tile(loop, n=2, max_innermost_factor=most))
        made = []
        for half in halves:
            tried = sch.copy()
            tried.seed(sch.fork_seed())
            try:
                parts = tried.rfactor(half, spatial)
                tried.get_loops(parts)
                tried.annotate(block, "meta_schedule.random_compute_producer", 1)
            except REFUSED:
                continue
            made.append(tried)
        return [*made, before]


__all__ = ["AddRFactor"]
