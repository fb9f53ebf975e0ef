"""Tensor intrinsics: what a piece of hardware computes, and how, for ``Schedule.tensorize``."""

from .. import _core


class TensorIntrin:
    """A computation in plain loops (``desc``) and the way that it is done (``impl``), kernels over the same parameters."""

    def __init__(self, desc, impl):
        self.desc, self.impl = desc, impl

    @staticmethod
    def register(name, desc, impl, override=False):
        """Make an intrinsic known under a name. One that is known already is replaced on request only."""
        _core.register_tensor_intrin(name, desc, impl, override)

    @staticmethod
    def get(name, allow_missing=False):
        """The intrinsic of a name."""
        found = _core.get_tensor_intrin(name)
        if found is None:
            if allow_missing:
                return None
            raise ValueError(
                f"TensorIntrin '{name}' is not registered; those of processors are, once relaxide.s_tir.tensor_intrin is imported"
            )
        return TensorIntrin(*found)


__all__ = ["TensorIntrin"]
