"""Importers."""

from . import nn, onnx, torch

__all__ = ["nn", "onnx", "torch"]
