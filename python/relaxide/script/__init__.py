"""TVMScript: programs written as Python.

The body of a module is not run: its source is parsed. Decorators and annotations only have to be valid Python, which is
what the namespaces ``ir`` (``I``), ``relax`` (``R``) and ``tirx`` (``T``) are for.
"""

from . import ir, relax, tirx
from .entry import from_source, ir_module

__all__ = ["from_source", "ir", "ir_module", "relax", "tirx"]
