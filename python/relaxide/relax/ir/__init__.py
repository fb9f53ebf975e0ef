"""Instruments about Relax programs."""

from . import instrument

__all__ = ["instrument"]
