"""The functions that every device's module has."""

from ... import _core
from ...ir.transform import Pass
from ..pipeline import get_pipeline


def pipeline_of(name):
    """A function for the whole pipeline of a name, and one for each of its stages; each is given the target."""

    def whole(target=None):
        """The whole pipeline, as one pass."""
        return get_pipeline(name)

    def stage(which, doc):
        def passes(target=None):
            return [Pass(one) for one in _core.pipeline_stage(name, which)]

        passes.__doc__ = doc
        return passes

    return (
        whole,
        stage("library_dispatch", "Passes that make kernels of operators whose kernels depend on the target."),
        stage("legalize", "Passes that make kernels of operators, and fuse them."),
        stage("dataflow_lower", "Passes that make statements of graphs."),
        stage("finalize", "Passes that plan memory and make computations of shapes."),
    )
