"""Instructions of NVIDIA's devices: :mod:`relaxide.backend.cuda.op`."""

from ...backend.cuda.op import *  # noqa: F403
from ...backend.cuda.op import __all__

__all__ = list(__all__)
