"""Relax functions, written by ``with`` blocks: see :mod:`relaxide.relax.script.builder`."""

import sys

from ...relax.script import builder

sys.modules[f"{__name__}.ir"], sys.modules[f"{__name__}.frame"] = builder.ir, builder.frame
sys.modules[__name__] = builder
