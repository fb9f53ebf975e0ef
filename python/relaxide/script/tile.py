"""The names of TVMScript's tile primitives: ``from relaxide.script.tirx import tile as Tx``, then ``Tx.cta.copy(dst, src)``. Kernels are read,
not run."""

from ._namespace import Inert

_inert = Inert("T.tile")


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_inert, name)
