"""Compilation to executables, under the name of TVM's module."""

from ..compiler import build
from .executable import VMExecutable

__all__ = ["VMExecutable", "build"]
