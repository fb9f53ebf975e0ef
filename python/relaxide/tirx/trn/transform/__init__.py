"""Passes over kernels for Trainium."""

from .naive_allocator import TrnNaiveAllocator

__all__ = ["TrnNaiveAllocator"]
