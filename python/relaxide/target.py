"""What kernels are compiled for."""

from ._core import Target

__all__ = ["Target"]
