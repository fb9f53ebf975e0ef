"""What TVM keeps for Apple's devices."""

from . import op

__all__ = ["op"]
