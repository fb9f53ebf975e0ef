"""The base of postprocessors."""

from ....ir.utils import Outer


class Postproc:
    """The base of postprocessors."""

    _context = None

    def _initialize_with_tune_context(self, context):
        self._context = context

    def apply(self, sch):
        """Change a schedule; whether it is worth measuring."""
        raise NotImplementedError(f"{type(self).__name__}.apply")

    def clone(self):
        """The same, for another task."""
        raise NotImplementedError(f"{type(self).__name__}.clone")

    @staticmethod
    def create(kind):
        """The postprocessors for a kind of target: ``"llvm"``, ``"cuda"``."""
        from . import DisallowDynamicLoop, RewriteCooperativeFetch, RewriteParallelVectorizeUnroll
        from . import RewriteReductionBlock, RewriteUnboundBlock, VerifyGPUCode

        if kind == "llvm":
            return [DisallowDynamicLoop(), RewriteParallelVectorizeUnroll(), RewriteReductionBlock()]
        if kind in ("cuda", "cuda-tensorcore"):
            kinds = (DisallowDynamicLoop, RewriteCooperativeFetch, RewriteUnboundBlock, RewriteParallelVectorizeUnroll, RewriteReductionBlock)
            return [*(one() for one in kinds), VerifyGPUCode()]
        raise ValueError(f"Unsupported kind {kind} for postprocessors; there are llvm, cuda")


class PyPostproc(Outer, Postproc):
    """The base of postprocessors of one's own."""


create = Postproc.create


class _Plain(Postproc):
    """Postprocessors without parameters."""

    def clone(self):
        """The same, for another task."""
        return type(self)()


__all__ = ["Postproc", "PyPostproc", "create"]
