"""The rule that says how much of a kernel may run in parallel, in vectors, and unrolled."""

from ._blocks import cores_of, is_root, is_spatial_kernel
from .schedule_rule import _Copied


class ParallelizeVectorizeUnroll(_Copied):
    """Gives the root hints that :class:`~relaxide.s_tir.meta_schedule.postproc.RewriteParallelVectorizeUnroll` executes.

    Parameters
    ----------
    max_jobs_per_core : int
        How many jobs a core gets at most; -1 for none in parallel.
    max_vectorize_extent : int
        The longest vector; -1 for none.
    unroll_max_steps : list of int, optional
        The limits up to which loops are unrolled that are tried.
    unroll_explicit : bool
        Whether they are unrolled in the program, or by what compiles it.
    """

    def __init__(self, max_jobs_per_core=16, max_vectorize_extent=16, unroll_max_steps=None, unroll_explicit=True):
        self._made_of(
            max_jobs_per_core=max_jobs_per_core,
            max_vectorize_extent=max_vectorize_extent,
            unroll_max_steps=unroll_max_steps,
            unroll_explicit=unroll_explicit,
        )

    def apply(self, sch, block):
        """The schedule with hints at the root."""
        if not is_root(sch, block):
            return [sch]
        if self.max_jobs_per_core != -1:
            cores = cores_of(self._context.target if self._context else None)
            sch.annotate(block, "meta_schedule.parallel", self.max_jobs_per_core * cores)
        if self.max_vectorize_extent != -1:
            sch.annotate(block, "meta_schedule.vectorize", self.max_vectorize_extent)
        if self.unroll_max_steps and not is_spatial_kernel(sch, block):
            count = len(self.unroll_max_steps)
            steps = sch.sample_categorical(list(self.unroll_max_steps), [1.0 / count] * count)
            sch.annotate(block, f"meta_schedule.unroll_{'explicit' if self.unroll_explicit else 'implicit'}", steps)
        return [sch]


__all__ = ["ParallelizeVectorizeUnroll"]
