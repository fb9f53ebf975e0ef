"""The importer of PyTorch's programs.

PyTorch itself is needed only where a program comes from it: a saved one (``.pt2``) is read without.
"""

from .dynamo import dynamo_capture_subgraphs, relax_dynamo
from .exported_program import from_exported_program
from .fx import from_fx

__all__ = ["dynamo_capture_subgraphs", "from_exported_program", "from_fx", "relax_dynamo"]
