"""What TVM keeps for Trainium."""

from . import op

__all__ = ["op"]
