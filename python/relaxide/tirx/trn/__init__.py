"""What is about Trainium alone."""

from . import op

__all__ = ["op"]
