"""Importers."""

from . import onnx, torch

__all__ = ["onnx", "torch"]
