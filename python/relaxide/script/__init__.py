"""TVMScript: programs written as Python.

A program is read, not run. Names that it does not bind are Python's: captured numbers, shapes, constants, kernels and
helper functions take part while it is read, loops over Python values are written out, and macros stand for statements.
"""

import sys

from . import ir, relax, tirx
from .entry import ScriptMacro, from_source, ir_module, parse

tir = tirx
# `from relaxide.script.parser import relax as R` and `import relaxide.script.tir` are ways to write the same.
parser = sys.modules[__name__]
sys.modules[f"{__name__}.parser"] = parser
sys.modules[f"{__name__}.tir"] = tirx

__all__ = ["ScriptMacro", "from_source", "ir", "ir_module", "parse", "parser", "relax", "tir", "tirx"]
