"""Instructions of Trainium: :mod:`relaxide.backend.trn.op`."""

from ...backend.trn.op import *  # noqa: F403
from ...backend.trn.op import __all__

__all__ = list(__all__)
