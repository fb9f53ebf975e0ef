"""Symbolic arithmetic, under the name that it had in older releases of TVM: see :mod:`relaxide.sym`."""

import sys

from . import sym
from .sym import *  # noqa: F403
from .sym import __all__  # noqa: F401
from .sym import analyzer, bound, int_set, iter_affine_map, pattern

__path__ = []
for _part in (analyzer, bound, int_set, iter_affine_map, pattern):
    sys.modules[f"{__name__}.{_part.__name__.rpartition('.')[2]}"] = _part
del sys, sym
