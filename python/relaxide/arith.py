"""Symbolic arithmetic, under the name that it had in older releases of TVM: see :mod:`relaxide.sym`."""

from .sym import *  # noqa: F403
from .sym import __all__
