"""Passes for OpenCL devices whose tensors may lie in textures."""

from . import transform

__all__ = ["transform"]
