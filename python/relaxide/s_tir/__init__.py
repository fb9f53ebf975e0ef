"""Kernels as blocks: units of computation over axes, independent of the loops around them."""

from . import stmt
from .stmt import MatchBufferRegion, SBlock, SBlockRealize

__all__ = ["MatchBufferRegion", "SBlock", "SBlockRealize", "stmt"]
