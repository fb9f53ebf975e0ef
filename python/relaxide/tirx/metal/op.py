"""Instructions of Apple's devices: :mod:`relaxide.backend.metal.op`."""

from ...backend.metal.op import *  # noqa: F403
from ...backend.metal.op import __all__

__all__ = list(__all__)
