"""Functions and programs that tests of Relax use."""

from . import lib_comparator, matmul, nn, runtime_builtin, vm
from .matmul import get_relax_matmul_module

__all__ = ["get_relax_matmul_module", "lib_comparator", "matmul", "nn", "runtime_builtin", "vm"]
