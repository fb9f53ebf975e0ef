"""Compilation, under the name of TVM's module."""

from ..compiler import build, compile

__all__ = ["build", "compile"]
