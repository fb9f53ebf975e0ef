"""Compilation, under the name of TVM's module."""

from . import build_module
from .build_module import build, compile

__all__ = ["build", "build_module", "compile"]
