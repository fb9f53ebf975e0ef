"""Executables built by hand."""

from .._core import ExecBuilder

__all__ = ["ExecBuilder"]
