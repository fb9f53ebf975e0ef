"""What TVM keeps for NVIDIA's devices."""

from . import op

__all__ = ["op"]
