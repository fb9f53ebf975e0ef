"""What is about Apple's devices alone."""

from . import op

__all__ = ["op"]
