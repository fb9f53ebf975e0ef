"""Text to modules."""

from .module import fromtext, parse, parse_expr

__all__ = ["fromtext", "parse", "parse_expr"]
