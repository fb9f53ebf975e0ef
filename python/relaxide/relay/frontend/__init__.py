"""Importers: ONNX models, and programs in Relax."""

from .onnx import from_onnx
from .relax import from_relax

__all__ = ["from_onnx", "from_relax"]
