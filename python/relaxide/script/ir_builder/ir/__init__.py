"""Modules, written by ``with`` blocks."""

from .frame import IRModuleFrame
from .ir import *  # noqa: F403
from .ir import __all__ as _functions

__all__ = ["IRModuleFrame", *_functions]
