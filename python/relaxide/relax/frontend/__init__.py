"""Importers."""

from . import onnx

__all__ = ["onnx"]
