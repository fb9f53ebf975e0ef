"""Transforms of signals."""

from math import pi

from ._more_shapes import dft, stft

__all__ = ["dft", "pi", "stft"]
