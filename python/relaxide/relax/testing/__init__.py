"""Functions and programs that tests of Relax use."""

from . import matmul, runtime_builtin, vm

__all__ = ["matmul", "runtime_builtin", "vm"]
