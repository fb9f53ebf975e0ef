"""Kernels, written by ``with`` blocks."""

from . import frame, ir
from .frame import *  # noqa: F403
from .ir import *  # noqa: F403
from .ir import __all__ as _functions

__getattr__ = ir.__getattr__
__all__ = [*frame.__all__, *_functions, "frame", "ir"]
