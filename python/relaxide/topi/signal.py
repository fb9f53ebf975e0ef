"""Transforms of signals."""

from ._more_shapes import dft, stft

__all__ = ["dft", "stft"]
