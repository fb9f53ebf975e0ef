"""TVMScript: programs written as Python.

A program is read, not run. Names that it does not bind are Python's: captured numbers, shapes, constants, kernels and
helper functions take part while it is read, loops over Python values are unrolled, and macros stand for statements.
"""

import sys

from .._parts import Part
from . import ir, relax, tirx
from .entry import ScriptMacro, from_source, ir_module, parse

tir = tirx
# `from relaxide.script.parser import relax as R` and `import relaxide.script.tir` are ways to write the same.
parser = sys.modules[__name__]
sys.modules[f"{__name__}.parser"] = parser
sys.modules[f"{__name__}.tir"] = tirx
for _name, _module in (("ir", ir), ("relax", relax), ("tir", tirx), ("tirx", tirx)):
    # `import relaxide.script.parser.relax.entry` too; without this, the module would be read a second time under the other name.
    sys.modules[f"{__name__}.parser.{_name}"] = _module
    sys.modules[f"{__name__}.parser.{_name}.entry"] = Part(_module, "entry")
    _module.__path__ = []


def __getattr__(name):
    # Parts of a reader in Python, which few programs use.
    if name == "core":
        import importlib

        return importlib.import_module(f"{__name__}.parser.core")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["ScriptMacro", "from_source", "ir", "ir_module", "parse", "parser", "relax", "tir", "tirx"]
